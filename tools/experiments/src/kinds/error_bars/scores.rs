//! Scores on the rows that choose nothing, and how often central intervals hold the truth there.

use crate::kinds::prelude::*;
use posterior_metrics::{ClassificationScores, Gaussians};
use posterior_models::{Comparison, Predicted, Predictive, Scores, Truth};

/// Levels of central intervals, per cent: those of the published curves, and the two that tables and tails are judged by.
const LEVELS: [u8; 11] = [10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 99];

/// What published values of the centred quantile metric have too much: their integrand is 1 at the upper end, where it is 0.
const PUBLISHED_SLIP: f64 = 0.05;

/// Where the columns of a table of scores come from.
pub(super) type Columns = &'static [(&'static str, &'static str)];

pub(super) const OF_NUMBERS: Columns = &[
    ("nll", "NLL"),
    ("nll_difference", "difference"),
    ("crps", "CRPS"),
    ("coverage_95", "coverage of 95 %"),
    ("cqm", "CQM"),
    ("rmse", "RMSE"),
    ("fit_seconds", "fit, s"),
    ("predict_seconds", "predict, s"),
    ("memory_megabytes", "memory, MB"),
];

pub(super) const OF_CLASSES: Columns = &[
    ("nll", "NLL"),
    ("nll_difference", "difference"),
    ("accuracy", "accuracy"),
    ("brier", "Brier"),
    ("ece", "ECE"),
    ("foreign_auc", "OOD-AUC"),
    ("fit_seconds", "fit, s"),
    ("predict_seconds", "predict, s"),
    ("memory_megabytes", "memory, MB"),
];

/// Scores of one method on one task.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Scored {
    /// Mean negative log density or log probability.
    pub(super) nll: f64,
    /// The others, by their names.
    pub(super) others: Value,
    /// Of numbers: level of a central interval, per cent, and the share of truths inside.
    pub(super) coverage: Vec<(u8, f64)>,
}

impl Scored {
    /// Of predictions with their truths.
    pub(super) fn of(own: Predictive) -> Result<Self> {
        let baseline = own.clone();
        let compared =
            Comparison { model: own, baseline, baseline_name: "", scale: 1.0, class_names: Vec::new() };
        let found = compared.scored()?;
        Ok(match found.scores {
            Scores::Classes(ClassificationScores { nll, accuracy, brier, ece, .. }) => Self {
                nll,
                others: json!({"accuracy": accuracy, "brier": brier, "ece": ece}),
                coverage: Vec::new(),
            },
            Scores::Values { scores, nll } => Self {
                nll,
                others: json!({
                    "crps": scores.crps, "coverage_95": scores.coverage_95, "cqm": scores.cqm_exact,
                    "cqm_published": scores.cqm + PUBLISHED_SLIP, "rmse": scores.rmse,
                }),
                coverage: coverage(&found.compared.model, &found.truth)?,
            },
            Scores::Events(_) => return refused("events have no table here"),
        })
    }

    /// Its numbers.
    pub(super) fn numbers(&self) -> Value {
        let mut out = self.others.clone();
        out["nll"] = self.nll.into();
        if !self.coverage.is_empty() {
            let shares = self.coverage.iter().map(|(level, share)| (level.to_string(), (*share).into()));
            out["coverage"] = Value::Object(shares.collect::<Map<_, _>>());
        }
        out
    }
}

fn coverage(own: &Predictive, truth: &Truth) -> Result<Vec<(u8, f64)>> {
    let (Predicted::Moments { mean, variance, .. }, Truth::Values { values, .. }) = (&own.predicted, truth)
    else {
        return refused("intervals are of numbers");
    };
    let gaussians = Gaussians::new(mean, variance, values)?;
    Ok(LEVELS.into_iter().map(|level| (level, gaussians.coverage(f64::from(level) / 100.0))).collect())
}

/// Coverage of several methods; nothing where classes are predicted.
pub(super) fn coverage_figure(task: &str, all: &[(String, Scored)]) -> Option<Item> {
    let line = |(name, own): &(String, Scored)| {
        through(name, own.coverage.iter().map(|(level, share)| (f64::from(*level) / 100.0, *share)))
    };
    let lines: Vec<Line> = all.iter().map(line).filter(|line| !line.x.is_empty()).collect();
    if lines.is_empty() {
        return None;
    }
    let caption = "Central intervals of Gaussians with the predicted means and variances, noise included. A calibrated method has as many truths inside as its level says: above that its intervals are too wide, below too narrow.";
    let title = format!("{task}: coverage");
    Some(
        Curves::new(title, "level of the interval", "share of truths inside", lines)
            .captioned(caption)
            .into(),
    )
}
