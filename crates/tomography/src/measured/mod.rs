//! **Measurements of an image with a Gaussian prior**: `y = T x + ε`, `x ~ N(0, K)`, `K = F Fᵀ`, `ε ~ N(0, σ² I)`, known by products with the root F and the operator T alone.
//!
//! | file | what | cost |
//! |---|---|---|
//! | `mod` | [`ObservedPrior`]: `C = T F Fᵀ Tᵀ + σ² I` as an operator and stored, the evidence, the exact posterior | one T, F, Fᵀ, Tᵀ a column of a product |
//! | `samples` | [`ObservedPrior::prior_samples`], [`ObservedPrior::posterior_samples`]: draws along their paths, by a factor or by conjugate gradients | two more such products a draw, and a solve |
//! | `error` | [`MeasuredError`] | |
//!
//! Shapes: c measurements, p pixels, d whitened weights; F is p x d, T is c x p. Blocks of vectors are stored by columns. Nothing of p x p exists but in
//! [`ObservedPrior::posterior_covariance`]. Source: Antorán (2024), equations 7.5, 7.6, 7.11 and 2.43.
//!
//! ```
//! use faer::mat;
//! use posterior_linalg::cholesky::JitterPolicy;
//! use posterior_linalg::operator::Dense;
//! use posterior_tomography::measured::ObservedPrior;
//! // Two pixels of variance 4 and their sum, measured with variance 1: a ninth of the variance of the sum remains.
//! let (root, sum) = (Dense::new(mat![[2.0, 0.0], [0.0, 2.0]]), Dense::new(mat![[1.0, 1.0]]));
//! let observed = ObservedPrior::new(&root, &sum, 1.0)?;
//! let factor = observed.factor(JitterPolicy::NONE)?;
//! let covariance = observed.posterior_covariance(&factor);
//! assert!((covariance.sum() - 8.0 / 9.0).abs() < 1e-12);
//! # Ok::<(), posterior_tomography::measured::MeasuredError>(())
//! ```

mod error;
mod samples;

#[cfg(test)]
mod tests;

pub use error::MeasuredError;
pub(crate) use samples::white;
pub use samples::{PosteriorSamples, SampleSolver};

use error::same_size;
use faer::{Mat, MatMut, MatRef};
use posterior_linalg::cholesky::{Cholesky, JitterPolicy};
use posterior_linalg::dense::product;
use posterior_linalg::operator::{LinearOperator, check_apply};
use posterior_linalg::symmetric::mirror_lower;
use posterior_linalg::tiles::pieces;
use std::f64::consts::TAU;

/// Columns that pass through the root and the operator at a time: wide enough for products of matrices, small enough that a block of weights of a network fits.
pub(crate) const BLOCK: usize = 128;

/// An image prior with its measurements' operator and noise.
#[derive(Clone, Copy)]
pub struct ObservedPrior<'a> {
    root: &'a dyn LinearOperator<f64>,
    operator: &'a dyn LinearOperator<f64>,
    noise_variance: f64,
}

impl<'a> ObservedPrior<'a> {
    /// Of the root F (p x d) of the prior covariance, the operator T (c x p) and the noise variance σ².
    ///
    /// # Errors
    /// [`MeasuredError::Shape`] when T does not act on what F gives; [`MeasuredError::Noise`] unless the variance is positive and finite.
    pub fn new(
        root: &'a dyn LinearOperator<f64>,
        operator: &'a dyn LinearOperator<f64>,
        noise_variance: f64,
    ) -> Result<Self, MeasuredError> {
        same_size("pixels of the projector", root.shape().0, operator.shape().1)?;
        if !(noise_variance > 0.0 && noise_variance.is_finite()) {
            return Err(MeasuredError::Noise { value: noise_variance });
        }
        Ok(Self { root, operator, noise_variance })
    }

    /// Measurements, c.
    pub fn rows(&self) -> usize {
        self.operator.shape().0
    }

    /// Pixels, p.
    pub fn pixels(&self) -> usize {
        self.root.shape().0
    }

    /// Whitened weights, d.
    pub fn weights(&self) -> usize {
        self.root.shape().1
    }

    /// σ².
    pub fn noise_variance(&self) -> f64 {
        self.noise_variance
    }

    /// F.
    pub fn root(&self) -> &'a dyn LinearOperator<f64> {
        self.root
    }

    /// `K_yy = T K Tᵀ` as an operator (c x c): what a [preconditioner](crate::randomised) is made of.
    pub fn signal(&self) -> SignalCovariance<'a> {
        SignalCovariance { root: self.root, operator: self.operator }
    }

    /// `K Tᵀ a` (p x k) for coefficients of c x k.
    ///
    /// # Panics
    /// When the coefficients have another number of rows.
    pub fn cross(&self, coefficients: MatRef<'_, f64>) -> Mat<f64> {
        covariance_times(self.root, self.operator.multiply_transpose(coefficients).as_ref())
    }

    /// `K_yy`, stored, exactly symmetric. Cost: c columns through the operator of [`Self::signal`]; `8c²` bytes, and 128 images and sets of weights at a time.
    pub fn signal_matrix(&self) -> Mat<f64> {
        let (c, signal) = (self.rows(), self.signal());
        let mut out = Mat::zeros(c, c);
        for columns in pieces(c, BLOCK) {
            let unit = Mat::from_fn(c, columns.len(), |i, j| if i == columns.start + j { 1.0 } else { 0.0 });
            signal.apply(unit.as_ref(), out.as_mut().subcols_mut(columns.start, columns.len()));
        }
        mirror_lower(out.as_mut());
        out
    }

    /// The Cholesky factor of `C = K_yy + σ² I`. Cost: that of [`Self::signal_matrix`] and `c³/3` flops.
    ///
    /// # Errors
    /// [`MeasuredError::Cholesky`] when C is not positive definite after the permitted jitter, or not finite.
    pub fn factor(&self, policy: JitterPolicy) -> Result<Cholesky, MeasuredError> {
        let mut matrix = self.signal_matrix();
        (0..matrix.nrows()).for_each(|i| matrix[(i, i)] += self.noise_variance);
        Ok(Cholesky::of(matrix.as_ref(), policy)?)
    }

    /// The log evidence `-½ (yᵀ C⁻¹ y + log det C + c log 2π)` (equation 2.43). Cost `c²` flops.
    ///
    /// # Errors
    /// [`MeasuredError::Shape`] when the factor or the measurements are not c.
    pub fn log_evidence(&self, factor: &Cholesky, measurements: &[f64]) -> Result<f64, MeasuredError> {
        let c = self.rows();
        same_size("rows of the factor", c, factor.dimension())?;
        same_size("measurements", c, measurements.len())?;
        let mut white = Mat::from_fn(c, 1, |i, _| measurements[i]);
        factor.solve_factor_in_place(white.as_mut());
        Ok(-0.5 * (white.squared_norm_l2() + factor.log_determinant() + c as f64 * TAU.ln()))
    }

    /// The posterior mean `K Tᵀ C⁻¹ y` of the image (p), of a zero prior mean (equation 7.14). Cost: `2c²` flops and a product with K.
    ///
    /// # Errors
    /// As [`Self::log_evidence`].
    pub fn posterior_mean(&self, factor: &Cholesky, measurements: &[f64]) -> Result<Vec<f64>, MeasuredError> {
        same_size("rows of the factor", self.rows(), factor.dimension())?;
        same_size("measurements", self.rows(), measurements.len())?;
        let solved = factor.solve(Mat::from_fn(self.rows(), 1, |i, _| measurements[i]).as_ref());
        Ok(self.cross(solved.as_ref()).col_as_slice(0).to_vec())
    }

    /// The posterior covariance `K - K Tᵀ C⁻¹ T K` of the image (p x p; equation 7.6, its second form), for small problems.
    ///
    /// Cost: p + c columns through F and Fᵀ, `pc² + p²c` flops, `16p² + 8pc` bytes.
    ///
    /// # Panics
    /// When the factor is of another dimension.
    pub fn posterior_covariance(&self, factor: &Cholesky) -> Mat<f64> {
        assert_eq!(factor.dimension(), self.rows(), "the factor is of this prior's measurements");
        let (p, c) = (self.pixels(), self.rows());
        // (T K)ᵀ by columns of the identity, and K itself.
        let mut white = self.cross(Mat::identity(c, c).as_ref()).transpose().to_owned();
        factor.solve_factor_in_place(white.as_mut());
        let mut out = Mat::zeros(p, p);
        for columns in pieces(p, BLOCK) {
            let unit = Mat::from_fn(p, columns.len(), |i, j| if i == columns.start + j { 1.0 } else { 0.0 });
            let image = covariance_times(self.root, unit.as_ref());
            out.as_mut().subcols_mut(columns.start, columns.len()).copy_from(&image);
        }
        out -= product(white.transpose(), white.as_ref());
        mirror_lower(out.as_mut());
        out
    }
}

/// `F Fᵀ images` (p x k): a product with the prior covariance.
pub(crate) fn covariance_times(root: &dyn LinearOperator<f64>, images: MatRef<'_, f64>) -> Mat<f64> {
    root.multiply(root.multiply_transpose(images).as_ref())
}

/// C itself: c x c.
impl LinearOperator<f64> for ObservedPrior<'_> {
    fn shape(&self) -> (usize, usize) {
        (self.rows(), self.rows())
    }

    fn apply(&self, input: MatRef<'_, f64>, mut output: MatMut<'_, f64>) {
        self.signal().apply(input, output.as_mut());
        for (to, from) in output.col_iter_mut().zip(input.col_iter()) {
            to.iter_mut().zip(from.iter()).for_each(|(to, from)| *to += self.noise_variance * from);
        }
    }

    fn apply_transpose(&self, input: MatRef<'_, f64>, output: MatMut<'_, f64>) {
        self.apply(input, output);
    }
}

/// `K_yy = T F Fᵀ Tᵀ` of [`ObservedPrior::signal`], c x c.
#[derive(Clone, Copy)]
pub struct SignalCovariance<'a> {
    root: &'a dyn LinearOperator<f64>,
    operator: &'a dyn LinearOperator<f64>,
}

impl LinearOperator<f64> for SignalCovariance<'_> {
    fn shape(&self) -> (usize, usize) {
        (self.operator.shape().0, self.operator.shape().0)
    }

    fn apply(&self, input: MatRef<'_, f64>, mut output: MatMut<'_, f64>) {
        check_apply(self.shape(), input, &output);
        for columns in pieces(input.ncols(), BLOCK) {
            let back = self.operator.multiply_transpose(input.subcols(columns.start, columns.len()));
            let image = covariance_times(self.root, back.as_ref());
            self.operator.apply(image.as_ref(), output.as_mut().subcols_mut(columns.start, columns.len()));
        }
    }

    fn apply_transpose(&self, input: MatRef<'_, f64>, output: MatMut<'_, f64>) {
        self.apply(input, output);
    }
}
