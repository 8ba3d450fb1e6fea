//! **Rows that arrive after the fit**: what a posterior needs so that it can go on learning, and how its inducing points may change on the way.
//!
//! In whitened coordinates a Gaussian observation of `f_c(x)` with precision b adds `b a(x) a(x)ᵀ` to the precision of `v_c`, whatever came before: sums over features
//! ([`InducingPosterior::whitened_features`]) and back ([`InducingDistribution::from_natural`]) are all of exact streaming while the inducing points stay. Two ways change them:
//!
//! - [`InducingPosterior::with_more_inducing`] adds points to those that are there; the old features stay what they are, and nothing is lost.
//! - [`InducingPosterior::carried`] goes to any others. With `Π_a = S_a⁻¹ - K_aa⁻¹` and `r_a = S_a⁻¹ m_a` what the rows so far have said of the old points a, the new points b have
//!
//! ```text
//! S_b⁻¹ = K_bb⁻¹ + W Π_a Wᵀ          S_b⁻¹ m_b = W r_a          W = K_bb⁻¹ K_ba
//! ```
//!
//! which in whitened coordinates is `Λ_b = I + C (Λ_a - I) Cᵀ` and `θ_b = C θ_a` with `C = L_b⁻¹ K_ba L_a⁻ᵀ`.
//!
//! [`sites`] makes Gaussian observations of any others: the ones whose update has the gradients of the bound under the likelihood itself (Khan and Lin 2017).
//!
//! Sources: Bui, Nguyen and Turner, *Streaming sparse Gaussian process approximations*, NeurIPS 2017; spec `likelihood_approximations`, section 6.6.

use super::{DEFAULT_JITTER, InducingDistribution, InducingPosterior};
use crate::GpError;
use crate::data::{check_finite, same_width};
use faer::{Mat, MatRef};
use posterior_kernels::inducing::Whitening;
use posterior_kernels::{cross, gram};
use posterior_likelihoods::{Likelihood, Slopes};
use posterior_linalg::cholesky::{Cholesky, CholeskyInfo, JitterPolicy};
use posterior_linalg::dense::product;
use posterior_linalg::parallel;

impl InducingPosterior {
    /// Features of the rows of x under the whitened inducing values, m x n. Cost `n m²` flops besides the kernel.
    ///
    /// # Errors
    /// [`GpError`] when the width is wrong or a value is not finite.
    pub fn whitened_features(&self, x: MatRef<'_, f64>) -> Result<Mat<f64>, GpError> {
        self.check(x)?;
        Ok(self.features(x))
    }

    /// Whether another's features are this one's: the same kernel, inducing inputs and factor to the last bit.
    pub fn shares_features(&self, other: &Self) -> bool {
        self.inducing == other.inducing
            && self.kernel.values() == other.kernel.values()
            && self.factor().factor() == other.factor().factor()
    }

    /// The same process and inducing points under another distribution of their values.
    ///
    /// # Errors
    /// [`GpError::Shape`] when it is of other numbers of values or functions.
    pub fn with_distribution(&self, distribution: InducingDistribution) -> Result<Self, GpError> {
        same_width("inducing values", self.distribution.rank(), distribution.rank())?;
        same_width("latent functions", self.distribution.latents(), distribution.latents())?;
        Ok(Self { distribution, ..self.clone() })
    }

    /// The same latent functions, observed with another likelihood.
    ///
    /// # Errors
    /// [`GpError::Shape`] when it is of another number of functions.
    pub fn with_likelihood(&self, likelihood: Box<dyn Likelihood>) -> Result<Self, GpError> {
        same_width("latent functions", self.distribution.latents(), likelihood.outputs())?;
        Ok(Self { likelihood, ..self.clone() })
    }

    /// The share of the prior variance at each row of x that inducing points cannot say, in [0, 1], and the features it comes from.
    ///
    /// # Errors
    /// As [`Self::whitened_features`].
    pub fn unexplained(&self, x: MatRef<'_, f64>) -> Result<(Vec<f64>, Mat<f64>), GpError> {
        let features = self.whitened_features(x)?;
        let prior = posterior_kernels::diagonal(self.kernel(), x);
        let share = |i: usize| (1.0 - features.col(i).squared_norm_l2() / prior[i]).clamp(0.0, 1.0);
        Ok(((0..x.nrows()).map(share).collect(), features))
    }

    /// The same with inducing inputs more (j x D). What is known of the values there is what the prior makes of the others: all predictions stay what they were but for the jitter on the new points. Cost `m² j + m j² + j³/3` flops and
    /// the roots anew.
    ///
    /// # Errors
    /// [`GpError`] when the points do not fit, or the kernel matrix cannot be factored with them.
    pub fn with_more_inducing(&self, more: MatRef<'_, f64>) -> Result<Self, GpError> {
        let across = self.whitened_features(more)?;
        let (m, j) = across.shape();
        let mut rest = gram(self.kernel(), more);
        let mean_diagonal = (0..j).map(|i| rest[(i, i)]).sum::<f64>() / j.max(1) as f64;
        rest -= across.transpose() * &across;
        for i in 0..j {
            rest[(i, i)] += DEFAULT_JITTER * mean_diagonal;
        }
        let own = Cholesky::of(rest.as_ref(), JitterPolicy::default())?;
        let (old, new) = (self.factor().factor(), own.factor());
        let factor = Mat::from_fn(m + j, m + j, |a, b| match (a < m, b < m) {
            _ if a < b => 0.0,
            (true, _) => old[(a, b)],
            (false, true) => across[(b, a - m)],
            (false, false) => new[(a - m, b - m)],
        });
        let inducing =
            Mat::from_fn(
                m + j,
                more.ncols(),
                |a, d| {
                    if a < m { self.inducing[(a, d)] } else { more[(a - m, d)] }
                },
            );
        let root = |old: &Mat<f64>| {
            Mat::from_fn(m + j, m + j, |a, b| match (a < m && b < m, a == b) {
                (true, _) => old[(a, b)],
                (false, same) => f64::from(u8::from(same)),
            })
        };
        let mean = Mat::from_fn(m + j, self.distribution.latents(), |a, c| {
            if a < m { self.distribution.mean()[(a, c)] } else { 0.0 }
        });
        let distribution =
            InducingDistribution::new(mean, self.distribution.roots().iter().map(root).collect())?;
        let whitening = Whitening {
            cholesky: Cholesky::from_factor(factor, CholeskyInfo::default()),
            relative_jitter: self.whitening.relative_jitter,
        };
        Ok(Self { inducing, whitening, distribution, ..self.clone() })
    }

    /// The same process with other inducing inputs (m' x D), which are told what the present ones know. Exact where the new points contain the old; elsewhere what they cannot say is lost. Cost
    /// `O(m m' (m + m'))` flops a root.
    ///
    /// # Errors
    /// [`GpError`] when the points do not fit, or the kernel matrix cannot be factored.
    pub fn carried(&self, inducing: MatRef<'_, f64>) -> Result<Self, GpError> {
        self.check(inducing)?;
        if inducing.nrows() == 0 {
            return Err(GpError::Empty { what: "the set of inducing inputs" });
        }
        let whitening = Whitening::new(self.kernel(), inducing, DEFAULT_JITTER, JitterPolicy::default())?;
        let mut carry = cross(self.kernel(), inducing, self.inducing());
        whitening.cholesky.solve_factor_in_place(carry.as_mut());
        self.factor().solve_factor_in_place(carry.as_mut().transpose_mut());
        let (precisions, shifts) = self.distribution.natural();
        let told = |precision: &Mat<f64>| {
            let said = precision - Mat::<f64>::identity(precision.nrows(), precision.nrows());
            let half = product(carry.as_ref(), said.as_ref());
            product(half.as_ref(), carry.transpose())
                + Mat::<f64>::identity(inducing.nrows(), inducing.nrows())
        };
        let precisions: Vec<Mat<f64>> = precisions.iter().map(told).collect();
        let distribution = InducingDistribution::from_natural(
            &precisions,
            product(carry.as_ref(), shifts.as_ref()).as_ref(),
        )?;
        Ok(Self { inducing: inducing.to_owned(), whitening, distribution, ..self.clone() })
    }
}

/// Gaussian observations of latent values.
#[derive(Clone, Debug, PartialEq)]
pub struct Sites {
    /// What is observed, n x C.
    pub targets: Mat<f64>,
    /// One over the variance of its noise, n x C; positive.
    pub precisions: Mat<f64>,
    /// Rows and functions at which the expected log density was not concave, where the precision is the least there is.
    pub clipped: usize,
}

/// The least precision of a site, relative to that of the latent value.
const LEAST_PRECISION: f64 = 1e-6;

/// The Gaussian observations that act on latent Gaussians (means and variances n x C) as the expected log density of the targets (n x width) does at these: precision `-2 ∂/∂variance` and target `mean + (∂/∂mean) / precision`.
/// At the posterior that they make, the bound is stationary.
///
/// # Errors
/// [`GpError::Shape`], [`GpError::NotFinite`]; [`super::InducingError::Target`] for a target that the likelihood cannot produce.
pub fn sites(
    likelihood: &dyn Likelihood,
    targets: MatRef<'_, f64>,
    means: MatRef<'_, f64>,
    variances: MatRef<'_, f64>,
) -> Result<Sites, GpError> {
    let (n, outputs) = (targets.nrows(), likelihood.outputs());
    same_width("columns of the targets", likelihood.target_width(), targets.ncols())?;
    for of in [means, variances] {
        same_width("rows of latent values", n, of.nrows())?;
        same_width("latent functions", outputs, of.ncols())?;
        check_finite("latent value", of)?;
    }
    super::check_targets(likelihood, targets)?;
    let own = likelihood.values().len();
    let row = |matrix: MatRef<'_, f64>, i: usize| matrix.row(i).iter().copied().collect::<Vec<f64>>();
    let slopes: Vec<(Vec<f64>, Vec<f64>)> = parallel::map(n, 2, |i| {
        let (mut by_means, mut by_variances) = (vec![0.0; outputs], vec![0.0; outputs]);
        let slopes =
            Slopes { means: &mut by_means, variances: &mut by_variances, parameters: &mut vec![0.0; own] };
        likelihood.expected_log_density(&row(targets, i), &row(means, i), &row(variances, i), slopes);
        (by_means, by_variances)
    });
    let least = |i: usize, c: usize| LEAST_PRECISION / variances[(i, c)].max(f64::MIN_POSITIVE);
    let clipped = (0..n * outputs)
        .filter(|k| {
            let (i, c) = (k / outputs, k % outputs);
            let precision = -2.0 * slopes[i].1[c];
            precision.is_nan() || precision < least(i, c)
        })
        .count();
    let precisions = Mat::from_fn(n, outputs, |i, c| (-2.0 * slopes[i].1[c]).max(least(i, c)));
    let targets = Mat::from_fn(n, outputs, |i, c| means[(i, c)] + slopes[i].0[c] / precisions[(i, c)]);
    check_finite("target of a site", targets.as_ref())?;
    Ok(Sites { targets, precisions, clipped })
}

#[cfg(test)]
mod tests;
