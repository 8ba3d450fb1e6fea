//! From a table to predictions, in the target's own units.

use super::target_transform::{OF_A_MODEL, no_image};
use super::{Header, ModelError, ProcessModel};
use crate::calibration::{self, Intervals};
use crate::latent::Latent;
use crate::{MappedPredictions, TargetMap, VarianceMethod, VarianceSolves};
use faer::{Mat, MatRef};
use posterior_data::{Extracted, InputMoments, Notes, Table};
use posterior_linalg::random::Streams;
use posterior_metrics::{Gaussians, RegressionScores};

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

/// What is predicted besides means.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PredictOptions {
    /// Whether true targets are kept for scoring.
    pub truth: bool,
    /// Where variances come from.
    pub variances: VarianceMethod,
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

impl ProcessModel {
    /// Predicts the given rows of a table (all when `None`). Targets, if present, are not looked at.
    ///
    /// # Errors
    /// [`ModelError::Data`] naming missing columns or bad cells.
    pub fn predict(&self, table: &Table, rows: Option<&[usize]>) -> Result<Predictions, ModelError> {
        self.predict_with(table, rows, PredictOptions::default())
    }

    /// As [`ProcessModel::predict`], keeping the true targets for scoring.
    ///
    /// # Errors
    /// As [`ProcessModel::predict`]; also when the target column is missing.
    pub fn predict_with_truth(
        &self,
        table: &Table,
        rows: Option<&[usize]>,
    ) -> Result<Predictions, ModelError> {
        self.predict_with(table, rows, PredictOptions { truth: true, ..Default::default() })
    }

    /// As [`ProcessModel::predict`] with a choice of what and how.
    ///
    /// # Errors
    /// As [`ProcessModel::predict`]; [`ModelError::VarianceMemory`] before anything is solved; [`ModelError::Gp`] for exact variances of weights on inducing points.
    pub fn predict_with(
        &self,
        table: &Table,
        rows: Option<&[usize]>,
        options: PredictOptions,
    ) -> Result<Predictions, ModelError> {
        let all: Vec<usize>;
        let rows = match rows {
            Some(rows) => rows,
            None => {
                all = (0..table.rows()).collect();
                &all
            }
        };
        let extracted = self.extract(table, rows, options.truth)?;
        let x = self.header.standardisation.features(extracted.x.as_ref());
        let latent = self.predictor.latent(x.as_ref(), options.variances)?;
        self.in_units(&extracted, x.as_ref(), latent)
    }

    /// Predictions of rows in units of the target, of these standardised inputs; with truths and known noise where these were extracted.
    pub(super) fn in_units(
        &self,
        extracted: &Extracted,
        x: MatRef<'_, f64>,
        latent: Latent,
    ) -> Result<Predictions, ModelError> {
        let (latent_variance, clipped, solves) = (latent.variances(), latent.clipped, latent.solves);
        let mean = latent.mean;
        let noise_variance = self.predictor.noise_variance().unwrap_or(0.0);
        let (ranges, standard) = (&self.header.input_ranges, &self.header.standardisation);
        let square = standard.target_scale * standard.target_scale;
        let own_noise = match (&self.noise, extracted.noise.as_deref()) {
            (Some(own), _) => Some(own.variances(x, &mean)?),
            (None, known) => known.map(|v| v.iter().map(|v| v / square).collect()),
        };
        let of_row = |i: usize| noise_variance + own_noise.as_ref().map_or(0.0, |v: &Vec<f64>| v[i]);
        let factor = self.calibration.factors().first().copied().unwrap_or(1.0);
        let deviation = |(i, v): (usize, &f64)| factor * (v + of_row(i)).sqrt();
        let deviation: Vec<f64> = latent_variance.iter().enumerate().map(deviation).collect();
        let latent_deviation: Vec<f64> = latent_variance.iter().map(|v| v.sqrt()).collect();
        let known = Predictions {
            rows: extracted.rows.clone(),
            truth: extracted.y.clone(),
            clipped,
            solves,
            data: extracted.notes.clone(),
            intervals: self.intervals(),
            inputs: ranges.moments(extracted.x.as_ref()),
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

    /// `count` joint draws of the noiseless function at the given rows: one vector for each draw, in units of the target.
    ///
    /// Needs `32 m² + 16 m n + 24 m c` bytes for c draws at m rows by n training rows or inducing points where draws are made when asked for, `32 m s + 16 m c` where the model keeps s samples.
    ///
    /// # Errors
    /// [`ModelError::TooManySampleRows`] before anything but the inputs is allocated, [`ModelError::TooManySamples`], otherwise as [`ProcessModel::predict`].
    pub fn sample(
        &self,
        table: &Table,
        rows: &[usize],
        count: usize,
        seed: u64,
        memory_limit: u64,
    ) -> Result<Vec<Vec<f64>>, ModelError> {
        if let Some(kept) = self.predictor.stored_samples().filter(|kept| count > *kept) {
            return Err(ModelError::TooManySamples { wanted: count, kept });
        }
        let extracted = self.extract(table, rows, false)?;
        // Rows that have no prediction need nothing.
        let rows = extracted.x.nrows();
        let needed = self.sample_bytes(rows, count);
        if needed > memory_limit {
            return Err(ModelError::TooManySampleRows { rows, needed, limit: memory_limit });
        }
        let standard = &self.header.standardisation;
        let x = standard.features(extracted.x.as_ref());
        let stream = |_: usize| Streams::new(seed).stream("model/samples");
        let drawn = self.predictor.samples(x.as_ref(), count, &stream)?;
        let of = |draws: &Mat<f64>, j: usize| draws.col(j).iter().map(|v| standard.target_back(*v)).collect();
        Ok(drawn.first().map_or_else(Vec::new, |draws| (0..count).map(|j| of(draws, j)).collect()))
    }

    /// The rows of a table as the posterior takes them: standardised features, m x D, of the rows that could be used.
    ///
    /// # Errors
    /// As [`ProcessModel::predict`].
    pub fn standard_inputs(&self, table: &Table) -> Result<Mat<f64>, ModelError> {
        let extracted = self.extract(table, &(0..table.rows()).collect::<Vec<_>>(), false)?;
        Ok(self.header.standardisation.features(extracted.x.as_ref()))
    }

    pub(super) fn extract(
        &self,
        table: &Table,
        rows: &[usize],
        truth: bool,
    ) -> Result<Extracted, ModelError> {
        let Header { schema, kernel, .. } = &self.header;
        let extracted = schema.extract(table, rows, truth).map_err(|error| error.in_table(table))?;
        let counts = kernel.count_columns(&schema.feature_names());
        let counted = schema.check_counts(&table.source, &counts, extracted.x.as_ref(), &extracted.rows);
        counted.map_err(|error| error.in_table(table))?;
        let y = extracted.y.as_deref().unwrap_or_default();
        if let Some((by, bad)) = self.header.standardisation.inadmissible(y) {
            return Err(no_image(by, schema, Some(extracted.rows[bad]), y[bad], OF_A_MODEL));
        }
        Ok(extracted)
    }
}
