//! Where turns stand, as small facts and arrays: for who keeps them in a file.

use super::descent::DescentState;
use super::sampler::SolverState;
use super::state::{EmState, EmStep, FoundMode};
use faer::Mat;
use posterior_linalg::solve::ConjugateGradientState;
use posterior_store::{StoreError, Tensors};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// A solver's state that is small facts and named matrices.
pub trait SavedSolver: Sized {
    /// The small part.
    type Facts: Serialize + DeserializeOwned;

    /// Takes it apart: every matrix goes to `put` under a name.
    fn facts(&self, put: &mut dyn FnMut(&str, &Mat<f64>)) -> Self::Facts;

    /// Puts it together again of what `take` has under the same names.
    ///
    /// # Errors
    /// Those of `take`.
    fn restored(
        facts: Self::Facts,
        take: &mut dyn FnMut(&str) -> Result<Mat<f64>, StoreError>,
    ) -> Result<Self, StoreError>;
}

/// The small part of conjugate gradients.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ConjugateGradientFacts {
    inner: Vec<f64>,
    active: Vec<bool>,
    /// Residuals that were never checked are None: infinity has no place in the format.
    checked: Vec<Option<f64>>,
    iteration: usize,
}

impl SavedSolver for ConjugateGradientState<f64> {
    type Facts = ConjugateGradientFacts;

    fn facts(&self, put: &mut dyn FnMut(&str, &Mat<f64>)) -> Self::Facts {
        put("solution", &self.solution);
        put("residual", &self.residual);
        put("direction", &self.direction);
        ConjugateGradientFacts {
            inner: self.inner.clone(),
            active: self.active.clone(),
            checked: self.checked.iter().map(|c| Some(*c).filter(|c| c.is_finite())).collect(),
            iteration: self.iteration,
        }
    }

    fn restored(
        facts: Self::Facts,
        take: &mut dyn FnMut(&str) -> Result<Mat<f64>, StoreError>,
    ) -> Result<Self, StoreError> {
        Ok(Self {
            solution: take("solution")?,
            residual: take("residual")?,
            direction: take("direction")?,
            inner: facts.inner,
            active: facts.active,
            checked: facts.checked.into_iter().map(|c| c.unwrap_or(f64::INFINITY)).collect(),
            iteration: facts.iteration,
        })
    }
}

/// The small part of a solver in weight space.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "solver", rename_all = "kebab-case")]
pub enum SolverFacts {
    /// A descent.
    Descent {
        /// Steps taken.
        step: usize,
        /// The step size.
        step_size: f64,
        /// How often it was halved.
        restarts: usize,
        /// The loss of the first batch.
        first_loss: Option<f64>,
    },
    /// Conjugate gradients.
    ConjugateGradients(ConjugateGradientFacts),
}

impl SavedSolver for SolverState {
    type Facts = SolverFacts;

    fn facts(&self, put: &mut dyn FnMut(&str, &Mat<f64>)) -> Self::Facts {
        match self {
            Self::Descent(own) => {
                put("position", &own.position);
                put("velocity", &own.velocity);
                put("average", &own.average);
                let DescentState { step, step_size, restarts, first_loss, .. } = *own;
                SolverFacts::Descent { step, step_size, restarts, first_loss }
            }
            Self::ConjugateGradients(own) => SolverFacts::ConjugateGradients(own.facts(put)),
        }
    }

    fn restored(
        facts: Self::Facts,
        take: &mut dyn FnMut(&str) -> Result<Mat<f64>, StoreError>,
    ) -> Result<Self, StoreError> {
        Ok(match facts {
            SolverFacts::Descent { step, step_size, restarts, first_loss } => Self::Descent(DescentState {
                position: take("position")?,
                velocity: take("velocity")?,
                average: take("average")?,
                step,
                step_size,
                restarts,
                first_loss,
            }),
            SolverFacts::ConjugateGradients(own) => {
                Self::ConjugateGradients(ConjugateGradientState::restored(own, take)?)
            }
        })
    }
}

/// The small part of a [`EmState`], with a solver's.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SavedEm<F> {
    precisions: Vec<f64>,
    noise_variance: f64,
    /// Log likelihood (None for minus infinity) and steps of the mode; its weights are an array.
    mode: Option<(Option<f64>, usize, Option<bool>)>,
    mode_is_current: bool,
    turns: Vec<EmStep>,
    solving: Option<F>,
}

impl<F> SavedEm<F> {
    /// Takes a state apart; its arrays go to `tensors`.
    pub fn of<S: SavedSolver<Facts = F>>(state: &EmState<S>, tensors: &mut Tensors) -> Self {
        if let Some(mode) = &state.mode {
            tensors.insert_vector("mode", &mode.weights);
        }
        if let Some(samples) = &state.samples {
            tensors.insert_columns("samples", samples.as_ref());
        }
        let mut put =
            |name: &str, block: &Mat<f64>| tensors.insert_columns(format!("solving.{name}"), block.as_ref());
        Self {
            precisions: state.precisions.clone(),
            noise_variance: state.noise_variance,
            mode: state.mode.as_ref().map(|mode| {
                let finite = Some(mode.log_likelihood).filter(|v| v.is_finite());
                (finite, mode.steps, mode.converged)
            }),
            mode_is_current: state.mode_is_current,
            turns: state.turns.clone(),
            solving: state.solving.as_ref().map(|solving| solving.facts(&mut put)),
        }
    }

    /// Puts it together again.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] for arrays that are missing or no matrices.
    pub fn restored<S: SavedSolver<Facts = F>>(
        self,
        tensors: &mut Tensors,
    ) -> Result<EmState<S>, StoreError> {
        let mode = match self.mode {
            Some((log_likelihood, steps, converged)) => {
                let weights = tensors.shape("mode").map_or(0, |shape| shape.iter().product());
                let weights = tensors.vector("mode", weights)?;
                let log_likelihood = log_likelihood.unwrap_or(f64::NEG_INFINITY);
                Some(FoundMode { weights, log_likelihood, steps, converged })
            }
            None => None,
        };
        let samples = match tensors.shape("samples") {
            Some(_) => Some(tensors.columns::<f64>("samples", None)?),
            None => None,
        };
        let mut take = |name: &str| tensors.columns::<f64>(&format!("solving.{name}"), None);
        let solving = self.solving.map(|facts| S::restored(facts, &mut take)).transpose()?;
        Ok(EmState {
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

impl<S> EmState<S> {
    /// How many coordinates its mode or samples have where these are not `dimension`.
    pub fn other_dimension(&self, dimension: usize) -> Option<usize> {
        let mode = self.mode.as_ref().map(|mode| mode.weights.len());
        let samples = self.samples.as_ref().map(Mat::nrows);
        [mode, samples].into_iter().flatten().find(|own| *own != dimension)
    }
}
