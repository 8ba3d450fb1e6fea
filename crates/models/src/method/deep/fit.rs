//! Training in several ways, of which rows that are set aside choose one.

use super::basis::Basis;
use super::candidates::{DeepState, GOES_ON, Run, Way, nowhere};
use super::columns::Columns;
use super::targets::{Scatter, Targets, ended_at_bounds, settings};
use crate::method::training::{ScalableFit, Watched};
use crate::method::{LowRank, hyperparameters as hyperparameters_of_features};
use crate::options::{CorrectionName, DeepKind, GO_ON, Setting};
use crate::prepare::TableRows;
use crate::record::TrainingSummary;
use crate::rows::set_aside;
use crate::{DeepSummary, FitRequest, FitStage, Method, ModelError, Prepared, ScalableSummary, TriedSetting};
use posterior_gp::{Hyperprior, Observations, RowSource};
use posterior_linalg::random::Streams;
use posterior_linear::low_rank::{LowRankOptions, LowRankPosterior, LowRankRows, Training, fit_low_rank};
use posterior_notes::fixes::{BASIS, FREEZE_BASIS, SVDKL};
use posterior_optim::{Progress, Reason};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The share of a run's time that training takes where weights are fitted to all rows after it.
const TRAINING_SHARE: f64 = 0.8;

/// The rows that are learned from.
pub(crate) struct Task<'a> {
    pub(crate) request: &'a FitRequest,
    /// With learned features.
    pub(crate) method: &'a Method,
    /// The columns of the inputs, and what was done to them.
    pub(crate) columns: Columns<'a>,
    /// Rows to learn from, and rows to stop and to choose by.
    pub(crate) rows: (&'a dyn LowRankRows, &'a Observations),
    /// Rows that were drawn to choose by and went back to their duplicates.
    pub(crate) training_duplicates: usize,
    pub(crate) targets: Targets<'a>,
}

/// What training led to: a posterior, and what is kept of it in a header.
pub(crate) struct Trained<P, S> {
    pub(crate) posterior: P,
    pub(crate) summary: S,
    /// What was believed of hyperparameters.
    pub(crate) hyperpriors: Vec<Hyperprior>,
    /// The evidence where all rows were looked at in each step.
    pub(crate) evidence: Option<f64>,
    /// The objective of the way that was chosen, for each row.
    pub(crate) objective: f64,
    /// Steps of everything.
    pub(crate) steps: usize,
    /// Those of earlier runs.
    pub(crate) resumed_from: usize,
    pub(crate) reason: Reason,
    pub(crate) jitter: f64,
}

impl<P, S> Trained<P, S> {
    /// For the summary of a fit that began at `started`, hyperparameters being from there.
    pub(crate) fn training(&self, source: String, started: Instant) -> TrainingSummary {
        let Self { steps, resumed_from, reason: ended, .. } = *self;
        TrainingSummary { source, steps, resumed_from, ended, seconds: started.elapsed().as_secs_f64() }
    }
}

/// Rows to learn from, rows that are set aside of them, and how many of those drawn went back to their duplicates.
pub(crate) fn apart<D: TableRows>(all: &D, seed: u64) -> Result<(D, Observations, usize), ModelError> {
    let count = set_aside(RowSource::rows(all))?;
    let (rest, drawn, split) = all.parted(count, &mut Streams::new(seed).stream("model/set-aside"))?;
    Ok((rest, drawn, split.training_duplicates))
}

/// Trains features on prepared rows, in memory or in a file, within `seconds` where there is a limit.
pub(crate) fn fit<D: TableRows>(
    prepared: &Prepared<D>,
    (request, method): (&FitRequest, &Method),
    seconds: Option<f64>,
    watched: Watched<'_, '_, '_>,
) -> Result<ScalableFit, ModelError> {
    let started = Instant::now();
    let names = prepared.schema.feature_names();
    let (train, aside, training_duplicates) = apart(&prepared.data, request.seed)?;
    let columns = Columns { names: &names, standardisation: &prepared.standardisation };
    let task = Task {
        request,
        method,
        columns,
        rows: (&train, &aside),
        training_duplicates,
        targets: Targets::Numbers,
    };
    let trained = task.train(seconds, watched)?;
    let source = format!("{} rows that were set aside", trained.summary.validation_rows);
    let training = trained.training(source, started);
    let Trained { posterior, summary: deep, evidence, reason, jitter, .. } = trained;
    let at_bounds = match (posterior.likelihood().shared_noise_variance(), method.deep()) {
        (Some(noise), Some((options, ..))) => ended_at_bounds(noise, (request, options))?,
        _ => Vec::new(),
    };
    let summary =
        ScalableSummary { bound: evidence, at_bounds, ..ScalableSummary::of_features(deep, training) };
    let hyperparameters = hyperparameters_of_features(&posterior);
    let predictor = Arc::new(LowRank { posterior, level: None });
    let fit = ScalableFit::new(method.name(), predictor, hyperparameters, (reason, jitter));
    Ok(ScalableFit { summary: Some(summary), ..fit })
}

impl Task<'_> {
    /// Trains in several ways, within `seconds` where there is a limit, and takes the one that predicts the rows set aside best.
    ///
    /// # Errors
    /// What means nothing beside the rest, networks that do not fit, and where no way led anywhere.
    pub(crate) fn train(
        &self,
        seconds: Option<f64>,
        (keeping, observer): Watched<'_, '_, '_>,
    ) -> Result<Trained<LowRankPosterior, DeepSummary>, ModelError> {
        let Self { request, method, columns, rows: (train, aside), training_duplicates, targets } = self;
        let (options, kind, embedding) = method.requires(method.deep())?;
        self.check()?;
        let started = Instant::now();
        let basis = Basis::new((options, kind, embedding), *columns, request.seed)?;
        let aside_data = aside.low_rank();
        let rows = train.row_count();
        let begun = |small| basis.features(small, &request.prior.kernel, *train, request.seed);
        let scatter = targets.scatter();
        let size = (rows, basis.rank);
        let settings = settings((options, kind), scatter, size, request);
        let mut starts = [None, None];
        for setting in &settings {
            let place = &mut starts[usize::from(setting.small)];
            if place.is_none() {
                *place = Some(begun(setting.small)?);
            }
        }
        let start = |setting: &Setting| match &starts[usize::from(setting.small)] {
            Some(start) => Ok(start.clone_box()),
            None => begun(setting.small),
        };

        let mut state: DeepState = keeping.checkpoints.bound()?.unwrap_or_default();
        let steps_of = |state: &DeepState| -> usize { state.runs.iter().map(|way| way.tried.steps[0]).sum() };
        // A way that goes on counts its steps from its own beginning.
        let resumed_from =
            steps_of(&state) + state.running.as_ref().map_or(0, |s| s.step) - state.going_on(settings.len());
        let mut interrupted = false;
        let rounds = if settings.len() > GO_ON { 2 } else { 1 };
        while state.round < rounds && !interrupted {
            let last = state.round + 1 == rounds;
            let order = state.order(settings.len());
            for (place, &index) in order.iter().enumerate().skip(state.over) {
                let (setting, begun) = (&settings[index], Instant::now());
                let mut told = setting.options.clone();
                if !last {
                    told.steps = setting.first_steps();
                    told.settles = false;
                }
                let left = seconds.map(|all| (all - started.elapsed().as_secs_f64()).max(0.0));
                // The first round has half of the time.
                let runs = (order.len() - place) as f64 * if last { 1.0 } else { 2.0 };
                let share = left.map(|left| left / runs);
                // The rest is for weights that have no closed form.
                let trains = if scatter == Scatter::Gaussian { 1.0 } else { TRAINING_SHARE };
                told.time = share.map(|share| Duration::from_secs_f64(trains * share));
                let deadline = share.map(|share| begun + Duration::from_secs_f64(share));
                told.kept_bytes = kept_bytes(request.limits.memory);
                let likelihood = targets.likelihood(setting, (request, options))?;
                let running = state.running.take().or_else(|| state.runs.get(index)?.state.clone());
                if let (Some(running), Some(time)) = (&running, &mut told.time) {
                    // A run counts its own time from its beginning.
                    *time += Duration::from_secs_f64(running.seconds().clamp(0.0, 1e9));
                }
                let so_far = state.clone();
                let (mut features, mut likelihood) = (start(setting)?, likelihood);
                let before = setting.after.and_then(|way| state.runs.get(way)?.best.as_ref());
                if let Some(before) = before {
                    features.set_unconstrained(&before.features)?;
                    likelihood.set_values(&before.likelihood);
                }
                let outcome = fit_low_rank(
                    features,
                    likelihood,
                    *train,
                    Some(&aside_data),
                    &told,
                    running,
                    &mut |progress, training| {
                        let shown = Progress { part: index, parts: settings.len(), ..*progress };
                        let signal = observer(&shown, &FitStage::Features);
                        keeping.observe(signal, || {
                            let running = Some(training.state().clone());
                            posterior_store::to_value(&DeepState { running, ..so_far.clone() })
                        })
                    },
                );
                keeping.checkpoints.finish()?;
                let way = match outcome {
                    Ok(fit) => {
                        interrupted = fit.reason == Reason::Interrupted;
                        let before = state.runs.get(index);
                        // What goes on gets its weights at its end.
                        let ends = last || !GOES_ON.contains(&fit.reason);
                        let run = Run { setting, scatter, begun, ends, deadline };
                        Way::new(&run, fit, (*train, &aside_data), before)?
                    }
                    // What diverges is no reason to lose the others.
                    Err(error) if settings.len() > 1 => Way::failed(setting, &error, begun),
                    Err(error) => return Err(error.into()),
                };
                match state.runs.get_mut(index) {
                    Some(old) => *old = way,
                    None => state.runs.push(way),
                }
                state.over += 1;
                if interrupted {
                    break;
                }
            }
            if !interrupted {
                (state.round, state.over) = (state.round + 1, 0);
            }
        }
        let steps = steps_of(&state);
        let chosen =
            (0..state.runs.len()).min_by(|a, b| state.runs[*a].nll().total_cmp(&state.runs[*b].nll()));
        let chosen = chosen.filter(|index| state.runs[*index].best.is_some());
        let tried: Vec<TriedSetting> = state.runs.iter().map(|way| way.tried.clone()).collect();
        let Some((index, best)) = chosen.and_then(|index| Some((index, state.runs[index].best.clone()?)))
        else {
            return Err(nowhere("these features", tried.iter().map(|own| (&own.name, &own.ended))));
        };
        let likelihood = targets.likelihood(&settings[index], (request, options))?;
        let posterior = best.posterior(start(&settings[index])?, likelihood)?;
        let summary = DeepSummary {
            origin: basis.origin.clone(),
            architecture: basis.architecture(settings[index].small),
            inducing: kind.inducing,
            dense: false,
            smallest_correlation: None,
            rank: basis.rank,
            residual_variance: best.residual_variance,
            roots: best.roots.len(),
            chosen: settings[index].name.clone(),
            refitted: best.refitted,
            tried,
            trained_rows: rows,
            validation_rows: aside.rows(),
            training_duplicates: *training_duplicates,
            diagnostics: best.diagnostics,
        };
        let full = matches!(settings[index].options.training, Training::Evidence);
        Ok(Trained {
            posterior,
            summary,
            hyperpriors: Vec::new(),
            evidence: full.then_some(best.objective * rows as f64),
            objective: best.objective,
            steps,
            resumed_from,
            reason: if interrupted { Reason::Interrupted } else { best.reason },
            jitter: best.jitter,
        })
    }

    /// Refuses what means nothing beside the rest.
    pub(crate) fn check(&self) -> Result<(), ModelError> {
        let Self { request, method, targets, .. } = self;
        if request.start.hyperparameters().is_some() {
            return Err(ModelError::Request(format!(
                "{} learns its features: leave --hyperparameters out; a network that exists is {BASIS}, with {FREEZE_BASIS} it stays as it is",
                method.name()
            )));
        }
        let Some((options, kind, _)) = method.deep() else { return Ok(()) };
        if options.correction == Some(CorrectionName::Noise) && targets.scatter() != Scatter::Gaussian {
            return Err(ModelError::Request(
                "--set correction=noise is noise of rows, of which these targets have none: take training, prediction or full".into(),
            ));
        }
        if kind.dense && !matches!(targets, Targets::Numbers) {
            return Err(ModelError::Request(format!(
                "--set dense is the evidence under Gaussian noise: of labels, counts and events take {SVDKL}, or dkl without it"
            )));
        }
        if !options.constraints.all().is_empty() && !matches!(targets, Targets::Numbers) {
            return Err(ModelError::Request(
                "--set fix and --set bound hold the noise variance of numbers, which labels, counts and events have not: leave them out".into(),
            ));
        }
        options.check(kind)?;
        taken(request, method, kind)
    }
}

/// What a request says of functions that there are none of here.
fn taken(request: &FitRequest, method: &Method, kind: DeepKind) -> Result<(), ModelError> {
    let usual = FitRequest::default();
    let hyperpriors = match kind.dense {
        true => "rows that are set aside end its training, not priors",
        false => "its weights have the prior N(0, 1)",
    };
    let strangers = [
        (
            "--kernel",
            !kind.inducing && request.prior.kernel != usual.prior.kernel,
            "its kernel is that of its features",
        ),
        ("--set prior.mean", request.prior.mean != usual.prior.mean, "features have their own level"),
        ("--hyperprior", request.prior.hyperpriors != usual.prior.hyperpriors, hyperpriors),
        (
            "--set prior.lengthscale-prior",
            request.prior.lengthscale_prior != usual.prior.lengthscale_prior,
            "it has no priors to be told",
        ),
    ];
    match strangers.iter().find(|(_, given, _)| *given) {
        Some((flag, _, why)) => {
            Err(ModelError::Request(format!("{flag} says nothing to {}: {why}", method.name())))
        }
        None => Ok(()),
    }
}

pub(crate) fn kept_bytes(memory: u64) -> usize {
    usize::try_from(memory / 8).unwrap_or(usize::MAX).min(LowRankOptions::default().kept_bytes)
}
