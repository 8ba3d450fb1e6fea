//! The scores in plain sentences, for those who will read nothing else.

use crate::{
    input::ClassificationReport,
    plots::Z95,
    text::{count, number, percent},
};

/// What can be said about a lower NLL than the plain network's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Comparison {
    /// Lower, by more than chance if that is known, else by more than half a percent.
    Better,
    /// Lower or higher, but chance explains it, or the two agree to within half a percent.
    Equal,
    /// Higher.
    Worse,
    /// One of the two is not a number.
    Unknown,
}

/// Compares the NLL of the model with that of the plain network. If the difference row by row is known with its standard
/// error, it must be 1.96 of those away from 0.
pub(super) fn compare(nll: f64, plain: f64, difference: Option<(f64, f64)>) -> Comparison {
    if !(nll.is_finite() && plain.is_finite()) {
        return Comparison::Unknown;
    }
    let (difference, chance) = match difference {
        Some((mean, error)) if mean.is_finite() && error.is_finite() => (mean, Z95 * error),
        _ => (nll - plain, 0.005 * plain.abs()),
    };
    if difference < -chance {
        Comparison::Better
    } else if difference > chance {
        Comparison::Worse
    } else {
        Comparison::Equal
    }
}

/// A few sentences on the scores; empty without scores.
pub(super) fn verdict(report: &ClassificationReport) -> String {
    let Some(scores) = &report.scores else { return String::new() };
    let model = if report.model.is_empty() { "the model" } else { &report.model };
    let mut text = format!(
        "On {} held-out rows {model} predicts {} correctly, with a log score (NLL) of {}.",
        count(scores.rows),
        percent(scores.accuracy),
        number(scores.nll, 3)
    );
    if let Some(plain) = &report.plain {
        let paired = report.nll_difference.and_then(|d| d.standard_error.map(|e| (d.mean, e)));
        let theirs = format!("the {} of the {}", number(plain.scores.nll, 3), plain.name);
        text += &match compare(scores.nll, plain.scores.nll, paired) {
            Comparison::Better => format!(" That is lower than {theirs}: its probabilities are better."),
            Comparison::Worse => {
                format!(
                    " That is higher than {theirs}: its probabilities are worse, and the error bars did not help here."
                )
            }
            Comparison::Equal if paired.is_some() => {
                format!(
                    " Against {theirs} the difference is no larger than chance explains: it is not better."
                )
            }
            Comparison::Equal => {
                format!(" That is the same as {theirs}, to within half a percent: it is not better.")
            }
            Comparison::Unknown => format!(" It cannot be compared with {theirs}."),
        };
        if let Some((mean, error)) = paired {
            text += &format!(" Row by row the difference is {} ± {}.", number(mean, 2), number(error, 2));
        }
    }
    text += &confidence(scores.mean_confidence, scores.accuracy, scores.rows);
    if scores.impossible_labels > 0 {
        text += &format!(
            " The truth had probability 0 in {} rows, so that the true log score is infinite; each counts as 708.",
            count(scores.impossible_labels)
        );
    }
    text
}

/// Whether the mean confidence agrees with the accuracy, as far as `n` rows can tell.
fn confidence(confidence: f64, accuracy: f64, n: usize) -> String {
    let chance = Z95 * (accuracy * (1.0 - accuracy) / n.max(1) as f64).sqrt();
    let excess = confidence - accuracy;
    let stated = format!(" It is {} sure of its predictions on average", percent(confidence));
    if !(excess.is_finite() && chance.is_finite()) {
        String::new()
    } else if excess > chance {
        format!("{stated}, more than it is right: it is overconfident.")
    } else if excess < -chance {
        format!("{stated}, less than it is right: it is too cautious.")
    } else {
        format!("{stated}, as often as it is right.")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn better_only_if_it_is() {
        assert_eq!(compare(0.5, 0.6, None), Comparison::Better);
        assert_eq!(compare(0.5, 0.501, None), Comparison::Equal);
        assert_eq!(compare(0.6, 0.5, None), Comparison::Worse);
        assert_eq!(compare(0.5, 0.6, Some((-0.1, 0.2))), Comparison::Equal);
        assert_eq!(compare(0.500, 0.501, Some((-0.001, 0.0001))), Comparison::Better);
        assert_eq!(compare(0.6, 0.5, Some((0.1, 0.01))), Comparison::Worse);
        assert_eq!(compare(f64::NAN, 0.5, None), Comparison::Unknown);
    }

    #[test]
    fn confidence_is_judged_by_what_the_rows_can_tell() {
        assert!(confidence(0.9, 0.8, 10_000).contains("overconfident"));
        assert!(confidence(0.7, 0.8, 10_000).contains("too cautious"));
        assert!(confidence(0.9, 0.8, 20).contains("as often"));
        assert!(confidence(f64::NAN, 0.8, 20).is_empty());
    }
}
