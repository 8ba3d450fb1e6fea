//! Training: the evidence of all rows, with its gradient in the weights of the map, the kernel's hyperparameters and the noise.

use super::EmbeddedPosterior;
use crate::data::same_width;
use crate::exact::evidence::differentiated;
use crate::exact::model::{ExactGp, Factored};
use crate::exact::{Evaluation, ExactPosterior};
use crate::{GpError, Observations, Posterior};
use faer::Mat;
use posterior_linalg::tiles::pieces;
use posterior_linear::LinearError;
use posterior_linear::embedding::{EmbeddedAt, Embedding};
use posterior_linear::training::{Patience, TrainingState, ValidationScore};
use posterior_optim::{Clock, Iteration, Limits, Observer, Parameters, Progress, Reason, Run, Step, drive};
use std::ops::Range;
use std::time::Duration;

/// How to train.
#[derive(Clone, Debug, PartialEq)]
pub struct EmbeddedOptions {
    /// When to look at the rows held back, and when to go back.
    pub patience: Patience,
    /// Times the weights of the map, added to the gradient of minus the evidence for each row; hyperparameters and noise have none.
    pub weight_decay: f64,
    /// Steps at most.
    pub steps: usize,
    /// Most time.
    pub time: Option<Duration>,
    /// Bytes that may be kept of rows on their way through the map; rows beyond pass it twice.
    pub kept_bytes: usize,
}

/// What came of training.
#[derive(Debug)]
pub struct EmbeddedFit {
    /// The posterior at the best look, or after the last step where nothing was held back.
    pub posterior: EmbeddedPosterior,
    /// Why it ended.
    pub reason: Reason,
    /// The best look.
    pub best: Option<ValidationScore>,
    /// Where it stands: steps, looks and largest jitter, and all that is needed to go on.
    pub state: TrainingState,
}

/// A run under way.
pub struct EmbeddedTraining<'a> {
    model: ExactGp,
    embedding: Box<dyn Embedding>,
    data: &'a Observations,
    held: Option<&'a Observations>,
    options: &'a EmbeddedOptions,
    /// Parameters that are the map's.
    weights: usize,
    state: TrainingState,
    value: Option<f64>,
    /// The n x n buffer, handed from step to step.
    buffer: Option<Mat<f64>>,
}

/// Rows behind the map, and what was kept of them for the way back.
type Passed<'f> = Vec<(Range<usize>, Option<Box<dyn EmbeddedAt + 'f>>)>;

/// Trains the map and the process behind it on `data`, judged by `held`, from their present parameters or from a saved state, bit for bit. The observer sees every step and may stop the run.
///
/// Cost of a step: `n³` flops, one pass over the kernel matrix with its slopes in the embedding, and three passes of n rows through the map; a look costs `n²` flops a row held back. Memory: `8n²` bytes, what the map keeps of rows, `16 · 512 n` bytes at a look.
///
/// # Errors
/// For data that do not fit, settings without a meaning, a map that fails, a kernel matrix that cannot be factored, and where the gradient stops being a number.
pub fn fit_embedded<'a>(
    model: ExactGp,
    embedding: Box<dyn Embedding>,
    data: &'a Observations,
    held: Option<&'a Observations>,
    options: &'a EmbeddedOptions,
    state: Option<TrainingState>,
    observer: &mut Observer<'_, EmbeddedTraining<'a>>,
) -> Result<EmbeddedFit, GpError> {
    let clock = Clock::after(state.as_ref().map_or(0.0, TrainingState::seconds));
    let mut training = EmbeddedTraining::new(model, embedding, (data, held), options, state)?;
    let limits = Limits { steps: options.steps, time: options.time };
    let (reason, _) = drive(&mut training, limits, clock, observer)?;
    training.finish(reason)
}

/// The log evidence of `data` at the parameters `theta` (of the map, then of the process; all without constraints), or where it is empty at those that both have, its gradient, and those parameters: what is maximised, as tests and plots want it.
///
/// # Errors
/// As [`fit_embedded`].
pub fn embedded_objective(
    model: &ExactGp,
    embedding: &dyn Embedding,
    data: &Observations,
    options: &EmbeddedOptions,
    theta: &[f64],
) -> Result<(f64, Vec<f64>, Vec<f64>), GpError> {
    let (model, embedding) = (model.clone(), embedding.clone_box());
    let mut training = EmbeddedTraining::new(model, embedding, (data, None), options, None)?;
    if !theta.is_empty() {
        same_width("parameters", training.state.theta.len(), theta.len())?;
        training.state.theta = theta.to_vec();
        training.take();
    }
    let (value, gradient) = training.evidence_and_gradient()?;
    Ok((value, gradient, training.state.theta))
}

impl Iteration for EmbeddedTraining<'_> {
    type Error = GpError;

    fn progress(&self) -> Progress {
        Progress { step: self.state.step, value: self.value, ..Progress::default() }
    }

    fn converged(&self) -> Option<Reason> {
        self.state.is_over(&self.options.patience).then_some(Reason::Patience)
    }

    fn step(&mut self, run: &mut Run<'_, Self>) -> Result<Step, GpError> {
        if self.state.is_exhausted(&self.options.patience) {
            self.state.go_back(&self.options.patience);
            self.take();
        }
        let (value, mut gradient) = self.evidence_and_gradient()?;
        let targets = self.data.targets();
        let count = (targets.nrows() * targets.ncols()) as f64;
        gradient.iter_mut().for_each(|g| *g /= -count);
        let own = gradient[..self.weights].iter_mut().zip(&self.state.theta);
        own.for_each(|(g, theta)| *g += self.options.weight_decay * theta);
        self.state.descend(&gradient, &self.options.patience, run.share(self.state.step))?;
        self.take();
        self.value = Some(value / count);
        self.state.took(run.elapsed());
        Ok(Step::Taken)
    }
}

impl<'a> EmbeddedTraining<'a> {
    fn new(
        model: ExactGp,
        embedding: Box<dyn Embedding>,
        (data, held): (&'a Observations, Option<&'a Observations>),
        options: &'a EmbeddedOptions,
        state: Option<TrainingState>,
    ) -> Result<Self, GpError> {
        let decay = options.weight_decay;
        if !(decay >= 0.0 && decay.is_finite()) {
            let (name, expected) = ("weight decay", "0 or above");
            return Err(LinearError::Option { name, value: decay, expected }.into());
        }
        options.patience.check()?;
        same_width("outputs of the map", model.mean().input_dimension(), embedding.width())?;
        for rows in [Some(data), held].into_iter().flatten() {
            rows.plain()?;
            same_width("columns of the inputs", embedding.inputs(), rows.inputs().ncols())?;
            same_width("columns of the targets", model.mean().target_count(), rows.targets().ncols())?;
        }
        let theta = [embedding.unconstrained(), model.unconstrained()].concat();
        let weights = embedding.unconstrained().len();
        let state = TrainingState::begin(state, theta, &options.patience)?;
        let (value, buffer) = (None, None);
        let mut out = Self { model, embedding, data, held, options, weights, state, value, buffer };
        out.take();
        Ok(out)
    }

    /// What could be saved here.
    pub fn state(&self) -> &TrainingState {
        &self.state
    }

    /// Gives map and process the parameters of the state.
    fn take(&mut self) {
        let (of_map, of_process) = self.state.theta.split_at(self.weights);
        self.embedding.set_unconstrained(of_map);
        self.model.set_unconstrained(of_process);
    }

    /// The rows with what the map makes of them, and what is kept for the way back.
    fn pass(&self, keep: bool) -> Result<(Observations, Passed<'_>), GpError> {
        let inputs = self.data.inputs();
        let kept_rows = if keep { self.options.kept_bytes / self.embedding.bytes_of_row().max(1) } else { 0 };
        let mut embedded = Mat::zeros(inputs.nrows(), self.embedding.width());
        let mut passed = Vec::new();
        for rows in pieces(inputs.nrows(), self.embedding.rows_at_once()) {
            let at = self.embedding.at(inputs.subrows(rows.start, rows.len()))?;
            embedded.as_mut().subrows_mut(rows.start, rows.len()).copy_from(at.embedded());
            let kept = rows.end <= kept_rows;
            passed.push((rows, kept.then_some(at)));
        }
        let noise = self.data.noise_variances().map(<[f64]>::to_vec);
        Ok((Observations::new(embedded, self.data.targets().to_owned(), noise)?, passed))
    }

    /// The log evidence and its gradient in all parameters; a look at the rows held back on the way, where one is due.
    fn evidence_and_gradient(&mut self) -> Result<(f64, Vec<f64>), GpError> {
        let buffer = self.buffer.take();
        let (rows, passed) = self.pass(true)?;
        let mut factored = self.model.factor(&rows, buffer)?;
        let mut nll = None;
        if self.state.is_due(&self.options.patience) {
            (nll, factored) = self.judged(&rows, factored)?;
        }
        let (evaluation, slopes) = differentiated(&self.model, &rows, factored, self.weights > 0);
        let Evaluation { value, gradient: natural, cholesky, buffer } = evaluation;
        let mut gradient = vec![0.0; self.weights];
        for (rows, at) in passed {
            let Some(slopes) = &slopes else { break };
            let slopes = slopes.as_ref().subrows(rows.start, rows.len());
            match at {
                Some(at) => at.pull_back(slopes, &mut gradient)?,
                None => {
                    let inputs = self.data.inputs().subrows(rows.start, rows.len());
                    self.embedding.at(inputs)?.pull_back(slopes, &mut gradient)?;
                }
            }
        }
        gradient.extend(self.model.chain(&self.state.theta[self.weights..], &natural));
        if let Some(nll) = nll {
            self.state.note(nll);
        }
        self.state.largest_jitter = self.state.largest_jitter.max(cholesky.jitter);
        self.buffer = Some(buffer);
        Ok((value, gradient))
    }

    /// Mean of `-log p(y)` of the rows held back, a target each; with the factor given back.
    fn judged(&self, rows: &Observations, factored: Factored) -> Result<(Option<f64>, Factored), GpError> {
        let Some(held) = self.held else { return Ok((None, factored)) };
        let Factored { cholesky, residuals, weights } = factored;
        let posterior = ExactPosterior { model: self.model.clone(), data: rows.clone(), cholesky, weights };
        let prediction = posterior.predict(self.embedding.embedded(held.inputs())?.as_ref())?;
        let (targets, observed) = (held.targets(), prediction.observed_variance());
        let mut sum = 0.0;
        for (i, variance) in observed.iter().enumerate() {
            let variance = variance + held.noise_variances().map_or(0.0, |v| v[i]);
            for t in 0..targets.ncols() {
                let z = targets[(i, t)] - prediction.mean[(i, t)];
                sum += 0.5 * ((2.0 * std::f64::consts::PI * variance).ln() + z * z / variance);
            }
        }
        let ExactPosterior { cholesky, weights, .. } = posterior;
        let nll = sum / (targets.nrows() * targets.ncols()) as f64;
        Ok((Some(nll), Factored { cholesky, residuals, weights }))
    }

    fn finish(mut self, reason: Reason) -> Result<EmbeddedFit, GpError> {
        let buffer = self.buffer.take();
        let (mut rows, _) = self.pass(false)?;
        let mut factored = self.model.factor(&rows, buffer)?;
        // The last parameters have not been looked at.
        if self.held.is_some() && !self.state.is_looked_at() {
            let nll;
            (nll, factored) = self.judged(&rows, factored)?;
            nll.into_iter().for_each(|nll| self.state.note(nll));
        }
        let best = self.state.best.clone();
        if let Some((_, theta)) = best.as_ref().filter(|(_, theta)| *theta != self.state.theta) {
            let last = std::mem::replace(&mut self.state.theta, theta.clone());
            self.take();
            self.state.theta = last;
            let buffer = factored.cholesky.into_buffer();
            (rows, _) = self.pass(false)?;
            factored = self.model.factor(&rows, Some(buffer))?;
        }
        self.state.largest_jitter = self.state.largest_jitter.max(factored.cholesky.info().jitter);
        let Factored { cholesky, weights, .. } = factored;
        let exact = ExactPosterior { model: self.model, data: rows, cholesky, weights };
        Ok(EmbeddedFit {
            posterior: EmbeddedPosterior::new(self.embedding, exact)?,
            reason,
            best: best.map(|(look, _)| look),
            state: self.state,
        })
    }
}

impl std::fmt::Debug for EmbeddedTraining<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EmbeddedTraining").field("step", &self.state.step).finish_non_exhaustive()
    }
}
