//! **MacKay's loop** (thesis eq. 3.42): train to a minimum, maximise the evidence there, train again, until hyperparameters stay.

use super::likelihood::{decay_of_unit_precision, decays, likelihood};
use super::{OnlineOptions, OnlineStep};
use crate::{Accumulator, Approximation, FisherEstimate, FitOptions, LaplaceError, Plan, PriorKind, Stage};
use posterior_linear::Prior;
use posterior_linear::curvature::is_gaussian;
use posterior_linear::evidence::{EvidenceOptions, LaplaceEvidence, Maximiser};
use posterior_networks::train::{
    Adjustment, EpochHook, Examples, Keep, Loss, TrainError, TrainOptions, train_with,
};
use posterior_networks::{Network, Precision};
use posterior_optim::{Observer, Reason, Signal};
use serde::{Deserialize, Serialize};

/// How long the loop goes on.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RetrainingOptions {
    /// Rounds of training and maximisation at most.
    pub rounds: usize,
    /// The loop ends when no logarithm of a hyperparameter changes by more in a round.
    pub tolerance: f64,
    /// Whether a round starts from the weights of the last one instead of the first weights.
    pub warm: bool,
    /// How the maximum of the evidence is looked for.
    pub maximiser: Maximiser,
}

impl Default for RetrainingOptions {
    fn default() -> Self {
        Self { rounds: 20, tolerance: 1e-2, warm: true, maximiser: Maximiser::Gradient }
    }
}

/// What the loop found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RetrainingReport {
    /// Names of the groups with a precision each.
    pub groups: Vec<String>,
    /// The maximum of each round; `epoch` counts rounds, and the last one belongs to the weights returned.
    pub trace: Vec<OnlineStep>,
    /// Whether the tolerance was reached.
    pub converged: bool,
}

/// Fixed weight decay and noise.
struct Fixed<T> {
    weight_decay: Vec<f64>,
    log_variance: Option<Vec<T>>,
}

impl<T: Precision> EpochHook<T> for Fixed<T> {
    fn keep(&self) -> Keep {
        Keep::Last
    }
    fn start(&mut self, _: &Network<T>, _: &mut String) -> Result<Adjustment<T>, TrainError> {
        let (weight_decay, log_variance) = (self.weight_decay.clone(), self.log_variance.clone());
        Ok(Adjustment { weight_decay, log_variance, score: None })
    }
    fn due(&self, _: usize) -> bool {
        false
    }
    fn run(
        &mut self,
        _: &Network<T>,
        _: usize,
        _: &[T],
        _: &mut String,
    ) -> Result<Option<Adjustment<T>>, TrainError> {
        Ok(None)
    }
}

/// Alternates whole training runs with maxima of the evidence. Of `online` it uses weights, curvature, prior, starting values, whether noise is learned, and memory; `options`
/// should reach a minimum in each round. The observer is shown the round, from 0, and may stop the run, which is then an error.
///
/// Cost: a training run and a curvature pass for each round.
///
/// # Errors
/// As [`train_online`](super::train_online); [`LaplaceError::Interrupted`].
pub fn mackay_retraining<T: Precision>(
    network: Network<T>,
    examples: &dyn Examples<T>,
    options: &TrainOptions,
    online: &OnlineOptions,
    retraining: &RetrainingOptions,
    observer: &mut Observer<'_, usize>,
) -> Result<(Network<T>, RetrainingReport), LaplaceError> {
    online.check(&TrainOptions { epochs: usize::MAX, ..*options }, true)?;
    let refuse = |problem: &str| Err(LaplaceError::Request(problem.into()));
    if online.first_order {
        return refuse("at a minimum the first-order term vanishes: leave it out");
    }
    if options.patience.is_some() {
        return refuse("retraining goes to a minimum of the regularised loss: leave patience out");
    }
    if retraining.rounds == 0 || retraining.tolerance.is_nan() || retraining.tolerance < 0.0 {
        return refuse("retraining needs at least one round and a tolerance of at least 0");
    }
    let Some(form) = online.approximation.form() else {
        return refuse("this curvature is not made of sums");
    };
    let estimate = match online.approximation {
        Approximation::Kronecker(estimate) => estimate,
        _ => FisherEstimate::Exact,
    };
    let outputs: usize = network.graph().output_shape().iter().product();
    let likelihood = likelihood(&network, examples, options.loss, &vec![1.0; outputs])?;
    let gaussian = is_gaussian(&likelihood);
    let selection =
        online.weights.select(&network, true, examples, &likelihood, 0, &mut |_, _, _| Signal::Continue)?;
    let plan = Plan::new(&network, &selection, examples.len(), &likelihood, &online.approximation);
    plan.check(&FitOptions { memory: online.memory, ..FitOptions::default() })?;
    let kind = if online.prior == PriorKind::Auto { PriorKind::Layerwise } else { online.prior.clone() };
    let mut noise = if gaussian { online.initial_noise } else { 1.0 };
    let unit = decay_of_unit_precision(&network, noise, options.loss, examples.len());
    let (decay, _) = options.rule.weight_decay();
    let precision = online.initial_precision.unwrap_or(if decay > 0.0 { decay / unit } else { 1.0 });
    let mut prior: Prior = kind.prior(network.graph(), &selection, precision)?;
    let mut report = RetrainingReport { groups: prior.names().to_vec(), trace: Vec::new(), converged: false };
    let first = network.clone();
    let mut current = network;
    for round in 0..retraining.rounds {
        let weight_decay = decays(&current, &selection, &prior, noise, options, examples.len());
        let held = gaussian && options.loss == Loss::Gaussian;
        let log_variance = held.then(|| vec![T::from_f64(noise.ln()); outputs]);
        let mut hook = Fixed { weight_decay, log_variance };
        let start = if retraining.warm { current } else { first.clone() };
        let trained =
            train_with(start, examples, None, options, Some(&mut hook), None, &mut |progress, _| {
                observer(progress, &round)
            })?;
        if trained.reason == Reason::Interrupted {
            return Err(LaplaceError::Interrupted);
        }
        current = trained.network;
        let last = report.trace.last().map(|s| s.epoch);
        let mut sums = Accumulator::new(&current, &selection, form, estimate)?;
        sums.extend(&current, examples, &likelihood, 0, &mut |_: Stage, _, _| Signal::Continue)?;
        let structure = sums.finish()?;
        let weights: Vec<f64> = selection.flatten(current.parameters()).iter().map(|v| v.to_f64()).collect();
        let evidence =
            LaplaceEvidence::new(&structure, prior.clone(), &weights, sums.fit().data_fit(&likelihood))?;
        let found = evidence.maximise(
            noise,
            online.learn_noise,
            retraining.maximiser,
            &EvidenceOptions::default(),
        )?;
        let change = prior
            .precisions()
            .iter()
            .zip(found.prior.precisions())
            .map(|(a, b)| (b / a).ln().abs())
            .chain([(found.noise_variance / noise).ln().abs()])
            .fold(0.0, f64::max);
        report.trace.push(OnlineStep {
            epoch: last.unwrap_or(0) + 1,
            precisions: found.prior.precisions().to_vec(),
            noise_variances: if gaussian { vec![found.noise_variance; outputs] } else { Vec::new() },
            log_evidence: found.value.log_evidence,
            log_evidence_before: found.steps[0].log_evidence,
            log_likelihood: found.value.log_likelihood,
            first_order: None,
            effective_dimension: found.value.effective_dimensions.iter().sum(),
        });
        (prior, noise) = (found.prior, found.noise_variance);
        if change <= retraining.tolerance {
            report.converged = true;
            break;
        }
    }
    Ok((current, report))
}
