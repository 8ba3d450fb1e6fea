//! What a predictor returns: Gaussians over latent values, what there is beyond them, and where their variances come from.

use crate::ModelError;
use faer::Mat;
use posterior_gp::Prediction;
use posterior_gp::inducing::LatentMarginals;
use posterior_laplace::Wanted;
use posterior_laplace::learned::SampledPredictions;
use posterior_likelihoods::{Covariance, LatentGaussian};
use serde::Serialize;
use std::fmt;
use std::sync::Arc;

/// Gaussians over the values of C latent functions at m points, in the predictor's units.
#[derive(Clone, Debug)]
pub struct Latent {
    /// Means, m x C, row by row.
    pub mean: Vec<f64>,
    pub(crate) covariance: LatentCovariance,
    /// Number of functions, C.
    pub functions: usize,
    /// Variances that rounding had made negative and that were raised to 0.
    pub clipped: usize,
    /// How exact variances by solves are, where there were solves.
    pub solves: Option<VarianceSolves>,
    pub(crate) beyond: Beyond,
}

/// What predicts observations where the Gaussians alone do not.
#[derive(Clone, Debug, Default)]
pub(crate) enum Beyond {
    /// They do.
    #[default]
    Nothing,
    /// Draws, where the posterior has any of its own.
    Draws(Arc<dyn Draws>),
    /// Latent values of each member of a mixture with equal weights, in units of its own.
    Mixture(Vec<Latent>),
}

/// Predictions of some examples by draws that no Gaussian describes.
pub(crate) trait Draws: fmt::Debug + Send + Sync {
    /// Predictions with their log densities at targets `[m, width]`; None where the Gaussians are all there is.
    ///
    /// # Errors
    /// When a target cannot be.
    fn predictive(&self, targets: Option<&[f64]>) -> Result<Option<SampledPredictions>, ModelError>;
}

/// Covariances of the latent values, row by row.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum LatentCovariance {
    /// A variance of each value, m x C.
    Diagonal(Vec<f64>),
    /// A covariance of the functions at each point, m x C x C.
    Blocks(Vec<f64>),
}

impl Latent {
    /// Of means (m x C) and variances (m x C) or covariances at each point (m x C x C), row by row.
    pub(crate) fn new(mean: Vec<f64>, covariance: Vec<f64>, functions: usize) -> Self {
        let covariance = match covariance.len() > mean.len() {
            true => LatentCovariance::Blocks(covariance),
            false => LatentCovariance::Diagonal(covariance),
        };
        Self::of(mean, covariance, functions)
    }

    fn of(mean: Vec<f64>, covariance: LatentCovariance, functions: usize) -> Self {
        Self { mean, covariance, functions, clipped: 0, solves: None, beyond: Beyond::Nothing }
    }

    /// Of means and variances, m x C each.
    pub(crate) fn independent(mean: &Mat<f64>, variance: &Mat<f64>, clipped: usize) -> Self {
        Self { clipped, ..Self::new(by_rows(mean), by_rows(variance), mean.ncols()) }
    }

    /// Takes some points from another of the same form.
    pub(crate) fn take(&mut self, other: &Self, points: &[usize]) {
        let count = other.points().max(1);
        let copy = |to: &mut [f64], from: &[f64]| {
            let width = from.len() / count;
            for &i in points {
                to[i * width..][..width].copy_from_slice(&from[i * width..][..width]);
            }
        };
        copy(&mut self.mean, &other.mean);
        match (&mut self.covariance, &other.covariance) {
            (LatentCovariance::Diagonal(to), LatentCovariance::Diagonal(from))
            | (LatentCovariance::Blocks(to), LatentCovariance::Blocks(from)) => copy(to, from),
            _ => {}
        }
    }

    /// What the likelihood sees: the latent values of each point with its offset, if there are any.
    pub(crate) fn with_offsets(mut self, offsets: Option<&[f64]>) -> Self {
        if let Some(offsets) = offsets {
            self.mean.iter_mut().enumerate().for_each(|(k, m)| *m += offsets[k / self.functions]);
        }
        self
    }

    /// Number of points, m.
    pub fn points(&self) -> usize {
        self.mean.len() / self.functions.max(1)
    }

    /// Means of point i.
    pub(crate) fn mean_at(&self, i: usize) -> &[f64] {
        &self.mean[i * self.functions..][..self.functions]
    }

    /// Covariance of the functions at point i.
    pub(crate) fn covariance_at(&self, i: usize) -> Covariance<'_> {
        let c = self.functions;
        match &self.covariance {
            LatentCovariance::Diagonal(all) => Covariance::Diagonal(&all[i * c..][..c]),
            LatentCovariance::Blocks(all) => Covariance::Full(&all[i * c * c..][..c * c]),
        }
    }

    /// The Gaussian of point i, as likelihoods take it.
    pub(crate) fn gaussian_at(&self, i: usize) -> LatentGaussian<'_> {
        LatentGaussian { mean: self.mean_at(i), covariance: self.covariance_at(i) }
    }

    /// Standard deviations of the functions at point i.
    pub(crate) fn deviations_at(&self, i: usize) -> impl Iterator<Item = f64> {
        (0..self.functions).map(move |c| self.variance(i, c).max(0.0).sqrt())
    }

    /// Variance of function c at point i.
    pub fn variance(&self, i: usize, c: usize) -> f64 {
        match self.covariance_at(i) {
            Covariance::Diagonal(v) => v[c],
            Covariance::Full(v) => v[c * self.functions + c],
        }
    }

    /// Variances of all functions at all points, row by row.
    pub(crate) fn all_variances(&self) -> Vec<f64> {
        (0..self.points()).flat_map(|i| (0..self.functions).map(move |c| self.variance(i, c))).collect()
    }

    /// Variances of the first function at all points.
    pub fn variances(&self) -> Vec<f64> {
        (0..self.points()).map(|i| self.variance(i, 0)).collect()
    }
}

/// Of one function.
impl From<Prediction> for Latent {
    fn from(prediction: Prediction) -> Self {
        let Prediction { mean, latent_variance, clipped, .. } = prediction;
        Self { clipped, ..Self::new(by_rows(&mean), latent_variance, mean.ncols()) }
    }
}

/// Outputs of a network.
impl From<posterior_laplace::Latent> for Latent {
    fn from(own: posterior_laplace::Latent) -> Self {
        let covariance = match own.wanted {
            Wanted::Diagonal => LatentCovariance::Diagonal(own.covariance),
            Wanted::Full => LatentCovariance::Blocks(own.covariance),
        };
        Self { clipped: own.clipped, ..Self::of(own.mean, covariance, own.outputs) }
    }
}

impl From<LatentMarginals> for Latent {
    fn from(marginals: LatentMarginals) -> Self {
        Self::independent(&marginals.mean, &marginals.variance, marginals.clipped)
    }
}

/// The values of a matrix, row by row.
pub(crate) fn by_rows(matrix: &Mat<f64>) -> Vec<f64> {
    (0..matrix.nrows()).flat_map(|i| (0..matrix.ncols()).map(move |j| matrix[(i, j)])).collect()
}

/// Where the variances of a model with posterior samples come from. Models in closed form have nothing to choose.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum VarianceMethod {
    /// The samples: a relative standard error of `√(2/s)`, at the cost of the mean.
    #[default]
    Samples,
    /// A solve for each row by conjugate gradients, to this relative residual: as costly as a sample each.
    Solves {
        /// Relative residual that a solve must reach; it goes on until variances hardly fall any more.
        tolerance: f64,
        /// Most iterations of each block of 64 rows.
        iterations: usize,
        /// Bytes that the solves may need.
        memory_limit: u64,
    },
    /// One Lanczos basis of the kernel matrix for all rows: too large by what its vectors leave, which solves of some rows tell.
    Lanczos {
        /// Most vectors; 512 are customary.
        rank: usize,
        /// Bytes that the basis and the solves may need.
        memory_limit: u64,
    },
}

impl VarianceMethod {
    /// Refuses a Lanczos basis to methods whose variances have a closed form.
    pub(crate) fn check_closed_form(self) -> Result<(), ModelError> {
        match self {
            Self::Lanczos { .. } => Err(ModelError::Usage(
                "--variances lanczos is for models that solve with all rows (cg, sdd, sap, sgd): this one has its variances in closed form, leave it out".into(),
            )),
            Self::Samples | Self::Solves { .. } => Ok(()),
        }
    }
}

/// How exact variances are that come from no closed form.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum VarianceSolves {
    /// By a solve for each row.
    Rows {
        /// The largest relative residual.
        residual: f64,
        /// Iterations of all blocks.
        iterations: usize,
        /// By what share of a new observation's variance the worst of them may still be too large, as far as its falls tell.
        excess: f64,
    },
    /// By one Lanczos basis for all rows.
    Lanczos {
        /// Vectors of it.
        rank: usize,
        /// Whether more would have changed nothing.
        complete: bool,
        /// How often it began anew outside of an invariant subspace.
        restarts: usize,
        /// Rows whose variances were solved for to compare.
        probes: usize,
        /// Mean over these of the ratio of standard deviations (of the noiseless function) to those solved for, less 1.
        mean_excess: f64,
        /// The largest of these.
        largest_excess: f64,
        /// The largest relative residual of these solves.
        residual: f64,
    },
}

impl std::fmt::Display for VarianceSolves {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Rows { residual, iterations, excess } => {
                let still = if *excess > 0.05 {
                    ": MANY MAY BE TOO LARGE, their solves ended before they were found (--variances samples has no such error)"
                } else {
                    ""
                };
                write!(
                    out,
                    "variances by {iterations} iterations of conjugate gradients, largest relative residual {residual:.1e}; too large by at most some {:.2} % of a new observation's{still}",
                    100.0 * excess
                )
            }
            Self::Lanczos { rank, complete, probes, mean_excess, largest_excess, residual, .. } => {
                let enough = if *complete { ", all that there is" } else { "" };
                write!(
                    out,
                    "variances from a Lanczos basis of rank {rank}{enough}: against solves of {probes} rows (relative residual {residual:.1e}) latent standard deviations are too large by {:.2} % on average, {:.2} % at most",
                    100.0 * mean_excess,
                    100.0 * largest_excess
                )
            }
        }
    }
}

impl VarianceSolves {
    /// Of several sets of rows together; a basis is the same for all of them, and is compared once.
    pub fn of_all(sets: impl IntoIterator<Item = Option<Self>>) -> Option<Self> {
        sets.into_iter().flatten().reduce(|a, b| match (a, b) {
            (
                Self::Rows { residual, iterations, excess },
                Self::Rows { residual: other, iterations: more, excess: more_excess },
            ) => Self::Rows {
                residual: residual.max(other),
                iterations: iterations + more,
                excess: excess.max(more_excess),
            },
            (first, _) => first,
        })
    }
}
