//! An output layer alone: covariances from features, without a backward pass.

use super::Head;
use faer::Mat;
use posterior_linalg::parallel;
use posterior_linear::latent::{Latent, Posteriors, Wanted, row_major};
use posterior_linear::structure::ConditionedBlock;
use posterior_networks::{Array, Matrix, Precision, product};

impl Head {
    /// Whether these posteriors can be predicted from features alone.
    pub fn predicts<T: Precision>(&self, posteriors: &Posteriors<T>) -> bool {
        posteriors.conditioned().all(|(_, own)| !matches!(own[0], ConditionedBlock::LowRank(_)))
    }

    /// Adds `J H^-1 J^T` for features `u` `[examples, features]`.
    pub(crate) fn add_covariances<T: Precision>(
        &self,
        u: &Array<T>,
        posteriors: &Posteriors<T>,
        wanted: Wanted,
        covariances: &mut [Vec<f64>],
    ) {
        let head = self;
        for (range, posteriors) in posteriors.conditioned() {
            for (block, out) in posteriors.iter().zip(covariances.iter_mut()) {
                match block {
                    ConditionedBlock::Dense(dense) if range.start == head.outputs * head.features => {
                        // The biases on their own: the same covariance for every input.
                        add_constant(&dense.covariance(), wanted, out);
                    }
                    ConditionedBlock::Dense(dense) => add_dense(head, u, &dense.covariance(), wanted, out),
                    ConditionedBlock::Diagonal(own) if range.start == head.outputs * head.features => {
                        add_constant(
                            &Mat::from_fn(head.outputs, head.outputs, |i, j| {
                                if i == j { own.variances[i] } else { 0.0 }
                            }),
                            wanted,
                            out,
                        );
                    }
                    ConditionedBlock::Diagonal(own) => add_diagonal(head, u, &own.variances, wanted, out),
                    ConditionedBlock::Kronecker(own) => {
                        let basis: Vec<T> = row_major(own.column_basis.as_ref());
                        let table: Vec<T> = row_major(own.variances.as_ref());
                        let (p, c, n) = (head.features, head.outputs, u.rows());
                        let mut rotated = vec![T::ZERO; n * p];
                        product(
                            &mut rotated,
                            false,
                            Matrix::new(u.values(), n, p),
                            Matrix::new(&basis, p, p),
                        );
                        rotated.iter_mut().for_each(|v| *v = *v * *v);
                        let mut weights = vec![T::ZERO; n * c];
                        product(
                            &mut weights,
                            false,
                            Matrix::new(&rotated, n, p),
                            Matrix::new(&table, c, p).transposed(),
                        );
                        let basis = &own.row_basis;
                        match wanted {
                            // V_oo = sum_i B_oi^2 w_i: one product for all examples.
                            Wanted::Diagonal => {
                                let squares: Vec<T> = row_major(
                                    Mat::from_fn(c, c, |i, j| basis[(i, j)] * basis[(i, j)]).as_ref(),
                                );
                                let mut variances = vec![T::ZERO; n * c];
                                product(
                                    &mut variances,
                                    false,
                                    Matrix::new(&weights, n, c),
                                    Matrix::new(&squares, c, c).transposed(),
                                );
                                out.iter_mut().zip(&variances).for_each(|(o, v)| *o += v.to_f64());
                            }
                            Wanted::Full => parallel::chunks(out, c * c, 1, |i, out| {
                                let w = &weights[i * c..(i + 1) * c];
                                let scaled = Mat::from_fn(c, c, |o, k| basis[(o, k)] * w[k].to_f64());
                                let mut own = Mat::zeros(c, c);
                                faer::linalg::matmul::matmul(
                                    own.as_mut(),
                                    faer::Accum::Replace,
                                    &scaled,
                                    basis.transpose(),
                                    1.0,
                                    faer::Par::Seq,
                                );
                                (0..c * c).for_each(|k| out[k] += own[(k / c, k % c)]);
                            }),
                        }
                    }
                    // Heads are predicted from features only where every block has one of the forms above.
                    ConditionedBlock::LowRank(_) => {}
                }
            }
        }
    }
}

/// The same covariance for every example.
fn add_constant(covariance: &Mat<f64>, wanted: Wanted, out: &mut [f64]) {
    let c = covariance.nrows();
    for place in out.chunks_exact_mut(Latent::size(c, wanted)) {
        match wanted {
            Wanted::Diagonal => (0..c).for_each(|i| place[i] += covariance[(i, i)]),
            Wanted::Full => (0..c * c).for_each(|k| place[k] += covariance[(k / c, k % c)]),
        }
    }
}

/// `V_oo = sum_j u_j^2 var_oj + var_o`.
fn add_diagonal<T: Precision>(head: &Head, u: &Array<T>, variances: &[f64], wanted: Wanted, out: &mut [f64]) {
    let (p, c, n) = (head.features, head.outputs, u.rows());
    let squares: Vec<T> = u.values().iter().map(|v| *v * *v).collect();
    let table: Vec<T> = variances[..c * p].iter().map(|v| T::from_f64(*v)).collect();
    let mut own = vec![T::ZERO; n * c];
    product(&mut own, false, Matrix::new(&squares, n, p), Matrix::new(&table, c, p).transposed());
    let (size, step) = (Latent::size(c, wanted), if wanted == Wanted::Full { c + 1 } else { 1 });
    for (i, place) in out.chunks_exact_mut(size).enumerate() {
        for o in 0..c {
            let bias = if head.bias { variances[c * p + o] } else { 0.0 };
            place[o * step] += own[i * c + o].to_f64() + bias;
        }
    }
}

/// `V_ok = [u, 1]^T S_ok [u, 1]` with `S_ok` the covariance between the weights of outputs `o` and `k`: one product for each pair of outputs.
fn add_dense<T: Precision>(
    head: &Head,
    u: &Array<T>,
    covariance: &Mat<f64>,
    wanted: Wanted,
    out: &mut [f64],
) {
    let (c, n) = (head.outputs, u.rows());
    let (features, width) = head.augmented(u);
    let place = |o: usize, j: usize| head.place(o, j);
    let size = Latent::size(c, wanted);
    let mut product_rows = vec![T::ZERO; n * width];
    for o in 0..c {
        let others = if wanted == Wanted::Full { 0..o + 1 } else { o..o + 1 };
        for k in others {
            let own = Mat::from_fn(width, width, |i, j| covariance[(place(o, i), place(k, j))]);
            let table: Vec<T> = row_major(own.as_ref());
            product(
                &mut product_rows,
                false,
                Matrix::new(&features, n, width),
                Matrix::new(&table, width, width),
            );
            for (i, (left, right)) in
                product_rows.chunks_exact(width).zip(features.chunks_exact(width)).enumerate()
            {
                let v = left.iter().zip(right).map(|(a, b)| *a * *b).sum::<T>().to_f64();
                match wanted {
                    Wanted::Diagonal => out[i * size + o] += v,
                    Wanted::Full => {
                        out[i * size + o * c + k] += v;
                        if k != o {
                            out[i * size + k * c + o] += v;
                        }
                    }
                }
            }
        }
    }
}
