//! Weight matrices: the gradient of output `o` is `sum_t delta_ot a_t^T`, and its variance is a weighted sum of squares in the rotated coordinates of the block.

use faer::linalg::matmul::matmul;
use faer::{Accum, MatMut, MatRef, Par};
use posterior_linalg::parallel;
use posterior_linear::latent::{Latent, Wanted};
use posterior_networks::{Array, Matrix, Precision, product};

/// `rows basis`: coordinates in a basis.
fn rotate<T: Precision>(values: Array<T>, basis: Option<&Vec<T>>) -> Array<T> {
    let Some(basis) = basis else { return values };
    let size = *values.shape().last().unwrap_or(&1);
    let mut out = Array::zeros(values.shape().to_vec());
    let rows = values.len() / size.max(1);
    product(
        out.values_mut(),
        false,
        Matrix::new(values.values(), rows, size),
        Matrix::new(basis, size, size),
    );
    out
}

/// A weight matrix as it is stored: bases of rows and columns (None for the identity) and, by posterior, variances in them.
pub(super) struct Rotated<'a, T> {
    pub(super) row_basis: Option<&'a Vec<T>>,
    pub(super) column_basis: Option<&'a Vec<T>>,
    pub(super) variances: &'a [Vec<T>],
}

/// Adds the contribution of a weight matrix with inputs `[examples, positions, q]` and sensitivities `[examples * C, positions, c]`.
pub(super) fn add_outer<T: Precision>(
    matrix: &Rotated<'_, T>,
    (inputs, sensitivities, transposed): (Array<T>, Array<T>, bool),
    wanted: Wanted,
    covariances: &mut [Vec<f64>],
) {
    let Rotated { row_basis, column_basis, variances } = *matrix;
    let (for_inputs, for_outputs) =
        if transposed { (row_basis, column_basis) } else { (column_basis, row_basis) };
    let a = rotate(inputs, for_inputs);
    let delta = rotate(sensitivities, for_outputs);
    if a.shape()[1] == 1 && !transposed {
        one_position(a, &delta, variances, wanted, covariances);
    } else {
        many_positions(&a, &delta, transposed, variances, wanted, covariances);
    }
}

/// `V = sum_i delta_i delta_i^T w_i` with `w = (a o a) variances^T`. Flops for each example: `2 c q + c C^2`.
fn one_position<T: Precision>(
    mut a: Array<T>,
    delta: &Array<T>,
    variances: &[Vec<T>],
    wanted: Wanted,
    covariances: &mut [Vec<f64>],
) {
    let (examples, q) = (a.shape()[0], a.shape()[2]);
    let c = delta.shape()[2];
    let outputs = delta.shape()[0] / examples.max(1);
    a.values_mut().iter_mut().for_each(|v| *v = *v * *v);
    let size = Latent::size(outputs, wanted);
    let mut weights = vec![T::ZERO; examples * c];
    for (own, out) in variances.iter().zip(covariances) {
        let table = Matrix::new(own, c, q);
        product(&mut weights, false, Matrix::new(a.values(), examples, q), table.transposed());
        parallel::chunks(out, size, 16, |n, out| {
            let w = &weights[n * c..(n + 1) * c];
            let row = |o: usize| &delta.values()[(n * outputs + o) * c..][..c];
            match wanted {
                Wanted::Diagonal => (0..outputs).for_each(|o| out[o] += weighted(row(o), row(o), w)),
                Wanted::Full => {
                    for o in 0..outputs {
                        for k in 0..=o {
                            let v = weighted(row(o), row(k), w);
                            out[o * outputs + k] += v;
                            if k < o {
                                out[k * outputs + o] += v;
                            }
                        }
                    }
                }
            }
        });
    }
}

/// `sum_i x_i y_i w_i`, in eight partial sums that stay in a register.
fn weighted<T: Precision>(x: &[T], y: &[T], w: &[T]) -> f64 {
    let mut sums = [T::ZERO; 8];
    let whole = x.len() / 8 * 8;
    for i in (0..whole).step_by(8) {
        for k in 0..8 {
            sums[k] += x[i + k] * y[i + k] * w[i + k];
        }
    }
    let tail: T = (whole..x.len()).map(|i| x[i] * y[i] * w[i]).sum();
    sums.into_iter().map(|v: T| v.to_f64()).sum::<f64>() + tail.to_f64()
}

/// One rotated gradient `[rows, columns]` for each output of each example. Flops for each example: `2 C T c q + C^2 c q`.
fn many_positions<T: Precision>(
    a: &Array<T>,
    delta: &Array<T>,
    transposed: bool,
    variances: &[Vec<T>],
    wanted: Wanted,
    covariances: &mut [Vec<f64>],
) {
    let (examples, positions, q) = (a.shape()[0], a.shape()[1], a.shape()[2]);
    let c = delta.shape()[2];
    let outputs = delta.shape()[0] / examples.max(1);
    let size = Latent::size(outputs, wanted);
    let roots: Vec<Vec<T>> =
        variances.iter().map(|v| v.iter().map(|v| posterior_linalg::Real::sqrt(*v)).collect()).collect();
    let results: Vec<Vec<f64>> = parallel::map_with(
        examples,
        1,
        || (vec![T::ZERO; outputs * c * q], vec![T::ZERO; outputs * c * q], vec![T::ZERO; outputs * outputs]),
        |(gradients, white, inner), n| {
            let a =
                MatRef::from_row_major_slice(&a.values()[n * positions * q..][..positions * q], positions, q);
            for (o, out) in gradients.chunks_exact_mut(c * q).enumerate() {
                let d = &delta.values()[(n * outputs + o) * positions * c..][..positions * c];
                let d = MatRef::from_row_major_slice(d, positions, c);
                let (left, right) = if transposed { (a, d) } else { (d, a) };
                let out = MatMut::from_row_major_slice_mut(out, left.ncols(), right.ncols());
                matmul(out, Accum::Replace, left.transpose(), right, T::ONE, Par::Seq);
            }
            let mut out = Vec::with_capacity(size * roots.len());
            for root in &roots {
                for (white, gradient) in white.chunks_exact_mut(c * q).zip(gradients.chunks_exact(c * q)) {
                    white.iter_mut().zip(gradient).zip(root).for_each(|((w, g), r)| *w = *g * *r);
                }
                let z = MatRef::from_row_major_slice(white, outputs, c * q);
                match wanted {
                    Wanted::Diagonal => out.extend((0..outputs).map(|o| {
                        let row = &white[o * c * q..(o + 1) * c * q];
                        row.iter().map(|v| v.to_f64() * v.to_f64()).sum::<f64>()
                    })),
                    Wanted::Full => {
                        let place = MatMut::from_row_major_slice_mut(inner, outputs, outputs);
                        matmul(place, Accum::Replace, z, z.transpose(), T::ONE, Par::Seq);
                        out.extend(inner.iter().map(|v| v.to_f64()));
                    }
                }
            }
            out
        },
    );
    for (n, result) in results.iter().enumerate() {
        for (out, own) in covariances.iter_mut().zip(result.chunks_exact(size)) {
            out[n * size..(n + 1) * size].iter_mut().zip(own).for_each(|(o, v)| *o += v);
        }
    }
}
