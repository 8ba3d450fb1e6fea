//! Findings in words.

use super::scoring::{Findings, Scored};
use crate::output::{number, table, table_under};
use posterior::metrics::{Classes, RegressionScores};
use posterior::models::{Evaluation, OutOfDistribution, Predicted, Scores, Truth};
use posterior::notes::fixes::{FOLDS, TEST_FRACTION};
use posterior::report::ScoredRows;

/// What stands above the scores of `n` rows.
fn heading(rows: ScoredRows, n: usize) -> String {
    match rows {
        ScoredRows::HeldOut => format!("{n} rows that the model was not trained on"),
        ScoredRows::Training => {
            format!("{n} rows that the model was trained on: how well it fits, not how well it predicts")
        }
        ScoredRows::PartlyTraining => format!("{n} rows, on some of which the model was trained"),
        ScoredRows::Unknown => format!("{n} rows"),
    }
}

/// What must be known to read scores, where the training had rows with the same numbers as `seen` of them.
pub(super) fn remark(rows: ScoredRows, seen: usize) -> Option<String> {
    match rows {
        ScoredRows::HeldOut => None,
        ScoredRows::Training | ScoredRows::PartlyTraining => Some(trained_on(seen)),
        ScoredRows::Unknown => Some(
            "the model file does not say which rows it was trained on (fits to data in memory do not, nor models of a stream): if it was trained on these, their scores say nothing of new rows".into(),
        ),
    }
}

/// Of `n` rows that a model was trained on.
pub(super) fn trained_on(n: usize) -> String {
    format!(
        "the model was trained on rows with the same numbers as {n} of these; new rows come out worse than their scores say (leave rows out of the fit: {TEST_FRACTION} or {FOLDS} of a process, a file of their own for a network)"
    )
}

/// A number with its standard error.
pub(super) fn plus_minus(mean: f64, standard_error: Option<f64>) -> String {
    let error = standard_error.map(|e| format!(" +- {}", number(e))).unwrap_or_default();
    format!("{}{error}", number(mean))
}

fn percent(share: f64) -> String {
    format!("{:.2} %", 100.0 * share)
}

/// All of it for people.
pub(crate) fn findings(findings: &Findings) -> String {
    let baseline = findings.evaluation().compared.baseline_name;
    let set = |rows, scored: &[Scored]| {
        format!("{}\n{}", heading(rows, scored[0].evaluation.len()), scores(scored))
    };
    let mut parts = vec![set(findings.rows, &findings.scored)];
    if let Some(rows) = &findings.unseen {
        let one = Scored { name: "model".into(), evaluation: rows.clone(), seconds: None };
        parts.push(set(ScoredRows::HeldOut, &[one]));
    }
    let other = format!("({baseline})");
    for shift in &findings.shifts {
        let [own, plain] = &shift.methods[..] else { continue };
        let row = |i: usize| {
            let accuracy = format!("{:.1} %", 100.0 * own.accuracy[i]);
            let [nll, ece] = [&own.nll, &own.ece].map(|of| number(of[i]));
            [own.at[i].to_string(), nll, number(plain.nll[i]), accuracy, ece, number(plain.ece[i])]
        };
        let head = [&shift.parameter, "NLL", &other, "accuracy", "ECE", &other];
        parts.push(table_under(head, (0..own.at.len()).map(row)));
    }
    if let Some(strange) = &findings.strange {
        let row = |name: &str, auc: &OutOfDistribution| {
            [name.to_string(), format!("{:.4}", auc.entropy), format!("{:.4}", auc.maximum_probability)]
        };
        let told = format!("{} told from these (AUC)", strange.name);
        parts.push(table_under(
            [&told, "by entropy", "by probability"],
            [row("model", &strange.model_auc), row(baseline, &strange.baseline_auc)],
        ));
    }
    if !findings.joint.is_empty() {
        let head = ["labels scored jointly", "log-likelihood of the model", &format!("of the {baseline}")];
        let rows = findings.joint.iter().map(|row| {
            [
                format!("{} points, {} labels", row.points, row.model.labels),
                plus_minus(row.model.mean, row.model.standard_error),
                plus_minus(row.plain.mean, row.plain.standard_error),
            ]
        });
        parts.push(table_under(head, rows));
    }
    parts.join("\n\n")
}

/// Scores side by side, those of the first model's baseline at the end.
pub(crate) fn scores(scored: &[Scored]) -> String {
    let Some(first) = scored.first().map(|s| &s.evaluation) else { return String::new() };
    let baseline = (first.compared.baseline_name, &first.baseline);
    let named: Vec<(&str, &Scores)> =
        scored.iter().map(|s| (s.name.as_str(), &s.evaluation.scores)).chain([baseline]).collect();
    let probabilities = || {
        let rows = named.iter().filter_map(|(name, scores)| {
            let (accuracy, [nll, ece, brier], auc, confidence) = match scores {
                Scores::Classes(s) => {
                    (s.accuracy, [s.nll, s.ece, s.brier], s.auc, percent(s.mean_confidence))
                }
                Scores::Events(s) => (s.accuracy, [s.nll, s.ece, s.brier], s.auc, "-".into()),
                Scores::Values { .. } => return None,
            };
            let auc = auc.map_or("-".into(), number);
            let name = name.to_string();
            Some([name, percent(accuracy), number(nll), number(ece), number(brier), auc, confidence])
        });
        table_under(["", "accuracy", "NLL", "ECE", "Brier", "AUC", "mean confidence"], rows)
    };
    match (&first.scores, &first.baseline) {
        (Scores::Classes(_), _) => {
            let difference = first.nll_difference.map(|d| plus_minus(d.mean, d.standard_error));
            format!(
                "{}\n({} examples; NLL of the model minus that of the {}: {}){}{}",
                probabilities(),
                first.len(),
                baseline.0,
                difference.unwrap_or_default(),
                sets(first),
                confusion(first)
            )
        }
        (Scores::Events(own), _) => format!("{}\n({} events)", probabilities(), own.events),
        (Scores::Values { nll, .. }, other) => {
            let models = named.iter().filter_map(|(name, scores)| match scores {
                Scores::Values { scores, .. } => Some((*name, scores)),
                _ => None,
            });
            let text = moments(&models.collect::<Vec<_>>());
            match other {
                Scores::Values { nll: other, .. } if first.compared.model.is_approximated() => format!(
                    "{text}\nNLL of the likelihood itself: {} ({} {}); the scores above take predictions as Gaussian with the same moments{}",
                    number(*nll),
                    baseline.0,
                    number(*other),
                    intervals(first)
                ),
                _ => text,
            }
        }
    }
}

/// What the model's intervals of counts or of numbers with outliers are worth; nothing where no rows tell them.
fn intervals(evaluation: &Evaluation) -> String {
    let each = evaluation.intervals.iter().map(|s| (s.level, s.coverage, s.mean_width));
    levels(["intervals", "hold the truth", "mean width"], each)
}

/// What the model's sets of classes are worth; nothing where it has none.
fn sets(evaluation: &Evaluation) -> String {
    let each = evaluation.sets.iter().map(|s| (s.level, s.coverage, s.mean_size));
    levels(["sets of classes", "hold the true one", "mean size"], each)
}

/// Levels, coverages and sizes as a table of its own, where there are any.
fn levels(head: [&str; 3], each: impl ExactSizeIterator<Item = (f64, f64, f64)>) -> String {
    if each.len() == 0 {
        return String::new();
    }
    let rows = each.map(|(level, coverage, size)| [percent(level), percent(coverage), number(size)]);
    format!("\n\n{}", table_under(head, rows))
}

/// Classes beyond this make no table that anyone reads.
const MOST_SHOWN: usize = 12;

/// Which classes the model takes for which; nothing for many.
fn confusion(evaluation: &Evaluation) -> String {
    let Some((names, counts)) = confusion_counts(evaluation) else { return String::new() };
    if names > MOST_SHOWN {
        return String::new();
    }
    let shown = |k: usize| evaluation.class_name(k);
    let mut rows = vec![
        std::iter::once("true class \\ predicted".to_string())
            .chain((0..names).map(shown))
            .collect::<Vec<_>>(),
    ];
    rows.extend((0..names).map(|k| {
        let own = counts[k * names..(k + 1) * names].iter().map(ToString::to_string);
        std::iter::once(shown(k)).chain(own).collect()
    }));
    format!("\n\n{}", table(&rows))
}

/// How often each class was predicted for each true class, row by row of true classes; None where no classes are predicted, or too many.
pub(super) fn confusion_counts(evaluation: &Evaluation) -> Option<(usize, Vec<usize>)> {
    let (Predicted::Classes(p), Truth::Classes(labels)) =
        (&evaluation.compared.model.predicted, &evaluation.truth)
    else {
        return None;
    };
    let matrix = Classes::new(p, evaluation.compared.model.width, labels).ok()?.confusion().ok()?;
    Some((matrix.classes, matrix.counts))
}

/// Scores of means and variances side by side.
fn moments(models: &[(&str, &RegressionScores)]) -> String {
    let percent =
        |share: f64| if share.is_finite() { format!("{:.1} %", 100.0 * share) } else { "–".to_string() };
    type Cell = fn(&RegressionScores) -> f64;
    let rows: [(&str, Cell, bool); 8] = [
        ("RMSE", |s| s.rmse, false),
        ("mean absolute error", |s| s.mae, false),
        ("R² (explained variance)", |s| s.r2.unwrap_or(f64::NAN), true),
        ("CRPS", |s| s.crps, false),
        ("NLL (nats)", |s| s.nll, false),
        ("coverage of the 95 % interval", |s| s.coverage_95, true),
        ("mean width of that interval", |s| s.width_95, false),
        ("calibration error (CQM, 0 is perfect)", |s| s.cqm, false),
    ];
    let mut out =
        vec![std::iter::once(String::new()).chain(models.iter().map(|(name, _)| name.to_string())).collect()];
    for (label, value, is_share) in rows {
        let show = |s: &RegressionScores| if is_share { percent(value(s)) } else { number(value(s)) };
        out.push(std::iter::once(label.to_string()).chain(models.iter().map(|(_, s)| show(s))).collect());
    }
    let n = models.first().map_or(0, |(_, s)| s.n);
    format!("{}\n({n} rows, in units of the target)", table(&out))
}
