//! The blocks of a U-Net in two or three dimensions.

use crate::graph::{GraphBuilder, GraphError, Value};
use crate::operation::{Activation, Convolution, Interpolation, Operation, Resize, Slice};

/// A builder with what all blocks share.
pub(super) struct Blocks {
    pub(super) builder: GraphBuilder,
    /// Spatial axes.
    pub(super) axes: usize,
    pub(super) norm: bool,
    pub(super) activation: Activation,
}

impl Blocks {
    /// A convolution with bias that keeps the size (or halves it).
    pub(super) fn convolution(
        &mut self,
        name: &str,
        outputs: usize,
        kernel: usize,
        stride: usize,
        x: Value,
    ) -> Result<Value, GraphError> {
        let convolution = Convolution {
            outputs,
            kernel: vec![kernel; self.axes],
            stride: vec![stride; self.axes],
            padding: vec![kernel / 2; self.axes],
            groups: 1,
            bias: true,
            ..Convolution::default()
        };
        self.builder.convolution(name, convolution, x)
    }

    fn group_norm(&mut self, name: &str, groups: usize, x: Value) -> Result<Value, GraphError> {
        if self.norm { self.builder.group_norm(name, groups, 1e-5, x) } else { Ok(x) }
    }

    /// Convolution, norm, activation: `block.conv1`, `block.norm1`, `block.activation1` with suffix `1`.
    pub(super) fn layer(
        &mut self,
        block: &str,
        suffix: &str,
        channels: usize,
        kernel: usize,
        stride: usize,
        groups: usize,
        x: Value,
    ) -> Result<Value, GraphError> {
        let x = self.convolution(&format!("{block}.conv{suffix}"), channels, kernel, stride, x)?;
        let x = self.group_norm(&format!("{block}.norm{suffix}"), groups, x)?;
        self.builder.activation(&format!("{block}.activation{suffix}"), self.activation, x)
    }

    /// What a scale of the encoder gives the decoder; a closed skip gives one channel of zeros.
    pub(super) fn skip(&mut self, block: &str, channels: usize, x: Value) -> Result<Value, GraphError> {
        let y = self.layer(block, "", channels.max(1), 1, 1, 1, x)?;
        if channels > 0 {
            return Ok(y);
        }
        self.builder.add(&format!("{block}.closed"), Operation::Scale(0.0), &[y])
    }

    /// Enlarges `x` twice, cuts it and `beside` to the smaller size around the centre, joins the channels (`x` first) and normalises them.
    pub(super) fn join(&mut self, block: &str, x: Value, beside: Value) -> Result<Value, GraphError> {
        let sizes = self.builder.shape(x)[1..].iter().map(|s| s.saturating_mul(2)).collect();
        let resize = Resize { sizes, interpolation: Interpolation::LinearAligned, scales: None };
        let x = self.builder.add(&format!("{block}.enlarge"), Operation::Resize(resize), &[x])?;
        let (large, small) = (self.builder.shape(x)[1..].to_vec(), self.builder.shape(beside)[1..].to_vec());
        let target: Vec<usize> = large.iter().zip(&small).map(|(&a, &b)| a.min(b)).collect();
        let x = self.cut(&format!("{block}.cut"), &target, x)?;
        let beside = self.cut(&format!("{block}.cut_skip"), &target, beside)?;
        let x = self.builder.add(&format!("{block}.join"), Operation::Concatenate(0), &[x, beside])?;
        self.group_norm(&format!("{block}.norm"), 1, x)
    }

    /// The centre of each spatial axis.
    fn cut(&mut self, name: &str, target: &[usize], mut x: Value) -> Result<Value, GraphError> {
        for (i, &length) in target.iter().enumerate() {
            let extra = self.builder.shape(x)[i + 1].saturating_sub(length);
            if extra > 0 {
                let slice = Slice { axis: i + 1, start: extra / 2, step: 1, length };
                x = self.builder.add(&format!("{name}{i}"), Operation::Slice(slice), &[x])?;
            }
        }
        Ok(x)
    }
}
