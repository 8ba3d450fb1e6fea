//! What a model predicts.

use crate::error::Error;
use posterior_data::{ArrayValues, NumericArray, Table, write_table};
use posterior_models::{Model, ModelData, Predicted, Predictive};
use std::path::Path;
use std::sync::Arc;

/// Predictive distributions of m rows or examples: of numbers, counts, classes or events, by a process or a network.
///
/// Numbers follow one another row by row; a network of several outputs has as many for each row.
#[derive(Clone, Debug)]
pub struct Predictions {
    model: Arc<Model>,
    predictive: Predictive,
    /// Rows that were asked about, some of which may have no prediction.
    asked: usize,
}

impl Predictions {
    pub(crate) fn new(model: Arc<Model>, predictive: Predictive, asked: usize) -> Self {
        Self { model, predictive, asked }
    }

    /// Rows that have a prediction.
    pub fn len(&self) -> usize {
        self.predictive.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.predictive.is_empty()
    }

    /// The distributions themselves, with all that is known of them.
    pub fn predictive(&self) -> &Predictive {
        &self.predictive
    }

    /// Means of numbers and counts, in the target's units.
    ///
    /// # Errors
    /// [`Error::NotNumbers`].
    pub fn mean(&self) -> Result<&[f64], Error> {
        match &self.predictive.predicted {
            Predicted::Moments { mean, .. } => Ok(mean),
            _ => Err(Error::NotNumbers { wanted: "mean" }),
        }
    }

    /// Standard deviations of new observations, noise included, in the target's units.
    ///
    /// # Errors
    /// [`Error::NotNumbers`].
    pub fn std(&self) -> Result<Vec<f64>, Error> {
        match &self.predictive.predicted {
            Predicted::Moments { variance, .. } => Ok(variance.iter().map(|v| v.sqrt()).collect()),
            _ => Err(Error::NotNumbers { wanted: "standard deviation" }),
        }
    }

    /// Standard deviations of the function without noise, in the target's units.
    ///
    /// # Errors
    /// [`Error::NotNumbers`].
    pub fn latent_std(&self) -> Result<Vec<f64>, Error> {
        match &self.predictive.predicted {
            Predicted::Moments { latent_variance, .. } => {
                Ok(latent_variance.iter().map(|v| v.sqrt()).collect())
            }
            _ => Err(Error::NotNumbers { wanted: "standard deviation" }),
        }
    }

    /// The quantile of each new observation at `p` in (0, 1), recalibrated where the model is.
    ///
    /// # Errors
    /// [`Error::NotNumbers`], [`Error::Level`]; [`Error::NoQuantiles`] for counts and numbers with outliers where no rows tell them.
    pub fn quantile(&self, p: f64) -> Result<Vec<f64>, Error> {
        if !(p > 0.0 && p < 1.0) {
            return Err(Error::Level(p));
        }
        self.mean().map_err(|_| Error::NotNumbers { wanted: "quantiles" })?;
        self.predictive.quantiles(p, true).ok_or(Error::NoQuantiles)
    }

    /// The central interval of each new observation that holds it with probability `level` in (0, 1): its quantiles at `(1 - level) / 2` and `(1 + level) / 2`.
    ///
    /// # Errors
    /// As [`Predictions::quantile`].
    pub fn interval(&self, level: f64) -> Result<Vec<(f64, f64)>, Error> {
        if !(level > 0.0 && level < 1.0) {
            return Err(Error::Level(level));
        }
        let (lower, upper) = (self.quantile(0.5 * (1.0 - level))?, self.quantile(0.5 * (1.0 + level))?);
        Ok(lower.into_iter().zip(upper).collect())
    }

    /// Probabilities of classes (`m x classes`, in the order of [`class_names`](crate::Fitted::class_names)) or of events.
    ///
    /// # Errors
    /// [`Error::NotProbabilities`].
    pub fn probabilities(&self) -> Result<&[f64], Error> {
        self.predictive.probabilities().ok_or(Error::NotProbabilities)
    }

    /// The `count` most probable classes of each row with their probabilities, most probable first; nothing where no classes are predicted.
    pub fn top(&self, count: usize) -> Vec<Vec<(usize, f64)>> {
        self.predictive.top(count)
    }

    /// Writes the columns that `posterior predict` writes: Parquet where the name ends in `.parquet`, else CSV. Rows without a prediction have empty cells.
    ///
    /// # Errors
    /// When the file cannot be written, or there are too many classes for columns.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<(), Error> {
        let rows = NumericArray::new(vec![self.asked, 0], ArrayValues::U8(Vec::new()))?;
        let columns = self.model.columns(&ModelData::new("predictions", rows, None), &self.predictive)?;
        Ok(write_table(&Table::new("predictions", columns), path.as_ref())?)
    }
}
