//! Stochastic gradients of the primal and the dual objective.

use crate::GpError;
use crate::iterative::problem::Problem;
use faer::{Mat, MatRef};
use posterior_linalg::Real;
use posterior_linalg::dense::product;
use posterior_linalg::random::Streams;
use posterior_optim::Batches;
use rand::RngExt;
use rand::seq::index;
use serde::{Deserialize, Serialize};

/// Where the noise of sampling targets stands in the primal objective.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NoisePlacement {
    /// In the targets: `½‖f + ε - Kα‖²`.
    Targets,
    /// In the regulariser: `½‖f - Kα‖² + ½σ²‖α - ε/σ²‖²_K`. The same gradient, hence the same minimiser, with less variance at first.
    #[default]
    Regulariser,
}

/// How the gradient `σ² K u` of the primal's regulariser is estimated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Regulariser {
    /// `σ² Φ Φᵀ u` with fresh random features each step, as published.
    Features {
        /// Features; 100 in the thesis.
        count: usize,
    },
    /// `σ² (n/d) K_J u_J` with d random columns, for kernels without features.
    Columns {
        /// Columns.
        count: usize,
    },
    /// The whole product: no randomness, `n²` entries.
    Exact,
}

/// A gradient, or an unbiased estimate of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Gradient {
    /// Of the primal objective: a batch of the data term, `(n/r) K_I W_I (K_I α - z_I)`, and an estimate of the regulariser.
    Primal {
        /// Where the targets' noise stands.
        noise: NoisePlacement,
        /// The regulariser's estimate.
        regulariser: Regulariser,
    },
    /// Of the primal objective, exactly.
    PrimalFull,
    /// Of the dual: `(n/r) Σ_I e_i (K̃_i α - z_i)`, what dual descent uses.
    DualCoordinates,
    /// Of the dual: `(n/r) Σ_I e_i K_i α + noise α - z`, unbiased too, but with noise that does not vanish at the solution.
    DualProductOnly,
    /// Of the dual: `Φ Φᵀ α + noise α - z` with fresh random features.
    DualFeatures {
        /// Features.
        count: usize,
    },
    /// Of the dual, exactly.
    DualFull,
}

impl Gradient {
    /// Whether it belongs to the dual objective.
    pub fn is_dual(self) -> bool {
        !matches!(self, Self::Primal { .. } | Self::PrimalFull)
    }

    /// Whether it looks at batches of rows.
    pub fn is_by_batch(self) -> bool {
        matches!(self, Self::Primal { .. } | Self::DualCoordinates | Self::DualProductOnly)
    }
}

/// One stochastic gradient (n x s) at `point` for a batch of rows, and the batch's residuals `K̃_I α - z_I` (r x s).
///
/// Everything random but the batch is drawn from `seed`. Cost: primal `2 r` kernel rows and the regulariser; dual `r` kernel rows.
///
/// # Errors
/// [`GpError::NoFeatures`] when features are wanted and the problem has none, and whatever their source says.
///
/// # Panics
/// When `point` is not n x s.
pub fn gradient_estimate<T: Real>(
    gradient: Gradient,
    problem: &Problem<'_, T>,
    point: MatRef<'_, T>,
    batch: &[usize],
    seed: u64,
) -> Result<(Mat<T>, Mat<T>), GpError> {
    let system = problem.system;
    let (n, s) = problem.shape();
    let matrix = system.matrix();
    let noise = system.noise();
    // Products of the batch's rows, of all rows, or with features.
    let mut rows = Mat::<T>::zeros(batch.len(), s);
    let full = match gradient {
        Gradient::DualFull | Gradient::PrimalFull => Some(matrix.multiply(point)),
        Gradient::DualFeatures { count } => Some(feature_product(problem, point, count, seed)?),
        _ => None,
    };
    match &full {
        Some(product) => rows = Mat::from_fn(batch.len(), s, |a, j| product[(batch[a], j)]),
        None => matrix.apply_rows(batch, point, rows.as_mut()),
    }
    let mut residuals = rows.clone();
    problem.add_rest(batch, point, |column| column, &mut residuals);
    let scale = T::from_f64(n as f64 / batch.len() as f64);
    let dual_rest = |i: usize, j: usize| noise[i] * point[(i, j)] - problem.target(i, j);
    let mut out = Mat::zeros(n, s);
    match (gradient, full) {
        (Gradient::DualFull | Gradient::DualFeatures { .. }, Some(product)) => {
            out = Mat::from_fn(n, s, |i, j| product[(i, j)] + dual_rest(i, j));
        }
        (Gradient::PrimalFull, Some(product)) => {
            let mean = system.mean_noise();
            let inner = Mat::from_fn(n, s, |i, j| {
                T::from_f64(mean / noise[i].to_f64()) * (product[(i, j)] + dual_rest(i, j))
            });
            out = matrix.multiply(inner.as_ref());
        }
        (Gradient::DualCoordinates, _) => {
            for (a, &i) in batch.iter().enumerate() {
                for j in 0..s {
                    out[(i, j)] += scale * residuals[(a, j)];
                }
            }
        }
        (Gradient::DualProductOnly, _) => {
            out = Mat::from_fn(n, s, dual_rest);
            for (a, &i) in batch.iter().enumerate() {
                for j in 0..s {
                    out[(i, j)] += scale * rows[(a, j)];
                }
            }
        }
        (Gradient::Primal { noise: placement, regulariser }, _) => {
            let mean = system.mean_noise();
            let weight = |i: usize| T::from_f64(mean / noise[i].to_f64());
            let reduced = placement == NoisePlacement::Regulariser;
            let inner = Mat::from_fn(batch.len(), s, |a, j| {
                let i = batch[a];
                let target = if reduced { problem.function[(i, j)] } else { problem.target(i, j) };
                scale * weight(i) * (rows[(a, j)] - target)
            });
            matrix.apply_columns(batch, inner.as_ref(), out.as_mut());
            let pulled = Mat::from_fn(n, s, |i, j| {
                let shift = match problem.noise {
                    Some(noise) if reduced => weight(i) * noise[(i, j)],
                    _ => T::ZERO,
                };
                T::from_f64(mean) * point[(i, j)] - shift
            });
            out += match regulariser {
                Regulariser::Exact => matrix.multiply(pulled.as_ref()),
                Regulariser::Features { count } => feature_product(problem, pulled.as_ref(), count, seed)?,
                Regulariser::Columns { count } => column_product(problem, pulled.as_ref(), count, seed),
            };
        }
        // The other gradients have a full product, computed above.
        (Gradient::DualFull | Gradient::DualFeatures { .. } | Gradient::PrimalFull, None) => {}
    }
    Ok((out, residuals))
}

/// `Φ Φᵀ u`
fn feature_product<T: Real>(
    problem: &Problem<'_, T>,
    u: MatRef<'_, T>,
    count: usize,
    seed: u64,
) -> Result<Mat<T>, GpError> {
    let features = problem.features.ok_or(GpError::NoFeatures)?.features(count, seed)?;
    Ok(squared_features(&features, u))
}

/// `Φ (Φᵀ u)` for Φ of m x d.
pub(in crate::iterative) fn squared_features<T: Real>(features: &Mat<T>, u: MatRef<'_, T>) -> Mat<T> {
    product(features.as_ref(), product(features.transpose(), u).as_ref())
}

/// `(n/d) K_J u_J` for d columns drawn without replacement.
fn column_product<T: Real>(problem: &Problem<'_, T>, u: MatRef<'_, T>, count: usize, seed: u64) -> Mat<T> {
    let (n, s) = problem.shape();
    let count = count.clamp(1, n);
    let mut rng = Streams::new(seed).stream("gp/regulariser");
    let columns = index::sample(&mut rng, n, count).into_vec();
    let scale = T::from_f64(n as f64 / count as f64);
    let picked = Mat::from_fn(count, s, |a, j| scale * u[(columns[a], j)]);
    let mut out = Mat::zeros(n, s);
    problem.system.matrix().apply_columns(&columns, picked.as_ref(), out.as_mut());
    out
}

/// Draws the batch of a step (through which gradients of all rows are watched, too), and a seed for what else is random in it.
pub(super) fn draw(batches: &mut Batches, step: usize, seed: u64) -> (Vec<usize>, u64) {
    let child = Streams::new(seed).child("gp/gradient", step as u64).stream("seed").random();
    (batches.batch(step), child)
}
