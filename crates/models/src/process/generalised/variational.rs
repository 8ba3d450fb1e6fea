//! Variational inference: the stochastic bound of inducing points under the likelihood itself.

use super::header::BoundSummary;
use super::inferred::Inferred;
use super::journal::Journal;
use super::observed::Observed;
use super::plan::InferencePlan;
use super::searching::Told;
use crate::hyperparameter::add_weak_priors;
use crate::options::{InferenceName, LengthscalePrior};
use crate::process::{FitStage, Hyperparameter};
use crate::{FitRequest, ModelError};
use posterior_gp::inducing::stochastic::{StochasticGp, StochasticOptions, StochasticState, fit_stochastic};
use posterior_linalg::random::Streams;
use posterior_optim::{Observer, Progress, Reason};
use std::sync::Arc;
use std::time::Duration;

/// Fits.
pub(super) fn fit(
    observed: &Observed,
    request: &FitRequest,
    plan: &InferencePlan,
    (journal, observer): (&mut Journal, &mut Observer<'_, FitStage>),
) -> Result<Inferred, ModelError> {
    let asked = plan.bound();
    let mut kernel = request.kernel.build(&observed.feature_names())?;
    observed.begin(&mut *kernel);
    let chosen = asked
        .inducing
        .choice()
        .choose(&*kernel, observed.data.inputs(), asked.inducing.points(), Streams::new(request.seed))
        .map_err(|e| ModelError::Inducing(e.to_string()))?;
    let inducing = chosen.points.nrows();
    let likelihood = observed.likelihood.clone_box();
    let mut model = StochasticGp::new(kernel, request.mean, likelihood, chosen.points)?;
    let counts = request.kernel.count_columns(&observed.feature_names());
    model.learn_inducing = !asked.fixed_inducing && counts.is_empty();
    if let Some(given) = &request.hyperparameters {
        let missing = Hyperparameter::give(given, &mut model);
        if let Some(name) = missing.iter().find(|name| *name != "inducing_inputs") {
            let known = Hyperparameter::without_inducing(&model)
                .iter()
                .map(|h| format!("{} ({})", h.name, h.values.len()))
                .collect();
            return Err(ModelError::UnknownHyperparameter { name: name.clone(), known });
        }
        model.learn_hyperparameters = false;
    }
    let mut hyperpriors = request.hyperpriors.clone();
    if request.hyperparameters.is_none() && request.lengthscale_prior == LengthscalePrior::Weak {
        add_weak_priors(&mut hyperpriors, &model, observed.data.inputs().ncols());
    }
    let usual = StochasticOptions::default();
    let options = StochasticOptions {
        steps: asked.steps(),
        seed: request.seed,
        time: request
            .time_budget
            .map(|budget| Duration::from_secs_f64((budget - journal.spent()).max(f64::MIN_POSITIVE))),
        variational: asked.optimizer(),
        hyperpriors: hyperpriors.clone(),
        constraints: match request.hyperparameters.is_none() {
            true => asked.constraints.all(),
            false => Vec::new(),
        },
        memory_limit: request.memory,
        batch: asked.batches.batch.unwrap_or(usual.batch),
        learning_rate: asked.batches.step_size.unwrap_or(usual.learning_rate),
        ..usual
    };
    let state: Option<StochasticState> = journal.bound()?;
    let fitted =
        fit_stochastic(model, &observed.data, &options, state.as_ref(), &mut |progress, iterate| {
            let averaged = Progress { value: Some(iterate.average_bound()), ..*progress };
            let signal = observer(&averaged, &FitStage::Bound);
            journal.observe_bound(signal, || posterior_store::to_value(&iterate.state(progress)))
        })?;
    journal.finish()?;
    if fitted.reason == Reason::Interrupted {
        return Err(ModelError::Interrupted);
    }
    let learned = request.hyperparameters.is_none();
    let hyperparameters = Hyperparameter::without_inducing(&fitted.model);
    let mut likelihood = observed.likelihood.clone();
    Hyperparameter::give(&hyperparameters, &mut likelihood);
    let told = Told {
        hyperparameters,
        hyperpriors,
        source: if learned { "the bound".into() } else { "given".into() },
        reason: fitted.reason,
        steps: fitted.steps,
        evaluations: fitted.steps,
        largest_jitter: fitted.largest_jitter,
        at_bounds: fitted.at_bounds,
    };
    let summary = BoundSummary { bound: fitted.average_bound, inducing, moved: fitted.model.learn_inducing };
    let inferred = Inferred::new(InferenceName::Variational, Arc::new(fitted.posterior), likelihood, told);
    Ok(Inferred { bound: Some(summary), ..inferred })
}
