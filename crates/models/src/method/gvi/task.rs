//! Training in several ways, of which rows that are set aside choose one, whose variances they then temper.

use super::mean::{self, Mean};
use super::prior::{FoundPrior, PriorTask};
use crate::method::deep::{Columns, Trained, nowhere};
use crate::method::training::Watched;
use crate::options::{GviCandidate, GviOptions, TemperingName};
use crate::{FitRequest, FitStage, GviSummary, ModelError, TriedCandidate};
use posterior_gp::Observations;
use posterior_gp::generalised::{
    GeneralisedData, GeneralisedFit, GeneralisedGp, GeneralisedOptions, GeneralisedState, Irregularities,
    ReferenceProcess, Tempered, TemperingMethod, fit_generalised,
};
use posterior_likelihoods::Likelihood;
use posterior_linear::training::Patience;
use posterior_optim::{Adaptive, Optimiser, Parameters, Progress, Reason, UpdateRule};
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};

/// The share of a run's time that the prior may take.
const PRIOR_SHARE: f64 = 0.25;

/// How often the step size falls before a run ends.
const DROPS: usize = 2;

/// Steps of published tempering, and their size.
const PUBLISHED_TEMPERING: (usize, f64) = (5000, 1e-3);

/// The rows that are learned from.
pub(crate) struct Task<'a> {
    pub(crate) request: &'a FitRequest,
    pub(crate) options: &'a GviOptions,
    /// The columns of the inputs, and what was done to them.
    pub(crate) columns: Columns<'a>,
    /// Rows to learn from, and rows to stop, to choose and to temper by.
    pub(crate) rows: (&'a Observations, &'a Observations),
    /// Rows that were drawn to choose by and went back to their duplicates.
    pub(crate) training_duplicates: usize,
    /// What scatters targets around functions, to begin with.
    pub(crate) likelihood: &'a dyn Likelihood,
    /// The rows to learn from with a number for each function, which the prior is learned from.
    pub(crate) numbers: &'a Observations,
}

/// Everything that was found so far, for a checkpoint.
#[derive(Clone, Default, Serialize, Deserialize)]
struct GviState {
    prior: Option<FoundPrior>,
    /// What became of each way.
    runs: Vec<Run>,
    running: Option<GeneralisedState>,
}

/// What a way led to.
#[derive(Clone, Serialize, Deserialize)]
struct Run {
    tried: TriedCandidate,
    /// Parameters of the best look, as numbers without constraints; None where it led nowhere.
    best: Option<Vec<f64>>,
    objective: f64,
    reason: Option<Reason>,
    jitter: f64,
}

impl Run {
    /// One of a way that ended so; nothing else is said of it.
    fn ended(way: &GviCandidate, ended: String, begun: Instant) -> Self {
        let tried = TriedCandidate {
            name: way.name.clone(),
            nll: f64::MAX,
            tempered_nll: None,
            steps: [0; 2],
            validation_scores: Vec::new(),
            history: Vec::new(),
            irregularities: Irregularities::default(),
            ended,
            seconds: begun.elapsed().as_secs_f64(),
        };
        Self { tried, best: None, objective: f64::MAX, reason: None, jitter: 0.0 }
    }

    fn nll(&self) -> f64 {
        self.tried.tempered_nll.unwrap_or(self.tried.nll)
    }
}

impl Task<'_> {
    /// Learns the prior, trains in several ways within `seconds` where there is a limit, and takes the one that predicts the rows set aside best.
    ///
    /// # Errors
    /// What means nothing beside the rest, networks that do not fit, and where no way led anywhere.
    pub(crate) fn train(
        &self,
        seconds: Option<f64>,
        (keeping, observer): Watched<'_, '_, '_>,
    ) -> Result<Trained<GeneralisedGp, GviSummary>, ModelError> {
        let Self { request, options, columns, rows: (train, aside), training_duplicates, .. } = self;
        options.check()?;
        let started = Instant::now();
        let left = || seconds.map(|all| (all - started.elapsed().as_secs_f64()).max(1e-3));
        let mut state: GviState = keeping.checkpoints.bound()?.unwrap_or_default();
        let resumed_from = state.runs.iter().map(|run| run.tried.steps[0]).sum::<usize>()
            + state.running.as_ref().map_or(0, |s| s.training.step)
            + state.prior.as_ref().map_or(0, |prior| prior.steps);
        let prior = PriorTask { request, options, columns: *columns, data: self.numbers };
        let mut interrupted = false;
        if state.prior.is_none() {
            let time = left().map(|left| Duration::from_secs_f64(PRIOR_SHARE * left));
            let (found, stopped) = prior.learn(time, observer)?;
            interrupted = stopped;
            if !stopped {
                state.prior = Some(found);
            } else {
                return Err(ModelError::Interrupted);
            }
        }
        let Some(found) = state.prior.clone() else { return Err(ModelError::Interrupted) };
        let (reference, prior_summary) = prior.reference(&found)?;
        let ways = options.candidates();
        let data = GeneralisedData { observations: train, given: None };
        let held = GeneralisedData { observations: aside, given: None };
        for (index, way) in ways.iter().enumerate().skip(state.runs.len()) {
            if interrupted {
                break;
            }
            let begun = Instant::now();
            let share = left().map(|left| left / (ways.len() - index) as f64);
            let mut told = self.told(way, train.rows());
            told.time = share.map(Duration::from_secs_f64);
            let running = state.running.take();
            if let (Some(running), Some(time)) = (&running, &mut told.time) {
                // A run counts its own time from its beginning.
                *time += Duration::from_secs_f64(running.training.seconds().clamp(0.0, 1e9));
            }
            let so_far = state.clone();
            let outcome = self.begin(way, &reference).and_then(|(model, _)| {
                Ok(fit_generalised(model, data, Some(held), &told, running, &mut |progress, training| {
                    let shown = Progress { part: index, parts: ways.len(), ..*progress };
                    let signal = observer(&shown, &FitStage::Variation);
                    keeping.observe(signal, || {
                        let running = Some(training.state().clone());
                        posterior_store::to_value(&GviState { running, ..so_far.clone() })
                    })
                })?)
            });
            keeping.checkpoints.finish()?;
            let run = match outcome {
                Ok(fit) => {
                    interrupted = fit.reason == Reason::Interrupted;
                    self.run(way, fit, &held, begun)?
                }
                // What diverges is no reason to lose the others.
                Err(error) if ways.len() > 1 => Run::ended(way, error.to_string(), begun),
                Err(error) => return Err(error),
            };
            state.runs.push(run);
        }
        let chosen =
            (0..state.runs.len()).min_by(|a, b| state.runs[*a].nll().total_cmp(&state.runs[*b].nll()));
        let tried: Vec<TriedCandidate> = state.runs.iter().map(|run| run.tried.clone()).collect();
        let best = chosen.and_then(|index| Some((index, state.runs[index].best.clone()?)));
        let Some((index, theta)) = best else {
            return Err(nowhere("this process", tried.iter().map(|own| (&own.name, &own.ended))));
        };
        let (mut model, mean) = self.begin(&ways[index], &reference)?;
        model.set_unconstrained(&theta);
        let (posterior, tempering) = self.tempered(model, &held)?;
        let run = &state.runs[index];
        let summary = GviSummary {
            prior: prior_summary,
            chosen: ways[index].name.clone(),
            objective: ways[index].objective.clone(),
            family: ways[index].family,
            coordinates: options.weight_coordinates,
            mode: options.regulariser_mode,
            mean: mean.origin,
            architecture: mean.architecture,
            mean_form: mean.kind,
            tempering,
            functions: self.likelihood.outputs(),
            trained_rows: train.rows(),
            validation_rows: aside.rows(),
            training_duplicates: *training_duplicates,
            tried,
        };
        Ok(Trained {
            posterior,
            evidence: None,
            hyperpriors: found.hyperpriors.clone(),
            steps: found.steps + state.runs.iter().map(|run| run.tried.steps[0]).sum::<usize>(),
            resumed_from,
            reason: if interrupted { Reason::Interrupted } else { run.reason.unwrap_or(Reason::Steps) },
            jitter: run.jitter,
            objective: run.objective,
            summary,
        })
    }

    /// How a way is trained on so many rows.
    fn told(&self, way: &GviCandidate, rows: usize) -> GeneralisedOptions {
        let options = self.options;
        let (check_every, patience) = options.waiting(rows);
        GeneralisedOptions {
            objective: way.objective.clone(),
            steps: options.steps(),
            batch: options.batch(rows),
            patience: Patience {
                rule: options.update_rule.rule(),
                learning_rate: options.step_size(),
                check_every,
                patience,
                rate_drops: DROPS,
                settles: true,
            },
            time: None,
            seed: self.request.seed,
            kept_bytes: self.request.limits.memory / 8,
        }
    }

    /// A process as its training begins.
    fn begin(
        &self,
        way: &GviCandidate,
        reference: &ReferenceProcess,
    ) -> Result<(GeneralisedGp, Mean), ModelError> {
        let functions = self.likelihood.outputs();
        let mean = mean::begin(
            way.mean,
            (self.options, self.request),
            self.columns,
            (reference, self.numbers),
            functions,
        )?;
        let parts = (way.family, self.options.weight_coordinates);
        let model = GeneralisedGp::begin(
            vec![reference.clone()],
            parts,
            mean.mean.clone(),
            self.likelihood.clone_box(),
            self.rows.0.inputs(),
        )?;
        Ok((model, mean))
    }

    /// What a run led to, on the rows set aside.
    fn run(
        &self,
        way: &GviCandidate,
        fit: GeneralisedFit,
        held: &GeneralisedData<'_>,
        begun: Instant,
    ) -> Result<Run, ModelError> {
        let GeneralisedFit { model, reason, steps, best, state } = fit;
        let (_, tempered) = self.tempered(model, held)?;
        let ended = Run::ended(way, reason.to_string(), begun);
        let tried = TriedCandidate {
            nll: best.map_or(f64::MAX, |look| look.nll),
            tempered_nll: tempered.map(|t| t.after).filter(|nll| nll.is_finite()),
            steps: [steps, best.map_or(0, |look| look.step)],
            validation_scores: state.training.validation_scores.clone(),
            history: state.history.clone(),
            irregularities: state.irregularities.clone(),
            ..ended.tried
        };
        Ok(Run {
            tried,
            best: state.training.best.clone().map(|(_, theta)| theta),
            objective: state.average,
            reason: Some(reason),
            jitter: state.training.largest_jitter,
        })
    }

    fn tempered(
        &self,
        model: GeneralisedGp,
        held: &GeneralisedData<'_>,
    ) -> Result<(GeneralisedGp, Option<Tempered>), ModelError> {
        // Its factor is the noise's as well.
        let noise_is_held = !self.options.constraints.of("noise_variance").is_empty();
        let way = match self.options.tempering {
            _ if noise_is_held => return Ok((model, None)),
            TemperingName::None => return Ok((model, None)),
            TemperingName::Best => TemperingMethod::Best,
            TemperingName::Gradient => {
                let (steps, rate) = PUBLISHED_TEMPERING;
                let rule = Adaptive::new(UpdateRule::AdaBelief.rule(), rate);
                TemperingMethod::Gradient { optimiser: Optimiser::Adaptive(rule), steps }
            }
        };
        let (model, tempered) = model.temper(held, &way)?;
        Ok((model, Some(tempered)))
    }
}
