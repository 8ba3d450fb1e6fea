//! Training: one step, the records of epochs, and what comes out of all of them.

use super::error::TrainError;
use super::examples::{Examples, Targets};
use super::hook::{EpochHook, HookState, Keep};
use super::loss::Loss;
use crate::PerNetworkPrecision;
use crate::array::{Array, Precision, Sets, scale, sum_of_squares};
use crate::graph::{Network, Selection, Trace};
use crate::operation::{Mode, Operation, Saved};
use posterior_linalg::compiled_here;
use posterior_linalg::random::Streams;
use posterior_optim::{
    Batches, Clock, Iteration, Limits, Observer, Progress, Reason, Rule, Run, Sampling, Schedule, Step, drive,
};
use serde::{Deserialize, Serialize};

/// Share of the batch's statistics in the running ones after each step of batch norm, as is usual.
const STATISTICS: f64 = 0.1;

/// Examples of one piece of an evaluation.
const EVALUATED: usize = 512;

/// How a network is trained.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrainOptions {
    /// What is minimised.
    pub loss: Loss,
    /// Passes over the examples.
    pub epochs: usize,
    /// Examples of a step; the last step of an epoch takes what is left.
    pub batch: usize,
    /// What a step does.
    pub rule: Rule,
    /// Base step size.
    pub learning_rate: f64,
    /// How the step size changes from step to step.
    pub schedule: Schedule,
    /// Gradients longer than this are shortened to it.
    pub clip: Option<f64>,
    /// Epochs without a better [`Evaluation::score`] on the validation examples after which training stops.
    pub patience: Option<usize>,
    /// Where order and augmentation come from.
    pub seed: u64,
}

impl TrainOptions {
    fn check(&self) -> Result<(), TrainError> {
        let problem = if self.epochs == 0 || self.batch == 0 {
            Some("epochs and batch must be at least 1")
        } else if !(self.learning_rate > 0.0 && self.learning_rate.is_finite()) {
            Some("the learning rate must be positive")
        } else if self.clip.is_some_and(|c| !(c > 0.0 && c.is_finite())) {
            Some("the gradient's largest length must be positive")
        } else if self.patience == Some(0) {
            Some("patience must be at least 1 epoch")
        } else {
            self.rule.problem()
        };
        problem.map_or(Ok(()), |p| Err(TrainError::Setting(p.into())))
    }
}

/// Loss (and what it says of classes) over a set of examples.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Evaluation {
    /// Mean loss; beyond the range of numbers where examples are that the network has not seen.
    #[serde(with = "posterior_store::any_number")]
    pub loss: f64,
    /// Share of examples whose largest output is their class.
    pub accuracy: Option<f64>,
    /// Classes: mean of `-log p(label)`, nats, under the softmax of the outputs (the sigmoid of a single one), whatever the loss.
    #[serde(with = "posterior_store::any_number::optional")]
    pub nll: Option<f64>,
}

impl Evaluation {
    /// By what weights are kept and patience is measured, lower is better: the NLL of classes, so that what stands for a label cannot hide what becomes of it, and the loss otherwise.
    pub fn score(&self) -> f64 {
        self.nll.unwrap_or(self.loss)
    }
}

/// What happened in an epoch.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct EpochRecord {
    /// From 1.
    pub epoch: usize,
    /// Mean loss of the steps, each before it was taken.
    #[serde(with = "posterior_store::any_number")]
    pub train_loss: f64,
    /// On the validation examples, after the epoch.
    pub validation: Option<Evaluation>,
    /// Step size of the last step.
    pub learning_rate: f64,
}

/// All that a run needs to go on: plain numbers, saved by [`TrainState::save`].
#[derive(Clone, Debug, PartialEq)]
pub struct TrainState<T> {
    /// Steps taken.
    pub step: usize,
    /// Records of the finished epochs.
    pub history: Vec<EpochRecord>,
    /// Steps whose gradient was shortened.
    pub clipped: usize,
    /// Log noise variances of the Gaussian loss, if learned beside the weights.
    pub log_variance: Vec<T>,
    /// What was decided between epochs, in runs with a hook.
    pub hook: Option<HookState>,
    pub(super) parameters: Vec<Array<T>>,
    pub(super) first: Vec<T>,
    pub(super) second: Vec<T>,
    /// Sum of the loss over the examples of the unfinished epoch.
    pub(super) loss_sum: f64,
    pub(super) best: Option<Best<T>>,
}

/// The best weights so far: those with the lowest score on the validation examples, or of the hook.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Best<T> {
    pub(super) epoch: usize,
    pub(super) score: f64,
    pub(super) parameters: Vec<Array<T>>,
    pub(super) log_variance: Vec<T>,
}

/// A trained network.
#[derive(Clone, Debug)]
pub struct Trained<T> {
    /// With the best weights on the validation examples if there are any (or what the hook keeps), else the last ones; in evaluation mode.
    pub network: Network<T>,
    /// Noise variances of the Gaussian loss, one for each target; empty otherwise.
    pub noise_variance: Vec<f64>,
    /// The state after the last step, to go on from.
    pub state: TrainState<T>,
    /// Epoch of the weights returned, from 1, where a validation set or a score chose it.
    pub best_epoch: Option<usize>,
    /// Why the run ended: steps, patience, or the observer before its end.
    pub reason: Reason,
}

/// Trains `network` on `examples`.
///
/// The observer sees every step (the value of its progress is the mean loss of the step's batch, its parts are epochs) and may stop the run; the state that it is given can be saved and passed as `state` to go on, and then the weights are
/// the same, bit for bit, as those of a run that was never stopped (same machine).
///
/// Cost of a step: three forward passes of the batch and one pass over weights and moments. Memory: activations of one batch, four times the weights.
///
/// # Errors
/// When settings, data and network do not fit, or the loss becomes NaN or infinite.
pub fn train<T: Precision>(
    network: Network<T>,
    examples: &dyn Examples<T>,
    validation: Option<&dyn Examples<T>>,
    options: &TrainOptions,
    state: Option<TrainState<T>>,
    observer: &mut Observer<'_, TrainState<T>>,
) -> Result<Trained<T>, TrainError> {
    train_with(network, examples, validation, options, None, state, observer)
}

/// [`train`] with a hook that may change weight decay and noise between epochs, and choose which weights are kept.
///
/// A state with a hook's decisions goes on only with a hook, and the other way round.
///
/// # Errors
/// As [`train`], and what the hook cannot do.
pub fn train_with<T: Precision>(
    network: Network<T>,
    examples: &dyn Examples<T>,
    validation: Option<&dyn Examples<T>>,
    options: &TrainOptions,
    hook: Option<&mut dyn EpochHook<T>>,
    state: Option<TrainState<T>>,
    observer: &mut Observer<'_, TrainState<T>>,
) -> Result<Trained<T>, TrainError> {
    compiled_here!(T: Precision, PerNetworkPrecision; ['a, 'b, 'c: 'a] descend_with, (
        network: Network<T> = network,
        examples: &'a dyn Examples<T> = examples,
        validation: Option<&'a dyn Examples<T>> = validation,
        options: &'a TrainOptions = options,
        hook: Option<&'b mut dyn EpochHook<T>> = hook,
        state: Option<TrainState<T>> = state,
        observer: &'a mut Observer<'c, TrainState<T>> = observer,
    ) -> Result<Trained<T>, TrainError>)
}

fn descend_with<T: Precision>(
    mut network: Network<T>,
    examples: &dyn Examples<T>,
    validation: Option<&dyn Examples<T>>,
    options: &TrainOptions,
    mut hook: Option<&mut dyn EpochHook<T>>,
    state: Option<TrainState<T>>,
    observer: &mut Observer<'_, TrainState<T>>,
) -> Result<Trained<T>, TrainError> {
    options.check()?;
    let keep = hook.as_ref().map_or(Keep::Validation, |hook| hook.keep());
    if examples.is_empty() {
        return Err(TrainError::Setting("there are no examples to learn from".into()));
    }
    if options.patience.is_some() && validation.is_none() {
        return Err(TrainError::Setting("patience needs validation examples: set a part aside".into()));
    }
    if options.patience.is_some() && keep != Keep::Validation {
        return Err(TrainError::Setting(
            "patience waits for the validation loss: keep the weights that are best on it".into(),
        ));
    }
    if keep == Keep::Validation && hook.is_some() && validation.is_none() {
        return Err(TrainError::Setting(
            "weights chosen by validation need validation examples: set a part aside".into(),
        ));
    }
    let selection = Selection::all(network.graph());
    if selection.is_empty() {
        return Err(TrainError::Setting("the network has no trainable parameters".into()));
    }
    let (_, probe) = examples.batch(&[0], None);
    let noises = options.loss.check(network.graph().output_shape(), &probe)?;
    let size = selection.len() + noises;
    let mut state = match state {
        Some(state) => state,
        None => TrainState {
            step: 0,
            history: Vec::new(),
            clipped: 0,
            log_variance: vec![T::ZERO; noises],
            hook: None,
            parameters: network.parameters().to_vec(),
            first: vec![T::ZERO; size],
            second: if options.rule.moments()[1] { vec![T::ZERO; size] } else { Vec::new() },
            loss_sum: 0.0,
            best: None,
        },
    };
    network.parameters_mut().clone_from_slice(&state.parameters);
    match (&mut hook, &state.hook) {
        (Some(hook), None) if state.step == 0 => {
            let mut memory = String::new();
            let adjustment = hook.start(&network, &mut memory)?;
            state.adjust(adjustment, memory, &selection)?;
        }
        (Some(_), Some(_)) | (None, None) => {}
        _ => {
            let problem = "the state to go on from was made with other hooks between epochs: start afresh";
            return Err(TrainError::Setting(problem.into()));
        }
    }
    let names = ["networks/order", "networks/order"];
    let batches = Batches::new(examples.len(), options.batch, Sampling::Permutation, options.seed, names);
    let steps = batches.per_epoch() * options.epochs;
    let mut training = Training {
        network,
        state,
        examples,
        validation,
        options,
        hook,
        keep,
        selection,
        batches,
        steps,
        loss: None,
        rate: None,
    };
    let limits = Limits { steps, time: None };
    let told = &mut |progress: &Progress, training: &Training<'_, '_, T>| observer(progress, &training.state);
    let (reason, _) = drive(&mut training, limits, Clock::start(), told)?;
    // Whoever stops a run that is over has not stopped it.
    let reason = training.over().unwrap_or(reason);
    let Training { mut network, state, .. } = training;
    network.parameters_mut().clone_from_slice(&state.parameters);
    network.set_mode(Mode::Evaluation);
    let mut log_variance = &state.log_variance;
    let best = state.best.as_ref().filter(|_| reason != Reason::Interrupted);
    if let Some(best) = best {
        network.parameters_mut().clone_from_slice(&best.parameters);
        log_variance = &best.log_variance;
    }
    let (best_epoch, noise_variance) =
        (best.map(|best| best.epoch), log_variance.iter().map(|v| v.to_f64().exp()).collect());
    Ok(Trained { network, noise_variance, state, best_epoch, reason })
}

/// A run under way. Between steps the weights are in the state, for its observer; a step lends them to the network.
struct Training<'a, 'h, T: Precision> {
    network: Network<T>,
    state: TrainState<T>,
    examples: &'a dyn Examples<T>,
    validation: Option<&'a dyn Examples<T>>,
    options: &'a TrainOptions,
    hook: Option<&'a mut (dyn EpochHook<T> + 'h)>,
    keep: Keep,
    selection: Selection,
    batches: Batches,
    /// Steps planned in all.
    steps: usize,
    /// Mean loss of the last step's batch.
    loss: Option<f64>,
    /// Step size of the last step.
    rate: Option<f64>,
}

impl<T: Precision> Iteration for Training<'_, '_, T> {
    type Error = TrainError;

    fn progress(&self) -> Progress {
        Progress {
            step: self.state.step,
            value: self.loss,
            step_size: self.rate,
            part: self.state.step.saturating_sub(1) / self.batches.per_epoch(),
            parts: self.options.epochs,
            ..Progress::default()
        }
    }

    fn converged(&self) -> Option<Reason> {
        exhausted(&self.state, self.options).then_some(Reason::Patience)
    }

    fn unfinished(&self) -> bool {
        self.state.hook.as_ref().is_some_and(|hook| hook.due)
    }

    fn step(&mut self, run: &mut Run<'_, Self>) -> Result<Step, TrainError> {
        if self.unfinished() {
            self.network.swap_parameters(&mut self.state.parameters);
            let finished = self.finish_epoch()?;
            self.network.swap_parameters(&mut self.state.parameters);
            if !finished {
                // Still due: whoever goes on begins with it.
                run.tell(self);
                return Ok(Step::Ended(Reason::Interrupted));
            }
            if let Some(reason) = self.over() {
                return Ok(Step::Ended(reason));
            }
        }
        self.network.swap_parameters(&mut self.state.parameters);
        self.take_step()?;
        self.network.swap_parameters(&mut self.state.parameters);
        Ok(Step::Taken)
    }
}

impl<T: Precision> Training<'_, '_, T> {
    /// Why nothing is left to do, if so.
    fn over(&self) -> Option<Reason> {
        let all = (self.state.step >= self.steps).then_some(Reason::Steps);
        self.converged().or(all).filter(|_| !self.unfinished())
    }

    /// What a hook does after the last epoch; `false` when it was interrupted.
    fn finish_epoch(&mut self) -> Result<bool, TrainError> {
        let Some(hook) = &mut self.hook else { return Ok(true) };
        let epoch = self.state.step / self.batches.per_epoch();
        self.network.set_mode(Mode::Evaluation);
        let mut memory = self.state.hook.as_ref().map_or_else(String::new, |h| h.memory.clone());
        let Some(adjustment) = hook.run(&self.network, epoch, &self.state.log_variance, &mut memory)? else {
            return Ok(false);
        };
        let score = self.state.adjust(adjustment, memory, &self.selection)?;
        if let (Keep::Score, Some(score)) = (self.keep, score) {
            self.state.keep_if_better(&self.network, epoch, score);
        }
        Ok(true)
    }

    /// One step, and the record of the epoch where it is the last of one.
    fn take_step(&mut self) -> Result<(), TrainError> {
        let Self { network, state, examples, options, .. } = self;
        let (at, per_epoch) = (state.step, self.batches.per_epoch());
        let epoch = at / per_epoch;
        let indices = self.batches.batch(at);
        let streams = Streams::new(options.seed).child("networks/augmentation", at as u64);
        let (x, targets) = examples.batch(&indices, Some(&mut streams.stream("networks/augmentation")));
        options.loss.check(network.graph().output_shape(), &targets)?;
        let rate = options.learning_rate * options.schedule.factor(at, self.steps);
        let loss = descend(network, state, &self.selection, x, &targets, options, rate, epoch)?;
        (self.loss, self.rate) = (Some(loss), Some(rate));
        state.loss_sum += loss * indices.len() as f64;
        if state.step % per_epoch != 0 {
            return Ok(());
        }
        network.set_mode(Mode::Evaluation);
        let evaluation =
            self.validation.map(|v| evaluate(network, v, options.loss, &state.log_variance)).transpose()?;
        state.history.push(EpochRecord {
            epoch: epoch + 1,
            train_loss: state.loss_sum / examples.len() as f64,
            validation: evaluation,
            learning_rate: rate,
        });
        state.loss_sum = 0.0;
        if let (Some(e), Keep::Validation) = (evaluation, self.keep) {
            state.keep_if_better(network, epoch + 1, e.score());
        }
        if let (Some(hook), Some(of_hook)) = (&self.hook, &mut state.hook) {
            of_hook.due = hook.due(epoch + 1);
        }
        Ok(())
    }
}

impl<T: Precision> TrainState<T> {
    /// Takes the network's weights for the best if their score is lower than the best so far; any score is better than one that is no number.
    fn keep_if_better(&mut self, network: &Network<T>, epoch: usize, score: f64) {
        if self
            .best
            .as_ref()
            .is_none_or(|best| score < best.score || (best.score.is_nan() && !score.is_nan()))
        {
            self.best = Some(Best {
                epoch,
                score,
                parameters: network.parameters().to_vec(),
                log_variance: self.log_variance.clone(),
            });
        }
    }
}

/// Whether the best epoch is longer ago than patience allows.
fn exhausted<T>(state: &TrainState<T>, options: &TrainOptions) -> bool {
    match (&state.best, options.patience) {
        (Some(best), Some(patience)) => state.history.len() >= best.epoch + patience,
        _ => false,
    }
}

/// Descends along the gradient of a batch; returns its mean loss before that.
fn descend<T: Precision>(
    network: &mut Network<T>,
    state: &mut TrainState<T>,
    selection: &Selection,
    x: Array<T>,
    targets: &Targets<T>,
    options: &TrainOptions,
    rate: f64,
    epoch: usize,
) -> Result<f64, TrainError> {
    network.set_mode(Mode::Training);
    let rows = x.rows();
    let trace = network.trace(x)?;
    let evaluated = options.loss.evaluate(trace.output(), targets, &state.log_variance);
    let loss = evaluated.sum / rows as f64;
    let not_finite = |layer: String| TrainError::NotFinite { step: state.step, epoch: epoch + 1, layer };
    if !loss.is_finite() {
        let layer =
            trace.first_not_finite().map_or_else(|| "the loss itself".into(), |name| format!("`{name}`"));
        return Err(not_finite(layer));
    }
    let mut gradient = trace.gradient(selection, evaluated.cotangent, Sets::One);
    let mut noise_gradient = evaluated.noise_gradient;
    let statistics = running_statistics(&trace);
    drop(trace);
    let squares = sum_of_squares(gradient.values()) + sum_of_squares(&noise_gradient);
    if !squares.is_finite() {
        let part = selection
            .parts()
            .iter()
            .find(|p| gradient.values()[p.offset..p.offset + p.length].iter().any(|g| !g.is_finite()));
        return Err(not_finite(
            part.map_or_else(|| "the noise".into(), |p| format!("the gradient of `{}`", p.name)),
        ));
    }
    if let Some(limit) = options.clip
        && squares.sqrt() > limit
    {
        let factor = T::from_f64(limit / squares.sqrt());
        gradient = scale(gradient, factor);
        noise_gradient.iter_mut().for_each(|g| *g *= factor);
        state.clipped += 1;
    }
    state.step += 1;
    let (decays, held) =
        state.hook.as_ref().map_or((&[][..], false), |h| (&h.weight_decay[..], h.noise_held));
    for (i, part) in selection.parts().iter().enumerate() {
        let rule = decays.get(i).map_or(options.rule, |decay| options.rule.with_weight_decay(*decay));
        let range = part.offset..part.offset + part.length;
        let values = network.parameters_mut()[part.parameter].values_mut();
        let second = state.second.get_mut(range.clone()).unwrap_or_default();
        let gradient = &gradient.values()[range.clone()];
        rule.step(values, gradient, &mut state.first[range], second, rate, state.step);
    }
    if !held {
        // Under a prior that is learned for the weights there is none for the noise.
        let rule = if decays.is_empty() { options.rule } else { options.rule.with_weight_decay(0.0) };
        let range = selection.len()..selection.len() + noise_gradient.len();
        let second = state.second.get_mut(range.clone()).unwrap_or_default();
        let first = &mut state.first[range];
        rule.step(&mut state.log_variance, &noise_gradient, first, second, rate, state.step);
    }
    for (parameter, values) in statistics {
        network.parameters_mut()[parameter] = values;
    }
    Ok(loss)
}

/// Running means and variances of every batch norm after this batch, by parameter.
fn running_statistics<T: Precision>(trace: &Trace<'_, T>) -> Vec<(usize, Array<T>)> {
    let network = trace.network();
    let share = T::from_f64(STATISTICS);
    let mut new = Vec::new();
    for (i, node) in network.graph().nodes().iter().enumerate() {
        if let (Operation::BatchNorm(_), Saved::Batch { mean, variance, count, .. }) =
            (&node.operation, trace.saved(i))
        {
            // The running variance is unbiased, the one that normalises is not.
            let unbiased = T::from_f64(*count as f64 / (*count as f64 - 1.0).max(1.0));
            for (slot, batch, factor) in [(2, mean, T::ONE), (3, variance, unbiased)] {
                let mut values = network.parameters()[node.parameters[slot]].clone();
                values.values_mut().iter_mut().zip(batch).for_each(|(r, &b)| *r += share * (factor * b - *r));
                new.push((node.parameters[slot], values));
            }
        }
    }
    new
}

/// Loss, accuracy and NLL of a network in evaluation mode, in pieces.
///
/// # Errors
/// When data and network do not fit.
pub fn evaluate<T: Precision>(
    network: &Network<T>,
    examples: &dyn Examples<T>,
    loss: Loss,
    log_variance: &[T],
) -> Result<Evaluation, TrainError> {
    network.require_evaluation("an evaluation")?;
    let (mut sum, mut correct, mut nll, mut classes) = (0.0, 0, 0.0, false);
    let indices: Vec<usize> = (0..examples.len()).collect();
    for indices in indices.chunks(EVALUATED) {
        let (x, targets) = examples.batch(indices, None);
        let noises = loss.check(network.graph().output_shape(), &targets)?;
        if noises != log_variance.len() {
            let problem = format!("{noises} noise variances are needed, {} given", log_variance.len());
            return Err(TrainError::Loss { loss: loss.name(), problem });
        }
        let evaluated = loss.evaluate(&network.forward(&x)?, &targets, log_variance);
        sum += evaluated.sum;
        correct += evaluated.correct;
        nll += evaluated.nll;
        classes = matches!(targets, Targets::Classes(_));
    }
    let count = examples.len().max(1) as f64;
    Ok(Evaluation {
        loss: sum / count,
        accuracy: classes.then(|| correct as f64 / count),
        nll: classes.then(|| nll / count),
    })
}
