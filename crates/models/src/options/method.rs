//! The sum: a method, or its name.

use super::deep::{DbkOptions, DeepKind, DklOptions};
use super::groups::{
    BatchOptions, DiskOptions, InducingOptions, IterativeOptions, KernelPrecision, LargeTableOptions,
};
use super::gvi::GviOptions;
use super::methods::{
    AutoOptions, CgOptions, ExactOptions, InducingSgdOptions, SapOptions, SddOptions, SgdOptions,
    SgprOptions, SvgpOptions,
};
use super::search::EvidenceOptions;
use super::solver::Solver;
use crate::ModelError;
use posterior_gp::iterative::Budget;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use std::fmt;
use std::time::Duration;

/// Bounds of the tolerance of solvers that nobody chose one for: what residuals of ten thousands of rows are known to in single and in double precision, and what published runs are content with.
const FINEST: [f64; 2] = [1e-5, 1e-7];
const COARSEST: f64 = 1e-3;

/// Writes what depends on the list of methods: the sum of their options, their names, and the way from one to the other.
macro_rules! methods {
    ($($(#[doc = $doc:literal])* $name:ident = $text:literal => $options:ident),* $(,)?) => {
        /// A method without its options.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
        #[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
        pub enum MethodName {
            $($(#[doc = $doc])* #[serde(rename = $text)] #[cfg_attr(feature = "clap", value(name = $text))] $name,)*
        }

        impl MethodName {
            /// All methods.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// Its name on the command line and in files.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text),* }
            }

            /// Its flags.
            #[cfg(feature = "clap")]
            pub(super) fn augment(self, command: clap::Command) -> clap::Command {
                match self { $(Self::$name => <$options as clap::Args>::augment_args(command)),* }
            }

            /// What the flags say.
            #[cfg(feature = "clap")]
            pub(super) fn parse(self, matches: &mut clap::ArgMatches) -> Result<Method, clap::Error> {
                match self {
                    $(Self::$name => clap::FromArgMatches::from_arg_matches_mut(matches).map(|own| Method::$name(own).settled())),*
                }
            }

            fn deserialize(self, table: serde_json::Value) -> Result<Method, serde_json::Error> {
                match self { $(Self::$name => serde_json::from_value(table).map(|own| Method::$name(own).settled())),* }
            }
        }

        /// How the posterior is computed, with all that this method is told and nothing that it has no use for.
        #[derive(Clone, Debug, PartialEq, Serialize)]
        #[serde(tag = "method")]
        pub enum Method {
            $($(#[doc = $doc])* #[serde(rename = $text)] $name($options),)*
        }

        impl Method {
            /// Without its options.
            pub fn name(&self) -> MethodName {
                match self { $(Self::$name(_) => MethodName::$name),* }
            }
        }

        /// With the defaults of its options.
        impl From<MethodName> for Method {
            fn from(name: MethodName) -> Self {
                match name { $(MethodName::$name => Self::$name($options::default())),* }
            }
        }
    };
}

methods! {
    /// Chosen by size, memory and time
    Auto = "auto" => AutoOptions,
    /// Cholesky of the whole kernel matrix: the reference, for thousands of rows; memory grows with their square
    Exact = "exact" => ExactOptions,
    /// Conjugate gradients: large tables with enough noise; each step looks at all pairs of rows
    Cg = "cg" => CgOptions,
    /// Stochastic gradient descent on the primal objective: a baseline for large tables
    Sgd = "sgd" => SgdOptions,
    /// Stochastic dual descent: the method of choice for large tables; variances are those of samples
    Sdd = "sdd" => SddOptions,
    /// Sketch-and-project: blocks of rows, each solved nearly exactly; for little noise and smooth functions
    Sap = "sap" => SapOptions,
    /// Stochastic gradient descent on weights of inducing points: very many rows of a smooth function
    InducingSgd = "inducing-sgd" => InducingSgdOptions,
    /// The collapsed bound of inducing points (Titsias): many rows of a smooth function, all at a time
    Sgpr = "sgpr" => SgprOptions,
    /// The stochastic bound of inducing points (Hensman): any number of rows, every likelihood, from disk
    Svgp = "svgp" => SvgpOptions,
    /// A network's outputs as basis functions, all rows at a time: functions that no kernel suits
    Dbk = "dbk" => DbkOptions,
    /// A network's outputs as basis functions, on batches: the same for any number of rows
    Svdbk = "svdbk" => DbkOptions,
    /// A kernel behind a network, by inducing points or itself (`dense`), all rows at a time
    Dkl = "dkl" => DklOptions,
    /// A kernel behind a network, by inducing points, on batches: any number of rows
    Svdkl = "svdkl" => DklOptions,
    /// Generalised variational inference: means and covariances that are free of each other
    Gvi = "gvi" => GviOptions,
}

impl From<SgprOptions> for Method {
    fn from(options: SgprOptions) -> Self {
        Self::Sgpr(options)
    }
}

impl From<SvgpOptions> for Method {
    fn from(options: SvgpOptions) -> Self {
        Self::Svgp(options)
    }
}

impl fmt::Display for MethodName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Default for Method {
    fn default() -> Self {
        Self::Auto(AutoOptions::default())
    }
}

/// From a table of options beside `method`; options that the method does not have are errors that name those which it has.
impl<'de> Deserialize<'de> for Method {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut table = serde_json::Map::deserialize(deserializer)?;
        let name = match table.remove("method") {
            Some(name) => serde_json::from_value(name).map_err(D::Error::custom)?,
            None => MethodName::Auto,
        };
        let known = serde_json::to_value(Self::from(name)).map_err(D::Error::custom)?;
        if let Some(key) = table.keys().find(|key| known.get(key).is_none()) {
            let keys: Vec<&String> = known.as_object().into_iter().flat_map(serde_json::Map::keys).collect();
            return Err(D::Error::custom(format!("{name} has no option `{key}`; it has {keys:?}")));
        }
        name.deserialize(table.into()).map_err(D::Error::custom)
    }
}

impl Method {
    /// What this method must have for what is done with it.
    ///
    /// # Errors
    /// [`ModelError::NotIterative`] where it has none.
    pub(crate) fn requires<T>(&self, own: Option<T>) -> Result<T, ModelError> {
        own.ok_or(ModelError::NotIterative { method: self.name().as_str() })
    }

    /// With what a method has otherwise than those that it shares a group of options with, where nothing is said of it.
    fn settled(mut self) -> Self {
        if let Self::Sap(options) = &mut self {
            let system = &mut options.iterative.system;
            system.precision = system.precision.or(SapOptions::default().iterative.system.precision);
        }
        self
    }

    /// The search for hyperparameters by exact evidence, of methods that have one; bounds learn theirs.
    pub fn evidence(&self) -> Option<&EvidenceOptions> {
        match self {
            Self::Exact(options) => Some(&options.evidence),
            _ => self.iterative().map(|options| &options.evidence),
        }
    }

    /// What iterative solvers are told.
    pub fn iterative(&self) -> Option<&IterativeOptions> {
        match self {
            Self::Auto(AutoOptions { descent: SddOptions { iterative, .. }, .. })
            | Self::Cg(CgOptions { iterative, .. })
            | Self::Sgd(SgdOptions { iterative, .. })
            | Self::Sdd(SddOptions { iterative, .. })
            | Self::Sap(SapOptions { iterative, .. })
            | Self::InducingSgd(InducingSgdOptions { iterative, .. }) => Some(iterative),
            _ => None,
        }
    }

    /// As [`Self::iterative`], to be changed.
    pub fn iterative_mut(&mut self) -> Option<&mut IterativeOptions> {
        match self {
            Self::Auto(AutoOptions { descent: SddOptions { iterative, .. }, .. })
            | Self::Cg(CgOptions { iterative, .. })
            | Self::Sgd(SgdOptions { iterative, .. })
            | Self::Sdd(SddOptions { iterative, .. })
            | Self::Sap(SapOptions { iterative, .. })
            | Self::InducingSgd(InducingSgdOptions { iterative, .. }) => Some(iterative),
            _ => None,
        }
    }

    /// Steps, rows to judge by and checkpoints of methods for large tables.
    pub fn large(&self) -> Option<&LargeTableOptions> {
        match self {
            Self::Sgpr(options) => Some(&options.large),
            Self::Svgp(options) => Some(&options.large),
            Self::Gvi(options) => Some(&options.large),
            _ => match self.deep() {
                Some((options, ..)) => Some(&options.large),
                None => self.iterative().map(|options| &options.large),
            },
        }
    }

    /// As [`Self::large`], to be changed.
    pub fn large_mut(&mut self) -> Option<&mut LargeTableOptions> {
        match self {
            Self::Sgpr(options) => Some(&mut options.large),
            Self::Svgp(options) => Some(&mut options.large),
            Self::Gvi(options) => Some(&mut options.large),
            Self::Dbk(options) | Self::Svdbk(options) => Some(&mut options.large),
            Self::Dkl(options) | Self::Svdkl(options) => Some(&mut options.deep.large),
            _ => self.iterative_mut().map(|options| &mut options.large),
        }
    }

    /// Where prepared rows are kept, of methods that look at some of them at a time.
    pub fn disk(&self) -> Option<&DiskOptions> {
        match self {
            Self::Sgpr(options) => Some(&options.disk),
            Self::Svgp(options) => Some(&options.disk),
            _ => self.deep().map(|(options, ..)| &options.disk),
        }
    }

    /// What methods with learned features are told: which features, and how wide the embedding is.
    pub(crate) fn deep(&self) -> Option<(&DbkOptions, DeepKind, Option<usize>)> {
        let kind = |inducing, exact| DeepKind { inducing, exact, dense: false };
        let behind = |exact, options: &DklOptions| DeepKind { dense: options.dense, ..kind(true, exact) };
        match self {
            Self::Dbk(options) => Some((options, kind(false, true), None)),
            Self::Svdbk(options) => Some((options, kind(false, false), None)),
            Self::Dkl(options) => Some((&options.deep, behind(true, options), options.embedding)),
            Self::Svdkl(options) => Some((&options.deep, behind(false, options), options.embedding)),
            _ => None,
        }
    }

    /// What generalised variational inference is told.
    pub(crate) fn gvi(&self) -> Option<&GviOptions> {
        match self {
            Self::Gvi(options) => Some(options),
            _ => None,
        }
    }

    /// Whether something is learned of which rows that are set aside choose and stop: features, or a mean and a covariance.
    pub(crate) fn sets_aside(&self) -> bool {
        self.deep().is_some() || self.gvi().is_some()
    }

    /// Inducing points of methods that have some.
    pub fn inducing(&self) -> Option<&InducingOptions> {
        match self {
            Self::InducingSgd(options) => Some(&options.inducing),
            Self::Sgpr(options) => Some(&options.inducing),
            Self::Svgp(options) => Some(&options.inducing),
            Self::Gvi(options) => Some(&options.inducing),
            _ => None,
        }
    }

    /// Batches of methods that step on some.
    pub fn batches(&self) -> Option<&BatchOptions> {
        match self {
            Self::Auto(options) => Some(&options.descent.batches),
            Self::Sgd(options) => Some(&options.batches),
            Self::Sdd(options) => Some(&options.batches),
            Self::InducingSgd(options) => Some(&options.batches),
            Self::Svgp(options) => Some(&options.batches),
            Self::Gvi(options) => Some(&options.batches),
            _ => self.deep().map(|(options, ..)| &options.batches),
        }
    }

    /// What finds the weights of an iterative method on so many rows, as it is kept in the model's file.
    pub fn solver(&self, rows: usize, seed: u64) -> Option<Solver> {
        match self {
            Self::Cg(options) => Some(Solver::Rows(options.iterative.system.conjugate_gradients(seed))),
            Self::Sgd(options) => Some(Solver::Rows(options.solver(seed))),
            Self::Sdd(options) => Some(Solver::Rows(options.solver(seed))),
            Self::Sap(options) => Some(Solver::Rows(options.solver(rows, seed))),
            Self::InducingSgd(options) => Some(Solver::Inducing(options.solver(seed))),
            _ => None,
        }
    }

    /// The relative residual at which a solver was asked to stop.
    pub(crate) fn tolerance(&self) -> Option<f64> {
        match self {
            Self::Auto(options) => options.descent.tolerance,
            Self::Cg(options) => options.tolerance,
            Self::Sgd(options) => options.tolerance,
            Self::Sdd(options) => options.tolerance,
            Self::Sap(options) => options.tolerance,
            _ => None,
        }
    }

    /// How long a solver of so many rows goes on: so many steps, so much time, to a tolerance that conjugate gradients and sketch-and-project have and others are asked for.
    ///
    /// Predictions at rows are off by the residual at most, and what their own deviations are measured by is the noise: the usual tolerance is a hundredth of its standard deviation, in units of what is solved for, at most 10⁻³. `noise_share` is its variance over that of targets or of prior functions, whichever is larger.
    pub fn budget(&self, rows: usize, time: Option<Duration>, noise_share: f64) -> Budget {
        let finest = FINEST[usize::from(self.precision() == KernelPrecision::Double)];
        let usual = match self {
            Self::Cg(_) | Self::Sap(_) => (0.01 * noise_share.sqrt()).clamp(finest, COARSEST),
            _ => 0.0,
        };
        Budget { steps: self.steps(rows), time, tolerance: self.tolerance().unwrap_or(usual) }
    }

    /// Steps of the solver or bound on so many rows.
    pub fn steps(&self, rows: usize) -> usize {
        let usual = match self {
            Self::Cg(_) => 1000,
            Self::Sap(options) => options.steps(rows),
            Self::Sgd(_) | Self::InducingSgd(_) => 20_000,
            Self::Svgp(options) => return options.steps(),
            Self::Sgpr(options) => return options.steps(),
            Self::Gvi(options) => return options.steps(),
            _ => 10_000,
        };
        self.large().and_then(|large| large.iterations).unwrap_or(usual)
    }

    /// The precision of kernel products; bounds are computed in double. Of a method whose precision is [open](Self::precision_is_open), that of its search.
    pub fn precision(&self) -> KernelPrecision {
        self.iterative().map_or(KernelPrecision::Double, |options| options.system.precision())
    }

    /// Whether the system decides in which precision it is solved ([`Self::for_system`]): conjugate gradients, where nobody says.
    pub fn precision_is_open(&self) -> bool {
        matches!(self, Self::Cg(options) if options.iterative.system.precision.is_none())
    }

    /// With an open precision decided for a system of so many rows, whose function has `ratio` times the noise's variance: the matrix's condition number is at most their product. Conjugate gradients in single precision
    /// take 1.4 times the iterations of double where it is 4·10⁶, 2.5 times at 10⁷, where each is half as dear, and do not arrive at 10⁸.
    pub fn for_system(&self, rows: usize, ratio: f64) -> Self {
        let mut own = self.clone();
        if let Self::Cg(options) = &mut own {
            let single = rows as f64 * ratio <= SINGLE_CONDITION;
            let decided = if single { KernelPrecision::Single } else { KernelPrecision::Double };
            options.iterative.system.precision.get_or_insert(decided);
        }
        own
    }
}

/// The largest condition number of a system that is solved in single precision by itself: the reciprocal of its rounding, nearly.
const SINGLE_CONDITION: f64 = 1e7;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn solvers_go_on_to_a_hundredth_of_the_noise() {
        let of = |name: MethodName, noise: f64| Method::from(name).budget(100, None, noise).tolerance;
        for (name, finest) in [(MethodName::Cg, 1e-5), (MethodName::Sap, 1e-7)] {
            let found = [1.0, 0.01, 1e-4, 1e-20, 0.0].map(|noise| of(name, noise));
            assert_eq!(found, [1e-3, 1e-3, 1e-4, finest, finest]);
        }
        // Descent ends where predictions do; what is asked for is what it is.
        assert_eq!(of(MethodName::Sdd, 1e-4), 0.0);
        let asked = Method::Sap(SapOptions { tolerance: Some(0.02), ..SapOptions::default() });
        assert_eq!(asked.budget(100, None, 1e-4).tolerance, 0.02);
    }

    /// Ten times as many rows bear a tenth of the ratio; what was asked for stays, and so does what is no question.
    #[test]
    fn conjugate_gradients_are_in_double_precision_where_single_cannot_solve() {
        let of = |method: &Method, rows, ratio| method.for_system(rows, ratio).precision();
        let open = Method::from(MethodName::Cg);
        assert!(open.precision_is_open());
        let double = [(1_000, 9e3), (1_000, 1.1e4), (10_000, 9e2), (10_000, 1.1e3)]
            .map(|(rows, ratio)| of(&open, rows, ratio) == KernelPrecision::Double);
        assert_eq!(double, [false, true, false, true]);
        let mut asked = CgOptions::default();
        asked.iterative.system.precision = Some(KernelPrecision::Single);
        let asked = Method::Cg(asked);
        assert!(!asked.precision_is_open());
        assert_eq!(of(&asked, 10_000, 1e8), KernelPrecision::Single);
        let descent = Method::from(MethodName::Sdd);
        assert!(!descent.precision_is_open());
        assert_eq!(descent.for_system(10_000, 1e8), descent);
    }
}
