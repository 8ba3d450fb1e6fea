//! What rows are asked for by.

use super::Criterion;
use crate::DecisionError;
use posterior_kernels::KernelExpression;
use posterior_likelihoods::gaussianised::Gaussianised;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;

/// Most rows that are spread over the pool before the model is asked.
pub const MOST_SPREAD: usize = 10_000;

/// Everything that determines which rows are asked for, the pool and what was told aside.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LabelSettings {
    /// The criterion.
    pub criterion: Criterion,
    /// The kernel, on standardised columns; a constant is added to it.
    pub kernel: KernelExpression,
    /// How labels become numbers.
    pub gaussianised: Gaussianised,
    /// Rows, labelled or asked for, before the model is asked, at most [`MOST_SPREAD`].
    pub initial: usize,
    /// All classes there are; where they are not given they grow as labels come.
    pub classes: Option<Vec<String>>,
    /// The seed of everything random.
    pub seed: u64,
}

impl LabelSettings {
    pub(super) fn check(&self) -> Result<(), DecisionError> {
        let refuse = |problem: String| Err(DecisionError::Ask(problem));
        if self.initial < 2 || self.initial > MOST_SPREAD {
            return refuse(format!(
                "{} initial rows are not possible: 2 to {MOST_SPREAD} are spread before the model is asked",
                self.initial
            ));
        }
        let Some(classes) = &self.classes else { return Ok(()) };
        if classes.len() < 2 {
            return refuse("there must be at least two classes: name all of them, or none".into());
        }
        let mut seen = HashSet::new();
        if let Some(twice) = classes.iter().find(|name| name.is_empty() || !seen.insert(*name)) {
            return refuse(match twice.is_empty() {
                true => "a class without a name: check the commas between the classes".into(),
                false => format!("the class `{twice}` is named twice"),
            });
        }
        Ok(())
    }
}
