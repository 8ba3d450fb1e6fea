//! What is to be solved: a system, targets in their two parts, and features for the methods that want them.

use crate::GpError;
use crate::data::same_width;
use faer::{Mat, MatRef};
use posterior_linalg::Real;
use posterior_linalg::operator::LinearOperator;
use posterior_linalg::solve::System;
use posterior_linalg::vectorised::dispatch;

/// Random features that are drawn afresh whenever asked for: `Φ` (n x d) with `E[Φ Φᵀ] = K`.
pub trait FreshFeatures<T: Real>: Send + Sync {
    /// `count` features of all n points, drawn from `seed`. The numbers depend on nothing else.
    ///
    /// # Errors
    /// [`GpError`] when the kernel has no features.
    fn features(&self, count: usize, seed: u64) -> Result<Mat<T>, GpError>;
}

/// `K̃ X = Z` for s right-hand sides at once: `Z = function + noise`, n x s.
///
/// The two parts are told apart because one of the primal losses moves the noise from the targets into the regulariser (spec
/// `stochastic_gaussian_processes`, section 14.3). Data, whose noise is not known, are all function.
#[derive(Clone, Copy)]
pub struct Problem<'a, T: Real> {
    pub(super) system: &'a System<'a, T>,
    pub(super) function: MatRef<'a, T>,
    pub(super) noise: Option<MatRef<'a, T>>,
    pub(super) features: Option<&'a dyn FreshFeatures<T>>,
}

impl<'a, T: Real> Problem<'a, T> {
    /// A problem for the targets' function part and, where there is one, the part that is noise (both n x s).
    ///
    /// # Errors
    /// [`GpError::Shape`] when sizes differ, [`GpError::NotFinite`] for targets.
    pub fn new(
        system: &'a System<'a, T>,
        function: MatRef<'a, T>,
        noise: Option<MatRef<'a, T>>,
    ) -> Result<Self, GpError> {
        same_width("rows of the targets", system.rows(), function.nrows())?;
        if system.rows() == 0 || function.ncols() == 0 {
            return Err(GpError::Empty { what: "the system" });
        }
        check_finite("target", function)?;
        if let Some(noise) = noise {
            same_width("rows of the targets' noise", function.nrows(), noise.nrows())?;
            same_width("columns of the targets' noise", function.ncols(), noise.ncols())?;
            check_finite("noise of target", noise)?;
        }
        Ok(Self { system, function, noise, features: None })
    }

    /// The same with a source of random features.
    pub fn with_features(self, features: &'a dyn FreshFeatures<T>) -> Self {
        Self { features: Some(features), ..self }
    }

    /// The system.
    pub fn system(&self) -> &'a System<'a, T> {
        self.system
    }

    /// `(n, s)`
    pub fn shape(&self) -> (usize, usize) {
        self.function.shape()
    }

    /// Row i of column j of Z.
    #[inline(always)]
    pub(super) fn target(&self, i: usize, j: usize) -> T {
        self.function[(i, j)] + self.noise.map_or(T::ZERO, |noise| noise[(i, j)])
    }

    /// Makes products of a batch's rows of K with `point` (n x k) the residuals of k right-hand sides, told by their columns: `+ noise point - z`.
    pub(super) fn add_rest(
        &self,
        batch: &[usize],
        point: MatRef<'_, T>,
        right: impl Fn(usize) -> usize,
        products: &mut Mat<T>,
    ) {
        let noise = self.system.noise();
        dispatch(
            #[inline(always)]
            || {
                for j in 0..point.ncols() {
                    let right = right(j);
                    for (value, &i) in products.col_as_slice_mut(j).iter_mut().zip(batch) {
                        *value = noise[i].mul_add(point[(i, j)], *value) - self.target(i, right);
                    }
                }
            },
        );
    }

    /// Z, n x s.
    pub fn targets(&self) -> Mat<T> {
        Mat::from_fn(self.function.nrows(), self.function.ncols(), |i, j| self.target(i, j))
    }

    /// True relative residuals `‖z - K̃ x‖ / ‖z‖` of each column, for one product; 0 where a zero target is met exactly.
    ///
    /// # Panics
    /// When `weights` is not n x s.
    pub fn relative_residuals(&self, weights: MatRef<'_, T>) -> Vec<f64> {
        let product = self.system.multiply(weights);
        let norms = self.target_norms();
        (0..product.ncols())
            .map(|j| {
                let squares: f64 = (0..product.nrows())
                    .map(|i| (self.target(i, j) - product[(i, j)]).to_f64().powi(2))
                    .sum();
                if squares == 0.0 { 0.0 } else { squares.sqrt() / norms[j] }
            })
            .collect()
    }

    /// Euclidean norms of the columns of Z.
    pub(super) fn target_norms(&self) -> Vec<f64> {
        let (n, s) = self.shape();
        (0..s).map(|j| (0..n).map(|i| self.target(i, j).to_f64().powi(2)).sum::<f64>().sqrt()).collect()
    }
}

/// The first entry that is not finite, as an error.
pub(super) fn check_finite<T: Real>(what: &'static str, matrix: MatRef<'_, T>) -> Result<(), GpError> {
    for column in 0..matrix.ncols() {
        for row in 0..matrix.nrows() {
            let value = matrix[(row, column)];
            if !Real::is_finite(value) {
                return Err(GpError::NotFinite { what, row, column, value: value.to_f64() });
            }
        }
    }
    Ok(())
}
