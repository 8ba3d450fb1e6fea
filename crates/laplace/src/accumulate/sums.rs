//! The numbers that are summed, block by block, and the structure they become.

use super::Form;
use crate::LaplaceError;
use faer::Mat;
use posterior_linear::structure::{Block, BlockMatrix, Dense, Diagonal, Kronecker, Structure};
use posterior_networks::{Graph, Operation, Selection};
use std::ops::Range;

/// Parameters that are not weight matrices (biases, gains) get a dense block up to this length, and a diagonal one beyond.
const DENSE_VECTOR: usize = 1024;

/// The sum for one block of weights.
#[derive(Clone, Debug, PartialEq)]
pub struct BlockSum {
    /// The parameter or layer.
    pub name: String,
    /// Its weights in the flat vector.
    pub range: Range<usize>,
    /// Positions of the selection's parts that it covers.
    pub parts: Range<usize>,
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
        Self { name: self.name.clone(), range: self.range.clone(), parts: self.parts.clone(), matrix }
    }

    pub(crate) fn same_layout(&self, other: &Self) -> bool {
        let size = |m: &SumMatrix| match m {
            SumMatrix::Dense(m) => (0, m.nrows(), m.ncols(), false),
            SumMatrix::Diagonal(v) => (1, v.len(), 1, false),
            SumMatrix::Kronecker { outputs, inputs, transposed } => {
                (2, outputs.nrows(), inputs.nrows(), *transposed)
            }
        };
        self.name == other.name && self.range == other.range && size(&self.matrix) == size(&other.matrix)
    }

    pub(crate) fn is_finite(&self) -> bool {
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

/// What a parameter's node makes of it: `(outputs, inputs, transposed)` of a weight matrix, None for others.
pub(crate) fn weight_matrix(graph: &Graph, parameter: usize) -> Option<(usize, usize, bool)> {
    let shape = &graph.parameters()[parameter].shape;
    let users: Vec<_> = graph.nodes().iter().filter(|n| n.parameters.first() == Some(&parameter)).collect();
    let rest = || shape[1..].iter().product::<usize>();
    if users.is_empty() || graph.nodes().iter().any(|n| n.parameters.iter().skip(1).any(|p| *p == parameter))
    {
        return None;
    }
    if users.iter().all(|n| matches!(n.operation, Operation::Linear(_))) {
        return Some((shape[0], rest(), false));
    }
    if users.iter().all(|n| matches!(&n.operation, Operation::Convolution(c) if c.groups == 1)) {
        let transposed =
            users.iter().any(|n| matches!(&n.operation, Operation::Convolution(c) if c.transposed));
        return Some(if transposed { (rest(), shape[0], true) } else { (shape[0], rest(), false) });
    }
    None
}

/// Empty blocks for a selection.
pub(crate) fn layout(graph: &Graph, selection: &Selection, form: Form) -> Vec<BlockSum> {
    let parts = selection.parts();
    let range = |i: usize| parts[i].offset..parts[i].offset + parts[i].length;
    let square = |n: usize| Mat::zeros(n, n);
    match form {
        Form::Full => {
            let matrix = SumMatrix::Dense(square(selection.len()));
            vec![BlockSum {
                name: "all weights".into(),
                range: 0..selection.len(),
                parts: 0..parts.len(),
                matrix,
            }]
        }
        Form::Diagonal => {
            let matrix = SumMatrix::Diagonal(vec![0.0; selection.len()]);
            vec![BlockSum {
                name: "all weights".into(),
                range: 0..selection.len(),
                parts: 0..parts.len(),
                matrix,
            }]
        }
        Form::Block => {
            let mut blocks: Vec<BlockSum> = Vec::new();
            for (layer, group) in layers(graph, selection) {
                let all = range(group.start).start..range(group.end - 1).end;
                let matrix = SumMatrix::Dense(square(all.len()));
                blocks.push(BlockSum { name: layer, range: all, parts: group, matrix });
            }
            blocks
        }
        Form::Kronecker => (0..parts.len())
            .map(|i| {
                let length = parts[i].length;
                let matrix = match weight_matrix(graph, parts[i].parameter) {
                    Some((outputs, inputs, transposed)) => {
                        SumMatrix::Kronecker { outputs: square(outputs), inputs: square(inputs), transposed }
                    }
                    None if length <= DENSE_VECTOR => SumMatrix::Dense(square(length)),
                    None => SumMatrix::Diagonal(vec![0.0; length]),
                };
                BlockSum { name: parts[i].name.clone(), range: range(i), parts: i..i + 1, matrix }
            })
            .collect(),
    }
}

/// Runs of parts that belong to the same node, with its name.
pub(crate) fn layers(graph: &Graph, selection: &Selection) -> Vec<(String, Range<usize>)> {
    let node_of = |parameter: usize| graph.nodes().iter().position(|n| n.parameters.contains(&parameter));
    let mut out: Vec<(Option<usize>, Range<usize>)> = Vec::new();
    for (i, part) in selection.parts().iter().enumerate() {
        let node = node_of(part.parameter);
        match out.last_mut() {
            Some((last, range)) if *last == node => range.end = i + 1,
            _ => out.push((node, i..i + 1)),
        }
    }
    let name = |node: Option<usize>| node.map_or_else(String::new, |n| graph.nodes()[n].name.clone());
    out.into_iter().map(|(node, range)| (name(node), range)).collect()
}

/// The curvature that sums over `examples` stand for.
pub(crate) fn structure(blocks: &[BlockSum], examples: usize) -> Result<Structure, LaplaceError> {
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
    Ok(Structure::new(finished.collect::<Result<_, LaplaceError>>()?)?)
}
