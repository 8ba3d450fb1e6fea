//! **Scores on examples that neither network nor posterior has learned from**: the only ones that say whether error bars help.

use crate::LaplaceError;
use crate::fit::Laplace;
use crate::learned::SampledPredictions;
use crate::predict::Latent;
use crate::run::{Run, Stage};
use crate::scores::{UnseenScores, check_enough, has_noise, wanted};
use posterior_likelihoods::{Integration, OutputLikelihood, Prediction, PredictiveRule, PredictiveWorkspace};
use posterior_networks::train::Examples;
use posterior_networks::{Network, Precision};
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
    /// Predictions of a batch with the log densities of its targets.
    fn add<T: Precision>(
        &mut self,
        likelihood: &OutputLikelihood,
        said: &SampledPredictions,
        batch: &Batch<T>,
    ) {
        self.nll.extend(said.log_densities.iter().flatten().map(|density| -density));
        for (i, prediction) in said.predictions.iter().enumerate() {
            let target = batch.target(i);
            if let (true, Prediction::Moments { mean, variance, .. }) = (has_noise(likelihood), prediction) {
                let pairs = target.iter().zip(mean).zip(variance);
                self.inside += pairs.filter(|((y, m), v)| (*y - *m).abs() <= HALF_WIDTH * v.sqrt()).count();
                self.numbers += target.len();
            }
        }
    }

    fn coverage(&self) -> Option<f64> {
        (self.numbers > 0).then(|| self.inside as f64 / self.numbers as f64)
    }
}

/// Predictions of a batch by a rule, with the log densities of its targets where they are `asked` for.
fn by_rule<T: Precision>(
    rule: &PredictiveRule,
    latent: &Latent,
    batch: &Batch<T>,
    asked: bool,
) -> Result<SampledPredictions, LaplaceError> {
    let (mut workspace, mut predictions) = (PredictiveWorkspace::default(), Vec::new());
    let mut densities = Vec::new();
    for i in 0..batch.range.len() {
        if asked {
            let (target, example) = (batch.target(i), latent.example(i));
            densities.push(rule.log_predictive_density_with(target, example, &mut workspace)?);
        }
        let mut prediction = rule.empty_prediction();
        rule.predict_into(latent.example(i), &mut workspace, &mut prediction)?;
        predictions.push(prediction);
    }
    Ok(SampledPredictions { predictions, log_densities: asked.then_some(densities) })
}

/// The same by the posterior's own predictive: a mixture, or the rule at its latent Gaussian.
fn own<T: Precision>(
    network: &Network<T>,
    laplace: &Laplace<T>,
    rule: &PredictiveRule,
    batch: &Batch<T>,
    asked: bool,
) -> Result<SampledPredictions, LaplaceError> {
    let targets = asked.then_some(&batch.targets[..]);
    let sampled = match laplace.integration() {
        Integration::PlugIn => None,
        _ => laplace.own_predictive(network, &batch.x, targets),
    };
    sampled.unwrap_or_else(|| {
        let wanted = wanted(laplace.integration(), laplace.likelihood());
        by_rule(rule, &laplace.latent(network, &batch.x, wanted)?, batch, asked)
    })
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
    let rule = laplace.rule(laplace.integration())?;
    let mut out = UnseenPredictions { predictions: Vec::with_capacity(unseen.len()), targets: Vec::new() };
    for range in ranges(0, unseen.len(), 512) {
        let end = range.end;
        let batch = Batch::read(unseen, range, laplace.likelihood())?;
        out.predictions.extend(own(network, laplace, &rule, &batch, false)?.predictions);
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
    check_enough(unseen.len())?;
    let rule = laplace.rule(laplace.integration())?;
    let plain_rule = PredictiveRule::new(plain.clone(), Integration::PlugIn)?;
    let (mut score, mut plain) = (Tally::default(), Tally::default());
    for range in ranges(0, unseen.len(), 512) {
        let end = range.end;
        let batch = Batch::read(unseen, range, laplace.likelihood())?;
        score.add(rule.likelihood(), &own(network, laplace, &rule, &batch, true)?, &batch);
        let outputs = doubles(network.forward(&batch.x)?.values());
        let certain = Latent::certain(laplace.likelihood().outputs(), outputs);
        plain.add(plain_rule.likelihood(), &by_rule(&plain_rule, &certain, &batch, true)?, &batch);
        run.step(Stage::Validation, end, unseen.len())?;
    }
    let count = score.nll.len() as f64;
    let mean = |v: &[f64]| v.iter().sum::<f64>() / count;
    let differences: Vec<f64> = score.nll.iter().zip(&plain.nll).map(|(a, b)| a - b).collect();
    let centre = mean(&differences);
    let squares = differences.iter().map(|d| (d - centre).powi(2)).sum::<f64>();
    Ok(UnseenScores {
        examples: unseen.len(),
        nll: mean(&score.nll),
        plain_nll: mean(&plain.nll),
        difference_error: (squares / (count - 1.0).max(1.0) / count).sqrt(),
        coverage: score.coverage(),
        plain_coverage: plain.coverage(),
    })
}
