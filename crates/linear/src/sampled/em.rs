//! Expectation maximisation: mode and samples for the precisions, precisions for mode and samples.

use super::descent::SampledError;
use super::model::SampledModel;
use super::sampler::{Drawn, Sampler};
use super::state::{EmOptions, EmState, EmStep, Estimator, WatchEm};
use super::update::{Group, sampled_bound};
use crate::curvature::{FitSums, is_gaussian};
use crate::evidence::{DataFit, EvidenceOptions, MOST_FITTED, noise_update};
use crate::features::FeatureMap;
use crate::structure::Structure;
use crate::{LinearError, Prior, PriorError};
use faer::MatRef;
use posterior_linalg::Real;
use posterior_linalg::solve::SpectralMeasure;
use posterior_optim::{Iteration, Progress, Reason, Run, Signal, Step};
use std::time::Instant;

/// Expectation maximisation, one turn a step, run by [`posterior_optim::drive`].
///
/// Source: spec `linearised_laplace`, section 5.8; Antorán (2024), algorithm 4.
pub struct ExpectationMaximisation<'a, T: Real, F: FeatureMap<T>, S: Sampler> {
    /// The model.
    pub model: &'a SampledModel<'a, T, F>,
    /// Makes samples.
    pub sampler: S,
    /// Groups of weights; its precisions are those of the first turn.
    pub prior: Prior,
    /// Further weights of the only group that no example moves, and that no sample has: they are as the prior says.
    pub beyond: usize,
    /// An approximate curvature of the unscaled features, with which the mode's conjugate gradients are preconditioned.
    pub curvature: &'a Structure,
    /// How well the network fits: the constants of Gaussian noise.
    pub fit: FitSums,
    /// The spectrum of the curvature, which [`Update::Evidence`](super::Update::Evidence) needs.
    pub spectrum: Option<SpectralMeasure>,
    /// What is asked for.
    pub options: &'a EmOptions,
    /// Where they stand.
    pub state: EmState<S::State>,
    /// Who watches.
    pub watch: &'a mut WatchEm<'a, S::State>,
}

fn prior_error(error: PriorError) -> SampledError {
    SampledError::State { what: "the prior", problem: error.to_string() }
}

impl<T: Real, F: FeatureMap<T>, S: Sampler> ExpectationMaximisation<'_, T, F, S> {
    pub(super) fn strength(&self) -> f64 {
        if is_gaussian(self.model.likelihood()) { 1.0 / self.state.noise_variance } else { 1.0 }
    }

    /// The mode for the precisions and the noise as they came out, where the last turn moved them.
    ///
    /// # Errors
    /// [`SampledError`].
    pub fn settle(&mut self) -> Result<(), SampledError> {
        let each = self.precision_of_each()?;
        self.settle_for(&each)
    }

    fn settle_for(&mut self, each: &[f64]) -> Result<(), SampledError> {
        if !self.state.mode_is_current {
            (self.state.mode, self.state.mode_is_current) = (Some(self.mode(each)?), true);
        }
        Ok(())
    }

    /// The precisions under way, of each weight in scaled coordinates.
    fn precision_of_each(&self) -> Result<Vec<f64>, SampledError> {
        let prior = self.prior.with_precisions(&self.state.precisions).map_err(prior_error)?;
        Ok(prior.precision_of_each(0..self.model.dimension()))
    }

    /// `mean_j |zeta_j|²` of each group.
    fn traces(&self, samples: MatRef<'_, f64>) -> Vec<f64> {
        let mut sums = vec![0.0; self.prior.names().len()];
        for column in samples.col_iter() {
            let own: Vec<f64> = column.iter().copied().collect();
            sums.iter_mut().zip(self.prior.squared_norms(&own)).for_each(|(s, v)| *s += v);
        }
        sums.iter().map(|s| s / samples.ncols() as f64).collect()
    }

    /// Precisions and noise for the next turn, from mode and samples.
    fn update(&mut self, drawn: &Drawn, begun: Instant) -> Result<(), SampledError> {
        let (state, strength) = (&self.state, self.strength());
        let Some(mode) = &state.mode else {
            let problem = "it has samples but no mode".into();
            return Err(SampledError::State { what: "the turns", problem });
        };
        let k = drawn.samples.ncols() as f64;
        let mut traces = self.traces(drawn.samples.as_ref());
        let squared_outputs = match (&drawn.squared_outputs, self.options.estimator) {
            (Some(known), _) => Some(known.clone()),
            (None, Estimator::Weight) => None,
            (None, Estimator::Prediction) => {
                let watch = &mut *self.watch;
                let mut tell = |_, _| watch(None, &|| state.clone());
                let squares = self.model.squared_outputs(drawn.samples.as_ref(), &mut tell)?;
                Some(squares.into_iter().map(|s| strength * s).collect())
            }
        };
        let by_prediction = squared_outputs.map(|s| s.iter().sum::<f64>() / k);
        let (mut sizes, d) = (self.prior.group_sizes(), self.model.dimension() as f64);
        let (a, squared_norms) = (&state.precisions, self.prior.squared_norms(&mode.weights));
        let charged: Vec<f64> = a.iter().zip(&traces).map(|(a, t)| a * t).collect();
        let by_weight = d - charged.iter().sum::<f64>();
        let effective_dimensions: Vec<f64> = match (by_prediction, sizes.len()) {
            (Some(gamma), 1) => vec![gamma],
            _ => sizes.iter().zip(&charged).map(|(d, c)| *d as f64 - c).collect(),
        };
        let convergence = by_prediction.map(|g| (g + charged.iter().sum::<f64>()) / d);
        if let (1.., [size], [trace]) = (self.beyond, &mut sizes[..], &mut traces[..]) {
            *size += self.beyond;
            *trace += self.beyond as f64 / a[0];
        }
        let measure = self.spectrum.as_ref().map(|m| (m, strength));
        // Of weights that the targets do not need it would grow beyond all numbers.
        let (least, largest) = EvidenceOptions::default().precisions;
        let next: Vec<f64> = (0..sizes.len())
            .map(|g| {
                let group = Group {
                    size: sizes[g],
                    squared_norm: squared_norms[g],
                    effective_dimension: effective_dimensions[g],
                    trace: traces[g],
                };
                self.options.update.next(group, measure).clamp(least, largest)
            })
            .collect();
        let mut noise_variance = state.noise_variance;
        let fit = FitSums { log_likelihood: mode.log_likelihood, ..self.fit };
        if let (true, DataFit::Gaussian { residual_sum, values, .. }) =
            (self.options.learn_noise, fit.data_fit(self.model.likelihood()))
        {
            let gamma = by_prediction.unwrap_or(by_weight).max(0.0);
            // Residuals of a model that was fitted to almost every number say nothing about the noise.
            if gamma <= MOST_FITTED * values as f64 {
                noise_variance = noise_update(residual_sum, values, gamma, noise_variance);
            }
        }
        if let Some(value) = next.iter().chain([&noise_variance]).find(|v| !(v.is_finite() && **v > 0.0)) {
            let problem =
                format!("turn {} leads to a precision or noise variance of {value}", state.turns.len() + 1);
            return Err(SampledError::State { what: "the turns", problem });
        }
        let turn = EmStep {
            bound: sampled_bound(&sizes, a, &squared_norms, &traces),
            precisions: a.clone(),
            noise_variance: state.noise_variance,
            effective_dimensions,
            by_prediction,
            by_weight,
            squared_norms,
            traces,
            convergence,
            log_likelihood: mode.log_likelihood,
            mode_steps: mode.steps,
            mode_converged: mode.converged,
            solver_steps: drawn.steps,
            solver_ended: drawn.reason,
            seconds: begun.elapsed().as_secs_f64(),
        };
        let state = &mut self.state;
        state.turns.push(turn);
        state.precisions = next;
        state.noise_variance = noise_variance;
        Ok(())
    }
}

impl<T: Real, F: FeatureMap<T>, S: Sampler> Iteration for ExpectationMaximisation<'_, T, F, S>
where
    S::State: Clone,
{
    type Error = SampledError;

    fn progress(&self) -> Progress {
        let value = self.state.turns.last().map(|t| t.bound);
        Progress { step: self.state.turns.len(), value, ..Progress::default() }
    }

    fn converged(&self) -> Option<Reason> {
        let last = self.state.turns.last()?;
        let moved = |from: f64, to: f64| (to / from).ln().abs() <= self.options.tolerance;
        let rest = last.precisions.iter().zip(&self.state.precisions).all(|(from, to)| moved(*from, *to))
            && moved(last.noise_variance, self.state.noise_variance);
        rest.then_some(Reason::Tolerance)
    }

    fn step(&mut self, _: &mut Run<'_, Self>) -> Result<Step, SampledError> {
        let begun = Instant::now();
        let each = self.precision_of_each()?;
        self.settle_for(&each)?;
        let strength = self.strength();
        let Self { sampler, state, watch, .. } = self;
        let saved = state.solving.take();
        let drawn =
            sampler.samples(&each, strength, state.samples.as_ref(), saved, &mut |progress, solving| {
                watch(Some(progress), &|| EmState { solving: Some(solving()), ..state.clone() })
            })?;
        if drawn.reason == Reason::Interrupted {
            return Err(LinearError::Interrupted.into());
        }
        self.update(&drawn, begun)?;
        self.state.samples = Some(drawn.samples);
        self.state.mode_is_current = false;
        let Self { state, watch, .. } = self;
        if watch(None, &|| state.clone()) == Signal::Stop {
            return Err(LinearError::Interrupted.into());
        }
        Ok(Step::Taken)
    }
}

/// The spectrum of a model's curvature for [`Update::Evidence`](super::Update::Evidence): `steps` products with `probes` vectors, once.
///
/// # Errors
/// [`SampledError`].
pub fn curvature_spectrum<T: Real, F: FeatureMap<T>>(
    model: &SampledModel<'_, T, F>,
    (probes, steps): (usize, usize),
    seed: u64,
) -> Result<SpectralMeasure, SampledError> {
    let none = vec![0.0; model.dimension()];
    let curvature = super::Hessian::new(model, &none, 1.0, None);
    let measure = SpectralMeasure::of(&curvature, probes, steps, seed);
    curvature.failure()?;
    Ok(measure?)
}
