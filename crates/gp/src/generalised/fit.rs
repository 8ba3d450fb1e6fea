//! **Training** the variational process (Algorithm 3): batches, an adaptive rule, looks at rows that are held back, and a smaller step, from the best so far, where these no longer get better or the objective is no number.
//!
//! Source: spec `generalised_variational_inference`, sections 9.1 and 13.

use super::divergence::DivergenceError;
use super::error::GeneralisedError;
use super::irregularities::Irregularities;
use super::model::{GeneralisedData, GeneralisedGp, KnownRows};
use super::objective::{Batch, GeneralisedEvaluation, GeneralisedObjective, evaluate};
use super::risk::total_weight;
use super::variational::Known;
use crate::{GpError, Observations};
use faer::{Mat, MatRef};
use posterior_linalg::random::Streams;
use posterior_linear::low_rank::{ObservedRows, RowTerms, ValidationScore};
use posterior_linear::training::{Patience, TrainingState};
use posterior_optim::{
    Batches, Clock, Iteration, Limits, Observer, Parameters, Progress, Reason, Run, Sampling, Step, drive,
};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// How to train.
#[derive(Clone, Debug, PartialEq)]
pub struct GeneralisedOptions {
    /// What is minimised.
    pub objective: GeneralisedObjective,
    /// Steps in all.
    pub steps: usize,
    /// Rows of a batch.
    pub batch: usize,
    /// Rule, step size, looks and when to go back.
    pub patience: Patience,
    /// Most wall-clock time.
    pub time: Option<Duration>,
    /// Seed of the batches.
    pub seed: u64,
    /// Bytes of features of rows that may be kept between steps; where they are more, each batch computes its own.
    pub kept_bytes: u64,
}

/// The objective at a look.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Breakdown {
    /// Steps before it.
    pub step: usize,
    /// Mean risk of a row of the step's batch, nats.
    pub risk: f64,
    /// The regulariser on it, before its weight.
    pub regularisation: f64,
    /// What is minimised, for each row.
    pub objective: f64,
}

/// All that a run needs to go on bit for bit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GeneralisedState {
    /// Parameters, rule and looks.
    pub training: TrainingState,
    /// The objective at looks.
    pub history: Vec<Breakdown>,
    /// Floors, jitter and what else is no part of the formulas.
    #[serde(flatten)]
    pub irregularities: Irregularities,
    /// The last parameters at which the objective was finite, where nothing judges.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finite: Option<Vec<f64>>,
    /// The objective averaged over recent steps.
    pub average: f64,
}

/// A trained process.
#[derive(Clone, Debug)]
pub struct GeneralisedFit {
    /// At the best look, or where no rows were held back after the last step at which the objective was finite.
    pub model: GeneralisedGp,
    /// Why it ended; where it is [`Reason::Diverged`], [`Irregularities::diverged`] says at which step.
    pub reason: Reason,
    /// Steps, those of earlier runs included.
    pub steps: usize,
    /// The best look.
    pub best: Option<ValidationScore>,
    /// What a further fit would go on from, with all looks and the history.
    pub state: GeneralisedState,
}

/// A fit under way.
pub struct GeneralisedTraining<'a> {
    model: GeneralisedGp,
    data: GeneralisedData<'a>,
    held: Option<(GeneralisedData<'a>, Option<KnownRows>)>,
    options: &'a GeneralisedOptions,
    known: Option<KnownRows>,
    batches: Batches,
    state: GeneralisedState,
    value: Option<f64>,
}

impl std::fmt::Debug for GeneralisedTraining<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GeneralisedTraining").field("step", &self.state.training.step).finish_non_exhaustive()
    }
}

/// Trains `model` on `data`, judged by rows `held` back, from its own parameters or a saved state. The observer sees every step and may stop the run.
///
/// Cost of a step on b rows: what the family's variances cost, the likelihood, the mean there and back, and the regulariser. Memory: the features of all rows within [`GeneralisedOptions::kept_bytes`].
///
/// # Errors
/// [`GpError`]: rows that do not fit, a regulariser or an order that the kernels do not admit, settings without a meaning; [`GeneralisedError::Diverged`] when the objective is no number before the first step. One that stops being a number later is followed by smaller steps from the best parameters (the last finite ones), and then ends the run with these.
pub fn fit_generalised<'a>(
    model: GeneralisedGp,
    data: GeneralisedData<'a>,
    held: Option<GeneralisedData<'a>>,
    options: &'a GeneralisedOptions,
    state: Option<GeneralisedState>,
    observer: &mut Observer<'_, GeneralisedTraining<'a>>,
) -> Result<GeneralisedFit, GpError> {
    let clock = Clock::after(state.as_ref().map_or(0.0, |state| state.training.seconds()));
    options.objective.check(&model)?;
    options.objective.check_batches(options.batch.min(data.observations.rows()))?;
    options.patience.check()?;
    model.check(&data)?;
    held.as_ref().map_or(Ok(()), |held| model.check(held))?;
    let mut training = GeneralisedTraining::new(model, data, held, options, state)?;
    let limits = Limits { steps: options.steps, time: options.time };
    let (reason, _) = drive(&mut training, limits, clock, observer)?;
    training.finish(reason)
}

impl Iteration for GeneralisedTraining<'_> {
    type Error = GpError;

    fn progress(&self) -> Progress {
        let value = self.value.map(|_| self.state.average);
        Progress {
            step: self.state.training.step,
            value,
            restarts: self.state.training.drops.len(),
            ..Progress::default()
        }
    }

    fn converged(&self) -> Option<Reason> {
        if self.state.irregularities.diverged.is_some() {
            return Some(Reason::Diverged);
        }
        (self.held.is_some() && self.state.training.is_over(&self.options.patience))
            .then_some(Reason::Patience)
    }

    fn step(&mut self, run: &mut Run<'_, Self>) -> Result<Step, GpError> {
        let patience = &self.options.patience;
        if self.held.is_some() && self.state.training.is_exhausted(patience) {
            self.state.training.go_back(patience);
            self.take_own();
        }
        let due = self.state.training.is_due(patience);
        if due && !self.state.training.is_looked_at() {
            self.look()?;
        }
        let step = self.state.training.step;
        let (evaluated, rows) = match self.evaluated(step) {
            // Parameters went where matrices cannot be factored.
            Err(error) if step > 0 && is_of_numbers(&error) => return Ok(Step::Diverged),
            other => other?,
        };
        self.state.training.largest_jitter =
            self.state.training.largest_jitter.max(evaluated.relative_jitter);
        let (functions, references) = (self.model.functions(), self.model.references().len());
        self.state.irregularities.add(&evaluated, rows, functions, references);
        let theta = &self.state.training.theta;
        let gradient = self.model.chain(theta, &evaluated.gradient);
        if !evaluated.value.is_finite() || gradient.iter().any(|g| !g.is_finite()) {
            return Ok(Step::Diverged);
        }
        if self.held.is_none() {
            self.state.finite.get_or_insert_default().clone_from(theta);
        }
        if due {
            let (risk, regularisation) = (evaluated.risk, evaluated.regularisation);
            let objective = evaluated.value;
            self.state.history.push(Breakdown { step, risk, regularisation, objective });
        }
        let memory = 1.0 / self.batches.per_epoch().max(10) as f64;
        self.state.average += memory.max(1.0 / (step + 1) as f64) * (evaluated.value - self.state.average);
        self.value = Some(evaluated.value);
        self.state.training.descend(&gradient, patience, run.share(step))?;
        self.take_own();
        self.state.training.took(run.elapsed());
        Ok(Step::Taken)
    }

    /// From the best parameters so far (the last at which the objective was finite, where nothing judges), with a smaller step; the end of the run where steps have become small often enough.
    fn restart(&mut self) -> Result<(), GpError> {
        let patience = &self.options.patience;
        let step = self.state.training.step;
        if step == 0 || (self.state.training.best.is_none() && self.state.finite.is_none()) {
            let what = "the objective or its gradient";
            return Err(GeneralisedError::Diverged { step: step + 1, what }.into());
        }
        if let (None, Some(finite)) = (&self.state.training.best, &self.state.finite) {
            self.state.training.theta.clone_from(finite);
        }
        if self.state.training.drops.len() >= patience.rate_drops.max(3) {
            self.state.irregularities.diverged = Some(step + 1);
        } else {
            self.state.training.go_back(patience);
        }
        self.take_own();
        Ok(())
    }
}

impl<'a> GeneralisedTraining<'a> {
    fn new(
        mut model: GeneralisedGp,
        data: GeneralisedData<'a>,
        held: Option<GeneralisedData<'a>>,
        options: &'a GeneralisedOptions,
        state: Option<GeneralisedState>,
    ) -> Result<Self, GpError> {
        let n = data.observations.rows();
        let mut batches =
            Batches::new(n, options.batch, Sampling::Permutation, options.seed, ["gp/epoch", "order"]);
        if batches.per_epoch() == 1 {
            batches = batches.ascending();
        }
        let numbers: usize =
            model.references().iter().map(|reference| Known::numbers_of_row(reference.rank())).sum();
        let fits = |rows: usize| 8 * (rows as u64) * (numbers as u64) <= options.kept_bytes;
        let known = fits(n).then(|| model.known(data.observations.inputs())).transpose()?;
        let held = match held {
            Some(held) => {
                let rows = held.observations.rows();
                let known = fits(n + rows).then(|| model.known(held.observations.inputs())).transpose()?;
                Some((held, known))
            }
            None => None,
        };
        if state.is_none() {
            options.objective.regulariser.check_order(&model, data.observations.inputs())?;
        }
        let theta = model.unconstrained();
        let begin = |saved| TrainingState::begin(saved, theta, &options.patience);
        let state = match state {
            Some(state) => {
                let training = begin(Some(state.training.clone()))?;
                let finite = state.finite.filter(|finite| finite.len() == training.theta.len());
                let irregularities = Irregularities { diverged: None, ..state.irregularities.clone() };
                GeneralisedState { training, irregularities, finite, ..state }
            }
            None => {
                let training = begin(None)?;
                GeneralisedState {
                    training,
                    history: Vec::new(),
                    irregularities: Irregularities::default(),
                    finite: None,
                    average: 0.0,
                }
            }
        };
        model.set_unconstrained(&state.training.theta);
        Ok(Self { model, data, held, options, known, batches, state, value: None })
    }

    /// What could be saved here.
    pub fn state(&self) -> &GeneralisedState {
        &self.state
    }

    /// The process as it is now.
    pub fn model(&self) -> &GeneralisedGp {
        &self.model
    }

    /// The objective on the batch of a step, and the rows of it.
    fn evaluated(&mut self, step: usize) -> Result<(GeneralisedEvaluation, usize), GpError> {
        let rows = self.batches.batch(step);
        let whole = rows.len() == self.data.observations.rows();
        let mut draw = Streams::new(self.options.seed).child("gp/rows-together", step as u64).stream("order");
        let together = self.options.objective.together(rows.len(), Some(&mut draw));
        let evaluated = if let (true, Some(known)) = (whole, &self.known) {
            let batch = Batch {
                observations: self.data.observations,
                given: self.data.given,
                known,
                rows: rows.len(),
                together,
            };
            evaluate(&self.model, &self.options.objective, &batch)?
        } else {
            let observations = self.data.observations.select(&rows)?;
            let given = self.data.given.map(|given| gathered(given, &rows));
            let known = match &self.known {
                Some(known) => known.select(&rows),
                None => self.model.known(observations.inputs())?,
            };
            let batch = Batch {
                observations: &observations,
                given: given.as_ref().map(Mat::as_ref),
                known: &known,
                rows: self.data.observations.rows(),
                together,
            };
            evaluate(&self.model, &self.options.objective, &batch)?
        };
        Ok((evaluated, rows.len()))
    }

    fn take_own(&mut self) {
        self.model.set_unconstrained(&self.state.training.theta);
    }

    /// Looks at the rows held back.
    fn look(&mut self) -> Result<(), GpError> {
        if let Some((held, known)) = &self.held {
            let nll = match known {
                Some(known) => score(&self.model, held, known)?,
                None => {
                    let known = self.model.known(held.observations.inputs())?;
                    score(&self.model, held, &known)?
                }
            };
            self.state.training.note(nll);
        }
        Ok(())
    }

    fn finish(mut self, mut reason: Reason) -> Result<GeneralisedFit, GpError> {
        if self.held.is_some() && !self.state.training.is_looked_at() {
            self.look()?;
        }
        // Where nothing judges, nothing has seen where the last step led to.
        if let (None, None, Some(finite)) =
            (&self.state.training.best, self.state.irregularities.diverged, self.state.finite.clone())
        {
            let step = self.state.training.step;
            let good = match self.evaluated(step) {
                Ok((evaluated, _)) => evaluated.value.is_finite(),
                Err(error) if is_of_numbers(&error) => false,
                Err(error) => return Err(error),
            };
            if !good {
                self.model.set_unconstrained(&finite);
                // One that was interrupted goes on as if it had not been.
                if reason != Reason::Interrupted {
                    self.state.training.theta = finite;
                    self.state.irregularities.diverged = Some(step + 1);
                    reason = Reason::Diverged;
                }
            }
        }
        let best = self.state.training.best.clone();
        if let Some((_, theta)) = &best {
            self.model.set_unconstrained(theta);
        }
        Ok(GeneralisedFit {
            model: self.model,
            reason,
            steps: self.state.training.step,
            best: best.map(|(look, _)| look),
            state: self.state,
        })
    }
}

/// Whether an error is about numbers that parameters led to.
fn is_of_numbers(error: &GpError) -> bool {
    use DivergenceError::{Cholesky, Decomposition, NotFinite};
    match error {
        GpError::Cholesky(_) | GpError::NotFinite { .. } => true,
        GpError::Divergence(own) => matches!(own, Cholesky(_) | Decomposition { .. } | NotFinite { .. }),
        _ => false,
    }
}

/// Mean negative log predictive density of rows under Q, each with its weight, nats.
fn score(model: &GeneralisedGp, data: &GeneralisedData<'_>, known: &KnownRows) -> Result<f64, GpError> {
    let observations: &Observations = data.observations;
    let (means, variances, _) = model.marginals_of(observations.inputs(), known, data.given)?;
    let observed = ObservedRows {
        targets: observations.targets(),
        noise: observations.noise_variances(),
        weights: observations.weights(),
        offsets: observations.offsets(),
    };
    let terms = RowTerms::of(model.likelihood(), 1.0, &observed, (&means, &variances));
    Ok(-terms.value / total_weight(observations))
}

/// Some rows of a matrix.
pub(super) fn gathered(from: MatRef<'_, f64>, rows: &[usize]) -> Mat<f64> {
    Mat::from_fn(rows.len(), from.ncols(), |i, j| from[(rows[i], j)])
}
