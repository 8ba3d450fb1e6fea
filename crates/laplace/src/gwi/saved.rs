//! What is kept on the way: the prior, and the steps since.

use super::prior::FoundPrior;
use crate::LaplaceError;
use crate::keep::{Keeper, SavedState};
use posterior_gp::generalised::GeneralisedState;
use posterior_store::{Tensors, numbers_from_tensors, numbers_to_tensors};
use serde::{Deserialize, Serialize};

const METHOD: &str = "gwi";

/// Everything that was found so far.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct GwiState {
    pub(super) prior: FoundPrior,
    pub(super) training: GeneralisedState,
}

/// A state with its long vectors as tensors.
pub(super) fn saved(state: &GwiState) -> SavedState {
    let step = state.training.training.step;
    let mut kept = SavedState::new(METHOD, state, Tensors::default()).after(format!("after step {step}"));
    numbers_to_tensors(&mut kept.facts, METHOD, &mut kept.tensors);
    kept
}

/// What an earlier run left, if it left something.
///
/// # Errors
/// When it is another method's, or damaged.
pub(super) fn earlier(keeper: &mut Keeper<'_>) -> Result<Option<GwiState>, LaplaceError> {
    let Some(mut saved) = keeper.earlier() else { return Ok(None) };
    numbers_from_tensors(&mut saved.facts, &saved.method, &mut saved.tensors);
    let (state, _) = saved.open::<GwiState>(METHOD)?;
    Ok(Some(state))
}
