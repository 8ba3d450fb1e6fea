//! The numbers that are summed, block by block, and the structure they become.

use super::segment::layers;
use super::{MatrixShape, Segment};
use crate::structure::{Block, BlockMatrix, Dense, Diagonal, Kronecker, Structure, StructureError};
use faer::Mat;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Parameters that are not weight matrices (biases, gains) get a dense block up to this length, and a diagonal one beyond.
const DENSE_VECTOR: usize = 1024;

/// Which entries of the curvature are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Form {
    /// All.
    Full,
    /// Those within a layer.
    Block,
    /// The diagonal.
    Diagonal,
    /// Kronecker products for weight matrices.
    Kronecker,
}

/// The sum for one block of weights.
#[derive(Clone, Debug, PartialEq)]
pub struct BlockSum {
    /// The parameter or layer.
    pub name: String,
    /// Its weights in the flat vector.
    pub range: Range<usize>,
    /// The numbers.
    pub matrix: SumMatrix,
}

/// The form of a sum.
#[derive(Clone, Debug, PartialEq)]
pub enum SumMatrix {
    /// The lower triangle of `sum J^T B J`.
    Dense(Mat<f64>),
    /// Its diagonal.
    Diagonal(Vec<f64>),
    /// `sum delta delta^T / T` and `sum a a^T` (lower triangles), for weights whose rows belong to outputs (`transposed`: to inputs).
    Kronecker {
        /// `[outputs, outputs]`.
        outputs: Mat<f64>,
        /// `[inputs, inputs]`.
        inputs: Mat<f64>,
        /// Whether the weight is stored `[inputs, outputs]`.
        transposed: bool,
    },
}

impl BlockSum {
    /// Name and place with an empty matrix.
    fn clone_layout(&self) -> Self {
        let matrix = SumMatrix::Diagonal(Vec::new());
        Self { name: self.name.clone(), range: self.range.clone(), matrix }
    }

    pub(super) fn same_layout(&self, other: &Self) -> bool {
        let size = |m: &SumMatrix| match m {
            SumMatrix::Dense(m) => (0, m.nrows(), m.ncols(), false),
            SumMatrix::Diagonal(v) => (1, v.len(), 1, false),
            SumMatrix::Kronecker { outputs, inputs, transposed } => {
                (2, outputs.nrows(), inputs.nrows(), *transposed)
            }
        };
        self.name == other.name && self.range == other.range && size(&self.matrix) == size(&other.matrix)
    }

    pub(super) fn is_finite(&self) -> bool {
        match &self.matrix {
            SumMatrix::Dense(m) => m.is_all_finite(),
            SumMatrix::Diagonal(v) => v.iter().all(|v| v.is_finite()),
            SumMatrix::Kronecker { outputs, inputs, .. } => outputs.is_all_finite() && inputs.is_all_finite(),
        }
    }
}

/// Bytes of all sums.
pub(super) fn bytes(blocks: &[BlockSum]) -> usize {
    let numbers = |m: &SumMatrix| match m {
        SumMatrix::Dense(m) => m.nrows() * m.ncols(),
        SumMatrix::Diagonal(v) => v.len(),
        SumMatrix::Kronecker { outputs, inputs, .. } => {
            outputs.nrows() * outputs.ncols() + inputs.nrows() * inputs.ncols()
        }
    };
    blocks.iter().map(|b| 8 * numbers(&b.matrix)).sum()
}

/// Empty sums of the same layout.
pub(super) fn zeroed(blocks: &[BlockSum]) -> Vec<BlockSum> {
    let square = |m: &Mat<f64>| Mat::zeros(m.nrows(), m.ncols());
    let zero = |m: &SumMatrix| match m {
        SumMatrix::Dense(m) => SumMatrix::Dense(square(m)),
        SumMatrix::Diagonal(v) => SumMatrix::Diagonal(vec![0.0; v.len()]),
        SumMatrix::Kronecker { outputs, inputs, transposed } => {
            SumMatrix::Kronecker { outputs: square(outputs), inputs: square(inputs), transposed: *transposed }
        }
    };
    blocks.iter().map(|b| BlockSum { matrix: zero(&b.matrix), ..b.clone_layout() }).collect()
}

/// Adds sums of the same layout.
pub(super) fn add(blocks: &mut [BlockSum], others: &[BlockSum]) {
    for (block, other) in blocks.iter_mut().zip(others) {
        match (&mut block.matrix, &other.matrix) {
            (SumMatrix::Dense(a), SumMatrix::Dense(b)) => *a += b,
            (SumMatrix::Diagonal(a), SumMatrix::Diagonal(b)) => {
                a.iter_mut().zip(b).for_each(|(a, b)| *a += b);
            }
            (
                SumMatrix::Kronecker { outputs: g, inputs: q, .. },
                SumMatrix::Kronecker { outputs, inputs, .. },
            ) => {
                *g += outputs;
                *q += inputs;
            }
            // Layouts are equal by construction.
            _ => {}
        }
    }
}

/// Empty blocks for weights in segments.
pub(super) fn layout(segments: &[Segment], form: Form) -> Vec<BlockSum> {
    let square = |n: usize| Mat::zeros(n, n);
    let all = 0..segments.last().map_or(0, |s| s.range.end);
    let whole = |matrix| vec![BlockSum { name: "all weights".into(), range: all.clone(), matrix }];
    match form {
        Form::Full => whole(SumMatrix::Dense(square(all.len()))),
        Form::Diagonal => whole(SumMatrix::Diagonal(vec![0.0; all.len()])),
        Form::Block => layers(segments)
            .into_iter()
            .map(|(layer, own)| {
                let range = segments[own.start].range.start..segments[own.end - 1].range.end;
                BlockSum { name: layer.into(), matrix: SumMatrix::Dense(square(range.len())), range }
            })
            .collect(),
        Form::Kronecker => segments
            .iter()
            .map(|segment| {
                let length = segment.range.len();
                let matrix = match segment.matrix {
                    Some(MatrixShape { outputs, inputs, transposed }) => {
                        SumMatrix::Kronecker { outputs: square(outputs), inputs: square(inputs), transposed }
                    }
                    None if length <= DENSE_VECTOR => SumMatrix::Dense(square(length)),
                    None => SumMatrix::Diagonal(vec![0.0; length]),
                };
                BlockSum { name: segment.name.clone(), range: segment.range.clone(), matrix }
            })
            .collect(),
    }
}

/// The curvature that sums over `examples` stand for.
pub(super) fn structure(blocks: &[BlockSum], examples: usize) -> Result<Structure, StructureError> {
    let finished = blocks.iter().map(|block| {
        let matrix = match &block.matrix {
            SumMatrix::Dense(m) => BlockMatrix::Dense(Dense::new(m.clone())),
            SumMatrix::Diagonal(v) => BlockMatrix::Diagonal(Diagonal::new(v.clone())),
            SumMatrix::Kronecker { outputs, inputs, transposed } => {
                let mean = inputs * faer::Scale(1.0 / examples as f64);
                let (rows, columns) =
                    if *transposed { (mean, outputs.clone()) } else { (outputs.clone(), mean) };
                BlockMatrix::Kronecker(Kronecker::new(rows, columns, &block.name)?)
            }
        };
        Ok(Block { name: block.name.clone(), range: block.range.clone(), matrix })
    });
    Structure::new(finished.collect::<Result<_, StructureError>>()?)
}

/// Numbers that the sums of a form hold at least, lower triangles only: to be compared with what a file holds before anything is allocated for them.
pub fn least_numbers(segments: &[Segment], form: Form) -> u64 {
    let triangle = |n: usize| (n as u64).saturating_mul(n as u64 + 1) / 2;
    let all = segments.last().map_or(0, |s| s.range.end);
    let add = u64::saturating_add;
    match form {
        Form::Full => triangle(all),
        Form::Diagonal => all as u64,
        Form::Block => layers(segments)
            .into_iter()
            .map(|(_, own)| triangle(segments[own].iter().map(|s| s.range.len()).sum()))
            .fold(0, add),
        Form::Kronecker => segments
            .iter()
            .map(|segment| match segment.matrix {
                Some(m) => triangle(m.outputs).saturating_add(triangle(m.inputs)),
                None => segment.range.len() as u64,
            })
            .fold(0, add),
    }
}
