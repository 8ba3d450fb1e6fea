//! **Intervals that hold what they say** on rows that had no part in a fit.
//!
//! A model that is wrong about its own error is wrong by much the same factor on new rows. Rows that a fit was judged on tell that factor ([`SplitConformal`]): standard deviations of observations are multiplied with the one of
//! [`LEVEL`], and other levels have their own. What a model says of the noiseless function, and joint draws, stay as they are.

use crate::options::CalibrateName;
use crate::process::{CheckedOn, FitCheck};
use crate::{ModelError, predictive::standard_quantile};
use posterior_metrics::SplitConformal;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The level whose intervals are normal ones after recalibration.
const LEVEL: f64 = 0.95;

/// Parts that take turns in telling what recalibrated intervals are worth.
const PARTS: usize = 10;

/// How a model was recalibrated, and what that did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Recalibration {
    /// Which rows told it.
    pub on: CheckedOn,
    /// How many.
    pub rows: usize,
    /// What standard deviations of observations are multiplied with.
    pub factor: f64,
    /// Share of these rows inside 95 % intervals of the model as it was.
    pub coverage_before: f64,
    /// The same of recalibrated intervals, each tenth of the rows by what the other nine tell; none where these are too few.
    pub coverage_after: Option<f64>,
    /// Mean negative log density of these rows before, of the standardised target.
    pub nll_before: f64,
    /// And after.
    pub nll_after: f64,
    /// Standard deviation, over sets of as many rows, of the share of new rows that 95 % intervals hold.
    pub spread: f64,
    /// Whether the finite-sample guarantee of split-conformal intervals holds: rows that were held back by chance and that nothing was chosen by.
    pub guaranteed: bool,
}

impl Recalibration {
    /// What was asked for, of a fit that was judged on rows with these standardised residuals `(y - m) / s`. By itself (`auto`) only where coverage is off by more than chance explains, and intervals become narrower only where that
    /// makes the rows likelier: where few rows are far away, what is wide is wide for them.
    ///
    /// # Errors
    /// [`ModelError::Request`] where `conformal` is asked for and rows are too few.
    pub(crate) fn of(
        asked: CalibrateName,
        check: &FitCheck,
        residuals: &[f64],
    ) -> Result<Option<(Self, SplitConformal)>, ModelError> {
        if asked == CalibrateName::None {
            return Ok(None);
        }
        let conformal = SplitConformal::new(residuals)?;
        let (Some(factor), Some(spread)) = (conformal.factor(LEVEL), conformal.spread(LEVEL)) else {
            return match asked {
                CalibrateName::Conformal => Err(ModelError::Request(format!(
                    "--calibrate conformal tells how wide 95 % intervals have to be by 19 rows or more that the model is not certain of; {} are there: hold back more (--held-back), or leave it out",
                    residuals.len()
                ))),
                _ => Ok(None),
            };
        };
        let before = check.scores;
        let square = residuals.iter().map(|z| z * z).sum::<f64>() / residuals.len() as f64;
        // Of ½ log 2πs²f² + z² / 2f².
        let nll_after = before.nll + factor.ln() + 0.5 * square * (1.0 / (factor * factor) - 1.0);
        let [low, high] = check.chance;
        let wanted = before.coverage_95 < low || (before.coverage_95 > high && nll_after < before.nll);
        if asked == CalibrateName::Auto && !wanted {
            return Ok(None);
        }
        let own = Self {
            on: check.on,
            rows: residuals.len(),
            factor,
            coverage_before: before.coverage_95,
            coverage_after: SplitConformal::coverage_apart(residuals, LEVEL, PARTS)?,
            nll_before: before.nll,
            nll_after,
            spread,
            guaranteed: check.on == CheckedOn::HeldBack && check.tried.is_empty() && check.twins == 0,
        };
        Ok(Some((own, conformal)))
    }

    /// What was done, what it was for and what it is worth.
    pub fn sentence(&self) -> String {
        let percent = |share: f64| 100.0 * share;
        let rows = match self.on {
            CheckedOn::HeldBack => "held-back rows",
            CheckedOn::LeaveOneOut => "rows, each predicted from the others,",
        };
        let after = self.coverage_after.map_or_else(String::new, |after| {
            format!(", now {:.1} % (each tenth of them by what the others tell)", percent(after))
        });
        let wider = if self.factor >= 1.0 { "wider" } else { "as wide" };
        let chosen = "but these rows had a part in choices of the fit, so that no guarantee is exact";
        let worth = if self.guaranteed {
            format!("new rows like these lie inside with a probability of {:.0} % at least", percent(LEVEL))
        } else if self.on == CheckedOn::LeaveOneOut {
            "the hyperparameters have seen these rows, so that no guarantee is exact".into()
        } else {
            chosen.into()
        };
        format!(
            "intervals are recalibrated: standard deviations of observations are {:.3} times {wider}. Inside 95 % intervals were {:.1} % of {} {rows}{after}; {worth} (+- {:.1} % for so many rows). --calibrate none leaves them as the \
             model has them",
            self.factor,
            percent(self.coverage_before),
            self.rows,
            percent(self.spread)
        )
    }
}

/// Recalibrated intervals of predictions.
#[derive(Clone, Debug, PartialEq)]
pub struct Intervals {
    factor: f64,
    conformal: Arc<SplitConformal>,
}

impl Intervals {
    pub(crate) fn new(factor: f64, conformal: Arc<SplitConformal>) -> Self {
        Self { factor, conformal }
    }

    /// How far the quantile at `level` in (0, 1) lies from the mean, in recalibrated standard deviations.
    pub(crate) fn quantile(&self, level: f64) -> f64 {
        let sides = 2.0 * level - 1.0;
        // The centre is the mean, though intervals of no probability may have a width.
        if sides == 0.0 {
            return 0.0;
        }
        self.conformal.extended_half_width(sides.abs()) / self.factor * sides.signum()
    }
}

/// The same, or that of the standard normal distribution where nothing was recalibrated.
pub(crate) fn quantile(intervals: Option<&Intervals>, level: f64) -> f64 {
    intervals.map_or_else(|| standard_quantile(level), |own| own.quantile(level))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::CheckScores;

    fn check(residuals: &[f64], nll: f64) -> FitCheck {
        let inside = residuals.iter().filter(|z| z.abs() <= 1.959_963_984_540_054).count();
        let coverage_95 = inside as f64 / residuals.len() as f64;
        let scores = CheckScores { rmse: 0.5, nll, coverage_95 };
        FitCheck::new(CheckedOn::HeldBack, residuals.len(), scores, None)
    }

    /// Normal quantiles in an order that has nothing to do with their size.
    fn residuals(scale: f64) -> Vec<f64> {
        (0..400).map(|i| scale * standard_quantile((f64::from(i * 171 % 400) + 0.5) / 400.0)).collect()
    }

    #[test]
    fn intervals_change_where_chance_does_not_explain_them() {
        let nll = |z: &[f64]| z.iter().map(|z| 0.5 * z * z).sum::<f64>() / z.len() as f64;
        for (scale, changed) in [(1.0, false), (1.8, true), (0.4, true)] {
            let z = residuals(scale);
            let found = Recalibration::of(CalibrateName::Auto, &check(&z, nll(&z)), &z).unwrap();
            assert_eq!(found.is_some(), changed, "{scale}");
            let asked =
                Recalibration::of(CalibrateName::Conformal, &check(&z, nll(&z)), &z).unwrap().unwrap().0;
            // The 381st of 401 ranks of 400 normal quantiles.
            assert!((asked.factor / scale - 1.0).abs() < 0.02, "{asked:?}");
            // The density, of deviations that are multiplied, by definition.
            let direct =
                z.iter().map(|z| 0.5 * (z / asked.factor).powi(2) + asked.factor.ln()).sum::<f64>() / 400.0;
            assert!((asked.nll_after - direct).abs() < 1e-12);
            assert!((asked.coverage_after.unwrap() - 0.95).abs() < 0.02 && asked.guaranteed);
            assert!(Recalibration::of(CalibrateName::None, &check(&z, nll(&z)), &z).unwrap().is_none());
        }
    }

    #[test]
    fn what_is_wide_for_a_few_far_rows_stays_wide() {
        // Nearly all of them close to the mean, a hundredth twenty deviations away.
        let mut z: Vec<f64> = residuals(0.3);
        z.iter_mut().step_by(100).for_each(|z| *z = 20.0);
        let nll = z.iter().map(|z| 0.5 * z * z).sum::<f64>() / 400.0;
        let check = check(&z, nll);
        assert!(check.scores.coverage_95 > check.chance[1]);
        assert!(Recalibration::of(CalibrateName::Auto, &check, &z).unwrap().is_none());
    }

    #[test]
    fn too_few_rows_tell_nothing() {
        let few = residuals(3.0)[..18].to_vec();
        assert!(Recalibration::of(CalibrateName::Auto, &check(&few, 1.0), &few).unwrap().is_none());
        let error = Recalibration::of(CalibrateName::Conformal, &check(&few, 1.0), &few).unwrap_err();
        assert!(error.to_string().contains("19 rows or more") && error.to_string().contains("18 are there"));
    }

    #[test]
    fn quantiles_are_those_of_the_rows() {
        let z = residuals(2.0);
        let conformal = Arc::new(SplitConformal::new(&z).unwrap());
        let factor = conformal.factor(LEVEL).unwrap();
        let own = Intervals::new(factor, conformal.clone());
        assert_eq!(own.quantile(0.5), 0.0);
        // At the level itself deviations are normal ones.
        assert!((own.quantile(0.975) - standard_quantile(0.975)).abs() < 1e-12);
        assert!((own.quantile(0.025) + own.quantile(0.975)).abs() < 1e-15);
        assert_eq!(own.quantile(0.9) * factor, conformal.half_width(0.8).unwrap());
        let levels: Vec<f64> = (1..1000).map(|k| own.quantile(f64::from(k) / 1000.0)).collect();
        assert!(levels.windows(2).all(|pair| pair[0] <= pair[1]) && levels[998].is_finite());
    }
}
