//! A row that was asked for or labelled, and what became of it.

use serde::{Deserialize, Serialize};

/// Why a row was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// Spread over the pool, before there was enough to learn from.
    Spread,
    /// By the criterion.
    Criterion,
    /// Nobody asked for it: its label was known at the start, or told by its row.
    Given,
}

/// What was told of a row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "state")]
pub enum Answer {
    /// Nothing yet.
    Pending,
    /// Its label.
    Labelled {
        /// As it was told, spaces and case included.
        label: String,
    },
    /// It has none that could be told; it is not asked for again.
    Skipped {
        /// Why.
        reason: String,
    },
}

/// A row of the pool with what was believed of it when it was asked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Question {
    /// Its number, from 1.
    pub id: usize,
    /// Its row in the pool's file, from 1.
    pub row: usize,
    /// Why it was asked for.
    pub reason: Reason,
    /// The round it was asked for in, from 1; 0 for rows that nobody asked for.
    pub round: usize,
    /// The criterion's value, beside the rows that were asked for before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<f64>,
    /// Probabilities of the classes that were known then, in their order, before its label was told; none where there was no model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub believed: Option<Vec<f64>>,
    /// What was told of it.
    pub answer: Answer,
}

impl Question {
    /// Its label, if it has one.
    pub fn label(&self) -> Option<&str> {
        match &self.answer {
            Answer::Labelled { label } => Some(label),
            _ => None,
        }
    }

    /// Whether nothing was told yet.
    pub fn is_pending(&self) -> bool {
        self.answer == Answer::Pending
    }

    /// The class that was believed to be the most probable, with its probability.
    pub fn best_guess(&self) -> Option<(usize, f64)> {
        let believed = self.believed.as_ref()?;
        let best = |a: (usize, f64), b: (usize, f64)| if b.1 > a.1 { b } else { a };
        believed.iter().copied().enumerate().reduce(best)
    }
}
