//! What a fit and further samples share: the model in the prior's coordinates, and the solver with what it needs.

use super::options::Solver;
use super::solve::{AnySampler, AnyState};
use super::space_solver::SpaceSolver;
use crate::LaplaceError;
use faer::MatRef;
use posterior_likelihoods::OutputLikelihood;
use posterior_linear::Prior;
use posterior_linear::sampled::{
    Drawn, FunctionSpace, GradientVariances, Noise, Objective, SampledModel, Sampler, WatchSolver,
    gradient_variances,
};
use posterior_linear::structure::Structure;
use posterior_networks::Precision;
use posterior_optim::{Reason, Signal};
use posterior_tangent::{Observed, Tangent};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// A solver in its space.
pub(super) struct Solving<'a, 'f, T: Precision> {
    pub(super) way: SpaceSolver<'a, 'f, T>,
    /// What conjugate gradients are preconditioned with, in coordinates of the space.
    pub(super) curvature: Structure,
    pub(super) objective: Objective,
}

/// What samples are known by: enough to draw further ones.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Setting {
    pub(super) prior: Prior,
    pub(super) strength: f64,
    pub(super) g_prior: bool,
    pub(super) seed: u64,
}

impl Setting {
    /// The model in the coordinates of the prior.
    pub(super) fn model<'a, 'f, T: Precision>(
        &self,
        tangent: &'a Tangent<'f, T>,
        observed: &'a Observed<'a, T>,
        likelihood: &'a OutputLikelihood,
        diagonal: &[f64],
    ) -> Result<SampledModel<'a, T, Tangent<'f, T>>, LaplaceError> {
        let model = SampledModel::new(tangent, observed, likelihood);
        Ok(if self.g_prior { model.scaled(scales(diagonal))? } else { model })
    }

    /// Solves for samples of these numbers.
    pub(super) fn solve<'f, T: Precision>(
        &self,
        model: &SampledModel<'_, T, Tangent<'f, T>>,
        by: &Solving<'_, 'f, T>,
        samples: Range<usize>,
        state: Option<AnyState>,
        watch: &mut WatchSolver<'_, AnyState>,
    ) -> Result<Drawn, LaplaceError> {
        let each = self.prior.precision_of_each(0..model.dimension());
        let go = &mut |_, _| Signal::Continue;
        let curvature = &by.curvature;
        let drawn = match &by.way {
            SpaceSolver::Functions(solve, span) => {
                let (own, noise) =
                    (span.model(model.likelihood()), span.noise(model, samples, self.seed, go)?);
                let (own, noise) = (&own, &noise);
                let mut sampler =
                    AnySampler::Functions(FunctionSpace { model, span, own, noise, curvature, solve });
                sampler.samples(&each, self.strength, None, state, watch)?
            }
            way => {
                let noise = Noise::draw(model, samples, self.seed, go)?;
                let mut sampler = way.sampler(model, &noise, curvature, by.objective);
                sampler.samples(&each, self.strength, None, state, watch)?
            }
        };
        if drawn.reason == Reason::Interrupted {
            return Err(LaplaceError::Interrupted);
        }
        Ok(drawn)
    }

    /// Which objective has the less noisy gradients at solved samples, the first ones of their numbers; of descent under one precision. Three passes.
    pub(super) fn gradient_variances<T: Precision>(
        &self,
        model: &SampledModel<'_, T, Tangent<'_, T>>,
        samples: MatRef<'_, f64>,
        solver: &Solver,
        observer: &mut dyn FnMut(usize, usize) -> Signal,
    ) -> Result<Option<GradientVariances>, LaplaceError> {
        let (Solver::Descent(_), [one]) = (solver, self.prior.precisions()) else { return Ok(None) };
        let noise = Noise::draw(model, 0..samples.ncols(), self.seed, &mut *observer)?;
        let count = model.examples();
        let some: Vec<usize> = (0..count).step_by(count.div_ceil(COMPARED).max(1)).collect();
        Ok(Some(gradient_variances(model, &noise, samples, (*one, self.strength), &some, observer)?))
    }
}

/// Examples by whose own gradients the two objectives are compared.
const COMPARED: usize = 100;

/// `m^(-1/2)`, zero where nothing moves an output.
fn scales(diagonal: &[f64]) -> Vec<f64> {
    diagonal.iter().map(|m| if *m > 0.0 { m.powf(-0.5) } else { 0.0 }).collect()
}
