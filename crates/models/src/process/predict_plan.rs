//! What predictions take, counted before anything is computed.

use super::rates::{dense_rate, seconds_of_batch};
use super::{ProcessModel, ProcessPosterior, VarianceMethod};
use crate::{ModelError, PredictionPlan, Question};
use faer::MatRef;
use posterior_gp::generalised::{GeneralisedGp, VariationalMean};
use posterior_gp::iterative::PathwisePosterior;
use posterior_kernels::Kernel;
use posterior_linalg::Real;

/// Bytes of a number.
const NUMBER: u64 = 8;

/// What takes time of predictions.
#[derive(Clone, Copy, Debug)]
struct Work {
    rows: usize,
    samples: usize,
    variances: VarianceMethod,
    joint: bool,
}

impl ProcessModel {
    /// What predicting `rows` rows of a table of so many bytes takes beside the model itself; refuses what is above the question's memory, before anything is measured. `scored` models are scored
    /// on them, none where they are only predicted.
    pub(super) fn plan_of(
        &self,
        (rows, table): (usize, u64),
        question: &Question,
        scored: usize,
    ) -> Result<PredictionPlan, ModelError> {
        let Question { samples, into, .. } = *question;
        let variances = question.variances.unwrap_or_default();
        let (m, d) = (rows as u64, self.header.schema.features.len() as u64);
        let numbers = |counts: &[u64]| counts.iter().fold(NUMBER, |all, c| all.saturating_mul(*c));
        // Columns, matrix, standardised matrix.
        let inputs = numbers(&[3, m, d]);
        // Means, variances, deviations, row numbers and what holds them; with truths, fingerprints, a constant prediction and sorted copies.
        let outputs = numbers(&[if scored > 0 { 60 * scored as u64 } else { 20 }, m]);
        let (block, flops) = self.blocks(rows);
        let columns = (3 + question.quantiles.len() as u64).saturating_add(samples as u64);
        let leaving = (NUMBER + into.bytes()).saturating_mul(m).saturating_mul(columns);
        let (solves, solve_flops) = self.solves(rows, variances);
        let block = block
            .max(if solves > 0 { solves + TILES } else { 0 })
            .saturating_add(self.sample_bytes(rows, samples));
        let joint = if question.joint { self.joint_bytes(rows) } else { 0 };
        let block = block.saturating_add(joint);
        let drawn = if samples > 0 { self.sample_flops(rows, samples) } else { 0.0 };
        let drawn = drawn + if question.joint { self.joint_flops(rows) } else { 0.0 };
        // Each training row from all others is one inverse, however many are asked about; they are found by their numbers.
        let (n, left_out) = (self.support(), question.leave_one_out);
        let block = block.saturating_add(if left_out { 64 * n as u64 } else { 0 });
        let flops = if left_out { (n as f64).powi(3) / 3.0 } else { flops };
        let noise = self.noise.as_ref().map_or(0, |own| own.bytes());
        let flops = flops + self.noise.as_ref().map_or(0.0, |own| own.flops_of_row() * rows as f64);
        let parts = [inputs, outputs, block, leaving, table, noise, question.beside];
        let mut plan = PredictionPlan {
            rows,
            samples,
            peak_bytes: parts.into_iter().fold(0, u64::saturating_add),
            data_bytes: table,
            kept_bytes: table,
            flops: flops + drawn + solve_flops,
            seconds: None,
        };
        plan.check(question.memory)?;
        plan.seconds = question.timed.then(|| match left_out {
            true => flops / dense_rate(),
            false => self.seconds_of(&Work { rows, samples, variances, joint: question.joint }),
        });
        Ok(plan)
    }

    /// Bytes and most operations of variances that are solved for; nothing where they come from samples or a closed form.
    fn solves(&self, rows: usize, variances: VarianceMethod) -> (u64, f64) {
        let (n, d) = (self.support() as f64, self.header.schema.features.len() as f64);
        let product = |columns: usize| n * n * (2.0 * d + 30.0 + 2.0 * columns as f64);
        if let VarianceMethod::Lanczos { rank, .. } = variances {
            let bytes = match &*self.posterior {
                ProcessPosterior::Single(posterior) => posterior.lanczos_variance_bytes(rank),
                ProcessPosterior::Double(posterior) => posterior.lanczos_variance_bytes(rank),
                _ => return (0, 0.0),
            };
            let p = (rank as f64).min(n);
            let solves = PROBE_STEPS as f64 * product(PROBES);
            return (bytes, p * product(1) + 4.0 * n * p * p + solves + 2.0 * rows as f64 * n * p);
        }
        let VarianceMethod::Solves { iterations, .. } = variances else { return (0, 0.0) };
        let bytes = match &*self.posterior {
            ProcessPosterior::Single(posterior) => posterior.exact_variance_bytes(),
            ProcessPosterior::Double(posterior) => posterior.exact_variance_bytes(),
            _ => return (0, 0.0),
        };
        let blocks = rows.div_ceil(SOLVED_AT_ONCE) as f64;
        (bytes, blocks * iterations as f64 * product(SOLVED_AT_ONCE))
    }

    /// Seconds that predicting takes on this machine, about, from entries of the kernel matrix and solves that are timed here in some hundredths of one; at most, where variances are solved
    /// for.
    fn seconds_of(&self, request: &Work) -> f64 {
        let (m, n) = (request.rows as f64, self.support() as f64);
        let dense = |flops: f64| flops / dense_rate();
        let joint = if request.joint { dense(self.joint_flops(request.rows)) } else { 0.0 };
        let drawn = |samples: usize| {
            joint + if samples > 0 { dense(self.sample_flops(request.rows, samples)) } else { 0.0 }
        };
        match &*self.posterior {
            ProcessPosterior::Exact(posterior) => {
                let pair = seconds_of_pair(posterior.model().kernel(), posterior.data().inputs(), 1);
                m * n * pair + dense(m * n * n) + drawn(request.samples)
            }
            ProcessPosterior::Inducing(posterior) => {
                let pair = seconds_of_pair(posterior.kernel(), posterior.inducing(), 1);
                m * n * pair + dense(2.0 * m * n * n) + drawn(request.samples)
            }
            ProcessPosterior::LowRank(posterior) => {
                let weights = posterior.features().unconstrained().len() as f64;
                dense(m * (2.0 * weights + n * n)) + drawn(request.samples)
            }
            ProcessPosterior::Embedded(posterior) => {
                let exact = posterior.exact();
                let pair = seconds_of_pair(exact.model().kernel(), exact.data().inputs(), 1);
                let weights = posterior.embedding().unconstrained().len() as f64;
                m * n * pair + dense(m * (n * n + 2.0 * weights)) + drawn(request.samples)
            }
            ProcessPosterior::Generalised(posterior) => {
                let reference = posterior.reference(0);
                let pair = seconds_of_pair(reference.kernel(), reference.inducing(), 1);
                let mean = mean_weights(posterior);
                2.0 * m * n * pair + dense(m * (3.0 * n * n + 2.0 * mean)) + drawn(request.samples)
            }
            ProcessPosterior::Single(posterior) => joint + self.seconds_of_samples(posterior, request),
            ProcessPosterior::Double(posterior) => joint + self.seconds_of_samples(posterior, request),
        }
    }

    fn seconds_of_samples<T: Real>(&self, posterior: &PathwisePosterior<T>, request: &Work) -> f64 {
        let (m, points) = (request.rows as f64, posterior.points());
        let columns = posterior.settings().samples + 1;
        let features = 2.0 * m * (posterior.settings().features.count * columns) as f64 / dense_rate();
        let weights = m * points.nrows() as f64 * seconds_of_pair(posterior.kernel(), points, columns);
        let solves = match request.variances {
            VarianceMethod::Samples => 0.0,
            VarianceMethod::Lanczos { rank, .. } => {
                let n = points.nrows() as f64;
                let (p, pair) =
                    ((rank as f64).min(n), |columns| seconds_of_pair(posterior.kernel(), points, columns));
                let orthogonal = (4.0 * n * p * p + 2.0 * m * n * p) / dense_rate();
                n * n * (p * pair(1) + PROBE_STEPS as f64 * pair(PROBES)) + orthogonal
            }
            VarianceMethod::Solves { iterations, .. } => {
                let product = (points.nrows() as f64).powi(2)
                    * seconds_of_pair(posterior.kernel(), points, SOLVED_AT_ONCE);
                request.rows.div_ceil(SOLVED_AT_ONCE) as f64 * iterations as f64 * product
            }
        };
        features + weights + solves
    }

    /// What `count` joint draws at so many rows take.
    pub(super) fn sample_bytes(&self, rows: usize, count: usize) -> u64 {
        let (m, s) = (rows as u64, count as u64);
        let numbers = |counts: &[u64]| counts.iter().fold(NUMBER, |all, c| all.saturating_mul(*c));
        if s == 0 {
            return 0;
        }
        if let ProcessPosterior::LowRank(_) = &*self.posterior {
            // Weights of functions, and their values twice.
            return numbers(&[2, self.support() as u64, s]).saturating_add(numbers(&[3, m, s]));
        }
        match self.posterior.stored_samples() {
            // Every kept sample at every row, prior and update, and the choice of them twice.
            Some(kept) => numbers(&[4, m, kept as u64]).saturating_add(numbers(&[2, m, s])),
            // Features of all rows; covariance, what is taken from it, their difference, its factor; noise, draws, and their copies.
            None => numbers(&[2, m, self.support() as u64])
                .saturating_add(numbers(&[4, m, m]))
                .saturating_add(numbers(&[3, m, s])),
        }
    }

    fn sample_flops(&self, rows: usize, count: usize) -> f64 {
        let (m, n, s) = (rows as f64, self.support() as f64, count as f64);
        if let ProcessPosterior::LowRank(_) = &*self.posterior {
            return 2.0 * m * n * s;
        }
        match self.posterior.stored_samples() {
            Some(kept) => 2.0 * m * n * kept as f64,
            None => n * n * m + 2.0 * n * m * m + m * m * m / 3.0 + m * m * s,
        }
    }

    /// Points whose kernels make a prediction: training rows or inducing points.
    pub(super) fn support(&self) -> usize {
        match (&*self.posterior, self.posterior.training()) {
            (ProcessPosterior::Inducing(posterior), _) => posterior.inducing().nrows(),
            (ProcessPosterior::LowRank(posterior), _) => posterior.features().rank(),
            (ProcessPosterior::Embedded(posterior), _) => posterior.exact().data().rows(),
            (ProcessPosterior::Generalised(posterior), _) => posterior.reference(0).rank(),
            // All rows, or inducing points.
            (ProcessPosterior::Single(posterior), _) => posterior.points().nrows(),
            (ProcessPosterior::Double(posterior), _) => posterior.points().nrows(),
            (_, Some((inputs, _))) => inputs.nrows(),
            _ => self.header.rows,
        }
    }

    /// Bytes of the rows that are predicted at a time, and operations for all rows.
    pub(super) fn blocks(&self, rows: usize) -> (u64, f64) {
        let (n, m) = (self.support() as u64, rows as u64);
        let d = self.header.schema.features.len() as f64;
        match (&*self.posterior, self.posterior.stored_samples()) {
            (ProcessPosterior::Exact(_), _) => {
                (2 * NUMBER * m.min(512).saturating_mul(n), m as f64 * (n * n) as f64)
            }
            (ProcessPosterior::Embedded(posterior), _) => {
                let embedding = posterior.embedding();
                // Rows pass through the network some at a time, and stay embedded.
                let passing =
                    m.min(embedding.rows_at_once() as u64).saturating_mul(embedding.bytes_of_row() as u64);
                let embedded = NUMBER * m.saturating_mul(embedding.width() as u64);
                let block = 2 * NUMBER * m.min(512).saturating_mul(n);
                let weights = embedding.unconstrained().len() as f64;
                (block + passing + embedded, m as f64 * ((n * n) as f64 + 2.0 * weights))
            }
            (ProcessPosterior::Inducing(_), _) => {
                (3 * NUMBER * m.min(1024).saturating_mul(n), 2.0 * m as f64 * (n * n) as f64)
            }
            (ProcessPosterior::LowRank(posterior), _) => {
                let features = posterior.features();
                let rows = m.min(features.rows_at_once() as u64);
                let weights = features.unconstrained().len() as f64;
                let bytes = rows.saturating_mul(features.bytes_of_row() as u64 + 2 * NUMBER * n);
                (bytes, m as f64 * (2.0 * weights + (n * n) as f64))
            }
            (ProcessPosterior::Generalised(posterior), _) => {
                let mean = mean_weights(posterior);
                let bytes = 6 * NUMBER * m.min(1024).saturating_mul(n);
                (bytes, m as f64 * (3.0 * (n * n) as f64 + 2.0 * mean))
            }
            (_, kept) => {
                let kept = kept.unwrap_or(0) as u64 + 1;
                // Samples of a block of rows, prior and update, and tiles of the kernel matrix.
                let block = 4 * NUMBER * m.min(4096).saturating_mul(kept) + TILES;
                (block, m as f64 * n as f64 * (2.0 * kept as f64 + 2.0 * d))
            }
        }
    }
}

/// Weights of the network of a mean.
fn mean_weights(posterior: &GeneralisedGp) -> f64 {
    match posterior.mean() {
        VariationalMean::Embedding(map) => map.unconstrained().len() as f64,
        _ => 0.0,
    }
}

/// Rows whose variances are solved for together.
const SOLVED_AT_ONCE: usize = 64;

/// Rows whose variances are solved for beside a Lanczos basis, and steps of that at most.
const PROBES: usize = 16;
const PROBE_STEPS: usize = 1000;

/// Seconds of one entry of a kernel matrix, evaluated and multiplied with so many columns.
pub(super) fn seconds_of_pair<T: Real>(kernel: &dyn Kernel<T>, points: MatRef<'_, T>, columns: usize) -> f64 {
    /// Points that are measured on: some milliseconds.
    const MOST: (usize, usize) = (2048, 128);
    let points = points.subrows(0, points.nrows().min(MOST.0));
    let batch = points.nrows().min(MOST.1);
    seconds_of_batch(kernel, points, batch, columns) / (batch * points.nrows()).max(1) as f64
}

/// Tiles of a kernel matrix on all threads, and random features of a block of rows.
const TILES: u64 = 32 << 20;
