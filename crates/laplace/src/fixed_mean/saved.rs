//! What is kept on the way.

use crate::LaplaceError;
use crate::keep::{Keeper, SavedState};
use posterior_gp::inducing::fixed_mean::{CurvatureSoFar, FixedMeanState};
use posterior_store::Tensors;
use serde::{Deserialize, Serialize};
use std::mem::take;

/// Steps, and the pass for the closed form (all there is, or before the first step).
const METHOD: &str = "fixed-mean";
const PASS: &str = "fixed-mean closed form";

/// What was found out before the first step.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Begun {
    /// Prior variances that were tried, with their scores.
    pub(super) amplitudes: Vec<(f64, f64)>,
    /// Variances that rounding had made negative.
    pub(super) clipped: usize,
    /// What was added to a diagonal, relative to its mean.
    pub(super) jitter: f64,
}

/// A state with its long vectors as tensors, and what was found out before its first step.
pub(super) fn saved(mut state: FixedMeanState, begun: &Begun) -> SavedState {
    let mut tensors = Tensors::default();
    tensors.insert_vector("theta", &take(&mut state.theta));
    tensors.insert_vector("first", &take(&mut state.first));
    tensors.insert_vector("second", &take(&mut state.second));
    if let Some(best) = &mut state.best {
        tensors.insert_vector("best", &take(&mut best.theta));
    }
    for (k, (_, numbers)) in state.trajectory.iter_mut().enumerate() {
        tensors.insert_vector(format!("trajectory.{k}"), &take(numbers));
    }
    SavedState::new(METHOD, &(state, begun), tensors)
}

/// What a pass has summed.
pub(super) fn saved_pass(so_far: &CurvatureSoFar) -> SavedState {
    let mut tensors = Tensors::default();
    let m = so_far.sum.nrows();
    tensors.insert_matrix("sum", so_far.sum.as_ref());
    SavedState::new(PASS, &(so_far.rows, m), tensors).after(format!("after example {}", so_far.rows))
}

/// What an earlier run left.
pub(super) enum Earlier {
    /// The pass for the closed form.
    Pass(CurvatureSoFar),
    /// The steps, and what was found out before them.
    Steps(Box<FixedMeanState>, Begun),
}

/// What an earlier run left, if it left something.
///
/// # Errors
/// When it is another method's, or damaged.
pub(super) fn earlier(keeper: &mut Keeper<'_>) -> Result<Option<Earlier>, LaplaceError> {
    let Some(saved) = keeper.earlier() else { return Ok(None) };
    if saved.method == PASS {
        let ((rows, m), mut tensors) = saved.open::<(usize, usize)>(PASS)?;
        return Ok(Some(Earlier::Pass(CurvatureSoFar { rows, sum: tensors.matrix("sum", m, m)? })));
    }
    let ((mut state, begun), mut tensors) = saved.open::<(FixedMeanState, Begun)>(METHOD)?;
    let mut vector = |name: &str| {
        let length = tensors.shape(name).map_or(0, |shape| shape.iter().product());
        tensors.vector(name, length)
    };
    state.theta = vector("theta")?;
    state.first = vector("first")?;
    state.second = vector("second")?;
    if let Some(best) = &mut state.best {
        best.theta = vector("best")?;
    }
    for (k, (_, numbers)) in state.trajectory.iter_mut().enumerate() {
        *numbers = vector(&format!("trajectory.{k}"))?;
    }
    Ok(Some(Earlier::Steps(Box::new(state), begun)))
}
