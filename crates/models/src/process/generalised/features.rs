//! Features that are learned under the likelihood itself: one network for all functions, which differ in their weights.
//!
//! Training is that of numbers (`deep`), with the likelihood's expectations in the place of Gaussian noise: several ways, of which rows that are set aside choose one by their log predictive density. Two things are
//! other. The posterior of the weights has no closed form, and a Gaussian that the bound of all rows prefers stands for it. And beside the model stands, where rows were held back to judge it by, a plain process of few rows without learned features.

use super::events::{self, Nodes};
use super::header::FeatureSummary;
use super::inferred::Inferred;
use super::journal::Journal;
use super::observed::Observed;
use super::searching::Told;
use crate::method::LowRank;
use crate::options::InferenceName;
use crate::output::{Target, marginal};
use crate::process::deep::{Columns, Targets, Task, Trained};
use crate::process::scalable::check_numbers;
use crate::process::{FitStage, Hyperparameter};
use crate::rows::Split;
use crate::{FitRequest, Method, ModelError};
use posterior_gp::Observations;
use posterior_likelihoods::OutputLikelihood;
use posterior_optim::{Observer, Parameters as _, Reason};
use std::sync::Arc;

/// Fits.
pub(super) fn fit(
    observed: &Observed,
    (request, method): (&FitRequest, &Method),
    (journal, observer): (&mut Journal, &mut Observer<'_, FitStage>),
) -> Result<Inferred, ModelError> {
    check_numbers(request, method)?;
    let level = level(observed);
    let Split { train, validation, twins, .. } = observed.set_aside("learned features need", request.seed)?;
    let rows = |rows: &[usize], nodes: Nodes| -> Result<Observations, ModelError> {
        let own = observed.data.select(rows)?;
        match observed.target {
            Target::Events { .. } => Ok(events::rows(&own, nodes, request.seed)?),
            _ => raised(own, level),
        }
    };
    let (train, aside) = (rows(&train, Nodes::Train)?, rows(&validation, Nodes::Aside)?);
    let names = observed.feature_names();
    let targets = match observed.target {
        Target::Events { .. } => Targets::Events,
        _ => Targets::Labels(&*observed.likelihood),
    };
    let columns = Columns { names: &names, standardisation: &observed.standardisation };
    let task = Task { request, method, columns, rows: (&train, &aside), twins, targets };
    let left = left_for_training(request, journal);
    let trained = task.train(left, (journal, observer))?;
    let Trained { posterior, summary: mut learned, objective, steps, resumed_from, reason, jitter, .. } =
        trained;
    if reason == Reason::Interrupted {
        return Err(ModelError::Interrupted);
    }
    let mut likelihood = observed.likelihood.clone();
    likelihood.set_values(&posterior.likelihood().values());
    let told = Told {
        hyperparameters: Hyperparameter::of(&likelihood),
        hyperpriors: Vec::new(),
        source: format!("{} rows that were set aside", learned.validation_rows),
        reason,
        steps,
        evaluations: steps,
        largest_jitter: jitter,
        at_bounds: Vec::new(),
    };
    let predictor = Arc::new(LowRank { posterior, level: Some(level) });
    let mut expected_events = None;
    if matches!(observed.target, Target::Events { .. }) {
        expected_events = Some(events::expected(&*predictor, observed, request.seed)?);
        // Nodes are no rows of anybody's: what is told is told for each event.
        let (rows, events) = (aside.rows(), validation.len());
        learned.validation_rows = events;
        for tried in &mut learned.tried {
            let looks = tried.looks.iter_mut().map(|look| &mut look.nll);
            let again = tried.refitted_nll.as_mut();
            for nll in looks
                .chain([&mut tried.nll, &mut tried.first_nll])
                .chain(again)
                .filter(|nll| **nll < f64::MAX)
            {
                *nll = events::nats_for_each_event(*nll, rows, events);
            }
        }
    }
    let summary = FeatureSummary { learned, level, objective, resumed_from, expected_events, plain: None };
    let inferred = Inferred::new(InferenceName::Variational, predictor, likelihood, told);
    Ok(Inferred { features: Some(summary), ..inferred })
}

/// Seconds that training may take: a tenth of what is left is for the plain process beside it.
pub(super) fn left_for_training(request: &FitRequest, journal: &Journal) -> Option<f64> {
    request.time_budget.map(|budget| (0.9 * (budget - journal.spent())).max(f64::MIN_POSITIVE))
}

/// What the function is where inputs say nothing.
fn level(observed: &Observed) -> f64 {
    if let Some(level) = events::level(&observed.target) {
        return level;
    }
    let marginal = marginal(&observed.target, &observed.targets(), observed.data.offsets());
    match (&observed.target, &observed.likelihood) {
        // Half a row of the other kind is the least that is known of so many.
        (Target::Classes { .. }, OutputLikelihood::Bernoulli(_)) => {
            let least = 0.5 / observed.rows() as f64;
            let yes = marginal[1].clamp(least, 1.0 - least);
            (yes / (1.0 - yes)).ln()
        }
        // Of no counts at all as well.
        (Target::Counts { .. }, _) => marginal[0].max(0.5 / observed.rows() as f64).ln(),
        _ => 0.0,
    }
}

/// Rows whose latent values begin at a level.
fn raised(data: Observations, level: f64) -> Result<Observations, ModelError> {
    let own = data.offsets().map(<[f64]>::to_vec);
    let offsets =
        own.map_or_else(|| vec![level; data.rows()], |own| own.iter().map(|offset| offset + level).collect());
    Ok(data.with_offsets(offsets)?)
}
