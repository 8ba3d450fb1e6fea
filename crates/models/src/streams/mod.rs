//! **A fitted process that goes on learning**, row by row, in bounded memory.
//!
//! The start is any process of inducing points, whatever its likelihood. Under Gaussian noise, and for Gaussian labels, its posterior after any further rows is the one that it would have had with these rows from the beginning (under the
//! hyperparameters of the start); under other likelihoods each batch is learned by the bound of that batch. Inducing points are added where rows come that they cannot say much about, up to a limit.
//!
//! Source: spec `likelihood_approximations`, sections 6.5 and 6.6.
//!
//! | file | what |
//! |---|---|
//! | `model` | [`StreamModel`]: start, answers, learning, file |
//! | `rows` | rows as Gaussian observations of the latent functions |
//! | `noise` | [`LearnedNoise`]: the noise variance, from rows that were predicted before they were learned |
//! | `inducing` | which rows become inducing points |
//! | `score` | [`RunningScore`]: how good predictions were before their rows were learned |
//! | `session` | lines in, predictions out |
//! | `state` | [`StreamState`]: all of it in one file |

mod inducing;
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
