//! What each method is told.

#[cfg(feature = "clap")]
use super::beside::Beside;
use super::groups::{
    BatchOptions, DiskOptions, InducingOptions, IterativeOptions, KernelPrecision, LargeTableOptions,
};
use super::method::{Method, MethodName};
#[cfg(feature = "clap")]
use super::numbers::{MOST_KEPT, MOST_STEPS};
use super::search::{ConstraintOptions, EvidenceOptions};
#[cfg(feature = "clap")]
use crate::options::numbers;
use posterior_gp::exact::FitOptions;
use posterior_gp::inducing::stochastic::VariationalOptimizer;
use posterior_gp::iterative::{Acceleration, DualDescentOptions, SketchAndProjectOptions};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// What is told where the method is not: all that dual descent is told, of which the exact method and bounds take what they have in common with it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct AutoOptions {
    /// Starts: the kernel's initial values, the same with little noise, then random ones
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", value_parser = numbers::whole(1..=1000), default_value_t = FitOptions::default().restarts))]
    pub restarts: usize,
    /// Stochastic dual descent.
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub descent: SddOptions,
    /// What is set of single candidates, as their settings are written in files.
    #[cfg_attr(feature = "clap", arg(skip))]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub candidates: Vec<(MethodName, serde_json::Map<String, serde_json::Value>)>,
}

impl Default for AutoOptions {
    fn default() -> Self {
        Self {
            restarts: FitOptions::default().restarts,
            descent: SddOptions::default(),
            candidates: Vec::new(),
        }
    }
}

impl AutoOptions {
    /// Candidates that have settings of their own, beside those of [dual descent](SddOptions), which all take in common.
    pub const CANDIDATES: [MethodName; 5] =
        [MethodName::Exact, MethodName::Cg, MethodName::Sap, MethodName::Sgpr, MethodName::Svgp];

    /// A candidate with what is set of it alone.
    fn candidate<O: Serialize + DeserializeOwned>(&self, name: MethodName, options: O) -> O {
        let own = self.candidates.iter().filter(|(of, _)| *of == name);
        own.fold(options, |options, (_, settings)| {
            let Ok(serde_json::Value::Object(mut table)) = serde_json::to_value(&options) else {
                return options;
            };
            table.extend(settings.clone());
            serde_json::from_value(table.into()).unwrap_or(options)
        })
    }

    pub(crate) fn exact(&self) -> ExactOptions {
        let evidence = self.descent.iterative.evidence.clone();
        self.candidate(MethodName::Exact, ExactOptions { restarts: self.restarts, evidence })
    }

    /// Stochastic dual descent.
    pub(crate) fn descending(&self) -> Method {
        Method::Sdd(self.descent.clone())
    }

    pub(crate) fn collapsed_bound(&self) -> SgprOptions {
        let IterativeOptions { evidence, large, .. } = self.descent.iterative.clone();
        let EvidenceOptions { steps, constraints, .. } = evidence;
        let own = SgprOptions { steps, constraints, large, ..SgprOptions::default() };
        self.candidate(MethodName::Sgpr, own)
    }

    /// What else could solve where dual descent does: nothing where something was asked for that only descent has, and sketch-and-project, in double precision, unless single was asked for, in which small noise drowns.
    pub(crate) fn instead_of_descent(&self) -> Vec<Method> {
        let usual = SddOptions::default();
        let SddOptions { iterative, batches, momentum, tolerance } = self.descent.clone();
        if iterative.large.iterations.is_some() || (batches, momentum) != (usual.batches, usual.momentum) {
            return Vec::new();
        }
        let own = CgOptions { iterative: iterative.clone(), tolerance };
        let mut all = vec![Method::Cg(self.candidate(MethodName::Cg, own))];
        if iterative.system.precision != Some(KernelPrecision::Single) {
            let mut iterative = iterative;
            // Its own is that of a sketch.
            iterative.system.rank = None;
            iterative.system.precision = Some(KernelPrecision::Double);
            let own = SapOptions { iterative, tolerance, ..SapOptions::default() };
            all.push(Method::Sap(self.candidate(MethodName::Sap, own)));
        }
        all
    }

    /// Descent, or what is taken instead of it, by its name.
    pub(crate) fn solver_named(&self, name: MethodName) -> Option<Method> {
        let first = std::iter::once(self.descending());
        first.chain(self.instead_of_descent()).find(|method| method.name() == name)
    }

    pub(crate) fn stochastic_bound(&self) -> SvgpOptions {
        let own = SvgpOptions {
            constraints: self.descent.iterative.evidence.constraints.clone(),
            large: self.descent.iterative.large.clone(),
            batches: self.descent.batches.clone(),
            ..SvgpOptions::default()
        };
        self.candidate(MethodName::Svgp, own)
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
    /// Relative residual at which a solver stops [default: of cg and sap a hundredth of the noise's standard deviation, at most 1e-3; none for others]
    #[cfg_attr(feature = "clap", arg(long, value_name = "X", allow_negative_numbers = true, value_parser = numbers::positive))]
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
    /// Relative residual at which a solver stops [default: of cg and sap a hundredth of the noise's standard deviation, at most 1e-3; none for others]
    #[cfg_attr(feature = "clap", arg(long, value_name = "X", allow_negative_numbers = true, value_parser = numbers::positive))]
    pub tolerance: Option<f64>,
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
    /// Relative residual at which a solver stops [default: of cg and sap a hundredth of the noise's standard deviation, at most 1e-3; none for others]
    #[cfg_attr(feature = "clap", arg(long, value_name = "X", allow_negative_numbers = true, value_parser = numbers::positive))]
    pub tolerance: Option<f64>,
}

impl Default for SddOptions {
    fn default() -> Self {
        Self {
            iterative: IterativeOptions::default(),
            batches: BatchOptions::default(),
            momentum: DualDescentOptions::default().momentum,
            tolerance: None,
        }
    }
}

/// Sketch-and-project.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct SapOptions {
    /// What iterative solvers are told; with a rank, blocks are sketched.
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub iterative: IterativeOptions,
    /// Rows of a block of sap [default: as many as leave what is done with the block itself a quarter of the work, at most 4096]
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", value_parser = numbers::whole(1..=MOST_KEPT)))]
    pub block_rows: Option<usize>,
    /// Whether steps of sap are accelerated
    #[cfg_attr(feature = "clap", arg(long, value_enum, default_value_t))]
    pub acceleration: AccelerationName,
    /// Relative residual at which a solver stops [default: of cg and sap a hundredth of the noise's standard deviation, at most 1e-3; none for others]
    #[cfg_attr(feature = "clap", arg(long, value_name = "X", allow_negative_numbers = true, value_parser = numbers::positive))]
    pub tolerance: Option<f64>,
}

impl Default for SapOptions {
    /// In double precision: kernel matrices of blocks are not definite to within a small noise in single.
    fn default() -> Self {
        let mut iterative = IterativeOptions::default();
        iterative.system.precision = Some(KernelPrecision::Double);
        Self { iterative, block_rows: None, acceleration: AccelerationName::default(), tolerance: None }
    }
}

/// Acceleration of sketch-and-project.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum AccelerationName {
    /// As much as the residuals of passes bear
    #[default]
    Adaptive,
    /// Not at all
    None,
}

impl SapOptions {
    pub(crate) fn own(&self, seed: u64) -> SketchAndProjectOptions {
        SketchAndProjectOptions {
            block: self.block_rows,
            rank: self.iterative.system.rank,
            acceleration: match self.acceleration {
                AccelerationName::Adaptive => Acceleration::Adaptive,
                AccelerationName::None => Acceleration::None,
            },
            seed,
            ..SketchAndProjectOptions::default()
        }
    }

    /// Rows of a block of a table with so many rows.
    pub(crate) fn block_of(&self, rows: usize) -> usize {
        self.own(0).block_of(rows, self.iterative.sampling.samples + 1)
    }

    /// What blocks take beside the products of a step.
    pub(crate) fn block_share(&self, rows: usize) -> f64 {
        self.own(0).block_share(rows, self.iterative.sampling.samples + 1)
    }

    /// Bytes of a block while it is made.
    pub(crate) fn block_bytes(&self, rows: usize) -> u64 {
        self.own(0).block_bytes(self.block_of(rows), self.iterative.system.bytes_of_number() as usize)
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

/// The collapsed bound.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct SgprOptions {
    /// Most steps of each search for hyperparameters [default: 200, of a stochastic one 100]; a solver's own are `iterations`
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", value_parser = numbers::whole(0..=MOST_STEPS)))]
    pub steps: Option<usize>,
    /// What is held or bounded.
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub constraints: ConstraintOptions,
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
    /// Where prepared rows are kept.
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub disk: DiskOptions,
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
    /// What is held or bounded.
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub constraints: ConstraintOptions,
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
    /// Where prepared rows are kept.
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub disk: DiskOptions,
}

/// What a setting of the stochastic bound needs beside it.
#[cfg(feature = "clap")]
pub(super) const SVGP_BESIDE: &[Beside] =
    &[(&["natural_length"], &[("variational", &["natural"])], "--set variational=natural")];

impl Default for SvgpOptions {
    fn default() -> Self {
        Self {
            constraints: ConstraintOptions::default(),
            large: LargeTableOptions::default(),
            batches: BatchOptions::default(),
            inducing: InducingOptions::default(),
            fixed_inducing: false,
            variational: VariationalName::default(),
            natural_length: 0.1,
            disk: DiskOptions::default(),
        }
    }
}

impl SvgpOptions {
    pub(crate) fn steps(&self) -> usize {
        self.large.iterations.unwrap_or(3000)
    }

    /// Rows of a batch.
    pub(crate) fn batch(&self) -> usize {
        self.batches.batch.unwrap_or(1024)
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
