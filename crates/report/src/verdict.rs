//! The scores in plain sentences, for those who will read nothing else.

use crate::{
    input::{RegressionReport, ScoredRows},
    plots::Z95,
    text::{count, fixed, number, percent},
};

/// Whether the 95 % intervals keep their promise, as far as `n` rows can tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Honesty {
    /// 95 % lies in the uncertainty of the coverage.
    Kept,
    /// Intervals too narrow.
    Overconfident,
    /// Intervals too wide.
    Cautious,
}

/// Compares a coverage of the 95 % intervals on `n` rows with 95 %: a promise counts as kept unless the coverage is more
/// than 1.96 standard errors `sqrt(0.95 * 0.05 / n)` away, which is when 95 % leaves the Wilson interval of the coverage.
pub(crate) fn honesty(coverage: f64, n: usize) -> Honesty {
    let excess = (coverage - 0.95) / (0.95 * 0.05 / n.max(1) as f64).sqrt();
    if excess < -Z95 {
        Honesty::Overconfident
    } else if excess > Z95 {
        Honesty::Cautious
    } else {
        Honesty::Kept
    }
}

/// One or two sentences on the scores; empty without scores.
pub(crate) fn verdict(report: &RegressionReport) -> String {
    let Some(scores) = &report.scores else { return String::new() };
    let unit = report.target_unit.as_deref().map(|u| format!(" {u}")).unwrap_or_default();
    let mut text =
        format!("On {} the RMSE is {}{unit}", report.rows.several(&count(scores.n)), number(scores.rmse, 3));
    match &report.baseline {
        Some(b) if b.scores.rmse > 0.0 && scores.rmse.is_finite() => {
            let share = scores.rmse / b.scores.rmse;
            text += &if share < 0.995 {
                format!(", {} % of the error of the baseline ({}).", fixed(100.0 * share, 0), b.name)
            } else {
                format!(", no better than the baseline ({}).", b.name)
            };
        }
        _ => text.push('.'),
    }
    let kept = percent(scores.coverage_95);
    text += &match honesty(scores.coverage_95, scores.n) {
        Honesty::Kept => {
            format!(" The 95 % intervals contain the truth for {kept} of the rows: as promised.")
        }
        Honesty::Overconfident => {
            format!(
                " The 95 % intervals contain the truth for only {kept} of the rows: the model is overconfident."
            )
        }
        Honesty::Cautious => {
            format!(
                " The 95 % intervals contain the truth for {kept} of the rows: they are wider than they need be."
            )
        }
    };
    if report.rows == ScoredRows::Training {
        text += " This is how well it fits what it was given, not how well it predicts new rows.";
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn judged_by_what_the_rows_can_tell() {
        assert_eq!(honesty(0.90, 20), Honesty::Kept);
        assert_eq!(honesty(0.90, 2_000), Honesty::Overconfident);
        assert_eq!(honesty(1.0, 20), Honesty::Kept);
        assert_eq!(honesty(1.0, 2_000), Honesty::Cautious);
        assert_eq!(honesty(f64::NAN, 0), Honesty::Kept);
    }
}
