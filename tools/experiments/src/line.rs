//! Rows in one dimension under a process that is known, with its exact posterior on a grid.

use super::covariance::{Covariance, normals};
use super::error::Result;
use super::toy::waves;
use faer::Mat;
use posterior_gp::exact::{ExactGp, ExactPosterior};
use posterior_gp::{MeanForm, Observations, Posterior, Prediction};
use posterior_likelihoods::Gaussian;
use posterior_linalg::random::Streams;
use serde::Deserialize;

/// Where inputs lie.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) enum Inputs {
    /// Normal around 0: more rows fill the same interval.
    Normal {
        /// Standard deviation.
        deviation: f64,
    },
    /// A grid around 0: more rows reach further.
    EquallySpaced {
        /// From one to the next.
        spacing: f64,
    },
    /// Half around minus `centre`, half around plus.
    Clusters {
        /// Where they lie.
        centre: f64,
        /// Standard deviation of each.
        deviation: f64,
    },
}

impl Inputs {
    /// Whether all its numbers are positive.
    pub(crate) fn is_positive(&self) -> bool {
        let positive = |v: f64| v > 0.0 && v.is_finite();
        match *self {
            Self::Normal { deviation: one } | Self::EquallySpaced { spacing: one } => positive(one),
            Self::Clusters { centre, deviation } => positive(centre) && positive(deviation),
        }
    }

    /// So many of them, n x 1.
    pub(crate) fn draw(&self, rows: usize, streams: Streams) -> Mat<f64> {
        let z = normals(rows, 1, streams, "experiment/inputs");
        let middle = (rows - 1) as f64 / 2.0;
        Mat::from_fn(rows, 1, |i, _| match *self {
            Self::Normal { deviation } => deviation * z[(i, 0)],
            Self::EquallySpaced { spacing } => spacing * (i as f64 - middle),
            Self::Clusters { centre, deviation } => {
                let side = if i.is_multiple_of(2) { -centre } else { centre };
                side + deviation * z[(i, 0)]
            }
        })
    }
}

/// Noisy values of [`waves`], a grid, and the exact posterior on it.
pub(crate) struct KnownLine {
    pub(crate) covariance: Covariance,
    pub(crate) noise_variance: f64,
    pub(crate) data: Observations,
    pub(crate) grid: Vec<f64>,
    /// The grid, m x 1.
    pub(crate) points: Mat<f64>,
    pub(crate) exact: Prediction,
}

impl KnownLine {
    /// At inputs (n x 1) with noise of a standard deviation; the grid has its ends and number of points. Also the posterior itself, which has a factor of all rows.
    ///
    /// # Errors
    /// Those of the exact posterior.
    pub(crate) fn new(
        covariance: Covariance,
        x: Mat<f64>,
        noise: f64,
        (from, to, count): (f64, f64, usize),
        streams: Streams,
    ) -> Result<(Self, ExactPosterior)> {
        let e = normals(x.nrows(), 1, streams, "experiment/noise");
        let y = Mat::from_fn(x.nrows(), 1, |i, _| waves(x[(i, 0)]) + noise * e[(i, 0)]);
        let data = Observations::new(x, y, None)?;
        let step = (to - from) / (count - 1) as f64;
        let grid: Vec<f64> = (0..count).map(|i| from + i as f64 * step).collect();
        let points = Mat::from_fn(count, 1, |i, _| grid[i]);
        let noise_variance = noise * noise;
        let gaussian = Gaussian::new(noise_variance, 0.0);
        let posterior =
            ExactGp::new(covariance.kernel()?, MeanForm::Zero, gaussian, 1, 1).condition(data.clone())?;
        let exact = posterior.predict(points.as_ref())?;
        Ok((Self { covariance, noise_variance, data, grid, points, exact }, posterior))
    }
}
