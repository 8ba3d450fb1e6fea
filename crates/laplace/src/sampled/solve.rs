//! One interface to the solvers, in whichever space.

use super::dual::Dual;
use faer::Mat;
use posterior_gp::iterative::SolverState as DualState;
use posterior_linear::features::DenseFeatures;
use posterior_linear::sampled::{
    Drawn, FunctionSpace, SampledError, Sampler, SolverState, WatchSolver, WeightSpace,
};
use posterior_networks::Precision;
use posterior_tangent::Tangent;

/// What makes samples.
pub(super) enum AnySampler<'a, 'f, T: Precision> {
    /// Of all weights, there.
    Weights(WeightSpace<'a, T, Tangent<'f, T>>),
    /// Of all weights, in the span of the examples.
    Functions(FunctionSpace<'a, T, Tangent<'f, T>>),
    /// Of the span alone.
    Span(WeightSpace<'a, f64, DenseFeatures>),
    /// By dual descent.
    Dual(Dual<'a, 'f, T>),
}

/// Where a solve stands.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum AnyState {
    Weights(SolverState),
    Dual(DualState<f64>),
}

/// Precisions, strength, earlier samples, an earlier state.
type SolveRequest<'a> = (&'a [f64], f64, Option<&'a Mat<f64>>, Option<AnyState>);

/// Samples of a solver whose states are read out of, and put into, those of any.
fn by<S: Sampler>(
    sampler: &mut S,
    (precisions, strength, start, saved): SolveRequest<'_>,
    read: impl Fn(AnyState) -> Option<S::State>,
    put: impl Fn(S::State) -> AnyState,
    watch: &mut WatchSolver<'_, AnyState>,
) -> Result<Drawn, SampledError> {
    let foreign = || SampledError::State {
        what: "the samples",
        problem: "they were being solved for in another space".into(),
    };
    let saved = saved.map(|state| read(state).ok_or_else(foreign)).transpose()?;
    sampler
        .samples(precisions, strength, start, saved, &mut |progress, state| watch(progress, &|| put(state())))
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
        let asked = (precisions, strength, start, saved);
        let read = |state| match state {
            AnyState::Weights(own) => Some(own),
            AnyState::Dual(_) => None,
        };
        let dual = |state| match state {
            AnyState::Dual(own) => Some(own),
            AnyState::Weights(_) => None,
        };
        match self {
            Self::Weights(sampler) => by(sampler, asked, read, AnyState::Weights, watch),
            Self::Functions(sampler) => by(sampler, asked, read, AnyState::Weights, watch),
            Self::Span(sampler) => by(sampler, asked, read, AnyState::Weights, watch),
            Self::Dual(sampler) => by(sampler, asked, dual, AnyState::Dual, watch),
        }
    }
}
