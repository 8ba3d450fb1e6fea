//! The inducing-point objective and its stochastic gradients.

use super::targets::TargetRows;
use crate::GpError;
use crate::data::same_width;
use crate::iterative::descent::squared_features;
use crate::iterative::problem::FreshFeatures;
use faer::{Accum, Mat, MatRef};
use posterior_kernels::matrix::KernelMatrix;
use posterior_kernels::{Kernel, cross};
use posterior_linalg::Real;
use posterior_linalg::dense::{multiply_into, product};
use posterior_linalg::operator::{Dense, LinearOperator};
use posterior_linalg::random::Streams;
use posterior_linalg::solve::{SolveError, largest_eigenvalue, largest_eigenvalue_from_subset};
use posterior_linalg::tiles::pieces;
use rand::seq::index;
use serde::{Deserialize, Serialize};

/// Rows of a block when all rows are passed over, and of the sample that curvatures are estimated from.
const BLOCK: usize = 512;

/// How the gradient `σ² K_ZZ α` of the regulariser is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum InducingRegulariser {
    /// By fresh random features each step, as published.
    Features {
        /// Features; 100 in the thesis.
        count: usize,
    },
    /// By the product itself, `m²` kernel entries: no randomness, and no dearer than the data term when m is at most the batch.
    Exact,
}

/// Everything that defines an inducing-point problem.
pub struct InducingProblem<'a, T: Real> {
    pub(super) kernel: &'a dyn Kernel<T>,
    pub(super) x: MatRef<'a, T>,
    pub(super) z: MatRef<'a, T>,
    pub(super) noise: &'a [T],
    pub(super) targets: &'a dyn TargetRows<T>,
    pub(super) features: Option<&'a dyn FreshFeatures<T>>,
    pub(super) inducing: KernelMatrix<T>,
    mean_noise: f64,
}

impl<'a, T: Real> InducingProblem<'a, T> {
    /// A problem at inputs x (n x D) with noise variances (n), on inducing inputs z (m x D); `features` are of z, for the regulariser that wants them.
    ///
    /// # Errors
    /// [`GpError::Shape`], [`GpError::Empty`] or [`GpError::NoiseNotPositive`].
    pub fn new(
        kernel: &'a dyn Kernel<T>,
        x: MatRef<'a, T>,
        z: MatRef<'a, T>,
        noise: &'a [T],
        targets: &'a dyn TargetRows<T>,
        features: Option<&'a dyn FreshFeatures<T>>,
    ) -> Result<Self, GpError> {
        same_width("noise variances", x.nrows(), noise.len())?;
        same_width("columns of the inducing inputs", x.ncols(), z.ncols())?;
        if x.nrows() == 0 || z.nrows() == 0 || targets.columns() == 0 {
            return Err(GpError::Empty { what: "the inducing-point problem" });
        }
        if let Some((row, value)) =
            noise.iter().enumerate().find(|(_, v)| !(Real::is_finite(**v) && **v > T::ZERO))
        {
            return Err(GpError::NoiseNotPositive { row, value: value.to_f64() });
        }
        let mean_noise = noise.iter().map(|v| v.to_f64()).sum::<f64>() / noise.len() as f64;
        let inducing = KernelMatrix::new(kernel, z);
        Ok(Self { kernel, x, z, noise, targets, features, inducing, mean_noise })
    }

    /// `(m, s)`
    pub fn shape(&self) -> (usize, usize) {
        (self.z.nrows(), self.targets.columns())
    }

    fn weight(&self, i: usize) -> T {
        T::from_f64(self.mean_noise / self.noise[i].to_f64())
    }

    /// `k(x_I, Z)`, r x m.
    fn cross_rows(&self, rows: &[usize]) -> Mat<T> {
        let x = Mat::from_fn(rows.len(), self.x.ncols(), |a, d| self.x[(rows[a], d)]);
        cross(self.kernel, x.as_ref(), self.z)
    }

    /// `K_ZX W ε`, m x s: one pass over all rows, `n m` kernel entries.
    pub(super) fn pulled_noise(&self) -> Mat<T> {
        let (m, s) = self.shape();
        let mut out = Mat::zeros(m, s);
        for piece in pieces(self.x.nrows(), BLOCK) {
            let rows: Vec<usize> = piece.collect();
            let (_, mut noise) = self.targets.rows(&rows);
            scale_rows(&mut noise, |a| self.weight(rows[a]));
            let block = self.cross_rows(&rows);
            multiply_into(out.as_mut(), Accum::Add, block.transpose(), noise.as_ref(), T::ONE);
        }
        out
    }

    /// An unbiased gradient (m x s) at `point`, and the misfits `K_IZ α - z_I` (r x s) of the batch. With `pulled` (`K_ZX W ε`) the noise
    /// stands in the regulariser.
    pub(super) fn gradient(
        &self,
        point: MatRef<'_, T>,
        batch: &[usize],
        regulariser: InducingRegulariser,
        pulled: Option<&Mat<T>>,
        seed: u64,
    ) -> Result<(Mat<T>, Mat<T>), GpError> {
        let block = self.cross_rows(batch);
        let mut misfit = product(block.as_ref(), point);
        let (function, noise) = self.targets.rows(batch);
        let mut inner = &misfit - &function;
        misfit = &inner - &noise;
        if pulled.is_none() {
            inner = misfit.clone();
        }
        let scale = T::from_f64(self.x.nrows() as f64 / batch.len() as f64);
        scale_rows(&mut inner, |a| scale * self.weight(batch[a]));
        let mut out = product(block.transpose(), inner.as_ref());
        let regular = match regulariser {
            InducingRegulariser::Exact => self.inducing.multiply(point),
            InducingRegulariser::Features { count } => {
                let features = self.features.ok_or(GpError::NoFeatures)?.features(count, seed)?;
                squared_features(&features, point)
            }
        };
        out += regular * faer::Scale(T::from_f64(self.mean_noise));
        if let Some(pulled) = pulled {
            out -= pulled;
        }
        Ok((out, misfit))
    }

    /// A stable step size times n for momentum ρ and batches of r rows: the rule of dual descent with the curvatures of this objective,
    /// `1 / [λ₁(H) (1 + 2ρ)/(2(1 + ρ)) + n max_i ‖k_i‖² W_i / (2r(1 - ρ))]`, estimated from 512 rows.
    pub(super) fn automatic_step(&self, batch: usize, momentum: f64, seed: u64) -> Result<f64, GpError> {
        let n = self.x.nrows();
        let mut rng = Streams::new(seed).stream("gp/inducing/curvature");
        let rows = index::sample(&mut rng, n, BLOCK.min(n)).into_vec();
        let mut sample = self.cross_rows(&rows);
        scale_rows(&mut sample, |a| Real::sqrt(self.weight(rows[a])));
        let gram = &sample * sample.transpose();
        let longest = (0..rows.len()).fold(0.0, |largest: f64, a| largest.max(gram[(a, a)].to_f64()));
        let fit = largest_eigenvalue(&Dense::new(gram), 30, seed)? * n as f64 / rows.len() as f64;
        let prior = largest_eigenvalue_from_subset(&self.inducing, BLOCK, seed)?;
        let eigenvalue = fit + self.mean_noise * prior;
        let stochastic = n as f64 * longest / (2.0 * batch as f64 * (1.0 - momentum));
        let step = n as f64 / (eigenvalue * (1.0 + 2.0 * momentum) / (2.0 * (1.0 + momentum)) + stochastic);
        if step.is_finite() {
            Ok(step)
        } else {
            Err(SolveError::Setting {
                what: "the automatic step size",
                value: step,
                needed: "finite: the kernel is zero or not finite",
            }
            .into())
        }
    }

    /// Norms of the targets, estimated from the rows of a sample; for judging misfits.
    pub(super) fn target_norms(&self, seed: u64) -> Vec<f64> {
        let n = self.x.nrows();
        let mut rng = Streams::new(seed).stream("gp/inducing/norms");
        let rows = index::sample(&mut rng, n, BLOCK.min(n)).into_vec();
        let (function, noise) = self.targets.rows(&rows);
        let total = &function + &noise;
        let scale = n as f64 / rows.len() as f64;
        (0..total.ncols())
            .map(|j| {
                let squares: f64 = total.col_as_slice(j).iter().map(|v| v.to_f64() * v.to_f64()).sum();
                (scale * squares).sqrt()
            })
            .collect()
    }
}

fn scale_rows<T: Real>(matrix: &mut Mat<T>, factor: impl Fn(usize) -> T) {
    let factors: Vec<T> = (0..matrix.nrows()).map(factor).collect();
    for j in 0..matrix.ncols() {
        matrix.col_as_slice_mut(j).iter_mut().zip(&factors).for_each(|(v, &f)| *v *= f);
    }
}

#[cfg(test)]
mod tests {
    use super::super::targets::StoredTargets;
    use super::*;
    use crate::iterative::tests::{RootFeatures, normal, root};
    use posterior_kernels::{KernelExpression, gram};

    #[test]
    fn both_forms_have_one_gradient_and_batches_are_unbiased() {
        let (n, m) = (14, 5);
        let kernel: Box<dyn Kernel<f64>> =
            "matern32".parse::<KernelExpression>().unwrap().build(&["a".into(), "b".into()]).unwrap();
        let (x, z) = (normal(n, 2, "x"), normal(m, 2, "z"));
        let noise: Vec<f64> = (0..n).map(|i| 0.3 + 0.02 * i as f64).collect();
        let (function, errors, alpha) = (normal(n, 2, "f"), normal(n, 2, "e"), normal(m, 2, "alpha"));
        let targets = StoredTargets::new(function.as_ref(), Some(errors.as_ref())).unwrap();
        let k_zz = gram(&*kernel, z.as_ref());
        let features = RootFeatures(root(&k_zz));
        let problem =
            InducingProblem::new(&*kernel, x.as_ref(), z.as_ref(), &noise, &targets, Some(&features))
                .unwrap();
        // The gradient by its formula.
        let k = cross(&*kernel, x.as_ref(), z.as_ref());
        let mean = noise.iter().sum::<f64>() / n as f64;
        let misfit = &k * &alpha - &function - &errors;
        let weighted = Mat::from_fn(n, 2, |i, j| misfit[(i, j)] * mean / noise[i]);
        let expected = k.transpose() * weighted + &k_zz * &alpha * faer::Scale(mean);
        let all: Vec<usize> = (0..n).collect();
        let pulled = problem.pulled_noise();
        for pulled in [None, Some(&pulled)] {
            let found =
                problem.gradient(alpha.as_ref(), &all, InducingRegulariser::Exact, pulled, 0).unwrap();
            assert!((&found.0 - &expected).norm_max() < 1e-12);
            assert!((&found.1 - &misfit).norm_max() < 1e-12);
            // Batches of two and three features: the mean of 20,000 within 4.5 standard errors.
            let mut batches = crate::iterative::stochastic::row_batches(n, 2, Default::default(), 1);
            let draws = 20_000;
            let (mut sum, mut squares) = (Mat::<f64>::zeros(m, 2), Mat::<f64>::zeros(m, 2));
            for draw in 0..draws {
                let batch = batches.batch(draw);
                let regulariser = InducingRegulariser::Features { count: 3 };
                let one =
                    problem.gradient(alpha.as_ref(), &batch, regulariser, pulled, draw as u64).unwrap().0;
                sum += &one;
                squares += Mat::from_fn(m, 2, |i, j| one[(i, j)].powi(2));
            }
            for j in 0..2 {
                for i in 0..m {
                    let mean = sum[(i, j)] / draws as f64;
                    let error = ((squares[(i, j)] / draws as f64 - mean * mean) / draws as f64).sqrt();
                    assert!((mean - expected[(i, j)]).abs() < 4.5 * error);
                }
            }
        }
    }
}
