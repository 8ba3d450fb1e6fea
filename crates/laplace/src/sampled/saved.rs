//! Where a fit stands, as arrays and small facts.

use super::Space;
use super::solve::AnyState;
use crate::LaplaceError;
use crate::keep::SavedState;
use crate::tune::GridPoint;
use faer::Mat;
use posterior_gp::iterative::{SolverState as DualState, StateHeader};
use posterior_linalg::solve::ConjugateGradientState;
use posterior_linear::sampled::{DescentState, FoundMode, SolverState, Turn, TurnsState};
use posterior_optim::Reason;
use posterior_store::Tensors;
use serde::{Deserialize, Serialize};

const METHOD: &str = "sampled";

/// The small part.
#[derive(Debug, Serialize, Deserialize)]
struct Facts {
    /// In whose coordinates the arrays are.
    #[serde(default)]
    space: Space,
    /// Why the turns ended, where they are over and samples for predictions are being solved for.
    turns_ended: Option<Reason>,
    precisions: Vec<f64>,
    noise_variance: f64,
    /// Log likelihood and steps of the mode; its weights are an array.
    mode: Option<(f64, usize, Option<bool>)>,
    mode_is_current: bool,
    turns: Vec<Turn>,
    solving: Option<Solving>,
    /// What unseen examples have scored so far.
    #[serde(default)]
    scored: Vec<GridPoint>,
}

/// The small part of a solver's state.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "solver", rename_all = "kebab-case")]
enum Solving {
    Descent {
        step: usize,
        step_size: f64,
        restarts: usize,
        first_loss: Option<f64>,
    },
    /// Residuals that were never checked are None: infinity has no place in the format.
    ConjugateGradients {
        inner: Vec<f64>,
        active: Vec<bool>,
        checked: Vec<Option<f64>>,
        iteration: usize,
    },
    DualDescent {
        header: StateHeader,
        blocks: Vec<String>,
    },
}

/// The state as it is kept: why the turns ended, if they are over, and what was scored since.
pub(super) fn save(
    space: Space,
    (turns_ended, scored): (Option<Reason>, &[GridPoint]),
    state: &TurnsState<AnyState>,
) -> SavedState {
    let mut tensors = Tensors::default();
    if let Some(mode) = &state.mode {
        tensors.insert_vector("mode", &mode.weights);
    }
    if let Some(samples) = &state.samples {
        tensors.insert_columns("samples", samples.as_ref());
    }
    let mut put =
        |name: &str, block: &Mat<f64>| tensors.insert_columns(format!("solving.{name}"), block.as_ref());
    let solving = state.solving.as_ref().map(|solving| match solving {
        AnyState::Weights(SolverState::Descent(own)) => {
            put("position", &own.position);
            put("velocity", &own.velocity);
            put("average", &own.average);
            let DescentState { step, step_size, restarts, first_loss, .. } = *own;
            Solving::Descent { step, step_size, restarts, first_loss }
        }
        AnyState::Weights(SolverState::ConjugateGradients(own)) => {
            put("solution", &own.solution);
            put("residual", &own.residual);
            put("direction", &own.direction);
            Solving::ConjugateGradients {
                inner: own.inner.clone(),
                active: own.active.clone(),
                checked: own.checked.iter().map(|c| Some(*c).filter(|c| c.is_finite())).collect(),
                iteration: own.iteration,
            }
        }
        AnyState::Dual(own) => {
            own.blocks.iter().for_each(|(name, block)| put(name, block));
            let blocks = own.blocks.iter().map(|b| b.0.clone()).collect();
            Solving::DualDescent { header: own.header.clone(), blocks }
        }
    });
    let facts = Facts {
        space,
        turns_ended,
        precisions: state.precisions.clone(),
        noise_variance: state.noise_variance,
        mode: state.mode.as_ref().map(|m| (m.log_likelihood, m.steps, m.converged)),
        mode_is_current: state.mode_is_current,
        turns: state.turns.clone(),
        solving,
        scored: scored.to_vec(),
    };
    SavedState::new(METHOD, &facts, tensors)
}

/// Why turns ended, if they were over, what was scored since, and where they stand.
type Opened = (Option<Reason>, Vec<GridPoint>, TurnsState<AnyState>);

/// The state again, of a fit in this space; why its turns ended, if they were over, and what was scored since.
pub(super) fn open(saved: SavedState, space: Space) -> Result<Opened, LaplaceError> {
    let (facts, mut tensors): (Facts, Tensors) = saved.open(METHOD)?;
    if facts.space != space {
        let name = |space| match space {
            Space::Weights => "weights",
            Space::Functions => "functions",
        };
        return Err(LaplaceError::Request(format!(
            "what was kept is of samples in the space of {0}, not {1}: ask for that space (`--space {0}`), or start again without it",
            name(facts.space),
            name(space)
        )));
    }
    let mode = match facts.mode {
        Some((log_likelihood, steps, converged)) => {
            let weights = tensors.shape("mode").map_or(0, |shape| shape.iter().product());
            Some(FoundMode { weights: tensors.vector("mode", weights)?, log_likelihood, steps, converged })
        }
        None => None,
    };
    let samples = match tensors.shape("samples") {
        Some(_) => Some(tensors.columns::<f64>("samples", None)?),
        None => None,
    };
    let mut take = |name: &str| tensors.columns::<f64>(&format!("solving.{name}"), None);
    let solving = match facts.solving {
        None => None,
        Some(Solving::Descent { step, step_size, restarts, first_loss }) => {
            Some(AnyState::Weights(SolverState::Descent(DescentState {
                position: take("position")?,
                velocity: take("velocity")?,
                average: take("average")?,
                step,
                step_size,
                restarts,
                first_loss,
            })))
        }
        Some(Solving::ConjugateGradients { inner, active, checked, iteration }) => {
            Some(AnyState::Weights(SolverState::ConjugateGradients(ConjugateGradientState {
                solution: take("solution")?,
                residual: take("residual")?,
                direction: take("direction")?,
                inner,
                active,
                checked: checked.into_iter().map(|c| c.unwrap_or(f64::INFINITY)).collect(),
                iteration,
            })))
        }
        Some(Solving::DualDescent { header, blocks }) => {
            let blocks = blocks.into_iter().map(|name| Ok((name.clone(), take(&name)?)));
            Some(AnyState::Dual(DualState { header, blocks: blocks.collect::<Result<_, LaplaceError>>()? }))
        }
    };
    let state = TurnsState {
        precisions: facts.precisions,
        noise_variance: facts.noise_variance,
        mode,
        mode_is_current: facts.mode_is_current,
        samples,
        solving,
        turns: facts.turns,
    };
    Ok((facts.turns_ended, facts.scored, state))
}

/// Refuses a state whose mode or samples have not so many coordinates.
pub(super) fn check_dimension(state: &TurnsState<AnyState>, dimension: usize) -> Result<(), LaplaceError> {
    let mode = state.mode.as_ref().map(|m| m.weights.len());
    let samples = state.samples.as_ref().map(Mat::nrows);
    match [mode, samples].into_iter().flatten().find(|own| *own != dimension) {
        None => Ok(()),
        Some(own) => Err(LaplaceError::Request(format!(
            "what was kept of the samples has {own} coordinates, this fit {dimension}: start again without it"
        ))),
    }
}
