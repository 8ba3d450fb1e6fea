//! **Ask and tell**: a campaign proposes points, somebody tries them (a program, a laboratory, a person) and tells what came out, in any order
//! and whenever. Its state is one file, written in one step after each change, so that a crash loses nothing that was told.
//!
//! | file | idea |
//! |---|---|
//! | `trial` | a point, and what became of it |
//! | `settings` | what the proposals are made by |
//! | `state` | all of it, in a file and back |
//! | `model` | hyperparameters and draws |
//! | `propose` | from what is known to the next points |

mod model;
mod propose;
mod settings;
mod state;
mod trial;

#[cfg(test)]
mod tests;

pub use propose::{MOST_ASKED, Proposal, Stage};
pub use settings::{Candidates, Direction, MOST_INITIAL, Settings, Strategy};
pub use state::{Best, Campaign, TellOutcome};
pub use trial::{Origin, Outcome, Trial};
