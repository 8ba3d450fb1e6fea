//! Weights of a mean and of posterior samples by an iterative solver, in single or double precision.

use super::exact::{read_observations, write_observations};
use super::precision::SolverPrecision;
use super::{Read, TILES, compressed, draws, row_effort};
use crate::predictor::{Compressed, Drawn, Samples, StreamOf, bytes_of};
use crate::shares::Weighted;
use crate::speed::{dense_rate, seconds_of_pair};
use crate::{
    Batch, Cost, DrawnFunctions, Latent, ModelError, Predictor, Prior, SharePlaces, TableSource,
    VarianceMethod, VarianceShares, VarianceSolves, Want,
};
use faer::{Mat, MatRef};
use posterior_gp::iterative::{
    Budget, InducingDescentOptions, LanczosBasis, LanczosVariances, Method, PathwiseModel, PathwisePosterior,
    PathwiseSettings, Solution, SolvedVariances, Support,
};
use posterior_gp::{GpError, Observations, Posterior, Prediction};
use posterior_linalg::random::Streams;
use posterior_optim::{Progress, Reason};
use posterior_store::{StoreError, Tensors};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;

pub(crate) const SINGLE: &str = "weights in single precision";
pub(crate) const DOUBLE: &str = "weights in double precision";

/// What a file has of it besides arrays.
#[derive(Serialize, Deserialize)]
struct Settings {
    /// How it was conditioned.
    conditioned: PathwiseSettings,
    points: Points,
    /// Where the solver ended, and why.
    progress: Progress,
    reason: Reason,
}

/// What carries the weights, and what they were found with.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Points {
    Rows(Method),
    Inducing { count: usize, options: InducingDescentOptions },
}

/// Rows whose variances are solved for together.
const SOLVED_AT_ONCE: usize = 64;

/// Rows whose variances are solved for beside a Lanczos basis, and steps of that at most.
const PROBES: usize = 16;
const PROBE_STEPS: usize = 1000;

impl<T: SolverPrecision> Predictor for PathwisePosterior<T> {
    fn latent(&self, x: Batch<'_>, want: &Want) -> Result<Latent, ModelError> {
        let x = x.rows()?;
        match want.variances {
            VarianceMethod::Samples => Ok(self.predict(x)?.into()),
            VarianceMethod::Solves { tolerance, iterations, memory_limit } => {
                by_solves(self, x, (tolerance, iterations, memory_limit))
            }
            VarianceMethod::Lanczos { rank, memory_limit } => by_lanczos(self, x, rank, memory_limit),
        }
    }

    fn samples(&self, x: MatRef<'_, f64>, count: usize, stream: StreamOf<'_>) -> Samples {
        draws(self, 1, (x, count), stream)
    }

    fn support(&self) -> usize {
        self.points().nrows()
    }

    fn cost(&self, rows: usize) -> Cost {
        let (n, m, d) = (self.points().nrows() as u64, rows as u64, self.points().ncols() as f64);
        let columns = self.settings().samples as u64 + 1;
        // Samples of a block of rows, prior and update, and tiles of the kernel matrix.
        let bytes = 32 * m.min(4096).saturating_mul(columns) + TILES;
        Cost { bytes, flops: m as f64 * n as f64 * (2.0 * columns as f64 + 2.0 * d) }
    }

    fn effort(&self, inputs: usize) -> [f64; 2] {
        let row = row_effort(self.points().nrows(), inputs);
        [row, row + self.cost(1).flops]
    }

    fn kind(&self) -> &'static str {
        if size_of::<T>() == 4 { SINGLE } else { DOUBLE }
    }

    fn write(&self, out: &mut Tensors) -> Result<Value, StoreError> {
        write_observations(self.data(), out);
        let Solution { weights, reason, progress } = self.solution();
        out.insert_columns("weights", weights.as_ref());
        let points = match PathwisePosterior::support(self) {
            Support::Rows(method) => Points::Rows(method.clone()),
            Support::Inducing(z, options) => {
                out.insert_matrix("inducing_inputs", z.as_ref());
                Points::Inducing { count: z.nrows(), options: options.clone() }
            }
        };
        let residual = progress.residual.filter(|r| r.is_finite());
        // Seconds are in the record of the fit alone, so that equal fits have equal settings.
        let elapsed = Duration::ZERO;
        let progress = Progress { residual, elapsed, value: None, gradient_norm: None, ..*progress };
        let own = Settings { conditioned: self.settings().clone(), points, progress, reason: *reason };
        Ok(posterior_store::to_value(&own)?)
    }

    fn process(&self) -> Option<&dyn Posterior> {
        Some(self)
    }

    fn noise_variance(&self) -> Option<f64> {
        Some(self.model().noise.noise_variance())
    }

    fn sample_cost(&self, rows: usize, count: usize) -> Cost {
        let (m, s, kept) = (rows as u64, count as u64, self.settings().samples);
        // Every kept sample at every row, prior and update, and the choice of them twice.
        let bytes = bytes_of(&[4, m, kept as u64]).saturating_add(bytes_of(&[2, m, s]));
        Cost { bytes, flops: 2.0 * rows as f64 * self.points().nrows() as f64 * kept as f64 }
    }

    fn joint_cost(&self, rows: usize) -> Cost {
        let (m, kept) = (rows as u64, self.settings().samples);
        // Samples at all rows; their covariance, and what becomes the file.
        let bytes = bytes_of(&[4, m, kept as u64]).saturating_add(bytes_of(&[4, m, m]));
        let (m, n) = (rows as f64, self.points().nrows() as f64);
        Cost { bytes, flops: 2.0 * m * kept as f64 * (n + m) }
    }

    fn variance_cost(&self, rows: usize, variances: VarianceMethod) -> Cost {
        let (n, d) = (self.points().nrows() as f64, self.points().ncols() as f64);
        let product = |columns: usize| n * n * (2.0 * d + 30.0 + 2.0 * columns as f64);
        match variances {
            VarianceMethod::Samples => Cost::default(),
            VarianceMethod::Lanczos { rank, .. } => {
                let p = (rank as f64).min(n);
                let solves = PROBE_STEPS as f64 * product(PROBES);
                let flops = p * product(1) + 4.0 * n * p * p + solves + 2.0 * rows as f64 * n * p;
                Cost { bytes: self.lanczos_variance_bytes(rank), flops }
            }
            VarianceMethod::Solves { iterations, .. } => {
                let blocks = rows.div_ceil(SOLVED_AT_ONCE) as f64;
                let flops = blocks * iterations as f64 * product(SOLVED_AT_ONCE);
                Cost { bytes: self.exact_variance_bytes(), flops }
            }
        }
    }

    fn seconds(&self, rows: usize, variances: VarianceMethod) -> Option<f64> {
        let (m, points) = (rows as f64, self.points());
        let columns = self.settings().samples + 1;
        let features = 2.0 * m * (self.settings().features.count * columns) as f64 / dense_rate();
        let pair = |columns| seconds_of_pair(self.kernel(), points, columns);
        let weights = m * points.nrows() as f64 * pair(columns);
        let n = points.nrows() as f64;
        let solves = match variances {
            VarianceMethod::Samples => 0.0,
            VarianceMethod::Lanczos { rank, .. } => {
                let p = (rank as f64).min(n);
                let orthogonal = (4.0 * n * p * p + 2.0 * m * n * p) / dense_rate();
                n * n * (p * pair(1) + PROBE_STEPS as f64 * pair(PROBES)) + orthogonal
            }
            VarianceMethod::Solves { iterations, .. } => {
                let product = n.powi(2) * pair(SOLVED_AT_ONCE);
                rows.div_ceil(SOLVED_AT_ONCE) as f64 * iterations as f64 * product
            }
        };
        Some(features + weights + solves)
    }

    fn functions(self: Arc<Self>, _: usize, _: Streams) -> Option<Drawn> {
        Some(Ok(self))
    }

    fn stored_samples(&self) -> Option<usize> {
        Some(self.settings().samples)
    }

    fn solved(&self) -> Option<(&Support, Progress)> {
        Some((PathwisePosterior::support(self), self.solution().progress))
    }

    fn training(&self) -> Option<&Observations> {
        Some(self.data())
    }

    fn prior(&self) -> Option<Prior<'_>> {
        Some(T::prior(self.kernel()))
    }

    fn shares(&self, names: &[String], scale: f64) -> Option<VarianceShares> {
        let weights = self.solution().weights.subcols(0, 1).to_owned();
        let x = self.data().inputs();
        let rows = Mat::from_fn(x.nrows(), x.ncols(), |i, j| T::from_f64(x[(i, j)]));
        let weighted = Weighted { points: self.points(), weights };
        weighted.shares(self.kernel(), rows.as_ref(), (SharePlaces::TrainingRows, names), scale)
    }

    fn compressed(&self, points: usize, seed: u64) -> Option<Compressed> {
        Some(compressed::compress(self, points, seed))
    }
}

impl<T: SolverPrecision> DrawnFunctions for PathwisePosterior<T> {
    fn values(&self, x: MatRef<'_, f64>) -> Result<Mat<f64>, GpError> {
        self.samples(x, 0)
    }
}

/// Means, and variances by solves to a tolerance in so many iterations and bytes.
fn by_solves<T: SolverPrecision>(
    posterior: &PathwisePosterior<T>,
    x: MatRef<'_, f64>,
    (tolerance, iterations, limit): (f64, usize, u64),
) -> Result<Latent, ModelError> {
    let needed = posterior.exact_variance_bytes();
    if needed > limit {
        return Err(ModelError::VarianceMemory { needed, limit });
    }
    let budget = Budget { steps: iterations, time: None, tolerance };
    let SolvedVariances { latent_variance, clipped, residual, iterations, excess } =
        posterior.exact_variance(x, &budget)?;
    let prediction = with_means(posterior, x, latent_variance, clipped)?;
    Ok(Latent { solves: Some(VarianceSolves::Rows { residual, iterations, excess }), ..prediction })
}

/// Means, and variances from a Lanczos basis of so many vectors, in so many bytes.
fn by_lanczos<T: SolverPrecision>(
    posterior: &PathwisePosterior<T>,
    x: MatRef<'_, f64>,
    rank: usize,
    limit: u64,
) -> Result<Latent, ModelError> {
    let needed = posterior.lanczos_variance_bytes(rank);
    if needed > limit {
        return Err(ModelError::VarianceMemory { needed, limit });
    }
    let LanczosVariances { latent_variance, clipped, basis } = posterior.lanczos_variance(x, rank)?;
    let prediction = with_means(posterior, x, latent_variance, clipped)?;
    let LanczosBasis { rank, complete, restarts, probes, mean_excess, largest_excess, residual } = basis;
    let basis =
        VarianceSolves::Lanczos { rank, complete, restarts, probes, mean_excess, largest_excess, residual };
    Ok(Latent { solves: Some(basis), ..prediction })
}

/// These variances with the means at the same rows.
fn with_means<T: SolverPrecision>(
    posterior: &PathwisePosterior<T>,
    x: MatRef<'_, f64>,
    latent_variance: Vec<f64>,
    clipped: usize,
) -> Result<Latent, ModelError> {
    let noise_variance = posterior.model().noise.noise_variance();
    Ok(Prediction { mean: posterior.mean(x)?, latent_variance, noise_variance, clipped }.into())
}

pub(crate) fn read<T: SolverPrecision>(settings: Value, source: &TableSource, tensors: &mut Tensors) -> Read {
    let Settings { conditioned: settings, points, progress, reason } = super::settings(settings, tensors)?;
    let inputs = source.inputs.schema.features.len();
    let data = read_observations((source.record.rows, inputs), tensors)?;
    let (rows, support) = match points {
        Points::Inducing { count, options } => {
            let z = tensors.matrix("inducing_inputs", count, inputs)?;
            (count, Support::Inducing(z, options))
        }
        Points::Rows(method) => (source.record.rows, Support::Rows(method)),
    };
    let columns = settings.samples.checked_add(1).ok_or_else(|| tensors.corrupt("its size overflows"))?;
    // Features are drawn anew: their number is a declared size like any other.
    if settings.features.count > 10_000_000 {
        return Err(tensors.corrupt(format!("it claims {} random features", settings.features.count)));
    }
    let weights = tensors.columns("weights", Some((rows, columns)))?;
    let (kernel, mean) = source.kernel_and_mean::<T>().map_err(|e| tensors.corrupt(e))?;
    let noise = source.noise().map_err(|e| tensors.corrupt(e))?;
    let model = PathwiseModel { kernel, mean, noise };
    let solution = Solution { weights, reason, progress };
    let posterior = PathwisePosterior::from_parts(model, data, support, settings, solution);
    Ok(T::predictor(posterior.map_err(|e| tensors.corrupt(e))?))
}
