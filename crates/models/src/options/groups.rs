//! What several methods are told: each group of options once.

#[cfg(feature = "clap")]
use super::beside::Beside;
#[cfg(feature = "clap")]
use super::numbers::{MOST_KEPT, MOST_STEPS};
#[cfg(feature = "clap")]
use super::search::STOCHASTIC;
use super::search::{EvidenceOptions, HyperparameterOptions, HyperparameterSearch, SearchSolver};
use crate::ModelError;
#[cfg(feature = "clap")]
use crate::options::numbers;
use posterior_gp::exact::Criterion;
use posterior_gp::iterative::{
    Acceleration, Budget, ConjugateGradientOptions, DualDescentOptions, Method as SolveMethod,
    PathwiseSettings, SearchOptions, SketchAndProjectOptions, StepSize,
};
use posterior_kernels::features::{FeatureForm, FeatureSettings, FrequencyDraw};
use posterior_kernels::inducing::InducingChoice;
use posterior_linalg::solve::PreconditionerChoice;
use posterior_notes::fixes::{FOLDS, TEST_FRACTION};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Posterior samples: variances come from them, with a relative error of `√(2/s)`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct SamplingOptions {
    /// Posterior samples of methods for large tables; variances come from them
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", value_parser = numbers::whole(1..=MOST_KEPT), default_value_t = Self::default().samples))]
    pub samples: usize,
    /// Random features of prior functions
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", value_parser = numbers::whole(1..=MOST_KEPT), default_value_t = Self::default().random_features))]
    pub random_features: usize,
    /// The form of random features of waves
    #[cfg_attr(feature = "clap", arg(long, value_enum, default_value_t))]
    pub feature_form: FeatureForm,
    /// How their frequencies are drawn
    #[cfg_attr(feature = "clap", arg(long, value_enum, default_value_t = Self::default().feature_frequencies))]
    pub feature_frequencies: FrequencyDraw,
    /// Samples that share random features; the error of features averages out over groups of them
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", value_parser = numbers::whole(1..=MOST_KEPT), default_value_t = Self::default().samples_per_features))]
    pub samples_per_features: usize,
}

impl Default for SamplingOptions {
    fn default() -> Self {
        let FeatureSettings { count, form, .. } = FeatureSettings::default();
        Self {
            samples: 64,
            random_features: count,
            feature_form: form,
            feature_frequencies: FrequencyDraw::Widened,
            samples_per_features: 8,
        }
    }
}

impl SamplingOptions {
    pub(crate) fn features(&self) -> FeatureSettings {
        FeatureSettings {
            count: self.random_features,
            form: self.feature_form,
            frequencies: self.feature_frequencies,
        }
    }
}

/// The precision of kernel products and weights.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum KernelPrecision {
    /// Four bytes a number: twice as fast, and enough unless the noise is tiny
    #[default]
    #[cfg_attr(feature = "clap", value(name = "f32"))]
    #[serde(alias = "f32")]
    Single,
    /// Eight bytes a number
    #[cfg_attr(feature = "clap", value(name = "f64"))]
    #[serde(alias = "f64")]
    Double,
}

/// What conjugate gradients are preconditioned by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum PreconditionerName {
    /// Pivoted Cholesky
    #[default]
    PivotedCholesky,
    /// Randomised Nyström
    Nystrom,
    /// None
    None,
}

/// Linear systems with kernel matrices that are not stored.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct SystemOptions {
    /// Precision of kernel products [default: f32; of sap f64, because blocks with little noise are not solved nearly in single precision; of cg f64 where rows times the function's variance over the noise's exceed 1e7]
    #[cfg_attr(feature = "clap", arg(long, value_enum))]
    pub precision: Option<KernelPrecision>,
    /// Bytes that may be used to keep the kernel matrix in memory.
    #[cfg_attr(
        feature = "clap",
        arg(
            long,
            value_name = "GB",
            help = "Gigabytes that may be used to keep the kernel matrix in memory",
            value_parser = numbers::bytes_or_none,
            default_value = "0"
        )
    )]
    pub cache: usize,
    /// Preconditioner of cg and of stochastic searches
    #[cfg_attr(feature = "clap", arg(long, value_enum, default_value_t))]
    pub preconditioner: PreconditionerName,
    /// Rank of the preconditioner [default: 100]; of sap of the sketch of a block, which is factored whole without it, as is better; basis functions of dbk and svdbk, inducing points of dkl and svdkl [default: 128, or the outputs of `basis`]
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", value_parser = numbers::whole(0..=MOST_KEPT)))]
    pub rank: Option<usize>,
}

/// What a setting of linear systems needs beside it.
#[cfg(feature = "clap")]
pub(super) const SYSTEM_BESIDE: &[Beside] = &[
    (
        &["preconditioner"],
        &[("method", &["cg", "dbk", "svdbk", "dkl", "svdkl"]), ("search_solver", &["cg"])],
        "--method cg, or to --set search-solver=cg",
    ),
    (
        &["rank"],
        &[("method", &["cg", "sap", "dbk", "svdbk", "dkl", "svdkl"]), ("search_solver", &["cg"])],
        "--method cg, sap, or to --set search-solver=cg",
    ),
    (
        &["cache"],
        &[("method", &["auto", "cg", "sgd", "sdd", "sap"]), STOCHASTIC],
        "--method cg, sgd, sdd, sap, or to --set hyperparameter-search=stochastic or refined",
    ),
];

impl SystemOptions {
    pub(crate) fn conjugate_gradients(&self, seed: u64) -> SolveMethod {
        let rank = self.rank();
        let preconditioner = match self.preconditioner {
            PreconditionerName::None => PreconditionerChoice::None,
            PreconditionerName::Nystrom => PreconditionerChoice::Nystrom { rank, seed },
            PreconditionerName::PivotedCholesky => {
                PreconditionerChoice::PivotedCholesky { rank, relative_tolerance: 1e-3 }
            }
        };
        SolveMethod::ConjugateGradients(ConjugateGradientOptions { preconditioner, ..Default::default() })
    }

    /// Rank of the preconditioner.
    pub(crate) fn rank(&self) -> usize {
        self.rank.unwrap_or(100)
    }

    /// The precision of kernel products.
    pub fn precision(&self) -> KernelPrecision {
        self.precision.unwrap_or_default()
    }

    /// Bytes of a number.
    pub(crate) fn bytes_of_number(&self) -> u64 {
        if self.precision() == KernelPrecision::Single { 4 } else { 8 }
    }
}

/// Fits that take long: how many steps, on which rows they are judged, where they are kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct LargeTableOptions {
    /// Steps of the solver or stochastic bound [default: 10000 for sdd, 20000 for sgd and inducing-sgd, 1000 for cg, 100 passes of blocks for sap, 3000 for svgp, 1000 passes over the rows for deep kernels, 12000 for gvi]
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", value_parser = numbers::whole(1..=MOST_STEPS)))]
    pub iterations: Option<usize>,
    /// Validation rows of large tables, which the fit does not learn from; 0 for none [default: a twentieth, at most 512, but 100 or a tenth of few at least]
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", value_parser = numbers::whole(0..=MOST_KEPT)))]
    pub held_back: Option<usize>,
    /// File from which an interrupted fit resumes [default: OUTPUT.checkpoint]
    #[cfg_attr(feature = "clap", arg(long, value_name = "FILE"))]
    pub checkpoint: Option<PathBuf>,
    /// Ignore and replace an existing checkpoint
    #[cfg_attr(feature = "clap", arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", default_value_t = false, action = clap::ArgAction::Set))]
    pub fresh: bool,
    /// Seconds between two checkpoints
    #[cfg_attr(feature = "clap", arg(long, value_name = "S", value_parser = numbers::seconds, default_value_t = Self::default().checkpoint_every))]
    pub checkpoint_every: f64,
}

impl Default for LargeTableOptions {
    fn default() -> Self {
        Self { iterations: None, held_back: None, checkpoint: None, fresh: false, checkpoint_every: 30.0 }
    }
}

impl LargeTableOptions {
    /// Rows that are held back of `rows`: a twentieth, but 100 (of few rows a tenth) at least and 512 at most. Of 512 rows, 95 ± 2.5 % lie inside their 95 %
    /// intervals by chance; more would tell little more.
    pub(crate) fn held_back_of(&self, rows: usize) -> usize {
        let usual = (rows / 20).min(512).max((rows / 10).min(100));
        self.held_back.unwrap_or(usual).min(Self::most_held_back(rows))
    }

    /// Half of the rows: no fewer are learned from.
    fn most_held_back(rows: usize) -> usize {
        rows / 2
    }

    /// Refuses more rows than may be held back of so many.
    ///
    /// # Errors
    /// [`ModelError::Request`].
    pub(crate) fn check_held_back(&self, rows: usize) -> Result<(), ModelError> {
        let most = Self::most_held_back(rows);
        match self.held_back {
            Some(asked) if asked > most => Err(ModelError::Request(format!(
                "--held-back {asked} is more than may be held back of {rows} rows, of which half at least are learned from: give at most {most}, or {TEST_FRACTION} and {FOLDS}, which score rows after the fit"
            ))),
            _ => Ok(()),
        }
    }
}

/// Where prepared rows are kept, of methods that look at some of them at a time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct DiskOptions {
    /// Keep prepared rows of sgpr, svgp and deep kernels on disk [default: where they do not fit --memory]
    #[cfg_attr(feature = "clap", arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true"))]
    pub from_disk: Option<bool>,
}

/// Methods that solve for weights and posterior samples step by step.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct IterativeOptions {
    /// Searches by exact evidence, on some rows.
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub evidence: EvidenceOptions,
    /// Which rows, and what follows.
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub search: HyperparameterOptions,
    /// Posterior samples.
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub sampling: SamplingOptions,
    /// Linear systems.
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub system: SystemOptions,
    /// Steps, rows to judge by, checkpoints.
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub large: LargeTableOptions,
}

impl IterativeOptions {
    /// How the posterior is conditioned within a budget.
    pub fn conditioning(&self, budget: Budget, seed: u64) -> PathwiseSettings {
        PathwiseSettings {
            budget,
            samples: self.sampling.samples,
            features: self.sampling.features(),
            samples_per_features: Some(self.sampling.samples_per_features),
            seed,
            cache_bytes: self.system.cache,
        }
    }

    /// Whether blocks may be followed by a search on all rows: where nobody said another number of rows, and where it would climb what was asked for, in steps that there are.
    pub(crate) fn goes_on_to_all_rows(&self) -> bool {
        let HyperparameterOptions { hyperparameter_search, refining_rows, .. } = self.search;
        let other = matches!(self.evidence.criterion(), Ok(Criterion::LeaveOneOut));
        hyperparameter_search == HyperparameterSearch::Blocks
            && refining_rows == HyperparameterOptions::default().refining_rows
            && !other
            && self.evidence.steps != Some(0)
    }

    /// Bytes of the copies that are made of a stochastic search's solutions where it is saved.
    pub(crate) fn saved_solutions(&self, rows: usize) -> u64 {
        let copies = if self.large.checkpoint.is_some() { 2 } else { 0 };
        let each = (self.search.probes as u64 + 1).saturating_mul(copies * self.system.bytes_of_number());
        (rows as u64).saturating_mul(each)
    }

    /// What a stochastic search is told that follows blocks by itself: it begins near its end, and in double precision, because it may want less noise than single can follow.
    pub(crate) fn following_blocks(&self) -> Self {
        /// Steps of it.
        const STEPS: usize = 30;
        let mut own = self.clone();
        own.evidence.steps = Some(own.evidence.steps.map_or(STEPS, |asked| asked.min(STEPS)));
        own.system.precision = Some(KernelPrecision::Double);
        own
    }

    /// Passes over the rows of a stochastic search: those of each step, which may be more where much of a system is left.
    pub(crate) fn passes_of_search(&self) -> usize {
        let steps = self.evidence.steps.unwrap_or(SearchOptions::default().steps);
        steps.saturating_mul(self.search.search_passes)
    }

    /// A search by stochastic gradients; hyperpriors and limits are the caller's. What solves is a choice of its own: searches need moderate accuracy at hyperparameters
    /// that no step size is known for.
    ///
    /// The kernel matrix is kept where it takes at most half of `memory`: every step multiplies with the same one many times.
    pub(crate) fn stochastic_search(&self, seed: u64, rows: usize, memory: u64) -> SearchOptions {
        let matrix = (rows as u64).saturating_mul(rows as u64).saturating_mul(self.system.bytes_of_number());
        let method = match self.search.search_solver {
            // Each solve is too short for an acceleration to be judged.
            SearchSolver::Sap => SolveMethod::SketchAndProject(SketchAndProjectOptions {
                acceleration: Acceleration::None,
                seed,
                ..SketchAndProjectOptions::default()
            }),
            SearchSolver::Cg => self.system.conjugate_gradients(seed),
            SearchSolver::Sdd => {
                SolveMethod::DualDescent(DualDescentOptions { seed, ..DualDescentOptions::default() })
            }
        };
        let steps_of_pass = (rows / method.rows_of_a_step(rows, self.search.probes + 1).max(1)).max(1);
        let steps = self.search.search_passes.saturating_mul(steps_of_pass);
        let budget = Budget { steps, time: None, tolerance: 1e-2 };
        let mut solves = PathwiseSettings { samples: self.search.probes, ..self.conditioning(budget, seed) };
        if let (Ok(bytes), true) = (usize::try_from(matrix), matrix <= memory / 2) {
            solves.cache_bytes = solves.cache_bytes.max(bytes);
        }
        /// Step size where blocks have not led anywhere: with the usual one 200 steps do not reach where noise is nearly nothing, and the mean of the last quarter bears the longer ones.
        const FROM_NOTHING: f64 = 0.2;
        let usual = SearchOptions::default();
        SearchOptions {
            steps: self.evidence.steps.unwrap_or(usual.steps),
            learning_rate: self.evidence.learning_rate.unwrap_or(match self.search.hyperparameter_search {
                HyperparameterSearch::Stochastic => FROM_NOTHING,
                _ => usual.learning_rate,
            }),
            method,
            solves,
            probes: self.search.probe_kind,
            constraints: self.evidence.constraints.all(),
            ..usual
        }
    }
}

/// Steps on batches of rows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct BatchOptions {
    /// Rows of a batch [default: 512; svgp 1024; deep kernels and gvi 256]
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", value_parser = numbers::whole(1..=MOST_KEPT)))]
    pub batch: Option<usize>,
    /// Step size of sdd and sgd times the number of rows [default: the largest that is safe]; of svgp's Adam [default: 0.01], of that of deep kernels and of gvi's rule [default: 0.003; of deep kernels on all rows at a time 0.001]
    #[cfg_attr(feature = "clap", arg(long, value_name = "X", value_parser = numbers::positive))]
    pub step_size: Option<f64>,
}

impl BatchOptions {
    /// βn as solvers take it.
    pub(crate) fn step_size(&self) -> StepSize {
        self.step_size.map_or(StepSize::Automatic, StepSize::TimesRows)
    }

    /// Rows of a solver's batch.
    pub(crate) fn solver_batch(&self) -> usize {
        self.batch.unwrap_or(512)
    }
}

/// How inducing points are chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum InducingChoiceName {
    /// Centres of clusters
    #[default]
    KMeans,
    /// Rows that the others predict worst
    Greedy,
    /// Rows by chance
    Random,
    /// Rows such that every row is near one
    Cover,
    /// Rows that are left when those with close neighbours are thinned out
    Pruned,
}

/// Inducing points.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct InducingOptions {
    /// Inducing points of inducing-sgd, sgpr, svgp [default: 512] and gvi [default: 256]
    #[cfg_attr(feature = "clap", arg(long, value_name = "M", value_parser = numbers::whole(1..=MOST_KEPT)))]
    pub inducing: Option<usize>,
    /// How they are chosen, at most as many [default: k-means; greedy of gvi]
    #[cfg_attr(feature = "clap", arg(long, value_enum))]
    pub inducing_choice: Option<InducingChoiceName>,
    /// Radius of `inducing-choice=cover` in lengthscales; it grows while too many points are left
    #[cfg_attr(feature = "clap", arg(long, value_name = "X", value_parser = numbers::positive, default_value_t = Self::default().cover_radius))]
    pub cover_radius: f64,
    /// The larger the more rows `inducing-choice=pruned` keeps (0.5, 1 or 2 in the literature), up to `inducing`
    #[cfg_attr(feature = "clap", arg(long, value_name = "X", value_parser = numbers::positive, default_value_t = Self::default().pruning_ratio))]
    pub pruning_ratio: f64,
}

/// What a setting of inducing points needs beside it.
#[cfg(feature = "clap")]
pub(super) const INDUCING_BESIDE: &[Beside] = &[
    (&["cover_radius"], &[("inducing_choice", &["cover"])], "--set inducing-choice=cover"),
    (&["pruning_ratio"], &[("inducing_choice", &["pruned"])], "--set inducing-choice=pruned"),
];

impl Default for InducingOptions {
    fn default() -> Self {
        Self { inducing: None, inducing_choice: None, cover_radius: 0.5, pruning_ratio: 1.0 }
    }
}

impl InducingOptions {
    /// How many, where nothing else is usual.
    pub fn points(&self) -> usize {
        self.inducing.unwrap_or(512)
    }

    /// How kernels choose them.
    pub fn choice(&self) -> InducingChoice {
        match self.inducing_choice.unwrap_or_default() {
            InducingChoiceName::KMeans => InducingChoice::KMeans,
            InducingChoiceName::Greedy => InducingChoice::GreedyVariance,
            InducingChoiceName::Random => InducingChoice::Random,
            InducingChoiceName::Cover => InducingChoice::Cover { radius: self.cover_radius },
            InducingChoiceName::Pruned => {
                InducingChoice::Pruned { neighbours: 100, ratio: self.pruning_ratio }
            }
        }
    }
}
