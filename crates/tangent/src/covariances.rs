//! Covariances by one pass back through the network, each layer's in the form that costs least.
//!
//! | block | what is done for each example |
//! |---|---|
//! | Kronecker or diagonal, fully connected | inputs and sensitivities are rotated; `V = sum_i delta'_i delta'_i^T (sum_j var_ij a'_j^2)`: no gradient is formed |
//! | Kronecker or diagonal, convolution | inputs and sensitivities are rotated, then one small gradient for each output |
//! | dense, low rank | rows of the Jacobian are whitened, a few examples at a time |
//! | output layer alone | features only (`head`) |

use crate::curvature::gradients;
use crate::outer::{Rotated, add_outer};
use faer::{Mat, MatRef};
use posterior_linear::latent::{Posteriors, PreparedBlock, Wanted, add_inner_products};
use posterior_networks::{Array, NetworkError, Precision, Selection, Tap, Trace};
use std::collections::BTreeMap;

/// Adds what is said tensor by tensor about the outputs of a batch, under each posterior.
pub(crate) fn add_tapped<T: Precision>(
    trace: &Trace<'_, T>,
    selection: &Selection,
    posteriors: &Posteriors<T>,
    wanted: Wanted,
    covariances: &mut [Vec<f64>],
) -> Result<(), NetworkError> {
    let graph = trace.network().graph();
    let mut tensors: BTreeMap<usize, &PreparedBlock<T>> = BTreeMap::new();
    for block in posteriors.blocks() {
        if let PreparedBlock::Matrix { segment, .. } | PreparedBlock::Vector { segment, .. } = block {
            tensors.insert(selection.parts()[*segment].parameter, block);
        }
    }
    if tensors.is_empty() {
        return Ok(());
    }
    let (tapped, outputs) = (only(trace, selection, &tensors), trace.output().row_len());
    let taps = trace.taps(&tapped, &identity(trace.rows(), graph.output_shape()))?;
    // Weights that several nodes share are one tap, if their uses are alike.
    let mut uses: BTreeMap<usize, usize> = BTreeMap::new();
    taps.iter().for_each(|(_, parameter, _)| *uses.entry(*parameter).or_default() += 1);
    let mut shared: BTreeMap<usize, Array<T>> = BTreeMap::new();
    for (_, parameter, tap) in taps {
        match (tap, tensors.get(&parameter)) {
            (
                Tap::Outer { inputs, sensitivities, transposed },
                Some(PreparedBlock::Matrix { row_basis, column_basis, variances, .. }),
            ) if uses.get(&parameter) == Some(&1) => {
                let (row_basis, column_basis) = (row_basis.as_ref(), column_basis.as_ref());
                let matrix = Rotated { row_basis, column_basis, variances };
                add_outer(&matrix, (inputs, sensitivities, transposed), wanted, covariances);
            }
            (tap, _) => {
                let rows = gradients(tap);
                match shared.get_mut(&parameter) {
                    Some(sum) => sum.values_mut().iter_mut().zip(rows.values()).for_each(|(s, g)| *s += *g),
                    None => drop(shared.insert(parameter, rows)),
                }
            }
        }
    }
    for (parameter, rows) in shared {
        if let Some(block) = tensors.get(&parameter) {
            add_gradients(block, matrix(&rows).as_ref(), outputs, wanted, covariances);
        }
    }
    Ok(())
}

/// The selected tensors that are tapped on the way back.
fn only<T: Precision>(
    trace: &Trace<'_, T>,
    selection: &Selection,
    tensors: &BTreeMap<usize, &PreparedBlock<T>>,
) -> Selection {
    if selection.parts().iter().all(|p| tensors.contains_key(&p.parameter)) {
        return selection.clone();
    }
    let parts = selection.parts().iter();
    let mask: Vec<bool> =
        parts.flat_map(|p| std::iter::repeat_n(tensors.contains_key(&p.parameter), p.length)).collect();
    selection.masked(trace.network().graph(), &mask)
}

/// Rows as a matrix of doubles.
fn matrix<T: Precision>(rows: &Array<T>) -> Mat<f64> {
    let columns = rows.row_len();
    Mat::from_fn(rows.rows(), columns, |i, j| rows.values()[i * columns + j].to_f64())
}

/// The identity as cotangents of each example.
fn identity<T: Precision>(examples: usize, shape: &[usize]) -> Array<T> {
    let outputs: usize = shape.iter().product();
    let mut full = vec![examples * outputs];
    full.extend_from_slice(shape);
    let mut out = Array::zeros(full);
    out.values_mut().chunks_exact_mut(outputs).enumerate().for_each(|(r, row)| row[r % outputs] = T::ONE);
    out
}

/// Adds the contribution of a tensor's gradient rows `[examples * C, entries]`.
fn add_gradients<T: Precision>(
    block: &PreparedBlock<T>,
    rows: MatRef<'_, f64>,
    outputs: usize,
    wanted: Wanted,
    covariances: &mut [Vec<f64>],
) {
    match block {
        PreparedBlock::Vector { posteriors, .. } => {
            for (posterior, out) in posteriors.iter().zip(covariances) {
                add_inner_products(posterior.whiten(rows).as_ref(), outputs, wanted, out);
            }
        }
        PreparedBlock::Matrix { rows: m, columns: n, row_basis, column_basis, variances, .. } => {
            // A weight with several uses that are not alike: its gradients are rotated as matrices.
            let basis = |b: &Option<Vec<T>>, size: usize| {
                b.as_ref().map_or_else(
                    || Mat::identity(size, size),
                    |b| Mat::from_fn(size, size, |i, j| b[i * size + j].to_f64()),
                )
            };
            let (left, right) = (basis(row_basis, *m), basis(column_basis, *n));
            for (own, out) in variances.iter().zip(covariances) {
                let mut white = Mat::zeros(rows.nrows(), rows.ncols());
                for r in 0..rows.nrows() {
                    let gradient = Mat::from_fn(*m, *n, |i, j| rows[(r, i * n + j)]);
                    let rotated = left.transpose() * gradient * &right;
                    for k in 0..m * n {
                        white[(r, k)] = rotated[(k / n, k % n)] * own[k].to_f64().sqrt();
                    }
                }
                add_inner_products(white.as_ref(), outputs, wanted, out);
            }
        }
        PreparedBlock::Rows { .. } => {}
    }
}
