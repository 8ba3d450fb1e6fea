//! Scores of class probabilities.
//!
//! The idea: [`Probabilities`] is a checked table of one categorical distribution per row, and [`Classes`] is such a table
//! with the labels that came true. Everything else is a method of one of the two, so that a number that is not a probability
//! is found once, with its row, and never turns up as a strange score.

mod calibration;
mod classes;
mod confusion;
mod probabilities;

pub use calibration::{DEFAULT_BINS, MOST_BINS, ReliabilityBin};
pub(crate) use calibration::{binned_error, check_bins, reliability};
pub use classes::{Classes, ClassificationScores};
pub use confusion::{ConfusionMatrix, MOST_CONFUSION_CLASSES};
pub use probabilities::{Probabilities, SUM_TOLERANCE, entropy};

#[cfg(test)]
mod tests;
