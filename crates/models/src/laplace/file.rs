//! A model to its file and back. The curvature is saved as it was summed, so that a model can be continued with further data; loading factors it
//! again, which gives the posterior that was saved.

use super::header::{LaplaceHeader, for_header, listed};
use super::model::in_precision;
use super::tensors::{add_posterior, curvature};
use super::{Fitted, LaplaceModel, SavedPrecision};
use crate::calibration::{Calibration, NetworkRecalibration};
use crate::network::{add_network, is_single, take_network};
use crate::rows::TrainingRows;
use posterior_laplace::learned::LearnedPosterior;
use posterior_laplace::saved::{read_selection, selected, sums};
use posterior_laplace::{FisherEstimate, Laplace, RestoredCurvature, SavedPosterior};
use posterior_networks::{Architecture, Graph};
use posterior_store::{Container, StoreError, Tensors};
use std::path::Path;

impl LaplaceModel {
    /// Writes the file in one atomic step: the network and the sums of the curvature (lower triangles), in all `4 C^2` bytes for each dense block of `C` weights, and 8 for the fingerprint of each row.
    ///
    /// # Errors
    /// [`StoreError::Write`]; an older file is untouched then.
    pub fn save(&self, path: &Path) -> Result<(), StoreError> {
        self.container().write(path)
    }

    /// All that stands in its file.
    pub(crate) fn container(&self) -> Container<LaplaceHeader> {
        let mut tensors = Tensors::default();
        in_precision!(&self.numbers, fitted => {
            add_network(&fitted.network, &mut tensors);
            add_posterior(&fitted.laplace, &mut tensors);
        });
        self.training.write(&mut tensors);
        self.calibration.write(&mut tensors);
        Container { header: self.header.clone(), tensors }
    }

    /// Reads and checks a file.
    ///
    /// # Errors
    /// A [`StoreError`] that says what is wrong with it.
    pub fn load(path: &Path) -> Result<Self, StoreError> {
        Self::from_container(Container::read(path)?)
    }

    pub(crate) fn from_container(container: Container<LaplaceHeader>) -> Result<Self, StoreError> {
        let Container { header, tensors } = container;
        if header.method != LaplaceHeader::METHOD {
            let (own, expected) = (&header.method, LaplaceHeader::METHOD);
            return Err(tensors.corrupt(format!("its method is `{own}`, expected `{expected}`")));
        }
        let architecture =
            Architecture::from_toml(&header.network.architecture).map_err(|e| tensors.corrupt(e))?;
        let graph = architecture.graph().map_err(|e| tensors.corrupt(e))?;
        match is_single(&tensors) {
            true => restored::<f32>(graph, header, tensors),
            false => restored::<f64>(graph, header, tensors),
        }
    }
}

fn restored<T: SavedPrecision>(
    graph: Graph,
    header: LaplaceHeader,
    mut tensors: Tensors,
) -> Result<LaplaceModel, StoreError> {
    let training = TrainingRows::read(&mut tensors)?;
    let records = NetworkRecalibration::records(header.recalibration.as_ref());
    let calibration = Calibration::read(records, header.base_likelihood.target_width(), &mut tensors)?;
    let network = take_network::<T>(graph, &mut tensors)?;
    let selection = read_selection(network.graph(), &header.selected, &mut tensors)?;
    let precisions = tensors.vector("prior.precisions", header.group_count)?;
    let mode = tensors.vector("mode", selection.len())?;
    let curvature = match header.options.approximation.form() {
        Some(form) => {
            let estimate = match header.options.approximation {
                posterior_laplace::Approximation::Kronecker(estimate) => estimate,
                _ => FisherEstimate::Exact,
            };
            RestoredCurvature::Sums(sums(&network, &selection, form, estimate, &mut tensors)?)
        }
        None if header.options.approximation.is_learned() => {
            RestoredCurvature::Learned(LearnedPosterior::read(
                &network,
                &selection,
                &header.options,
                &header.base_likelihood,
                header.summary.learned.as_ref(),
                &mut tensors,
            )?)
        }
        None => curvature(&network, &selection, &header.summary.fit, &mut tensors)?,
    };
    if let Some((name, _)) = tensors.iter().next() {
        return Err(tensors.corrupt(format!("tensor `{name}` belongs to nothing")));
    }
    let saved = SavedPosterior {
        options: header.options.clone(),
        selection,
        base_likelihood: header.base_likelihood.clone(),
        noise_variance: header.noise_variance,
        precisions,
        mode,
        curvature,
        summary: header.summary.clone(),
    };
    let laplace = Laplace::restore(&network, saved).map_err(|e| tensors.corrupt(e))?;
    Ok(LaplaceModel { header, numbers: T::either(Fitted { network, laplace }), training, calibration })
}

/// Parts of a header that follow from a posterior.
pub(super) fn describe<T: SavedPrecision>(laplace: &Laplace<T>, header: &mut LaplaceHeader) {
    let groups = laplace.prior().names();
    header.base_likelihood = laplace.base_likelihood().clone();
    header.noise_variance = laplace.noise_variance();
    header.selected = selected(laplace.selection()).0;
    header.prior_groups = listed(groups);
    header.group_count = groups.len();
    header.summary = for_header(laplace.summary.clone(), groups.len());
}
