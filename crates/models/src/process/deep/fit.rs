//! Training in several ways, of which rows that are set aside choose one.

use super::dense::{self, Asked};
use super::{Basis, DeepSummary, TriedSetting};
use crate::options::{DeepKind, FIRST_ROUND, KernelPrecision, Setting};
use crate::process::fit::{FitStage, Prepared};
use crate::process::scalable::{
    CheckpointWriter, Found, ScalableFit, ScalableSummary, Solver, Stage, drawn_apart,
};
use crate::process::{Hyperparameter, ProcessPosterior};
use crate::{FitRequest, Method, ModelError};
use faer::{Mat, MatRef};
use posterior_gp::Observations;
use posterior_likelihoods::Gaussian;
use posterior_linalg::random::Streams;
use posterior_linear::LinearError;
use posterior_linear::low_rank::{
    LearnedFeatures, LowRankData, LowRankFit, LowRankOptions, LowRankPosterior, LowRankState, ObservedRows,
    Rest, Training, WeightDistribution, fit_low_rank, refit,
};
use posterior_optim::{Observer, Parameters, Progress, Reason};
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};

/// Rows that are set aside: a tenth, but no more than say enough.
const MOST_SET_ASIDE: usize = 5000;

/// Everything that was found so far, for a checkpoint.
#[derive(Clone, Default, Serialize, Deserialize)]
struct DeepState {
    /// What became of each way.
    runs: Vec<Way>,
    /// The round, and how many runs of it are over.
    round: usize,
    over: usize,
    running: Option<LowRankState>,
}

/// One way to train, as far as it has come.
#[derive(Clone, Serialize, Deserialize)]
struct Way {
    tried: TriedSetting,
    best: Option<Best>,
    /// Where it can go on, if it can.
    state: Option<LowRankState>,
}

impl Way {
    fn nll(&self) -> f64 {
        self.best.as_ref().map_or(f64::INFINITY, |best| best.nll)
    }
}

/// What a way led to, as numbers.
#[derive(Clone, Serialize, Deserialize)]
struct Best {
    nll: f64,
    refitted: bool,
    features: Vec<f64>,
    noise: f64,
    mean: Vec<f64>,
    root: Vec<f64>,
    rest: Rest,
    objective: f64,
    reason: Reason,
    jitter: f64,
    diagnostics: posterior_linear::low_rank::FeatureDiagnostics,
}

fn data(observations: &Observations) -> LowRankData<'_> {
    let (targets, noise) = (observations.targets(), observations.noise_variances());
    let observed = ObservedRows { targets, noise, weights: None, offsets: None };
    LowRankData { inputs: observations.inputs(), observed }
}

/// Rows to learn from, and rows to stop and to choose by.
fn set_aside(all: &Observations, seed: u64) -> Result<(Observations, Observations), ModelError> {
    let n = all.rows();
    if n < 10 {
        return Err(ModelError::Request(format!(
            "learned features need rows to learn from and others to stop by; {n} are too few: take --method exact"
        )));
    }
    let (rest, aside) =
        drawn_apart(n, (n / 10).clamp(1, MOST_SET_ASIDE), Streams::new(seed).stream("model/set-aside"));
    Ok((all.select(&rest)?, all.select(&aside)?))
}

/// Trains features on prepared rows, within `seconds` where there is a limit.
pub(in crate::process) fn fit(
    prepared: &Prepared,
    (request, method): (&FitRequest, &Method),
    seconds: Option<f64>,
    checkpoints: &mut CheckpointWriter,
    observer: &mut Observer<'_, FitStage>,
) -> Result<ScalableFit, ModelError> {
    let Some((options, kind, embedding)) = method.deep() else {
        return Err(ModelError::NotIterative { method: method.name() });
    };
    if request.hyperparameters.is_some() {
        return Err(ModelError::Request(format!(
            "{} learns its features: leave --hyperparameters out; a network that exists is --basis, with --freeze-basis it stays as it is",
            method.name()
        )));
    }
    options.check(kind)?;
    taken(request, method)?;
    let started = Instant::now();
    let names = prepared.schema.feature_names();
    let basis = Basis::new((options, kind, embedding), &names, request.seed)?;
    let (train, aside) = set_aside(&prepared.data, request.seed)?;
    if kind.dense {
        let asked = Asked { request, method, options, basis: &basis, seconds };
        return dense::fit(&asked, (&train, &aside), checkpoints, observer);
    }
    let (train_data, aside_data) = (data(&train), data(&aside));
    let start = basis.features(&request.kernel, train.inputs(), request.seed)?;
    let settings = options.settings(kind, train.rows(), request.seed);

    let mut state: DeepState = match checkpoints.load()? {
        Some(mut saved) => saved.bound()?.unwrap_or_default(),
        None => DeepState::default(),
    };
    let steps_of = |state: &DeepState| -> usize { state.runs.iter().map(|way| way.tried.steps[0]).sum() };
    let resumed_from = steps_of(&state) + state.running.as_ref().map_or(0, |s| s.step);
    let mut interrupted = false;
    let rounds = if settings.len() > FIRST_ROUND.1 { 2 } else { 1 };
    while state.round < rounds && !interrupted {
        let last = state.round + 1 == rounds;
        let order = state.order(settings.len());
        for (place, &index) in order.iter().enumerate().skip(state.over) {
            let (setting, begun) = (&settings[index], Instant::now());
            let mut told = setting.options.clone();
            if !last {
                told.steps = told.steps.min(FIRST_ROUND.0 * setting.per_pass);
            }
            let left = seconds.map(|all| (all - started.elapsed().as_secs_f64()).max(0.0));
            // The first round has half of the time.
            let runs = (order.len() - place) as f64 * if last { 1.0 } else { 2.0 };
            told.time = left.map(|left| Duration::from_secs_f64(left / runs));
            told.kept_bytes = kept_bytes(request.memory);
            let likelihood = Box::new(Gaussian::new(noise(setting, request), request.noise_floor.max(FLOOR)));
            let running = state.running.take().or_else(|| state.runs.get(index)?.state.clone());
            if let (Some(running), Some(time)) = (&running, &mut told.time) {
                // A run counts its own time from its beginning.
                *time += Duration::from_secs_f64(running.seconds().clamp(0.0, 1e9));
            }
            let so_far = state.clone();
            let outcome = fit_low_rank(
                start.clone_box(),
                likelihood,
                &train_data,
                Some(&aside_data),
                &told,
                running,
                &mut |progress, training| {
                    let shown = Progress { part: index, parts: settings.len(), ..*progress };
                    let signal = observer(&shown, &FitStage::Features);
                    checkpoints.observe::<f64>(signal, &Found::default(), || {
                        let running = Some(training.state().clone());
                        Ok(Stage::Bound(serde_json::to_value(DeepState { running, ..so_far.clone() })?))
                    })
                },
            );
            checkpoints.finish()?;
            let way = match outcome {
                Ok(fit) => {
                    interrupted = fit.reason == Reason::Interrupted;
                    Way::new(setting, fit, (&train_data, &aside_data), begun, state.runs.get(index))?
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
    let chosen = (0..state.runs.len()).min_by(|a, b| state.runs[*a].nll().total_cmp(&state.runs[*b].nll()));
    let chosen = chosen.filter(|index| state.runs[*index].best.is_some());
    let tried: Vec<TriedSetting> = state.runs.iter().map(|way| way.tried.clone()).collect();
    let Some((index, best)) = chosen.and_then(|index| Some((index, state.runs[index].best.clone()?))) else {
        let all: Vec<String> = tried.iter().map(|t| format!("{}: {}", t.name, t.ended)).collect();
        return Err(ModelError::Request(format!(
            "no way to train these features led anywhere: {}",
            all.join("; ")
        )));
    };
    let posterior = best.posterior(&*start, request.noise_floor.max(FLOOR))?;
    let chosen = settings[index].name.clone();
    let deep = DeepSummary {
        origin: basis.origin.clone(),
        architecture: basis.architecture()?,
        inducing: kind.inducing,
        dense: false,
        smallest_correlation: None,
        rank: basis.rank,
        rest: best.rest,
        chosen,
        refitted: best.refitted,
        tried,
        validation_rows: aside.rows(),
        diagnostics: best.diagnostics,
    };
    let reason = if interrupted { Reason::Interrupted } else { best.reason };
    let summary = ScalableSummary {
        solver: Solver::Features,
        settings: None,
        precision: KernelPrecision::Single,
        hyperparameter_source: format!("{} rows that were set aside", aside.rows()),
        blocks: Vec::new(),
        noise_raised_from: None,
        neighbourhood_evidences: Vec::new(),
        search: None,
        inducing: if kind.inducing { basis.rank } else { 0 },
        inducing_radius: None,
        inducing_moved: kind.inducing,
        steps,
        ended: reason.to_string(),
        residual: None,
        step_size: None,
        restarts: 0,
        bound: matches!(settings[index].options.training, Training::Evidence)
            .then_some(best.objective * train.rows() as f64),
        log_evidence: None,
        seconds: [0.0, started.elapsed().as_secs_f64()],
        resumed_from,
        deep: Some(deep),
    };
    Ok(ScalableFit {
        method: method.name(),
        check: None,
        posterior: ProcessPosterior::LowRank(posterior),
        hyperparameters: vec![Hyperparameter { name: "noise_variance".into(), values: vec![best.noise] }],
        hyperpriors: Vec::new(),
        summary: Some(summary),
        reason,
        largest_jitter: best.jitter,
    })
}

/// What a request says of functions that there are none of here.
fn taken(request: &FitRequest, method: &Method) -> Result<(), ModelError> {
    let usual = FitRequest::default();
    let inducing = matches!(method.deep(), Some((_, DeepKind { inducing: true, .. }, _)));
    let dense = matches!(method.deep(), Some((_, DeepKind { dense: true, .. }, _)));
    let hyperpriors = match dense {
        true => "rows that are set aside end its training, not beliefs",
        false => "its weights have the prior N(0, 1)",
    };
    let strangers = [
        ("--kernel", !inducing && request.kernel != usual.kernel, "its kernel is that of its features"),
        ("--mean", request.mean != usual.mean, "features have their own level"),
        ("--hyperprior", request.hyperpriors != usual.hyperpriors, hyperpriors),
        (
            "--lengthscale-prior",
            request.lengthscale_prior != usual.lengthscale_prior,
            "it has no beliefs to be told",
        ),
    ];
    match strangers.iter().find(|(_, given, _)| *given) {
        Some((flag, _, why)) => {
            Err(ModelError::Request(format!("{flag} says nothing to {}: {why}", method.name())))
        }
        None => Ok(()),
    }
}

/// The least noise variance: without one the likelihood of a network is unbounded.
pub(super) const FLOOR: f64 = 1e-6;

pub(super) fn noise(setting: &Setting, request: &FitRequest) -> f64 {
    // What a user says comes before what is usual.
    let given = FitRequest::default().initial_noise;
    if request.initial_noise == given { setting.noise } else { request.initial_noise.max(2.0 * FLOOR) }
}

pub(super) fn kept_bytes(memory: u64) -> usize {
    usize::try_from(memory / 8).unwrap_or(usize::MAX).min(LowRankOptions::default().kept_bytes)
}

fn nll(posterior: &LowRankPosterior, data: &LowRankData<'_>) -> Result<f64, LinearError> {
    let sum = posterior.log_predictive_density(data.inputs, &data.observed)?;
    Ok(-sum / data.inputs.nrows() as f64)
}

impl DeepState {
    /// Which ways a round runs, by their numbers: all in the first, then the best of those that can go on.
    fn order(&self, count: usize) -> Vec<usize> {
        if self.round == 0 {
            return (0..count).collect();
        }
        let mut all: Vec<usize> = (0..self.runs.len()).collect();
        // What a run of this round changes must not change which runs it has.
        let first = |index: &usize| self.runs[*index].tried.first_nll;
        all.sort_by(|a, b| first(a).total_cmp(&first(b)));
        all.truncate(FIRST_ROUND.1);
        all.retain(|index| self.runs[*index].tried.first_ended == Reason::Steps.to_string());
        all
    }
}

impl Way {
    /// What a run led to: as it is, or with the exact posterior of its weights where that is better on the rows set aside.
    fn new(
        setting: &Setting,
        fit: LowRankFit,
        (train, aside): (&LowRankData<'_>, &LowRankData<'_>),
        begun: Instant,
        before: Option<&Self>,
    ) -> Result<Self, ModelError> {
        let own = nll(&fit.posterior, aside)?;
        let by_batches = setting.options.training.on_batches().is_some();
        let again = |as_noise: bool| {
            let options = LowRankOptions { rest_as_noise: as_noise, ..setting.options.clone() };
            let (features, likelihood) =
                (fit.posterior.features().clone_box(), fit.posterior.likelihood().clone_box());
            refit(features, likelihood, train, &options)
        };
        // After training on the evidence with a correction, its rests are the noise of the corrected process.
        let corrected = setting.options.corrected && matches!(fit.posterior.rest(), Rest::Uniform { .. });
        let other = (by_batches || corrected).then(|| again(corrected)).transpose().ok().flatten();
        let refitted_nll = other.as_ref().map(|p| nll(p, aside)).transpose()?.filter(|v| v.is_finite());
        let noise = fit.posterior.likelihood().shared_noise_variance().unwrap_or(f64::NAN);
        let (chosen, refitted) = match (other, refitted_nll) {
            (Some(other), Some(score)) if score < own || !own.is_finite() => (other, true),
            _ => (fit.posterior, false),
        };
        let score = if refitted { refitted_nll.unwrap_or(own) } else { own };
        let shown = if score.is_finite() { score } else { f64::MAX };
        let tried = TriedSetting {
            name: setting.name.clone(),
            nll: if own.is_finite() { own } else { f64::MAX },
            refitted_nll,
            first_nll: before.map_or(shown, |way| way.tried.first_nll),
            first_ended: before.map_or_else(|| fit.reason.to_string(), |way| way.tried.first_ended.clone()),
            noise,
            steps: [fit.steps, fit.best.map_or(fit.steps, |look| look.step)],
            looks: fit.looks.into_iter().filter(|look| look.nll.is_finite()).collect(),
            ended: fit.reason.to_string(),
            seconds: begun.elapsed().as_secs_f64() + before.map_or(0.0, |way| way.tried.seconds),
        };
        let best = score.is_finite().then(|| {
            let q = chosen.distribution();
            let mut root = Vec::new();
            posterior_linalg::triangular::pack_lower(q.roots()[0].as_ref(), &mut root);
            Best {
                nll: score,
                refitted,
                features: chosen.features().unconstrained(),
                noise,
                mean: q.mean_of(0).to_vec(),
                root,
                rest: chosen.rest(),
                objective: fit.objective,
                reason: fit.reason,
                jitter: fit.largest_jitter,
                diagnostics: fit.diagnostics,
            }
        });
        let state = (fit.reason == Reason::Steps).then_some(fit.state);
        Ok(Self { tried, best, state })
    }

    fn failed(setting: &Setting, error: &LinearError, begun: Instant) -> Self {
        let tried = TriedSetting {
            name: setting.name.clone(),
            nll: f64::MAX,
            refitted_nll: None,
            first_nll: f64::MAX,
            first_ended: error.to_string(),
            noise: 0.0,
            steps: [0, 0],
            looks: Vec::new(),
            ended: error.to_string(),
            seconds: begun.elapsed().as_secs_f64(),
        };
        Self { tried, best: None, state: None }
    }
}

impl Best {
    fn posterior(&self, start: &dyn LearnedFeatures, floor: f64) -> Result<LowRankPosterior, ModelError> {
        let mut features = start.clone_box();
        features.set_unconstrained(&self.features)?;
        let m = features.rank();
        let mean: Mat<f64> = MatRef::from_column_major_slice(&self.mean, m, 1).to_owned();
        let root = posterior_linalg::triangular::unpack_lower(&self.root, m);
        let q = WeightDistribution::new(mean, vec![root])?;
        let mut likelihood = Gaussian::new(self.noise.max(2.0 * floor), floor);
        likelihood.set_values(&[self.noise]);
        Ok(LowRankPosterior::new(features, q, Box::new(likelihood), self.rest)?)
    }
}
