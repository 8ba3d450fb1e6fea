//! **Assumed-density filtering** in the softmax model itself: after each row the exact update of its function values is replaced by the Gaussian with the same moments.
//!
//! Functions `f_k(x) = phi(x)^T w_k` are apart, `w_k ~ N(mu_k, S_k)`. A row with features phi and class y sees them as `f_k ~ N(h_k, s_k)`, `h_k = phi^T mu_k`, `s_k = phi^T g_k`, `g_k = S_k phi`. With its evidence
//! `Z = E[softmax(f)_y]` the moments of f given the class are
//!
//! ```text
//! E f_k = h_k + s_k a_k        a_k = d log Z / d h_k
//! V f_k = s_k - s_k^2 c_k      c_k = a_k^2 - 2 d log Z / d s_k
//! mu_k <- mu_k + a_k g_k       S_k <- S_k - c_k g_k g_k^T
//! ```
//!
//! which is a Gaussian observation of `f_k` with precision `c_k / (1 - s_k c_k)` at `h_k + a_k / c_k`; **damping** multiplies that precision. Moments are exact here (no draws), so that the variance never grows except by rounding; a
//! function whose moments are none (`c_k` not in `(0, 1/s_k)`) is passed over and counted.
//!
//! What is learned depends on the order of the rows. Since functions are taken apart again after each row, what a row says of differences between them counts about half: of two classes the variance of their difference is twice that of the exact
//! posterior after many rows.
//!
//! Cost: `4 K P^2` flops a row besides its evidence, and `8 K P^2` bytes. Sources: Opper, *A Bayesian approach to on-line learning*, 1998; Minka, *Expectation propagation*, 2001; spec `likelihood_approximations`, section 6.7.

use super::labels::check_labels;
use crate::kinds::prelude::*;
use posterior_likelihoods::Categorical;
use posterior_linalg::cholesky::{Cholesky, JitterPolicy};
use posterior_linalg::dense::product;
use posterior_linear::LinearError;
use posterior_linear::check::{finite_matrix, same};
use posterior_linear::streaming::StreamLatents;
use posterior_linear::structure::StructureError;

/// One Gaussian for each function's weights, and what became of rows.
#[derive(Clone, Debug)]
pub(super) struct AssumedDensity {
    likelihood: Categorical,
    /// P x K.
    means: Mat<f64>,
    /// P x P for each function.
    covariances: Vec<Mat<f64>>,
    damping: f64,
    skipped: u64,
}

impl AssumedDensity {
    /// Priors `N(m_k, P^-1)` from their precision (P x P, positive definite) and means (P x K, two functions or more); `damping` in (0, 1] multiplies what each row says, 1 leaves it as it is.
    ///
    /// # Errors
    /// [`LinearError::Shape`], [`LinearError::Empty`], [`LinearError::NotFinite`], [`LinearError::Option`]; [`LinearError::Structure`] where the precision is not positive definite.
    pub(super) fn new(
        precision: MatRef<'_, f64>,
        means: MatRef<'_, f64>,
        damping: f64,
    ) -> Result<Self, LinearError> {
        let (p, k) = means.shape();
        same("rows of the prior precision", p, precision.nrows())?;
        same("columns of the prior precision", p, precision.ncols())?;
        if p == 0 {
            return Err(LinearError::Empty { what: "features" });
        }
        check_labels(&[], k)?;
        finite_matrix("entry of the prior precision", precision)?;
        finite_matrix("entry of the prior mean", means)?;
        if !(damping > 0.0 && damping <= 1.0) {
            let expected = "above 0, and 1 at most, which is no damping";
            return Err(LinearError::Option { name: "damping", value: damping, expected });
        }
        let likelihood = Categorical::new(k).map_err(|error| LinearError::Target { example: 0, error })?;
        let factor = Cholesky::of(precision, JitterPolicy::NONE)
            .map_err(|source| StructureError::Factor { block: "the prior".into(), source })?;
        let mut covariance = Mat::identity(p, p);
        factor.solve_in_place(covariance.as_mut());
        Ok(Self {
            likelihood,
            means: means.to_owned(),
            covariances: vec![covariance; k],
            damping,
            skipped: 0,
        })
    }

    /// Number of features P.
    pub(super) fn features(&self) -> usize {
        self.means.nrows()
    }

    /// How often a function was passed over because its moments were none; at most K times a row.
    pub(super) fn skipped(&self) -> u64 {
        self.skipped
    }

    /// Learns rows one after the other, from their features (B x P) and classes (B, from 0). Nothing is learned where something is wrong.
    ///
    /// # Errors
    /// [`LinearError::Shape`], [`LinearError::NotFinite`]; [`LinearError::Option`] for a label that is no class.
    pub(super) fn learn(&mut self, features: MatRef<'_, f64>, labels: &[usize]) -> Result<(), LinearError> {
        let (p, classes) = self.means.shape();
        same("features", p, features.ncols())?;
        same("labels", features.nrows(), labels.len())?;
        finite_matrix("feature", features)?;
        check_labels(labels, classes)?;
        let (mut toward_means, mut toward_variances) = (vec![0.0; classes], vec![0.0; classes]);
        for (i, label) in labels.iter().enumerate() {
            let phi = features.row(i).transpose().to_owned();
            let gains: Vec<_> = self.covariances.iter().map(|covariance| covariance * &phi).collect();
            let means: Vec<f64> = (0..classes).map(|k| phi.transpose() * self.means.col(k)).collect();
            let variances: Vec<f64> = gains.iter().map(|gain| (phi.transpose() * gain).max(0.0)).collect();
            let slopes = (&mut toward_means[..], &mut toward_variances[..]);
            self.likelihood.log_evidence(*label, (&means, &variances), slopes);
            for (k, gain) in gains.iter().enumerate() {
                let (slope, variance) = (toward_means[k], variances[k]);
                let curvature = slope * slope - 2.0 * toward_variances[k];
                if !(curvature > 0.0 && variance * curvature < 1.0) {
                    self.skipped += 1;
                    continue;
                }
                let precision = self.damping * curvature / (1.0 - variance * curvature);
                let shrink = precision / (1.0 + precision * variance);
                let surprise = slope / curvature;
                for a in 0..p {
                    self.means[(a, k)] += shrink * surprise * gain[a];
                }
                // Its root first, so that the covariance stays symmetric to the last bit.
                let along: Vec<f64> = gain.iter().map(|g| shrink.sqrt() * g).collect();
                for (b, own) in along.iter().enumerate() {
                    let column = self.covariances[k].col_as_slice_mut(b);
                    column.iter_mut().zip(&along).for_each(|(entry, other)| *entry -= own * other);
                }
            }
        }
        Ok(())
    }

    /// Latent values of B rows by their features (B x P). Cost: `2 B K P^2` flops.
    ///
    /// # Errors
    /// [`LinearError::Shape`], [`LinearError::NotFinite`].
    pub(super) fn latents(&self, features: MatRef<'_, f64>) -> Result<StreamLatents, LinearError> {
        same("features", self.features(), features.ncols())?;
        finite_matrix("feature", features)?;
        let mut variances = Mat::zeros(features.nrows(), self.covariances.len());
        for (k, covariance) in self.covariances.iter().enumerate() {
            let spread = product(features, covariance.as_ref());
            for i in 0..features.nrows() {
                variances[(i, k)] = (spread.row(i) * features.row(i).transpose()).max(0.0);
            }
        }
        Ok(StreamLatents { means: product(features, self.means.as_ref()), variances })
    }
}

#[cfg(test)]
mod tests;
