//! The methods, and what each is told.

use super::groups::{
    BatchOptions, EvidenceOptions, InducingOptions, IterativeOptions, KernelPrecision, LargeTableOptions,
};
use super::numbers::{self, MOST_STEPS};
use posterior_gp::exact::FitOptions;
use posterior_gp::inducing::stochastic::VariationalOptimizer;
use posterior_gp::iterative::{
    DescentOptions, DualDescentOptions, InducingDescentOptions, Method as SolveMethod,
};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use std::fmt;

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
                    $(Self::$name => clap::FromArgMatches::from_arg_matches_mut(matches).map(Method::$name)),*
                }
            }

            fn deserialize(self, table: serde_json::Value) -> Result<Method, serde_json::Error> {
                match self { $(Self::$name => serde_json::from_value(table).map(Method::$name)),* }
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
    /// Chosen by size, memory and time ([`crate::choose`])
    Auto = "auto" => AutoOptions,
    /// Cholesky of the whole kernel matrix
    Exact = "exact" => ExactOptions,
    /// Conjugate gradients
    Cg = "cg" => CgOptions,
    /// Stochastic gradient descent on the primal objective
    Sgd = "sgd" => SgdOptions,
    /// Stochastic dual descent: the method of choice for large tables
    Sdd = "sdd" => SddOptions,
    /// Stochastic gradient descent on weights of inducing points
    InducingSgd = "inducing-sgd" => InducingSgdOptions,
    /// The collapsed bound of inducing points (Titsias)
    Sgpr = "sgpr" => SgprOptions,
    /// The stochastic bound of inducing points (Hensman)
    Svgp = "svgp" => SvgpOptions,
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
            Self::Auto(AutoOptions { iterative, .. })
            | Self::Cg(CgOptions { iterative, .. })
            | Self::Sgd(SgdOptions { iterative, .. })
            | Self::Sdd(SddOptions { iterative, .. })
            | Self::InducingSgd(InducingSgdOptions { iterative, .. }) => Some(iterative),
            Self::Exact(_) | Self::Sgpr(_) | Self::Svgp(_) => None,
        }
    }

    /// As [`Self::iterative`], to be changed.
    pub fn iterative_mut(&mut self) -> Option<&mut IterativeOptions> {
        match self {
            Self::Auto(AutoOptions { iterative, .. })
            | Self::Cg(CgOptions { iterative, .. })
            | Self::Sgd(SgdOptions { iterative, .. })
            | Self::Sdd(SddOptions { iterative, .. })
            | Self::InducingSgd(InducingSgdOptions { iterative, .. }) => Some(iterative),
            Self::Exact(_) | Self::Sgpr(_) | Self::Svgp(_) => None,
        }
    }

    /// Steps, rows to judge by and checkpoints of methods for large tables.
    pub fn large(&self) -> Option<&LargeTableOptions> {
        match self {
            Self::Sgpr(options) => Some(&options.large),
            Self::Svgp(options) => Some(&options.large),
            _ => self.iterative().map(|options| &options.large),
        }
    }

    /// As [`Self::large`], to be changed.
    pub fn large_mut(&mut self) -> Option<&mut LargeTableOptions> {
        match self {
            Self::Sgpr(options) => Some(&mut options.large),
            Self::Svgp(options) => Some(&mut options.large),
            _ => self.iterative_mut().map(|options| &mut options.large),
        }
    }

    /// Inducing points of methods that have some.
    pub fn inducing(&self) -> Option<&InducingOptions> {
        match self {
            Self::InducingSgd(options) => Some(&options.inducing),
            Self::Sgpr(options) => Some(&options.inducing),
            Self::Svgp(options) => Some(&options.inducing),
            _ => None,
        }
    }

    /// As [`Self::inducing`], to be changed.
    pub fn inducing_mut(&mut self) -> Option<&mut InducingOptions> {
        match self {
            Self::InducingSgd(options) => Some(&mut options.inducing),
            Self::Sgpr(options) => Some(&mut options.inducing),
            Self::Svgp(options) => Some(&mut options.inducing),
            _ => None,
        }
    }

    /// Batches of methods that step on some.
    pub fn batches(&self) -> Option<&BatchOptions> {
        match self {
            Self::Auto(options) => Some(&options.batches),
            Self::Sgd(options) => Some(&options.batches),
            Self::Sdd(options) => Some(&options.batches),
            Self::InducingSgd(options) => Some(&options.batches),
            Self::Svgp(options) => Some(&options.batches),
            Self::Exact(_) | Self::Cg(_) | Self::Sgpr(_) => None,
        }
    }

    /// The relative residual at which a solver was asked to stop.
    pub(crate) fn tolerance(&self) -> Option<f64> {
        match self {
            Self::Auto(options) => options.tolerance,
            Self::Cg(options) => options.tolerance,
            Self::Sgd(options) => options.tolerance,
            Self::Sdd(options) => options.tolerance,
            _ => None,
        }
    }

    /// Steps of the solver or bound.
    pub(crate) fn steps(&self) -> usize {
        let usual = match self {
            Self::Cg(_) => 1000,
            Self::Sgd(_) | Self::InducingSgd(_) => 20_000,
            Self::Svgp(options) => return options.steps(),
            Self::Sgpr(options) => return options.steps(),
            Self::Auto(_) | Self::Exact(_) | Self::Sdd(_) => 10_000,
        };
        self.large().and_then(|large| large.iterations).unwrap_or(usual)
    }

    /// The precision of kernel products; bounds are computed in double.
    pub(crate) fn precision(&self) -> KernelPrecision {
        self.iterative().map_or(KernelPrecision::Double, |options| options.system.precision)
    }
}

/// What is told where the method is not: of each method that may be chosen what it has in common with others.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct AutoOptions {
    /// Starts: the kernel's initial values, the same with little noise, then random ones
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", value_parser = numbers::whole(1..=1000), default_value_t = FitOptions::default().restarts))]
    pub restarts: usize,
    /// What iterative solvers are told.
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub iterative: IterativeOptions,
    /// Steps on batches.
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub batches: BatchOptions,
    /// Momentum of sdd
    #[cfg_attr(feature = "clap", arg(long, value_name = "X", value_parser = numbers::share_or_none, default_value_t = DualDescentOptions::default().momentum))]
    pub momentum: f64,
    /// Relative residual at which a solver stops [default: 1e-3 for cg, none for others]
    #[cfg_attr(feature = "clap", arg(long, value_name = "X", value_parser = numbers::positive))]
    pub tolerance: Option<f64>,
}

impl Default for AutoOptions {
    fn default() -> Self {
        Self {
            restarts: FitOptions::default().restarts,
            iterative: IterativeOptions::default(),
            batches: BatchOptions::default(),
            momentum: DualDescentOptions::default().momentum,
            tolerance: None,
        }
    }
}

impl AutoOptions {
    pub(crate) fn exact(&self) -> ExactOptions {
        ExactOptions { restarts: self.restarts, evidence: self.iterative.evidence.clone() }
    }

    pub(crate) fn dual_descent(&self) -> SddOptions {
        SddOptions {
            iterative: self.iterative.clone(),
            batches: self.batches.clone(),
            momentum: self.momentum,
            tolerance: self.tolerance,
        }
    }

    pub(crate) fn collapsed_bound(&self) -> SgprOptions {
        let IterativeOptions { evidence, large, .. } = self.iterative.clone();
        SgprOptions { steps: evidence.steps, large, ..SgprOptions::default() }
    }

    pub(crate) fn stochastic_bound(&self) -> SvgpOptions {
        SvgpOptions {
            large: self.iterative.large.clone(),
            batches: self.batches.clone(),
            ..SvgpOptions::default()
        }
    }
}

/// Exact inference.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct ExactOptions {
    /// Starts: the kernel's initial values, the same with little noise, then random ones
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", value_parser = numbers::whole(1..=1000), default_value_t = FitOptions::default().restarts))]
    pub restarts: usize,
    /// The search for hyperparameters.
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub evidence: EvidenceOptions,
}

impl Default for ExactOptions {
    fn default() -> Self {
        Self { restarts: FitOptions::default().restarts, evidence: EvidenceOptions::default() }
    }
}

/// Conjugate gradients.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct CgOptions {
    /// What iterative solvers are told.
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub iterative: IterativeOptions,
    /// Relative residual at which a solver stops [default: 1e-3 for cg, none for others]
    #[cfg_attr(feature = "clap", arg(long, value_name = "X", value_parser = numbers::positive))]
    pub tolerance: Option<f64>,
}

/// Stochastic gradient descent on the primal objective.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct SgdOptions {
    /// What iterative solvers are told.
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub iterative: IterativeOptions,
    /// Steps on batches.
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub batches: BatchOptions,
    /// Relative residual at which a solver stops [default: 1e-3 for cg, none for others]
    #[cfg_attr(feature = "clap", arg(long, value_name = "X", value_parser = numbers::positive))]
    pub tolerance: Option<f64>,
}

impl SgdOptions {
    pub(crate) fn solver(&self, seed: u64) -> SolveMethod {
        SolveMethod::Descent(DescentOptions {
            step_size: self.batches.step_size(),
            batch: self.batches.solver_batch(),
            seed,
            ..DescentOptions::default()
        })
    }
}

/// Stochastic dual descent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct SddOptions {
    /// What iterative solvers are told.
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub iterative: IterativeOptions,
    /// Steps on batches.
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub batches: BatchOptions,
    /// Momentum of sdd
    #[cfg_attr(feature = "clap", arg(long, value_name = "X", value_parser = numbers::share_or_none, default_value_t = DualDescentOptions::default().momentum))]
    pub momentum: f64,
    /// Relative residual at which a solver stops [default: 1e-3 for cg, none for others]
    #[cfg_attr(feature = "clap", arg(long, value_name = "X", value_parser = numbers::positive))]
    pub tolerance: Option<f64>,
}

impl Default for SddOptions {
    fn default() -> Self {
        AutoOptions::default().dual_descent()
    }
}

impl SddOptions {
    pub(crate) fn solver(&self, seed: u64) -> SolveMethod {
        SolveMethod::DualDescent(DualDescentOptions {
            step_size: self.batches.step_size(),
            batch: self.batches.solver_batch(),
            momentum: self.momentum,
            seed,
            ..DualDescentOptions::default()
        })
    }
}

/// Stochastic gradient descent on the weights of inducing points. The misfit of inducing points keeps the noise, so no tolerance can be reached.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct InducingSgdOptions {
    /// What iterative solvers are told.
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub iterative: IterativeOptions,
    /// Steps on batches.
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub batches: BatchOptions,
    /// Inducing points.
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub inducing: InducingOptions,
}

impl InducingSgdOptions {
    pub(crate) fn solver(&self, seed: u64) -> InducingDescentOptions {
        InducingDescentOptions {
            step_size: self.batches.step_size(),
            batch: self.batches.solver_batch(),
            seed,
            ..InducingDescentOptions::default()
        }
    }
}

/// The collapsed bound.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct SgprOptions {
    /// Most steps of each search for hyperparameters [default: 200, of a stochastic one 100]; a solver's own are --iterations
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", value_parser = numbers::whole(0..=MOST_STEPS)))]
    pub steps: Option<usize>,
    /// Steps, rows to judge by, checkpoints.
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub large: LargeTableOptions,
    /// Inducing points.
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub inducing: InducingOptions,
    /// Keep inducing points where they were chosen, as those among counts always are
    #[cfg_attr(feature = "clap", arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", default_value_t = false, action = clap::ArgAction::Set))]
    pub fixed_inducing: bool,
}

impl SgprOptions {
    pub(crate) fn steps(&self) -> usize {
        self.large.iterations.or(self.steps).unwrap_or_else(|| FitOptions::default().steps.steps)
    }
}

/// What moves the distribution of inducing values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum VariationalName {
    /// Natural gradients
    #[default]
    Natural,
    /// Adam, with the step size of everything else
    Adam,
}

/// The stochastic bound.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct SvgpOptions {
    /// Steps, rows to judge by, checkpoints.
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub large: LargeTableOptions,
    /// Steps on batches.
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub batches: BatchOptions,
    /// Inducing points.
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub inducing: InducingOptions,
    /// Keep inducing points where they were chosen, as those among counts always are
    #[cfg_attr(feature = "clap", arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", default_value_t = false, action = clap::ArgAction::Set))]
    pub fixed_inducing: bool,
    /// What moves the distribution of svgp's inducing values
    #[cfg_attr(feature = "clap", arg(long, value_enum, default_value_t))]
    pub variational: VariationalName,
    /// Length of natural-gradient steps, above 0 and at most 1
    #[cfg_attr(feature = "clap", arg(long, value_name = "X", value_parser = numbers::share_or_all, default_value_t = Self::default().natural_length))]
    pub natural_length: f64,
}

impl Default for SvgpOptions {
    fn default() -> Self {
        Self {
            large: LargeTableOptions::default(),
            batches: BatchOptions::default(),
            inducing: InducingOptions::default(),
            fixed_inducing: false,
            variational: VariationalName::default(),
            natural_length: 0.1,
        }
    }
}

impl SvgpOptions {
    pub(crate) fn steps(&self) -> usize {
        self.large.iterations.unwrap_or(3000)
    }

    pub(crate) fn optimizer(&self) -> VariationalOptimizer {
        match self.variational {
            VariationalName::Adam => VariationalOptimizer::Adam,
            VariationalName::Natural => {
                VariationalOptimizer::NaturalGradient { length: self.natural_length, warm_up: 20 }
            }
        }
    }
}
