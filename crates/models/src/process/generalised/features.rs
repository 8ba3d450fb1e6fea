//! Features that are learned under the likelihood itself: one network for all functions, which differ in their weights.
//!
//! Training is that of numbers (`deep`), with the likelihood's expectations in the place of Gaussian noise: several ways, of which rows that are set aside choose one by their log predictive density. Two things are
//! other. The posterior of the weights has no closed form, and a Gaussian that the bound of all rows prefers stands for it. And beside the model stands, where rows were held back to judge it by, a plain process of few rows without learned features.

use super::check::{LabelScores, judged, surprises};
use super::events::{self, Nodes};
use super::fit::{Inferred, infer};
use super::header::marginal;
use super::journal::Journal;
use super::observed::Observed;
use super::plan::InferencePlan;
use super::searching::Told;
use super::target::Target;
use crate::method::LowRank;
use crate::options::InferenceName;
use crate::process::apart::Apart;
use crate::process::deep::{Columns, DeepSummary, Targets, Task, Trained, set_aside};
use crate::process::scalable::{PLAIN_ROWS, check_numbers};
use crate::process::{FitStage, Hyperparameter};
use crate::{FitRequest, Method, ModelError, Predictor};
use posterior_data::Split;
use posterior_gp::Observations;
use posterior_likelihoods::OutputLikelihood;
use posterior_linalg::random::Streams;
use posterior_optim::{Observer, Parameters as _, Reason};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Instant;

/// A process without learned features that was fitted to a few of the rows, to compare with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlainProcess {
    /// How its posterior is approximated.
    pub inference: InferenceName,
    /// Rows that it learned from.
    pub rows: usize,
    /// Its scores on the rows that were held back.
    pub scores: LabelScores,
    /// Seconds that it took.
    pub seconds: f64,
}

/// What came of features that were learned.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FeatureSummary {
    /// How they were trained.
    pub learned: DeepSummary,
    /// What is added to every latent value, so that weights of zero say what the training targets say without inputs: log-odds of yes, the logarithm of the mean count (for each unit of relative exposure), 0 for
    /// classes of a function each and for numbers; of events the logarithm of an even intensity.
    pub level: f64,
    /// The objective of the way that was chosen, averaged over recent steps, nats for each row.
    pub objective: f64,
    /// Steps that an earlier run had taken.
    pub resumed_from: usize,
    /// Of events: how many the mean intensity has in the whole window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_events: Option<f64>,
    /// A plain process of few rows; none where no rows were held back to compare on, or it could not be had.
    pub plain: Option<PlainProcess>,
}

/// Fits.
pub(super) fn fit(
    observed: &Observed,
    (request, method): (&FitRequest, &Method),
    (journal, observer): (&mut Journal, &mut Observer<'_, FitStage>),
) -> Result<Inferred, ModelError> {
    check_numbers(request, method)?;
    let level = level(observed);
    let n = observed.rows();
    let count = set_aside(n)?;
    let Apart { rest, drawn, twins, .. } =
        observed.apart(count, Streams::new(request.seed).child("model/set-aside", 0))?;
    if drawn.is_empty() {
        return Err(ModelError::Request(format!(
            "learned features need rows to stop and to choose by, and of these {n} none can be spared: every class has too few; take --inference laplace"
        )));
    }
    let rows = |rows: &[usize], nodes: Nodes| -> Result<Observations, ModelError> {
        let own = observed.data.select(rows)?;
        match observed.target {
            Target::Events { .. } => Ok(events::rows(&own, nodes, request.seed)?),
            _ => raised(own, level),
        }
    };
    let (train, aside) = (rows(&rest, Nodes::Train)?, rows(&drawn, Nodes::Aside)?);
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
        let (rows, events) = (aside.rows(), drawn.len());
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

/// A plain process of some rows on the rows held back, and what is to be said where it predicts them better. None where it cannot be had (no memory, no time, an interruption): it is a comparison and no part of the fit.
pub(super) fn compared(
    (predictor, likelihood): (&dyn Predictor, &OutputLikelihood),
    (train, held): (&Observed, &Observed),
    request: &FitRequest,
    left: Option<f64>,
    observer: &mut Observer<'_, FitStage>,
) -> Option<(PlainProcess, Option<String>)> {
    let started = Instant::now();
    // There is no other way here to learn an intensity.
    if left.is_some_and(|left| left <= 0.0) || matches!(train.target, Target::Events { .. }) {
        return None;
    }
    // Functions share the work that is allowed for one.
    let functions = likelihood.outputs() as f64;
    let size = ((PLAIN_ROWS as f64 / functions.cbrt()) as usize).min(train.rows());
    let rows = match size < train.rows() {
        true => {
            let streams = Streams::new(request.seed).child("model/plain", 0);
            Split::random(train.rows(), size as f64 / train.rows() as f64, streams).test
        }
        false => Split::all(train.rows()).train,
    };
    let few = &mut train.select(&rows).ok()?;
    // Under what it would be without anything said.
    let mut own =
        FitRequest { memory: request.memory, seed: request.seed, time_budget: left, ..FitRequest::default() };
    own.labels.likelihood = request.labels.likelihood;
    let plan = InferencePlan::of(few, &own).ok()?;
    let journal = &mut Journal::open(few, &own).ok()?;
    let found = infer(plan.inference, few, &own, &plan, (journal, observer)).ok()?;
    let marginal = marginal(&train.target, &train.targets(), train.data.offsets());
    let judged = judged(&*found.predictor, &found.likelihood, held, (&marginal, request.seed)).ok()?;
    let plain = PlainProcess {
        inference: found.inference,
        rows: few.rows(),
        scores: judged.check.scores,
        seconds: started.elapsed().as_secs_f64(),
    };
    let (mine, others) = (
        surprises(predictor, likelihood, held).ok()?,
        surprises(&*found.predictor, &found.likelihood, held).ok()?,
    );
    let n = mine.len() as f64;
    let differences: Vec<f64> = mine.iter().zip(&others).map(|(own, plain)| own - plain).collect();
    let mean = differences.iter().sum::<f64>() / n;
    let square = differences.iter().map(|d| (d - mean).powi(2)).sum::<f64>() / n;
    let error = (square / n).sqrt();
    let warning = (mean > error).then(|| {
        format!(
            "a plain process of {} rows ({}) predicts the rows held back better, by {mean:.3} +- {error:.3} nats a row: these features are not worth their while here, leave --method out",
            plain.rows,
            plain.inference.as_str()
        )
    });
    Some((plain, warning))
}
