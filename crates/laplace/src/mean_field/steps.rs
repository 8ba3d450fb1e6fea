//! One step: weights drawn for each group of a batch, gradients in means and deviations, and what the residuals say about the noise.

use super::options::MeanFieldOptions;
use super::report::EpochSummary;
use crate::LaplaceError;
use crate::problem::Problem;
use crate::scores::scaled_noise;
use posterior_linalg::random::Streams;
use posterior_linear::curvature::is_gaussian;
use posterior_networks::train::TrainError;
use posterior_networks::{Array, Network, Precision};
use posterior_optim::{Batches, Iteration, Progress, Run, Step};
use posterior_tangent::{doubles, target_values};
use rand_distr::{Distribution, StandardNormal, Uniform};
use std::ops::Range;

/// How often a run that diverges begins anew, each time with half the step sizes.
const RESTARTS: usize = 4;

/// The least factor of a noise variance.
const LEAST_NOISE: f64 = 1e-12;

/// What is trained, and all that a run needs to go on.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct State<T> {
    /// Steps taken.
    pub(super) step: usize,
    pub(super) restarts: usize,
    /// Means, logarithms of deviations.
    pub(super) values: [Vec<T>; 2],
    /// First and second moments of both.
    pub(super) moments: [[Vec<T>; 2]; 2],
    /// On the noise variances of the likelihood.
    pub(super) noise_factor: f64,
    /// Of the unfinished epoch: sum of the losses, and of squared residuals in units of the noise.
    pub(super) sums: [f64; 2],
    pub(super) history: Vec<EpochSummary>,
}

/// A run under way.
pub(super) struct FineTuning<'a, T> {
    pub(super) network: Network<T>,
    pub(super) trained: Vec<T>,
    pub(super) problem: &'a Problem<'a, T>,
    pub(super) options: &'a MeanFieldOptions,
    pub(super) batches: Batches,
    pub(super) state: State<T>,
    /// Mean loss of the last batch.
    pub(super) loss: Option<f64>,
}

/// What a batch says.
pub(super) struct BatchGradient<T> {
    /// In the means, and in the logarithms of the deviations; of the likelihood alone, as a mean over the examples.
    pub(super) values: [Vec<T>; 2],
    /// Sum of `-log p` and of squared residuals.
    pub(super) sums: [f64; 2],
    /// The first layer that is not finite, if one is.
    pub(super) bad: Option<String>,
}

impl<T: Precision> State<T> {
    /// At the trained weights.
    pub(super) fn start(trained: &[T], options: &MeanFieldOptions, seed: u64) -> Self {
        let (low, high) = options.initial_log_deviations;
        let mut rng = Streams::new(seed).stream("laplace/mean-field/deviations");
        let log_deviation = match Uniform::new(low, high) {
            Ok(uniform) => trained.iter().map(|_| T::from_f64(uniform.sample(&mut rng))).collect(),
            // Both ends are one number.
            Err(_) => vec![T::from_f64(low); trained.len()],
        };
        let zeros = || vec![T::ZERO; trained.len()];
        let second = || if options.rule.moments()[1] { zeros() } else { Vec::new() };
        Self {
            step: 0,
            restarts: 0,
            values: [trained.to_vec(), log_deviation],
            moments: [[zeros(), second()], [zeros(), second()]],
            noise_factor: 1.0,
            sums: [0.0; 2],
            history: Vec::new(),
        }
    }

    /// `KL(q | prior)` in nats, for a prior of this precision.
    pub(super) fn divergence(&self, precision: f64) -> f64 {
        let [mean, log_deviation] = &self.values;
        let each = mean.iter().zip(log_deviation).map(|(m, p)| {
            let (m, p) = (m.to_f64(), p.to_f64());
            0.5 * (precision * (m * m + (2.0 * p).exp()) - 1.0 - precision.ln()) - p
        });
        each.sum()
    }
}

/// Standard normals of the weights of one pair of groups.
pub(super) fn normals<T: Precision>(streams: Streams, pair: usize, weights: usize) -> Vec<T> {
    let mut rng = streams.child("laplace/mean-field/pair", pair as u64).stream("laplace/mean-field/noise");
    (0..weights)
        .map(|_| {
            let z: f64 = StandardNormal.sample(&mut rng);
            T::from_f64(z)
        })
        .collect()
}

/// `mean + sign e^log_deviation z`.
pub(super) fn drawn<T: Precision>([mean, log_deviation]: [&[T]; 2], z: &[T], sign: f64) -> Vec<T> {
    let sign = T::from_f64(sign);
    mean.iter()
        .zip(log_deviation)
        .zip(z)
        .map(|((&m, p), &z)| m + sign * T::from_f64(p.to_f64().exp()) * z)
        .collect()
}

/// `count` numbers cut into at most `groups` ranges whose lengths differ by one at most.
fn groups(count: usize, groups: usize) -> impl Iterator<Item = Range<usize>> {
    let groups = groups.clamp(1, count.max(1));
    (0..groups).map(move |g| g * count / groups..(g + 1) * count / groups)
}

impl<T: Precision> FineTuning<'_, T> {
    /// The gradient of a batch's mean loss, with the noise of `streams`.
    pub(super) fn gradient(
        &mut self,
        indices: &[usize],
        streams: Streams,
    ) -> Result<BatchGradient<T>, LaplaceError> {
        let weights = self.problem.selection.len();
        let likelihood = scaled_noise(self.problem.likelihood, self.state.noise_factor)?;
        let zeros = || vec![T::ZERO; weights];
        let mut out = BatchGradient { values: [zeros(), zeros()], sums: [0.0; 2], bad: None };
        let mut z = Vec::new();
        for (g, range) in groups(indices.len(), self.options.groups).enumerate() {
            if g % 2 == 0 {
                z = normals(streams, g / 2, weights);
            }
            let sign = if g % 2 == 0 { 1.0 } else { -1.0 };
            let [mean, log_deviation] = &self.state.values;
            let moved = drawn([mean, log_deviation], &z, sign);
            self.problem.selection.assign(&moved, self.network.parameters_mut());
            let own = &indices[range];
            let (x, targets) = self.problem.examples.batch(own, None);
            let targets = target_values(&targets);
            let width = targets.len() / own.len().max(1);
            if width != likelihood.target_width() {
                let expected = likelihood.target_width();
                return Err(posterior_tangent::ObservationError::Targets { found: width, expected }.into());
            }
            let trace = self.network.trace(x)?;
            let (c, f) = (trace.output().row_len(), doubles(trace.output().values()));
            if let Some(layer) = trace.first_not_finite() {
                out.bad = Some(format!("`{layer}`"));
                return Ok(out);
            }
            let mut cotangent = vec![0.0; f.len()];
            for (n, (y, f)) in targets.chunks_exact(width).zip(f.chunks_exact(c)).enumerate() {
                let example = own[n];
                likelihood.check_target(y).map_err(|source| LaplaceError::Target { example, source })?;
                let slope = &mut cotangent[n * c..(n + 1) * c];
                likelihood.gradient(y, f, slope);
                out.sums[0] -= likelihood.log_density(y, f);
                out.sums[1] += slope.iter().zip(y.iter().zip(f)).map(|(s, (y, f))| s * (y - f)).sum::<f64>();
                slope.iter_mut().for_each(|s| *s /= -(indices.len() as f64));
            }
            let cotangent = cotangent.into_iter().map(T::from_f64).collect();
            let cotangent = Array::new(trace.output().shape().to_vec(), cotangent);
            let gradient = trace.vjp(self.problem.selection, &cotangent)?;
            let sign = T::from_f64(sign);
            let [means, deviations] = &mut out.values;
            for (k, &g) in gradient.values().iter().enumerate() {
                means[k] += g;
                deviations[k] += g * sign * z[k] * T::from_f64(log_deviation[k].to_f64().exp());
            }
        }
        if !out.sums[0].is_finite() {
            out.bad = Some("the likelihood".into());
        }
        Ok(out)
    }

    /// Adds the gradient of `KL / N`.
    pub(super) fn add_prior(&self, gradient: &mut [Vec<T>; 2]) {
        let (decay, each) = (self.options.weight_decay, 1.0 / self.problem.examples.len() as f64);
        let ([mean, log_deviation], [means, deviations]) = (&self.state.values, gradient);
        for (g, m) in means.iter_mut().zip(mean) {
            *g += T::from_f64(decay) * *m;
        }
        for (g, p) in deviations.iter_mut().zip(log_deviation) {
            *g += T::from_f64(decay * (2.0 * p.to_f64()).exp() - each);
        }
    }

    /// The prior precision of each weight.
    pub(super) fn precision(&self) -> f64 {
        self.options.weight_decay * self.problem.examples.len() as f64
    }

    /// Records an epoch, and takes over the noise that its residuals have.
    fn finish_epoch(&mut self) {
        let count = self.problem.examples.len() as f64;
        let [loss, squares] = std::mem::take(&mut self.state.sums);
        if self.options.learn_noise && is_gaussian(self.problem.likelihood) {
            let relative = squares / (count * self.problem.likelihood.target_width() as f64);
            self.state.noise_factor = (self.state.noise_factor * relative).max(LEAST_NOISE);
        }
        let divergence = self.state.divergence(self.precision());
        let epoch = self.state.history.len() + 1;
        let noise_factor = self.state.noise_factor;
        self.state.history.push(EpochSummary { epoch, nll: loss / count, divergence, noise_factor });
    }
}

impl<T: Precision> Iteration for FineTuning<'_, T> {
    type Error = LaplaceError;

    fn progress(&self) -> Progress {
        Progress {
            step: self.state.step,
            value: self.loss,
            restarts: self.state.restarts,
            part: self.state.history.len(),
            parts: self.options.epochs,
            ..Progress::default()
        }
    }

    fn step(&mut self, run: &mut Run<'_, Self>) -> Result<Step, LaplaceError> {
        let (at, steps) = (self.state.step, run.steps_planned());
        let indices = self.batches.batch(at);
        let streams = Streams::new(self.problem.seed).child("laplace/mean-field/step", at as u64);
        let mut found = self.gradient(&indices, streams)?;
        if found.bad.is_none() {
            self.add_prior(&mut found.values);
            let finite = |v: &Vec<T>| v.iter().all(|g| g.is_finite());
            found.bad = match [finite(&found.values[0]), finite(&found.values[1])] {
                [true, true] => None,
                [false, _] => Some("the gradient of the means".into()),
                [true, false] => Some("the gradient of the deviations".into()),
            };
        }
        if let Some(layer) = found.bad {
            if self.state.restarts < RESTARTS {
                return Ok(Step::Diverged);
            }
            let epoch = self.state.history.len() + 1;
            return Err(LaplaceError::Train(TrainError::NotFinite { step: at, epoch, layer }));
        }
        self.loss = Some(found.sums[0] / indices.len() as f64);
        self.state.sums.iter_mut().zip(found.sums).for_each(|(s, v)| *s += v);
        let shorter = 0.5f64.powi(self.state.restarts as i32);
        let rates = [self.options.mean_rate, self.options.deviation_rate(at, steps)];
        self.state.step += 1;
        for (k, rate) in rates.into_iter().enumerate() {
            let [first, second] = &mut self.state.moments[k];
            let (values, gradient) = (&mut self.state.values[k], &found.values[k]);
            self.options.rule.step(values, gradient, first, second, rate * shorter, at + 1);
        }
        if self.state.step.is_multiple_of(self.batches.per_epoch()) {
            self.finish_epoch();
        }
        Ok(Step::Taken)
    }

    fn restart(&mut self) -> Result<(), LaplaceError> {
        let restarts = self.state.restarts + 1;
        self.state = State { restarts, ..State::start(&self.trained, self.options, self.problem.seed) };
        Ok(())
    }
}
