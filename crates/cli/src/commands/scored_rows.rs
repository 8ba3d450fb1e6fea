//! What rows that are scored are to a model, in words.

use posterior::report::ScoredRows;

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
