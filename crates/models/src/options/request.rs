//! Everything that determines a fit, in groups.

use super::likelihood::OutputRequest;
use super::method::Method;
#[cfg(feature = "clap")]
use super::numbers;
use super::search::EvidenceOptions;
use crate::Hyperparameter;
use crate::hyperparameter::{FunctionUnits, add_weak_noise, add_weak_priors, floor_of_scale, held};
use posterior_data::{DataError, Selection, TargetTransform, require_targets};
use posterior_gp::exact::{ExactGp, FitOptions};
use posterior_gp::{Hyperprior, MeanForm};
use posterior_kernels::{Kernel, KernelExpression};
use posterior_likelihoods::Gaussian;
use posterior_optim::Parameters;
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::time::Duration;

/// What is believed about lengthscales, and amplitudes of stationary kernels, that nothing else is said about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum LengthscalePrior {
    /// Lengthscales: log-normal, wide, around the root of the number of features; amplitudes: five standard deviations of the target cost two nats
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

/// Everything that determines a fit, the data aside. How files are read is a [`ReadOptions`](posterior_data::ReadOptions) beside it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct FitRequest {
    /// Roles of the columns.
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(rename = "selection")]
    pub columns: Selection,
    /// The prior of processes.
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub prior: PriorSettings,
    /// What the target is, and how it is inferred from.
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub output: OutputRequest,
    /// How the posterior is computed.
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub method: Method,
    /// What validation rows do.
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub validation: Validation,
    /// What the fit begins with.
    #[cfg_attr(feature = "clap", arg(skip))]
    #[serde(flatten)]
    pub start: Start,
    /// Time and memory.
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub limits: Limits,
    /// Seed of everything random
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", default_value_t = 0))]
    pub seed: u64,
}

/// The prior of processes, whatever the method.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct PriorSettings {
    /// Kernel, such as "matern32(ard) * periodic(x3) + linear", on standardised features; auto is matern32(ard), with a categorical of each column of categories
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
    /// Priors on lengthscales and amplitudes that --config says nothing about
    #[cfg_attr(feature = "clap", arg(long = "set prior.lengthscale-prior", value_enum, default_value_t))]
    pub lengthscale_prior: LengthscalePrior,
    /// Priors on hyperparameters; on the command line the `[[hyperprior]]` tables of `--config`.
    #[cfg_attr(feature = "clap", arg(skip))]
    pub hyperpriors: Vec<Hyperprior>,
}

impl Default for PriorSettings {
    fn default() -> Self {
        Self {
            kernel: "auto".parse().expect("the default kernel is valid text"),
            mean: MeanForm::Constant,
            initial_noise: None,
            noise_floor: 1e-4,
            lengthscale_prior: LengthscalePrior::Weak,
            hyperpriors: Vec::new(),
        }
    }
}

/// What rows do that have no part in a fit, and which fits are there for such rows alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct Validation {
    /// Whether intervals of numbers, class probabilities and sets of classes are made to hold what they say on rows that had no part in the fit
    #[cfg_attr(feature = "clap", arg(long, value_enum, default_value_t))]
    pub calibrate: CalibrateName,
    /// Whether the model is of all folds but one, and is there to be scored on that one: its targets may be few or equal.
    #[cfg_attr(feature = "clap", arg(skip))]
    #[serde(skip)]
    pub of_fold: bool,
    /// Whether the model is tried beside others: folds judge it once it is kept.
    #[cfg_attr(feature = "clap", arg(skip))]
    #[serde(skip)]
    pub of_candidate: bool,
}

/// What a fit of a process begins with.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(untagged, rename_all_fields = "kebab-case")]
pub enum Start {
    /// Hyperparameters are learned.
    #[default]
    Fresh,
    /// They are given instead; on the command line by the file of `--hyperparameters`.
    Given {
        /// In standard units.
        hyperparameters: Vec<Hyperparameter>,
        /// The map of the target of the model whose hyperparameters these are, which holds unless another is asked for.
        #[serde(rename = "given-transform")]
        transform: Option<TargetTransform>,
    },
}

impl Start {
    /// With these hyperparameters.
    pub fn given(hyperparameters: Vec<Hyperparameter>) -> Self {
        Self::Given { hyperparameters, transform: None }
    }

    /// Those that are given.
    pub fn hyperparameters(&self) -> Option<&[Hyperparameter]> {
        match self {
            Self::Fresh => None,
            Self::Given { hyperparameters, .. } => Some(hyperparameters),
        }
    }

    /// What the target of the model was mapped by whose hyperparameters are given.
    pub(crate) fn transform(&self) -> Option<TargetTransform> {
        match self {
            Self::Fresh => None,
            Self::Given { transform, .. } => *transform,
        }
    }
}

/// What a fit may take.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct Limits {
    /// Most seconds for the whole fit: searches, solver or bound, fallbacks.
    #[cfg_attr(
        feature = "clap",
        arg(
            long = "time-budget",
            id = "time_budget",
            value_name = "TIME",
            help = "Most time for the whole command, such as 90s, 5m or 2h: reading, search, solver, fallbacks [default: as long as it takes]",
            value_parser = numbers::time
        )
    )]
    #[serde(rename = "time-budget")]
    pub time: Option<f64>,
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
}

impl Default for Limits {
    /// 8 GiB, and as long as it takes.
    fn default() -> Self {
        Self { time: None, memory: 8 << 30 }
    }
}

impl FitRequest {
    /// Where noise begins, of methods that have no better idea than a tenth of the target's variance; always above its floor.
    pub(crate) fn first_noise(&self) -> f64 {
        self.prior.initial_noise.unwrap_or_else(|| f64::max(0.1, 2.0 * self.prior.noise_floor))
    }

    /// The exact process of a kernel as nothing is learned of it yet, on standardised inputs and targets.
    pub(crate) fn process(&self, kernel: Box<dyn Kernel<f64>>, inputs: usize, targets: usize) -> ExactGp {
        let noise = Gaussian::new(self.first_noise(), self.prior.noise_floor);
        ExactGp::new(kernel, self.prior.mean, noise, inputs, targets)
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
        match self.validation.of_fold {
            true => Ok(()),
            false => require_targets(path, column, found, (least <= largest).then_some([least, largest])),
        }
    }

    /// Starts of a search by exact evidence.
    pub fn restarts(&self) -> usize {
        self.method.settings().restarts()
    }

    /// A search by exact evidence as `gp` takes it; the limit of time is the caller's.
    pub(crate) fn fit_options(&self, evidence: &EvidenceOptions) -> FitOptions {
        let mut options = FitOptions {
            criterion: evidence.criterion().unwrap_or_default(),
            optimizer: evidence.optimizer(),
            restarts: self.restarts(),
            seed: self.seed,
            hyperpriors: self.prior.hyperpriors.clone(),
            constraints: evidence.constraints.all(),
            memory_limit: self.limits.memory,
            ..FitOptions::default()
        };
        options.steps.steps = evidence.steps.unwrap_or(options.steps.steps);
        options
    }

    /// What a search for a model's hyperparameters believes: what was stated, and the weak priors of those that nothing was said about.
    pub(crate) fn hyperpriors_of(
        &self,
        model: &dyn Parameters,
        of: (usize, FunctionUnits),
    ) -> Vec<Hyperprior> {
        let mut all = self.prior.hyperpriors.clone();
        if self.prior.lengthscale_prior == LengthscalePrior::Weak {
            add_weak_priors(&mut all, model, of);
            // Noise beside that of a column may be none, and so may that of rows whose floor is lower.
            let measured = self.columns.noise.is_none()
                && self.prior.noise_floor >= PriorSettings::default().noise_floor;
            if measured && of.1 == FunctionUnits::Target {
                add_weak_noise(&mut all, model);
            }
        }
        all
    }

    /// As [`Self::fit_options`], of all rows and within the whole budget, with what is believed of the model; where its hyperparameters are given they are held.
    pub(crate) fn search(
        &self,
        evidence: &EvidenceOptions,
        model: &dyn Parameters,
        of: (usize, FunctionUnits),
    ) -> FitOptions {
        let mut options = self.fit_options(evidence);
        options.steps.time = self.limits.time.map(|s| Duration::from_secs_f64(s.clamp(0.0, 1e9)));
        match self.start.hyperparameters() {
            Some(_) => {
                options.constraints = held(model.segments());
                options.hyperpriors.clear();
            }
            None => {
                options.hyperpriors = self.hyperpriors_of(model, of);
                options.constraints.extend(floor_of_scale(model, &options.constraints));
            }
        }
        options
    }
}
