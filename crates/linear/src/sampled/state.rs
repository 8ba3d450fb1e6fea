//! What is asked of expectation maximisation, and where it stands.

use super::descent::DescentOptions;
use super::update::Update;
use crate::Prior;
use crate::mode::{ModeOptions, Predictor};
use faer::Mat;
use posterior_optim::{Progress, Reason, Signal};
use serde::{Deserialize, Serialize};

/// How the mode is found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ModeSolver {
    /// Newton's method with truncated steps, all data in every product.
    Newton(ModeOptions),
    /// Descent on batches with steps that fall to zero.
    Descent(DescentOptions),
}

impl Default for ModeSolver {
    fn default() -> Self {
        Self::Newton(ModeOptions::default())
    }
}

/// By which space the effective dimension is estimated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Estimator {
    /// `mean_j sum_i |phi_i zeta_j|²_B`: one pass, never negative, the better where less than half of the weights are determined.
    #[default]
    Prediction,
    /// `d - mean_j |zeta_j|²_A`: no pass; several groups of weights use it always.
    Weight,
}

/// What is asked of the turns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EmOptions {
    /// Precisions count as at rest when no logarithm moves by more.
    pub tolerance: f64,
    /// How precisions are updated.
    pub update: Update,
    /// How the effective dimension is estimated.
    pub estimator: Estimator,
    /// How the mode is found.
    pub mode: ModeSolver,
    /// Whose mode.
    pub predictor: Predictor,
    /// Whether a Gaussian noise variance (relative to the likelihood's) is learned too.
    pub learn_noise: bool,
}

/// What one turn found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EmStep {
    /// Precisions of the groups, at which mode and samples were found.
    pub precisions: Vec<f64>,
    /// Noise variance, relative to the likelihood's own.
    pub noise_variance: f64,
    /// Effective dimensions of the groups.
    pub effective_dimensions: Vec<f64>,
    /// That of all weights by prediction space, where a pass was made.
    pub by_prediction: Option<f64>,
    /// That of all weights by weight space.
    pub by_weight: f64,
    /// `|w|²` of the mode, by group.
    pub squared_norms: Vec<f64>,
    /// `Tr H^-1` by group, estimated.
    pub traces: Vec<f64>,
    /// The sampled bound of the log evidence, without its constant.
    pub bound: f64,
    /// `mean_j zeta_j' H zeta_j / d`, which is near 1 for samples that are solved: within `2 sqrt(2 / (d K))` of it.
    pub convergence: Option<f64>,
    /// `log p(Y | w)` at the mode.
    pub log_likelihood: f64,
    /// Steps towards the mode.
    pub mode_steps: usize,
    /// Whether these came to rest: a mode that did not is too short, and its precision too large. None for descent, which takes all its steps.
    pub mode_converged: Option<bool>,
    /// Steps towards the samples.
    pub solver_steps: usize,
    /// Why these ended.
    pub solver_ended: Reason,
    /// Seconds of the turn, as far as this run made it.
    pub seconds: f64,
}

/// A mode.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FoundMode {
    /// Weights in scaled coordinates (d).
    pub weights: Vec<f64>,
    /// `log p(Y | w)`.
    pub log_likelihood: f64,
    /// Steps.
    pub steps: usize,
    /// Whether they came to rest; None for descent, which takes all its steps.
    pub converged: Option<bool>,
}

/// Where the turns stand: plain data.
#[derive(Clone, Debug, PartialEq)]
pub struct EmState<S> {
    /// Precisions of the groups for the turn under way.
    pub precisions: Vec<f64>,
    /// Noise variance for the turn under way.
    pub noise_variance: f64,
    /// The mode of the last turn.
    pub mode: Option<FoundMode>,
    /// Whether that is the mode of the turn under way.
    pub mode_is_current: bool,
    /// The samples of the last turn.
    pub samples: Option<Mat<f64>>,
    /// The solve under way.
    pub solving: Option<S>,
    /// Turns taken.
    pub turns: Vec<EmStep>,
}

/// Sees every step of mode and solver (None of the former), and the state, made when asked for; may stop the turns.
pub type WatchEm<'a, S> = dyn FnMut(Option<&Progress>, &dyn Fn() -> EmState<S>) -> Signal + 'a;

impl<S> EmState<S> {
    /// Before the first turn.
    pub fn begin(prior: &Prior, noise_variance: f64) -> Self {
        Self {
            precisions: prior.precisions().to_vec(),
            noise_variance,
            mode: None,
            mode_is_current: false,
            samples: None,
            solving: None,
            turns: Vec::new(),
        }
    }
}
