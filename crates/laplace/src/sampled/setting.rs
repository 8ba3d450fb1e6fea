//! What a fit and further samples share: the model in the prior's coordinates, and the solver with what it needs.

use super::dual::{Dual, Kernel};
use super::solve::{AnySampler, AnyState};
use super::{DualOptions, Objective, SampledOptions, Solver};
use crate::LaplaceError;
use faer::MatRef;
use posterior_likelihoods::OutputLikelihood;
use posterior_linear::Prior;
use posterior_linear::sampled::{
    Drawn, GradientVariances, Noise, SampledModel, Sampler, Solve, WatchSolver, WeightSpace,
    gradient_variances,
};
use posterior_linear::structure::Structure;
use posterior_networks::train::Examples;
use posterior_networks::{Network, Precision, Selection};
use posterior_optim::{Reason, Signal};
use posterior_tangent::{Observed, Tangent};
use serde::{Deserialize, Serialize};
use std::ops::Range;

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
    pub(super) fn solve<T: Precision>(
        &self,
        (network, selection, examples): (&Network<T>, &Selection, &dyn Examples<T>),
        model: &SampledModel<'_, T, Tangent<'_, T>>,
        curvature: &Structure,
        samples: Range<usize>,
        options: &SampledOptions,
        memory: u64,
        state: Option<AnyState>,
        watch: &mut WatchSolver<'_, AnyState>,
    ) -> Result<Drawn, LaplaceError> {
        let noise = Noise::draw(model, samples, self.seed, &mut |_, _| Signal::Continue)?;
        let way = Way::of((network, selection, examples), model, &options.solver, memory)?;
        let each = self.prior.precision_of_each(0..model.dimension());
        let mut sampler = way.sampler(model, &noise, curvature, options.objective);
        let drawn = sampler.samples(&each, self.strength, None, state, watch)?;
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

/// A solver with what it needs beside the noise.
pub(super) enum Way<'a, 'f, T: Precision> {
    Weights(Solve),
    Dual(&'a DualOptions, Kernel<'a, 'f, T>),
}

impl<'a, 'f, T: Precision> Way<'a, 'f, T> {
    pub(super) fn of(
        (network, selection, examples): (&Network<T>, &Selection, &dyn Examples<T>),
        model: &'a SampledModel<'a, T, Tangent<'f, T>>,
        solver: &'a Solver,
        memory: u64,
    ) -> Result<Self, LaplaceError> {
        Ok(match solver {
            Solver::Descent(options) => Self::Weights(Solve::Descent(options.clone())),
            Solver::ConjugateGradients(options) => Self::Weights(Solve::ConjugateGradients(options.clone())),
            Solver::DualDescent(options) => {
                Self::Dual(options, Kernel::of(network, selection, examples, model, memory)?)
            }
        })
    }

    pub(super) fn sampler(
        &'a self,
        model: &'a SampledModel<'a, T, Tangent<'f, T>>,
        noise: &'a Noise,
        curvature: &'a Structure,
        objective: Objective,
    ) -> AnySampler<'a, 'f, T> {
        match self {
            Self::Weights(solve) => {
                AnySampler::Weights(WeightSpace { model, noise, curvature, solve, objective })
            }
            Self::Dual(options, kernel) => AnySampler::Dual(Dual::new(model, noise, kernel, options)),
        }
    }

    pub(super) fn stored_kernel(&self) -> Option<bool> {
        match self {
            Self::Weights(_) => None,
            Self::Dual(_, kernel) => Some(matches!(kernel, Kernel::Stored(_))),
        }
    }
}
