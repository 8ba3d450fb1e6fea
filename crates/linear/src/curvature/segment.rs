//! Which weights belong together.

use std::ops::Range;

/// Neighbouring weights of one tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The tensor's name.
    pub name: String,
    /// The name of the layer that it is a part of; neighbours of one layer share a block.
    pub layer: String,
    /// Where they stand among all weights.
    pub range: Range<usize>,
    /// Whether the tensor is here with all its entries.
    pub whole: bool,
    /// Of a weight matrix, all of whose gradients are products of sensitivities and inputs.
    pub matrix: Option<MatrixShape>,
}

/// A weight matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MatrixShape {
    /// Numbers that it makes.
    pub outputs: usize,
    /// Numbers that it is applied to.
    pub inputs: usize,
    /// Whether it is stored `[inputs, outputs]` instead of `[outputs, inputs]`.
    pub transposed: bool,
}

impl MatrixShape {
    /// Rows and columns as they are stored.
    pub fn stored(self) -> (usize, usize) {
        if self.transposed { (self.inputs, self.outputs) } else { (self.outputs, self.inputs) }
    }
}

/// Runs of segments of the same layer, with its name.
pub fn layers(segments: &[Segment]) -> Vec<(&str, Range<usize>)> {
    let mut out: Vec<(&str, Range<usize>)> = Vec::new();
    for (i, segment) in segments.iter().enumerate() {
        match out.last_mut() {
            Some((last, range)) if *last == segment.layer => range.end = i + 1,
            _ => out.push((&segment.layer, i..i + 1)),
        }
    }
    out
}
