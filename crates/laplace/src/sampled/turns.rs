//! Expectation maximisation in whichever space.

use super::saved;
use super::solve::{AnySampler, AnyState};
use super::way::Way;
use super::{SampledOptions, Space, Update};
use crate::keep::Keeper;
use crate::tune::GridPoint;
use crate::{LaplaceError, Stage};
use posterior_linalg::Real;
use posterior_linear::curvature::{FitSums, is_gaussian};
use posterior_linear::mode::Predictor;
use posterior_linear::sampled::{
    Estimator, Noise, SampledModel, Sampler, TurnOptions, Turns, TurnsState, WeightSpace, curvature_spectrum,
};
use posterior_linear::structure::Structure;
use posterior_linear::{FeatureMap, Prior};
use posterior_networks::Precision;
use posterior_optim::{Clock, Limits, Progress, Reason, Signal, drive};
use posterior_tangent::Tangent;

/// What the turns of a fit look at, in every space.
pub(super) struct Course<'a> {
    /// What conjugate gradients are preconditioned with, in coordinates of the space.
    pub(super) curvature: &'a Structure,
    /// How well the network fits.
    pub(super) fit: FitSums,
    pub(super) options: &'a SampledOptions,
    /// Whether all weights are uncertain.
    pub(super) whole: bool,
    pub(super) seed: u64,
}

type Ended = (TurnsState<AnyState>, Reason);

impl Course<'_> {
    /// The turns, from a state on.
    pub(super) fn run<'f, T: Precision>(
        &self,
        model: &SampledModel<'_, T, Tangent<'f, T>>,
        way: &Way<'_, 'f, T>,
        prior: &Prior,
        state: TurnsState<AnyState>,
        kept: &mut Kept<'_, '_>,
        observer: &mut dyn FnMut(Stage, usize, usize) -> Signal,
    ) -> Result<Ended, LaplaceError> {
        let (samples, curvature) = (0..self.options.samples_em, self.curvature);
        let mut stage = |done, all| observer(Stage::Samples, done, all);
        let objective = self.options.objective;
        if let Way::Functions(solve, span) = way {
            let own = span.model(model.likelihood());
            let noise = span.noise(model, samples, self.seed, &mut stage)?.within;
            let sampler = AnySampler::<T>::Span(WeightSpace {
                model: &own,
                noise: &noise,
                curvature,
                solve,
                objective,
            });
            let prior = Prior::scalar(span.rank(), prior.precisions()[0])?;
            return self.take((&own, span.beyond()), sampler, prior, state, kept, observer);
        }
        let noise = Noise::draw(model, samples, self.seed, &mut stage)?;
        let sampler = way.sampler(model, &noise, curvature, objective);
        self.take((model, 0), sampler, prior.clone(), state, kept, observer)
    }

    /// The same of a model with so many weights beyond it.
    fn take<T: Real, F: FeatureMap<T>, S: Sampler<State = AnyState>>(
        &self,
        (model, beyond): (&SampledModel<'_, T, F>, usize),
        sampler: S,
        prior: Prior,
        state: TurnsState<AnyState>,
        kept: &mut Kept<'_, '_>,
        observer: &mut dyn FnMut(Stage, usize, usize) -> Signal,
    ) -> Result<Ended, LaplaceError> {
        let spectrum = match self.options.update {
            Update::Evidence => {
                let size = (self.options.spectrum_probes, self.options.spectrum_steps);
                Some(curvature_spectrum(model, size, self.seed)?)
            }
            _ => None,
        };
        let options = self.turn_options();
        let limits = Limits { steps: self.options.em_steps, time: None };
        let mut watch = |progress: Option<&Progress>, state: &dyn Fn() -> TurnsState<AnyState>| {
            let signal = match progress {
                Some(p) => observer(Stage::Samples, p.step, p.steps_planned),
                None => observer(Stage::Mode, 0, limits.steps),
            };
            kept.after((None, &[]), signal, state)
        };
        let mut turns = Turns {
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
        let (reason, _) = kept.result(ended.map_err(LaplaceError::from))?;
        Ok((state, reason))
    }

    fn turn_options(&self) -> TurnOptions {
        let options = self.options;
        TurnOptions {
            tolerance: options.tolerance,
            update: options.update,
            estimator: if options.layerwise { Estimator::Weight } else { options.estimator },
            mode: options.mode.clone(),
            predictor: Predictor::Affine,
            learn_noise: options.learn_noise.unwrap_or(self.whole),
        }
    }
}

/// Offers states to a keeper, and remembers what failed in that.
pub(super) struct Kept<'a, 'k> {
    space: Space,
    keeper: &'a mut Keeper<'k>,
    failed: Option<LaplaceError>,
}

impl<'a, 'k> Kept<'a, 'k> {
    pub(super) fn new(keeper: &'a mut Keeper<'k>, space: Space) -> Self {
        Self { space, keeper, failed: None }
    }

    /// Whether to go on after a step of the turns, or (with why they ended, and what was scored since) of what follows, given what the observer says.
    pub(super) fn after(
        &mut self,
        after: (Option<Reason>, &[GridPoint]),
        signal: Signal,
        state: impl Fn() -> TurnsState<AnyState>,
    ) -> Signal {
        let made = || saved::save(self.space, after, &state());
        let written = if signal == Signal::Stop { self.keeper.keep(made) } else { self.keeper.offer(made) };
        match written {
            Ok(()) => signal,
            Err(error) => {
                self.failed = Some(error);
                Signal::Stop
            }
        }
    }

    /// What failed, or what came out.
    pub(super) fn result<R>(&mut self, result: Result<R, LaplaceError>) -> Result<R, LaplaceError> {
        self.failed.take().map_or(result, Err)
    }
}
