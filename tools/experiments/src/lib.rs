//! **Experiments**: one TOML file is one published table or figure, rerun from nothing.
//!
//! A file names its source, the *kind* of experiment, and every setting of data, network, training and methods. Running it trains what it needs, computes, holds the
//! numbers against what was published and against what is expected of them, and writes a report and all numbers. Nothing is computed here that the other crates do
//! not compute: kinds put networks, posteriors and pictures together.
//!
//! ```toml
//! title = "Error bars on three clusters"
//! source = "where it was published, and in which figure"
//! kind = "bands"                      # which code runs it: `kinds`
//! seeds = [0]                         # numbers are averaged over seeds
//! reductions = ["what differs from the source, one sentence each"]
//!
//! [[published]]                       # a published number beside ours, found by its path in the results
//! what = "prior standard deviation"
//! value = 2.157
//! ours = "methods.full.prior_deviation"
//!
//! [[expect]]                          # what should come out
//! claim = "the diagonal forgets that weights are correlated"
//! value = "methods.diagonal.gap_ratio"
//! below = 1.0                         # or above; a number or a path
//!
//! [quick]                             # settings of --quick, laid over the others and named in the report
//! training.steps = 500
//! ```
//!
//! All other keys are settings of the kind; unknown ones are errors. The files of `files/` are part of the program, which runs them by name.
//!
//! | file | idea |
//! |---|---|
//! | `args`, `command_line` | the binary: flags, output |
//! | `file` | reading and listing files and built-in experiments, laying `[quick]` over them |
//! | `kinds/` | one file for each kind, and the list of them |
//! | `context` | what a kind gets: seed, folder, progress |
//! | `journal` | finished parts on disk, for runs that are interrupted |
//! | `unknown_keys` | all keys that settings do not know, at once |
//! | `measured` | what a kind gives back: numbers, tables of paths to numbers, pictures |
//! | `numbers` | paths into numbers, averages over seeds |
//! | `claims` | published numbers beside ours, expectations |
//! | `run`, `outcome` | the runner; report and results in files |
//! | `covariance`, `gaussian`, `prior_targets` | Gaussian processes: priors, methods in the words of the program, one fit for all |
//! | `learned` | fits that learn everything, as a user's do |
//! | `tables`, `splits` | tables in standard folds and in random parts, read or made up |
//! | `labels` | tables of classes, their pseudo-targets and scores |
//! | `line` | rows in one dimension with the exact posterior of their process |
//! | `towns`, `synthetic/` | a made-up country of towns and roads; other made-up problems |
//! | `toy`, `images`, `pictures`, `training`, `tangent`, `classifier` | parts that kinds share: problems, networks, tangent models |

mod args;
mod claims;
mod classifier;
mod command_line;
mod context;
mod covariance;
mod error;
mod file;
mod fit_options;
mod gaussian;
mod images;
mod journal;
mod kinds;
mod labels;
mod learned;
mod line;
mod measured;
mod numbers;
mod opened;
mod outcome;
mod pictures;
mod prior_targets;
mod run;
mod splits;
mod synthetic;
mod tables;
mod tangent;
mod towns;
mod toy;
mod training;
mod unknown_keys;

pub use claims::{Expectation, ExpectationResult, Published, PublishedResult};
pub use command_line::{grammar, main};
pub use context::Event;
pub use error::ExperimentError;
pub use file::{Experiment, Listed, embedded, list};
pub use kinds::kinds;
pub use outcome::{Outcome, SeedNumbers, Written};
pub use run::{RunOptions, run};
pub use synthetic::{FingerprintError, FingerprintSettings};
