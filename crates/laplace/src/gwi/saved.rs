//! What is kept on the way: the prior, and the steps since.

use super::prior::FoundPrior;
use crate::LaplaceError;
use crate::checkpointer::{Checkpointer, SavedState};
use posterior_gp::generalised::GeneralisedState;
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
    SavedState::of(METHOD, state).after(format!("after step {}", state.training.training.step))
}

/// What an earlier run left, if it left something.
///
/// # Errors
/// When it is another method's, or damaged.
pub(super) fn earlier(checkpointer: &mut Checkpointer<'_>) -> Result<Option<GwiState>, LaplaceError> {
    checkpointer.earlier().map(|saved| Ok(saved.open(METHOD)?.0)).transpose()
}
