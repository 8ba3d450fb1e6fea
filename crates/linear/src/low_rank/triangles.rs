//! Sums over rows that square no condition number.
//!
//! [`EvidenceSums`](super::EvidenceSums) hold `Ψ = V Vᵀ`, whose rounding is a part in 10¹⁶ of its largest eigenvalue; where that is more than 1, the identity in `W = I + Ψ` is lost and the Cholesky factor fails. The triangle of a QR factorisation
//! of V over an identity is the same factor from V itself: it loses as many digits as V has beyond 1, half of them.
//!
//! Source: spec `deep_kernel_decomposition`, section 3.1; Golub and Van Loan, *Matrix Computations*, 4th ed., section 5.3.

use super::evidence::LEAST_SHARE;
use super::{ScaledRows, SolvedEvidence};
use faer::Mat;
use faer::linalg::matmul::triangular::BlockStructure::{TriangularLower, TriangularUpper};
use posterior_linalg::cholesky::{Cholesky, CholeskyError, CholeskyInfo};
use posterior_linalg::dense::{product, qr, solve_upper};
use posterior_linalg::symmetric::mirror_lower;
use posterior_linalg::triangular::lower_product;

/// The triangle U of `[Vᵀ R̃] = Q U` over an identity, so that `UᵀU = W` in its first m columns, one QR factorisation of each block of rows over what came before.
///
/// Two to four times the work of [`EvidenceSums`](super::EvidenceSums); for features whose Ψ is so ill-conditioned that W cannot be factored.
#[derive(Clone, Debug)]
pub struct TriangularSums {
    /// `(m + T)` square, upper: the first m columns are U, the others `Qᵀ R̃` with what is left over below.
    triangle: Mat<f64>,
    rank: usize,
    log_noise: f64,
    variances: f64,
}

impl TriangularSums {
    /// Of no rows, for m features and T targets.
    pub fn new(rank: usize, targets: usize) -> Self {
        let side = rank + targets;
        let triangle = Mat::from_fn(side, side, |i, j| f64::from(u8::from(i == j && i < rank)));
        Self { triangle, rank, log_noise: 0.0, variances: 0.0 }
    }

    /// Adds rows. Cost `4 (b + m) m²` flops.
    pub fn add(&mut self, rows: &ScaledRows) {
        let (side, b, m) = (self.triangle.nrows(), rows.noise.len(), self.rank);
        let stacked = Mat::from_fn(side + b, side, |i, j| {
            if i < side {
                self.triangle[(i, j)]
            } else if j < m {
                rows.features[(j, i - side)]
            } else {
                rows.residuals[(i - side, j - m)]
            }
        });
        self.triangle = qr(stacked.as_ref()).1;
        self.log_noise += rows.noise.iter().map(|s| (2.0 * std::f64::consts::PI * s).ln()).sum::<f64>();
        self.variances += rows.variances.iter().zip(&rows.noise).map(|(v, s)| v / s).sum::<f64>();
    }

    /// The evidence with its penalty of weight λ, everything from the triangle; the sum of squares that the weights do not explain is one here, not a difference. Cost `2 m³/3` flops.
    ///
    /// # Errors
    /// When the triangle is not finite, or has lost the identity as well, which takes a V of some 10¹².
    pub fn solve(&self, trace_weight: f64) -> Result<SolvedEvidence, CholeskyError> {
        let (m, side) = (self.rank, self.triangle.nrows());
        let targets = side - m;
        let u = self.triangle.submatrix(0, 0, m, m);
        for i in 0..m {
            let (value, length) = (u[(i, i)].abs(), u.col(i).subrows(0, i + 1).norm_l2());
            if !length.is_finite() {
                return Err(CholeskyError::NotFinite { dimension: m, row: i, value: length });
            }
            if value < LEAST_SHARE * length {
                let (dimension, pivot) = (m, i);
                return Err(CholeskyError::NotPositiveDefinite {
                    dimension,
                    pivot,
                    jitter: 0.0,
                    attempts: 1,
                });
            }
        }
        let rotated = self.triangle.submatrix(0, m, m, targets);
        let mut weights = rotated.to_owned();
        solve_upper(u, weights.as_mut());
        let left_over = self.triangle.submatrix(m, m, targets, targets).squared_norm_l2();
        // Rows of U whose diagonal is negative are turned around: the factor of W is the one with a positive diagonal.
        let factor = Mat::from_fn(m, m, |i, j| if i >= j { u[(j, j)].signum() * u[(j, i)] } else { 0.0 });
        let captured = factor.squared_norm_l2() - m as f64;
        let mut psi =
            lower_product((factor.as_ref(), TriangularLower), (factor.transpose(), TriangularUpper), 1.0);
        (0..m).for_each(|i| psi[(i, i)] -= 1.0);
        mirror_lower(psi.as_mut());
        let w = Cholesky::from_factor(factor, CholeskyInfo::default());
        let penalty = trace_weight * (self.variances - captured);
        let of_each = self.log_noise + w.log_determinant() + penalty;
        Ok(SolvedEvidence {
            psi,
            w,
            projected: product(u.transpose(), rotated),
            weights,
            value: -0.5 * (targets as f64 * of_each + left_over),
            trace_weight,
            log_noise: self.log_noise,
            by_triangles: true,
        })
    }
}
