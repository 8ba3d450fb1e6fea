//! **Scores on examples that neither network nor posterior has learned from**: the only ones that say whether error bars help.

use crate::fit::Laplace;
use crate::mean_field::SampledPredictions;
use crate::tune::wanted;
use crate::{LaplaceError, Stage};
use posterior_likelihoods::{Integration, OutputLikelihood, Prediction, PredictiveRule, PredictiveWorkspace};
use posterior_linalg::compiled_here;
use posterior_networks::train::Examples;
use posterior_networks::{Network, PerNetworkPrecision, Precision};
use posterior_optim::Signal;
use posterior_tangent::{Batch, doubles, ranges};
use serde::{Deserialize, Serialize};

/// Held-out examples that a comparison needs. The negative log density of a calibrated Gaussian prediction, `z^2 / 2` and a constant, has the standard deviation `1 / sqrt 2` from example to
/// example, so that the mean of `m` is known to `1 / sqrt(2 m)` nats: to a tenth for 50. With fewer, differences that matter drown in chance.
pub const LEAST_HELD_OUT: usize = 50;

/// Half the width of a central 95 % interval in standard deviations.
const HALF_WIDTH: f64 = 1.959_963_984_540_054;

/// What unseen examples say. Where the same examples chose anything of the fit ([`chooses_on_unseen`](crate::FitOptions::chooses_on_unseen)), that flatters it a little.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct UnseenScores {
    /// Examples.
    pub examples: usize,
    /// Mean negative log predictive density, nats, in the network's units.
    pub nll: f64,
    /// The plain network's.
    pub plain_nll: f64,
    /// Standard error of the mean difference of the two.
    pub difference_error: f64,
    /// Share of observed numbers within their central 95 % intervals; None for classes, events and counts.
    pub coverage: Option<f64>,
    /// The plain network's.
    pub plain_coverage: Option<f64>,
}

/// Refuses held-out examples that are too few to compare anything on.
///
/// # Errors
/// [`LaplaceError::Request`] with the number that is needed.
pub fn check_enough(examples: usize) -> Result<(), LaplaceError> {
    if examples >= LEAST_HELD_OUT {
        return Ok(());
    }
    Err(LaplaceError::Request(format!(
        "{examples} held-out examples are too few: a mean score of m examples is uncertain by about 1 / sqrt(2 m) nats, so at least {LEAST_HELD_OUT} are needed for a tenth of a nat; \
         give more, or let the evidence choose (--tune evidence), which needs none"
    )))
}

/// Sums over one method's predictions.
#[derive(Default)]
struct Tally {
    nll: Vec<f64>,
    inside: usize,
    numbers: usize,
}

impl Tally {
    fn add<T: Precision>(
        &mut self,
        rule: &PredictiveRule,
        latent: &crate::Latent,
        batch: &Batch<T>,
    ) -> Result<(), LaplaceError> {
        let mut workspace = PredictiveWorkspace::default();
        let mut prediction = rule.empty_prediction();
        for i in 0..batch.range.len() {
            let target = batch.target(i);
            self.nll.push(-rule.log_predictive_density_with(target, latent.example(i), &mut workspace)?);
            rule.predict_into(latent.example(i), &mut workspace, &mut prediction)?;
            self.count(rule.likelihood(), target, &prediction);
        }
        Ok(())
    }

    /// The same of predictions that are mixtures, with their densities.
    fn add_sampled<T: Precision>(
        &mut self,
        likelihood: &OutputLikelihood,
        sampled: &SampledPredictions,
        batch: &Batch<T>,
    ) {
        self.nll.extend(sampled.log_densities.iter().flatten().map(|density| -density));
        for (i, prediction) in sampled.predictions.iter().enumerate() {
            self.count(likelihood, batch.target(i), prediction);
        }
    }

    fn count(&mut self, likelihood: &OutputLikelihood, target: &[f64], prediction: &Prediction) {
        if let (true, Prediction::Moments { mean, variance, .. }) = (has_intervals(likelihood), prediction) {
            let pairs = target.iter().zip(mean).zip(variance);
            self.inside += pairs.filter(|((y, m), v)| (*y - *m).abs() <= HALF_WIDTH * v.sqrt()).count();
            self.numbers += target.len();
        }
    }

    fn coverage(&self) -> Option<f64> {
        (self.numbers > 0).then(|| self.inside as f64 / self.numbers as f64)
    }
}

/// Whether observations are Gaussian given the input.
fn has_intervals(likelihood: &OutputLikelihood) -> bool {
    use OutputLikelihood::{FullGaussian, Gaussian, HeteroscedasticGaussian};
    matches!(likelihood, Gaussian(_) | FullGaussian(_) | HeteroscedasticGaussian(_))
}

/// What a posterior predicts of examples that neither it nor its network has learned from, beside what came true; in the network's units.
#[derive(Clone, Debug)]
pub struct UnseenPredictions {
    /// Of each example, by the fit's own predictive.
    pub predictions: Vec<Prediction>,
    /// Targets as the likelihood takes them, [examples, width].
    pub targets: Vec<f64>,
}

/// Predicts unseen examples with the posterior's own predictive: what intervals and probabilities are recalibrated by. Cost: that of predicting them; memory: the predictions, and covariances of 512 examples at a time.
///
/// # Errors
/// Bad targets or inputs, interruption.
pub fn unseen_predictions<T: Precision>(
    network: &Network<T>,
    laplace: &Laplace<T>,
    unseen: &dyn Examples<T>,
    observer: &mut dyn FnMut(Stage, usize, usize) -> Signal,
) -> Result<UnseenPredictions, LaplaceError> {
    compiled_here!(T: Precision, PerNetworkPrecision; ['a, 'b: 'a] predict, (
        network: &'a Network<T> = network,
        laplace: &'a Laplace<T> = laplace,
        unseen: &'a dyn Examples<T> = unseen,
        observer: &'a mut (dyn FnMut(Stage, usize, usize) -> Signal + 'b) = observer,
    ) -> Result<UnseenPredictions, LaplaceError>)
}

fn predict<T: Precision>(
    network: &Network<T>,
    laplace: &Laplace<T>,
    unseen: &dyn Examples<T>,
    observer: &mut dyn FnMut(Stage, usize, usize) -> Signal,
) -> Result<UnseenPredictions, LaplaceError> {
    let rule = laplace.rule(laplace.integration())?;
    let wanted = wanted(laplace.integration(), laplace.likelihood());
    let mut workspace = PredictiveWorkspace::default();
    let mut out = UnseenPredictions { predictions: Vec::with_capacity(unseen.len()), targets: Vec::new() };
    for range in ranges(0, unseen.len(), 512) {
        let end = range.end;
        let batch = Batch::read(unseen, range, laplace.likelihood())?;
        let sampled = match laplace.integration() {
            Integration::PlugIn => None,
            _ => laplace.own_predictive(network, &batch.x, None).transpose()?,
        };
        match sampled {
            Some(sampled) => out.predictions.extend(sampled.predictions),
            None => {
                let latent = laplace.latent(network, &batch.x, wanted)?;
                for i in 0..batch.range.len() {
                    let mut prediction = rule.empty_prediction();
                    rule.predict_into(latent.example(i), &mut workspace, &mut prediction)?;
                    out.predictions.push(prediction);
                }
            }
        }
        out.targets.extend_from_slice(&batch.targets);
        if observer(Stage::Validation, end, unseen.len()) == Signal::Stop {
            return Err(LaplaceError::Interrupted);
        }
    }
    Ok(out)
}

/// Scores a posterior, with its own predictive, and its plain network, whose likelihood is `plain` (under Gaussian noise with the variance that the network alone leaves in training).
///
/// # Errors
/// Too few examples ([`check_enough`]), bad targets or inputs, interruption.
pub fn unseen_scores<T: Precision>(
    network: &Network<T>,
    laplace: &Laplace<T>,
    plain: &OutputLikelihood,
    unseen: &dyn Examples<T>,
    observer: &mut dyn FnMut(Stage, usize, usize) -> Signal,
) -> Result<UnseenScores, LaplaceError> {
    compiled_here!(T: Precision, PerNetworkPrecision; ['a, 'b: 'a] score, (
        network: &'a Network<T> = network,
        laplace: &'a Laplace<T> = laplace,
        plain: &'a OutputLikelihood = plain,
        unseen: &'a dyn Examples<T> = unseen,
        observer: &'a mut (dyn FnMut(Stage, usize, usize) -> Signal + 'b) = observer,
    ) -> Result<UnseenScores, LaplaceError>)
}

fn score<T: Precision>(
    network: &Network<T>,
    laplace: &Laplace<T>,
    plain: &OutputLikelihood,
    unseen: &dyn Examples<T>,
    observer: &mut dyn FnMut(Stage, usize, usize) -> Signal,
) -> Result<UnseenScores, LaplaceError> {
    check_enough(unseen.len())?;
    let rule = laplace.rule(laplace.integration())?;
    let plain_rule = PredictiveRule::new(plain.clone(), Integration::PlugIn)?;
    let wanted = wanted(laplace.integration(), laplace.likelihood());
    let (mut own, mut other) = (Tally::default(), Tally::default());
    for range in ranges(0, unseen.len(), 512) {
        let end = range.end;
        let batch = Batch::read(unseen, range, laplace.likelihood())?;
        let sampled = match laplace.integration() {
            Integration::PlugIn => None,
            _ => laplace.own_predictive(network, &batch.x, Some(&batch.targets)).transpose()?,
        };
        match sampled {
            Some(sampled) => own.add_sampled(rule.likelihood(), &sampled, &batch),
            None => own.add(&rule, &laplace.latent(network, &batch.x, wanted)?, &batch)?,
        }
        let outputs = doubles(network.forward(&batch.x)?.values());
        let certain = crate::Latent::certain(laplace.likelihood().outputs(), outputs);
        other.add(&plain_rule, &certain, &batch)?;
        if observer(Stage::Validation, end, unseen.len()) == Signal::Stop {
            return Err(LaplaceError::Interrupted);
        }
    }
    let count = own.nll.len() as f64;
    let mean = |v: &[f64]| v.iter().sum::<f64>() / count;
    let differences: Vec<f64> = own.nll.iter().zip(&other.nll).map(|(a, b)| a - b).collect();
    let centre = mean(&differences);
    let squares = differences.iter().map(|d| (d - centre).powi(2)).sum::<f64>();
    Ok(UnseenScores {
        examples: unseen.len(),
        nll: mean(&own.nll),
        plain_nll: mean(&other.nll),
        difference_error: (squares / (count - 1.0).max(1.0) / count).sqrt(),
        coverage: own.coverage(),
        plain_coverage: other.coverage(),
    })
}
