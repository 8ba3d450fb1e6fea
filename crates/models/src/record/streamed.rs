//! What a model has learned from a stream after its fit.

use serde::{Deserialize, Serialize};

/// What a model has learned after its fit; part of its header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamedRows {
    /// Rows learned one after the other.
    pub rows: u64,
    /// Inducing points that were added on the way.
    pub added_inducing: usize,
    /// Rows and functions whose observation had no precision to speak of (likelihoods that are not log-concave).
    pub clipped: u64,
    /// Whether the noise was learned on the way.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub learned_noise: bool,
}

impl StreamedRows {
    /// In words.
    pub(crate) fn sentence(&self) -> String {
        let mut text = format!(
            "{} rows were learned after the fit as they came (posterior stream), under the fit's hyperparameters and units{}",
            self.rows,
            if self.learned_noise { ", but for the noise, which was learned on the way" } else { "" }
        );
        if self.added_inducing > 0 {
            text += &format!(", with {} inducing points more", self.added_inducing);
        }
        if self.clipped > 0 {
            text += &format!(
                "; {} of their observations said nothing (the likelihood is not log-concave there)",
                self.clipped
            );
        }
        text + "; checks and scores in this file are those of the fit"
    }
}
