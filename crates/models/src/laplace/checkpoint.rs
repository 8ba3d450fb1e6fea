//! The sums of an interrupted fit, to go on from.

use super::header::{SelectedRecord, selected};
use super::tensors::{Tensors, add_sums, read_selection, sums};
use super::{LaplaceModelError, NetworkRecord, SavedPrecision};
use crate::model::{Container, ModelFileError, Tensor};
use posterior_laplace::accumulate::FitSums;
use posterior_laplace::{Accumulator, FisherEstimate, Form};
use posterior_likelihoods::OutputLikelihood;
use posterior_networks::Network;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// What a checkpoint was made for: all must be the same to go on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CheckpointHeader {
    /// `laplace checkpoint`.
    pub method: String,
    /// SHA-256 of the network's file.
    pub network: Option<String>,
    /// Names of the data files.
    pub files: Vec<String>,
    /// Examples in all.
    pub examples: usize,
    /// The likelihood.
    pub likelihood: OutputLikelihood,
    /// Which entries are summed.
    pub form: Form,
    /// How the Fisher matrix is estimated.
    pub estimate: FisherEstimate,
    /// The uncertain weights.
    pub selected: Vec<SelectedRecord>,
    /// What was summed so far.
    pub fit: FitSums,
}

impl CheckpointHeader {
    const METHOD: &str = "laplace checkpoint";
}

/// What identifies a fit.
pub(super) struct Identity<'a> {
    pub(super) network: &'a NetworkRecord,
    pub(super) files: &'a [String],
    pub(super) examples: usize,
    pub(super) likelihood: &'a OutputLikelihood,
}

/// Writes the sums.
pub(super) fn save(
    path: &Path,
    identity: &Identity<'_>,
    sums: &Accumulator,
) -> Result<(), LaplaceModelError> {
    let mut tensors = Tensors::new();
    add_sums(sums, &mut tensors);
    let (records, positions) = selected(sums.selection());
    if !positions.is_empty() {
        tensors.insert("selected".into(), Tensor::new(vec![positions.len()], positions));
    }
    let header = CheckpointHeader {
        method: CheckpointHeader::METHOD.into(),
        network: identity.network.sha256.clone(),
        files: identity.files.to_vec(),
        examples: identity.examples,
        likelihood: identity.likelihood.clone(),
        form: sums.form(),
        estimate: sums.estimate(),
        selected: records,
        fit: *sums.fit(),
    };
    Ok(Container { header, tensors }.write(path)?)
}

/// Reads sums that were made for the same fit.
pub(super) fn load<T: SavedPrecision>(
    path: &Path,
    identity: &Identity<'_>,
    network: &Network<T>,
) -> Result<Accumulator, LaplaceModelError> {
    let corrupt = |reason: String| ModelFileError::Corrupt { path: path.into(), reason };
    let mut container = Container::<CheckpointHeader>::read(path)?;
    let header = container.header.clone();
    let same = [
        (header.method == CheckpointHeader::METHOD, "it is no checkpoint of a fit"),
        (header.network == identity.network.sha256, "it belongs to another network"),
        (header.files == identity.files && header.examples == identity.examples, "it belongs to other data"),
        (header.likelihood == *identity.likelihood, "it belongs to another likelihood or noise"),
    ];
    if let Some((_, problem)) = same.iter().find(|(fine, _)| !fine) {
        let problem = format!("cannot go on from {}: {problem}; start without --resume", path.display());
        return Err(LaplaceModelError::Request(problem));
    }
    let selection = read_selection(network.graph(), &header.selected, &mut container, path)?;
    let blocks = sums(network, &selection, header.form, header.estimate, &mut container, path)?;
    let mut accumulator = Accumulator::new(network, &selection, header.form, header.estimate)?;
    accumulator.restore(blocks, header.fit).map_err(|e| corrupt(e.to_string()))?;
    Ok(accumulator)
}
