//! Expectation maximisation in whichever space.

use super::options::{SampledOptions, Space};
use super::saved;
use super::solve::{AnySampler, AnyState};
use super::space_solver::SpaceSolver;
use crate::LaplaceError;
use crate::run::{Run, Stage};
use posterior_linalg::Real;
use posterior_linear::curvature::{FitSums, is_gaussian};
use posterior_linear::mode::Predictor;
use posterior_linear::sampled::{
    EmOptions, EmState, Estimator, ExpectationMaximisation, Noise, SampledModel, Sampler, Update,
    WeightSpace, curvature_spectrum,
};
use posterior_linear::structure::Structure;
use posterior_linear::{FeatureMap, Prior};
use posterior_networks::Precision;
use posterior_optim::{Clock, Limits, Progress, Reason, Signal, drive};
use posterior_tangent::Tangent;

/// What the turns of a fit look at, in every space.
pub(super) struct EmProblem<'a> {
    /// What conjugate gradients are preconditioned with, in coordinates of the space.
    pub(super) curvature: &'a Structure,
    /// How well the network fits.
    pub(super) fit: FitSums,
    pub(super) options: &'a SampledOptions,
    /// Whether all weights are uncertain.
    pub(super) whole: bool,
    pub(super) seed: u64,
    /// In whose coordinates states are.
    pub(super) space: Space,
}

type Ended = (EmState<AnyState>, Reason);

impl EmProblem<'_> {
    /// The turns, from a state on.
    pub(super) fn run<'f, T: Precision>(
        &self,
        model: &SampledModel<'_, T, Tangent<'f, T>>,
        way: &SpaceSolver<'_, 'f, T>,
        prior: &Prior,
        state: EmState<AnyState>,
        run: &mut Run<'_>,
    ) -> Result<Ended, LaplaceError> {
        let (samples, curvature) = (0..self.options.samples_em, self.curvature);
        let objective = self.options.objective;
        if let SpaceSolver::Functions(solve, span) = way {
            let own = span.model(model.likelihood());
            let noise = span.noise(model, samples, self.seed, &mut run.stage(Stage::Samples))?.within;
            let sampler = AnySampler::<T>::Span(WeightSpace {
                model: &own,
                noise: &noise,
                curvature,
                solve,
                objective,
            });
            let prior = Prior::scalar(span.rank(), prior.precisions()[0])?;
            return self.take((&own, span.beyond()), sampler, prior, state, run);
        }
        let noise = Noise::draw(model, samples, self.seed, &mut run.stage(Stage::Samples))?;
        let sampler = way.sampler(model, &noise, curvature, objective);
        self.take((model, 0), sampler, prior.clone(), state, run)
    }

    /// The same of a model with so many weights beyond it.
    fn take<T: Real, F: FeatureMap<T>, S: Sampler<State = AnyState>>(
        &self,
        (model, beyond): (&SampledModel<'_, T, F>, usize),
        sampler: S,
        prior: Prior,
        state: EmState<AnyState>,
        run: &mut Run<'_>,
    ) -> Result<Ended, LaplaceError> {
        let spectrum = match self.options.update {
            Update::Evidence => {
                let size = (self.options.spectrum_probes, self.options.spectrum_steps);
                Some(curvature_spectrum(model, size, self.seed)?)
            }
            _ => None,
        };
        let options = self.em_options();
        let limits = Limits { steps: self.options.em_steps, time: None };
        let mut watch = |progress: Option<&Progress>, state: &dyn Fn() -> EmState<AnyState>| {
            let done = match progress {
                Some(p) => (Stage::Samples, p.step, p.steps_planned),
                None => (Stage::Mode, 0, limits.steps),
            };
            run.save(done, || saved::save(self.space, (None, &[]), &state()))
        };
        let mut turns = ExpectationMaximisation {
            model,
            sampler,
            prior,
            beyond,
            curvature: self.curvature,
            fit: self.fit,
            spectrum,
            options: &options,
            state,
            watch: &mut watch,
        };
        let mut ended = drive(&mut turns, limits, Clock::start(), &mut |_, _| Signal::Continue);
        // Its distance from the network is part of predictions.
        if ended.is_ok()
            && is_gaussian(model.likelihood())
            && let Err(error) = turns.settle()
        {
            ended = Err(error);
        }
        let state = turns.state;
        let (reason, _) = run.ended(ended)?;
        Ok((state, reason))
    }

    fn em_options(&self) -> EmOptions {
        let options = self.options;
        EmOptions {
            tolerance: options.tolerance,
            update: options.update,
            estimator: if options.layerwise { Estimator::Weight } else { options.estimator },
            mode: options.mode.clone(),
            predictor: Predictor::Affine,
            learn_noise: options.learn_noise.unwrap_or(self.whole),
        }
    }
}
