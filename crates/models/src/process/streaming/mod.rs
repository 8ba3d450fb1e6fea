//! **A fitted process that goes on learning**, row by row, in bounded memory.
//!
//! The start is any process of inducing points, whatever its likelihood. Under Gaussian noise, and for labels as numbers, its posterior after any further rows is the one that it would have had with these rows from the beginning (under the
//! hyperparameters of the start); under other likelihoods each batch is learned by the bound of that batch. Inducing points are added where rows come that they cannot say much about, up to a limit.
//!
//! Source: spec `likelihood_approximations`, sections 6.5 and 6.6.
//!
//! | file | what |
//! |---|---|
//! | `model` | [`StreamModel`]: start, answers, learning, file |
//! | `rows` | rows as Gaussian observations of the latent functions |
//! | `noise` | [`LearnedNoise`]: the noise variance, from rows that were predicted before they were learned |
//! | `growing` | which rows become inducing points |
//! | `score` | [`RunningScore`]: how good predictions were before their rows were learned |
//! | `session` | lines in, predictions out |
//! | `state` | [`StreamState`]: all of it in one file |

mod growing;
mod model;
mod noise;
mod rows;
mod score;
mod session;
mod state;
#[cfg(test)]
mod tests;

pub use model::{StreamModel, StreamPlan};
pub use noise::LearnedNoise;
pub use score::{RunningScore, ScoreSums};
pub use session::{BadRow, ParsedRows, TakenRows};
pub use state::{StreamCounts, StreamInput, StreamOutput, StreamState};

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
    pub(super) fn sentence(&self) -> String {
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
