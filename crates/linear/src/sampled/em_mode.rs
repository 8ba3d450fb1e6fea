//! The mode for the precisions of a turn.

use super::descent::{Averaging, DescentState, SampledError, descend};
use super::em::ExpectationMaximisation;
use super::mode::ModeObjective;
use super::preconditioner::condition;
use super::sampler::Sampler;
use super::state::{FoundMode, ModeSolver};
use crate::LinearError;
use crate::curvature::is_gaussian;
use crate::features::FeatureMap;
use crate::mode::ModeProblem;
use faer::Mat;
use posterior_linalg::Real;
use posterior_optim::{Progress, Reason};

impl<T: Real, F: FeatureMap<T>, S: Sampler> ExpectationMaximisation<'_, T, F, S> {
    /// The mode for the precisions under way, in scaled coordinates: the sampler's, or a search from the last one.
    pub(super) fn mode(&mut self, each: &[f64]) -> Result<FoundMode, SampledError> {
        let (model, strength) = (self.model, self.strength());
        let Self { sampler, options, state, watch, curvature, .. } = self;
        let own =
            sampler.mode(each, strength, &mut |progress, _| watch(Some(progress), &|| state.clone()))?;
        if let Some(mode) = own {
            return Ok(mode);
        }
        let d = model.dimension();
        let scale = |i: usize| model.scales().map_or(1.0, |s| s[i]);
        let divided = |w: &[f64]| -> Vec<f64> {
            (0..d).map(|i| if scale(i) == 0.0 { 0.0 } else { w[i] / scale(i) }).collect()
        };
        match &options.mode {
            ModeSolver::Newton(newton) => {
                let own = |i: usize| if scale(i) == 0.0 { f64::INFINITY } else { each[i] / scale(i).powi(2) };
                let precisions: Vec<f64> = (0..d).map(own).collect();
                let finite: Vec<f64> =
                    precisions.iter().map(|a| if a.is_finite() { *a } else { 1.0 }).collect();
                let preconditioner = condition(curvature, &finite, strength)?;
                let start = match &state.mode {
                    Some(mode) => (0..d).map(|i| mode.weights[i] * scale(i)).collect(),
                    None => model.features().expansion_point().map_or_else(|| vec![0.0; d], <[f64]>::to_vec),
                };
                let likelihood = model.likelihood();
                let problem = ModeProblem {
                    features: model.features(),
                    source: model.source(),
                    likelihood: &**likelihood,
                    quadratic: is_gaussian(likelihood),
                    precisions,
                    strength,
                    predictor: options.predictor,
                };
                let mode = problem
                    .solve(&start, &preconditioner, newton, &mut |_, _| watch(None, &|| state.clone()))?;
                let weights = divided(&mode.weights);
                Ok(FoundMode {
                    weights,
                    log_likelihood: mode.log_likelihood,
                    steps: mode.newton_steps,
                    converged: Some(mode.converged),
                })
            }
            ModeSolver::Descent(descent) => {
                let mut objective =
                    ModeObjective { model, precisions: each, strength, predictor: options.predictor };
                let start = match (&state.mode, model.features().expansion_point()) {
                    (Some(mode), _) => mode.weights.clone(),
                    (None, Some(v)) => divided(v),
                    (None, None) => vec![0.0; d],
                };
                let start = Mat::from_fn(d, 1, |i, _| start[i]);
                let mut steps = 0;
                let tell = &mut |progress: &Progress, _: &DescentState| {
                    steps = progress.step;
                    watch(Some(progress), &|| state.clone())
                };
                let (found, reason) =
                    descend("the mode", &mut objective, start, None, Averaging::Decay, descent, tell)?;
                if reason == Reason::Interrupted {
                    return Err(LinearError::Interrupted.into());
                }
                let (_, loss) = objective.gradient_at(found.as_ref(), None)?;
                let penalty: f64 = (0..d).map(|i| 0.5 * each[i] * found[(i, 0)].powi(2)).sum();
                let weights = found.col(0).iter().copied().collect();
                Ok(FoundMode { weights, log_likelihood: (penalty - loss) / strength, steps, converged: None })
            }
        }
    }
}
