//! The posterior of the latent functions, by any of the four ways.

use crate::process::ProcessPosterior;
use faer::{Mat, MatRef};
use posterior_gp::generalised::GeneralisedGp;
use posterior_gp::inducing::{InducingPosterior, LatentMarginals};
use posterior_gp::laplace::{LaplacePosterior, LatentPrediction};
use posterior_gp::{GpError, Posterior};
use posterior_likelihoods::Covariance;
use posterior_linalg::random::Streams;
use posterior_linear::low_rank::{LowRankPosterior, WeightMarginals};

/// Posteriors over C latent functions.
#[derive(Debug)]
pub enum LatentPosterior {
    /// A posterior of its own for each function, which are independent: Gaussianised inference. In standard units; the pairs are mean and scale of the functions' own.
    Apart {
        /// The posteriors.
        posteriors: Vec<ProcessPosterior>,
        /// Offset of each function.
        offsets: Vec<f64>,
        /// Their common scale.
        scale: f64,
    },
    /// Inducing points.
    Inducing(InducingPosterior),
    /// The curvature at the mode.
    Laplace(LaplacePosterior),
    /// Learned features, which all functions share.
    Learned {
        /// Of their weights.
        posterior: LowRankPosterior,
        /// What is added to every latent value.
        level: f64,
    },
    /// A mean and a covariance of their own for each function.
    Generalised(GeneralisedGp),
}

/// Gaussians over the latent values at m points, point by point.
#[derive(Clone, Debug)]
pub(super) struct Latents {
    /// m x C, row by row.
    pub(super) mean: Vec<f64>,
    /// Variances m x C, or covariances m x C x C.
    covariance: Vec<f64>,
    /// C.
    pub(super) outputs: usize,
    /// Variances that rounding had made negative.
    pub(super) clipped: usize,
}

impl Latents {
    /// From marginals, m x C each.
    fn independent(mean: &Mat<f64>, variance: &Mat<f64>, clipped: usize) -> Self {
        Self { mean: by_rows(mean), covariance: by_rows(variance), outputs: mean.ncols(), clipped }
    }

    /// Of values that are given: m x C means and variances, row by row.
    pub(super) fn of(mean: Vec<f64>, covariance: Vec<f64>, outputs: usize) -> Self {
        Self { mean, covariance, outputs, clipped: 0 }
    }

    /// Takes some points from another of the same form.
    pub(super) fn take(&mut self, other: &Self, points: &[usize]) {
        let mut copy = |of: fn(&mut Self) -> &mut Vec<f64>, from: &[f64]| {
            let width = from.len() / other.len().max(1);
            for &i in points {
                of(self)[i * width..][..width].copy_from_slice(&from[i * width..][..width]);
            }
        };
        copy(|l| &mut l.mean, &other.mean);
        copy(|l| &mut l.covariance, &other.covariance);
    }

    /// What the likelihood sees: the latent values of each point with its offset, if there are any.
    pub(super) fn with_offsets(mut self, offsets: Option<&[f64]>) -> Self {
        if let Some(offsets) = offsets {
            self.mean.iter_mut().enumerate().for_each(|(k, m)| *m += offsets[k / self.outputs]);
        }
        self
    }

    /// Number of points.
    pub(super) fn len(&self) -> usize {
        self.mean.len() / self.outputs.max(1)
    }

    /// Means of point i.
    pub(super) fn mean_at(&self, i: usize) -> &[f64] {
        &self.mean[i * self.outputs..][..self.outputs]
    }

    /// Covariance of point i.
    pub(super) fn covariance_at(&self, i: usize) -> Covariance<'_> {
        let c = self.outputs;
        if self.covariance.len() > self.mean.len() {
            Covariance::Full(&self.covariance[i * c * c..][..c * c])
        } else {
            Covariance::Diagonal(&self.covariance[i * c..][..c])
        }
    }

    /// Variance of function c at point i.
    pub(super) fn variance(&self, i: usize, c: usize) -> f64 {
        match self.covariance_at(i) {
            Covariance::Diagonal(v) => v[c],
            Covariance::Full(v) => v[c * self.outputs + c],
        }
    }
}

/// The posterior of a function where it is one of inducing points.
pub(in crate::process) fn inducing(posterior: &ProcessPosterior) -> Option<&InducingPosterior> {
    match posterior {
        ProcessPosterior::Inducing(posterior) => Some(posterior),
        _ => None,
    }
}

fn by_rows(matrix: &Mat<f64>) -> Vec<f64> {
    (0..matrix.nrows()).flat_map(|i| (0..matrix.ncols()).map(move |j| matrix[(i, j)])).collect()
}

impl LatentPosterior {
    /// Gaussians over the latent values at standardised inputs, m x D, in the functions' own units.
    pub(super) fn at(&self, x: MatRef<'_, f64>) -> Result<Latents, GpError> {
        match self {
            Self::Apart { posteriors, offsets, scale } => {
                let (mut mean, mut variance) =
                    (Mat::zeros(x.nrows(), posteriors.len()), Mat::zeros(x.nrows(), posteriors.len()));
                let mut clipped = 0;
                let mut write = |k: usize, i: usize, m: f64, v: f64| {
                    mean[(i, k)] = offsets[k] + scale * m;
                    variance[(i, k)] = scale * scale * v;
                };
                let inducing: Option<Vec<&InducingPosterior>> = posteriors.iter().map(inducing).collect();
                if let Some(inducing) = inducing {
                    for (k, found) in InducingPosterior::latent_of_all(&inducing, x)?.iter().enumerate() {
                        clipped += found.clipped;
                        (0..x.nrows()).for_each(|i| write(k, i, found.mean[(i, 0)], found.variance[(i, 0)]));
                    }
                    return Ok(Latents::independent(&mean, &variance, clipped));
                }
                for (k, posterior) in posteriors.iter().enumerate() {
                    let found = posterior.predict(x)?;
                    clipped += found.clipped;
                    (0..x.nrows()).for_each(|i| write(k, i, found.mean[(i, 0)], found.latent_variance[i]));
                }
                Ok(Latents::independent(&mean, &variance, clipped))
            }
            Self::Inducing(posterior) => {
                let LatentMarginals { mean, variance, clipped } = posterior.latent(x)?;
                Ok(Latents::independent(&mean, &variance, clipped))
            }
            Self::Laplace(posterior) => {
                let LatentPrediction { mean, covariance, clipped } = posterior.predict(x)?;
                let outputs = mean.ncols();
                Ok(Latents { clipped, ..Latents::of(by_rows(&mean), covariance, outputs) })
            }
            Self::Generalised(posterior) => {
                let LatentMarginals { mean, variance, clipped } = posterior.latent(x, None)?;
                Ok(Latents::independent(&mean, &variance, clipped))
            }
            Self::Learned { posterior, level } => {
                let WeightMarginals { mean, variance } = posterior.latent(x)?;
                let levels = vec![*level; x.nrows()];
                Ok(Latents::independent(&mean, &variance, 0).with_offsets(Some(&levels)))
            }
        }
    }

    /// `count` joint draws of all functions at the rows of x, a matrix m x count for each.
    pub(super) fn sample(
        &self,
        x: MatRef<'_, f64>,
        count: usize,
        streams: Streams,
    ) -> Result<Vec<Mat<f64>>, GpError> {
        let stream = |c: usize| streams.child("model/samples", c as u64).stream("draws");
        match self {
            Self::Apart { posteriors, offsets, scale } => {
                let function = |(c, posterior): (usize, &ProcessPosterior)| {
                    let (draws, _) = posterior.sample(x, 0, count, &mut stream(c))?;
                    Ok(Mat::from_fn(draws.nrows(), count, |i, j| offsets[c] + scale * draws[(i, j)]))
                };
                posteriors.iter().enumerate().map(function).collect()
            }
            Self::Inducing(posterior) => (0..posterior.distribution().latents())
                .map(|c| posterior.sample(x, c, count, &mut stream(c)).map(|(draws, _)| draws))
                .collect(),
            Self::Laplace(posterior) => posterior.sample(x, count, &mut stream(0)).map(|(draws, _)| draws),
            Self::Generalised(posterior) => (0..posterior.functions())
                .map(|c| posterior.sample(x, c, count, &mut stream(c)).map(|(draws, _)| draws))
                .collect(),
            Self::Learned { posterior, level } => (0..posterior.distribution().latents())
                .map(|c| {
                    let draws = posterior.draws(x, c, count, &mut stream(c))?;
                    Ok(Mat::from_fn(draws.nrows(), count, |i, j| level + draws[(i, j)]))
                })
                .collect(),
        }
    }

    /// Points whose kernels make a prediction, or features.
    pub(super) fn support(&self) -> usize {
        match self {
            Self::Apart { posteriors, .. } => match posteriors.first() {
                Some(ProcessPosterior::Inducing(posterior)) => posterior.inducing().nrows(),
                Some(posterior) => posterior.training().map_or(0, |(x, _)| x.nrows()),
                None => 0,
            },
            Self::Inducing(posterior) => posterior.inducing().nrows(),
            Self::Laplace(posterior) => posterior.inputs().nrows(),
            Self::Learned { posterior, .. } => posterior.features().rank(),
            Self::Generalised(posterior) => posterior.reference(0).rank(),
        }
    }
}
