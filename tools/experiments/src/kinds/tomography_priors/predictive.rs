//! What a method says of an image, and how right it is.

use super::uncertainty::UncertaintySettings;
use crate::kinds::prelude::*;
use posterior_tomography::calibration::{Calibration, Histograms};
use posterior_tomography::patches::{PatchCovariance, Tiling, patch_log_density};
use posterior_tomography::{TomographyError, psnr};
use std::collections::BTreeMap;
use std::f64::consts::TAU;

/// How pixels vary together.
pub(crate) enum Spread {
    /// As these draws do, zero in the mean (pixels x draws).
    Draws(Mat<f64>),
    /// Not at all.
    Independent,
}

/// A Gaussian over images.
pub(crate) struct Predictive {
    pub(crate) mean: Vec<f64>,
    /// Standard deviations of pixels.
    pub(crate) deviations: Vec<f64>,
    pub(crate) spread: Spread,
    /// Seconds until the hyperparameters were known.
    pub(crate) hyperparameter_seconds: f64,
    /// Seconds from there on.
    pub(crate) prediction_seconds: f64,
    /// What the method found, by name.
    pub(crate) facts: BTreeMap<String, f64>,
}

/// Against the truth.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Scored {
    /// Of the mean, dB.
    pub(crate) psnr: f64,
    /// Side of patches, and log density of the truth, nats a pixel.
    pub(crate) patches: Vec<(usize, f64)>,
    /// Nominal and found shares of pixels within intervals.
    pub(crate) coverage: Vec<(f64, f64)>,
    /// Found share of the intervals that should hold nine tenths.
    pub(crate) covered: f64,
    /// Mean distance between the two curves.
    pub(crate) miscalibration: f64,
    /// Of absolute errors and of standard deviations.
    pub(crate) histograms: Histograms,
    pub(crate) mean: Vec<f64>,
    pub(crate) deviations: Vec<f64>,
    pub(crate) hyperparameter_seconds: f64,
    pub(crate) prediction_seconds: f64,
    pub(crate) facts: BTreeMap<String, f64>,
}

impl Scored {
    /// Of a predictive and the true image of `[height, width]`.
    ///
    /// # Errors
    /// A covariance without density; numbers that are not finite.
    pub(crate) fn new(
        predictive: Predictive,
        truth: &[f64],
        [height, width]: [usize; 2],
        settings: &UncertaintySettings,
    ) -> Result<Self, TomographyError> {
        let Predictive { mean, deviations, spread, .. } = &predictive;
        let stabilised = |d: &f64| (d * d + settings.stabiliser).sqrt();
        let score = |side: usize| -> Result<f64, TomographyError> {
            Ok(match spread {
                Spread::Draws(draws) => {
                    let (images, estimator) = (draws.as_ref(), settings.estimator);
                    let covariance = PatchCovariance::Samples { images, estimator };
                    let tiling = Tiling::new(height, width, side)?;
                    patch_log_density(truth, mean, covariance, &tiling, settings.stabiliser)?.per_pixel()
                }
                Spread::Independent => {
                    let each = truth.iter().zip(mean).zip(deviations).map(|((x, m), d)| {
                        let variance = stabilised(d).powi(2);
                        -0.5 * ((x - m).powi(2) / variance + (TAU * variance).ln())
                    });
                    each.sum::<f64>() / truth.len() as f64
                }
            })
        };
        let sides = 1..=settings.largest_patch.min(height).min(width);
        let patches =
            sides.map(|side| Ok((side, score(side)?))).collect::<Result<Vec<_>, TomographyError>>()?;
        let all: Vec<f64> = deviations.iter().map(stabilised).collect();
        let calibration = Calibration::new(truth, mean, &all)?;
        Ok(Self {
            psnr: psnr(mean, truth),
            patches,
            covered: calibration.coverage(0.9),
            coverage: calibration.curve(settings.levels),
            miscalibration: calibration.miscalibration(),
            histograms: calibration.histograms(settings.bins),
            hyperparameter_seconds: predictive.hyperparameter_seconds,
            prediction_seconds: predictive.prediction_seconds,
            facts: predictive.facts,
            mean: predictive.mean,
            deviations: predictive.deviations,
        })
    }

    /// Log density of the truth pixel by pixel, nats a pixel.
    pub(crate) fn marginal(&self) -> f64 {
        self.patches.first().map_or(f64::NAN, |p| p.1)
    }

    /// The same in the largest patches.
    pub(crate) fn joint(&self) -> f64 {
        self.patches.last().map_or(f64::NAN, |p| p.1)
    }
}
