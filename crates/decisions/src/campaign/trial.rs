//! A point, and what became of it.

use serde::{Deserialize, Serialize};

/// Where a point came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// Spread over the space before anything was known.
    Initial,
    /// The maximum of a draw from the posterior.
    Thompson,
    /// At random.
    Random,
    /// Somebody's own.
    Given,
}

/// What became of a point.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "state")]
pub enum Outcome {
    /// Nothing was told yet.
    Pending,
    /// It was tried.
    Done {
        /// What came out.
        value: f64,
    },
    /// It could not be tried; the model takes it for as bad as the worst that was seen.
    Failed {
        /// Why.
        reason: String,
    },
}

/// A point that was asked for or told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// Its number, from 1.
    pub id: usize,
    /// Its coordinates, in the order and the units of the axes.
    pub point: Vec<f64>,
    /// With tables of candidates: its row, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub row: Option<usize>,
    /// Where it came from.
    pub origin: Origin,
    /// The round it was asked for in, from 1; 0 for points that nobody asked for.
    pub round: usize,
    /// What became of it.
    pub outcome: Outcome,
}

impl Trial {
    /// What came out, if it was tried.
    pub fn value(&self) -> Option<f64> {
        match self.outcome {
            Outcome::Done { value } => Some(value),
            _ => None,
        }
    }

    /// Whether nothing was told yet.
    pub fn is_pending(&self) -> bool {
        self.outcome == Outcome::Pending
    }
}
