//! What proposals are made by.

use crate::{DecisionError, MultistartOptions};
use posterior_kernels::KernelExpression;
use serde::{Deserialize, Serialize};

/// Most points spread over the space before the model is asked.
pub const MOST_INITIAL: usize = 10_000;

/// Which values are good.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// Small ones.
    #[default]
    Minimise,
    /// Large ones.
    Maximise,
}

impl Direction {
    /// The value as something to make large.
    pub fn upward(self, value: f64) -> f64 {
        if self == Self::Maximise { value } else { -value }
    }
}

/// How points are proposed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum Strategy {
    /// Maxima of draws from a Gaussian process
    #[default]
    Thompson,
    /// At random, to compare with.
    Random,
}

/// A table whose rows are all that may be chosen.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Candidates {
    /// The file it was read from, for messages.
    pub source: String,
    /// Rows, each in the order of the axes.
    pub rows: Vec<Vec<f64>>,
}

/// Everything that determines the proposals, what was told aside.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// Which values are good.
    pub direction: Direction,
    /// How points are proposed.
    pub strategy: Strategy,
    /// The kernel, on the unit cube.
    pub kernel: KernelExpression,
    /// Points spread over the space before the model is asked, at most [`MOST_INITIAL`].
    pub initial: usize,
    /// Known variance of the measurement noise, in squared units of what is told; otherwise learned.
    pub noise_variance: Option<f64>,
    /// Random features of each draw.
    pub features: usize,
    /// How maxima are looked for.
    pub multistart: MultistartOptions,
    /// Most points whose exact evidence chooses the hyperparameters; beyond, a random choice of that many does.
    pub evidence_rows: usize,
    /// The seed of everything random.
    pub seed: u64,
}

impl Settings {
    /// The defaults for a space of the given dimension: Matérn-5/2 with a lengthscale for each axis, `2D + 2` points to begin with.
    pub fn new(dimension: usize) -> Self {
        Self {
            direction: Direction::default(),
            strategy: Strategy::default(),
            kernel: "matern52(ard)".parse().expect("the default kernel is valid text"),
            initial: 2 * dimension + 2,
            noise_variance: None,
            features: 2000,
            multistart: MultistartOptions::default(),
            evidence_rows: 1500,
            seed: 0,
        }
    }

    pub(super) fn check(&self) -> Result<(), DecisionError> {
        let refuse = |problem: String| Err(DecisionError::Ask(problem));
        let search = &self.multistart;
        if let Some(v) = self.noise_variance.filter(|v| !(v.is_finite() && *v > 0.0)) {
            return refuse(format!("the noise variance is {v}; it must be a positive number"));
        }
        if search.rounds == 0 || search.candidates == 0 || self.features == 0 || self.evidence_rows < 2 {
            return refuse(
                "rounds, candidates and features are at least 1, rows for the evidence at least 2".into(),
            );
        }
        if self.initial > MOST_INITIAL {
            return refuse(format!(
                "{} initial points are too many: at most {MOST_INITIAL} are spread before the process is asked",
                self.initial
            ));
        }
        if search.candidates > 10_000_000 || search.rounds > 100_000 || self.features > 1_000_000 {
            return refuse(
                "at most 10,000,000 candidates, 100,000 rounds and 1,000,000 features are possible".into(),
            );
        }
        if !(search.radius.is_finite() && search.radius >= 0.0 && search.learning_rate.is_finite()) {
            return refuse("radius and learning rate must be numbers, the radius not negative".into());
        }
        Ok(())
    }
}
