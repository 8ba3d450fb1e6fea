//! What is kept on the way.

use crate::LaplaceError;
use crate::checkpointer::{Checkpointer, SavedState};
use posterior_gp::inducing::fixed_mean::{CurvatureSoFar, FixedMeanState};
use posterior_store::Tensors;
use serde::{Deserialize, Serialize};

/// Steps, and the pass for the closed form (all there is, or before the first step).
const METHOD: &str = "fixed-mean";
const PASS: &str = "fixed-mean closed form";

/// What was found out before the first step.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Initialisation {
    /// Prior variances that were tried, with their scores.
    pub(super) amplitudes: Vec<(f64, f64)>,
    /// Variances that rounding had made negative.
    pub(super) clipped: usize,
    /// What was added to a diagonal, relative to its mean.
    pub(super) jitter: f64,
}

/// A state with its long vectors as tensors, and what was found out before its first step.
pub(super) fn saved(state: &FixedMeanState, begun: &Initialisation) -> SavedState {
    SavedState::of(METHOD, &(state, begun))
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
    Steps(Box<FixedMeanState>, Initialisation),
}

/// What an earlier run left, if it left something.
///
/// # Errors
/// When it is another method's, or damaged.
pub(super) fn earlier(checkpointer: &mut Checkpointer<'_>) -> Result<Option<Earlier>, LaplaceError> {
    let Some(saved) = checkpointer.earlier() else { return Ok(None) };
    if saved.method == PASS {
        let ((rows, m), mut tensors) = saved.open::<(usize, usize)>(PASS)?;
        return Ok(Some(Earlier::Pass(CurvatureSoFar { rows, sum: tensors.matrix("sum", m, m)? })));
    }
    let ((state, begun), _) = saved.open::<(FixedMeanState, Initialisation)>(METHOD)?;
    Ok(Some(Earlier::Steps(Box::new(state), begun)))
}
