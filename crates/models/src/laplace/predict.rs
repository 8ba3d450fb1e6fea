//! Predictions of a model and, for comparison, of its plain network.

use super::model::in_precision;
use super::{Fitted, LaplaceModel, ModelData, SavedPrecision, Truth};
use crate::ModelError;
use posterior_laplace::{Latent, Wanted, tune::wanted};
use posterior_likelihoods::{Integration, OutputLikelihood, Prediction, PredictiveRule, PredictiveWorkspace};
use posterior_linalg::tiles::pieces;
use posterior_metrics::{entropy, half_width_factor};
use posterior_networks::Array;
use rayon::prelude::*;

/// Examples whose covariances are kept at one time.
pub(super) const PIECE: usize = 512;

/// What is predicted, by kind of likelihood; `width` numbers for each example.
#[derive(Clone, Debug, PartialEq)]
pub enum Predicted {
    /// Class probabilities.
    Classes(Vec<f64>),
    /// Probabilities of events.
    Events(Vec<f64>),
    /// Moments in the target's units.
    Moments {
        /// Means of observations.
        mean: Vec<f64>,
        /// Variances of observations, noise included.
        variance: Vec<f64>,
        /// Variances without noise.
        latent_variance: Vec<f64>,
    },
}

/// Predictions of a set of examples.
#[derive(Clone, Debug, PartialEq)]
pub struct LaplacePredictions {
    /// What is predicted.
    pub predicted: Predicted,
    /// Whether observations are Gaussian given the input, so that they have simple quantiles.
    pub gaussian: bool,
    /// Numbers for each example: classes, events, or numbers of a target.
    pub width: usize,
    /// Outputs of the network for each example.
    pub outputs: usize,
    /// Outputs of the network, `[examples, outputs]`, in its own units.
    pub latent_mean: Vec<f64>,
    /// Standard deviations of the outputs.
    pub latent_deviation: Vec<f64>,
    /// `log p(y | x)` of each example in nats, in the target's units, where truths are known.
    pub log_density: Option<Vec<f64>>,
    /// Latent variances that rounding had made negative and that were taken as zero.
    pub clipped: usize,
}

impl LaplacePredictions {
    /// Number of examples.
    pub fn len(&self) -> usize {
        self.latent_mean.len() / self.outputs.max(1)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Probabilities of classes or events; None for numbers.
    pub fn probabilities(&self) -> Option<&[f64]> {
        match &self.predicted {
            Predicted::Classes(p) | Predicted::Events(p) => Some(p),
            Predicted::Moments { .. } => None,
        }
    }

    /// The `count` most probable classes of each example, most probable first, with their probabilities.
    pub fn top(&self, count: usize) -> Vec<Vec<(usize, f64)>> {
        let Predicted::Classes(p) = &self.predicted else { return Vec::new() };
        let top = |row: &[f64]| {
            let mut order: Vec<usize> = (0..row.len()).collect();
            order.sort_by(|&a, &b| row[b].total_cmp(&row[a]).then(a.cmp(&b)));
            order.truncate(count);
            order.into_iter().map(|c| (c, row[c])).collect()
        };
        p.chunks_exact(self.width).map(top).collect()
    }

    /// Entropy of each example's class probabilities (or the sum over its events), nats; empty for numbers.
    pub fn entropies(&self) -> Vec<f64> {
        match &self.predicted {
            Predicted::Classes(p) => p.chunks_exact(self.width).map(entropy).collect(),
            Predicted::Events(p) => {
                let both = |p: &f64| entropy(&[*p, 1.0 - p]);
                p.chunks_exact(self.width).map(|row| row.iter().map(both).sum()).collect()
            }
            Predicted::Moments { .. } => Vec::new(),
        }
    }

    /// Quantiles at `level` in (0, 1) of observations (or, without noise, of the function) under Gaussian noise; None for other predictions.
    pub fn quantiles(&self, level: f64, noise: bool) -> Option<Vec<f64>> {
        let Predicted::Moments { mean, variance, latent_variance } = &self.predicted else { return None };
        if !self.gaussian {
            return None;
        }
        let z = half_width_factor((2.0 * level - 1.0).abs()) * (level - 0.5).signum();
        let variances = if noise { variance } else { latent_variance };
        Some(mean.iter().zip(variances).map(|(m, v)| m + z * v.sqrt()).collect())
    }
}

impl LaplaceModel {
    /// Predicts examples; with another integration than the model's own, if one is given. Where the data hold truths, their log densities are computed on the way.
    ///
    /// Memory: the covariances of 512 examples at a time, and the results.
    ///
    /// # Errors
    /// When inputs do not fit or the integration does not suit the likelihood.
    pub fn predict(
        &self,
        data: &ModelData,
        integration: Option<Integration>,
    ) -> Result<LaplacePredictions, ModelError> {
        in_precision!(&self.numbers, fitted => self.predict_in(fitted, data, integration, false))
    }

    /// What the network alone predicts: its outputs taken at their word, with the best constant noise on the training data.
    ///
    /// # Errors
    /// When inputs do not fit.
    pub fn predict_plain(&self, data: &ModelData) -> Result<LaplacePredictions, ModelError> {
        in_precision!(&self.numbers, fitted => self.predict_in(fitted, data, Some(Integration::PlugIn), true))
    }

    fn predict_in<T: SavedPrecision>(
        &self,
        fitted: &Fitted<T>,
        data: &ModelData,
        integration: Option<Integration>,
        plain: bool,
    ) -> Result<LaplacePredictions, ModelError> {
        let integration = integration.unwrap_or(fitted.laplace.integration());
        let likelihood = if plain { &self.header.plain_likelihood } else { fitted.laplace.likelihood() };
        let rule = PredictiveRule::new(likelihood.clone(), integration)?;
        let (centre, scale) = self.header.data.target_scale();
        let mut out = LaplacePredictions {
            predicted: match rule.empty_prediction() {
                Prediction::Classes(_) => Predicted::Classes(Vec::new()),
                Prediction::Events(_) => Predicted::Events(Vec::new()),
                Prediction::Moments { .. } => {
                    Predicted::Moments { mean: Vec::new(), variance: Vec::new(), latent_variance: Vec::new() }
                }
            },
            gaussian: is_gaussian(likelihood),
            width: match likelihood {
                OutputLikelihood::Categorical(c) => c.classes(),
                other => other.target_width(),
            },
            outputs: likelihood.outputs(),
            latent_mean: Vec::new(),
            latent_deviation: Vec::new(),
            log_density: data.truth.as_ref().map(|_| Vec::new()),
            clipped: 0,
        };
        let wanted = if out.log_density.is_some() {
            wanted(integration, likelihood)
        } else {
            moments_need(integration, likelihood)
        };
        for range in pieces(data.len(), PIECE) {
            let x = self.prepared::<T>(data, range.clone())?;
            let latent = if plain {
                certain(fitted, &x)?
            } else {
                fitted.laplace.latent(&fitted.network, &x, wanted)?
            };
            let rows: Vec<_> = (0..range.len())
                .into_par_iter()
                .map_init(PredictiveWorkspace::default, |workspace, i| -> Result<_, ModelError> {
                    let mut prediction = rule.empty_prediction();
                    let clipping = rule.predict_into(latent.example(i), workspace, &mut prediction)?;
                    let density = match &data.truth {
                        None => None,
                        Some(truth) => {
                            let y = target(truth, range.start + i, (centre, scale));
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

/// The logarithm by which a density in the network's units exceeds that in the target's.
pub(super) fn jacobian(likelihood: &OutputLikelihood, scale: f64) -> f64 {
    if is_gaussian(likelihood) { likelihood.target_width() as f64 * scale.ln() } else { 0.0 }
}

/// Whether observations have additive noise.
fn is_gaussian(likelihood: &OutputLikelihood) -> bool {
    use OutputLikelihood::{FullGaussian, Gaussian, HeteroscedasticGaussian};
    matches!(likelihood, Gaussian(_) | FullGaussian(_) | HeteroscedasticGaussian(_))
}

impl LaplacePredictions {
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
