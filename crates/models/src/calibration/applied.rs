//! A calibration, learned and applied to predictions.

use super::classes::{ClassRecalibration, PredictedSets};
use super::numbers::{Before, Intervals, Recalibration, Residuals};
use super::observed::{ObservedRecalibration, ObservedTails};
use super::predictive::{Predicted, Predictive};
use super::rare::SharesMixture;
use super::rows::CalibrationRequest;
use crate::ModelError;
use posterior_likelihoods::Integration;
use posterior_metrics::{LabelSets, Temperature};
use std::f64::consts::PI;
use std::sync::Arc;

/// What rows that a model was judged on say of its predictions; empty where they say nothing.
#[derive(Clone, Debug, Default)]
pub(crate) struct Calibration {
    /// What standard deviations of each number of an example are multiplied with; empty where none are.
    pub(super) factors: Vec<f64>,
    /// What class probabilities go through, after sets are found by them.
    pub(super) temperature: Option<Temperature>,
    /// What class probabilities are averaged with, after that.
    pub(super) shares: Option<SharesMixture>,
    /// What sets of classes go by.
    pub(super) sets: Option<Arc<LabelSets>>,
    /// What quantiles of counts and of numbers with outliers go by.
    pub(super) tails: Option<ObservedTails>,
    /// Standardised residuals of each number of an example, as many as `factors`, where its intervals go by them.
    pub(super) residuals: Vec<Option<Arc<Residuals>>>,
}

/// Predictions of rows that a model was judged on, with what came true.
#[derive(Clone, Debug)]
pub(crate) struct JudgedRows {
    /// What was predicted, `width` numbers for each row.
    pub(crate) predicted: Predicted,
    pub(crate) width: usize,
    /// What came true, in the same units: as many numbers for each row, or the number of its class.
    pub(crate) truths: Vec<f64>,
    /// The share of each class among the training rows; empty where none are known.
    pub(crate) shares: Vec<f64>,
}

/// How intervals of numbers are calibrated.
#[derive(Clone, Copy, Debug)]
pub(crate) enum NumbersBy {
    /// With additive noise: by factors.
    Factors,
    /// Counts, and numbers with outliers: by tails.
    Tails {
        counts: bool,
        /// The square of the noise's scale, where variances of judged rows are those of the function and such a square.
        noise: Option<f64>,
    },
}

/// A calibration, with records of what was learned for it: what was done, and how good it is.
#[derive(Debug, Default)]
pub(crate) struct Learned {
    pub(crate) calibration: Calibration,
    /// Of each number of an example; empty where all stay as they are.
    pub(crate) numbers: Vec<Option<Recalibration>>,
    pub(crate) classes: Option<ClassRecalibration>,
    /// Of counts and of numbers with outliers.
    pub(crate) tails: Option<ObservedRecalibration>,
}

impl Calibration {
    /// From the rows that a model was judged on.
    ///
    /// # Errors
    /// [`ModelError::Metrics`] for predictions that are no numbers.
    pub(crate) fn learn(
        asked: CalibrationRequest,
        rows: &JudgedRows,
        by: NumbersBy,
    ) -> Result<Learned, ModelError> {
        let JudgedRows { predicted, width, truths, shares } = rows;
        match (predicted, by) {
            (Predicted::Classes(p), _) => {
                let labels: Vec<usize> = truths.iter().map(|y| *y as usize).collect();
                let (classes, sets) = ClassRecalibration::learn(asked, (p, *width), &labels, shares)?.unzip();
                let temperature = classes.as_ref().and_then(ClassRecalibration::temperature);
                let shares = classes.as_ref().and_then(|own: &ClassRecalibration| own.shares.clone());
                let calibration = Self { temperature, shares, sets: sets.map(Arc::new), ..Self::default() };
                Ok(Learned { calibration, classes, ..Learned::default() })
            }
            (Predicted::Moments { mean, variance, .. }, NumbersBy::Factors) => {
                let of = |k: usize| {
                    let each = mean.iter().zip(variance).zip(truths).skip(k).step_by(*width);
                    let residuals: Vec<f64> = each.clone().map(|((m, v), y)| (y - m) / v.sqrt()).collect();
                    let surprises =
                        each.zip(&residuals).map(|(((_, v), _), z)| 0.5 * ((2.0 * PI * v).ln() + z * z));
                    let nll = surprises.sum::<f64>() / residuals.len().max(1) as f64;
                    (Before::of_network(&residuals, nll), residuals)
                };
                Self::learn_numbers(asked, (0..*width).map(of))
            }
            (Predicted::Moments { mean, variance, latent_variance }, NumbersBy::Tails { counts, noise }) => {
                let kind = (counts, noise.is_some());
                let found =
                    ObservedRecalibration::learn(asked, kind, (mean, variance, latent_variance), truths)?;
                let (record, tails) = found.unzip();
                let tails = tails.map(|tails| ObservedTails::new(tails, counts, noise));
                let calibration = Self { tails, ..Self::default() };
                Ok(Learned { calibration, tails: record, ..Learned::default() })
            }
            (Predicted::Events(_), _) => Ok(Learned::default()),
        }
    }

    /// From standardised residuals of each number of an example.
    ///
    /// # Errors
    /// [`ModelError::Metrics`] for residuals that are no numbers.
    pub(crate) fn learn_numbers(
        asked: CalibrationRequest,
        numbers: impl IntoIterator<Item = (Before, Vec<f64>)>,
    ) -> Result<Learned, ModelError> {
        let mut out = Learned::default();
        for (before, residuals) in numbers {
            let (record, kept) = Recalibration::learn(asked, before, &residuals)?.unzip();
            out.calibration.factors.push(record.as_ref().map_or(1.0, |own: &Recalibration| own.factor));
            out.calibration.residuals.push(kept.map(Arc::new));
            out.numbers.push(record);
        }
        Ok(if out.numbers.iter().any(Option::is_some) { out } else { Learned::default() })
    }

    /// What applies to predictions by the rule that was `asked` for, of a model that was judged by its `own`: nothing to those of another rule, of which the rows say nothing.
    pub(crate) fn under(&self, asked: Option<Integration>, own: Option<Integration>) -> Option<&Self> {
        (asked.is_none() || asked == own).then_some(self)
    }

    /// Changes predictions as the rows say, and adds sets of classes of these levels. Latent values stay. Log densities of numbers have to be at targets that [`shrink`](crate::calibration::shrink) has moved; those of classes are dropped where probabilities are averaged with shares, of which they are no function.
    pub(crate) fn apply(&self, levels: &[f64], predictive: &mut Predictive) {
        predictive.intervals = self.intervals();
        predictive.tails = self.tails.clone();
        let width = predictive.width.max(1);
        match &mut predictive.predicted {
            Predicted::Moments { variance, .. } if !self.factors.is_empty() => {
                variance.iter_mut().zip(self.factors.iter().cycle()).for_each(|(v, f)| *v *= f * f);
                let logarithms: f64 = self.factors.iter().map(|f| f.ln()).sum();
                predictive.log_density.iter_mut().flatten().for_each(|density| *density -= logarithms);
            }
            Predicted::Classes(p) => {
                let of = |known: &LabelSets, level: &f64| PredictedSets::of(known, (&p[..], width), *level);
                let sets = self.sets.as_deref();
                predictive.sets =
                    sets.map_or_else(Vec::new, |own| levels.iter().map(|level| of(own, level)).collect());
                if let Some(temperature) = self.temperature {
                    for (i, row) in p.chunks_exact_mut(width).enumerate() {
                        let sum = temperature.apply(row);
                        if let Some(densities) = &mut predictive.log_density {
                            densities[i] = densities[i] / temperature.value() - sum;
                        }
                    }
                }
                if let Some(shares) = &self.shares {
                    p.chunks_exact_mut(width).for_each(|row| shares.apply(row));
                    predictive.log_density = None;
                }
            }
            _ => {}
        }
    }

    /// What standard deviations of each number of an example are multiplied with; empty where none are.
    pub(crate) fn factors(&self) -> &[f64] {
        &self.factors
    }

    /// How wide intervals of each number of an example are, where they were recalibrated; empty where none were.
    pub(crate) fn intervals(&self) -> Vec<Option<Intervals>> {
        let pairs = self.factors.iter().zip(&self.residuals);
        pairs.map(|(f, own)| own.as_ref().map(|own| Intervals::new(*f, own.clone()))).collect()
    }

    /// Whether each number of an example has intervals by rows.
    pub(crate) fn has_intervals(&self) -> bool {
        !self.residuals.is_empty() && self.residuals.iter().all(Option::is_some)
    }

    /// What sets of classes go by.
    pub(crate) fn sets(&self) -> Option<&LabelSets> {
        self.sets.as_deref()
    }
}
