//! From latent Gaussians to what will be observed, in the target's own units.

use super::target::Target;
use crate::{Latent, ModelError, Predicted, Predictive};
use posterior_likelihoods::predictive::LabelInformation;
use posterior_likelihoods::{
    Covariance, Integration, LatentGaussian, LikelihoodError, OutputLikelihood, Prediction, PredictiveRule,
    PredictiveWorkspace,
};
use rayon::prelude::*;

/// Functions drawn for probabilities of classes whose latent values are correlated, and for what more data would remove.
const DRAWS: usize = 1000;

/// A likelihood with the way its predictions are taken.
pub(crate) struct Observing<'a> {
    likelihood: &'a OutputLikelihood,
    target: &'a Target,
    /// For correlated latent values, or as asked; closed forms and quadrature of the likelihood itself otherwise.
    rule: Option<PredictiveRule>,
    /// Draws for correlated values where nothing was asked.
    draws: PredictiveRule,
    information: LabelInformation,
}

/// What one point is predicted as.
struct Point {
    prediction: Prediction,
    log_density: Option<f64>,
    information: Option<f64>,
}

impl<'a> Observing<'a> {
    pub(crate) fn new(
        likelihood: &'a OutputLikelihood,
        target: &'a Target,
        asked: Option<Integration>,
    ) -> Result<Self, LikelihoodError> {
        let sampled = match likelihood {
            OutputLikelihood::Categorical(_) => Integration::MonteCarlo { samples: DRAWS, seed: 0 },
            _ => Integration::Probit,
        };
        Ok(Self {
            likelihood,
            target,
            rule: asked.map(|asked| PredictiveRule::new(likelihood.clone(), asked)).transpose()?,
            draws: PredictiveRule::new(likelihood.clone(), sampled)?,
            information: LabelInformation::new(likelihood, DRAWS, 1)?,
        })
    }

    fn point(&self, latents: &Latent, i: usize, truth: Option<f64>) -> Result<Point, LikelihoodError> {
        let (mean, covariance) = (latents.mean_at(i), latents.covariance_at(i));
        let latent = LatentGaussian { mean, covariance };
        let truth = truth.as_ref().map(std::slice::from_ref);
        let by_rule = |rule: &PredictiveRule| -> Result<_, LikelihoodError> {
            let mut workspace = PredictiveWorkspace::default();
            let mut out = rule.empty_prediction();
            rule.predict_into(latent, &mut workspace, &mut out)?;
            let density = truth.map(|y| rule.log_predictive_density_with(y, latent, &mut workspace));
            Ok((out, density.transpose()?))
        };
        let (prediction, log_density) = match (&self.rule, covariance) {
            (Some(rule), _) => by_rule(rule)?,
            (None, Covariance::Full(_)) if latents.functions > 1 => by_rule(&self.draws)?,
            (None, covariance) => {
                let variance = match covariance {
                    Covariance::Diagonal(v) | Covariance::Full(v) => v,
                };
                latent.check(latents.functions)?;
                let density = truth.map(|y| self.likelihood.log_predictive_density(y, mean, variance));
                (self.likelihood.predict(mean, variance), density)
            }
        };
        // Nobody looks at it where predictions are scored.
        let information = if truth.is_none() { self.information.at(latent)? } else { None };
        Ok(Point { prediction, log_density, information })
    }

    /// Predictive distributions of all points, with log densities of truths as the likelihood takes them where there are some. Two classes of one latent value are predicted as two.
    pub(crate) fn predictive(
        &self,
        latents: &Latent,
        truths: Option<&[f64]>,
    ) -> Result<Predictive, ModelError> {
        let points: Vec<Point> = (0..latents.points())
            .into_par_iter()
            .map(|i| self.point(latents, i, truths.map(|y| y[i])))
            .collect::<Result<_, _>>()?;
        let (c, count) = (latents.functions, latents.points());
        let deviation = |i: usize, c: usize| latents.variance(i, c).max(0.0).sqrt();
        let log_density = truths.map(|_| points.iter().map(|p| p.log_density.unwrap_or(f64::NAN)).collect());
        let information: Option<Vec<f64>> = points.iter().map(|p| p.information).collect();
        let mut out = match (self.target, self.likelihood) {
            (Target::Classes { .. }, OutputLikelihood::Bernoulli(_)) => {
                let probability = |p: &Point| match &p.prediction {
                    Prediction::Events(p) => p[0],
                    _ => f64::NAN,
                };
                let both = points.iter().flat_map(|p| [1.0 - probability(p), probability(p)]).collect();
                let mut out = Predictive::empty(Predicted::Classes(both), false, 2, 2);
                // Log-odds f are the softmax of -f/2 and f/2.
                let halves = |i: usize| [-0.5 * latents.mean_at(i)[0], 0.5 * latents.mean_at(i)[0]];
                out.latent_mean = (0..count).flat_map(halves).collect();
                out.latent_deviation = (0..count).flat_map(|i| [0.5 * deviation(i, 0); 2]).collect();
                out
            }
            (Target::Classes { names }, _) => {
                let all = points.iter().flat_map(|p| match &p.prediction {
                    Prediction::Classes(p) => p.clone(),
                    _ => vec![f64::NAN; c],
                });
                let mut out = Predictive::empty(Predicted::Classes(all.collect()), false, names.count(), c);
                out.latent_mean = latents.mean.clone();
                out.latent_deviation = (0..count * c).map(|k| deviation(k / c, k % c)).collect();
                out
            }
            (target, _) => {
                let (shift, scale) = target.units();
                let moments = |p: &Point| match &p.prediction {
                    Prediction::Moments { mean, variance, latent_variance } => {
                        [mean[0], variance[0], latent_variance[0]]
                    }
                    _ => [f64::NAN; 3],
                };
                let each: Vec<[f64; 3]> = points.iter().map(moments).collect();
                let mean: Vec<f64> = each.iter().map(|m| shift + scale * m[0]).collect();
                let latent_variance: Vec<f64> = match target {
                    // Of a rate, in counts: exp(f) is log-normal.
                    Target::Counts { .. } | Target::Events { .. } => {
                        (0..count).map(|i| latents.variance(i, 0).exp_m1() * mean[i] * mean[i]).collect()
                    }
                    _ => each.iter().map(|m| scale * scale * m[2]).collect(),
                };
                // An intensity is not observed: its own uncertainty is all there is.
                let variance = match target {
                    Target::Events { .. } => latent_variance.clone(),
                    _ => each.iter().map(|m| scale * scale * m[1]).collect(),
                };
                let deviations = latent_variance.iter().map(|v| v.max(0.0).sqrt()).collect();
                let mut out = Predictive::empty(
                    Predicted::Moments { mean: mean.clone(), variance, latent_variance },
                    false,
                    1,
                    1,
                );
                out.log_gaussian = matches!(target, Target::Events { .. });
                out.counts = matches!(target, Target::Counts { .. }) && self.rule.is_none();
                (out.latent_mean, out.latent_deviation) = (mean, deviations);
                out
            }
        };
        let (_, scale) = self.target.units();
        out.log_density = log_density.map(|all: Vec<f64>| all.into_iter().map(|l| l - scale.ln()).collect());
        out.removable_entropy = information;
        out.clipped = latents.clipped;
        Ok(out)
    }
}

/// The square of the noise's scale in the target's units, where its variance says little of it: of Student's t.
pub(crate) fn noise_square(target: &Target, likelihood: &OutputLikelihood) -> Option<f64> {
    match (target, likelihood) {
        (Target::Numbers { scale, .. }, OutputLikelihood::StudentT(own)) => {
            Some((scale * own.scale()).powi(2))
        }
        _ => None,
    }
}
