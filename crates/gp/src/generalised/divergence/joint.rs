//! **Divergences between inducing values**: of a posterior `Q = N(m, V Vᵀ)` with lower-triangular root V from a whitened prior `P = N(m_P, I)`, in closed form.
//!
//! With `Δ = m - m_P`, `E = V Vᵀ - I`, `W = V⁻¹`, `H = αI + (1-α) V Vᵀ`, `p(x) = x - log(1 + x)`, and slopes in V of which the lower triangle is taken:
//!
//! ```text
//!                     value                                                    in m        in V
//! KL[Q, P]            ½ (Σ_{i>j} V_ij² + Σ_i p(V_ii² - 1) + |Δ|²)              Δ           V - Wᵀ
//! KL[P, Q]            ½ (Σ_{i>j} W_ij² + Σ_i p(W_ii² - 1) + |WΔ|²)             WᵀWΔ        Wᵀ - WᵀWWᵀ - (WᵀWΔ)(WΔ)ᵀ
//! Rényi               ½ (.. - Σ_i p((1-α) λ_i(E))/(1-α) + α Δᵀb),  b = H⁻¹Δ    α b         H⁻¹V - Wᵀ - α(1-α) b (Vᵀb)ᵀ
//! Bhattacharyya       half of Rényi's of order ½
//! Wasserstein         |Δ|² + Σ_i (σ_i(V) - 1)²                                 2Δ          2(V - X Yᵀ),  V = X diag(σ) Yᵀ
//! squared difference  |Δ|² + Σ_ij E_ij²                                        2Δ          4 E V
//! ```
//!
//! where `..` stands for the first two sums of KL[Q, P]. Hellinger and the symmetric divergence are made of these as [in one dimension](super::Divergence::between).
//!
//! Processes that share their conditional given inducing values `u = L_z v`, such as a sparse variational process and its prior, differ in the distribution of v only. So every [invariant](Divergence::is_invariant) divergence of v
//! *is* that of the processes: the full regulariser, where that [point by point](Divergence::mean_over) is a projected one. The Wasserstein distance and the squared difference are *not*: they depend on how v is measured, and say
//! how far the whitened values are apart, no more.
//!
//! Sources: the closed forms are those of section 11 of spec `generalised_variational_inference` in m dimensions (van Erven and Harremoës 2014 and Gil, Alajaji and Linder 2013 for Rényi's; Bhatia, Jain and Lim 2019 for Wasserstein's).

use super::stable::{excess, log_one_plus, one_minus_exp};
use super::{Direction, Divergence, DivergenceError};
use faer::linalg::matmul::triangular::BlockStructure::{Rectangular, TriangularLower, TriangularUpper};
use faer::{Mat, MatRef};
use posterior_linalg::cholesky::{Cholesky, CholeskyError, JitterPolicy};
use posterior_linalg::dense::{eigenvalues, product, svd};
use posterior_linalg::triangular::{inverse_of_lower, lower_product, symmetric_product};

/// The divergence of two joint normals with its derivatives in the posterior.
#[derive(Clone, Debug)]
pub struct JointSlopes {
    /// Its value.
    pub value: f64,
    /// In the posterior's mean (m).
    pub mean: Vec<f64>,
    /// In the posterior's root (m x m), zero above the diagonal.
    pub root: Mat<f64>,
}

impl Divergence {
    /// The divergence of `N(mean, root rootᵀ)` from `N(prior_mean, I)` with its slopes. The lower triangle of the root (m x m) is read; its diagonal may have either sign, and a diagonal root is one whose slopes below the diagonal nobody asks for.
    ///
    /// Infinite with slopes 0 where the root is singular (but for Wasserstein and squared difference), beyond the domain of Rényi's, and where numbers overflow; of a singular root the Hellinger distance is 1.
    /// KL[Q, P] is right to its last digits, the others to about `ε (m + tr V Vᵀ)`.
    ///
    /// Cost: KL[Q, P] `m²` flops; KL[P, Q] `5m³/3`; Rényi, Bhattacharyya and Hellinger `5m³/3`, and `4m³/3` more, half of them limited by memory, for orders within 1/16 of 1, where logarithms of determinants lose digits; squared difference `m³`; Wasserstein `20m³`. Memory: up to four m x m
    /// matrices.
    ///
    /// # Errors
    /// Sizes that differ, no inducing values, numbers that are not finite, an order that is none.
    pub fn of_whitened(
        &self,
        prior_mean: &[f64],
        mean: &[f64],
        root: MatRef<'_, f64>,
    ) -> Result<JointSlopes, DivergenceError> {
        self.check()?;
        let m = mean.len();
        DivergenceError::same("means of the prior", m, prior_mean.len())?;
        DivergenceError::same("rows of the root", m, root.nrows())?;
        DivergenceError::same("columns of the root", m, root.ncols())?;
        if m == 0 {
            return Err(DivergenceError::Empty { what: "the mean of the inducing values" });
        }
        DivergenceError::finite("the mean of the prior", prior_mean)?;
        DivergenceError::finite("the mean of the posterior", mean)?;
        DivergenceError::finite_matrix("the root of the posterior's covariance", root, |j| j..m)?;
        let delta = Mat::from_fn(m, 1, |i, _| mean[i] - prior_mean[i]);
        let root = Mat::from_fn(m, m, |i, j| if i >= j { root[(i, j)] } else { 0.0 });
        let slopes = self.of(&delta, &root)?;
        let finite = slopes.value.is_finite();
        Ok(if finite { slopes } else { JointSlopes::flat(m, f64::INFINITY) })
    }

    fn of(&self, delta: &Mat<f64>, root: &Mat<f64>) -> Result<JointSlopes, DivergenceError> {
        let singular = (0..root.nrows()).any(|i| root[(i, i)] == 0.0);
        let infinite = JointSlopes::flat(root.nrows(), f64::INFINITY);
        match *self {
            Self::Wasserstein => wasserstein(delta, root),
            Self::SquaredDifference => Ok(squared_difference(delta, root)),
            Self::Hellinger if singular => Ok(JointSlopes::flat(root.nrows(), 1.0)),
            _ if singular => Ok(infinite),
            Self::KullbackLeibler { direction: Direction::PosteriorToPrior } => {
                Ok(posterior_to_prior(delta, root))
            }
            Self::KullbackLeibler { direction: Direction::PriorToPosterior } => {
                Ok(prior_to_posterior(delta, root))
            }
            Self::Renyi { order } => Ok(renyi(order, delta, root)?.unwrap_or(infinite)),
            Self::Bhattacharyya => Ok(renyi(0.5, delta, root)?.map_or(infinite, |half| half.scaled(0.5))),
            Self::Hellinger => {
                let of = renyi(0.5, delta, root)?.unwrap_or(infinite);
                let distance = 0.5 * of.value;
                let value = one_minus_exp(distance);
                Ok(match (-distance).exp() {
                    0.0 => JointSlopes::flat(root.nrows(), value),
                    overlap => JointSlopes { value, ..of.scaled(0.5 * overlap) },
                })
            }
            Self::SymmetricKullbackLeibler => {
                let (one, other) = (posterior_to_prior(delta, root), prior_to_posterior(delta, root));
                let value = (one.value + other.value).sqrt();
                // At the kink, the subgradient 0.
                let scale = if value > 0.0 { 0.5 / value } else { 0.0 };
                let mean = one.mean.iter().zip(&other.mean).map(|(a, b)| scale * (a + b)).collect();
                let root = (one.root + other.root) * faer::Scale(scale);
                Ok(JointSlopes { value, mean, root })
            }
        }
    }
}

impl JointSlopes {
    /// A value from where nothing is to be followed.
    fn flat(m: usize, value: f64) -> Self {
        Self { value, mean: vec![0.0; m], root: Mat::zeros(m, m) }
    }

    fn scaled(self, scale: f64) -> Self {
        let mean = self.mean.into_iter().map(|slope| scale * slope).collect();
        Self { value: scale * self.value, mean, root: self.root * faer::Scale(scale) }
    }
}

/// `tr A Aᵀ - m` and `tr A Aᵀ - m - log det A Aᵀ` of a lower-triangular A, without subtracting what is almost equal.
fn trace_and_excess(lower: &Mat<f64>) -> (f64, f64) {
    let (mut trace, mut sum) = (0.0, 0.0);
    for j in 0..lower.ncols() {
        let below: f64 = lower.col_as_slice(j)[j + 1..].iter().map(|v| v * v).sum();
        let root = lower[(j, j)];
        let own = (root - 1.0) * (root + 1.0);
        trace += own + below;
        sum += excess(own, 2.0 * root.abs().ln()) + below;
    }
    (trace, sum)
}

fn squares(column: &Mat<f64>) -> f64 {
    column.col_as_slice(0).iter().map(|v| v * v).sum()
}

fn posterior_to_prior(delta: &Mat<f64>, root: &Mat<f64>) -> JointSlopes {
    let value = 0.5 * (trace_and_excess(root).1 + squares(delta));
    let mut slopes = root.clone();
    (0..root.nrows()).for_each(|i| slopes[(i, i)] -= 1.0 / root[(i, i)]);
    JointSlopes { value, mean: delta.col_as_slice(0).to_vec(), root: slopes }
}

fn prior_to_posterior(delta: &Mat<f64>, root: &Mat<f64>) -> JointSlopes {
    let m = root.nrows();
    let inverse = inverse_of_lower(root.as_ref());
    let white = product(inverse.as_ref(), delta.as_ref());
    let back = product(inverse.transpose(), white.as_ref());
    let value = 0.5 * (trace_and_excess(&inverse).1 + squares(&white));
    let both = (inverse.as_ref(), TriangularLower);
    let square = symmetric_product(both, (inverse.transpose(), TriangularUpper), 1.0);
    let turned = (inverse.transpose(), TriangularUpper);
    let mut slopes = lower_product(turned, (square.as_ref(), Rectangular), -1.0);
    for j in 0..m {
        slopes[(j, j)] += inverse[(j, j)];
        for i in j..m {
            slopes[(i, j)] -= back[(i, 0)] * white[(j, 0)];
        }
    }
    JointSlopes { value, mean: back.col_as_slice(0).to_vec(), root: slopes }
}

/// Within this distance of 1, an order's logarithm of a determinant is taken eigenvalue by eigenvalue: what is left of it is divided by the distance.
const NEAR_ONE: f64 = 1.0 / 16.0;

/// None where it is infinite.
fn renyi(order: f64, delta: &Mat<f64>, root: &Mat<f64>) -> Result<Option<JointSlopes>, DivergenceError> {
    let (m, rest) = (root.nrows(), 1.0 - order);
    let lower = (root.as_ref(), TriangularLower);
    let covariance = symmetric_product(lower, (root.transpose(), TriangularUpper), 1.0);
    let mut h = covariance.clone() * faer::Scale(rest);
    (0..m).for_each(|i| h[(i, i)] += order);
    let factor = match Cholesky::of(h.as_ref(), JitterPolicy::NONE) {
        Ok(factor) => factor,
        Err(CholeskyError::NotPositiveDefinite { .. }) if order > 1.0 => return Ok(None),
        Err(CholeskyError::NotFinite { .. }) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let (trace, excess_of_root) = trace_and_excess(root);
    let excess_of_mixture = if rest.abs() < NEAR_ONE {
        let mut moved = covariance;
        (0..m).for_each(|i| moved[(i, i)] -= 1.0);
        let moved = eigenvalues(moved.as_ref())
            .map_err(|_| DivergenceError::Decomposition { what: "the posterior's covariance" })?;
        moved.iter().map(|y| excess(rest * y, log_one_plus(rest * y))).sum()
    } else {
        rest * trace - factor.log_determinant()
    };
    let solved = factor.solve(delta.as_ref());
    let seen = product(root.transpose(), solved.as_ref());
    let inner: f64 = delta.col_as_slice(0).iter().zip(solved.col_as_slice(0)).map(|(a, b)| a * b).sum();
    // Never negative but for rounding.
    let spread = (excess_of_root - excess_of_mixture / rest).max(0.0);
    let mut slopes = factor.solve(root.as_ref());
    for j in 0..m {
        slopes[(j, j)] -= 1.0 / root[(j, j)];
        for i in 0..j {
            slopes[(i, j)] = 0.0;
        }
        for i in j..m {
            slopes[(i, j)] -= order * rest * solved[(i, 0)] * seen[(j, 0)];
        }
    }
    let mean = solved.col_as_slice(0).iter().map(|b| order * b).collect();
    Ok(Some(JointSlopes { value: 0.5 * (spread + order * inner), mean, root: slopes }))
}

fn wasserstein(delta: &Mat<f64>, root: &Mat<f64>) -> Result<JointSlopes, DivergenceError> {
    let found = svd(root.as_ref())
        .map_err(|_| DivergenceError::Decomposition { what: "the root of the posterior's covariance" })?;
    let apart: f64 = found.values.iter().map(|s| (s - 1.0) * (s - 1.0)).sum();
    let turned = (found.right.transpose(), Rectangular);
    let mut slopes = lower_product((found.left.as_ref(), Rectangular), turned, -2.0);
    slopes += root * faer::Scale(2.0);
    let mean = delta.col_as_slice(0).iter().map(|d| 2.0 * d).collect();
    Ok(JointSlopes { value: squares(delta) + apart, mean, root: slopes })
}

fn squared_difference(delta: &Mat<f64>, root: &Mat<f64>) -> JointSlopes {
    let lower = (root.as_ref(), TriangularLower);
    let mut moved = symmetric_product(lower, (root.transpose(), TriangularUpper), 1.0);
    (0..root.nrows()).for_each(|i| moved[(i, i)] -= 1.0);
    let apart: f64 =
        (0..root.ncols()).map(|j| moved.col_as_slice(j).iter().map(|v| v * v).sum::<f64>()).sum();
    let slopes = lower_product((moved.as_ref(), Rectangular), lower, 4.0);
    let mean = delta.col_as_slice(0).iter().map(|d| 2.0 * d).collect();
    JointSlopes { value: squares(delta) + apart, mean, root: slopes }
}
