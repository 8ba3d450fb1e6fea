//! A posterior's arrays as named tensors, and back.

use super::SavedPrecision;
use super::header::{SelectedRecord, selected, selection};
use faer::Mat;
use posterior_laplace::accumulate::{BlockSum, FitSums, SumMatrix};
use posterior_laplace::fit::least_numbers;
use posterior_laplace::function_space::FunctionSpace;
use posterior_laplace::{Accumulator, FisherEstimate, Form, Laplace, RestoredCurvature};
use posterior_networks::{Array, Graph, Network, Selection};
use posterior_store::{StoreError, TensorValues, Tensors};

/// Prefix of the network's tensors.
const NETWORK: &str = "network.";

/// The weights of a network, by name.
pub(super) fn add_network<T: SavedPrecision>(network: &Network<T>, tensors: &mut Tensors) {
    for (slot, array) in network.graph().parameters().iter().zip(network.parameters()) {
        tensors.insert(format!("{NETWORK}{}", slot.name), slot.shape.clone(), array.values());
    }
}

/// Whether the network's weights are in single precision.
pub(super) fn is_single(tensors: &Tensors) -> bool {
    tensors.iter().any(|(name, t)| name.starts_with(NETWORK) && matches!(t.values, TensorValues::F32(_)))
}

/// The network of a graph.
pub(super) fn network<T: SavedPrecision>(
    graph: Graph,
    tensors: &mut Tensors,
) -> Result<Network<T>, StoreError> {
    let slots = graph.parameters().iter();
    let parameters = slots
        .map(|slot| {
            let values = tensors.take(&format!("{NETWORK}{}", slot.name), &slot.shape)?;
            Ok(Array::new(slot.shape.clone(), values))
        })
        .collect::<Result<_, StoreError>>()?;
    Network::new(graph, parameters).map_err(|e| tensors.corrupt(e))
}

/// The sums of a curvature; only lower triangles are kept.
pub(super) fn add_sums(sums: &Accumulator, tensors: &mut Tensors) {
    for (i, block) in sums.blocks().iter().enumerate() {
        let name = |part: &str| format!("sums.{i}.{part}");
        match &block.matrix {
            SumMatrix::Dense(m) => tensors.insert_triangle(name("matrix"), m.as_ref()),
            SumMatrix::Diagonal(v) => tensors.insert_vector(name("diagonal"), v),
            SumMatrix::Kronecker { outputs, inputs, .. } => {
                tensors.insert_triangle(name("outputs"), outputs.as_ref());
                tensors.insert_triangle(name("inputs"), inputs.as_ref());
            }
        }
    }
}

/// Saved sums for the weights of a network.
pub(super) fn sums<T: SavedPrecision>(
    network: &Network<T>,
    selection: &Selection,
    form: Form,
    estimate: FisherEstimate,
    tensors: &mut Tensors,
) -> Result<Vec<BlockSum>, StoreError> {
    // The layout follows from network and selection; its sizes are checked against the file before they are allocated.
    let needed = least_numbers(network.graph(), selection, form);
    let present: u64 = tensors.iter().map(|(_, t)| t.values.numbers().len() as u64).sum();
    if needed > present {
        return Err(tensors.corrupt(format!("its curvature needs {needed} numbers, but it holds {present}")));
    }
    let empty = Accumulator::new(network, selection, form, estimate).map_err(|e| tensors.corrupt(e))?;
    let mut blocks = empty.blocks().to_vec();
    for (i, block) in blocks.iter_mut().enumerate() {
        let name = |part: &str| format!("sums.{i}.{part}");
        match &mut block.matrix {
            SumMatrix::Dense(m) => *m = tensors.triangle(&name("matrix"), m.nrows())?,
            SumMatrix::Diagonal(v) => *v = tensors.vector(&name("diagonal"), v.len())?,
            SumMatrix::Kronecker { outputs, inputs, .. } => {
                *outputs = tensors.triangle(&name("outputs"), outputs.nrows())?;
                *inputs = tensors.triangle(&name("inputs"), inputs.nrows())?;
            }
        }
    }
    Ok(blocks)
}

/// The weights that are uncertain: positions of single entries; the rest is the header's.
pub(super) fn add_selection(chosen: &Selection, tensors: &mut Tensors) -> Vec<SelectedRecord> {
    let (records, positions) = selected(chosen);
    if !positions.is_empty() {
        tensors.insert_vector("selected", &positions);
    }
    records
}

/// All arrays of a posterior but the network's.
pub(super) fn add_posterior<T: SavedPrecision>(laplace: &Laplace<T>, tensors: &mut Tensors) {
    tensors.insert_vector("prior.precisions", laplace.prior().precisions());
    tensors.insert_vector("mode", laplace.mode());
    add_selection(laplace.selection(), tensors);
    if let Some(sums) = laplace.sums() {
        add_sums(sums, tensors);
    } else if let Some((factor, residual)) = laplace.low_rank_parts() {
        tensors.insert_matrix("low_rank.factor", factor.as_ref());
        tensors.insert_vector("low_rank.residual", &residual);
    } else if let Some(points) = laplace.function_space() {
        for (name, array) in [("points.inputs", points.inputs()), ("points.roots", points.roots())] {
            tensors.insert(name, array.shape().to_vec(), array.values());
        }
        tensors.insert_triangle("points.kernel", points.gram().as_ref());
    }
}

/// The selection again.
pub(super) fn read_selection(
    graph: &Graph,
    records: &[SelectedRecord],
    tensors: &mut Tensors,
) -> Result<Selection, StoreError> {
    let count: usize = records.iter().filter_map(|r| r.entries).fold(0, usize::saturating_add);
    let positions = if count > 0 { tensors.vector("selected", count)? } else { Vec::new() };
    selection(graph, records, &positions).map_err(|reason| tensors.corrupt(reason))
}

/// A curvature that is not one of sums.
pub(super) fn curvature<T: SavedPrecision>(
    network: &Network<T>,
    selection: &Selection,
    fit: &FitSums,
    tensors: &mut Tensors,
) -> Result<RestoredCurvature<T>, StoreError> {
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
