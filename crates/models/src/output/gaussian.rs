//! Numbers with Gaussian noise.

use super::noise::{NoiseProcess, NoiseSummary};
use crate::{
    Intervals, Latent, MappedPredictions, ModelError, Predictive, TableInputs, TargetMap, Truth,
    VarianceSolves, calibration,
};
use faer::MatRef;
use posterior_data::{Extracted, InputMoments, Notes};
use posterior_metrics::{Gaussians, RegressionScores};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Numbers with Gaussian noise: of one variance that the predictor knows, with what the table says of each row, or what was learned of places, added to it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct GaussianOutput {
    /// How far observations scatter at each place, where that was learned: the noise variance among the hyperparameters is added to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub noise: Option<NoiseSummary>,
    /// What predicts it.
    #[serde(skip)]
    pub(crate) process: Option<Arc<NoiseProcess>>,
}

/// By what was learned, as its arrays follow from that.
impl PartialEq for GaussianOutput {
    fn eq(&self, other: &Self) -> bool {
        self.noise == other.noise
    }
}

/// Gaussian predictions for rows of a table, in units of the target.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Predictions {
    /// Index in the table of each predicted row, counted from 0; rows with missing cells are absent when the schema drops them.
    pub rows: Vec<usize>,
    /// Predicted means of observations.
    pub mean: Vec<f64>,
    /// Standard deviations of new observations, noise included; recalibrated where the model is.
    pub deviation: Vec<f64>,
    /// Standard deviations of the noiseless function.
    pub latent_deviation: Vec<f64>,
    /// The true targets, where they were asked for.
    pub truth: Option<Vec<f64>>,
    /// Latent variances that rounding had made negative and that were raised to 0.
    pub clipped: usize,
    /// What was left out and filled in.
    pub data: Notes,
    /// How exact variances by solves are, where there were solves.
    pub solves: Option<VarianceSolves>,
    /// How wide intervals are where they were recalibrated, as deviations are.
    pub intervals: Option<Intervals>,
    /// Where the inputs lay, in their own units; [`Model::departures`](crate::Model::departures) compares.
    pub inputs: InputMoments,
    /// The predictions where they are Gaussian, of a target that was mapped.
    pub mapped: Option<MappedPredictions>,
}

impl Predictions {
    /// The quantile of each new observation at `level` in (0, 1).
    pub fn quantile(&self, level: f64) -> Vec<f64> {
        let z = calibration::quantile(self.intervals.as_ref(), level);
        if let Some(mapped) = &self.mapped {
            return mapped.quantile(z, true);
        }
        self.mean.iter().zip(&self.deviation).map(|(m, s)| m + z * s).collect()
    }

    /// Scores against the truth. `scale` is the target's scale in training.
    ///
    /// # Errors
    /// [`ModelError::Metrics`], also when there are no truths.
    pub fn scores(&self, scale: f64) -> Result<RegressionScores, ModelError> {
        let variances = self.variances();
        let truths = self.truth.as_deref().unwrap_or_default();
        if let Some(mapped) = &self.mapped {
            return Ok(mapped.scores(&self.mean, truths, scale)?);
        }
        Ok(Gaussians::new(&self.mean, &variances, truths)?.scores(scale)?)
    }

    /// Variances of new observations.
    pub fn variances(&self) -> Vec<f64> {
        self.deviation.iter().map(|s| s * s).collect()
    }
}

impl GaussianOutput {
    /// What of a fit the rows of a stream have no place for, as it stands on the command line.
    pub(crate) fn not_for_streams(&self, inputs: &TableInputs) -> Option<String> {
        match (&inputs.standardisation.transform, &self.noise) {
            (Some(own), _) => Some(format!("a mapped target ({}; --target-transform)", own.by)),
            (None, Some(_)) => Some("--noise heteroscedastic".into()),
            (None, None) => None,
        }
    }

    /// Predictions of rows in units of the target, of these standardised inputs; with truths and known noise where these were extracted. All rows share a noise variance, and deviations are multiplied by a factor.
    ///
    /// # Errors
    /// [`ModelError::Gp`] where heteroscedastic noise cannot be predicted.
    pub(crate) fn predictions(
        &self,
        inputs: &TableInputs,
        (extracted, x): (&Extracted, MatRef<'_, f64>),
        latent: Latent,
        (noise_variance, factor, intervals): (f64, f64, Option<Intervals>),
    ) -> Result<Predictions, ModelError> {
        let (latent_variance, clipped, solves) = (latent.variances(), latent.clipped, latent.solves);
        let mean = latent.mean;
        let standard = &inputs.standardisation;
        let square = standard.target_scale * standard.target_scale;
        let own_noise = match (&self.process, extracted.noise.as_deref()) {
            (Some(own), _) => Some(own.variances(x, &mean)?),
            (None, known) => known.map(|v| v.iter().map(|v| v / square).collect()),
        };
        let of_row = |i: usize| noise_variance + own_noise.as_ref().map_or(0.0, |v: &Vec<f64>| v[i]);
        let deviation = |(i, v): (usize, &f64)| factor * (v + of_row(i)).sqrt();
        let deviation: Vec<f64> = latent_variance.iter().enumerate().map(deviation).collect();
        let latent_deviation: Vec<f64> = latent_variance.iter().map(|v| v.sqrt()).collect();
        let known = Predictions {
            rows: extracted.rows.clone(),
            truth: extracted.y.clone(),
            clipped,
            solves,
            data: extracted.notes.clone(),
            intervals,
            inputs: inputs.input_ranges.moments(extracted.x.as_ref()),
            ..Predictions::default()
        };
        if let Some(map) = TargetMap::of(standard) {
            let mapped = MappedPredictions { map, mean, deviation, latent_deviation };
            let [mean, deviation, latent_deviation] = mapped.moments();
            return Ok(Predictions { mean, deviation, latent_deviation, mapped: Some(mapped), ..known });
        }
        let units = |values: Vec<f64>| values.into_iter().map(|s| standard.target_scale * s).collect();
        Ok(Predictions {
            mean: mean.into_iter().map(|m| standard.target_back(m)).collect(),
            deviation: units(deviation),
            latent_deviation: units(latent_deviation),
            ..known
        })
    }

    /// Always mean and deviation of the training targets.
    pub(crate) fn baseline(&self, inputs: &TableInputs, own: &Predictive) -> Predictive {
        let constant = |value: f64| vec![value; own.len()];
        let truths = match &own.truth {
            Some(Truth::Values { values, .. }) => Some(&values[..]),
            _ => None,
        };
        let (mean, deviation) = inputs.standardisation.target_in_units();
        Predictive::gaussian(constant(mean), &constant(deviation), constant(0.0), truths)
    }
}
