//! How hyperparameters are searched for.

#[cfg(feature = "clap")]
use super::beside::{Beside, Needed};
#[cfg(feature = "clap")]
use super::numbers::{MOST_KEPT, MOST_STEPS};
use crate::ModelError;
#[cfg(feature = "clap")]
use crate::options::numbers;
use posterior_gp::exact::{Criterion, FitOptions, Optimizer};
use posterior_gp::iterative::{Blocks, Neighbourhoods, ProbeKind};
use posterior_optim::Constraint;
use serde::{Deserialize, Serialize};

/// What maximises a criterion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum OptimizerName {
    /// Quasi-Newton with exact gradients
    #[default]
    Lbfgs,
    /// Adaptive moments
    Adam,
}

/// What training maximises.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum ObjectiveName {
    /// The evidence, or a bound on it
    Evidence,
    /// The log predictive density of each row from all others (exact processes)
    LeaveOneOut,
    /// The log predictive density of each row (deep kernels)
    Predictive,
    /// The log density at one value of the weights: a network alone with a learned noise, to compare with (deep kernels)
    Point,
    /// The bound on the evidence of variational inference (gvi)
    Elbo,
    /// Gaussian Wasserstein inference: any mean and any covariance, near the prior by the Wasserstein distance (gvi)
    Gwi,
    /// Projected generalised variational inference: the same by a divergence of marginals (gvi)
    Pgvi,
}

/// Hyperparameters that a search holds or bounds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct ConstraintOptions {
    /// Hold hyperparameters: NAME or NAME=VALUE in standard units, as `posterior inspect --json` has them, such as noise_variance=0.01 or `matern32.lengthscale[2]`; the kernel's name may be left out where only one has it
    #[cfg_attr(feature = "clap", arg(long, value_name = "NAME=VALUE", value_delimiter = ',', value_parser = held))]
    pub fix: Vec<Constraint>,
    /// Bound hyperparameters: NAME=LOWER..UPPER, in standard units, such as noise_variance=1e-3..0.1
    #[cfg_attr(feature = "clap", arg(long, value_name = "NAME=L..U", value_delimiter = ',', value_parser = bounded))]
    pub bound: Vec<Constraint>,
}

impl ConstraintOptions {
    /// What is held and what is bounded.
    pub(crate) fn all(&self) -> Vec<Constraint> {
        self.fix.iter().chain(&self.bound).cloned().collect()
    }

    /// What of it speaks of a parameter.
    pub(crate) fn of(&self, parameter: &str) -> Vec<Constraint> {
        let mut all = self.all();
        all.retain(|own| own.parameter() == parameter);
        all
    }
}

/// The search for hyperparameters by exact evidence, of all rows or of some of them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct EvidenceOptions {
    /// What to maximise [default: evidence; deep kernels and gvi choose by rows that are set aside]
    #[cfg_attr(feature = "clap", arg(long, value_enum))]
    pub objective: Option<ObjectiveName>,
    /// What maximises it
    #[cfg_attr(feature = "clap", arg(long, value_enum, default_value_t))]
    pub optimizer: OptimizerName,
    /// Step size of Adam [default: 0.1, of a stochastic search that blocks do not begin 0.2]
    #[cfg_attr(feature = "clap", arg(long, value_name = "X", value_parser = numbers::positive))]
    pub learning_rate: Option<f64>,
    /// Most steps of each search for hyperparameters [default: 200, of a stochastic one 100]; a solver's own are `iterations`
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", value_parser = numbers::whole(0..=MOST_STEPS)))]
    pub steps: Option<usize>,
    /// What is held or bounded.
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub constraints: ConstraintOptions,
}

/// Step size of Adam where gradients are exact.
const ADAM_STEP: f64 = 0.1;

impl EvidenceOptions {
    pub(crate) fn optimizer(&self) -> Optimizer {
        match self.optimizer {
            OptimizerName::Lbfgs => Optimizer::Lbfgs,
            OptimizerName::Adam => Optimizer::Adam { learning_rate: self.learning_rate.unwrap_or(ADAM_STEP) },
        }
    }

    /// What a search by exact evidence maximises.
    ///
    /// # Errors
    /// For what only learned features have.
    pub(crate) fn criterion(&self) -> Result<Criterion, ModelError> {
        match self.objective {
            None | Some(ObjectiveName::Evidence) => Ok(Criterion::Evidence),
            Some(ObjectiveName::LeaveOneOut) => Ok(Criterion::LeaveOneOut),
            Some(ObjectiveName::Predictive | ObjectiveName::Point) => Err(ModelError::Request(
                "--set objective=predictive and point belong to deep kernels (--method dbk, svdbk, dkl, svdkl); an exact process takes evidence or leave-one-out".into(),
            )),
            Some(ObjectiveName::Elbo | ObjectiveName::Gwi | ObjectiveName::Pgvi) => Err(ModelError::Request(
                "--set objective=elbo, gwi and pgvi belong to --method gvi; an exact process takes evidence or leave-one-out".into(),
            )),
        }
    }

    /// Most steps of a search by exact evidence.
    pub fn most_steps(&self) -> usize {
        self.steps.unwrap_or_else(|| FitOptions::default().steps.steps)
    }
}

/// `NAME` or `NAME=VALUE`.
#[cfg(feature = "clap")]
fn held(text: &str) -> Result<Constraint, String> {
    let (name, value) = match text.split_once('=') {
        Some((name, value)) => {
            (name, Some(numbers::finite(value).map_err(|_| format!("`{value}` is not a number"))?))
        }
        None => (text, None),
    };
    Ok(Constraint::Fixed { parameter: name.trim().into(), value })
}

/// `NAME=LOWER..UPPER`
#[cfg(feature = "clap")]
fn bounded(text: &str) -> Result<Constraint, String> {
    let parts = text.split_once('=').and_then(|(name, range)| Some((name, range.split_once("..")?)));
    let end = |text: &str| numbers::finite(text).ok();
    let found = parts.and_then(|(name, (lower, upper))| Some((name, end(lower)?, end(upper)?)));
    let Some((name, lower, upper)) = found else {
        return Err("write NAME=LOWER..UPPER, such as noise_variance=1e-3..0.1".into());
    };
    Ok(Constraint::Between { parameter: name.trim().into(), lower, upper })
}

/// How hyperparameters of iterative methods are learned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum HyperparameterSearch {
    /// One joint evidence over blocks of rows, some uniform, some neighbourhoods, then over larger ones; where those are less than half of the rows and minutes are enough, 30 steps of the stochastic search go on from there
    #[default]
    Blocks,
    /// The exact evidence on neighbourhoods of random rows, averaged, as published
    Neighbourhoods,
    /// Stochastic gradients of the evidence of all rows
    Stochastic,
    /// The same, from where blocks lead
    Refined,
}

impl HyperparameterSearch {
    /// Whether steps follow stochastic gradients of the evidence of all rows.
    pub fn is_stochastic(self) -> bool {
        matches!(self, Self::Stochastic | Self::Refined)
    }
}

/// What solves within a stochastic search.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum SearchSolver {
    /// Sketch-and-project, whose passes solve every block of rows exactly: one pass a step is enough
    #[default]
    Sap,
    /// Conjugate gradients, whose passes are iterations: a few of them from other hyperparameters' solutions help little (ask for 15 or more)
    Cg,
    /// Stochastic dual descent
    Sdd,
}

/// The search for hyperparameters of iterative methods.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct HyperparameterOptions {
    /// How hyperparameters of iterative methods are learned
    #[cfg_attr(feature = "clap", arg(long, value_enum, default_value_t))]
    pub hyperparameter_search: HyperparameterSearch,
    /// Blocks of each kind, uniform rows and neighbourhoods, whose joint evidence gives the hyperparameters of iterative methods
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", value_parser = numbers::whole(1..=100_000), default_value_t = Self::default().blocks))]
    pub blocks: usize,
    /// Rows of each
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", value_parser = numbers::whole(1..=MOST_KEPT), default_value_t = Self::default().block_size))]
    pub block_size: usize,
    /// Uniform rows of the larger block that the search goes on with, beside a neighbourhood of half as many, as far as time and memory allow; 0 for none. With this number searches on all rows follow where time (without a budget: some minutes) and memory have room for them: of auto the exact evidence of up to 20,000 rows, else, of more than twice as many rows, 30 stochastic steps
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", value_parser = numbers::whole(0..=MOST_KEPT), default_value_t = Self::default().refining_rows))]
    pub refining_rows: usize,
    /// Neighbourhoods whose exact evidences are averaged, with `hyperparameter-search=neighbourhoods`
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", value_parser = numbers::whole(1..=100_000), default_value_t = Self::default().neighbourhoods))]
    pub neighbourhoods: usize,
    /// Rows of each of those
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", value_parser = numbers::whole(1..=MOST_KEPT), default_value_t = Self::default().neighbourhood_size))]
    pub neighbourhood_size: usize,
    /// Probes of a stochastic search
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", value_parser = numbers::whole(1..=MOST_KEPT), default_value_t = Self::default().probes))]
    pub probes: usize,
    /// What the probes are
    #[cfg_attr(feature = "clap", arg(long, value_enum, default_value_t = Self::default().probe_kind))]
    pub probe_kind: ProbeKind,
    /// What solves within a stochastic search, whatever solves for the posterior
    #[cfg_attr(feature = "clap", arg(long, value_enum, default_value_t = Self::default().search_solver))]
    pub search_solver: SearchSolver,
    /// Passes over the rows (products with the matrix) of each step's solve of a stochastic search, which begins where the last one ended: hyperparameters move slowly
    /// (Lin et al., arXiv:2405.18457)
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", value_parser = numbers::whole(1..=MOST_STEPS), default_value_t = Self::default().search_passes))]
    pub search_passes: usize,
}

/// A search that steps over all rows.
#[cfg(feature = "clap")]
pub(super) const STOCHASTIC: Needed = ("hyperparameter_search", &["stochastic", "refined"]);

/// What a setting of searches needs beside it.
#[cfg(feature = "clap")]
pub(super) const BESIDE: &[Beside] = &[
    // Steps on all rows follow blocks by themselves, unless told of larger blocks.
    (
        &["probes", "probe_kind", "search_solver", "search_passes"],
        &[("hyperparameter_search", &["blocks", "stochastic", "refined"])],
        "--set hyperparameter-search=blocks, stochastic or refined",
    ),
    (
        &["probes", "probe_kind", "search_solver", "search_passes"],
        &[STOCHASTIC, ("refining_rows", &["4000"])],
        "steps on all rows, which follow blocks where --set refining-rows is not given: leave that out, or take --set hyperparameter-search=refined",
    ),
    (
        &["neighbourhoods", "neighbourhood_size"],
        &[("hyperparameter_search", &["neighbourhoods"])],
        "--set hyperparameter-search=neighbourhoods",
    ),
    (
        &["blocks", "block_size", "refining_rows"],
        &[("hyperparameter_search", &["blocks", "refined"])],
        "--set hyperparameter-search=blocks or refined",
    ),
    (
        &["objective", "optimizer"],
        &[
            ("hyperparameter_search", &["blocks", "neighbourhoods", "refined"]),
            ("method", &["exact", "dbk", "svdbk", "dkl", "svdkl", "gvi"]),
        ],
        "searches by exact evidence, not to --set hyperparameter-search=stochastic, which is Adam on the evidence",
    ),
    (
        &["learning_rate"],
        &[("optimizer", &["adam"]), STOCHASTIC],
        "--set optimizer=adam; lbfgs finds its own steps",
    ),
];

impl Default for HyperparameterOptions {
    fn default() -> Self {
        let blocks = Blocks::default();
        Self {
            hyperparameter_search: HyperparameterSearch::default(),
            blocks: blocks.uniform,
            block_size: blocks.size,
            // An evaluation takes a second or two on two cores, and the search is nearly done.
            refining_rows: 4000,
            // Ten thousand rows each, as published, take hours on two cores; two thousand take a minute or two.
            neighbourhoods: 10,
            neighbourhood_size: 2000,
            probes: 16,
            probe_kind: ProbeKind::Pathwise,
            search_solver: SearchSolver::default(),
            search_passes: 1,
        }
    }
}

impl HyperparameterOptions {
    /// Whether something was said of how steps go over all rows, where blocks come first and these only follow them.
    pub(crate) fn tells_of_all_rows(&self) -> bool {
        let usual = Self::default();
        let told = |own: &Self| (own.probes, own.probe_kind, own.search_solver, own.search_passes);
        self.hyperparameter_search == HyperparameterSearch::Blocks && told(self) != told(&usual)
    }

    pub(crate) fn blocks(&self, seed: u64) -> Blocks {
        Blocks { uniform: self.blocks, neighbourhoods: self.blocks, size: self.block_size, seed }
    }

    pub(crate) fn neighbourhoods(&self, seed: u64) -> Neighbourhoods {
        Neighbourhoods { count: self.neighbourhoods, size: self.neighbourhood_size, seed }
    }
}
