//! Pseudo-targets and pseudo-noise of all rows.

use crate::{GpError, Observations};
use faer::Mat;
use posterior_likelihoods::OutputLikelihood;
use posterior_likelihoods::gaussianised::{Gaussianised, LabelApproximation};

/// What each row says of each latent function as if that had been seen through Gaussian noise, n x C each, in the units of the functions.
#[derive(Clone, Debug, PartialEq)]
pub struct GaussianLabels {
    /// Pseudo-targets, M.
    pub targets: Mat<f64>,
    /// Pseudo-noise variances, V; positive.
    pub variances: Mat<f64>,
}

impl GaussianLabels {
    /// Of targets as the likelihood takes them. Weights divide variances: a weight of 2 is a row that occurs twice. Offsets are logarithms of the exposures of counts.
    ///
    /// # Errors
    /// [`GpError::GaussianLabels`] for likelihoods and targets that have none.
    pub fn of(
        likelihood: &OutputLikelihood,
        gaussianised: &Gaussianised,
        data: &Observations,
    ) -> Result<Self, GpError> {
        let labels = LabelApproximation::new(likelihood, gaussianised)?;
        let each =
            |y: &[f64], k, exposure| labels.observation(y, k, exposure).map(|o| (o.target, o.variance));
        Self::from_each(data, labels.outputs(), each)
    }

    /// How they change with the pseudo-count.
    ///
    /// # Errors
    /// As [`of`](Self::of).
    pub fn slopes(
        likelihood: &OutputLikelihood,
        gaussianised: &Gaussianised,
        data: &Observations,
    ) -> Result<Self, GpError> {
        let labels = LabelApproximation::new(likelihood, gaussianised)?;
        let each = |y: &[f64], k, exposure| labels.slopes(y, k, exposure).map(|s| (s.target, s.variance));
        Self::from_each(data, labels.outputs(), each)
    }

    fn from_each(
        data: &Observations,
        outputs: usize,
        each: impl Fn(&[f64], usize, f64) -> Result<(f64, f64), posterior_likelihoods::LikelihoodError>,
    ) -> Result<Self, GpError> {
        let n = data.rows();
        let (mut targets, mut variances) = (Mat::zeros(n, outputs), Mat::zeros(n, outputs));
        for i in 0..n {
            let y: Vec<f64> = data.targets().row(i).iter().copied().collect();
            let weight = data.weights().map_or(1.0, |w| w[i]);
            let exposure = data.offsets().map_or(1.0, |offsets| offsets[i].exp());
            for k in 0..outputs {
                let (target, variance) = each(&y, k, exposure)?;
                (targets[(i, k)], variances[(i, k)]) = (target, variance / weight);
            }
        }
        Ok(Self { targets, variances })
    }
}
