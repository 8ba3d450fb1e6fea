//! A model to its file and back: headers of all networks in one, their arrays under a prefix each. The curvature is saved as it was summed, so that a model can be continued with further data; loading factors it
//! again, which gives the posterior that was saved.

use super::{NetworkHeader, Networks};
use crate::calibration::{Calibration, NetworkRecalibration};
use crate::method::{StoredNetwork, prefix, read_network};
use crate::model::{Model, Source};
use crate::rows::TrainingRows;
use posterior_store::{Container, StoreError, Tensors};
use serde::{Deserialize, Serialize};

/// All that stands in a file but the arrays.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct FileHeader {
    /// `network`.
    method: String,
    /// Names of the networks of an ensemble, in order; none of one network.
    names: Vec<String>,
    /// Whether the error bars of an ensemble's networks are left out.
    plain: bool,
    /// How predictions of an ensemble were recalibrated; none where they were not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    recalibration: Option<NetworkRecalibration>,
    /// The networks, in order.
    networks: Vec<NetworkHeader>,
}

impl FileHeader {
    /// What `method` says.
    pub(crate) const METHOD: &str = "network";
}

impl Networks<'_> {
    /// The arrays of its file: those of each network and the sums of its curvature (lower triangles), in all `4 C^2` bytes for each dense block of `C` weights, and 8 for the fingerprint of each row.
    pub(crate) fn tensors(&self) -> Tensors {
        let mut tensors = Tensors::default();
        for (k, member) in self.members().iter().enumerate() {
            let mut own = Tensors::default();
            member.predictor.write(&mut own);
            member.training.write(&mut own);
            member.calibration.write(&mut own);
            tensors.extend_under(&prefix(k), own);
        }
        if self.is_ensemble() {
            self.calibration.write(&mut tensors);
        }
        tensors
    }

    /// All that stands in it besides arrays.
    pub(crate) fn file_header(&self) -> FileHeader {
        FileHeader {
            method: FileHeader::METHOD.into(),
            names: self.names().to_vec(),
            plain: self.is_plain(),
            recalibration: self.recalibration().filter(|_| self.is_ensemble()).cloned(),
            networks: self.members().iter().map(|member| member.record.clone()).collect(),
        }
    }
}

impl Model {
    pub(crate) fn of_networks(container: Container<FileHeader>) -> Result<Self, StoreError> {
        let Container { header, mut tensors } = container;
        if header.method != FileHeader::METHOD {
            let (own, expected) = (&header.method, FileHeader::METHOD);
            return Err(tensors.corrupt(format!("its method is `{own}`, expected `{expected}`")));
        }
        let networks = header.networks.into_iter().enumerate();
        let mut members = networks
            .map(|(k, header)| restored(header, tensors.take_under(&prefix(k))))
            .collect::<Result<Vec<Self>, _>>()?;
        let own = match header.names.is_empty() {
            true => match (members.pop(), members.is_empty()) {
                (Some(own), true) => own,
                _ => return Err(tensors.corrupt("its networks have no names")),
            },
            false => {
                let mut own =
                    Self::ensemble(members, header.names, header.plain).map_err(|e| tensors.corrupt(e))?;
                if let Source::Network(source) = &mut own.source {
                    let width = source.output.likelihood.target_width();
                    let records = NetworkRecalibration::records(header.recalibration.as_ref());
                    own.calibration = Calibration::read(records, width, &mut tensors)?;
                    source.record.recalibration = header.recalibration;
                }
                own
            }
        };
        nothing_else(&tensors)?;
        Ok(own)
    }
}

/// One network of a file.
fn restored(header: NetworkHeader, mut tensors: Tensors) -> Result<Model, StoreError> {
    let training = TrainingRows::read(&mut tensors)?;
    let width = header.base_likelihood.target_width();
    let records = NetworkRecalibration::records(header.recalibration.as_ref());
    let calibration = Calibration::read(records, width, &mut tensors)?;
    let stored = StoredNetwork {
        architecture: &header.network.architecture,
        options: &header.options,
        selected: &header.selected,
        groups: header.group_count,
        base_likelihood: &header.base_likelihood,
        noise_variance: header.noise_variance,
        summary: &header.summary,
        preparation: header.data.inputs.preparation().clone(),
    };
    let (predictor, likelihood, integration) = read_network(stored, &mut tensors)?;
    nothing_else(&tensors)?;
    Ok(Model::of_network(header, predictor, (likelihood, integration), training, calibration))
}

/// Refuses arrays that nobody has taken.
fn nothing_else(tensors: &Tensors) -> Result<(), StoreError> {
    match tensors.iter().next() {
        Some((name, _)) => Err(tensors.corrupt(format!("tensor `{name}` belongs to nothing"))),
        None => Ok(()),
    }
}
