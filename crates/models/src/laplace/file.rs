//! A model to its file and back. The curvature is saved as it was summed, so that a model can be continued with further data; loading factors it
//! again, which gives the posterior that was saved.

use super::header::{LaplaceHeader, for_header, listed};
use super::model::in_precision;
use super::tensors::{Tensors, add_network, add_posterior, curvature, network, read_selection, sums};
use super::{Fitted, LaplaceModel, LaplaceModelError, SavedPrecision};
use crate::model::{Container, ModelFileError, TensorValues, add_fingerprints, fingerprints};
use posterior_laplace::{FisherEstimate, Laplace, RestoredCurvature, SavedPosterior};
use posterior_networks::{Architecture, Graph};
use std::path::Path;

/// Prefix of the network's tensors.
const NETWORK: &str = "network.";

impl LaplaceModel {
    /// Writes the file in one atomic step: the network and the sums of the curvature (lower triangles), in all `4 C^2` bytes for each dense block of `C` weights, and 8 for the fingerprint of each row.
    ///
    /// # Errors
    /// [`ModelFileError::Write`]; an older file is untouched then.
    pub fn save(&self, path: &Path) -> Result<(), LaplaceModelError> {
        let mut tensors = Tensors::new();
        in_precision!(&self.numbers, fitted => {
            add_network(&fitted.network, &mut tensors);
            add_posterior(&fitted.laplace, &mut tensors);
        });
        add_fingerprints(self.fingerprints.as_deref(), &mut tensors);
        Ok(Container { header: self.header.clone(), tensors }.write(path)?)
    }

    /// Reads and checks a file.
    ///
    /// # Errors
    /// A [`ModelFileError`] that says what is wrong with it.
    pub fn load(path: &Path) -> Result<Self, LaplaceModelError> {
        Self::from_container(Container::read(path)?, path)
    }

    pub(crate) fn from_container(
        container: Container<LaplaceHeader>,
        path: &Path,
    ) -> Result<Self, LaplaceModelError> {
        let corrupt = |reason: String| ModelFileError::Corrupt { path: path.into(), reason };
        let header = &container.header;
        if header.method != LaplaceHeader::METHOD {
            return Err(corrupt(format!(
                "its method is `{}`, expected `{}`",
                header.method,
                LaplaceHeader::METHOD
            ))
            .into());
        }
        let graph = Architecture::from_toml(&header.network.architecture)
            .map_err(|e| corrupt(e.to_string()))?
            .graph()
            .map_err(|e| corrupt(e.to_string()))?;
        let single = container
            .tensors
            .iter()
            .any(|(n, t)| n.starts_with(NETWORK) && matches!(t.values, TensorValues::F32(_)));
        if single { restored::<f32>(graph, container, path) } else { restored::<f64>(graph, container, path) }
    }
}

fn restored<T: SavedPrecision>(
    graph: Graph,
    mut container: Container<LaplaceHeader>,
    path: &Path,
) -> Result<LaplaceModel, LaplaceModelError> {
    let corrupt = |reason: String| ModelFileError::Corrupt { path: path.into(), reason };
    let header = container.header.clone();
    let fingerprints = fingerprints(&mut container, path)?;
    let network = network::<T, _>(graph, &mut container, path)?;
    let selection = read_selection(network.graph(), &header.selected, &mut container, path)?;
    let precisions = container.take("prior.precisions", &[header.group_count], path)?;
    let mode = container.take("mode", &[selection.len()], path)?;
    let curvature = match header.options.approximation.form() {
        Some(form) => {
            let estimate = match header.options.approximation {
                posterior_laplace::Approximation::Kronecker(estimate) => estimate,
                _ => FisherEstimate::Exact,
            };
            RestoredCurvature::Sums(sums(&network, &selection, form, estimate, &mut container, path)?)
        }
        None => curvature(&network, &selection, &header.summary.fit, &mut container, path)?,
    };
    if let Some(name) = container.tensors.keys().next() {
        return Err(corrupt(format!("tensor `{name}` belongs to nothing")).into());
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
    let laplace = Laplace::restore(&network, saved).map_err(|e| corrupt(e.to_string()))?;
    Ok(LaplaceModel { header, numbers: T::numbers(Fitted { network, laplace }), fingerprints })
}

/// Parts of a header that follow from a posterior.
pub(super) fn describe<T: SavedPrecision>(laplace: &Laplace<T>, header: &mut LaplaceHeader) {
    let groups = laplace.prior().names();
    header.base_likelihood = laplace.base_likelihood().clone();
    header.noise_variance = laplace.noise_variance();
    header.selected = super::header::selected(laplace.selection()).0;
    header.prior_groups = listed(groups);
    header.group_count = groups.len();
    header.summary = for_header(laplace.summary.clone(), groups.len());
}
