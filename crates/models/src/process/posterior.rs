//! The posteriors that a model may hold.

use super::ModelError;
use super::predict::{VarianceMethod, VarianceSolves};
use faer::{Mat, MatRef};
use posterior_gp::exact::{EmbeddedPosterior, ExactPosterior};
use posterior_gp::generalised::GeneralisedGp;
use posterior_gp::inducing::InducingPosterior;
use posterior_gp::iterative::{Budget, LanczosBasis, LanczosVariances, PathwisePosterior, SolvedVariances};
use posterior_gp::{Averages, GpError, JointPrediction, Posterior, Prediction};
use posterior_linalg::Real;
use posterior_linalg::random::ChaCha8Rng;
use posterior_linear::low_rank::LowRankPosterior;

/// A posterior over functions, by one of the methods.
#[derive(Debug)]
pub enum ProcessPosterior {
    /// All in closed form.
    Exact(ExactPosterior),
    /// Weights by an iterative solver, in single precision.
    Single(PathwisePosterior<f32>),
    /// Weights by an iterative solver, in double precision.
    Double(PathwisePosterior<f64>),
    /// Inducing points.
    Inducing(InducingPosterior),
    /// Learned features.
    LowRank(LowRankPosterior),
    /// All in closed form, behind a network.
    Embedded(EmbeddedPosterior),
    /// A mean and a covariance of their own.
    Generalised(GeneralisedGp),
}

impl ProcessPosterior {
    fn inner(&self) -> &dyn Posterior {
        match self {
            Self::Exact(posterior) => posterior,
            Self::Single(posterior) => posterior,
            Self::Double(posterior) => posterior,
            Self::Inducing(posterior) => posterior,
            Self::LowRank(posterior) => posterior,
            Self::Embedded(posterior) => posterior,
            Self::Generalised(posterior) => posterior,
        }
    }

    /// Marginals with variances by the given method.
    pub(super) fn predict_by(
        &self,
        x: MatRef<'_, f64>,
        method: VarianceMethod,
    ) -> Result<(Prediction, Option<VarianceSolves>), ModelError> {
        match (method, self) {
            (VarianceMethod::Solves { tolerance, iterations, memory_limit }, Self::Single(posterior)) => {
                solved(posterior, x, (tolerance, iterations, memory_limit))
            }
            (VarianceMethod::Solves { tolerance, iterations, memory_limit }, Self::Double(posterior)) => {
                solved(posterior, x, (tolerance, iterations, memory_limit))
            }
            (VarianceMethod::Lanczos { rank, memory_limit }, Self::Single(posterior)) => {
                by_lanczos(posterior, x, rank, memory_limit)
            }
            (VarianceMethod::Lanczos { rank, memory_limit }, Self::Double(posterior)) => {
                by_lanczos(posterior, x, rank, memory_limit)
            }
            (VarianceMethod::Lanczos { .. }, _) => Err(ModelError::Usage(CLOSED.into())),
            (VarianceMethod::Samples | VarianceMethod::Solves { .. }, _) => Ok((self.predict(x)?, None)),
        }
    }

    /// The training inputs (n x D, standardised) and targets (n x 1), for methods that keep them.
    pub fn training(&self) -> Option<(MatRef<'_, f64>, MatRef<'_, f64>)> {
        let data = match self {
            Self::Exact(posterior) => posterior.data(),
            Self::Single(posterior) => posterior.data(),
            Self::Double(posterior) => posterior.data(),
            Self::Inducing(_) | Self::LowRank(_) | Self::Embedded(_) | Self::Generalised(_) => return None,
        };
        Some((data.inputs(), data.targets()))
    }

    /// Samples that are functions, of which draws are a choice; None where draws are made when asked for.
    pub fn stored_samples(&self) -> Option<usize> {
        match self {
            Self::Single(posterior) => Some(posterior.settings().samples),
            Self::Double(posterior) => Some(posterior.settings().samples),
            Self::Exact(_)
            | Self::Inducing(_)
            | Self::LowRank(_)
            | Self::Embedded(_)
            | Self::Generalised(_) => None,
        }
    }
}

/// Means, and variances by solves to a tolerance in so many iterations and bytes.
fn solved<T: Real>(
    posterior: &PathwisePosterior<T>,
    x: MatRef<'_, f64>,
    (tolerance, iterations, limit): (f64, usize, u64),
) -> Result<(Prediction, Option<VarianceSolves>), ModelError> {
    let needed = posterior.exact_variance_bytes();
    if needed > limit {
        return Err(ModelError::VarianceMemory { needed, limit });
    }
    let budget = Budget { steps: iterations, time: None, tolerance };
    let SolvedVariances { latent_variance, clipped, residual, iterations, excess } =
        posterior.exact_variance(x, &budget)?;
    let noise_variance = posterior.model().noise.noise_variance();
    let mean = posterior.mean(x)?;
    let prediction = Prediction { mean, latent_variance, noise_variance, clipped };
    Ok((prediction, Some(VarianceSolves::Rows { residual, iterations, excess })))
}

/// Why a model has no use for a Lanczos basis.
const CLOSED: &str = "--variances lanczos is for models that solve with all rows (cg, sdd, sap, sgd): this one has its variances in closed form, leave it out";

/// Means, and variances from a Lanczos basis of so many vectors, in so many bytes.
fn by_lanczos<T: Real>(
    posterior: &PathwisePosterior<T>,
    x: MatRef<'_, f64>,
    rank: usize,
    limit: u64,
) -> Result<(Prediction, Option<VarianceSolves>), ModelError> {
    let needed = posterior.lanczos_variance_bytes(rank);
    if needed > limit {
        return Err(ModelError::VarianceMemory { needed, limit });
    }
    let LanczosVariances { latent_variance, clipped, basis } = posterior.lanczos_variance(x, rank)?;
    let noise_variance = posterior.model().noise.noise_variance();
    let prediction = Prediction { mean: posterior.mean(x)?, latent_variance, noise_variance, clipped };
    let LanczosBasis { rank, complete, restarts, probes, mean_excess, largest_excess, residual } = basis;
    let basis =
        VarianceSolves::Lanczos { rank, complete, restarts, probes, mean_excess, largest_excess, residual };
    Ok((prediction, Some(basis)))
}

impl Posterior for ProcessPosterior {
    fn predict(&self, x: MatRef<'_, f64>) -> Result<Prediction, GpError> {
        self.inner().predict(x)
    }

    fn joint(&self, x: MatRef<'_, f64>) -> Result<JointPrediction, GpError> {
        self.inner().joint(x)
    }

    fn mean_values(&self, x: MatRef<'_, f64>) -> Result<Mat<f64>, GpError> {
        self.inner().mean_values(x)
    }

    fn averages(&self, x: MatRef<'_, f64>, each: usize) -> Result<Averages, GpError> {
        self.inner().averages(x, each)
    }

    fn sample(
        &self,
        x: MatRef<'_, f64>,
        target: usize,
        count: usize,
        rng: &mut ChaCha8Rng,
    ) -> Result<(Mat<f64>, f64), GpError> {
        self.inner().sample(x, target, count, rng)
    }
}
