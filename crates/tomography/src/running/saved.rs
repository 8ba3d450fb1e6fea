//! States as facts and arrays.

use crate::TomographyError;
use crate::image_prior::DeepImagePriorState;
use faer::Mat;
use posterior_linalg::solve::ConjugateGradientState;
use posterior_linear::sampled::{FoundMode, Turn, TurnsState};
use posterior_store::Tensors;
use serde::{Deserialize, Serialize};

/// The facts of a training; its vectors are tensors.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct SavedTraining {
    step: usize,
    best_loss: Option<f64>,
    best_step: usize,
    losses: Vec<(usize, f64)>,
    best_quality: Option<(f64, usize)>,
    clipped: usize,
    weights: usize,
}

impl SavedTraining {
    /// Takes a state apart.
    pub(crate) fn of(state: &DeepImagePriorState) -> (Self, Tensors) {
        let mut tensors = Tensors::default();
        for (name, block) in [
            ("weights", &state.weights),
            ("first", &state.first),
            ("second", &state.second),
            ("best", &state.best),
        ] {
            tensors.insert_vector(name, block);
        }
        let facts = Self {
            step: state.step,
            best_loss: state.best_loss.is_finite().then_some(state.best_loss),
            best_step: state.best_step,
            losses: state.losses.clone(),
            best_quality: state.best_quality,
            clipped: state.clipped,
            weights: state.weights.len(),
        };
        (facts, tensors)
    }

    /// Puts it together again.
    ///
    /// # Errors
    /// [`TomographyError::Store`] for arrays that are missing or of other sizes.
    pub(crate) fn restore(self, tensors: &mut Tensors) -> Result<DeepImagePriorState, TomographyError> {
        let mut block = |name: &str| tensors.take::<f32>(name, &[self.weights]);
        Ok(DeepImagePriorState {
            step: self.step,
            weights: block("weights")?,
            first: block("first")?,
            second: block("second")?,
            best: block("best")?,
            best_loss: self.best_loss.unwrap_or(f64::INFINITY),
            best_step: self.best_step,
            losses: self.losses,
            best_quality: self.best_quality,
            clipped: self.clipped,
        })
    }
}

/// The facts of a mode.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct SavedMode {
    /// None for minus infinity.
    log_likelihood: Option<f64>,
    steps: usize,
    converged: Option<bool>,
}

/// The facts of a solve.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct SavedSolve {
    inner: Vec<f64>,
    active: Vec<bool>,
    /// None for infinity.
    checked: Vec<Option<f64>>,
    iteration: usize,
    rows: usize,
}

/// The facts of expectation maximisation over the measurements.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct SavedTurns {
    precisions: Vec<f64>,
    noise_variance: f64,
    mode: Option<SavedMode>,
    mode_is_current: bool,
    samples: Option<usize>,
    solve: Option<SavedSolve>,
    turns: Vec<Turn>,
    weights: usize,
}

impl SavedTurns {
    /// Takes a state of a model with so many weights apart.
    pub(crate) fn of(state: &TurnsState<ConjugateGradientState<f64>>, weights: usize) -> (Self, Tensors) {
        let mut tensors = Tensors::default();
        if let Some(mode) = &state.mode {
            tensors.insert_vector("mode", &mode.weights);
        }
        if let Some(samples) = &state.samples {
            tensors.insert_matrix("samples", samples.as_ref());
        }
        let solve = state.solving.as_ref().map(|solve| {
            tensors.insert_matrix("solution", solve.solution.as_ref());
            tensors.insert_matrix("residual", solve.residual.as_ref());
            tensors.insert_matrix("direction", solve.direction.as_ref());
            SavedSolve {
                inner: solve.inner.clone(),
                active: solve.active.clone(),
                checked: solve.checked.iter().map(|c| c.is_finite().then_some(*c)).collect(),
                iteration: solve.iteration,
                rows: solve.solution.nrows(),
            }
        });
        let facts = Self {
            precisions: state.precisions.clone(),
            noise_variance: state.noise_variance,
            mode: state.mode.as_ref().map(|mode| SavedMode {
                log_likelihood: mode.log_likelihood.is_finite().then_some(mode.log_likelihood),
                steps: mode.steps,
                converged: mode.converged,
            }),
            mode_is_current: state.mode_is_current,
            samples: state.samples.as_ref().map(Mat::ncols),
            solve,
            turns: state.turns.clone(),
            weights,
        };
        (facts, tensors)
    }

    /// Puts it together again.
    ///
    /// # Errors
    /// [`TomographyError::Store`] for arrays that are missing or of other sizes.
    pub(crate) fn restore(
        self,
        tensors: &mut Tensors,
    ) -> Result<TurnsState<ConjugateGradientState<f64>>, TomographyError> {
        let d = self.weights;
        let mode = match self.mode {
            Some(mode) => Some(FoundMode {
                weights: tensors.vector("mode", d)?,
                log_likelihood: mode.log_likelihood.unwrap_or(f64::NEG_INFINITY),
                steps: mode.steps,
                converged: mode.converged,
            }),
            None => None,
        };
        let samples = self.samples.map(|k| tensors.matrix("samples", d, k)).transpose()?;
        let solving = match self.solve {
            Some(solve) => {
                let mut block = |name| tensors.matrix(name, solve.rows, solve.inner.len());
                Some(ConjugateGradientState {
                    solution: block("solution")?,
                    residual: block("residual")?,
                    direction: block("direction")?,
                    inner: solve.inner.clone(),
                    active: solve.active,
                    checked: solve.checked.into_iter().map(|c| c.unwrap_or(f64::INFINITY)).collect(),
                    iteration: solve.iteration,
                })
            }
            None => None,
        };
        Ok(TurnsState {
            precisions: self.precisions,
            noise_variance: self.noise_variance,
            mode,
            mode_is_current: self.mode_is_current,
            samples,
            solving,
            turns: self.turns,
        })
    }
}
