//! What a fit keeps on the way, in a file to go on from.

use super::NetworkRecord;
use crate::ModelError;
use posterior_laplace::{FitOptions, SavedState};
use posterior_likelihoods::OutputLikelihood;
use posterior_store::{Checkpoint, Identity, StoreError};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::path::Path;

const METHOD: &str = "laplace checkpoint";

/// A [`SavedState`] without its arrays, which are tensors.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct State {
    of: String,
    progress: String,
    facts: Value,
}

/// What a fit's state depends on.
pub(super) fn identity(
    network: &NetworkRecord,
    (files, examples): (&[String], usize),
    likelihood: &OutputLikelihood,
    options: &FitOptions,
) -> Result<Identity, StoreError> {
    let likelihood = serde_json::to_value(likelihood)?;
    let settings = json!({
        "the network": network.sha256,
        "the likelihood or noise": likelihood.to_string(),
        // Sums know their own form, and are the same whatever is done with them.
        "options": options.approximation.form().is_none().then_some(options),
    });
    Ok(Identity { settings, data: json!({ "files": files, "examples": examples }).to_string() })
}

/// Writes a state.
pub(super) fn save(path: &Path, identity: &Identity, state: &SavedState) -> Result<(), StoreError> {
    let SavedState { method, progress, facts, tensors } = state.clone();
    let state = State { of: method, progress, facts };
    Checkpoint { method: METHOD.into(), identity: identity.clone(), state }.write(tensors, path)
}

/// Reads what the same fit left.
pub(super) fn load(path: &Path, identity: &Identity) -> Result<SavedState, ModelError> {
    let remedy = "start without --resume, or name another file with --checkpoint";
    let (State { of, progress, facts }, tensors) = Checkpoint::<State>::read(path, METHOD, identity, remedy)?;
    Ok(SavedState { method: of, progress, facts, tensors })
}
