//! Networks and examples in memory instead of files.

use super::request::LikelihoodKind;
use super::training_set::{Reading, TrainingSet};
use crate::ModelError;
use crate::network::Raw;
use crate::record::InputKind;
use posterior_data::NumericArray;
use posterior_networks::{Network, Precision};
use std::path::Path;

/// What a fit is given in memory: it takes the place of the request's files.
#[derive(Clone, Debug, Default)]
pub struct InMemory {
    /// The network, in evaluation mode.
    pub network: Option<Network<f64>>,
    /// The examples that it was trained on.
    pub data: Option<Arrays>,
    /// Examples that it has not seen.
    pub unseen: Option<Arrays>,
}

/// Examples with their targets.
#[derive(Clone, Debug, PartialEq)]
pub struct Arrays {
    /// `[examples, ...]`: images as bytes, other numbers as the network takes them.
    pub inputs: NumericArray,
    /// Classes from 0 or numbers: `[examples]` or `[examples, width]`.
    pub targets: NumericArray,
}

impl Reading<'_> {
    /// Examples in memory, prepared like those of array files.
    pub(crate) fn in_memory<T: Precision>(&self, arrays: &Arrays) -> Result<TrainingSet<T>, ModelError> {
        let refuse = |problem: String| Err(ModelError::Request(problem));
        let Arrays { inputs, targets } = arrays;
        if let Some(schema) = self.known.and_then(InputKind::schema) {
            return refuse(format!(
                "the network was trained on columns of a table, which its file names and scales: give the table with the target `{}` as a file",
                schema.target
            ));
        }
        targets.require_finite(Path::new("the targets"))?;
        let width = targets.example_shape().iter().product::<usize>();
        if width != 1 && self.likelihood == LikelihoodKind::Categorical {
            return refuse(format!("a label is one number, these are {width} for each example"));
        }
        let raw = Raw::of_memory("the inputs", inputs.clone(), (targets.to_f64(), width));
        self.set(self.pictures(raw)?, Path::new("the inputs"))
    }
}
