//! What happens **between epochs**: curvature at the current weights, steps up the evidence, new weight decay.

use super::evidence::TangentEvidence;
use super::likelihood::{decay_of_unit_precision, decays, gradient, likelihood, relative_variances};
use super::{OnlineOptions, OnlineReport, OnlineStep, Select};
use crate::problem::Data;
use crate::run::Run;
use crate::{Accumulator, FisherEstimate, FitOptions, LaplaceError, Mode, Plan, PriorKind};
use posterior_likelihoods::OutputLikelihood;
use posterior_linear::Prior;
use posterior_linear::curvature::is_gaussian;
use posterior_networks::train::{
    Adjustment, EpochHook, Examples, Keep, Loss, TrainError, TrainOptions, Trained,
};
use posterior_networks::{Network, Precision, Selection};
use posterior_optim::Adaptive;
use posterior_tangent::doubles;
use serde::{Deserialize, Serialize};

/// What lasts from epoch to epoch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Memory {
    precisions: Vec<f64>,
    /// Noise variance: multiplies the relative ones.
    noise: f64,
    /// Relative noise variances by target.
    relative: Vec<f64>,
    /// Whether the noise has been taken over from the optimiser.
    noise_known: bool,
    adam: Option<Adaptive>,
    trace: Vec<OnlineStep>,
}

/// Learns hyperparameters between the epochs of a training run.
pub(super) struct OnlineHook<'a, T> {
    examples: &'a dyn Examples<T>,
    options: &'a TrainOptions,
    online: &'a OnlineOptions,
    selection: Selection,
    prior: Prior,
    start: Memory,
    run: Run<'a>,
}

fn wrapped(error: LaplaceError) -> TrainError {
    TrainError::Hook(Box::new(error))
}

fn parse(memory: &str) -> Result<Memory, LaplaceError> {
    posterior_store::from_text(memory).map_err(|e| {
        LaplaceError::Request(format!("the saved hyperparameters are damaged ({e}): start afresh"))
    })
}

impl<'a, T: Precision> OnlineHook<'a, T> {
    pub(super) fn new(
        network: &Network<T>,
        examples: &'a dyn Examples<T>,
        options: &'a TrainOptions,
        online: &'a OnlineOptions,
        mut run: Run<'a>,
    ) -> Result<Self, LaplaceError> {
        let outputs: usize = network.graph().output_shape().iter().product();
        let relative = vec![1.0; outputs];
        let likelihood = likelihood(network, examples, options.loss, &relative)?;
        if online.first_order && !is_gaussian(&likelihood) {
            return Err(LaplaceError::Request(
                "the first-order term of the evidence is known for Gaussian noise only: leave it out".into(),
            ));
        }
        let data = Data::new(network, examples, &likelihood);
        let selection = online.weights.select(&data, true, 0, &mut run)?;
        let (approximation, memory) = (online.approximation.clone(), online.memory);
        let fit = FitOptions { approximation, memory, mode: Mode::Trained, ..FitOptions::default() };
        Plan::new(&data.size(&selection), &fit)?.check(&fit)?;
        let kind = match &online.prior {
            PriorKind::Auto => PriorKind::Layerwise,
            other => other.clone(),
        };
        let noise = if is_gaussian(&likelihood) { online.initial_noise } else { 1.0 };
        let unit = decay_of_unit_precision(network.graph(), noise, options.loss, examples.len());
        let (decay, _) = options.rule.weight_decay();
        let precision = online.initial_precision.unwrap_or(if decay > 0.0 { decay / unit } else { 1.0 });
        let prior = kind.prior(network.graph(), &selection, precision)?;
        let start = Memory {
            precisions: prior.precisions().to_vec(),
            noise,
            relative: if is_gaussian(&likelihood) { relative } else { Vec::new() },
            noise_known: options.loss == Loss::Mse,
            adam: None,
            trace: Vec::new(),
        };
        Ok(Self { examples, options, online, selection, prior, start, run })
    }

    /// Weight decay for hyperparameters.
    fn adjustment(&self, network: &Network<T>, memory: &Memory) -> Result<Adjustment<T>, LaplaceError> {
        let prior = self.prior.with_precisions(&memory.precisions)?;
        let weight_decay =
            decays(network.graph(), &self.selection, &prior, memory.noise, self.options, self.examples.len());
        let held = self.online.learn_noise
            && self.options.loss == Loss::Gaussian
            && memory.noise_known
            && !memory.relative.is_empty();
        let log = |r: &f64| T::from_f64((memory.noise * r).ln());
        let log_variance = held.then(|| memory.relative.iter().map(log).collect());
        Ok(Adjustment { weight_decay, log_variance, score: None })
    }

    /// One move; None when it was interrupted.
    fn step(
        &mut self,
        network: &Network<T>,
        epoch: usize,
        log_variance: &[T],
        memory: &mut Memory,
    ) -> Result<Option<OnlineStep>, LaplaceError> {
        let Some(form) = self.online.approximation.form() else {
            return Err(LaplaceError::Request("this curvature is not made of sums".into()));
        };
        if self.options.loss == Loss::Gaussian && !log_variance.is_empty() {
            let logs: Vec<f64> = log_variance.iter().map(|v| v.to_f64()).collect();
            let mean = logs.iter().sum::<f64>() / logs.len() as f64;
            if !self.online.learn_noise || !memory.noise_known {
                memory.noise = mean.exp();
                memory.relative = logs.iter().map(|l| (l - mean).exp()).collect();
                memory.noise_known = true;
            }
            if self.online.learn_noise && logs.len() > 1 {
                // Ratios follow the residuals, the evidence finds their common factor.
                let own = likelihood(network, self.examples, self.options.loss, &memory.relative)?;
                memory.relative = relative_variances(network, self.examples, &own)?;
            }
        }
        let likelihood: OutputLikelihood =
            likelihood(network, self.examples, self.options.loss, &memory.relative)?;
        let mut estimate = self.online.approximation.estimate();
        if let FisherEstimate::MonteCarlo { seed, .. } = &mut estimate {
            *seed = seed.wrapping_add(epoch as u64);
        }
        let mut sums = Accumulator::new(network, &self.selection, form, estimate)?;
        let data = Data::new(network, self.examples, &likelihood);
        match sums.extend(&data, 0, &mut self.run) {
            Err(LaplaceError::Interrupted) => return Ok(None),
            other => other?,
        }
        let first_order = if self.online.first_order {
            match gradient(&data, &self.selection, &mut self.run)? {
                None => return Ok(None),
                some => some,
            }
        } else {
            None
        };
        let structure = sums.finish()?;
        let weights = doubles(&self.selection.flatten(network.parameters()));
        let fit = sums.fit().data_fit(&likelihood);
        let prior = self.prior.with_precisions(&memory.precisions)?;
        let evidence = TangentEvidence::new(&structure, prior, &weights, first_order.as_deref(), fit)?;
        let (before, value, term) = evidence.climb(
            &mut memory.precisions,
            &mut memory.noise,
            self.online.learn_noise,
            self.online.rule,
            self.online.steps,
            &mut memory.adam,
        )?;
        if !value.log_evidence.is_finite() {
            return Err(LaplaceError::Request(format!(
                "the evidence of the weights of epoch {epoch} is not finite: use a smaller learning rate, or check the data"
            )));
        }
        let step = OnlineStep {
            epoch,
            precisions: memory.precisions.clone(),
            noise_variances: memory.relative.iter().map(|r| r * memory.noise).collect(),
            log_evidence: value.log_evidence,
            log_evidence_before: before,
            log_likelihood: value.log_likelihood,
            first_order: self.online.first_order.then_some(term),
            effective_dimension: value.effective_dimensions.iter().sum(),
        };
        memory.trace.push(step.clone());
        Ok(Some(step))
    }

    /// What became of it all.
    pub(super) fn report(&self, trained: &Trained<T>) -> Result<OnlineReport, LaplaceError> {
        let memory = match &trained.state.hook {
            Some(hook) => parse(&hook.memory)?,
            None => self.start.clone(),
        };
        let last = trained.state.history.len();
        let epoch = trained.best_epoch.unwrap_or(last);
        let chosen = memory.trace.iter().rev().find(|s| s.epoch <= epoch);
        Ok(OnlineReport {
            curvature: self.online.approximation.name().into(),
            groups: self.prior.names().to_vec(),
            select: self.online.select,
            epoch,
            precisions: chosen.map_or_else(|| self.start.precisions.clone(), |s| s.precisions.clone()),
            noise_variances: chosen.map_or_else(Vec::new, |s| s.noise_variances.clone()),
            trace: memory.trace,
        })
    }
}

impl<T: Precision> EpochHook<T> for OnlineHook<'_, T> {
    fn keep(&self) -> Keep {
        self.online.select.keep()
    }

    fn start(&mut self, network: &Network<T>, memory: &mut String) -> Result<Adjustment<T>, TrainError> {
        *memory = text(&self.start).map_err(wrapped)?;
        self.adjustment(network, &self.start).map_err(wrapped)
    }

    fn due(&self, epoch: usize) -> bool {
        self.online.due(epoch, self.options.epochs)
    }

    fn run(
        &mut self,
        network: &Network<T>,
        epoch: usize,
        log_variance: &[T],
        memory: &mut String,
    ) -> Result<Option<Adjustment<T>>, TrainError> {
        let mut own = parse(memory).map_err(wrapped)?;
        let Some(step) = self.step(network, epoch, log_variance, &mut own).map_err(wrapped)? else {
            return Ok(None);
        };
        let mut adjustment = self.adjustment(network, &own).map_err(wrapped)?;
        adjustment.score = (self.online.select == Select::Evidence).then_some(-step.log_evidence);
        *memory = text(&own).map_err(wrapped)?;
        Ok(Some(adjustment))
    }
}

fn text(memory: &Memory) -> Result<String, LaplaceError> {
    posterior_store::to_value(memory)
        .map(|value| value.to_string())
        .map_err(|e| LaplaceError::Request(format!("hyperparameters cannot be written down: {e}")))
}
