//! The sums of an interrupted fit, to go on from.

use super::header::SelectedRecord;
use super::tensors::{add_selection, add_sums, read_selection, sums};
use super::{NetworkRecord, SavedPrecision};
use crate::ModelError;
use posterior_laplace::accumulate::FitSums;
use posterior_laplace::{Accumulator, FisherEstimate, Form};
use posterior_likelihoods::OutputLikelihood;
use posterior_networks::Network;
use posterior_store::{Checkpoint, Identity, StoreError, Tensors};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::path::Path;

const METHOD: &str = "laplace checkpoint";

/// Where the sums stand; their matrices are tensors.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct State {
    /// Which entries are summed.
    form: Form,
    /// How the Fisher matrix is estimated.
    estimate: FisherEstimate,
    /// The uncertain weights.
    selected: Vec<SelectedRecord>,
    /// What was summed so far.
    fit: FitSums,
}

/// What a fit's sums depend on.
pub(super) fn identity(
    network: &NetworkRecord,
    (files, examples): (&[String], usize),
    likelihood: &OutputLikelihood,
) -> Result<Identity, StoreError> {
    let likelihood = serde_json::to_value(likelihood)?;
    let settings =
        json!({ "the network": network.sha256, "the likelihood or noise": likelihood.to_string() });
    Ok(Identity { settings, data: json!({ "files": files, "examples": examples }).to_string() })
}

/// Writes the sums.
pub(super) fn save(path: &Path, identity: &Identity, sums: &Accumulator) -> Result<(), StoreError> {
    let mut tensors = Tensors::default();
    add_sums(sums, &mut tensors);
    let selected = add_selection(sums.selection(), &mut tensors);
    let state = State { form: sums.form(), estimate: sums.estimate(), selected, fit: *sums.fit() };
    Checkpoint { method: METHOD.into(), identity: identity.clone(), state }.write(tensors, path)
}

/// Reads sums that were made for the same fit.
pub(super) fn load<T: SavedPrecision>(
    path: &Path,
    identity: &Identity,
    network: &Network<T>,
) -> Result<Accumulator, ModelError> {
    let remedy = "start without --resume, or name another file with --checkpoint";
    let (State { form, estimate, selected, fit }, mut tensors) =
        Checkpoint::<State>::read(path, METHOD, identity, remedy)?;
    let selection = read_selection(network.graph(), &selected, &mut tensors)?;
    let blocks = sums(network, &selection, form, estimate, &mut tensors)?;
    let mut accumulator = Accumulator::new(network, &selection, form, estimate)?;
    accumulator.restore(blocks, fit).map_err(|e| tensors.corrupt(e))?;
    Ok(accumulator)
}
