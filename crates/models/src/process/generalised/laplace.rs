//! The Laplace approximation: the curvature at the posterior's mode, hyperparameters by its evidence.

use super::check::Judged;
use super::crossed::crossed;
use super::header::ModeSummary;
use super::inferred::Inferred;
use super::journal::Journal;
use super::observed::Observed;
use super::plan::InferencePlan;
use super::searching::Told;
use crate::hyperparameter::add_weak_priors;
use crate::latent::{Latent, by_rows};
use crate::options::{InferenceName, LengthscalePrior};
use crate::output::{Target, marginal};
use crate::process::scalable::checkpoint::FoundSearch;
use crate::process::{FitStage, Hyperparameter};
use crate::rows::{CheckedOn, Prints};
use crate::{FitRequest, ModelError};
use posterior_gp::Observations;
use posterior_gp::exact::FitOptions;
use posterior_gp::laplace::{
    LaplaceEvaluation, LaplaceGp, LaplacePosterior, LatentPrediction, fit_laplace, laplace_evidence,
};
use posterior_optim::{Constraint, Observer, Parameters, Reason};
use std::sync::Arc;
use std::time::Duration;

/// Fits.
pub(super) fn fit(
    observed: &Observed,
    request: &FitRequest,
    plan: &InferencePlan,
    (journal, observer): (&mut Journal, &mut Observer<'_, FitStage>),
) -> Result<Inferred, ModelError> {
    let asked = plan.exact();
    let mut kernel = request.kernel.build(&observed.feature_names())?;
    observed.begin(&mut *kernel);
    let inputs = observed.data.inputs().ncols();
    let mut model = LaplaceGp::new(kernel, request.mean, observed.likelihood.clone_box(), inputs);
    let learned = request.hyperparameters.is_none();
    let mut options = request.fit_options(&asked.evidence);
    options.steps.time = request.time_budget.map(Duration::from_secs_f64);
    match &request.hyperparameters {
        Some(given) => {
            if let Some(name) = Hyperparameter::give(given, &mut model).first() {
                let known = Hyperparameter::of(&model)
                    .iter()
                    .map(|h| format!("{} ({})", h.name, h.values.len()))
                    .collect();
                return Err(ModelError::UnknownHyperparameter { name: name.clone(), known });
            }
            let held = model.segments().into_iter();
            options.constraints =
                held.map(|s| Constraint::Fixed { parameter: s.name, value: None }).collect();
            options.hyperpriors.clear();
        }
        None if request.lengthscale_prior == LengthscalePrior::Weak => {
            add_weak_priors(&mut options.hyperpriors, &model, inputs);
        }
        None => {}
    }
    let hyperpriors = options.hyperpriors.clone();
    let found = searched("all rows", &mut model, &observed.data, &options, (&mut *journal, &mut *observer))?;
    let LaplaceEvaluation { value, mode, .. } = laplace_evidence(&model, &observed.data, None)?;
    let (log_evidence, newton_steps) = (value, mode.newton_steps);
    let posterior = LaplacePosterior::new(model, &observed.data, Some(&mode.coefficients))?;
    let hyperparameters = Hyperparameter::of(posterior.model());
    let mut likelihood = observed.likelihood.clone();
    Hyperparameter::give(&hyperparameters, &mut likelihood);
    let judged = match observed.rows() {
        1 => None,
        _ => Some(left_out(observed, &posterior, &options, request, (journal, observer))?),
    };
    let told = Told {
        hyperparameters,
        hyperpriors,
        source: if learned { "Laplace's approximation of the evidence".into() } else { "given".into() },
        reason: found.reason,
        steps: found.steps,
        evaluations: found.evaluations,
        largest_jitter: found.largest_jitter,
        at_bounds: found.at_bounds,
    };
    let summary = ModeSummary { log_evidence, newton_steps };
    let inferred = Inferred::new(InferenceName::Laplace, Arc::new(posterior), likelihood, told);
    Ok(Inferred { judged, mode: Some(summary), ..inferred })
}

/// Hyperparameters of some rows, in an earlier run or now; the model has them afterwards.
fn searched(
    rows: &str,
    model: &mut LaplaceGp,
    data: &Observations,
    options: &FitOptions,
    (journal, observer): (&mut Journal, &mut Observer<'_, FitStage>),
) -> Result<FoundSearch, ModelError> {
    let start = model.clone();
    let found = journal.once(&format!("laplace, {rows}"), || {
        let found =
            fit_laplace(start, data, options, &mut |progress, _| observer(progress, &FitStage::Search))?;
        if found.reason == Reason::Interrupted {
            return Err(ModelError::Interrupted);
        }
        Ok(FoundSearch {
            values: found.posterior.model().values(),
            reason: found.reason,
            steps: found.steps,
            evaluations: found.evaluations,
            largest_jitter: found.largest_jitter,
            at_bounds: found.at_bounds,
        })
    })?;
    model.set_values(&found.values);
    Ok(found)
}

/// Steps at most of a search on half of the rows.
const STEPS_OF_HALF: usize = 15;

/// Scores of every row as the others predict it, about, under hyperparameters that its half had no part in.
fn left_out(
    observed: &Observed,
    posterior: &LaplacePosterior,
    options: &FitOptions,
    request: &FitRequest,
    (journal, observer): (&mut Journal, &mut Observer<'_, FitStage>),
) -> Result<Judged, ModelError> {
    let truths = observed.targets();
    let rows: Vec<usize> = (0..observed.rows()).collect();
    let learned = request.hyperparameters.is_none();
    // Events may come twice at one place, and rows with a weight or an offset of their own are alike in more than these prints.
    let plain = observed.data.weights().is_none() && observed.data.offsets().is_none();
    let copies = match observed.target {
        Target::Events { .. } => vec![1; rows.len()],
        _ if plain => Prints::of(&observed.data)?.copies(),
        _ => vec![1; rows.len()],
    };
    let mut likelihood = observed.likelihood.clone();
    let latents = crossed(observed, &rows, (learned, request.seed), |half| {
        let mut model = posterior.model().clone();
        if learned && half.len() < rows.len() {
            // From the beginning: what all rows chose has seen the other half.
            let mut kernel = request.kernel.build(&observed.feature_names())?;
            observed.select(half)?.begin(&mut *kernel);
            model = LaplaceGp::new(
                kernel,
                request.mean,
                observed.likelihood.clone_box(),
                observed.data.inputs().ncols(),
            );
            let mut options = FitOptions { restarts: 1, ..options.clone() };
            options.steps.steps = options.steps.steps.min(STEPS_OF_HALF);
            let name = format!("a part with row {}", half[0] + 1);
            let kept = (&mut *journal, &mut *observer);
            searched(&name, &mut model, &observed.data.select(half)?, &options, kept)?;
        }
        Hyperparameter::give(&Hyperparameter::of(&model), &mut likelihood);
        let own = LaplacePosterior::new(model, &observed.data, None)?;
        let LatentPrediction { mean, covariance, .. } = own.left_out(&observed.data, Some(&copies))?;
        Ok(Latent::new(by_rows(&mean), covariance, mean.ncols()))
    })?;
    let kind = (&observed.target, &likelihood);
    let offsets = observed.data.offsets();
    let known = marginal(&observed.target, &truths, offsets);
    Judged::of(CheckedOn::LeaveOneOut, latents, kind, &truths, (&known, offsets))
}
