//! What can be asked for.

use crate::LaplaceError;
use posterior_gp::iterative::{DualAveraging, DualDescentOptions};
use posterior_linear::mode::ModeOptions;
use posterior_linear::sampled::{ConjugateOptions, DescentOptions, Estimator, ModeSolver, Objective, Update};
use serde::{Deserialize, Serialize};

/// How samples are solved for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Solver {
    /// Descent on batches, with Nesterov's momentum and averaging.
    Descent(DescentOptions),
    /// Conjugate gradients on all data.
    ConjugateGradients(ConjugateOptions),
    /// Stochastic dual descent on the tangent kernel: for few examples and outputs.
    DualDescent(DualOptions),
}

/// Settings of dual descent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DualOptions {
    /// Steps.
    pub steps: usize,
    /// Relative residual at which to stop.
    pub tolerance: f64,
    /// The method's own.
    pub descent: DualDescentOptions,
}

impl Default for DualOptions {
    fn default() -> Self {
        // The gradient's noise vanishes at the solution, and the residual that ends a solve early is the iterate's own: an average would still remember where a warm start was.
        let descent =
            DualDescentOptions { averaging: DualAveraging::Weight(1.0), ..DualDescentOptions::default() };
        Self { steps: 10_000, tolerance: 1e-2, descent }
    }
}

/// Where optimum, samples and turns are worked on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum Space {
    /// Among the weights, with passes over the data
    ///
    /// Each step is a pass over the data with products from both sides. What solvers of their own space, several precisions and the g-prior know.
    #[default]
    Weights,
    /// In the span of what the examples move, with their tangent kernel: for few examples
    ///
    /// The span is [`posterior_linear::sampled::Span`]: the tangent kernel is made and decomposed once, and then nothing but products with a matrix of observed numbers. For conjugate gradients under one
    /// precision, and few observed numbers: its work grows with their square and their cube.
    Functions,
}

/// What to fit, and how.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SampledOptions {
    /// Samples while precisions are learned.
    pub samples_em: usize,
    /// Samples for predictions.
    pub samples: usize,
    /// Turns of expectation maximisation at most; none keeps the initial precision.
    pub em_steps: usize,
    /// How samples are solved for. Conjugate gradients are the default: to a small error they were quicker (`benches/sampled_solvers.rs`), to a coarse one descent can be. On 2,000 digits and a perceptron of 199,210 weights their outputs were 2 % off after
    /// 3 products (64 leading directions), those of descent 5 % off after 50 epochs.
    pub solver: Solver,
    /// Where; unless said, function space where it is less work than weights and takes no more memory, or 2 GB.
    pub space: Option<Space>,
    /// Which objective descent minimises.
    pub objective: Objective,
    /// How precisions are updated.
    pub update: Update,
    /// How the effective dimension is estimated.
    pub estimator: Estimator,
    /// How the linearised model's optimum is found.
    pub mode: ModeSolver,
    /// Whether the prior acts on weights in the units of their own influence: features scaled to a unit diagonal of the curvature. Not by default: weights that the examples hardly move, as most are of a network that is sure of all of them, then vary without bounds, and inputs that do move them get error bars that drown every output.
    pub g_prior: bool,
    /// Whether each layer has a precision of its own.
    pub layerwise: bool,
    /// Precision at the start, in the coordinates that the prior acts on.
    pub initial_precision: f64,
    /// Whether a factor on the noise is learned, where it is Gaussian: that of the linear model's optimum, whose distance from the network counts as variance of predictions. Unless said, where all weights are uncertain: the optimum of some of them is
    /// too far from what the others learned.
    pub learn_noise: Option<bool>,
    /// The turns end when no logarithm of a precision (and noise) moves by more.
    pub tolerance: f64,
    /// Random vectors by which [`Update::Evidence`] knows the spectrum.
    pub spectrum_probes: usize,
    /// Products with each of them.
    pub spectrum_steps: usize,
    /// Settings that are tried on unseen examples, at most, for the prior precision and for Gaussian noise each, beginning with those of the turns: half a decade apart, and an eighth. None keeps what the turns find. Each draws `samples` anew.
    pub validation_tries: usize,
}

/// Bytes that directions may take beside few samples.
const LITTLE: usize = 64 << 20;

/// Directions beyond which each costs more than it saves.
const MOST_DIRECTIONS: usize = 200;

impl Default for SampledOptions {
    fn default() -> Self {
        Self {
            samples_em: 4,
            samples: 32,
            em_steps: 10,
            solver: Solver::ConjugateGradients(ConjugateOptions::default()),
            space: None,
            objective: Objective::LowVariance,
            update: Update::Mackay,
            estimator: Estimator::Prediction,
            // Begun where the last turn ended, and as good as the precision that it is for.
            mode: ModeSolver::Newton(ModeOptions {
                inner_steps: 100,
                norm_tolerance: 0.01,
                ..ModeOptions::default()
            }),
            g_prior: false,
            layerwise: false,
            initial_precision: 1.0,
            learn_noise: None,
            tolerance: 0.01,
            spectrum_probes: 4,
            spectrum_steps: 30,
            validation_tries: 0,
        }
    }
}

impl SampledOptions {
    /// Leading directions of the curvature that conjugate gradients are preconditioned with, for so many weights and rows of observations: as many as samples, twice, or what takes little memory.
    /// None where nothing is solved by conjugate gradients on the weights.
    pub(crate) fn directions(&self, weights: usize, rows: usize) -> usize {
        let newton = self.em_steps > 0 && matches!(self.mode, ModeSolver::Newton(_));
        if !newton && !matches!(self.solver, Solver::ConjugateGradients(_)) {
            return 0;
        }
        let cheap = (LITTLE / (8 * weights.max(1))).min(MOST_DIRECTIONS);
        cheap.max((2 * self.samples.max(self.samples_em)).min(MOST_DIRECTIONS)).min(rows).min(weights)
    }

    /// Whether function space can do what is asked for.
    pub(crate) fn suits_functions(&self) -> bool {
        matches!(self.solver, Solver::ConjugateGradients(_))
            && (self.em_steps == 0 || matches!(self.mode, ModeSolver::Newton(_)))
            && !self.layerwise
            && !self.g_prior
    }

    pub(super) fn check(&self) -> Result<(), LaplaceError> {
        let problem = if self.samples == 0 || (self.samples_em == 0 && self.em_steps > 0) {
            "at least one sample is needed, for predictions and for each turn".into()
        } else if !(self.initial_precision > 0.0 && self.initial_precision.is_finite()) {
            format!("the prior precision is {}; it must be positive and finite", self.initial_precision)
        } else if self.tolerance.is_nan() || self.tolerance < 0.0 {
            format!("the tolerance is {}; it must be zero or positive", self.tolerance)
        } else if self.space == Some(Space::Functions) && !self.suits_functions() {
            "function space knows conjugate gradients, Newton's method and one prior precision of the weights as they are: choose these, or stay in weight space".into()
        } else if self.layerwise && matches!(self.solver, Solver::DualDescent(_)) {
            "dual descent knows one prior precision: choose another solver, or one precision for all layers"
                .into()
        } else if self.layerwise && self.update == Update::Evidence {
            "the bound's maximum is known for one precision of all weights: choose another update, or one precision for all layers".into()
        } else {
            return Ok(());
        };
        Err(LaplaceError::Request(problem))
    }
}
