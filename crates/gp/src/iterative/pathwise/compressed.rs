//! The same functions, carried by fewer points.

use super::condition::{Support, narrow};
use super::posterior::PathwisePosterior;
use crate::GpError;
use crate::data::same_width;
use crate::iterative::inducing::InducingDescentOptions;
use crate::iterative::problem::check_finite;
use crate::iterative::solver::Solution;
use faer::Mat;
use posterior_kernels::gram;
use posterior_linalg::cholesky::{Cholesky, JitterPolicy};
use posterior_linalg::operator::LinearOperator;
use posterior_linalg::{PerPrecision, Real, compiled_here};

/// A posterior that fewer points carry.
#[derive(Debug)]
pub struct CompressedPosterior<T: Real> {
    /// It.
    pub posterior: PathwisePosterior<T>,
    /// What was added to the diagonal of the points' kernel matrix.
    pub jitter: f64,
}

impl<T: Real> PathwisePosterior<T> {
    /// The posterior whose mean and samples have weights `K_ZZ^-1 K_ZX W` at m points Z (m x D) instead of W at all rows: of all functions that Z can carry, those nearest to the present ones in the norm of the kernel's space (their
    /// projections), equal to them at Z but for the ridge. Prior functions stay what they are. Predictions cost m instead of n.
    ///
    /// A ridge of `√m` roundings, relative to the mean diagonal, keeps rounding of products in precision T from growing.
    ///
    /// Cost: `m n (D + t + s) + m³/3`; memory `2 m²` numbers of 8 bytes and `2 m (t + s)`, never `m n`.
    ///
    /// Source: the Nyström method of Williams and Seeger (2001), for functions; pathwise conditioning on inducing points, Wilson et al. (2021), section 3.
    ///
    /// # Errors
    /// [`GpError::Shape`] when widths differ, [`GpError::NotFinite`], [`GpError::Empty`] without points, and those of a factorisation.
    pub fn compressed(&self, inducing: Mat<f64>) -> Result<CompressedPosterior<T>, GpError> {
        compiled_here!(T: Real, PerPrecision; ['a] compress, (
            posterior: &'a PathwisePosterior<T> = self,
            inducing: Mat<f64> = inducing,
        ) -> Result<CompressedPosterior<T>, GpError>)
    }
}

fn compress<T: Real>(
    posterior: &PathwisePosterior<T>,
    inducing: Mat<f64>,
) -> Result<CompressedPosterior<T>, GpError> {
    let m = inducing.nrows();
    same_width("columns of the inducing inputs", posterior.data().inputs().ncols(), inducing.ncols())?;
    if m == 0 {
        return Err(GpError::Empty { what: "the inducing inputs" });
    }
    check_finite("inducing input", inducing.as_ref())?;
    let Solution { weights, reason, progress } = posterior.solution();
    let mut values = Mat::zeros(m, weights.ncols());
    posterior.cross(inducing.as_ref())?.apply(weights.as_ref(), values.as_mut());
    let own = gram(posterior.kernel(), narrow::<T>(inducing.as_ref()).as_ref());
    let mean = (0..m).map(|i| own[(i, i)].to_f64()).sum::<f64>() / m as f64;
    let ridge = mean * (m as f64).sqrt() * T::EPSILON.to_f64();
    let factor = Cholesky::factor_with(Mat::zeros(m, m), JitterPolicy::default(), |mut matrix| {
        for j in 0..m {
            for i in j..m {
                matrix[(i, j)] = own[(i, j)].to_f64() + if i == j { ridge } else { 0.0 };
            }
        }
    })?;
    let mut wide = Mat::from_fn(m, weights.ncols(), |i, j| values[(i, j)].to_f64());
    factor.solve_in_place(wide.as_mut());
    let weights = Mat::from_fn(m, weights.ncols(), |i, j| T::from_f64(wide[(i, j)]));
    let model = posterior.model().clone();
    let support = Support::Inducing(inducing, InducingDescentOptions::default());
    let solution = Solution { weights, reason: *reason, progress: *progress };
    let (data, settings) = (posterior.data().clone(), posterior.settings().clone());
    let posterior = PathwisePosterior::from_parts(model, data, support, settings, solution)?;
    Ok(CompressedPosterior { posterior, jitter: ridge + factor.info().jitter })
}
