//! **Scores on held-out examples**: the negative log density under the predictive distribution that will be used, and notes on it.

use crate::LaplaceError;
use crate::accumulate::FitSums;
use crate::predict::{Latent, Wanted, displaced};
use crate::problem::Data;
use posterior_likelihoods::{
    FullGaussian, Gaussian, Integration, Likelihood, OutputLikelihood, PredictiveRule, PredictiveWorkspace,
};
use posterior_linear::curvature::is_gaussian;
use posterior_linear::evidence::DataFit;
use posterior_networks::train::Examples;
use posterior_networks::{Array, Network, Precision, Selection};
use posterior_notes::fixes::TUNE_EVIDENCE;
use posterior_optim::Parameters;
use posterior_tangent::{Batch, batch_size, doubles, ranges};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// One point that was tried.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct GridPoint {
    /// Factor on the starting precisions.
    pub precision_factor: f64,
    /// Noise variance, relative to the likelihood's own.
    pub noise_variance: f64,
    /// Mean negative log predictive density; not finite where the predictive failed.
    #[serde(with = "posterior_store::any_number")]
    pub nll: f64,
}

/// What held-out data said.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HeldOutReport {
    /// Examples that were scored.
    pub examples: usize,
    /// Every point tried, in order.
    pub grid: Vec<GridPoint>,
    /// The best of them.
    pub best: GridPoint,
    /// The plain network's score on the same examples.
    pub plain_nll: f64,
    /// The best point is still at the edge of the grid.
    pub at_edge: bool,
    /// Points without a finite score.
    pub not_finite: usize,
}

impl HeldOutReport {
    /// What a reader should know, where the examples may be ones that the network has `seen`.
    pub(crate) fn notes(&self, seen: bool) -> Vec<String> {
        let mut notes = Vec::new();
        if self.at_edge {
            notes.push("the best hyperparameters on held-out data lie at the edge of the grid".into());
        }
        if self.not_finite > 0 {
            notes.push(format!("{} points of the grid had no finite score", self.not_finite));
        }
        if seen {
            notes.push(
                "WARNING: hyperparameters were chosen on rows that the network was trained on. It fits them better than any new row, so that their score favours no error bars at all: \
                 neither it nor the choice says anything about new data"
                    .into(),
            );
        } else if self.best.nll >= self.plain_nll {
            notes.push(format!(
                "on {} held-out examples nothing beats the plain network: NLL {:.4} against {:.4}",
                self.examples, self.best.nll, self.plain_nll
            ));
        }
        notes
    }
}

/// Held-out examples that a comparison needs. The negative log density of a calibrated Gaussian prediction is `z^2 / 2` and a constant. Its standard deviation over
/// examples is `1 / sqrt 2`, so the mean of `m` is known to `1 / sqrt(2 m)` nats: to a tenth for 50. With fewer, chance hides differences that matter.
pub const LEAST_HELD_OUT: usize = 50;

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
         give more, or let the evidence choose ({TUNE_EVIDENCE}), which needs none"
    )))
}

/// Which entries of the covariance an integration uses.
pub fn wanted(integration: Integration, likelihood: &OutputLikelihood) -> Wanted {
    use OutputLikelihood::{FullGaussian, Gaussian};
    match integration {
        Integration::PlugIn | Integration::Probit if !matches!(likelihood, FullGaussian(_) | Gaussian(_)) => {
            Wanted::Diagonal
        }
        _ => Wanted::Full,
    }
}

/// The sum of negative log predictive densities of a batch.
fn batch_nll<T: Precision>(
    rule: &PredictiveRule,
    latent: &Latent,
    batch: &Batch<T>,
) -> Result<f64, LaplaceError> {
    let mut workspace = PredictiveWorkspace::default();
    let mut sum = 0.0;
    for i in 0..batch.range.len() {
        sum -= rule.log_predictive_density_with(batch.target(i), latent.example(i), &mut workspace)?;
    }
    Ok(sum)
}

/// Held-out examples by which posteriors are scored, with the predictive that will be used.
pub(crate) struct Scored<'a, T> {
    /// Network, examples that are scored, and the likelihood before its noise is multiplied.
    pub(crate) data: Data<'a, T>,
    /// How predictive distributions are made of latent ones.
    pub(crate) integration: Integration,
    /// What predictions count beside the posterior ([`displacement`](crate::fit::ModeSummary::displacement)), with its weights.
    pub(crate) displacement: Option<(&'a Selection, &'a [T])>,
}

/// Latent predictions of inputs under several settings.
type Latents<'a, T> = &'a mut dyn FnMut(&Array<T>, Wanted) -> Result<Vec<Latent>, LaplaceError>;

impl<T: Precision> Scored<'_, T> {
    /// Adds the negative log predictive densities of all examples to sums, one for each setting, which has a noise variance. A predictive that fails ends its sum. `done` is told which examples were scored.
    ///
    /// # Errors
    /// Bad targets or inputs, noise that is not positive; what `done` returns.
    pub(crate) fn add(
        &self,
        latents: Latents<'_, T>,
        noise_variances: &[f64],
        sums: &mut [Result<f64, LaplaceError>],
        done: &mut dyn FnMut(Range<usize>) -> Result<(), LaplaceError>,
    ) -> Result<(), LaplaceError> {
        let Data { network, examples, likelihood, .. } = self.data;
        let wanted = wanted(self.integration, likelihood);
        let rule =
            |noise: &f64| Ok(PredictiveRule::new(scaled_noise(likelihood, *noise)?, self.integration)?);
        let rules = noise_variances.iter().map(rule).collect::<Result<Vec<_>, LaplaceError>>()?;
        for range in ranges(0, examples.len(), 512) {
            let batch = Batch::read(examples, range, likelihood)?;
            let mut latents = latents(&batch.x, wanted)?;
            if let Some((selection, displacement)) = self.displacement {
                let moved = displaced(network, selection, &batch.x, displacement)?;
                latents.iter_mut().for_each(|latent| latent.add_squares(&moved));
            }
            for ((sum, rule), latent) in sums.iter_mut().zip(&rules).zip(&latents) {
                if let Ok(so_far) = sum {
                    *sum = batch_nll(rule, latent, &batch).map(|own| *so_far + own);
                }
            }
            done(batch.range)?;
        }
        Ok(())
    }
}

/// How well the network fits its examples, batch by batch; `done` is told how many there have been.
///
/// # Errors
/// Bad targets or inputs; what `done` returns.
pub(crate) fn fit_of_the_network<T: Precision>(
    data: &Data<'_, T>,
    done: &mut dyn FnMut(usize) -> Result<(), LaplaceError>,
) -> Result<FitSums, LaplaceError> {
    let &Data { network, examples, likelihood, .. } = data;
    let mut fit = FitSums::default();
    for range in ranges(0, examples.len(), batch_size(network, 1)) {
        let batch = Batch::read(examples, range, likelihood)?;
        fit.add_batch(likelihood, &batch.targets, &doubles(network.forward(&batch.x)?.values()));
        done(batch.range.end)?;
    }
    Ok(fit)
}

/// The mean negative log density that the network alone gives to examples.
///
/// # Errors
/// Bad targets or inputs.
pub fn plain_nll<T: Precision>(
    network: &Network<T>,
    sets: &[&dyn Examples<T>],
    likelihood: &OutputLikelihood,
) -> Result<f64, LaplaceError> {
    let (mut sum, mut count) = (0.0, 0);
    for examples in sets {
        for range in ranges(0, examples.len(), 512) {
            let batch = Batch::read(*examples, range, likelihood)?;
            let f = network.forward(&batch.x)?;
            let mut fit = FitSums::default();
            fit.add_batch(likelihood, &batch.targets, &doubles(f.values()));
            sum -= fit.log_likelihood;
            count += fit.examples;
        }
    }
    Ok(sum / count.max(1) as f64)
}

/// Noise variance of the network alone, relative to the likelihood's own: what its mean squared residual says, where noise is learned; 1 elsewhere.
pub(crate) fn plain_noise(fit: &FitSums, likelihood: &OutputLikelihood, learned: bool) -> f64 {
    match fit.data_fit(likelihood) {
        DataFit::Gaussian { residual_sum, values, .. } if learned => {
            (residual_sum / values.max(1) as f64).max(1e-12)
        }
        _ => 1.0,
    }
}

/// Nats a row up to which two scores are the same.
const SAME_SCORE: f64 = 1e-3;

/// A remark where the network alone scores better on the rows that judged a process around it.
pub(crate) fn no_better(own: Option<f64>, plain: Option<f64>) -> Option<String> {
    let (own, plain) = (own?, plain?);
    (own > plain + SAME_SCORE).then(|| {
        format!(
            "on the validation rows the network alone is better ({plain:.4} nats a row) than with these error bars ({own:.4}): take more steps, another kernel or another curvature, or `temperature`"
        )
    })
}

/// Whether observations are Gaussian given the input, with a variance that is estimated or that the network predicts.
pub(crate) fn has_noise(likelihood: &OutputLikelihood) -> bool {
    use OutputLikelihood::{FullGaussian, Gaussian, HeteroscedasticGaussian};
    matches!(likelihood, Gaussian(_) | FullGaussian(_) | HeteroscedasticGaussian(_))
}

/// The weight of the data beside the prior: the noise precision, or 1 without Gaussian noise.
pub(crate) fn strength(likelihood: &OutputLikelihood, noise_variance: f64) -> f64 {
    if is_gaussian(likelihood) { 1.0 / noise_variance } else { 1.0 }
}

/// The likelihood with its noise variances multiplied by a factor; likelihoods without noise stay as they are.
///
/// # Errors
/// When the product is not a positive number.
pub fn scaled_noise(likelihood: &OutputLikelihood, factor: f64) -> Result<OutputLikelihood, LaplaceError> {
    let times = |v: &[f64]| v.iter().map(|v| v * factor).collect();
    Ok(match likelihood {
        OutputLikelihood::Gaussian(g) => {
            OutputLikelihood::Gaussian(Gaussian::independent(times(g.noise_variances()))?)
        }
        OutputLikelihood::FullGaussian(g) => {
            OutputLikelihood::FullGaussian(FullGaussian::new(g.outputs(), times(g.covariance()))?)
        }
        other => other.clone(),
    })
}

/// The likelihood with the values that were learned.
pub(crate) fn with_values(likelihood: &OutputLikelihood, values: &[f64]) -> OutputLikelihood {
    let mut out = likelihood.clone();
    out.set_values(values);
    out
}
