//! One interface to the three solvers.

use super::dual::Dual;
use faer::Mat;
use posterior_gp::iterative::SolverState as DualState;
use posterior_linear::sampled::{Drawn, SampledError, Sampler, SolverState, WatchSolver, WeightSpace};
use posterior_networks::Precision;
use posterior_tangent::Tangent;

/// Samples in weight space or in function space.
pub(super) enum AnySampler<'a, 'f, T: Precision> {
    Weights(WeightSpace<'a, T, Tangent<'f, T>>),
    Dual(Dual<'a, 'f, T>),
}

/// Where a solve stands.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum AnyState {
    Weights(SolverState),
    Dual(DualState<f64>),
}

impl<T: Precision> Sampler for AnySampler<'_, '_, T> {
    type State = AnyState;

    fn samples(
        &mut self,
        precisions: &[f64],
        strength: f64,
        start: Option<&Mat<f64>>,
        saved: Option<AnyState>,
        watch: &mut WatchSolver<'_, AnyState>,
    ) -> Result<Drawn, SampledError> {
        let foreign = || SampledError::State {
            what: "the samples",
            problem: "they were being solved for in another space".into(),
        };
        match self {
            Self::Weights(sampler) => {
                let saved = match saved {
                    None => None,
                    Some(AnyState::Weights(state)) => Some(state),
                    Some(AnyState::Dual(_)) => return Err(foreign()),
                };
                sampler.samples(precisions, strength, start, saved, &mut |progress, state| {
                    watch(progress, &|| AnyState::Weights(state()))
                })
            }
            Self::Dual(sampler) => {
                let saved = match saved {
                    None => None,
                    Some(AnyState::Dual(state)) => Some(state),
                    Some(AnyState::Weights(_)) => return Err(foreign()),
                };
                sampler.samples(precisions, strength, start, saved, &mut |progress, state| {
                    watch(progress, &|| AnyState::Dual(state()))
                })
            }
        }
    }
}
