//! The training loop.

use super::error::TrainError;
use super::examples::{Examples, Targets};
use super::hook::{EpochHook, HookState, Keep};
use super::loss::Loss;
use super::rule::Rule;
use crate::array::{Array, Precision, Sets, scale, sum_of_squares};
use crate::graph::{Network, Selection, Trace};
use crate::operation::{Mode, Operation, Saved};
use posterior_linalg::random::Streams;
use posterior_optim::{Schedule, Signal};
use rand::seq::SliceRandom;
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
    /// Epochs without a better validation loss after which training stops.
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

/// Loss (and accuracy, for classes) over a set of examples.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Evaluation {
    /// Mean loss.
    pub loss: f64,
    /// Share of examples whose largest output is their class.
    pub accuracy: Option<f64>,
}

/// What happened in an epoch.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct EpochRecord {
    /// From 1.
    pub epoch: usize,
    /// Mean loss of the steps, each before it was taken.
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

/// The best weights so far: those with the lowest validation loss, or score of the hook.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Best<T> {
    pub(super) epoch: usize,
    pub(super) loss: f64,
    pub(super) parameters: Vec<Array<T>>,
    pub(super) log_variance: Vec<T>,
}

/// Where a run stands, for progress bars.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress {
    /// Steps taken.
    pub step: usize,
    /// Steps planned in all.
    pub steps: usize,
    /// Epoch of the last step, from 1.
    pub epoch: usize,
    /// Mean loss of the last step's batch.
    pub loss: f64,
    /// Set when the step ended an epoch.
    pub finished_epoch: Option<EpochRecord>,
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
    /// Whether the observer stopped the run before its end.
    pub stopped: bool,
    /// Whether patience ran out.
    pub early: bool,
}

/// Trains `network` on `examples`.
///
/// The observer sees every step and may stop the run; what it is given can be saved and passed as `state` to go on, and then the weights are
/// the same, bit for bit, as those of a run that was never stopped (same machine, same number of threads).
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
    observer: impl FnMut(&Progress, &TrainState<T>) -> Signal,
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
    mut network: Network<T>,
    examples: &dyn Examples<T>,
    validation: Option<&dyn Examples<T>>,
    options: &TrainOptions,
    mut hook: Option<&mut dyn EpochHook<T>>,
    state: Option<TrainState<T>>,
    mut observer: impl FnMut(&Progress, &TrainState<T>) -> Signal,
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
    let all: Vec<usize> = (0..examples.len()).collect();
    let (_, probe) = examples.batch(&all[..1], None);
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
            second: if matches!(options.rule, Rule::Adam { .. }) { vec![T::ZERO; size] } else { Vec::new() },
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
    let due = |state: &TrainState<T>| state.hook.as_ref().is_some_and(|h| h.due);
    let per_epoch = examples.len().div_ceil(options.batch);
    let steps = per_epoch * options.epochs;
    let streams = Streams::new(options.seed);
    let (mut stopped, mut early) = (false, exhausted(&state, options));
    let mut order = all;
    let mut ordered_for = None;
    while !stopped && (due(&state) || state.step < steps && !early) {
        if let (Some(hook), true) = (&mut hook, due(&state)) {
            let epoch = state.step / per_epoch;
            network.set_mode(Mode::Evaluation);
            let mut memory = state.hook.as_ref().map_or_else(String::new, |h| h.memory.clone());
            match hook.run(&network, epoch, &state.log_variance, &mut memory)? {
                // Still due: whoever goes on begins with it.
                None => stopped = true,
                Some(adjustment) => {
                    let score = state.adjust(adjustment, memory, &selection)?;
                    if let (Keep::Score, Some(score)) = (keep, score) {
                        state.keep_if_better(&network, epoch, score);
                    }
                }
            }
            if stopped {
                let loss = state.history.last().map_or(0.0, |record| record.train_loss);
                let progress = Progress { step: state.step, steps, epoch, loss, finished_epoch: None };
                network.swap_parameters(&mut state.parameters);
                observer(&progress, &state);
                network.swap_parameters(&mut state.parameters);
            }
            continue;
        }
        let (epoch, within) = (state.step / per_epoch, state.step % per_epoch);
        if ordered_for != Some(epoch) {
            order.sort_unstable();
            order.shuffle(&mut streams.child("networks/order", epoch as u64).stream("networks/order"));
            ordered_for = Some(epoch);
        }
        let indices = &order[within * options.batch..((within + 1) * options.batch).min(order.len())];
        let mut augment =
            streams.child("networks/augmentation", state.step as u64).stream("networks/augmentation");
        let (x, targets) = examples.batch(indices, Some(&mut augment));
        options.loss.check(network.graph().output_shape(), &targets)?;
        let rate = options.learning_rate * options.schedule.factor(state.step, steps);
        let loss = step(&mut network, &mut state, &selection, x, &targets, options, rate, epoch)?;
        state.loss_sum += loss * indices.len() as f64;
        let mut progress = Progress { step: state.step, steps, epoch: epoch + 1, loss, finished_epoch: None };
        if within + 1 == per_epoch {
            network.set_mode(Mode::Evaluation);
            let evaluation =
                validation.map(|v| evaluate(&network, v, options.loss, &state.log_variance)).transpose()?;
            let record = EpochRecord {
                epoch: epoch + 1,
                train_loss: state.loss_sum / examples.len() as f64,
                validation: evaluation,
                learning_rate: rate,
            };
            state.history.push(record);
            state.loss_sum = 0.0;
            if let (Some(e), Keep::Validation) = (evaluation, keep) {
                state.keep_if_better(&network, epoch + 1, e.loss);
            }
            progress.finished_epoch = Some(record);
            early = exhausted(&state, options);
            if let (Some(hook), Some(of_hook)) = (&hook, &mut state.hook) {
                of_hook.due = hook.due(epoch + 1);
            }
        }
        // The observer may save the state, so the weights are lent to it.
        network.swap_parameters(&mut state.parameters);
        stopped =
            observer(&progress, &state) == Signal::Stop && (due(&state) || state.step < steps && !early);
        network.swap_parameters(&mut state.parameters);
    }
    state.parameters = network.parameters().to_vec();
    network.set_mode(Mode::Evaluation);
    let mut log_variance = &state.log_variance;
    let best_epoch = state.best.as_ref().filter(|_| !stopped).map(|best| best.epoch);
    if let (Some(best), true) = (&state.best, best_epoch.is_some()) {
        network.parameters_mut().clone_from_slice(&best.parameters);
        log_variance = &best.log_variance;
    }
    let noise_variance = log_variance.iter().map(|v| v.to_f64().exp()).collect();
    Ok(Trained { network, noise_variance, state, best_epoch, stopped, early })
}

impl<T: Precision> TrainState<T> {
    /// Takes the network's weights for the best if their loss is lower than the best so far.
    fn keep_if_better(&mut self, network: &Network<T>, epoch: usize, loss: f64) {
        if self.best.as_ref().is_none_or(|best| loss < best.loss) {
            self.best = Some(Best {
                epoch,
                loss,
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

/// One step; returns the mean loss of the batch before it.
fn step<T: Precision>(
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

/// Loss and accuracy of a network in evaluation mode, in pieces.
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
    let (mut sum, mut correct, mut classes) = (0.0, 0, false);
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
        classes = matches!(targets, Targets::Classes(_));
    }
    let count = examples.len().max(1) as f64;
    Ok(Evaluation { loss: sum / count, accuracy: classes.then(|| correct as f64 / count) })
}
