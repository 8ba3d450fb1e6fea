//! Which rows a model was judged on, and what they are worth for its calibration.

use crate::options::CalibrateName;
use crate::{CheckedOn, ModelError};
use posterior_metrics::half_width_factor;
use posterior_notes::fixes::HELD_BACK;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The level whose intervals are normal ones after recalibration.
pub(crate) const LEVEL: f64 = 0.95;

/// Parts that take turns in scoring what the other parts learn.
pub(crate) const PARTS: usize = 10;

/// Fewest rows that say how wide 95 % intervals have to be.
pub(crate) const LEAST_ROWS: usize = 19;

/// What rows of a leave-one-out check are called.
pub(crate) const LEFT_OUT: &str = "rows (leave-one-out)";

/// 99 % of a normal distribution lie within so many standard deviations.
const DEVIATIONS: f64 = 2.576;

/// Shares of so many rows inside 95 % intervals that chance explains, 99 times in 100.
pub(crate) fn explained_by_chance(rows: usize) -> [f64; 2] {
    let half = DEVIATIONS * (0.95 * 0.05 / rows.max(1) as f64).sqrt();
    [(0.95 - half).max(0.0), (0.95 + half).min(1.0)]
}

/// The standard error of a share inside 95 % intervals, by what chance explains.
pub(crate) fn standard_error(chance: [f64; 2]) -> f64 {
    (0.95 - chance[0]) / DEVIATIONS
}

/// As many rows as say as much of a share inside 95 % intervals, one by one, as these rows say, with their groups and standardised residuals: `0.95 · 0.05` over the variance of the share, which is that of sums over groups.
pub(crate) fn independent_rows(groups: &[usize], residuals: &[f64]) -> usize {
    let (rows, half) = (residuals.len() as f64, half_width_factor(LEVEL));
    let inside = residuals.iter().filter(|z| z.abs() <= half).count() as f64 / rows.max(1.0);
    let mut sums: BTreeMap<usize, f64> = BTreeMap::new();
    for (group, z) in groups.iter().zip(residuals) {
        *sums.entry(*group).or_default() += f64::from(u8::from(z.abs() <= half)) - inside;
    }
    let (count, squares) = (sums.len(), sums.values().map(|sum| sum * sum).sum::<f64>());
    let alone = rows * 0.95 * 0.05;
    // Where all are inside their intervals the groups are what is independent.
    let independent = if squares > 0.0 { rows * alone / squares } else { count as f64 };
    (independent as usize).clamp(count.min(residuals.len()).max(1), residuals.len().max(1))
}

/// Whether new rows like those that tell it lie inside 95 % intervals with a probability of 95 % at least.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Guarantee {
    /// It holds: rows were held back by chance, and nothing was chosen by them.
    Holds,
    /// Hyperparameters have seen the rows, each of which is predicted from the others.
    LeaveOneOut,
    /// Each row is predicted under what was learned without its fold, and the model is of all rows.
    Folds,
    /// A method was chosen by them.
    Chosen,
    /// Hyperparameters were given, and may have seen them.
    Given,
    /// Rows with equals among those that are learned from were not held back.
    TrainingDuplicates,
    /// That intervals become narrower was chosen by them: where that is chance, they are too narrow by as much.
    Narrowed,
    /// Each row is predicted from the others, under hyperparameters that half of them chose; what was tried may have been chosen by them.
    LeftOut,
    /// Some of them stand among the rows learned from.
    Repeated,
    /// The training of a network kept the weights, or ended, by them.
    Kept,
    /// Fewer points carry the functions than when these rows were predicted.
    Compressed,
}

impl Guarantee {
    /// The first of these reasons against it that is true; it holds where none is.
    pub(crate) fn unless<const N: usize>(reasons: [(bool, Self); N]) -> Self {
        reasons.into_iter().find(|reason| reason.0).map_or(Self::Holds, |reason| reason.1)
    }

    /// Of rows that no network was trained on, where something was `chosen` by them, so many stand among the rows learned from, or training `kept` the weights that were best on them.
    pub(crate) fn of_unseen(chosen: bool, repeated: usize, kept: bool) -> Self {
        Self::unless([(chosen, Self::Chosen), (repeated > 0, Self::Repeated), (kept, Self::Kept)])
    }

    /// Why it does not hold, if it does not.
    fn but(self) -> Option<&'static str> {
        Some(match self {
            Self::Holds => return None,
            Self::LeaveOneOut => "the hyperparameters have seen these rows",
            Self::Folds => "these rows were cross-validated, and the model has learned from all of them",
            Self::Chosen => "something of the fit was chosen by these rows",
            Self::Given => "the hyperparameters were given, and may have seen these rows",
            Self::TrainingDuplicates => {
                "rows with equals among those that are learned from are not among them"
            }
            Self::Narrowed => "these rows also decided that intervals become narrower",
            Self::LeftOut => {
                "each of these rows is predicted leave-one-out, under hyperparameters of the other half"
            }
            Self::Repeated => "some of these rows stand among those that are learned from",
            Self::Kept => "the network's training kept the weights that were best on these rows",
            Self::Compressed => "fewer points carry the functions since these rows were predicted",
        })
    }

    /// In words; `holds` is what it says where it does.
    pub(super) fn sentence(self, holds: &str) -> String {
        match self.but() {
            None => holds.into(),
            Some(but) => format!("{but}, so that no guarantee is exact"),
        }
    }

    /// What it says of intervals, in words.
    pub(super) fn of_intervals(self) -> String {
        let level = 100.0 * LEVEL;
        self.sentence(&format!("new rows like these lie inside with a probability of {level:.0} % at least"))
    }
}

/// What was asked for, and which rows are to tell it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CalibrationRequest {
    /// Whether predictions are changed never, in any case or where that is needed.
    pub(crate) calibrate: CalibrateName,
    /// Which rows.
    pub(crate) on: CheckedOn,
    /// What is against their guarantee.
    pub(crate) guarantee: Guarantee,
    /// Whether rows counted differently in the fit, which therefore predicts another population than these rows.
    pub(crate) weighted: bool,
}

/// Refuses before a fit what it could not do after it: `rows` are those that it will be judged on.
pub(crate) fn check(calibrate: CalibrateName, rows: usize, exact: bool) -> Result<(), ModelError> {
    if calibrate != CalibrateName::Conformal || rows >= LEAST_ROWS {
        return Ok(());
    }
    let remedy = if exact { String::new() } else { format!("hold back more ({HELD_BACK}), or ") };
    Err(ModelError::Request(format!(
        "--calibrate conformal tells what intervals and sets have to hold by {LEAST_ROWS} rows or more; the model would be judged on {rows}: {remedy}leave it out"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_few_rows_are_refused_before_the_fit() {
        let asked = CalibrateName::Conformal;
        let error = check(asked, 18, false).unwrap_err().to_string();
        assert!(
            error.contains("19 rows or more") && error.contains("judged on 18: hold back more"),
            "{error}"
        );
        assert!(check(asked, 19, true).is_ok() && check(CalibrateName::default(), 0, true).is_ok());
    }

    /// Rows that repeat nine times count once, rows of their own as they are.
    #[test]
    fn rows_of_a_group_count_by_what_they_have_in_common() {
        let outside = |i: usize| if i % 20 == 7 { 3.0 } else { 0.5 };
        let groups: Vec<usize> = (0..900).map(|i| i / 9).collect();
        let same: Vec<f64> = (0..900).map(|i| outside(i / 9)).collect();
        let found = independent_rows(&groups, &same);
        assert!((95..=105).contains(&found), "{found}");
        let alone: Vec<usize> = (0..900).collect();
        let found = independent_rows(&alone, &(0..900).map(outside).collect::<Vec<_>>());
        assert!((890..=900).contains(&found), "{found}");
        assert_eq!(independent_rows(&groups, &[0.1; 900]), 100);
        assert!((standard_error(explained_by_chance(500)) - (0.95 * 0.05 / 500f64).sqrt()).abs() < 1e-12);
    }

    #[test]
    fn the_first_reason_against_a_guarantee_is_told() {
        let of = |chosen, repeated| {
            Guarantee::unless([(chosen, Guarantee::Chosen), (repeated, Guarantee::Repeated)])
        };
        assert_eq!(of(false, false), Guarantee::Holds);
        assert_eq!((of(true, true), of(false, true)), (Guarantee::Chosen, Guarantee::Repeated));
    }
}
