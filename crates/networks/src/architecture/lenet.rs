//! A small convolutional network for digits.

use super::Size;
use super::building::{Weights, batch_norm, convolution, global_pool, linear, relu, size_or};
use crate::graph::{Graph, GraphBuilder, GraphError, Value};
use serde::{Deserialize, Serialize};

const KIND: &str = "lenet";

/// Three convolutions of stride 2 (5 x 5, 3 x 3, 3 x 3; padding 2, 1, 1), each followed by ReLU and batch norm, the mean over positions, and a
/// linear layer: the LeNet-like networks of Antorán (2023), chapters 5 and 6.
///
/// Parameters: `conv1.weight`, `conv1.bias`, `bn1.weight`, ..., `linear.weight`, `linear.bias`. Which scalars count as trainable is an option,
/// because the published counts differ in it: 14 634, 29 226 and 45 874 come from biases on the convolutions and no affine part of batch norm (the
/// defaults); 14 714, 29 354 and 46 024 from the affine part without biases. Without its affine part a batch norm keeps `weight` = 1 and
/// `bias` = 0 as constants, so that files stay alike.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lenet {
    /// One of the published sizes: filters 16, 32, 32; 32, 32, 64; 42, 48, 60.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<Size>,
    /// Filters of the three convolutions, instead of `size`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filters: Option<[usize; 3]>,
    /// Shape of an image.
    #[serde(default = "digit")]
    pub input: [usize; 3],
    /// Number of classes.
    #[serde(default = "ten")]
    pub classes: usize,
    /// Whether the convolutions have biases.
    #[serde(default = "yes")]
    pub convolution_bias: bool,
    /// Whether the gains and shifts of batch norm are trainable.
    #[serde(default)]
    pub affine: bool,
    /// Whether the last layer has a bias.
    #[serde(default = "yes")]
    pub output_bias: bool,
}

pub(super) fn digit() -> [usize; 3] {
    [1, 28, 28]
}

pub(super) fn ten() -> usize {
    10
}

fn yes() -> bool {
    true
}

impl Lenet {
    /// One of the published networks with its default options.
    pub fn sized(size: Size) -> Self {
        Self {
            size: Some(size),
            filters: None,
            input: digit(),
            classes: 10,
            convolution_bias: true,
            affine: false,
            output_bias: true,
        }
    }

    pub(super) fn graph(&self) -> Result<Graph, GraphError> {
        let table = [[16, 32, 32], [32, 32, 64], [42, 48, 60]];
        let filters = size_or(KIND, self.size, self.filters, "`filters`", table)?;
        let mut b = GraphBuilder::new(&self.input)?;
        let mut x = Value::INPUT;
        for (i, (&filters, kernel)) in filters.iter().zip([5, 3, 3]).enumerate() {
            let i = i + 1;
            let bias = self.convolution_bias;
            x = convolution(&mut b, &format!("conv{i}"), (filters, kernel, 2), bias, Weights::Default, x)?;
            x = relu(&mut b, &format!("relu{i}"), x)?;
            x = batch_norm(&mut b, &format!("bn{i}"), x)?;
            if !self.affine {
                b.describe(&format!("bn{i}.weight"), false, None)?;
                b.describe(&format!("bn{i}.bias"), false, None)?;
            }
        }
        x = global_pool(&mut b, "pool", x)?;
        x = linear(&mut b, "linear", self.classes, self.output_bias, Weights::Default, x)?;
        b.finish(x)
    }
}
