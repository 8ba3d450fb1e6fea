//! Networks and examples in memory instead of files.

use super::numbers::class_numbers;
use super::training::{Reading, TrainingSet};
use super::{InputKind, LaplaceModelError, LikelihoodKind};
use crate::network::Preparation;
use posterior_data::NumericArray;
use posterior_networks::train::Targets;
use posterior_networks::{Array, Network, Precision};
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
    pub(super) fn in_memory<T: Precision>(
        &self,
        arrays: &Arrays,
    ) -> Result<TrainingSet<T>, LaplaceModelError> {
        let refuse = |problem: String| Err(LaplaceModelError::Request(problem));
        let Arrays { inputs, targets } = arrays;
        if let Some(InputKind::Prepared { preparation: Preparation::Columns { schema, .. } }) = self.known {
            return refuse(format!(
                "the network was trained on columns of a table, which its file names and scales: give the table with the target `{}` as a file",
                schema.target
            ));
        }
        self.check_shape(inputs)?;
        inputs.require_finite(Path::new("the inputs"))?;
        targets.require_finite(Path::new("the targets"))?;
        let (count, found) = (inputs.examples(), targets.examples());
        if count != found {
            return refuse(format!("{count} inputs, but targets for {found}"));
        }
        let (width, numbers) = (targets.example_shape().iter().product::<usize>(), targets.to_f64());
        let targets = if self.likelihood == LikelihoodKind::Categorical {
            if width != 1 {
                return refuse(format!("a label is one number, these are {width} for each example"));
            }
            Targets::Classes(class_numbers(&numbers, "the labels")?)
        } else {
            let values = numbers.into_iter().map(T::from_f64).collect();
            Targets::Values(Array::new(vec![count, width], values))
        };
        self.with_names(self.prepared(inputs.clone(), targets)?)
    }
}
