//! **Rows that are set apart**: to judge and to choose by, to test on, and those that a model has learned from already.
//!
//! |---|---|
//! | [`Split`] | rows to learn from and rows to judge by, with duplicate rows kept together; what is drawn for a test before that is a [`posterior_data::Split`] |
//! | [`TrainingRows`] | recognises the rows of a fit: [`TrainedOn`] |
//! | [`LeftOut`] | rows of an exact process, each as the others predict it |
//! | [`CheckedOn`] | which of these a score, a calibration or a choice goes by |
//! | `folds` | parts of the rows that take turns |
//! | `left_out` | training rows, each predicted from all others |
//! | `split` | rows to judge or to choose by, apart from those that are learned from |
//! | `training` | which rows a model has learned from |

mod folds;
mod left_out;
mod split;
mod training;

pub(crate) use folds::{FOLDED, folds};
pub(crate) use left_out::{LeftOut, no_leave_one_out, without_duplicates};
pub(crate) use split::{MOST_SET_ASIDE, Prints, Split, equals, rows_set_aside, scored, set_aside};
pub(crate) use training::prints_of_examples;
pub use training::{TrainedOn, TrainingRows};

use serde::{Deserialize, Serialize};

/// By how much more, in nats a row, one model is surprised by the same rows than another, with the standard error of that; none where chance explains it.
pub(crate) fn worse_by(own: &[f64], other: &[f64]) -> Option<(f64, f64)> {
    let differences: Vec<f64> = own.iter().zip(other).map(|(own, other)| own - other).collect();
    let [mean, error] = mean_and_error(&differences);
    (mean > error).then_some((mean, error))
}

/// The mean of differences between two models' scores of the same rows, and its standard error.
pub(crate) fn mean_and_error(differences: &[f64]) -> [f64; 2] {
    let n = differences.len().max(1) as f64;
    let mean = differences.iter().sum::<f64>() / n;
    let square = differences.iter().map(|d| (d - mean).powi(2)).sum::<f64>() / n;
    [mean, (square / n).sqrt()]
}

/// The median of some numbers, and their median absolute deviation from it as the standard deviation of normal ones; 0 where more than half are equal.
pub(crate) fn robust_moments(values: impl IntoIterator<Item = f64>) -> [f64; 2] {
    /// The standard normal distribution's median absolute deviation.
    const OF_NORMAL: f64 = 0.674_489_750_196_081_7;
    let median = |mut sorted: Vec<f64>| {
        sorted.sort_by(f64::total_cmp);
        let n = sorted.len();
        if n == 0 { 0.0 } else { 0.5 * (sorted[(n - 1) / 2] + sorted[n / 2]) }
    };
    let values: Vec<f64> = values.into_iter().collect();
    let middle = median(values.clone());
    [middle, median(values.iter().map(|v| (v - middle).abs()).collect()) / OF_NORMAL]
}

/// Which rows a fit was checked on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CheckedOn {
    /// Rows that were held back from the fit.
    HeldBack,
    /// Every training row, predicted from all the others in closed form; hyperparameters have seen it.
    LeaveOneOut,
    /// Training rows, each under hyperparameters that were learned without its fold.
    Folds,
}

impl CheckedOn {
    /// What these rows are called, where rows that are predicted from the others have this name.
    pub(crate) fn in_words(self, left_out: &'static str) -> &'static str {
        match self {
            Self::HeldBack => "held-back rows",
            Self::LeaveOneOut => left_out,
            Self::Folds => "cross-validated rows",
        }
    }
}
