//! **Scores on examples that neither network nor posterior has learned from**: the only ones that say whether error bars help.

use crate::LaplaceError;
use crate::fit::Laplace;
use crate::learned::SampledPredictions;
use crate::predict::Latent;
use crate::run::{Run, Stage};
use crate::scores::{UnseenScores, check_enough, wanted};
use posterior_likelihoods::{Integration, OutputLikelihood, Prediction, PredictiveRule, PredictiveWorkspace};
use posterior_linalg::compiled_here;
use posterior_networks::train::Examples;
use posterior_networks::{Network, PerNetworkPrecision, Precision};
use posterior_tangent::{Batch, doubles, ranges};

/// Half the width of a central 95 % interval in standard deviations.
const HALF_WIDTH: f64 = 1.959_963_984_540_054;

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
        latent: &Latent,
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
    run: &mut Run<'_>,
) -> Result<UnseenPredictions, LaplaceError> {
    compiled_here!(T: Precision, PerNetworkPrecision; ['a, 'r: 'a] predict, (
        network: &'a Network<T> = network,
        laplace: &'a Laplace<T> = laplace,
        unseen: &'a dyn Examples<T> = unseen,
        run: &'a mut Run<'r> = run,
    ) -> Result<UnseenPredictions, LaplaceError>)
}

fn predict<T: Precision>(
    network: &Network<T>,
    laplace: &Laplace<T>,
    unseen: &dyn Examples<T>,
    run: &mut Run<'_>,
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
        run.step(Stage::Validation, end, unseen.len())?;
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
    run: &mut Run<'_>,
) -> Result<UnseenScores, LaplaceError> {
    compiled_here!(T: Precision, PerNetworkPrecision; ['a, 'r: 'a] score, (
        network: &'a Network<T> = network,
        laplace: &'a Laplace<T> = laplace,
        plain: &'a OutputLikelihood = plain,
        unseen: &'a dyn Examples<T> = unseen,
        run: &'a mut Run<'r> = run,
    ) -> Result<UnseenScores, LaplaceError>)
}

fn score<T: Precision>(
    network: &Network<T>,
    laplace: &Laplace<T>,
    plain: &OutputLikelihood,
    unseen: &dyn Examples<T>,
    run: &mut Run<'_>,
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
        let certain = Latent::certain(laplace.likelihood().outputs(), outputs);
        other.add(&plain_rule, &certain, &batch)?;
        run.step(Stage::Validation, end, unseen.len())?;
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
