//! A posterior's arrays as named tensors, and back.

use super::SavedPrecision;
use super::header::{SelectedRecord, selected, selection};
use crate::model::{Container, ModelFileError, Tensor, matrix, matrix_tensor, packed_tensor, unpack};
use faer::Mat;
use posterior_laplace::accumulate::{BlockSum, FitSums, SumMatrix};
use posterior_laplace::fit::least_numbers;
use posterior_laplace::function_space::FunctionSpace;
use posterior_laplace::{Accumulator, FisherEstimate, Form, Laplace, LaplaceError, RestoredCurvature};
use posterior_networks::{Array, Graph, Network, Selection};
use std::collections::BTreeMap;
use std::path::Path;

/// Named tensors.
pub(super) type Tensors = BTreeMap<String, Tensor>;

/// The weights of a network, by name.
pub(super) fn add_network<T: SavedPrecision>(network: &Network<T>, tensors: &mut Tensors) {
    for (slot, array) in network.graph().parameters().iter().zip(network.parameters()) {
        let tensor = Tensor { shape: slot.shape.clone(), values: T::values(array.values()) };
        tensors.insert(format!("network.{}", slot.name), tensor);
    }
}

/// The network of a graph.
pub(super) fn network<T: SavedPrecision, H>(
    graph: Graph,
    container: &mut Container<H>,
    path: &Path,
) -> Result<Network<T>, ModelFileError> {
    let corrupt = |reason: String| ModelFileError::Corrupt { path: path.into(), reason };
    let mut parameters = Vec::new();
    for slot in graph.parameters() {
        let name = format!("network.{}", slot.name);
        let values = T::from_values(container.take_any(&name, &slot.shape, path)?);
        let values = values
            .ok_or_else(|| corrupt(format!("tensor `{name}` has another precision than the others")))?;
        parameters.push(Array::new(slot.shape.clone(), values));
    }
    Network::new(graph, parameters).map_err(|e| corrupt(e.to_string()))
}

/// The sums of a curvature; only lower triangles are kept.
pub(super) fn add_sums(sums: &Accumulator, tensors: &mut Tensors) {
    for (i, block) in sums.blocks().iter().enumerate() {
        let mut add = |part: &str, tensor| {
            tensors.insert(format!("sums.{i}.{part}"), tensor);
        };
        match &block.matrix {
            SumMatrix::Dense(m) => add("matrix", packed_tensor(m.as_ref())),
            SumMatrix::Diagonal(v) => add("diagonal", Tensor::new(vec![v.len()], v.clone())),
            SumMatrix::Kronecker { outputs, inputs, .. } => {
                add("outputs", packed_tensor(outputs.as_ref()));
                add("inputs", packed_tensor(inputs.as_ref()));
            }
        }
    }
}

/// Saved sums for the weights of a network.
pub(super) fn sums<T: SavedPrecision, H>(
    network: &Network<T>,
    selection: &Selection,
    form: Form,
    estimate: FisherEstimate,
    container: &mut Container<H>,
    path: &Path,
) -> Result<Vec<BlockSum>, ModelFileError> {
    let corrupt = |e: LaplaceError| ModelFileError::Corrupt { path: path.into(), reason: e.to_string() };
    // The layout follows from network and selection; its sizes are checked against the file before they are allocated.
    let needed = least_numbers(network.graph(), selection, form);
    let present: u64 = container.tensors.values().map(|t| t.values.len() as u64).sum();
    if needed > present {
        let reason = format!("its curvature needs {needed} numbers, but it holds {present}");
        return Err(ModelFileError::Corrupt { path: path.into(), reason });
    }
    let empty = Accumulator::new(network, selection, form, estimate).map_err(corrupt)?;
    let mut blocks = empty.blocks().to_vec();
    for (i, block) in blocks.iter_mut().enumerate() {
        let mut packed = |part: &str, n: usize| -> Result<Mat<f64>, ModelFileError> {
            Ok(unpack(&container.take(&format!("sums.{i}.{part}"), &[n * (n + 1) / 2], path)?, n))
        };
        match &mut block.matrix {
            SumMatrix::Dense(m) => *m = packed("matrix", m.nrows())?,
            SumMatrix::Diagonal(v) => *v = container.take(&format!("sums.{i}.diagonal"), &[v.len()], path)?,
            SumMatrix::Kronecker { outputs, inputs, .. } => {
                *outputs = packed("outputs", outputs.nrows())?;
                *inputs = packed("inputs", inputs.nrows())?;
            }
        }
    }
    Ok(blocks)
}

/// All arrays of a posterior but the network's.
pub(super) fn add_posterior<T: SavedPrecision>(
    laplace: &Laplace<T>,
    tensors: &mut Tensors,
) -> (Vec<SelectedRecord>, &'static str) {
    let mut vector = |name: &str, values: &[f64]| {
        tensors.insert(name.into(), Tensor::new(vec![values.len()], values.to_vec()));
    };
    vector("prior.precisions", laplace.prior().precisions());
    vector("mode", laplace.mode());
    let (records, positions) = selected(laplace.selection());
    if !positions.is_empty() {
        vector("selected", &positions);
    }
    let kind = if let Some(sums) = laplace.sums() {
        add_sums(sums, tensors);
        "sums"
    } else if let Some((factor, residual)) = laplace.low_rank_parts() {
        tensors.insert("low_rank.factor".into(), matrix_tensor(factor.as_ref()));
        tensors.insert("low_rank.residual".into(), Tensor::new(vec![residual.len()], residual));
        "low_rank"
    } else {
        if let Some(points) = laplace.function_space() {
            let mut array = |name: &str, array: &Array<T>| {
                let tensor = Tensor { shape: array.shape().to_vec(), values: T::values(array.values()) };
                tensors.insert(name.into(), tensor);
            };
            array("points.inputs", points.inputs());
            array("points.roots", points.roots());
            tensors.insert("points.kernel".into(), packed_tensor(points.gram().as_ref()));
        }
        "function_space"
    };
    (records, kind)
}

/// The selection of a container.
pub(super) fn read_selection<H>(
    graph: &Graph,
    records: &[SelectedRecord],
    container: &mut Container<H>,
    path: &Path,
) -> Result<Selection, ModelFileError> {
    let count: usize = records.iter().filter_map(|r| r.entries).fold(0, usize::saturating_add);
    let positions = if count > 0 { container.take("selected", &[count], path)? } else { Vec::new() };
    selection(graph, records, &positions)
        .map_err(|reason| ModelFileError::Corrupt { path: path.into(), reason })
}

/// The curvature of a container that is not one of sums.
pub(super) fn curvature<T: SavedPrecision, H>(
    network: &Network<T>,
    selection: &Selection,
    fit: &FitSums,
    container: &mut Container<H>,
    path: &Path,
) -> Result<RestoredCurvature<T>, ModelFileError> {
    let corrupt = |reason: String| ModelFileError::Corrupt { path: path.into(), reason };
    let d = selection.len();
    if let Some(tensor) = container.tensors.get("low_rank.factor") {
        let [_, rank] = tensor.shape[..] else {
            return Err(corrupt("its low-rank factor is no matrix".into()));
        };
        let factor = matrix(&container.take("low_rank.factor", &[d, rank], path)?, d, rank);
        return Ok(RestoredCurvature::LowRank {
            factor,
            residual: container.take("low_rank.residual", &[d], path)?,
        });
    }
    let mut array = |name: &str| -> Result<Array<T>, ModelFileError> {
        let shape = container.tensors.get(name).map(|t| t.shape.clone()).unwrap_or_default();
        if shape.len() < 2 {
            return Err(corrupt(format!("tensor `{name}` is missing or has shape {shape:?}")));
        }
        let values = T::from_values(container.take_any(name, &shape, path)?);
        Ok(Array::new(
            shape,
            values.ok_or_else(|| corrupt(format!("tensor `{name}` has another precision")))?,
        ))
    };
    let (inputs, roots) = (array("points.inputs")?, array("points.roots")?);
    let n = roots.rows();
    let packed = n.checked_mul(n + 1).ok_or_else(|| corrupt("its kernel's size overflows".into()))? / 2;
    let lower = unpack(&container.take("points.kernel", &[packed], path)?, n);
    let gram = Mat::from_fn(n, n, |i, j| lower[(i.max(j), i.min(j))]);
    let points = FunctionSpace::from_parts(network, selection, inputs, roots, gram, fit.examples);
    Ok(RestoredCurvature::FunctionSpace(points.map_err(|e| corrupt(e.to_string()))?))
}
