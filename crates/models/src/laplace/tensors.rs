//! A posterior's arrays as named tensors, and back.

use super::SavedPrecision;
use faer::Mat;
use posterior_laplace::accumulate::FitSums;
use posterior_laplace::function_space::FunctionSpace;
use posterior_laplace::saved::{add_selection, add_sums};
use posterior_laplace::{Ella, Laplace, RestoredCurvature};
use posterior_networks::{Array, Network, Selection};
use posterior_store::{StoreError, Tensors};

/// All arrays of a posterior but the network's.
pub(super) fn add_posterior<T: SavedPrecision>(laplace: &Laplace<T>, tensors: &mut Tensors) {
    tensors.insert_vector("prior.precisions", laplace.prior().precisions());
    tensors.insert_vector("mode", laplace.mode());
    add_selection(laplace.selection(), tensors);
    if laplace.add_learned(tensors) {
        return;
    }
    if let Some(sums) = laplace.sums() {
        add_sums(sums, tensors);
    } else if let Some((factor, residual)) = laplace.low_rank_parts() {
        tensors.insert_matrix("low_rank.factor", factor.as_ref());
        tensors.insert_vector("low_rank.residual", &residual);
    } else if let Some(ella) = laplace.ella() {
        ella.write(tensors);
    } else if let Some(points) = laplace.function_space() {
        for (name, array) in [("points.inputs", points.inputs()), ("points.roots", points.roots())] {
            tensors.insert(name, array.shape().to_vec(), array.values());
        }
        tensors.insert_triangle("points.kernel", points.gram().as_ref());
    }
}

/// A curvature that is not one of sums.
pub(super) fn curvature<T: SavedPrecision>(
    network: &Network<T>,
    selection: &Selection,
    fit: &FitSums,
    tensors: &mut Tensors,
) -> Result<RestoredCurvature<T>, StoreError> {
    if tensors.shape("ella.basis").is_some() {
        return Ok(RestoredCurvature::Ella(Ella::read(selection, tensors)?));
    }
    let d = selection.len();
    if let Some(shape) = tensors.shape("low_rank.factor") {
        let [_, rank] = shape[..] else { return Err(tensors.corrupt("its low-rank factor is no matrix")) };
        return Ok(RestoredCurvature::LowRank {
            factor: tensors.matrix("low_rank.factor", d, rank)?,
            residual: tensors.vector("low_rank.residual", d)?,
        });
    }
    let mut array = |name: &str| -> Result<Array<T>, StoreError> {
        let shape = tensors.shape(name).unwrap_or_default();
        if shape.len() < 2 {
            return Err(tensors.corrupt(format!("tensor `{name}` is missing or has shape {shape:?}")));
        }
        let values = tensors.take(name, &shape)?;
        Ok(Array::new(shape, values))
    };
    let (inputs, roots) = (array("points.inputs")?, array("points.roots")?);
    let n = roots.rows();
    let lower = tensors.triangle("points.kernel", n)?;
    let gram = Mat::from_fn(n, n, |i, j| lower[(i.max(j), i.min(j))]);
    let points = FunctionSpace::from_parts(network, selection, inputs, roots, gram, fit.examples);
    Ok(RestoredCurvature::FunctionSpace(points.map_err(|e| tensors.corrupt(e))?))
}
