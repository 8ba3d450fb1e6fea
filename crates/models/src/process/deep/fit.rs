//! Training in several ways, of which rows that are set aside choose one.

use super::dense::{self, Asked};
use super::targets::{Scatter, Targets, Watched, settings};
use super::weights::refitted;
use super::{Basis, DeepSummary, TriedSetting};
use crate::options::{CorrectionName, DeepKind, GO_ON, Setting};
use crate::process::apart::Apart;
use crate::process::fit::{FitStage, Prepared};
use crate::process::scalable::{CheckpointWriter, ScalableFit, ScalableSummary};
use crate::process::{Hyperparameter, ProcessPosterior};
use crate::{FitRequest, Method, ModelError};
use faer::{Mat, MatRef};
use posterior_gp::Observations;
use posterior_likelihoods::Likelihood;
use posterior_linalg::random::Streams;
use posterior_linalg::triangular::{pack_lower, unpack_lower};
use posterior_linear::LinearError;
use posterior_linear::low_rank::{
    LearnedFeatures, LowRankData, LowRankFit, LowRankOptions, LowRankPosterior, LowRankState, ObservedRows,
    Rest, Training, WeightDistribution, fit_low_rank, refit,
};
use posterior_optim::Parameters as _;
use posterior_optim::{Observer, Progress, Reason};
use posterior_store::StoreError;
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};

/// What the first round ends by where a second could go on.
const GOES_ON: [Reason; 2] = [Reason::Steps, Reason::Time];

/// The share of a run's time that training takes where weights are fitted to all rows after it.
const TRAINING_SHARE: f64 = 0.8;

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
    /// What was learned of the likelihood.
    likelihood: Vec<f64>,
    /// By columns, one for each function.
    mean: Vec<f64>,
    /// Lower triangles, one for each function or one for all.
    roots: Vec<Vec<f64>>,
    rest: Rest,
    objective: f64,
    reason: Reason,
    jitter: f64,
    diagnostics: posterior_linear::low_rank::FeatureDiagnostics,
}

/// The rows that are learned from.
pub(in crate::process) struct Task<'a> {
    pub(in crate::process) request: &'a FitRequest,
    /// With learned features.
    pub(in crate::process) method: &'a Method,
    /// The columns of the inputs.
    pub(in crate::process) names: &'a [String],
    /// Rows to learn from, and rows to stop and to choose by.
    pub(in crate::process) rows: (&'a Observations, &'a Observations),
    /// Rows that were drawn to choose by and went back to their twins.
    pub(in crate::process) twins: usize,
    pub(in crate::process) targets: Targets<'a>,
}

/// What training led to.
pub(in crate::process) struct Trained {
    pub(in crate::process) posterior: LowRankPosterior,
    pub(in crate::process) summary: DeepSummary,
    /// The evidence where all rows were looked at in each step.
    pub(in crate::process) evidence: Option<f64>,
    /// The objective of the way that was chosen, for each row.
    pub(in crate::process) objective: f64,
    /// Steps of all ways.
    pub(in crate::process) steps: usize,
    /// Those of earlier runs.
    pub(in crate::process) resumed_from: usize,
    pub(in crate::process) reason: Reason,
    pub(in crate::process) jitter: f64,
}

fn data(observations: &Observations) -> LowRankData<'_> {
    let observed = ObservedRows {
        targets: observations.targets(),
        noise: observations.noise_variances(),
        weights: observations.weights(),
        offsets: observations.offsets(),
    };
    LowRankData { inputs: observations.inputs(), observed }
}

/// Rows that are set aside of so many, to stop and to choose by.
pub(in crate::process) fn set_aside(rows: usize) -> Result<usize, ModelError> {
    if rows < 10 {
        return Err(ModelError::Request(format!(
            "learned features need rows to learn from and others to stop by; {rows} are too few: take --method exact"
        )));
    }
    Ok((rows / 10).clamp(1, MOST_SET_ASIDE))
}

/// Trains features on prepared rows, within `seconds` where there is a limit.
pub(in crate::process) fn fit(
    prepared: &Prepared,
    (request, method): (&FitRequest, &Method),
    seconds: Option<f64>,
    checkpoints: &mut CheckpointWriter,
    observer: &mut Observer<'_, FitStage>,
) -> Result<ScalableFit, ModelError> {
    let started = Instant::now();
    let (names, all) = (prepared.schema.feature_names(), &prepared.data);
    let Apart { rest, drawn, twins } =
        Apart::drawn(all, set_aside(all.rows())?, Streams::new(request.seed).stream("model/set-aside"));
    let (train, aside) = (all.select(&rest)?, all.select(&drawn)?);
    let rows = (&train, &aside);
    let task = Task { request, method, names: &names, rows, twins, targets: Targets::Numbers };
    if let Some((options, kind, embedding)) = method.deep()
        && kind.dense
    {
        task.check()?;
        let basis = &Basis::new((options, kind, embedding), &names, request.seed)?;
        let asked = Asked { request, method, options, basis, twins, seconds };
        return dense::fit(&asked, rows, checkpoints, observer);
    }
    let trained = task.train(seconds, (checkpoints, observer))?;
    let Trained { posterior, summary: deep, evidence, steps, resumed_from, reason, jitter, .. } = trained;
    let noise = posterior.likelihood().values();
    let source = format!("{} rows that were set aside", deep.validation_rows);
    let seconds = started.elapsed().as_secs_f64();
    let summary = ScalableSummary {
        bound: evidence,
        ..ScalableSummary::of_features(deep, source, (steps, resumed_from), reason, seconds)
    };
    Ok(ScalableFit {
        method: method.name(),
        check: None,
        posterior: ProcessPosterior::LowRank(posterior),
        hyperparameters: vec![Hyperparameter { name: "noise_variance".into(), values: noise }],
        hyperpriors: Vec::new(),
        summary: Some(summary),
        reason,
        largest_jitter: jitter,
    })
}

impl Task<'_> {
    /// Trains in several ways, within `seconds` where there is a limit, and takes the one that predicts the rows set aside best.
    ///
    /// # Errors
    /// What means nothing beside the rest, networks that do not fit, and where no way led anywhere.
    pub(in crate::process) fn train(
        &self,
        seconds: Option<f64>,
        (keeping, observer): Watched<'_, '_>,
    ) -> Result<Trained, ModelError> {
        let Self { request, method, names, rows: (train, aside), twins, targets } = self;
        let Some((options, kind, embedding)) = method.deep() else {
            return Err(ModelError::NotIterative { method: method.name() });
        };
        self.check()?;
        let started = Instant::now();
        let basis = Basis::new((options, kind, embedding), names, request.seed)?;
        let (train_data, aside_data) = (data(train), data(aside));
        let start = basis.features(&request.kernel, train.inputs(), request.seed)?;
        let scatter = targets.scatter();
        let size = (train.rows(), basis.rank);
        let settings = settings((options, kind), scatter, size, request);

        let mut state: DeepState = match keeping.state()? {
            Some(saved) => serde_json::from_value(saved).map_err(StoreError::from)?,
            None => DeepState::default(),
        };
        let steps_of = |state: &DeepState| -> usize { state.runs.iter().map(|way| way.tried.steps[0]).sum() };
        let resumed_from = steps_of(&state) + state.running.as_ref().map_or(0, |s| s.step);
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
                }
                let left = seconds.map(|all| (all - started.elapsed().as_secs_f64()).max(0.0));
                // The first round has half of the time.
                let runs = (order.len() - place) as f64 * if last { 1.0 } else { 2.0 };
                let share = left.map(|left| left / runs);
                // The rest is for weights that have no closed form.
                let trains = if scatter == Scatter::Gaussian { 1.0 } else { TRAINING_SHARE };
                told.time = share.map(|share| Duration::from_secs_f64(trains * share));
                let deadline = share.map(|share| begun + Duration::from_secs_f64(share));
                told.kept_bytes = kept_bytes(request.memory);
                let likelihood = targets.likelihood(setting, request);
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
                        keeping.observe(signal, &mut || {
                            let running = Some(training.state().clone());
                            serde_json::to_value(DeepState { running, ..so_far.clone() })
                        })
                    },
                );
                keeping.failure()?;
                let way = match outcome {
                    Ok(fit) => {
                        interrupted = fit.reason == Reason::Interrupted;
                        let before = state.runs.get(index);
                        // What goes on gets its weights at its end.
                        let ends = last || !GOES_ON.contains(&fit.reason);
                        let run = Run { setting, scatter, begun, ends, deadline };
                        Way::new(&run, fit, (&train_data, &aside_data), before)?
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
            let all: Vec<String> = tried.iter().map(|t| format!("{}: {}", t.name, t.ended)).collect();
            return Err(ModelError::Request(format!(
                "no way to train these features led anywhere: {}",
                all.join("; ")
            )));
        };
        let posterior = best.posterior(&*start, targets.likelihood(&settings[index], request))?;
        let summary = DeepSummary {
            origin: basis.origin.clone(),
            architecture: basis.architecture()?,
            inducing: kind.inducing,
            dense: false,
            smallest_correlation: None,
            rank: basis.rank,
            rest: best.rest,
            roots: best.roots.len(),
            chosen: settings[index].name.clone(),
            refitted: best.refitted,
            tried,
            validation_rows: aside.rows(),
            twins: *twins,
            diagnostics: best.diagnostics,
        };
        let full = matches!(settings[index].options.training, Training::Evidence);
        Ok(Trained {
            posterior,
            summary,
            evidence: full.then_some(best.objective * train.rows() as f64),
            objective: best.objective,
            steps,
            resumed_from,
            reason: if interrupted { Reason::Interrupted } else { best.reason },
            jitter: best.jitter,
        })
    }

    /// Refuses what means nothing beside the rest.
    fn check(&self) -> Result<(), ModelError> {
        let Self { request, method, targets, .. } = self;
        if request.hyperparameters.is_some() {
            return Err(ModelError::Request(format!(
                "{} learns its features: leave --hyperparameters out; a network that exists is --basis, with --freeze-basis it stays as it is",
                method.name()
            )));
        }
        let Some((options, kind, _)) = method.deep() else { return Ok(()) };
        if options.correction == Some(CorrectionName::Noise) && targets.scatter() != Scatter::Gaussian {
            return Err(ModelError::Request(
                "--correction noise is noise of rows, of which these targets have none: take training, prediction or full".into(),
            ));
        }
        if kind.dense && !matches!(targets, Targets::Numbers) {
            return Err(ModelError::Request(
                "--dense is the evidence under Gaussian noise: of labels, counts and events take --method svdkl, or dkl without it".into(),
            ));
        }
        options.check(kind)?;
        taken(request, method)
    }
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

pub(super) fn kept_bytes(memory: u64) -> usize {
    usize::try_from(memory / 8).unwrap_or(usize::MAX).min(LowRankOptions::default().kept_bytes)
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
        all.truncate(GO_ON);
        all.retain(|index| {
            GOES_ON.iter().any(|reason| self.runs[*index].tried.first_ended == reason.to_string())
        });
        all
    }
}

/// One run of a way.
struct Run<'a> {
    setting: &'a Setting,
    scatter: Scatter,
    begun: Instant,
    /// Whether the way does not go on.
    ends: bool,
    /// When weights that have no closed form are to be found.
    deadline: Option<Instant>,
}

impl Way {
    /// What a run led to: as it is, or with the exact posterior of its weights (the best Gaussian where that has no closed form), where it is better on the rows set aside.
    fn new(
        run: &Run<'_>,
        fit: LowRankFit,
        (train, aside): (&LowRankData<'_>, &LowRankData<'_>),
        before: Option<&Self>,
    ) -> Result<Self, ModelError> {
        let Run { setting, scatter, begun, ends, deadline } = *run;
        let own = fit.posterior.surprise(aside)?;
        let by_batches = setting.options.training.on_batches().is_some();
        let exactly = |as_noise: bool| {
            let options = LowRankOptions { rest_as_noise: as_noise, ..setting.options.clone() };
            let (features, likelihood) =
                (fit.posterior.features().clone_box(), fit.posterior.likelihood().clone_box());
            refit(features, likelihood, train, &options)
        };
        // After training on the evidence with a correction, its rests are the noise of the corrected process.
        let corrected = setting.options.corrected && matches!(fit.posterior.rest(), Rest::Uniform { .. });
        let other = match scatter {
            Scatter::Gaussian => (by_batches || corrected).then(|| exactly(corrected)),
            Scatter::Labels { .. } | Scatter::Events => {
                (by_batches && ends).then(|| refitted(&fit.posterior, train, &setting.options, deadline))
            }
        };
        let other = other.transpose().ok().flatten();
        let refitted_nll = other.as_ref().map(|p| p.surprise(aside)).transpose()?.filter(|v| v.is_finite());
        let noise = fit.posterior.likelihood().shared_noise_variance();
        let (chosen, again) = match (other, refitted_nll) {
            // Of events rows judge the mean alone: how uncertain it is the bound says, which these weights have made largest.
            (Some(other), Some(score)) if score < own || !own.is_finite() || scatter == Scatter::Events => {
                (other, true)
            }
            _ => (fit.posterior, false),
        };
        let score = if again { refitted_nll.unwrap_or(own) } else { own };
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
            let packed = |root: &Mat<f64>| {
                let mut out = Vec::new();
                pack_lower(root.as_ref(), &mut out);
                out
            };
            Best {
                nll: score,
                refitted: again,
                features: chosen.features().unconstrained(),
                likelihood: chosen.likelihood().values(),
                mean: (0..q.latents()).flat_map(|c| q.mean_of(c).to_vec()).collect(),
                roots: q.roots().iter().map(packed).collect(),
                rest: chosen.rest(),
                objective: fit.objective,
                reason: fit.reason,
                jitter: fit.largest_jitter,
                diagnostics: fit.diagnostics,
            }
        });
        let state = GOES_ON.contains(&fit.reason).then_some(fit.state);
        Ok(Self { tried, best, state })
    }

    fn failed(setting: &Setting, error: &LinearError, begun: Instant) -> Self {
        let tried = TriedSetting {
            name: setting.name.clone(),
            nll: f64::MAX,
            refitted_nll: None,
            first_nll: f64::MAX,
            first_ended: error.to_string(),
            noise: None,
            steps: [0, 0],
            looks: Vec::new(),
            ended: error.to_string(),
            seconds: begun.elapsed().as_secs_f64(),
        };
        Self { tried, best: None, state: None }
    }
}

impl Best {
    fn posterior(
        &self,
        start: &dyn LearnedFeatures,
        mut likelihood: Box<dyn Likelihood>,
    ) -> Result<LowRankPosterior, ModelError> {
        let mut features = start.clone_box();
        features.set_unconstrained(&self.features)?;
        let m = features.rank();
        let mean = MatRef::from_column_major_slice(&self.mean, m, self.mean.len() / m).to_owned();
        let roots = self.roots.iter().map(|root| unpack_lower(root, m)).collect();
        let q = WeightDistribution::new(mean, roots)?;
        likelihood.set_values(&self.likelihood);
        Ok(LowRankPosterior::new(features, q, likelihood, self.rest)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_that_can_go_on_do() {
        let way = |first_nll: f64, reason: Reason| {
            let tried = TriedSetting {
                name: String::new(),
                nll: first_nll,
                refitted_nll: None,
                first_nll,
                first_ended: reason.to_string(),
                noise: None,
                steps: [1, 1],
                looks: Vec::new(),
                ended: reason.to_string(),
                seconds: 1.0,
            };
            Way { tried, best: None, state: None }
        };
        let order = |runs: Vec<Way>| DeepState { runs, round: 1, ..DeepState::default() }.order(4);
        let (steps, time, patience) = (Reason::Steps, Reason::Time, Reason::Patience);
        // Runs that were short of time are no worse than those that had all their passes.
        assert_eq!(order(vec![way(0.3, time), way(0.1, time), way(0.2, steps), way(0.4, steps)]), [1, 2]);
        // What patience ended is not replaced by what is worse.
        assert_eq!(order(vec![way(0.3, steps), way(0.1, patience), way(0.2, time)]), [2]);
        assert_eq!(DeepState::default().order(4), [0, 1, 2, 3]);
    }
}
