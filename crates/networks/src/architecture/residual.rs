//! The basic residual block, in the forms that networks for small images use.

use super::building::{Weights, batch_norm, convolution, relu, scalar_bias, scalar_gain};
use crate::graph::{GraphBuilder, GraphError, Value};
use crate::operation::{Operation, Pad, Slice};
use serde::{Deserialize, Serialize};

/// Forms of residual networks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Variant {
    /// Convolution, batch norm, ReLU, convolution, batch norm, sum, ReLU (He et al. 2016a).
    #[default]
    Plain,
    /// As `plain`, with biases on the convolutions that batch norm follows.
    Biased,
    /// Batch norm, ReLU, convolution, batch norm, ReLU, convolution, sum (He et al. 2016b).
    PreActivation,
    /// No batch norm: scalar biases around convolutions and one scalar gain for each branch, with an initialisation that keeps the sum of
    /// branches steady (Zhang, Dauphin & Ma 2019).
    Fixup,
}

/// How the input of a block reaches the sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shortcut<'a> {
    /// As it is.
    Identity,
    /// Every second position, zero channels added: nothing to learn.
    Padded,
    /// A convolution of kernel 1 and a batch norm, called `{0}.0` and `{0}.1`.
    Projected(&'a str),
}

/// One block.
pub(super) struct Block<'a> {
    pub(super) name: &'a str,
    pub(super) channels: usize,
    pub(super) stride: usize,
    pub(super) variant: Variant,
    pub(super) shortcut: Shortcut<'a>,
    /// Blocks in the network: the scale of Fixup's initialisation.
    pub(super) blocks: usize,
}

impl Block<'_> {
    pub(super) fn add(&self, b: &mut GraphBuilder, x: Value) -> Result<Value, GraphError> {
        match self.variant {
            Variant::Plain | Variant::Biased => self.plain(b, x),
            Variant::PreActivation => self.pre_activation(b, x),
            Variant::Fixup => self.fixup(b, x),
        }
    }

    fn called(&self, part: &str) -> String {
        format!("{}.{part}", self.name)
    }

    fn convolution(
        &self,
        b: &mut GraphBuilder,
        part: &str,
        stride: usize,
        weights: Weights,
        x: Value,
    ) -> Result<Value, GraphError> {
        let bias = self.variant == Variant::Biased;
        convolution(b, &self.called(part), (self.channels, 3, stride), bias, weights, x)
    }

    fn plain(&self, b: &mut GraphBuilder, x: Value) -> Result<Value, GraphError> {
        let y = self.convolution(b, "conv1", self.stride, Weights::FanIn, x)?;
        let y = batch_norm(b, &self.called("bn1"), y)?;
        let y = relu(b, &self.called("relu1"), y)?;
        let y = self.convolution(b, "conv2", 1, Weights::FanIn, y)?;
        let y = batch_norm(b, &self.called("bn2"), y)?;
        let shortcut = self.shortcut(b, x)?;
        let y = b.add(&self.called("add"), Operation::Add, &[y, shortcut])?;
        relu(b, &self.called("relu2"), y)
    }

    fn pre_activation(&self, b: &mut GraphBuilder, x: Value) -> Result<Value, GraphError> {
        let first = batch_norm(b, &self.called("bn1"), x)?;
        let first = relu(b, &self.called("relu1"), first)?;
        let y = self.convolution(b, "conv1", self.stride, Weights::FanIn, first)?;
        let y = batch_norm(b, &self.called("bn2"), y)?;
        let y = relu(b, &self.called("relu2"), y)?;
        let y = self.convolution(b, "conv2", 1, Weights::FanIn, y)?;
        let projected = matches!(self.shortcut, Shortcut::Projected(_));
        let shortcut = self.shortcut(b, if projected { first } else { x })?;
        b.add(&self.called("add"), Operation::Add, &[y, shortcut])
    }

    fn fixup(&self, b: &mut GraphBuilder, x: Value) -> Result<Value, GraphError> {
        let scale = 1.0 / (self.blocks as f64).sqrt();
        let shifted = scalar_bias(b, &self.called("bias1a"), x)?;
        let y = self.convolution(b, "conv1", self.stride, Weights::FanOut(scale), shifted)?;
        let y = scalar_bias(b, &self.called("bias1b"), y)?;
        let y = relu(b, &self.called("relu1"), y)?;
        let y = scalar_bias(b, &self.called("bias2a"), y)?;
        let y = self.convolution(b, "conv2", 1, Weights::Zero, y)?;
        let y = scalar_gain(b, &self.called("scale"), y)?;
        let y = scalar_bias(b, &self.called("bias2b"), y)?;
        let identity = self.shortcut == Shortcut::Identity;
        let shortcut = self.shortcut(b, if identity { x } else { shifted })?;
        let y = b.add(&self.called("add"), Operation::Add, &[y, shortcut])?;
        relu(b, &self.called("relu2"), y)
    }

    fn shortcut(&self, b: &mut GraphBuilder, mut x: Value) -> Result<Value, GraphError> {
        match self.shortcut {
            Shortcut::Identity => Ok(x),
            Shortcut::Projected(called) => {
                let name = format!("{}.{called}.0", self.name);
                let y = convolution(b, &name, (self.channels, 1, self.stride), false, Weights::FanIn, x)?;
                // Pre-activation projects what is normalised already; Fixup has no norm.
                match self.variant {
                    Variant::Plain | Variant::Biased => {
                        batch_norm(b, &format!("{}.{called}.1", self.name), y)
                    }
                    Variant::PreActivation | Variant::Fixup => Ok(y),
                }
            }
            Shortcut::Padded => {
                for axis in [1, 2] {
                    let length = b.shape(x).get(axis).copied().unwrap_or(0).div_ceil(self.stride);
                    let slice = Slice { axis, start: 0, step: self.stride as isize, length };
                    x =
                        b.add(&self.called(&format!("shortcut.slice{axis}")), Operation::Slice(slice), &[x])?;
                }
                let missing = self.channels.saturating_sub(b.shape(x).first().copied().unwrap_or(0));
                // Zeros on both sides, as in the networks that the names come from; Fixup's own code has them behind.
                let before = if self.variant == Variant::Fixup { 0 } else { missing / 2 };
                let pad = Pad::zeros(vec![before, 0, 0], vec![missing - before, 0, 0]);
                b.add(&self.called("shortcut.pad"), Operation::Pad(pad), &[x])
            }
        }
    }
}
