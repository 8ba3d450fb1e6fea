//! What is asked for.

use crate::linearised::{GPriorOptions, LearnedHyperparameters, ScaleEstimate};
use posterior_linear::sampled::ConjugateOptions;
use serde::{Deserialize, Serialize};

/// Measurements up to which the scales of the g-prior are exact: beyond, noise estimates them.
const EXACT_SCALES: usize = 300;

/// Directions of a preconditioner that nobody chose, at most: 48 bytes for each and each measurement.
const MOST_DIRECTIONS: usize = 1000;

/// Draws of noise from which scales are estimated.
const SCALE_DRAWS: usize = 128;

/// How filters' hyperparameters are learned.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FilterOptions {
    /// What is learned.
    pub learned: LearnedHyperparameters,
    /// Weight of the prior over lengthscales that expects smooth pictures (TV-PredCP); 0: marginal likelihood.
    pub roughness: f64,
    /// Steps of the search at most.
    pub steps: usize,
}

impl Default for FilterOptions {
    fn default() -> Self {
        Self { learned: LearnedHyperparameters::default(), roughness: 1.0, steps: 200 }
    }
}

/// Which prior over the network's weights.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ImagePriorChoice {
    /// One precision for weights that are scaled by what they move: the better of the two in the published comparison, and a hundredth of the time.
    GPrior(GPriorOptions),
    /// A variance and a lengthscale for each block of the network.
    Filters(FilterOptions),
}

impl Default for ImagePriorChoice {
    fn default() -> Self {
        Self::GPrior(GPriorOptions::default())
    }
}

/// What is asked of the posterior.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct UncertaintyOptions {
    /// The prior.
    pub prior: ImagePriorChoice,
    /// Draws of the picture.
    pub samples: usize,
    /// How far their solves are pursued; those by descent have the options of their solver.
    pub conjugate: ConjugateOptions,
    /// Directions of the preconditioner; None: a quarter of the measurements, but 1,000 at most. A descent has none.
    pub rank: Option<usize>,
    /// Seed of scales, directions and draws; draws by descent have the seed of the g-prior, as its turns do.
    pub seed: u64,
}

impl Default for UncertaintyOptions {
    /// 64 draws: standard deviations to within 9 %.
    fn default() -> Self {
        Self {
            prior: ImagePriorChoice::default(),
            samples: 64,
            conjugate: ConjugateOptions { tolerance: 1e-2, steps: 100 },
            rank: None,
            seed: 0,
        }
    }
}

impl UncertaintyOptions {
    /// Directions of the preconditioner for a scan of so many measurements. Each costs a product, and each step of a solve one for each of its right-hand sides: of 2,790 measurements, 100
    /// directions leave 37 steps, a quarter 13.
    pub fn rank_of(&self, measurements: usize) -> usize {
        self.rank.unwrap_or((measurements / 4).min(MOST_DIRECTIONS)).min(measurements)
    }
}

/// How the scales of a scan with so many measurements are found.
pub(super) fn scale_estimate(measurements: usize, seed: u64) -> ScaleEstimate {
    if measurements <= EXACT_SCALES {
        ScaleEstimate::Exact
    } else {
        ScaleEstimate::Sampled { draws: SCALE_DRAWS, seed }
    }
}

/// Products back that the scales take.
pub(super) fn scale_products(measurements: usize) -> usize {
    if measurements <= EXACT_SCALES { measurements } else { SCALE_DRAWS }
}
