//! Numbers with Gaussian noise.

use super::task::Task;
use crate::method::deep::{Columns, Trained, apart, floor};
use crate::method::training::{ScalableFit, Watched};
use crate::{FitRequest, Hyperparameter, Method, ModelError, Prepared, ScalableSummary};
use posterior_gp::GpError;
use posterior_gp::generalised::GeneralisedGp;
use posterior_likelihoods::Gaussian;
use posterior_optim::Parameters as _;
use std::sync::Arc;
use std::time::Instant;

/// Trains on prepared rows, within `seconds` where there is a limit.
pub(crate) fn fit(
    prepared: &Prepared,
    (request, method): (&FitRequest, &Method),
    seconds: Option<f64>,
    watched: Watched<'_, '_, '_>,
) -> Result<ScalableFit, ModelError> {
    let options = method.requires(method.gvi())?;
    let started = Instant::now();
    let names = prepared.schema.feature_names();
    let (train, aside, training_duplicates) = apart(&prepared.data, request.seed)?;
    let columns = Columns { names: &names, standardisation: &prepared.standardisation };
    let first = Gaussian::new(request.first_noise().max(2.0 * floor(request)), floor(request));
    // The process's own noise is another than the prior's, under the same constraints.
    let constraints = match request.start.hyperparameters() {
        Some(_) => Vec::new(),
        None => options.constraints.of("noise_variance"),
    };
    let mut likelihood = first.constrained(&constraints).map_err(GpError::from)?;
    let task = Task {
        request,
        options,
        columns,
        rows: (&train, &aside),
        training_duplicates,
        likelihood: &likelihood,
        numbers: &train,
    };
    let trained = task.train(seconds, watched)?;
    let training = trained.training(source(&trained.summary.prior), started);
    let Trained { posterior, summary, hyperpriors, reason, jitter, .. } = trained;
    likelihood.set_values(&posterior.likelihood().values());
    let mut at_bounds = summary.prior.at_bounds.clone();
    at_bounds.retain(|(name, _)| name != "noise_variance");
    at_bounds.extend(likelihood.at_bounds());
    let summary = ScalableSummary { at_bounds, ..ScalableSummary::of_gvi(summary, training) };
    let shown = hyperparameters(&posterior);
    let fit = ScalableFit::new(method.name(), Arc::new(posterior), shown, (reason, jitter));
    Ok(ScalableFit { hyperpriors, summary: Some(summary), ..fit })
}

/// Where hyperparameters of the prior come from, in words.
pub(crate) fn source(prior: &crate::PriorSummary) -> String {
    match (prior.rows, prior.turns.len()) {
        (0, 0) => "given".into(),
        (0, turns) => format!("{} inducing points, in {turns} turns with their choice", prior.inducing),
        (rows, _) => format!("the evidence of {rows} rows"),
    }
}

/// What is shown of a posterior of numbers: the prior's hyperparameters, of which the noise is that of the process itself.
pub(crate) fn hyperparameters(posterior: &GeneralisedGp) -> Vec<Hyperparameter> {
    let model = posterior.reference(0).posterior().model();
    let mut all = Hyperparameter::of(model);
    // Thousands of weights are arrays of the file, and no list to read.
    all.retain(|own| own.name != "map.weights");
    let noise = posterior.likelihood().values();
    if let Some(own) = all.iter_mut().find(|own| own.name == "noise_variance") {
        own.values = noise;
    }
    all
}
