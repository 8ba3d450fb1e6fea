//! Small residual networks for digits.

use super::Size;
use super::building::{
    Weights, batch_norm, convolution, global_pool, linear, relu, scalar_bias, size_or, wrong,
};
use super::lenet::{digit, ten};
use super::residual::{Block, Shortcut, Variant};
use crate::graph::{Graph, GraphBuilder, GraphError, Value};
use serde::{Deserialize, Serialize};

const KIND: &str = "mnist_resnet";

/// Residual network of 15 to 46 thousand parameters (Antorán 2023, chapter 5): a 5 x 5 convolution with batch norm and ReLU, a residual block, a 1 x 1
/// convolution of stride 2, a second block, a second 1 x 1 convolution of stride 2, the mean over positions, a linear layer.
///
/// Parameters: `conv1.weight`, `bn1.weight`, ..., `block1.conv1.weight`, ..., `down1.weight`, `block2...`, `down2.weight`, `linear.weight`, `linear.bias`. This order of
/// layers is the one that gives the published counts: 14 814, 26 874 and 45 576, with biases 14 898, 26 986 and 45 726. The stride of the
/// first convolution changes no count and is not published; it is 2 unless told otherwise, as in [`Lenet`](super::Lenet).
///
/// The pre-activation form keeps the first batch norm and ReLU and has no norm after the last block, so its counts are the same. The Fixup form has a scalar
/// bias before the 1 x 1 convolutions too (`bias_down1`, `bias_down2`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MnistResnet {
    /// One of the published sizes: widths 12, 24, 32; 16, 32, 64; 22, 42, 64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<Size>,
    /// Widths of the two blocks and of the last 1 x 1 convolution, instead of `size`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub widths: Option<[usize; 3]>,
    /// Shape of an image.
    #[serde(default = "digit")]
    pub input: [usize; 3],
    /// Number of classes.
    #[serde(default = "ten")]
    pub classes: usize,
    /// The form of the blocks.
    #[serde(default)]
    pub variant: Variant,
    /// Stride of the first convolution.
    #[serde(default = "two")]
    pub stem_stride: usize,
}

fn two() -> usize {
    2
}

impl MnistResnet {
    /// One of the published networks.
    pub fn sized(size: Size, variant: Variant) -> Self {
        Self { size: Some(size), widths: None, input: digit(), classes: 10, variant, stem_stride: 2 }
    }

    pub(super) fn graph(&self) -> Result<Graph, GraphError> {
        let table = [[12, 24, 32], [16, 32, 64], [22, 42, 64]];
        let widths = size_or(KIND, self.size, self.widths, "`widths`", table)?;
        if self.stem_stride == 0 {
            return Err(wrong(KIND, "`stem_stride` must be at least 1"));
        }
        let fixup = self.variant == Variant::Fixup;
        let bias = self.variant == Variant::Biased;
        let mut b = GraphBuilder::new(&self.input)?;
        let stem = if fixup { Weights::Default } else { Weights::FanIn };
        let mut x = convolution(&mut b, "conv1", (widths[0], 5, self.stem_stride), bias, stem, Value::INPUT)?;
        x = if fixup { scalar_bias(&mut b, "bias1", x)? } else { batch_norm(&mut b, "bn1", x)? };
        x = relu(&mut b, "relu", x)?;
        for i in 0..2 {
            let name = format!("block{}", i + 1);
            let block = Block {
                name: &name,
                channels: widths[i],
                stride: 1,
                variant: self.variant,
                shortcut: Shortcut::Identity,
                blocks: 2,
            };
            x = block.add(&mut b, x)?;
            if fixup {
                x = scalar_bias(&mut b, &format!("bias_down{}", i + 1), x)?;
            }
            let name = format!("down{}", i + 1);
            x = convolution(&mut b, &name, (widths[i + 1], 1, 2), false, stem, x)?;
        }
        x = global_pool(&mut b, "pool", x)?;
        if fixup {
            x = scalar_bias(&mut b, "bias2", x)?;
        }
        let head = if fixup { Weights::Zero } else { Weights::FanIn };
        x = linear(&mut b, "linear", self.classes, true, head, x)?;
        b.finish(x)
    }
}
