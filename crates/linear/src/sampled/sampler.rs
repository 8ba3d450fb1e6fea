//! What makes samples for precisions, in weight space or elsewhere.

use super::descent::{Averaging, DescentOptions, DescentState, SampledError, descend};
use super::exact::{ConjugateOptions, solve_exactly};
use super::model::SampledModel;
use super::noise::Noise;
use super::objective::{Objective, SampleObjective};
use super::state::FoundMode;
use crate::features::FeatureMap;
use crate::structure::Structure;
use faer::Mat;
use posterior_linalg::Real;
use posterior_linalg::solve::ConjugateGradientState;
use posterior_optim::{Progress, Reason, Signal};
use serde::{Deserialize, Serialize};

/// How samples are solved for in weight space.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Solve {
    /// By descent on batches.
    Descent(DescentOptions),
    /// By conjugate gradients on all data.
    ConjugateGradients(ConjugateOptions),
}

/// Where a solve stands.
#[derive(Clone, Debug, PartialEq)]
pub enum SolverState {
    /// A descent.
    Descent(DescentState),
    /// Conjugate gradients.
    ConjugateGradients(ConjugateGradientState<f64>),
}

/// Samples that were solved for.
#[derive(Clone, Debug, PartialEq)]
pub struct Drawn {
    /// d x K.
    pub samples: Mat<f64>,
    /// `s |phi zeta_j|²_B` of each, where it is known without a pass.
    pub squared_outputs: Option<Vec<f64>>,
    /// Steps taken.
    pub steps: usize,
    /// Why it ended.
    pub reason: Reason,
}

/// Sees every step of a solver, which makes its state when asked to, and may stop it.
pub type WatchSolver<'a, S> = dyn FnMut(&Progress, &dyn Fn() -> S) -> Signal + 'a;

/// Something that makes the samples of frozen noise for any precisions.
pub trait Sampler {
    /// Where it stands within a solve: plain data.
    type State: Clone;

    /// Samples for prior precisions of each weight (d) and a strength, from earlier ones where there are some, or from a state of the same solve.
    ///
    /// # Errors
    /// [`SampledError`].
    fn samples(
        &mut self,
        precisions: &[f64],
        strength: f64,
        start: Option<&Mat<f64>>,
        saved: Option<Self::State>,
        watch: &mut WatchSolver<'_, Self::State>,
    ) -> Result<Drawn, SampledError>;

    /// The mode in scaled coordinates, where the sampler's own space has it for less than a search over the weights.
    ///
    /// # Errors
    /// [`SampledError`].
    fn mode(
        &mut self,
        _precisions: &[f64],
        _strength: f64,
        _watch: &mut WatchSolver<'_, Self::State>,
    ) -> Result<Option<FoundMode>, SampledError> {
        Ok(None)
    }
}

/// Samples in weight space.
pub struct WeightSpace<'a, T: Real, F: FeatureMap<T>> {
    /// The model.
    pub model: &'a SampledModel<'a, T, F>,
    /// The noise.
    pub noise: &'a Noise,
    /// An approximate curvature of the unscaled features, with which conjugate gradients are preconditioned.
    pub curvature: &'a Structure,
    /// How.
    pub solve: &'a Solve,
    /// Which objective descent minimises.
    pub objective: Objective,
}

impl<T: Real, F: FeatureMap<T>> Sampler for WeightSpace<'_, T, F> {
    type State = SolverState;

    fn samples(
        &mut self,
        precisions: &[f64],
        strength: f64,
        start: Option<&Mat<f64>>,
        saved: Option<SolverState>,
        watch: &mut WatchSolver<'_, SolverState>,
    ) -> Result<Drawn, SampledError> {
        let start = match start {
            Some(start) => start.clone(),
            None => self.noise.prior_draws(precisions)?,
        };
        let foreign = || SampledError::State {
            what: "the samples",
            problem: "they were being solved for in another way".into(),
        };
        let mut steps = 0;
        let (samples, reason) = match self.solve {
            Solve::Descent(options) => {
                let saved = match saved {
                    None => None,
                    Some(SolverState::Descent(state)) => Some(state),
                    Some(_) => return Err(foreign()),
                };
                let mut objective =
                    SampleObjective::new(self.model, self.noise, precisions, strength, self.objective)?;
                let tell = &mut |progress: &Progress, state: &DescentState| {
                    steps = progress.step;
                    watch(progress, &|| SolverState::Descent(state.clone()))
                };
                descend("the samples", &mut objective, start, saved, Averaging::Geometric, options, tell)?
            }
            Solve::ConjugateGradients(options) => {
                let saved = match saved {
                    None => None,
                    Some(SolverState::ConjugateGradients(state)) => Some(state),
                    Some(_) => return Err(foreign()),
                };
                let tell = &mut |progress: &Progress, state: &ConjugateGradientState<f64>| {
                    steps = progress.step;
                    watch(progress, &|| SolverState::ConjugateGradients(state.clone()))
                };
                let to = (precisions, strength);
                solve_exactly(self.model, self.noise, to, self.curvature, start, saved, options, tell)?
            }
        };
        Ok(Drawn { samples, squared_outputs: None, steps, reason })
    }
}
