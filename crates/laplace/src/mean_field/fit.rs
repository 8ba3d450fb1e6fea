//! The run: driven, kept on the way, gone on from.

use super::options::MeanFieldOptions;
use super::steps::{FineTuning, State};
use super::{MeanField, MeanFieldSummary as Summary};
use crate::fit::scaled_noise;
use crate::keep::{Keeper, SavedState};
use crate::{LaplaceError, Stage};
use posterior_likelihoods::OutputLikelihood;
use posterior_linalg::compiled_here;
use posterior_networks::train::Examples;
use posterior_networks::{Network, PerNetworkPrecision, Precision, Selection};
use posterior_optim::{Batches, Clock, Limits, Reason, Sampling, Signal, drive};
use posterior_store::Tensors;
use posterior_tangent::check_outputs;
use serde::{Deserialize, Serialize};
use std::sync::OnceLock;

/// Name of the method in what is kept.
const METHOD: &str = "mean-field";

/// Names of the arrays in what is kept, means first.
const VALUES: [&str; 2] = ["mean_field.mean", "mean_field.log_deviation"];
const MOMENTS: [[&str; 2]; 2] = [
    ["mean_field.mean.first", "mean_field.mean.second"],
    ["mean_field.log_deviation.first", "mean_field.log_deviation.second"],
];

/// What an epoch came to.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct EpochSummary {
    /// From 1.
    pub epoch: usize,
    /// Mean of `-log p` over the epoch's examples, each at weights drawn for its group, before its step.
    pub nll: f64,
    /// `KL(q | prior)` after the epoch, nats.
    pub divergence: f64,
    /// Factor on Gaussian noise variances after the epoch; 1 without noise, or where it is held.
    pub noise_factor: f64,
}

/// What a mean-field fit did.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MeanFieldSummary {
    /// Epoch by epoch.
    pub history: Vec<EpochSummary>,
    /// How often it began anew with half the step sizes.
    pub restarts: usize,
    /// Seconds, those of earlier runs included.
    pub seconds: f64,
}

/// What is kept beside arrays.
#[derive(Serialize, Deserialize)]
struct Facts {
    options: MeanFieldOptions,
    seed: u64,
    step: usize,
    noise_factor: f64,
    sums: [f64; 2],
    summary: Summary,
}

impl<T: Precision> MeanField<T> {
    /// Trains means and deviations from the trained weights. The network must be in evaluation mode; `selection` says which weights become Gaussian, the others stay as they are.
    ///
    /// Cost of an epoch: three forward passes of all examples, and a pass over the weights for each group of a batch. Memory: [`Self::plan`].
    ///
    /// # Errors
    /// Settings without meaning, bad targets, a plan that passes `memory` bytes, what was kept by another fit, a loss that is not finite after several restarts (its step and layer are named), interruption.
    pub fn fit(
        network: &Network<T>,
        selection: &Selection,
        examples: &dyn Examples<T>,
        likelihood: &OutputLikelihood,
        options: &MeanFieldOptions,
        (seed, memory): (u64, u64),
        keeper: &mut Keeper<'_>,
        observer: &mut dyn FnMut(Stage, usize, usize) -> Signal,
    ) -> Result<Self, LaplaceError> {
        compiled_here!(T: Precision, PerNetworkPrecision; ['a, 'b: 'a, 'c: 'a] run, (
            network: &'a Network<T> = network,
            selection: &'a Selection = selection,
            examples: &'a dyn Examples<T> = examples,
            likelihood: &'a OutputLikelihood = likelihood,
            options: &'a MeanFieldOptions = options,
            limits: (u64, u64) = (seed, memory),
            keeper: &'a mut Keeper<'c> = keeper,
            observer: &'a mut (dyn FnMut(Stage, usize, usize) -> Signal + 'b) = observer,
        ) -> Result<MeanField<T>, LaplaceError>)
    }
}

fn run<T: Precision>(
    network: &Network<T>,
    selection: &Selection,
    examples: &dyn Examples<T>,
    likelihood: &OutputLikelihood,
    options: &MeanFieldOptions,
    (seed, memory): (u64, u64),
    keeper: &mut Keeper<'_>,
    observer: &mut dyn FnMut(Stage, usize, usize) -> Signal,
) -> Result<MeanField<T>, LaplaceError> {
    options.check()?;
    check_outputs(network, likelihood)?;
    likelihood.check_curvature()?;
    if examples.is_empty() || selection.is_empty() {
        let what = if selection.is_empty() { "weights to be uncertain" } else { "examples to learn from" };
        return Err(LaplaceError::Request(format!("there are no {what}")));
    }
    let plan = MeanField::plan(network, selection, examples.len(), options);
    if plan.bytes() > memory {
        return Err(LaplaceError::Memory {
            what: format!("mean-field fine-tuning of {} weights", selection.len()),
            needed: plan.bytes(),
            allowed: memory,
            remedy: "allow more memory, take smaller batches, or choose fewer weights".into(),
        });
    }
    let trained = selection.flatten(network.parameters());
    let (state, before) = match keeper.earlier() {
        Some(saved) => read_state(saved, selection.len(), options, seed)?,
        None => (State::start(&trained, options, seed), 0.0),
    };
    let names = ["laplace/mean-field/epoch", "laplace/mean-field/order"];
    let batches = Batches::new(examples.len(), options.batch, Sampling::Permutation, seed, names);
    let steps = batches.per_epoch() * options.epochs;
    let mut tuning = FineTuning {
        network: network.clone(),
        trained,
        selection,
        examples,
        likelihood,
        options,
        seed,
        batches,
        state,
        loss: None,
    };
    let clock = Clock::after(before);
    let mut failed = None;
    let limits = Limits { steps, time: None };
    let (reason, _) = drive(&mut tuning, limits, clock, &mut |progress, tuning| {
        let kept = keeper.offer(|| tuning.saved(clock.elapsed().as_secs_f64()));
        failed = kept.err();
        match observer(Stage::FineTuning, progress.step, steps) {
            Signal::Continue if failed.is_none() => Signal::Continue,
            _ => Signal::Stop,
        }
    })?;
    if let Some(error) = failed {
        return Err(error);
    }
    if reason == Reason::Interrupted && tuning.state.step < steps {
        keeper.keep(|| tuning.saved(clock.elapsed().as_secs_f64()))?;
        return Err(LaplaceError::Interrupted);
    }
    let State { values: [mean, log_deviation], noise_factor, history, restarts, .. } = tuning.state;
    Ok(MeanField {
        selection: selection.clone(),
        likelihood: scaled_noise(likelihood, noise_factor)?,
        mean,
        log_deviation,
        samples: options.samples,
        seed,
        draws: OnceLock::new(),
        summary: Summary { history, restarts, seconds: clock.elapsed().as_secs_f64() },
    })
}

impl<T: Precision> FineTuning<'_, T> {
    /// All that the run needs to go on.
    fn saved(&self, seconds: f64) -> SavedState {
        let State { step, restarts, noise_factor, sums, ref history, .. } = self.state;
        let mut tensors = Tensors::default();
        for k in 0..2 {
            tensors.insert_vector(VALUES[k], &self.state.values[k]);
            for (name, moment) in MOMENTS[k].iter().zip(&self.state.moments[k]) {
                tensors.insert_vector(*name, moment);
            }
        }
        let summary = Summary { history: history.clone(), restarts, seconds };
        let facts =
            Facts { options: self.options.clone(), seed: self.seed, step, noise_factor, sums, summary };
        SavedState::new(METHOD, &facts, tensors)
    }
}

/// A state that was kept, with the seconds that it took.
fn read_state<T: Precision>(
    saved: SavedState,
    weights: usize,
    options: &MeanFieldOptions,
    seed: u64,
) -> Result<(State<T>, f64), LaplaceError> {
    let (facts, mut tensors) = saved.open::<Facts>(METHOD)?;
    if facts.options != *options || facts.seed != seed {
        let problem = "what was kept is of a mean-field fit with other settings or another seed: start again without it";
        return Err(LaplaceError::Request(problem.into()));
    }
    let second = if options.rule.moments()[1] { weights } else { 0 };
    let mut values = [Vec::new(), Vec::new()];
    let mut moments = [[Vec::new(), Vec::new()], [Vec::new(), Vec::new()]];
    for k in 0..2 {
        values[k] = tensors.take(VALUES[k], &[weights])?;
        moments[k] = [tensors.take(MOMENTS[k][0], &[weights])?, tensors.take(MOMENTS[k][1], &[second])?];
    }
    let Facts { step, noise_factor, sums, summary, .. } = facts;
    let Summary { history, restarts, seconds } = summary;
    Ok((State { step, restarts, values, moments, noise_factor, sums, history }, seconds))
}

impl<T: Precision> MeanField<T> {
    /// Adds means and deviations to a file's arrays; selection, likelihood, samples, seed and summary belong to the header.
    pub fn write(&self, tensors: &mut Tensors) {
        tensors.insert_vector(VALUES[0], &self.mean);
        tensors.insert_vector(VALUES[1], &self.log_deviation);
    }

    /// The same again; `likelihood` is that of [`Self::likelihood`].
    ///
    /// # Errors
    /// When arrays are missing or of another size, or there are fewer than two draws.
    pub fn read(
        selection: Selection,
        likelihood: OutputLikelihood,
        (samples, seed): (usize, u64),
        summary: Summary,
        tensors: &mut Tensors,
    ) -> Result<Self, LaplaceError> {
        if samples < 2 {
            return Err(tensors.corrupt(format!("{samples} draws of the weights have no covariance")).into());
        }
        let mean = tensors.take(VALUES[0], &[selection.len()])?;
        let log_deviation = tensors.take(VALUES[1], &[selection.len()])?;
        let draws = OnceLock::new();
        Ok(Self { selection, likelihood, mean, log_deviation, samples, seed, draws, summary })
    }
}
