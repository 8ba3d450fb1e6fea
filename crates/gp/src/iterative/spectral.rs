//! The implicit bias of stochastic descent: errors by eigendirection and by region of the input space.
//!
//! With `K = V Λ Vᵀ`, the functions `v_i(·) = λ_i^{-½} Σ_j V_ji k(x_j, ·)` are orthonormal in the kernel's Hilbert space. Those of large λ live where the data
//! are and converge fast; those of small λ live around the edges of the data and converge slowly; far from all data a sample is its
//! prior function, and there is no error. Spec `stochastic_gaussian_processes`, section 18.

use crate::GpError;
use crate::data::same_width;
use faer::{Mat, MatRef};
use posterior_linalg::dense::{Eigen, eigen};

/// The spectral basis functions of a kernel matrix, those of the largest eigenvalues first.
#[derive(Clone, Debug)]
pub struct SpectralBasis {
    eigenvalues: Vec<f64>,
    vectors: Mat<f64>,
}

impl SpectralBasis {
    /// Decomposes a kernel matrix (n x n). Cost about `9n³` flops.
    ///
    /// # Errors
    /// [`GpError::NotFinite`] when an entry is not finite.
    ///
    /// # Panics
    /// When the matrix is not square.
    pub fn new(matrix: MatRef<'_, f64>) -> Result<Self, GpError> {
        crate::data::check_finite("kernel matrix", matrix)?;
        let n = matrix.nrows();
        let failed = |_| GpError::NotFinite { what: "kernel matrix", row: 0, column: 0, value: f64::NAN };
        let Eigen { values, vectors } = eigen(matrix).map_err(failed)?;
        // Rounding makes the smallest eigenvalues negative at times.
        let eigenvalues = (0..n).map(|i| values[n - 1 - i].max(0.0)).collect();
        let vectors = Mat::from_fn(n, n, |i, j| vectors[(i, n - 1 - j)]);
        Ok(Self { eigenvalues, vectors })
    }

    /// λ, descending.
    pub fn eigenvalues(&self) -> &[f64] {
        &self.eigenvalues
    }

    /// V, n x n, in the same order.
    pub fn vectors(&self) -> MatRef<'_, f64> {
        self.vectors.as_ref()
    }

    /// The values `v_i(x)` at m points, given `k(x, X)` (m x n), for the first `count` functions (m x count). Functions of vanishing λ are 0.
    ///
    /// # Errors
    /// [`GpError::Shape`] when the cross matrix is of other points.
    pub fn functions(&self, cross: MatRef<'_, f64>, count: usize) -> Result<Mat<f64>, GpError> {
        same_width("columns of the cross matrix", self.eigenvalues.len(), cross.ncols())?;
        let count = count.min(self.eigenvalues.len());
        let scaled = Mat::from_fn(cross.ncols(), count, |i, j| {
            let eigenvalue = self.eigenvalues[j];
            if eigenvalue > 0.0 { self.vectors[(i, j)] / eigenvalue.sqrt() } else { 0.0 }
        });
        Ok(cross * scaled)
    }

    /// Coefficients `√λ_i V_iᵀ δ` of the functions `k(·, X) δ` for weights δ (n x s): n x s. Their squares sum to `‖δ‖²_K`.
    ///
    /// # Errors
    /// [`GpError::Shape`] when δ has another number of rows.
    pub fn coefficients(&self, weights: MatRef<'_, f64>) -> Result<Mat<f64>, GpError> {
        same_width("rows of the weights", self.eigenvalues.len(), weights.nrows())?;
        let mut out = self.vectors.transpose() * weights;
        for (i, eigenvalue) in self.eigenvalues.iter().enumerate() {
            out.row_mut(i).iter_mut().for_each(|c| *c *= eigenvalue.sqrt());
        }
        Ok(out)
    }

    /// The numbers of directions in the interpolation region: those whose eigenvalue is above the noise variance, so that the data determine them.
    pub fn interpolation_directions(&self, noise_variance: f64) -> usize {
        self.eigenvalues.iter().take_while(|e| **e > noise_variance).count()
    }
}

/// Where a point stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Region {
    /// Determined by the data: the posterior variance is less than half of the prior's.
    Interpolation,
    /// Near the data but not determined by them.
    Extrapolation,
    /// Far from all data: the posterior is the prior.
    Prior,
}

/// The region of each of m points from prior variance (m), exact posterior variance (m) and `k(x, X)` (m x n): prior where no
/// `|k(x, x_i)|` reaches `threshold` times the prior variance.
///
/// # Errors
/// [`GpError::Shape`] when sizes differ.
pub fn regions(
    prior_variance: &[f64],
    posterior_variance: &[f64],
    cross: MatRef<'_, f64>,
    threshold: f64,
) -> Result<Vec<Region>, GpError> {
    same_width("posterior variances", prior_variance.len(), posterior_variance.len())?;
    same_width("rows of the cross matrix", prior_variance.len(), cross.nrows())?;
    let region = |i: usize| {
        let largest = cross.row(i).iter().fold(0.0f64, |largest, k| largest.max(k.abs()));
        if largest < threshold * prior_variance[i] {
            Region::Prior
        } else if posterior_variance[i] < 0.5 * prior_variance[i] {
            Region::Interpolation
        } else {
            Region::Extrapolation
        }
    };
    Ok((0..prior_variance.len()).map(region).collect())
}
