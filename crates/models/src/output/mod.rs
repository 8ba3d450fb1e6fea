//! **What is observed** where the latent functions are known, in the target's own units.
//!
//! Numbers with Gaussian noise are Gaussian to the end: mean, function and noise stay apart, whatever map the target went through. Everything else is observed through a likelihood.
//!
//! | file | what |
//! |---|---|
//! | `gaussian` | numbers with Gaussian noise: constant, known row by row, or of places |
//! | `noise` | heteroscedastic noise, a predictor of its own |
//! | `likelihood` | classes, counts, events, numbers with outliers |
//! | `observing` | predictive distributions under a likelihood |
//! | `target` | what a target is, and how it stands in tables |

mod gaussian;
mod likelihood;
mod noise;
mod observing;
mod target;

pub use gaussian::{GaussianOutput, Predictions};
pub use likelihood::LikelihoodOutput;
pub use noise::NoiseSummary;
pub(crate) use noise::{NoiseProcess, seen};
pub(crate) use observing::{Observing, noise_square};
pub use target::Target;
pub(crate) use target::{baseline, marginal, strata};

use crate::{PredictedKind, TableInputs};
use posterior_data::{DataError, Extracted, Schema, Table};
use serde::{Deserialize, Serialize};

/// What is observed of latent functions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Output {
    /// Through a likelihood.
    Likelihood(LikelihoodOutput),
    /// With Gaussian noise.
    Gaussian(GaussianOutput),
}

impl Output {
    /// Numbers with Gaussian noise, if that is what is observed.
    pub fn gaussian(&self) -> Option<&GaussianOutput> {
        match self {
            Self::Gaussian(own) => Some(own),
            Self::Likelihood(_) => None,
        }
    }

    /// The likelihood of all else.
    pub fn likelihood(&self) -> Option<&LikelihoodOutput> {
        match self {
            Self::Gaussian(_) => None,
            Self::Likelihood(own) => Some(own),
        }
    }

    /// What the target is, where it is not numbers with Gaussian noise.
    pub fn target(&self) -> Option<&Target> {
        self.likelihood().map(|own| &own.target)
    }

    /// Number of latent functions.
    pub(crate) fn functions(&self) -> usize {
        self.likelihood().map_or(1, |own| own.likelihood.outputs())
    }

    /// What is predicted.
    pub(crate) fn predicts(&self) -> PredictedKind {
        match self.target() {
            Some(Target::Classes { .. }) => PredictedKind::Classes,
            _ => PredictedKind::Values,
        }
    }

    /// Names of the classes; none where no classes are predicted.
    pub(crate) fn class_names(&self) -> Vec<String> {
        match self.target() {
            Some(Target::Classes { names }) => names.names().to_vec(),
            _ => Vec::new(),
        }
    }

    /// The class of each row of a table; None where there are no classes.
    ///
    /// # Errors
    /// [`DataError`] naming the cell.
    pub(crate) fn strata(&self, table: &Table, target: &str) -> Result<Option<Vec<usize>>, DataError> {
        let Some(Target::Classes { names }) = self.target() else { return Ok(None) };
        strata(names, table, target).map(Some).map_err(|error| error.in_table(table))
    }

    /// The beginning of a title.
    pub(crate) fn title(&self) -> &'static str {
        match self.target() {
            None => "A Gaussian process",
            Some(Target::Classes { .. }) => "Classes by a Gaussian process",
            Some(Target::Counts { .. }) => "Counts by a Gaussian process",
            Some(Target::Numbers { .. }) => "A Gaussian process with outliers",
            Some(Target::Events { .. }) => "A Cox process",
        }
    }

    /// Inputs of the given rows, and with `truth` their targets: as they stand in the table under Gaussian noise, as the likelihood takes them otherwise.
    ///
    /// # Errors
    /// [`DataError`] naming the cell.
    pub(crate) fn extract(
        &self,
        schema: &Schema,
        table: &Table,
        rows: &[usize],
        truth: bool,
    ) -> Result<Extracted, DataError> {
        match (self.target(), truth) {
            (Some(target), true) => target.extract(schema, table, rows),
            _ => schema.extract(table, rows, truth),
        }
    }

    /// Standard deviation of the target in training.
    pub(crate) fn target_scale(&self, inputs: &TableInputs) -> f64 {
        match self {
            Self::Gaussian(_) => inputs.standardisation.target_in_units().1,
            Self::Likelihood(own) => own.target_scale(),
        }
    }

    /// A latent value of the function in units that people use: numbers in their own, logarithms of rates for each unit of exposure.
    pub(crate) fn latent_in_units(&self, inputs: &TableInputs, value: f64) -> f64 {
        match self.target() {
            None => inputs.standardisation.target_back(value),
            Some(Target::Numbers { mean, scale }) => mean + scale * value,
            Some(Target::Counts { rate }) => rate.ln() + value,
            Some(_) => value,
        }
    }
}
