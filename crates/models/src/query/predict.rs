//! From a table to predictions, in the target's own units.

use crate::prepare::{no_image, of_a_model};
use crate::{Latent, ModelError, Predictions, Process, VarianceMethod, Want};
use faer::{Mat, MatRef};
use posterior_data::{DataError, Extracted, Schema, Table};

/// What is predicted besides means.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PredictOptions {
    /// Whether true targets are kept for scoring.
    pub truth: bool,
    /// Where variances come from.
    pub variances: VarianceMethod,
}

impl Process<'_> {
    /// Predicts the given rows of a table (all when `None`). Targets, if present, are not looked at.
    ///
    /// # Errors
    /// [`ModelError::Data`] naming missing columns or bad cells.
    pub fn predict(&self, table: &Table, rows: Option<&[usize]>) -> Result<Predictions, ModelError> {
        self.predict_with(table, rows, PredictOptions::default())
    }

    /// As [`Process::predict`], keeping the true targets for scoring.
    ///
    /// # Errors
    /// As [`Process::predict`]; also when the target column is missing.
    pub fn predict_with_truth(
        &self,
        table: &Table,
        rows: Option<&[usize]>,
    ) -> Result<Predictions, ModelError> {
        self.predict_with(table, rows, PredictOptions { truth: true, ..Default::default() })
    }

    /// As [`Process::predict`] with a choice of what and how.
    ///
    /// # Errors
    /// As [`Process::predict`]; [`ModelError::VarianceMemory`] before anything is solved; [`ModelError::Gp`] for exact variances of weights on inducing points.
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
        self.numbers()?;
        let extracted = self.extract(table, rows, options.truth)?;
        self.predictions(&extracted, options.variances)
    }

    /// Predictions of extracted rows in units of the target.
    pub(crate) fn predictions(
        &self,
        extracted: &Extracted,
        variances: VarianceMethod,
    ) -> Result<Predictions, ModelError> {
        let x = self.inputs.standard(extracted);
        let latent = self.predictor.latent(x.as_ref().into(), &Want { variances, ..Want::default() })?;
        self.in_units(extracted, x.as_ref(), latent)
    }

    /// The same of these standardised inputs, where latent values are known.
    pub(crate) fn in_units(
        &self,
        extracted: &Extracted,
        x: MatRef<'_, f64>,
        latent: Latent,
    ) -> Result<Predictions, ModelError> {
        let noise = self.predictor.noise_variance().unwrap_or(0.0);
        let factor = self.calibration.factors().first().copied().unwrap_or(1.0);
        let known = (noise, factor, self.intervals());
        self.numbers()?.predictions(self.inputs, (extracted, x), latent, known)
    }

    /// `count` joint draws of the noiseless function at the given rows: one vector for each draw, in units of the target. Of several functions these are draws of the first.
    ///
    /// Needs `32 m² + 16 m n + 24 m c` bytes for c draws at m rows by n training rows or inducing points where draws are made when asked for, `32 m s + 16 m c` where the model keeps s samples.
    ///
    /// # Errors
    /// [`ModelError::TooManySampleRows`] before anything but the inputs is allocated, [`ModelError::TooManySamples`], otherwise as [`Process::predict`].
    pub fn sample(
        &self,
        table: &Table,
        rows: &[usize],
        count: usize,
        seed: u64,
        memory_limit: u64,
    ) -> Result<Vec<Vec<f64>>, ModelError> {
        self.check_stored(count)?;
        let extracted = self.extract(table, rows, false)?;
        let drawn = self.drawn_in_units(&extracted, (count, seed), memory_limit)?;
        let of = |draws: &Mat<f64>, j: usize| draws.col(j).iter().copied().collect();
        Ok(drawn.first().map_or_else(Vec::new, |draws| (0..count).map(|j| of(draws, j)).collect()))
    }

    /// Refuses more draws than a model keeps.
    pub(crate) fn check_stored(&self, count: usize) -> Result<(), ModelError> {
        let kept = self.output.gaussian().and_then(|_| self.predictor.stored_samples());
        match kept.filter(|kept| count > *kept) {
            Some(kept) => Err(ModelError::TooManySamples { wanted: count, kept }),
            None => Ok(()),
        }
    }

    /// Joint draws of all functions at extracted rows, in units that people use: a matrix m x count for each.
    pub(crate) fn drawn_in_units(
        &self,
        extracted: &Extracted,
        (count, seed): (usize, u64),
        limit: u64,
    ) -> Result<Vec<Mat<f64>>, ModelError> {
        // Rows that have no prediction need nothing.
        let rows = extracted.x.nrows();
        let needed = self.draw_bytes(rows, count);
        if needed > limit {
            return Err(ModelError::TooManySampleRows { rows, needed, limit });
        }
        let x = self.inputs.standard(extracted);
        let mut drawn = self.drawn(x.as_ref(), count, seed)?;
        for draws in &mut drawn {
            for j in 0..count {
                draws.col_mut(j).iter_mut().for_each(|v| *v = self.output.latent_in_units(self.inputs, *v));
            }
        }
        Ok(drawn)
    }

    /// The rows of a table as the posterior takes them: standardised features, m x D, of the rows that could be used.
    ///
    /// # Errors
    /// As [`Process::predict`].
    pub fn standard_inputs(&self, table: &Table) -> Result<Mat<f64>, ModelError> {
        let extracted = self.extract(table, &(0..table.rows()).collect::<Vec<_>>(), false)?;
        Ok(self.inputs.standard(&extracted))
    }

    /// Inputs of the given rows, and with `truth` their targets ([`Output::extract`](crate::output::Output::extract)).
    pub(crate) fn extract(
        &self,
        table: &Table,
        rows: &[usize],
        truth: bool,
    ) -> Result<Extracted, ModelError> {
        self.extract_by(&self.inputs.schema, table, rows, truth)
    }

    /// The same by a schema that says otherwise what to do with odd cells.
    pub(crate) fn extract_by(
        &self,
        schema: &Schema,
        table: &Table,
        rows: &[usize],
        truth: bool,
    ) -> Result<Extracted, ModelError> {
        let counts = self.record.kernel.count_columns(&schema.feature_names());
        let read = || -> Result<Extracted, DataError> {
            let extracted = self.output.extract(schema, table, rows, truth)?;
            schema.check_counts(&table.source, &counts, extracted.x.as_ref(), &extracted.rows)?;
            Ok(extracted)
        };
        let extracted = read().map_err(|error| error.in_table(table))?;
        let y = extracted.y.as_deref().unwrap_or_default();
        if let Some((by, bad)) = self.inputs.standardisation.inadmissible(y) {
            return Err(no_image(by, schema, Some(extracted.rows[bad]), y[bad], &of_a_model()));
        }
        Ok(extracted)
    }
}
