//! Hyperparameters of iterative methods: given, from neighbourhoods, or by stochastic gradients of the evidence of all rows.

use super::time_limit;
use crate::FitRequest;
use crate::model::fit::{FitEvent, Prepared, add_weak_priors, named_values};
use crate::model::scalable::checkpoint::{Found, Keeper, Saved, Stage};
use crate::model::scalable::{EvidenceSearchSummary, HyperparameterSearch, Kept, StochasticSearch};
use crate::model::{Hyperparameter, ModelError};
use posterior_gp::Hyperprior;
use posterior_gp::exact::{ExactGp, FitOptions};
use posterior_gp::iterative::{
    NeighbourhoodProgress, PathwiseModel, SearchProgress, fit_on_neighbourhoods, search_evidence,
};
use posterior_likelihoods::Gaussian;
use posterior_optim::{Parameters, Reason, Signal};
use std::time::Instant;

/// Kernel, mean and noise as the request has them, before anything is learned.
pub(super) fn initial(prepared: &Prepared, request: &FitRequest) -> Result<ExactGp, ModelError> {
    let kernel = request.kernel.build(&prepared.schema.feature_names())?;
    let noise = Gaussian::new(request.initial_noise, request.noise_floor);
    Ok(ExactGp::new(kernel, request.mean, noise, prepared.data.inputs().ncols(), 1))
}

/// Gives a model values by their names.
pub(super) fn set(model: &mut ExactGp, given: &[Hyperparameter]) -> Result<(), ModelError> {
    let known: Vec<(String, usize)> = model.segments().iter().map(|s| (s.name.clone(), s.len())).collect();
    let listed = || known.iter().map(|(n, l)| format!("{n} ({l})")).collect::<Vec<String>>();
    if let Some(other) = given.iter().find(|h| !known.iter().any(|(name, _)| *name == h.name)) {
        return Err(ModelError::UnknownHyperparameter { name: other.name.clone(), known: listed() });
    }
    let mut values = Vec::new();
    for (name, length) in &known {
        let found = given.iter().find(|h| h.name == *name && h.values.len() == *length);
        let Some(found) = found else {
            return Err(ModelError::Hyperparameters {
                missing: name.clone(),
                length: *length,
                known: listed(),
            });
        };
        if found.values.iter().any(|v| !v.is_finite() || (*v <= 0.0 && !name.starts_with("mean."))) {
            let value =
                found.values.iter().copied().find(|v| !v.is_finite() || *v <= 0.0).unwrap_or(f64::NAN);
            return Err(ModelError::Setting {
                what: "a given hyperparameter",
                value,
                expected: "positive and finite",
            });
        }
        values.extend_from_slice(&found.values);
    }
    model.set_values(&values);
    let (noise, floor) = (model.noise().noise_variance(), model.noise().floor());
    if noise <= floor {
        return Err(ModelError::GivenNoise { noise, floor });
    }
    Ok(())
}

/// What the search for hyperparameters believes: what was stated, and the weak prior of lengthscales that nothing was said about.
pub(super) fn beliefs(prepared: &Prepared, request: &FitRequest, model: &ExactGp) -> Vec<Hyperprior> {
    let mut hyperpriors = request.options.hyperpriors.clone();
    if request.weak_lengthscale_prior {
        add_weak_priors(&mut hyperpriors, model, prepared.data.inputs().ncols());
    }
    hyperpriors
}

/// Hyperparameters, where they come from, and what was found on the way.
pub(super) struct Searched {
    pub(super) model: ExactGp,
    pub(super) found: Found,
    pub(super) source: String,
    pub(super) hyperpriors: Vec<Hyperprior>,
}

/// Gives the model its hyperparameters: those of the request, those that were found before an interruption, or those of a search, which goes on behind what
/// was finished before.
pub(super) fn hyperparameters<T: Kept>(
    prepared: &Prepared,
    request: &FitRequest,
    saved: Option<&mut Saved>,
    keeper: &mut Keeper,
    observer: &mut dyn FnMut(&FitEvent<'_>) -> Signal,
) -> Result<Searched, ModelError> {
    let settings = &request.scalable;
    let mut model = initial(prepared, request)?;
    if let Some(given) = &settings.hyperparameters {
        set(&mut model, given)?;
        let found = Found { hyperparameters: named_values(&model), ..Found::default() };
        return Ok(Searched { model, found, source: "given".into(), hyperpriors: Vec::new() });
    }
    let hyperpriors = beliefs(prepared, request, &model);
    let source = source(prepared, request);
    let (mut found, state) = match saved {
        Some(saved) => (saved.found.clone(), saved.search::<T>()?),
        None => (Found::default(), None),
    };
    if !found.hyperparameters.is_empty() {
        set(&mut model, &found.hyperparameters)?;
        return Ok(Searched { model, found, source, hyperpriors });
    }
    let search = match &settings.search {
        HyperparameterSearch::Neighbourhoods => None,
        HyperparameterSearch::Stochastic(search) => Some(search),
    };
    if search.is_none_or(|s| s.from_neighbourhoods) && state.is_none() {
        model =
            on_neighbourhoods::<T>(model, prepared, request, (&mut found, &hyperpriors), keeper, observer)?;
    }
    if let Some(search) = search {
        let begin = Begin { model, state, hyperpriors: &hyperpriors };
        model = on_all_rows::<T>(begin, prepared, request, search, &mut found, keeper, observer)?;
    }
    found.hyperparameters = named_values(&model);
    keeper.save::<T>(&found, Stage::Between)?;
    Ok(Searched { model, found, source, hyperpriors })
}

/// Where hyperparameters come from, in words.
fn source(prepared: &Prepared, request: &FitRequest) -> String {
    let neighbourhoods = &request.scalable.neighbourhoods;
    let averages = if neighbourhoods.size >= prepared.data.rows() {
        "the evidence of all rows".into()
    } else {
        format!(
            "averages over the evidence on {} neighbourhoods of {} rows",
            neighbourhoods.count, neighbourhoods.size
        )
    };
    match &request.scalable.search {
        HyperparameterSearch::Neighbourhoods => averages,
        HyperparameterSearch::Stochastic(search) => {
            let from = if search.from_neighbourhoods { format!(", from {averages}") } else { String::new() };
            format!("stochastic gradients of the evidence of all rows with {} probes{from}", search.probes)
        }
    }
}

fn on_neighbourhoods<T: Kept>(
    model: ExactGp,
    prepared: &Prepared,
    request: &FitRequest,
    (found, hyperpriors): (&mut Found, &[Hyperprior]),
    keeper: &mut Keeper,
    observer: &mut dyn FnMut(&FitEvent<'_>) -> Signal,
) -> Result<ExactGp, ModelError> {
    let started = Instant::now();
    let mut neighbourhoods = request.scalable.neighbourhoods;
    neighbourhoods.seed = request.options.seed;
    let before = found.seconds;
    let options = FitOptions { restarts: 1, hyperpriors: hyperpriors.to_vec(), ..request.options.clone() };
    let earlier = found.neighbourhoods.clone();
    let mut failed = None;
    let (averaged, fits) = fit_on_neighbourhoods(
        &model,
        &prepared.data,
        neighbourhoods,
        &options,
        earlier,
        &mut |NeighbourhoodProgress { done, all, event }| {
            if done.len() > found.neighbourhoods.len() {
                found.neighbourhoods = done.to_vec();
                found.seconds = before + started.elapsed().as_secs_f64();
                if let Err(error) = keeper.save::<T>(found, Stage::Between) {
                    failed = Some(error);
                    return Signal::Stop;
                }
            }
            observer(&FitEvent::Neighbourhood { done: done.len(), all, event })
        },
    )?;
    if let Some(error) = failed {
        return Err(error);
    }
    if fits.iter().any(|f| f.reason == Reason::Interrupted) {
        return Err(ModelError::Interrupted);
    }
    found.largest_jitter = fits.iter().map(|f| f.largest_jitter).fold(0.0, f64::max);
    found.neighbourhoods = fits;
    found.seconds = before + started.elapsed().as_secs_f64();
    Ok(averaged)
}

/// Where a search on all rows begins.
struct Begin<'a, T: Kept> {
    model: ExactGp,
    state: Option<posterior_gp::iterative::SearchState<T>>,
    hyperpriors: &'a [Hyperprior],
}

/// Refuses parameters that steps of a search have driven to where no model is.
fn check_found(model: &ExactGp) -> Result<(), ModelError> {
    let what = "a hyperparameter that the stochastic search ended at";
    let expected = "positive and finite: take a smaller --learning-rate";
    for found in named_values(model) {
        let mean = found.name.starts_with("mean.");
        if let Some(&value) = found.values.iter().find(|v| !(v.is_finite() && (mean || **v > 0.0))) {
            return Err(ModelError::Setting { what, value, expected });
        }
    }
    let (noise, floor) = (model.noise().noise_variance(), model.noise().floor());
    if noise <= floor {
        let expected = "above the noise floor: take a smaller --learning-rate or a lower --noise-floor";
        return Err(ModelError::Setting { what, value: noise, expected });
    }
    Ok(())
}

fn on_all_rows<T: Kept>(
    Begin { mut model, state, hyperpriors }: Begin<'_, T>,
    prepared: &Prepared,
    request: &FitRequest,
    search: &StochasticSearch,
    found: &mut Found,
    keeper: &mut Keeper,
    observer: &mut dyn FnMut(&FitEvent<'_>) -> Signal,
) -> Result<ExactGp, ModelError> {
    let mut seconds = 0.0;
    let mut kernel = request.kernel.build::<T>(&prepared.schema.feature_names())?;
    kernel.set_values(&model.kernel().values());
    let process = PathwiseModel { kernel, mean: model.mean().clone(), noise: *model.noise() };
    let mut options = search.options(&request.scalable, request.options.seed);
    options.hyperpriors = hyperpriors.to_vec();
    options.memory_limit = request.options.memory_limit;
    options.time = time_limit(request);
    let tolerance = options.solves.budget.tolerance;
    let saw = found.clone();
    let result =
        search_evidence(process, &prepared.data, &options, state, &mut |progress: &SearchProgress<
            '_,
            T,
        >| {
            seconds = progress.elapsed.as_secs_f64();
            let signal = observer(&FitEvent::EvidenceSearch {
                step: progress.step,
                planned: progress.steps_planned,
                solver: progress.solver,
                gradient_norm: progress.gradient_norm,
            });
            keeper.see(signal, &saw, || Ok(Stage::Search(progress.state())))
        })?;
    keeper.finish()?;
    if result.reason == Reason::Interrupted {
        return Err(ModelError::Interrupted);
    }
    model.set_values(&result.model.values());
    check_found(&model)?;
    let last = result.trace.last();
    found.search = Some(EvidenceSearchSummary {
        steps: result.steps,
        solver_steps: result.solver_steps,
        gradient_norm: last.map(|s| s.gradient_norm),
        residual: last.and_then(|s| s.residual),
        unsolved: result.trace.iter().filter(|s| s.residual.is_none_or(|r| r > tolerance)).count(),
        ended: result.reason,
    });
    found.seconds += seconds;
    Ok(model)
}
