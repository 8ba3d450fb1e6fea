//! **Labels where they tell most**: a pool of rows without labels, a person (or a program) who can label some of them, and a model that says which. Ask and tell, with a state in one file,
//! as for [`campaign`](crate::campaign)s; any number of processes may ask and tell at once.
//!
//! Labels become Gaussian observations once ([`ClassGaussianLabels`]), so that what is believed of every row of the pool is kept up to date by one rank-one update for each label ([`PoolPosterior`]).
//!
//! ```
//! use posterior_decisions::labelling::{Choosing, ClassGaussianLabels, Criterion, PoolPosterior, Scoring, choose};
//! use posterior_kernels::{Kernel, KernelExpression};
//! use posterior_likelihoods::gaussianised::{Gaussianised, Matching};
//! use posterior_linalg::random::Streams;
//! use posterior_optim::Signal;
//!
//! let gaussian_labels = ClassGaussianLabels::new(2, &Gaussianised::new(Matching::Variational, 0.1)?)?.standardised();
//! let kernel = "se".parse::<KernelExpression>()?.build::<f64>(&["x".into()])?;
//! let inputs = faer::Mat::from_fn(9, 1, |i, _| i as f64);
//! let mut pool = PoolPosterior::prior(kernel, inputs, gaussian_labels.functions());
//! // The first row is of the first class, the last of the second.
//! pool.observe(0, &gaussian_labels.of_all(0));
//! pool.observe(8, &gaussian_labels.of_all(1));
//! let scoring = Scoring::new(Criterion::Entropy, &gaussian_labels, 0)?;
//! let free: Vec<usize> = (1..8).collect();
//! let choosing = Choosing { gaussian_labels: &gaussian_labels, scoring: &scoring, pending: &[], free: &free, streams: Streams::new(0) };
//! let chosen = choose(&mut pool, choosing, 1, &mut |_, _| Signal::Continue)?;
//! assert_eq!(chosen[0].row, 4);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | file | idea |
//! |---|---|
//! | `gaussian_labels` | what a label says of each latent function |
//! | `pool` | what is believed of every row, label by label |
//! | `criterion` | which label would be worth having |
//! | `batch` | several rows at a time, which differ |
//! | `spread` | the first rows |
//! | `model` | hyperparameters |
//! | `source` | the pool: a file and its columns |
//! | `question`, `settings`, `state` | rows asked for and what was told, in a file and back |
//! | `ask` | from what was told to the next rows |
//! | `score` | predictions against what was told afterwards |
//! | `plan` | memory and work, before anything is done |
//!
//! Source: spec `likelihood_approximations`, section 6.8.

mod ask;
mod batch;
mod criterion;
mod gaussian_labels;
mod model;
mod plan;
mod pool;
mod question;
mod score;
mod settings;
mod source;
mod spread;
mod state;

#[cfg(test)]
mod tests;

pub use ask::{LabelStage, MOST_ASKED, PoolDoubt, QueryRound};
pub use batch::{Choosing, Chosen, choose};
pub use criterion::{Criterion, Doubt, Latent, Scoring};
pub use gaussian_labels::ClassGaussianLabels;
pub use model::{EVIDENCE_ROWS, Learned, learn, prior_kernel};
pub use plan::LabelPlan;
pub use pool::{PoolMark, PoolPosterior};
pub use question::{Answer, Question, Reason};
pub use score::QueryScores;
pub use settings::{LabelSettings, MOST_SPREAD};
pub use source::{Pool, PoolColumns, PoolSource};
pub use spread::spread;
pub use state::{Labelling, Which};
