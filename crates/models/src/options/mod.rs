//! **What a user asks of a fit**: one struct for each method, defined once with its defaults, its help text, its form in files and (feature `clap`) its
//! flags. The library, the command line and experiments use the same values, so an option that a method does not have cannot be written down.
//!
//! ```
//! use posterior_models::options::{FitRequest, Method, SddOptions};
//!
//! let mut descent = SddOptions { momentum: 0.8, ..SddOptions::default() };
//! descent.iterative.sampling.samples = 16;
//! let request = FitRequest { method: Method::Sdd(descent), seed: 7, ..FitRequest::default() };
//! assert_eq!(request.method.name().as_str(), "sdd");
//! ```
//!
//! | file | what |
//! |---|---|
//! | `method` | the sum: a method, or its name |
//! | `methods` | what each method is told |
//! | `deep` | what methods with learned features are told, and the ways to train that follow |
//! | `gvi` | what generalised variational inference is told |
//! | `groups`, `search` | what several methods share: solvers, samples, inducing points; the search for hyperparameters |
//! | `likelihood` | what the target is, and how it is inferred from |
//! | `target` | what it goes through before it is learned |
//! | `beside` | what a setting needs of others (feature `clap`) |
//! | `grammar` | methods as one command line (feature `clap`): settings that a method does not have are refused |
//! | `numbers` | what numbers may be |
//! | `solver` | what weights were found with |

#[cfg(feature = "clap")]
mod beside;
mod deep;
#[cfg(feature = "clap")]
mod grammar;
pub(crate) mod groups;
mod gvi;
mod likelihood;
mod method;
mod methods;
pub mod numbers;
mod search;
mod solver;
mod target;

pub(crate) use deep::{DeepKind, FIRST_PASSES, GO_ON, LOW_NOISE, Setting};
pub(crate) use gvi::GviCandidate;
pub use solver::Solver;

pub use deep::{BasisLayer, BasisOptions, CorrectionName, DbkOptions, DklOptions};
#[cfg(feature = "clap")]
pub use grammar::{CANDIDATE, SETTING, SettingInfo};
pub use groups::{
    BatchOptions, DiskOptions, InducingChoiceName, InducingOptions, IterativeOptions, KernelPrecision,
    LargeTableOptions, PreconditionerName, SamplingOptions, SystemOptions,
};
pub use gvi::{GviOptions, TemperingName, VariationalMeanName};
pub use likelihood::{
    ClassWeights, InferenceName, LikelihoodName, LikelihoodOptions, PseudoCount, Window, WindowSide,
};
pub use method::{Method, MethodName};
pub use methods::{
    AccelerationName, AutoOptions, CgOptions, ExactOptions, InducingSgdOptions, SapOptions, SddOptions,
    SgdOptions, SgprOptions, SvgpOptions, VariationalName,
};
pub use search::{
    ConstraintOptions, EvidenceOptions, HyperparameterOptions, HyperparameterSearch, ObjectiveName,
    OptimizerName,
};

pub use target::TargetTransformName;

use crate::Hyperparameter;
use crate::hyperparameter::{add_weak_priors, held};
use posterior_data::{DataError, Selection, TargetTransform, TextOptions, require_targets};
use posterior_gp::exact::{ExactGp, FitOptions};
use posterior_gp::{Hyperprior, MeanForm};
use posterior_kernels::{Kernel, KernelExpression};
use posterior_likelihoods::Gaussian;
use posterior_optim::Parameters;
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::time::Duration;

/// What is believed about lengthscales that nothing else is said about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum LengthscalePrior {
    /// Log-normal, wide, around the root of the number of features
    #[default]
    Weak,
    /// None: the evidence alone
    None,
}

/// Whether intervals, class probabilities and sets of classes are made to hold what they say on rows that had no part in the fit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum CalibrateName {
    /// Where coverage there is off, held-back rows lie far inside, or labels are likelier under a temperature, by more than chance explains; sets of classes and quantiles of counts and of numbers with outliers always
    #[default]
    Auto,
    /// Never: as the model has them, without sets and such quantiles
    None,
    /// In any case: split-conformal factors, a temperature
    Conformal,
}

/// Everything that determines a fit, the data aside.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct FitRequest {
    /// Roles of the columns.
    #[cfg_attr(feature = "clap", command(flatten))]
    pub selection: Selection,
    /// How delimited text is read.
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub text: TextOptions,
    /// What a target with Gaussian noise is mapped by before it is learned; predictions, intervals and scores are in its own units
    #[cfg_attr(feature = "clap", arg(long, value_enum, default_value_t))]
    pub target_transform: TargetTransformName,
    /// The map of the model whose hyperparameters are given, which holds unless another is asked for.
    #[cfg_attr(feature = "clap", arg(skip))]
    pub given_transform: Option<TargetTransform>,
    /// Kernel, such as "matern32(ard) * periodic(x3) + linear", on standardised features
    #[cfg_attr(feature = "clap", arg(long, value_name = "TEXT", default_value_t = Self::default().kernel))]
    pub kernel: KernelExpression,
    /// Prior mean, on standardised features and target
    #[cfg_attr(feature = "clap", arg(long = "set prior.mean", value_enum, default_value_t))]
    pub mean: MeanForm,
    /// Noise variance at the start, as a share of the target's variance [default: 0.1; of learned features 0.3, and where it is chosen by rows that are set aside, 0.03 as well]
    #[cfg_attr(feature = "clap", arg(long = "set prior.initial-noise", value_name = "X", value_parser = numbers::positive))]
    pub initial_noise: Option<f64>,
    /// Least noise variance, as a share of the target's variance
    #[cfg_attr(feature = "clap", arg(long = "set prior.noise-floor", value_name = "X", value_parser = numbers::not_negative, default_value_t = Self::default().noise_floor))]
    pub noise_floor: f64,
    /// Priors on lengthscales that --config says nothing about
    #[cfg_attr(feature = "clap", arg(long = "set prior.lengthscale-prior", value_enum, default_value_t))]
    pub lengthscale_prior: LengthscalePrior,
    /// Priors on hyperparameters; on the command line the `[[hyperprior]]` tables of `--config`.
    #[cfg_attr(feature = "clap", arg(skip))]
    pub hyperpriors: Vec<Hyperprior>,
    /// Hyperparameters that are given instead of learned; on the command line the file of `--hyperparameters`.
    #[cfg_attr(feature = "clap", arg(skip))]
    pub hyperparameters: Option<Vec<Hyperparameter>>,
    /// What the target is, and how it is inferred from.
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub labels: LikelihoodOptions,
    /// How the posterior is computed.
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub method: Method,
    /// Whether intervals of numbers, class probabilities and sets of classes are made to hold what they say on rows that had no part in the fit
    #[cfg_attr(feature = "clap", arg(long, value_enum, default_value_t))]
    pub calibrate: CalibrateName,
    /// Most seconds for the whole fit: searches, solver or bound, fallbacks.
    #[cfg_attr(
        feature = "clap",
        arg(
            long,
            value_name = "TIME",
            help = "Most time for the whole command, such as 90s, 5m or 2h: reading, search, solver, fallbacks [default: as long as it takes]",
            value_parser = numbers::time
        )
    )]
    pub time_budget: Option<f64>,
    /// Most memory that the fit may need, in bytes.
    #[cfg_attr(
        feature = "clap",
        arg(
            long,
            value_name = "GB",
            help = "Most memory that the fit may need, in gigabytes [default: 8]",
            value_parser = numbers::bytes,
            // 8 GiB
            default_value = "8.589934592",
            hide_default_value = true
        )
    )]
    pub memory: u64,
    /// Whether the model is of all folds but one, and is there to be scored on that one: its targets may be few or equal.
    #[cfg_attr(feature = "clap", arg(skip))]
    #[serde(skip)]
    pub of_fold: bool,
    /// Seed of everything random
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", default_value_t = 0))]
    pub seed: u64,
}

impl Default for FitRequest {
    fn default() -> Self {
        Self {
            selection: Selection::default(),
            text: TextOptions::default(),
            target_transform: TargetTransformName::default(),
            given_transform: None,
            kernel: "matern32(ard)".parse().expect("the default kernel is valid text"),
            mean: MeanForm::Constant,
            initial_noise: None,
            noise_floor: 1e-4,
            lengthscale_prior: LengthscalePrior::Weak,
            hyperpriors: Vec::new(),
            hyperparameters: None,
            labels: LikelihoodOptions::default(),
            method: Method::default(),
            calibrate: CalibrateName::default(),
            time_budget: None,
            memory: 8 << 30,
            of_fold: false,
            seed: 0,
        }
    }
}

impl FitRequest {
    /// Where noise begins, of methods that have no better idea than a tenth of the target's variance; always above its floor.
    pub(crate) fn first_noise(&self) -> f64 {
        self.initial_noise.unwrap_or_else(|| f64::max(0.1, 2.0 * self.noise_floor))
    }

    /// The exact process of a kernel as nothing is learned of it yet, on standardised inputs and targets.
    pub(crate) fn process(&self, kernel: Box<dyn Kernel<f64>>, inputs: usize, targets: usize) -> ExactGp {
        let noise = Gaussian::new(self.first_noise(), self.noise_floor);
        ExactGp::new(kernel, self.mean, noise, inputs, targets)
    }

    /// Refuses rows of which nothing can be learned that deserves error bars ([`posterior_data::require_targets`]), `scaled` being targets whose scale is to be learned. A fold is what its table left of it.
    pub(crate) fn require_targets(
        &self,
        path: &Path,
        column: &str,
        found: usize,
        scaled: impl IntoIterator<Item = f64>,
    ) -> Result<(), DataError> {
        let [least, largest] = scaled
            .into_iter()
            .fold([f64::INFINITY, f64::NEG_INFINITY], |[least, largest], y| [least.min(y), largest.max(y)]);
        match self.of_fold {
            true => Ok(()),
            false => require_targets(path, column, found, (least <= largest).then_some([least, largest])),
        }
    }

    /// Starts of a search by exact evidence.
    pub fn restarts(&self) -> usize {
        match &self.method {
            Method::Exact(options) => options.restarts,
            Method::Auto(options) => options.restarts,
            _ => FitOptions::default().restarts,
        }
    }

    /// A search by exact evidence as `gp` takes it; the limit of time is the caller's.
    pub(crate) fn fit_options(&self, evidence: &EvidenceOptions) -> FitOptions {
        let mut options = FitOptions {
            criterion: evidence.criterion().unwrap_or_default(),
            optimizer: evidence.optimizer(),
            restarts: self.restarts(),
            seed: self.seed,
            hyperpriors: self.hyperpriors.clone(),
            constraints: evidence.constraints.all(),
            memory_limit: self.memory,
            ..FitOptions::default()
        };
        options.steps.steps = evidence.steps.unwrap_or(options.steps.steps);
        options
    }

    /// What a search for a model's hyperparameters believes: what was stated, and the weak prior of lengthscales that nothing was said about.
    pub(crate) fn hyperpriors_of(&self, model: &dyn Parameters, inputs: usize) -> Vec<Hyperprior> {
        let mut all = self.hyperpriors.clone();
        if self.lengthscale_prior == LengthscalePrior::Weak {
            add_weak_priors(&mut all, model, inputs);
        }
        all
    }

    /// As [`Self::fit_options`], of all rows and within the whole budget, with what is believed of the model; where its hyperparameters are given they are held.
    pub(crate) fn search(
        &self,
        evidence: &EvidenceOptions,
        model: &dyn Parameters,
        inputs: usize,
    ) -> FitOptions {
        let mut options = self.fit_options(evidence);
        options.steps.time = self.time_budget.map(|s| Duration::from_secs_f64(s.clamp(0.0, 1e9)));
        match self.hyperparameters {
            Some(_) => {
                options.constraints = held(model.segments());
                options.hyperpriors.clear();
            }
            None => options.hyperpriors = self.hyperpriors_of(model, inputs),
        }
        options
    }
}
