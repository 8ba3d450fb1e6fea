//! An ensemble to its file and back: the members' headers in one, their arrays under a prefix each.

use super::EnsembleModel;
use crate::calibration::Calibration;
use crate::laplace::{LaplaceHeader, LaplaceModel, NetworkRecalibration};
use posterior_store::{Container, StoreError, Tensors};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// An ensemble's description: all of it but the arrays.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EnsembleHeader {
    /// `ensemble`.
    pub method: String,
    /// Names of the members, in order.
    pub names: Vec<String>,
    /// Whether their error bars are left out.
    pub plain: bool,
    /// How predictions of the mixture were recalibrated; none where they were not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recalibration: Option<NetworkRecalibration>,
    /// The members'.
    pub members: Vec<LaplaceHeader>,
}

impl EnsembleHeader {
    /// What `method` says.
    pub const METHOD: &str = "ensemble";
}

/// What stands before the names of a member's arrays.
fn prefix(member: usize) -> String {
    format!("member.{member}.")
}

impl EnsembleModel {
    /// Writes the file in one step, with a copy of all members' arrays.
    pub(super) fn write(&self, path: &Path) -> Result<(), StoreError> {
        let mut tensors = Tensors::default();
        let mut members = Vec::with_capacity(self.members.len());
        for (k, member) in self.members.iter().enumerate() {
            let container = member.container();
            members.push(container.header);
            tensors.extend_under(&prefix(k), container.tensors);
        }
        self.calibration.write(&mut tensors);
        let header = EnsembleHeader {
            method: EnsembleHeader::METHOD.into(),
            names: self.names.clone(),
            plain: self.plain,
            recalibration: self.recalibration.clone(),
            members,
        };
        Container { header, tensors }.write(path)
    }

    /// Reads and checks a file.
    ///
    /// # Errors
    /// A [`StoreError`] that says what is wrong with it.
    pub fn load(path: &Path) -> Result<Self, StoreError> {
        Self::from_container(Container::read(path)?)
    }

    pub(crate) fn from_container(container: Container<EnsembleHeader>) -> Result<Self, StoreError> {
        let Container { header, mut tensors } = container;
        if header.method != EnsembleHeader::METHOD {
            let (own, expected) = (&header.method, EnsembleHeader::METHOD);
            return Err(tensors.corrupt(format!("its method is `{own}`, expected `{expected}`")));
        }
        let members = header.members.into_iter().enumerate().map(|(k, header)| {
            let tensors = tensors.take_under(&prefix(k));
            LaplaceModel::from_container(Container { header, tensors })
        });
        let members = members.collect::<Result<Vec<_>, _>>()?;
        let width = members.first().map_or(0, |first| first.likelihood().target_width());
        let records = NetworkRecalibration::records(header.recalibration.as_ref());
        let calibration = Calibration::read(records, width, &mut tensors)?;
        if let Some((name, _)) = tensors.iter().next() {
            return Err(tensors.corrupt(format!("tensor `{name}` belongs to nothing")));
        }
        let own = Self::of(members, header.names, header.plain).map_err(|e| tensors.corrupt(e))?;
        Ok(Self { recalibration: header.recalibration, calibration, ..own })
    }
}
