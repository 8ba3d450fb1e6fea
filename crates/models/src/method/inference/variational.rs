//! Variational inference: the stochastic bound of inducing points under the likelihood itself.

use super::journal::Journal;
use super::observed::Observed;
use super::outcome::Inferred;
use super::search::{SearchRecord, give};
use crate::method::training::{FoundSearch, train};
use crate::options::{InferenceName, SvgpOptions};
use crate::{BoundSummary, FitRequest, FitStage, Hyperparameter, ModelError};
use posterior_gp::inducing::stochastic::StochasticGp;
use posterior_linalg::random::Streams;
use posterior_optim::Observer;
use std::sync::Arc;
use std::time::Duration;

/// Fits.
pub(crate) fn fit(
    observed: &Observed,
    (request, asked): (&FitRequest, &SvgpOptions),
    (journal, observer): (&mut Journal, &mut Observer<'_, FitStage>),
) -> Result<Inferred, ModelError> {
    let mut kernel = request.prior.kernel.build(&observed.feature_names())?;
    observed.begin(&mut *kernel);
    let (own, inputs) = (&asked.inducing, observed.data.inputs());
    let chosen = own.choice().choose(&*kernel, inputs, own.points(), Streams::new(request.seed))?;
    let inducing = chosen.points.nrows();
    let likelihood = observed.likelihood.clone_box();
    let mut model = StochasticGp::new(kernel, request.prior.mean, likelihood, chosen.points)?;
    let counts = request.prior.kernel.count_columns(&observed.feature_names());
    model.learn_inducing = !asked.fixed_inducing && counts.is_empty();
    let learned = request.start.hyperparameters().is_none();
    give(request, &mut model)?;
    model.learn_hyperparameters = learned;
    let hyperpriors = match learned {
        true => request.hyperpriors_of(&model, (inputs.ncols(), observed.target.function_units())),
        false => request.prior.hyperpriors.clone(),
    };
    let told = (request, asked, &hyperpriors[..]);
    let time = journal.left().map(Duration::from_secs_f64);
    let fitted = train(model, &observed.data, told, time, (&mut journal.keeping(), observer))?.fit;
    ModelError::heed(fitted.reason)?;
    let hyperparameters = Hyperparameter::without_inducing(&fitted.model);
    let mut likelihood = observed.likelihood.clone();
    Hyperparameter::give(&hyperparameters, &mut likelihood);
    let ended = (fitted.reason, fitted.steps, fitted.steps);
    let ended = FoundSearch::new(Vec::new(), ended, fitted.largest_jitter, fitted.at_bounds);
    let source = if learned { "the bound".into() } else { "given".into() };
    let told = SearchRecord { hyperparameters, hyperpriors, source, ended };
    let summary = BoundSummary { bound: fitted.average_bound, inducing, moved: fitted.model.learn_inducing };
    let inferred = Inferred::new(InferenceName::Variational, Arc::new(fitted.posterior), likelihood, told);
    Ok(Inferred { bound: Some(summary), ..inferred })
}
