//! The stochastic bound of inducing points, trained under any likelihood.

use super::checkpoint::Watched;
use crate::options::SvgpOptions;
use crate::{FitRequest, FitStage, ModelError};
use posterior_gp::inducing::stochastic::{
    StochasticFit, StochasticGp, StochasticOptions, StochasticState, fit_stochastic,
};
use posterior_gp::{Hyperprior, RowSource};
use posterior_optim::Progress;
use std::time::Duration;

/// A bound that was trained.
pub(crate) struct TrainedBound {
    pub(crate) fit: StochasticFit,
    /// Steps that an earlier run had taken.
    pub(crate) resumed_from: usize,
}

/// Trains from the model's own values, within some time, going on from where an earlier run was interrupted. The observer sees the bound averaged over recent steps.
///
/// # Errors
/// Those of the bound, and files that cannot be read or written.
pub(crate) fn train(
    model: StochasticGp,
    data: &dyn RowSource,
    (request, asked, hyperpriors): (&FitRequest, &SvgpOptions, &[Hyperprior]),
    time: Option<Duration>,
    (keeping, observer): Watched<'_, '_, '_>,
) -> Result<TrainedBound, ModelError> {
    let usual = StochasticOptions::default();
    let options = StochasticOptions {
        steps: asked.steps(),
        seed: request.seed,
        time,
        variational: asked.optimizer(),
        hyperpriors: hyperpriors.to_vec(),
        constraints: match request.start.hyperparameters() {
            Some(_) => Vec::new(),
            None => asked.constraints.all(),
        },
        memory_limit: request.limits.memory,
        batch: asked.batches.batch.unwrap_or(usual.batch),
        learning_rate: asked.batches.step_size.unwrap_or(usual.learning_rate),
        ..usual
    };
    let state: Option<StochasticState> = keeping.checkpoints.bound()?;
    let fit = fit_stochastic(model, data, &options, state.as_ref(), &mut |progress, iterate| {
        let averaged = Progress { value: Some(iterate.average_bound()), ..*progress };
        let signal = observer(&averaged, &FitStage::Bound);
        keeping.observe(signal, || posterior_store::to_value(&iterate.state(progress)))
    })?;
    keeping.checkpoints.finish()?;
    Ok(TrainedBound { fit, resumed_from: state.map_or(0, |state| state.step) })
}
