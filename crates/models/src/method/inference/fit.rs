//! From rows to a model.

use super::check::{Judged, judged, surprises};
use super::gaussianised;
use super::journal::Journal;
use super::observed::Observed;
use super::outcome::Inferred;
use super::plan::InferencePlan;
use crate::calibration::{Calibration, CalibrationRequest, Learned, NumbersBy};
use crate::method::large::in_memory;
use crate::method::training::PLAIN_ROWS;
use crate::options::{CalibrateName, ClassWeights, InferenceName, LargeTableOptions, Limits};
use crate::output::{marginal, noise_square};
use crate::prepare::some_of;
use crate::record::NOT_COMPARED;
use crate::rows::worse_by;
use crate::{
    FitRecord, FitRequest, FitStage, GeneralisedSummary, Guarantee, LikelihoodOutput, Model, ModelError,
    Output, PlainProcess, Predictor, ProcessRecord, TableInputs, TableSource, Target,
};
use posterior_likelihoods::OutputLikelihood;
use posterior_linalg::random::Streams;
use posterior_optim::Observer;
use std::time::Instant;

impl Model {
    /// What a fit to rows under another likelihood than Gaussian noise would do and take, in words; refuses what does not go together or does not fit the memory.
    ///
    /// # Errors
    /// [`ModelError::Usage`] or [`ModelError::Gp`], with the way out.
    pub fn plan_observed(observed: &Observed, request: &FitRequest) -> Result<InferencePlan, ModelError> {
        Ok(InferencePlan::of(observed, request)?.timed(observed, request))
    }

    /// As [`Model::fit_observed`], as the request says alone, with the rows that the fit was judged on.
    pub(crate) fn fit_judged(
        observed: Observed,
        request: &FitRequest,
        observer: &mut Observer<'_, FitStage>,
    ) -> Result<(Self, Option<Judged>), ModelError> {
        in_memory(&request.method)?;
        let journal = &mut Journal::open(&observed, request)?;
        let plan = InferencePlan::of(&observed, request)?;
        let (mut train, held, equals) = split(&observed, request, &plan)?;
        let observed_all = &observed;
        let likelihood = train.likelihood.clone();
        let mut best = infer(plan.inference, &mut train, request, &plan, (&mut *journal, &mut *observer))?;
        train.likelihood = likelihood;
        let mut tried = Vec::new();
        let first = journal.spent();
        if let Some(other) = plan.compared.filter(|_| request.limits.time.is_none_or(|b| 2.0 * first <= b)) {
            let found = infer(other, &mut train, request, &plan, (&mut *journal, &mut *observer))?;
            tried.push(best.scored(first));
            tried.push(found.scored(journal.spent() - first));
            if found.nll() < best.nll() {
                best = found;
            }
        }
        let mut found = best.judged.take();
        let why = match best.inference == plan.inference {
            true => plan.why.clone(),
            false => format!(
                "because it predicted rows better that were left out than {}",
                plan.inference.as_str()
            ),
        };
        let observed = &train;
        let targets = observed.targets();
        let marginal = marginal(&observed.target, &targets, observed.data.offsets());
        if let Some(held) = &held {
            let mut own = judged(&*best.predictor, &best.likelihood, held, (&marginal, request.seed))?;
            [own.check.training_duplicates, own.check.duplicates] = equals;
            let features = best.features.as_mut().map(|own| &mut own.plain);
            let place = features.or(best.variation.as_mut().map(|own| &mut own.plain));
            if let Some(place) = place {
                let left = request.limits.time.map(|budget| budget - journal.spent());
                let mine = (&*best.predictor, &best.likelihood);
                match compared(mine, (observed, held), request, left, observer) {
                    Some((plain, warning)) => {
                        *place = Some(plain);
                        own.check.warnings.extend(warning);
                    }
                    None if left.is_some_and(|left| left <= 0.0) => {
                        own.check.warnings.push(NOT_COMPARED.into());
                    }
                    None => {}
                }
            }
            found = Some(own);
        }
        let Learned { calibration, classes: recalibration, tails: intervals, .. } =
            recalibrate((request, &best.likelihood), (observed, held.is_some()), found.as_mut())?;
        let check = found.as_ref().map(|own| own.check.clone());
        let Inferred { inference, predictor, told, features, variation, likelihood, .. } = best;
        let inputs = TableInputs {
            schema: observed.schema.clone(),
            standardisation: observed.standardisation.clone(),
            input_ranges: observed.input_ranges.clone(),
            densest: None,
        };
        let target = observed.target.clone();
        let output = Output::Likelihood(LikelihoodOutput { target, likelihood, marginal });
        let record = ProcessRecord {
            method: method_of(inference).into(),
            solver: Some(plan.solver().as_str().into()),
            rows: observed.rows(),
            kernel: request.prior.kernel.of_table(&observed.feature_names()).into_owned(),
            mean: request.prior.mean,
            hyperparameters: told.hyperparameters,
            noise_floor: None,
            cholesky: None,
            seed: request.seed,
            fit: FitRecord::Likelihood(Box::new(GeneralisedSummary {
                likelihood_choice: observed.why.clone(),
                choice: match features.is_some() || variation.is_some() {
                    true => format!("{}, {why}", plan.solver()),
                    false => format!("{} by {}, {why}", inference.as_str(), plan.solver()),
                },
                tried,
                hyperpriors: told.hyperpriors,
                hyperparameter_source: told.source,
                reason: told.ended.reason,
                steps: told.ended.steps,
                evaluations: told.ended.evaluations,
                largest_jitter: told.ended.largest_jitter,
                at_bounds: told.ended.at_bounds,
                seconds: journal.spent(),
                plan: plan.plan,
                data: observed.notes.clone(),
                odd: observed.odd.clone(),
                weights: weights(request, observed),
                check,
                recalibration,
                intervals,
                gaussian_labels: best.gaussian_labels,
                bound: best.bound,
                mode: best.mode,
                features,
                variation,
            })),
            streamed: None,
            continued: Vec::new(),
        };
        journal.clear();
        let training = observed_all.training.clone();
        let source = TableSource { inputs, output, record };
        Ok((Self::of_table(source, predictor, calibration, training), found))
    }
}

/// What `method` says of a way to infer.
fn method_of(inference: InferenceName) -> &'static str {
    match inference {
        InferenceName::Gaussianised | InferenceName::Auto => "gaussianised",
        InferenceName::Variational => "variational",
        // Networks' models are called `laplace`.
        InferenceName::Laplace => "laplace process",
    }
}

fn infer(
    inference: InferenceName,
    observed: &mut Observed,
    request: &FitRequest,
    plan: &InferencePlan,
    kept: (&mut Journal, &mut Observer<'_, FitStage>),
) -> Result<Inferred, ModelError> {
    match inference {
        InferenceName::Gaussianised | InferenceName::Auto => gaussianised::fit(observed, request, plan, kept),
        InferenceName::Variational | InferenceName::Laplace => {
            plan.method.settings().infer(observed, (request, &plan.method), kept)
        }
    }
}

/// By the rows that a fit was judged on, some of which were held back or all predicted from the others.
fn recalibrate(
    (request, likelihood): (&FitRequest, &OutputLikelihood),
    (observed, held_back): (&Observed, bool),
    judged: Option<&mut Judged>,
) -> Result<Learned, ModelError> {
    let Some(Judged { check, rows, .. }) = judged else { return Ok(Learned::default()) };
    let guarantee = Guarantee::unless([
        (request.start.hyperparameters().is_some(), Guarantee::Given),
        (!held_back, Guarantee::LeftOut),
        (check.training_duplicates > 0, Guarantee::TrainingDuplicates),
    ]);
    let weighted = observed.data.weights().is_some();
    let asked =
        CalibrationRequest { calibrate: request.validation.calibrate, on: check.on, guarantee, weighted };
    let by = NumbersBy::Tails {
        counts: matches!(observed.target, Target::Counts { .. }),
        noise: noise_square(&observed.target, likelihood),
    };
    let out = match rows {
        Some(rows) => Calibration::learn(asked, rows, by)?,
        None => Learned::default(),
    };
    let none = out.classes.is_none() && out.tails.is_none();
    if none && request.validation.calibrate == CalibrateName::Conformal {
        check.warnings.push(
            "nothing could be recalibrated (--calibrate conformal): too few rows to judge by were left, or the target is events, which are no rows"
                .into(),
        );
    }
    Ok(out)
}

/// Rows to learn from, and rows to judge by: none where rows that are left out have a closed form. Every class keeps its share in both, but for rows that went back to their duplicates, and duplicates that were left out (how many of each is the last).
fn split(
    observed: &Observed,
    request: &FitRequest,
    plan: &InferencePlan,
) -> Result<(Observed, Option<Observed>, [usize; 2]), ModelError> {
    if plan.method.settings().leaves_one_out() {
        return Ok((observed.clone(), None, [0; 2]));
    }
    let usual = LargeTableOptions::default();
    let n = observed.rows();
    let large = plan.method.large().unwrap_or(&usual);
    large.check_held_back(n)?;
    let count = large.held_back_of(n);
    if count == 0 || count >= n {
        return Ok((observed.clone(), None, [0; 2]));
    }
    let streams = Streams::new(request.seed).child("model/held-back", 0);
    let split = observed.apart(count, streams)?;
    let validation = observed.select(&split.validation)?;
    Ok((observed.select(&split.train)?, Some(validation), [split.training_duplicates, split.duplicates]))
}

/// What rows count, in words.
fn weights(request: &FitRequest, observed: &Observed) -> Option<String> {
    observed.data.weights()?;
    let asked = &request.output;
    let classes =
        (asked.class_weights != ClassWeights::Equal).then(|| format!("classes: {}", asked.class_weights));
    let rows = asked.row_weights.as_ref().map(|column| format!("rows: `{column}`"));
    let all: Vec<String> = classes.into_iter().chain(rows).collect();
    Some(format!("{}; predictions are those of a population so weighted", all.join(", ")))
}

/// A plain process of some rows on the rows held back, and what is to be said where it predicts them better. None where it cannot be had (no memory, no time, an interruption): it is a comparison and no part of the fit.
fn compared(
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
    let most = (PLAIN_ROWS as f64 / functions.cbrt()) as usize;
    let rows = some_of(train.rows(), most, Streams::new(request.seed).child("model/plain", 0));
    let few = &mut train.select(&rows).ok()?;
    // Under what it would be without anything said.
    let mut own = FitRequest {
        seed: request.seed,
        limits: Limits { memory: request.limits.memory, time: left },
        ..FitRequest::default()
    };
    own.output.likelihood = request.output.likelihood;
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
    let warning = worse_by(&mine, &others).map(|(mean, error)| {
        format!(
            "a plain process of {} rows ({}) predicts the rows held back better, by {mean:.3} +- {error:.3} nats a row: these features are not worth their while here, leave --method out",
            plain.rows,
            plain.inference.as_str()
        )
    });
    Some((plain, warning))
}
