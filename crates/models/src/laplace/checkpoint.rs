//! What a fit keeps on the way, in a file to go on from.

use crate::ModelError;
use crate::record::{DataRecord, NetworkRecord};
use posterior_laplace::{FitOptions, SavedState};
use posterior_likelihoods::OutputLikelihood;
use posterior_notes::fixes::CHECKPOINT;
use posterior_store::{Checkpoint, Identity, StoreError, json};
use serde::{Deserialize, Serialize};
use serde_json::Value;
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
pub(crate) fn identity(
    network: &NetworkRecord,
    data: &DataRecord,
    likelihood: &OutputLikelihood,
    options: &FitOptions,
) -> Result<Identity, StoreError> {
    let likelihood = posterior_store::to_shown_value(likelihood)?;
    // Sums know their own form, and are the same whatever is done with them.
    let searched = options.approximation.form().is_none();
    let mut own = posterior_store::to_shown_value(&searched.then_some(options))?;
    if let Some(own) = own.as_object_mut() {
        // How much may be used is no part of what is found.
        own.remove("memory");
    }
    let settings = json!({
        "the network": network.sha256,
        "the likelihood or noise": likelihood.to_string(),
        "options": own,
        // Scores of other rows would be none that further ones could be compared with.
        "the validation data": data.held_out.as_ref().filter(|_| searched && options.chooses_on_unseen()),
    });
    let DataRecord { files, sha256, examples, inputs, .. } = data;
    let data = json!({ "files": files, "sha256": sha256, "examples": examples, "inputs": inputs });
    Ok(Identity { settings, data: data.to_string() })
}

/// Writes a state.
pub(crate) fn save(path: &Path, identity: &Identity, state: &SavedState) -> Result<(), StoreError> {
    let SavedState { method, progress, facts, tensors, problem } = state.clone();
    if let Some(problem) = problem {
        return Err(StoreError::State(serde::ser::Error::custom(problem)));
    }
    let state = State { of: method, progress, facts };
    Checkpoint { method: METHOD.into(), identity: identity.clone(), state }.write(tensors, path)
}

/// Reads what the same fit left.
pub(crate) fn load(path: &Path, identity: &Identity) -> Result<SavedState, ModelError> {
    let remedy = format!("start without --resume, or name another file with {CHECKPOINT}");
    let (State { of, progress, facts }, tensors) =
        Checkpoint::<State>::read(path, METHOD, identity, &remedy)?;
    Ok(SavedState { method: of, progress, facts, tensors, problem: None })
}
