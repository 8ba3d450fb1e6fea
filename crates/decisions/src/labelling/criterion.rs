//! **Which label would be worth having**, by what is believed of a row.
//!
//! | criterion | value of a row |
//! |---|---|
//! | [`Criterion::Entropy`] | `H(E p(y ∣ f))`, nats: how unsure the prediction is, whatever the reason |
//! | [`Criterion::MutualInformation`] | `I(y; f) = H(E p(y ∣ f)) - E H(p(y ∣ f))`, nats: the part that a label would remove; next to nothing where classes overlap |
//! | [`Criterion::Variance`] | the largest variance of its latent functions: where little is known, whatever the classes |
//! | [`Criterion::Random`] | none |
//!
//! **In a batch** rows are chosen one after the other, and what the labels of those chosen before will tell of this one is taken off: `I(y; y_B)`. A latent value f ~ N(m, s²) of which they
//! will explain the part r of the variance has, once they are known, the mean `m + √r ε` with ε ~ N(0, 1) and the variance s² - r, so
//!
//! ```text
//! I(y; y_B) ≈ H(E p(y ∣ f)) - E_ε H(E[p(y ∣ f) ∣ ε])
//! ```
//!
//! which is 0 for r = 0 and all of I(y; f) for r = s². The sum over a batch is then the entropy of its labels together (or their mutual information with the functions, as in BatchBALD),
//! with pseudo-observations in the place of labels. Two classes by quadrature; more by draws of ε that all rows share, under the probit approximation of the inner expectation.
//!
//! Sources: spec `likelihood_approximations`, section 6.8 (entropy); Houlsby, Huszár, Ghahramani and Lengyel (2011), *Bayesian active learning for classification and preference learning*;
//! Kirsch, van Amersfoort and Gal (2019), *BatchBALD*.

use super::ClassGaussianLabels;
use crate::DecisionError;
use posterior_likelihoods::predictive::LabelInformation;
use posterior_likelihoods::{
    Covariance, GaussHermite, Integration, LatentGaussian, LikelihoodError, OutputLikelihood, Prediction,
    PredictiveRule,
};
use posterior_linalg::random::Streams;
use rand_distr::{Distribution, StandardNormal};
use serde::{Deserialize, Serialize};
use std::f64::consts::PI;

/// Functions drawn for probabilities of more than two classes, and for their mutual information.
const DRAWS: usize = 1000;

/// Pairs of opposite draws for what a batch tells of more than two classes.
const PAIRS: usize = 32;

/// Nodes for what it tells of two.
const NODES: usize = 40;

/// By what rows are chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum Criterion {
    /// Where the prediction is least sure, whatever the reason
    #[default]
    Entropy,
    /// Where a label would remove most of that: not where classes overlap
    MutualInformation,
    /// Where the latent functions are least known, whatever the classes
    Variance,
    /// At random, to compare with
    Random,
}

impl Criterion {
    /// Its name in files and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Entropy => "entropy",
            Self::MutualInformation => "mutual-information",
            Self::Variance => "variance",
            Self::Random => "random",
        }
    }
}

/// What is believed of a row's latent functions, in their own units.
#[derive(Clone, Copy, Debug)]
pub struct Latent<'a> {
    /// C means.
    pub mean: &'a [f64],
    /// C variances.
    pub variance: &'a [f64],
}

/// What is believed of a row's label, nats.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Doubt {
    /// `H(E p(y ∣ f))`.
    pub entropy: f64,
    /// `I(y; f)`.
    pub removable: f64,
}

/// Scores rows by a criterion; prepared once.
#[derive(Clone, Debug)]
pub struct Scoring {
    criterion: Criterion,
    likelihood: OutputLikelihood,
    rule: Option<PredictiveRule>,
    information: LabelInformation,
    quadrature: GaussHermite,
    /// Draws of ε, row by row.
    normals: Vec<f64>,
}

impl Scoring {
    /// For labels of these classes.
    ///
    /// # Errors
    /// [`DecisionError::Likelihood`] for more classes than can be drawn.
    pub fn new(
        criterion: Criterion,
        gaussian_labels: &ClassGaussianLabels,
        seed: u64,
    ) -> Result<Self, DecisionError> {
        let likelihood = gaussian_labels.likelihood()?;
        let several = gaussian_labels.functions() > 1;
        let sampled = Integration::MonteCarlo { samples: DRAWS, seed };
        let rule = several.then(|| PredictiveRule::new(likelihood.clone(), sampled)).transpose()?;
        let mut rng = Streams::new(seed).stream("decisions/batch");
        let count = if several { PAIRS * gaussian_labels.functions() } else { 0 };
        Ok(Self {
            criterion,
            information: LabelInformation::new(&likelihood, DRAWS, seed)?,
            likelihood,
            rule,
            quadrature: GaussHermite::new(NODES),
            normals: (0..count).map(|_| StandardNormal.sample(&mut rng)).collect(),
        })
    }

    /// The criterion.
    pub fn criterion(&self) -> Criterion {
        self.criterion
    }

    /// Probabilities of all K classes. Two classes of one function by quadrature, to rounding; others by a thousand draws that all rows share.
    ///
    /// # Errors
    /// [`DecisionError::Likelihood`] for latent values that are not finite.
    pub fn probabilities(&self, latent: Latent<'_>) -> Result<Vec<f64>, LikelihoodError> {
        let gaussian = gaussian(latent);
        gaussian.check(latent.mean.len())?;
        let prediction = match &self.rule {
            Some(rule) => rule.predict(gaussian)?,
            None => self.likelihood.predict(latent.mean, latent.variance),
        };
        Ok(match prediction {
            Prediction::Events(p) => vec![1.0 - p[0], p[0]],
            Prediction::Classes(p) => p,
            Prediction::Moments { mean, .. } => mean,
        })
    }

    /// Entropy of the label and the part of it that a label would remove.
    ///
    /// # Errors
    /// As [`Self::probabilities`].
    pub fn doubt(&self, latent: Latent<'_>) -> Result<Doubt, LikelihoodError> {
        let removable = self.information.at(gaussian(latent))?.unwrap_or(f64::NAN);
        Ok(Doubt { entropy: entropy(&self.probabilities(latent)?), removable })
    }

    /// What a row's label is worth by itself; 0 at random.
    ///
    /// # Errors
    /// As [`Self::probabilities`].
    pub fn value(&self, latent: Latent<'_>) -> Result<f64, LikelihoodError> {
        Ok(match self.criterion {
            Criterion::Entropy => entropy(&self.probabilities(latent)?),
            Criterion::MutualInformation => self.information.at(gaussian(latent))?.unwrap_or(f64::NAN),
            Criterion::Variance => largest(latent.variance),
            Criterion::Random => 0.0,
        })
    }

    /// How much less it is worth beside labels that will explain part of its variance: `left` of `latent.variance` will remain.
    pub fn information_of_batch(&self, latent: Latent<'_>, left: &[f64]) -> f64 {
        let explained = |c: usize| (latent.variance[c] - left[c]).max(0.0);
        let none = (0..left.len()).all(|c| explained(c) <= 1e-9 * latent.variance[c]);
        if none {
            return 0.0;
        }
        match self.criterion {
            Criterion::Random => 0.0,
            Criterion::Variance => largest(latent.variance) - largest(left),
            _ if self.rule.is_none() => {
                let of = |mean: f64, variance: f64| match self.likelihood.predict(&[mean], &[variance]) {
                    Prediction::Events(p) => entropy(&[p[0], 1.0 - p[0]]),
                    _ => f64::NAN,
                };
                let after: f64 = self
                    .quadrature
                    .nodes(latent.mean[0], explained(0))
                    .map(|(mean, weight)| weight * of(mean, left[0]))
                    .sum();
                (of(latent.mean[0], latent.variance[0]) - after).max(0.0)
            }
            _ => {
                let c = left.len();
                let shrunk = |mean: f64, variance: f64| mean / (1.0 + PI / 8.0 * variance).sqrt();
                let mut logits: Vec<f64> =
                    (0..c).map(|k| shrunk(latent.mean[k], latent.variance[k])).collect();
                let before = entropy_of_logits(&mut logits);
                let mut after = 0.0;
                for normals in self.normals.chunks_exact(c) {
                    for sign in [1.0, -1.0] {
                        for k in 0..c {
                            let mean = latent.mean[k] + sign * explained(k).sqrt() * normals[k];
                            logits[k] = shrunk(mean, left[k]);
                        }
                        after += entropy_of_logits(&mut logits);
                    }
                }
                (before - after / (2 * PAIRS) as f64).max(0.0)
            }
        }
    }
}

fn gaussian(latent: Latent<'_>) -> LatentGaussian<'_> {
    LatentGaussian { mean: latent.mean, covariance: Covariance::Diagonal(latent.variance) }
}

fn largest(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::NEG_INFINITY, f64::max)
}

/// `-Σ p log p`, nats.
fn entropy(probabilities: &[f64]) -> f64 {
    probabilities.iter().filter(|p| **p > 0.0).map(|p| -p * p.ln()).sum()
}

/// That of a softmax; the logits are used up.
fn entropy_of_logits(logits: &mut [f64]) -> f64 {
    let peak = largest(logits);
    let mut total = 0.0;
    for f in logits.iter_mut() {
        *f = (*f - peak).exp();
        total += *f;
    }
    logits.iter_mut().for_each(|p| *p /= total);
    entropy(logits)
}
