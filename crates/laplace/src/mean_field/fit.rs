//! The run: driven, kept on the way, gone on from.

use super::MeanField;
use super::options::MeanFieldOptions;
use super::report::MeanFieldSummary as Summary;
use super::steps::{FineTuning, State};
use crate::LaplaceError;
use crate::checkpointer::SavedState;
use crate::error::check_memory;
use crate::problem::{Data, Problem};
use crate::run::{Run, Stage};
use crate::scores::scaled_noise;
use posterior_likelihoods::OutputLikelihood;
use posterior_networks::{Precision, Selection};
use posterior_optim::{Batches, Clock, Limits, Reason, Sampling, drive};
use posterior_store::Tensors;
use serde::{Deserialize, Serialize};
use std::sync::OnceLock;

/// Name of the method in what is kept.
const METHOD: &str = "mean-field";

/// Names of the arrays in what is kept, means first.
pub(super) const VALUES: [&str; 2] = ["mean_field.mean", "mean_field.log_deviation"];
const MOMENTS: [[&str; 2]; 2] = [
    ["mean_field.mean.first", "mean_field.mean.second"],
    ["mean_field.log_deviation.first", "mean_field.log_deviation.second"],
];

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
        problem: &Problem<'_, T>,
        options: &MeanFieldOptions,
        run: &mut Run<'_>,
    ) -> Result<Self, LaplaceError> {
        let &Problem { data: Data { network, examples, likelihood, .. }, selection, seed, memory } = problem;
        options.check()?;
        problem.check()?;
        if examples.is_empty() || selection.is_empty() {
            let what =
                if selection.is_empty() { "weights to be uncertain" } else { "examples to learn from" };
            return Err(LaplaceError::Request(format!("there are no {what}")));
        }
        let plan = MeanField::plan(&problem.size(selection), options);
        let remedy = "allow more memory, take smaller batches, or choose fewer weights";
        let what = format_args!("mean-field fine-tuning of {} weights", selection.len());
        check_memory(plan.bytes(), memory, what, remedy)?;
        let trained = selection.flatten(network.parameters());
        let (state, before) = match run.checkpointer.earlier() {
            Some(saved) => read_state(saved, selection.len(), options, seed)?,
            None => (State::start(&trained, options, seed), 0.0),
        };
        let names = ["laplace/mean-field/epoch", "laplace/mean-field/order"];
        let batches = Batches::new(examples.len(), options.batch, Sampling::Permutation, seed, names);
        let steps = batches.per_epoch() * options.epochs;
        let mut tuning =
            FineTuning { network: network.clone(), trained, problem, options, batches, state, loss: None };
        let clock = Clock::after(before);
        let limits = Limits { steps, time: None };
        let ended = drive(&mut tuning, limits, clock, &mut |progress, tuning| {
            let done = (Stage::FineTuning, progress.step, steps);
            run.offer(done, || tuning.saved(clock.elapsed().as_secs_f64()))
        });
        let (reason, _) = run.ended(ended)?;
        if reason == Reason::Interrupted && tuning.state.step < steps {
            run.checkpointer.keep(|| tuning.saved(clock.elapsed().as_secs_f64()))?;
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
        let facts = Facts {
            options: self.options.clone(),
            seed: self.problem.seed,
            step,
            noise_factor,
            sums,
            summary,
        };
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
    /// What [`Learned::write`](crate::learned::Learned::write) wrote; `likelihood` is that of [`Self::likelihood`], and selection, draws and summary belong to the header.
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
