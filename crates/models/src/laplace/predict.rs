//! Predictions of a model and, for comparison, of its plain network.

use super::model::in_precision;
use super::{Fitted, LaplaceModel, SavedPrecision};
use crate::calibration::shrink;
use crate::{ModelData, ModelError, Predicted, PredictedKind, Predictive, Truth};
use posterior_laplace::learned::SampledPredictions;
use posterior_laplace::scores::wanted;
use posterior_laplace::{Latent, Wanted};
use posterior_likelihoods::{Integration, OutputLikelihood, Prediction, PredictiveRule, PredictiveWorkspace};
use posterior_linalg::tiles::pieces;
use posterior_networks::Array;
use rayon::prelude::*;
use std::ops::Range;

/// Examples whose covariances are kept at one time.
pub(super) const PIECE: usize = 512;

impl LaplaceModel {
    /// Predicts examples, recalibrated where the model is; with another integration than the model's own, if one is given. Where the data hold truths, their log densities are computed on the way.
    ///
    /// Memory: the covariances of 512 examples at a time, and the results.
    ///
    /// # Errors
    /// When inputs do not fit or the integration does not suit the likelihood.
    pub fn predict(
        &self,
        data: &ModelData,
        integration: Option<Integration>,
    ) -> Result<Predictive, ModelError> {
        self.predict_with_sets(data, integration, &[])
    }

    /// As [`Self::predict`], with sets of classes of these levels, where rows that the network has not seen tell them.
    ///
    /// # Errors
    /// As [`Self::predict`].
    pub fn predict_with_sets(
        &self,
        data: &ModelData,
        integration: Option<Integration>,
        levels: &[f64],
    ) -> Result<Predictive, ModelError> {
        let own = in_precision!(&self.numbers, fitted => fitted.laplace.integration());
        let Some(known) = self.calibration.under(integration, Some(own)) else {
            return self.predict_as_fitted(data, integration);
        };
        let mut out = self.predict_with(data, integration, (false, known.factors()))?;
        known.apply(levels, &mut out);
        Ok(out)
    }

    /// As [`Self::predict`], before rows that the network has not seen recalibrate anything.
    ///
    /// # Errors
    /// As [`Self::predict`].
    pub fn predict_as_fitted(
        &self,
        data: &ModelData,
        integration: Option<Integration>,
    ) -> Result<Predictive, ModelError> {
        self.predict_with(data, integration, (false, &[]))
    }

    /// What the network alone predicts: its outputs taken at their word, with the best constant noise on the training data.
    ///
    /// # Errors
    /// When inputs do not fit.
    pub fn predict_plain(&self, data: &ModelData) -> Result<Predictive, ModelError> {
        self.predict_with(data, Some(Integration::PlugIn), (true, &[]))
    }

    fn predict_with(
        &self,
        data: &ModelData,
        integration: Option<Integration>,
        (plain, factors): (bool, &[f64]),
    ) -> Result<Predictive, ModelError> {
        let own = in_precision!(&self.numbers, fitted => fitted.laplace.integration());
        let integration = integration.unwrap_or(own);
        let likelihood = if plain { &self.header.plain_likelihood } else { self.likelihood() };
        let rule = PredictiveRule::new(likelihood.clone(), integration)?;
        let (centre, scale) = self.header.data.target_scale();
        let mut out = Predictive::under(&rule);
        out.log_density = data.truth.as_ref().map(|_| Vec::new());
        let wanted = if out.log_density.is_some() {
            wanted(integration, likelihood)
        } else {
            moments_need(integration, likelihood)
        };
        for range in pieces(data.len(), PIECE) {
            let latent = (!plain).then_some(wanted);
            let own = (integration != Integration::PlugIn).then_some(factors);
            let (latent, own) = in_precision!(&self.numbers, fitted => self.latents(fitted, data, range.clone(), (latent, own)))?;
            if let Some(SampledPredictions { predictions, log_densities }) = own {
                out.latent_mean.extend_from_slice(&latent.mean);
                for (i, prediction) in predictions.into_iter().enumerate() {
                    out.latent_deviation.extend(latent.variances(i).map(|v| v.max(0.0).sqrt()));
                    out.push(prediction, (centre, scale));
                }
                if let (Some(all), Some(densities)) = (&mut out.log_density, log_densities) {
                    all.extend(densities.iter().map(|density| density - jacobian(likelihood, scale)));
                }
                continue;
            }
            let rows: Vec<_> = (0..range.len())
                .into_par_iter()
                .map_init(PredictiveWorkspace::default, |workspace, i| -> Result<_, ModelError> {
                    let mut prediction = rule.empty_prediction();
                    let clipping = rule.predict_into(latent.example(i), workspace, &mut prediction)?;
                    let density = match &data.truth {
                        None => None,
                        Some(truth) => {
                            let mut y = target(truth, range.start + i, (centre, scale));
                            shrunk(&prediction, &mut y, factors);
                            Some(rule.log_predictive_density_with(&y, latent.example(i), workspace)?)
                        }
                    };
                    Ok((prediction, clipping, density))
                })
                .collect::<Result<_, _>>()?;
            out.latent_mean.extend_from_slice(&latent.mean);
            out.clipped += latent.clipped;
            for (i, (prediction, clipping, density)) in rows.into_iter().enumerate() {
                out.clipped += usize::from(clipping.count > 0);
                out.latent_deviation.extend(latent.variances(i).map(|v| v.max(0.0).sqrt()));
                out.push(prediction, (centre, scale));
                if let (Some(all), Some(density)) = (&mut out.log_density, density) {
                    // The density of a number in other units.
                    all.push(density - jacobian(likelihood, scale));
                }
            }
        }
        Ok(out)
    }
}

impl LaplaceModel {
    /// Latent predictions of some examples, those of the network alone where nothing is wanted of a covariance, with what a posterior predicts that no latent Gaussian gives where factors are given.
    fn latents<T: SavedPrecision>(
        &self,
        fitted: &Fitted<T>,
        data: &ModelData,
        range: Range<usize>,
        (wanted, factors): (Option<Wanted>, Option<&[f64]>),
    ) -> Result<(Latent, Option<SampledPredictions>), ModelError> {
        let x = self.prepared::<T>(data, range.clone())?;
        let latent = match wanted {
            None => certain(fitted, &x)?,
            Some(wanted) => fitted.laplace.latent(&fitted.network, &x, wanted)?,
        };
        let own = match factors {
            None => None,
            Some(factors) => self.own_predictive(fitted, data, (range, &x), factors)?,
        };
        Ok((latent, own))
    }

    /// What a posterior predicts that no latent Gaussian gives, in the network's units.
    fn own_predictive<T: SavedPrecision>(
        &self,
        fitted: &Fitted<T>,
        data: &ModelData,
        (range, x): (Range<usize>, &Array<T>),
        factors: &[f64],
    ) -> Result<Option<SampledPredictions>, ModelError> {
        let units = self.header.data.target_scale();
        let targets = data.truth.as_ref().map(|truth| {
            range.clone().flat_map(|example| target(truth, example, units)).collect::<Vec<f64>>()
        });
        let own =
            |targets: Option<&[f64]>| fitted.laplace.own_predictive(&fitted.network, x, targets).transpose();
        let found = own(targets.as_deref())?;
        let Some(mut moved) = targets.filter(|_| !factors.is_empty()) else { return Ok(found) };
        let Some(first) = &found else { return Ok(found) };
        // Where targets are moved to follows from the means, which the first round has.
        for (prediction, y) in first.predictions.iter().zip(moved.chunks_mut(factors.len())) {
            shrunk(prediction, y, factors);
        }
        Ok(own(Some(&moved))?)
    }
}

/// The logarithm by which a density in the network's units exceeds that in the target's.
pub(super) fn jacobian(likelihood: &OutputLikelihood, scale: f64) -> f64 {
    if is_gaussian(likelihood) { likelihood.target_width() as f64 * scale.ln() } else { 0.0 }
}

/// What is predicted under a likelihood.
pub(super) fn kind(likelihood: &OutputLikelihood) -> PredictedKind {
    match likelihood {
        OutputLikelihood::Categorical(_) => PredictedKind::Classes,
        OutputLikelihood::Bernoulli(_) => PredictedKind::Events,
        _ => PredictedKind::Values,
    }
}

/// Whether observations have additive noise.
fn is_gaussian(likelihood: &OutputLikelihood) -> bool {
    use OutputLikelihood::{FullGaussian, Gaussian, HeteroscedasticGaussian};
    matches!(likelihood, Gaussian(_) | FullGaussian(_) | HeteroscedasticGaussian(_))
}

/// A target as near to the mean as deviations that are multiplied make it ([`shrink`]).
fn shrunk(prediction: &Prediction, target: &mut [f64], factors: &[f64]) {
    if let Prediction::Moments { mean, .. } = prediction {
        shrink(mean, target, factors);
    }
}

impl Predictive {
    /// Of no example yet.
    fn under(rule: &PredictiveRule) -> Self {
        let (predicted, width) = match rule.empty_prediction() {
            Prediction::Classes(p) => (Predicted::Classes(Vec::new()), p.len()),
            Prediction::Events(p) => (Predicted::Events(Vec::new()), p.len()),
            Prediction::Moments { mean, .. } => {
                let width = mean.len();
                let [mean, variance, latent_variance] = [(); 3].map(|()| Vec::new());
                (Predicted::Moments { mean, variance, latent_variance }, width)
            }
        };
        let likelihood = rule.likelihood();
        Self::empty(predicted, is_gaussian(likelihood), width, likelihood.outputs())
    }

    /// Of these examples, in the network's units.
    pub(super) fn of_examples(rule: &PredictiveRule, predictions: Vec<Prediction>) -> Self {
        let mut out = Self::under(rule);
        predictions.into_iter().for_each(|own| out.push(own, (0.0, 1.0)));
        out
    }

    fn push(&mut self, prediction: Prediction, (centre, scale): (f64, f64)) {
        match (&mut self.predicted, prediction) {
            (Predicted::Classes(all), Prediction::Classes(p))
            | (Predicted::Events(all), Prediction::Events(p)) => {
                all.extend(p);
            }
            (
                Predicted::Moments { mean, variance, latent_variance },
                Prediction::Moments { mean: m, variance: v, latent_variance: l },
            ) => {
                mean.extend(m.into_iter().map(|m| centre + scale * m));
                variance.extend(v.into_iter().map(|v| scale * scale * v));
                latent_variance.extend(l.into_iter().map(|l| scale * scale * l.max(0.0)));
            }
            // The rule gives what its empty prediction promised.
            _ => {}
        }
    }
}

/// Which entries predictions need that are not scored: joint densities alone need correlations under Gaussian noise.
pub(super) fn moments_need(integration: Integration, likelihood: &OutputLikelihood) -> Wanted {
    match (integration, likelihood) {
        (_, OutputLikelihood::Gaussian(_) | OutputLikelihood::FullGaussian(_)) => Wanted::Diagonal,
        _ => wanted(integration, likelihood),
    }
}

/// A truth as the likelihood takes it, in the network's units.
pub(super) fn target(truth: &Truth, example: usize, (centre, scale): (f64, f64)) -> Vec<f64> {
    match truth {
        Truth::Classes(classes) => vec![classes[example] as f64],
        Truth::Values { values, width } => {
            values[example * width..(example + 1) * width].iter().map(|y| (y - centre) / scale).collect()
        }
    }
}

/// The network's outputs without any variance.
fn certain<T: SavedPrecision>(fitted: &Fitted<T>, x: &Array<T>) -> Result<Latent, ModelError> {
    let f = fitted.network.forward(x)?;
    Ok(Latent::certain(f.row_len(), f.values().iter().map(|v| v.to_f64()).collect()))
}
