//! Scores and what the scored rows are to a model, in words; reports.

use crate::output::{Failure, number, table};
use posterior::metrics::RegressionScores;
use posterior::report::{Report, ScoredRows};
use std::path::Path;

/// Words for [`ScoredRows`].
pub(super) trait ScoredRowsText {
    /// What stands above the scores of `n` rows.
    fn heading(self, n: usize) -> String;
    /// What must be known to read scores, of which `n` rows are of the training or unknown.
    fn remark(self, n: usize) -> Option<String>;
}

/// Of `n` rows that a model was trained on.
pub(super) fn trained_on(n: usize) -> String {
    format!(
        "the model was trained on rows with the same numbers as {n} of these; new rows come out worse than their scores say (leave rows out of the fit: --test-fraction or --folds of a process, a file of their own for a network)"
    )
}

impl ScoredRowsText for ScoredRows {
    fn heading(self, n: usize) -> String {
        match self {
            Self::HeldOut => format!("{n} rows that the model was not trained on"),
            Self::Training => {
                format!("{n} rows that the model was trained on: how well it fits, not how well it predicts")
            }
            Self::Unknown => format!("{n} rows"),
        }
    }

    fn remark(self, n: usize) -> Option<String> {
        match self {
            Self::HeldOut => None,
            Self::Training => Some(trained_on(n)),
            Self::Unknown => Some(
                "the model file does not say which rows it was trained on (older releases do not, nor fits to data in memory): if it was trained on these, their scores say nothing of new rows".into(),
            ),
        }
    }
}

/// Scores side by side, in words.
pub(crate) fn score_table(models: &[(&str, &RegressionScores)]) -> String {
    let percent =
        |share: f64| if share.is_finite() { format!("{:.1} %", 100.0 * share) } else { "–".to_string() };
    type Cell = fn(&RegressionScores) -> f64;
    let rows: [(&str, Cell, bool); 8] = [
        ("typical error (RMSE)", |s| s.rmse, false),
        ("mean absolute error", |s| s.mae, false),
        ("share of the variance explained (R²)", |s| s.r2.unwrap_or(f64::NAN), true),
        ("CRPS (error, sureness included)", |s| s.crps, false),
        ("NLL (surprise, in nats)", |s| s.nll, false),
        ("truths inside the 95 % interval", |s| s.coverage_95, true),
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

/// Writes a report in one atomic step.
pub(crate) fn write_report(path: &Path, report: &Report) -> Result<(), Failure> {
    use std::io::Write;
    posterior::data::create_atomically(path, |file| file.write_all(report.to_html().as_bytes()))
        .map_err(Failure::from)
}
