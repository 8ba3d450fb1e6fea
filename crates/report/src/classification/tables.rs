//! The methods side by side, and their joint log-likelihoods.

use crate::{
    input::{ClassificationReport, JointScores, MethodRow},
    tables::{row, table},
    text::{escape, number, percent},
};

/// A column: its heading, value, best end, and how a value is written.
type Column = (&'static str, fn(&MethodRow) -> Option<f64>, Best, fn(f64) -> String);

/// Which end of a column is best.
#[derive(Clone, Copy)]
enum Best {
    Low,
    High,
}

/// Whether there is anything to compare.
pub(super) fn has_methods(report: &ClassificationReport) -> bool {
    !report.methods.is_empty() || report.scores.is_some()
}

/// All methods, or the model and the plain network if no others are given.
fn rows(report: &ClassificationReport) -> Vec<MethodRow> {
    if !report.methods.is_empty() {
        return report.methods.clone();
    }
    let model = if report.model.is_empty() { "this model" } else { &report.model };
    let own = report.scores.as_ref().map(|scores| MethodRow::new(model, scores));
    own.into_iter().chain(report.plain.as_ref().map(|p| MethodRow::new(p.name.clone(), &p.scores))).collect()
}

/// The best finite value, if at least two differ.
fn best(values: &[Option<f64>], best: Best) -> Option<f64> {
    let finite: Vec<f64> = values.iter().flatten().copied().filter(|v| v.is_finite()).collect();
    let low = finite.iter().copied().fold(f64::INFINITY, f64::min);
    let high = finite.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    (low < high).then_some(match best {
        Best::Low => low,
        Best::High => high,
    })
}

/// The table of methods; the best value of each column is in bold. Columns that nobody fills are left out.
pub(super) fn methods(report: &ClassificationReport) -> String {
    let rows = rows(report);
    let columns: [Column; 7] = [
        ("accuracy", |m| m.accuracy, Best::High, percent),
        ("NLL", |m| m.nll, Best::Low, |v| number(v, 4)),
        ("ECE", |m| m.ece, Best::Low, |v| number(v, 3)),
        ("Brier", |m| m.brier, Best::Low, |v| number(v, 4)),
        ("OOD AUC", |m| m.out_of_distribution_auc, Best::High, |v| number(v, 4)),
        ("seconds", |m| m.seconds, Best::Low, |v| number(v, 3)),
        ("memory (MiB)", |m| m.peak_memory, Best::Low, |v| number(v, 3)),
    ];
    let mut head = vec!["method"];
    let mut cells: Vec<Vec<Option<String>>> = vec![Vec::new(); rows.len()];
    for (name, get, end, write) in columns {
        let values: Vec<Option<f64>> = rows.iter().map(get).collect();
        if values.iter().all(Option::is_none) {
            continue;
        }
        head.push(name);
        let best = best(&values, end);
        for (cells, value) in cells.iter_mut().zip(values) {
            cells.push(Some(match value {
                None => "–".to_owned(),
                Some(v) if Some(v) == best => format!("<b>{}</b>", write(v)),
                Some(v) => write(v),
            }));
        }
    }
    let body: String = rows.iter().zip(&cells).map(|(m, cells)| row(&m.name, cells)).collect();
    table(&head, None, &body) + "<p class=\"under\">The best of each column is in bold.</p>"
}

/// Joint log-likelihoods: one row per number of points in a set, one column per method.
pub(super) fn joint(methods: &[JointScores]) -> String {
    let mut sizes: Vec<(usize, usize)> =
        methods.iter().flat_map(|m| m.scores.iter().map(|s| (s.points, s.labels))).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let body: String = sizes
        .iter()
        .map(|&(points, labels)| {
            let found: Vec<_> = methods
                .iter()
                .map(|m| m.scores.iter().find(|s| (s.points, s.labels) == (points, labels)))
                .collect();
            let best = best(&found.iter().map(|s| s.map(|s| s.mean)).collect::<Vec<_>>(), Best::High);
            let cells: Vec<Option<String>> = found
                .into_iter()
                .map(|score| {
                    let Some(score) = score else { return Some("–".to_owned()) };
                    let error =
                        score.standard_error.map_or(String::new(), |e| format!(" ± {}", number(e, 2)));
                    let mean = number(score.mean, 4);
                    Some(if Some(score.mean) == best {
                        format!("<b>{mean}</b>{error}")
                    } else {
                        mean + &error
                    })
                })
                .collect();
            let s = |n: usize| if n == 1 { "" } else { "s" };
            row(&format!("{points} point{}, {labels} label{}", s(points), s(labels)), &cells)
        })
        .collect();
    let names: Vec<String> = methods.iter().map(|m| escape(&m.method)).collect();
    let head: Vec<&str> = std::iter::once("set").chain(names.iter().map(String::as_str)).collect();
    table(&head, None, &body)
        + "<p class=\"under\">The logarithm of the probability of all labels of a set at once, mean ± standard error over \
           sets; higher is better. Sets of several points repeat them, so that knowing one label helps with the next.</p>"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_is_finite_and_unshared() {
        assert_eq!(best(&[Some(1.0), None, Some(f64::NAN), Some(2.0)], Best::High), Some(2.0));
        assert_eq!(best(&[Some(1.0), Some(f64::NEG_INFINITY), Some(2.0)], Best::Low), Some(1.0));
        assert_eq!(best(&[Some(1.0), Some(1.0)], Best::Low), None);
        assert_eq!(best(&[], Best::High), None);
    }
}
