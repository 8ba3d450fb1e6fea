//! Which outputs a derivative is wanted of.

use crate::array::{Array, Precision};
use crate::graph::NetworkError;

/// The outputs (or combinations of them) that a block of cotangents asks for; outputs with several axes are counted in row-major order.
#[derive(Clone, Debug, PartialEq)]
pub enum Outputs<T> {
    /// All outputs of every example.
    All,
    /// The same outputs of every example.
    These(Vec<usize>),
    /// One output of each example: entry `n` for example `n`.
    Each(Vec<usize>),
    /// Any combinations, `[examples * width, outputs...]`, example by example.
    Combinations(Array<T>),
}

impl<T: Precision> Outputs<T> {
    /// The cotangents `[examples * width, shape...]`.
    #[inline(never)]
    pub(crate) fn cotangents(&self, examples: usize, shape: &[usize]) -> Result<Array<T>, NetworkError> {
        let count: usize = shape.iter().product();
        let bad = |expected: Vec<usize>, found: Vec<usize>| NetworkError::Shape {
            what: "outputs",
            expected,
            found,
        };
        let rows: Vec<usize> = match self {
            Self::All => (0..examples * count).map(|r| r % count.max(1)).collect(),
            Self::These(list) => (0..examples).flat_map(|_| list.iter().copied()).collect(),
            Self::Each(list) if list.len() == examples => list.clone(),
            Self::Each(list) => return Err(bad(vec![examples], vec![list.len()])),
            Self::Combinations(block) => {
                let fits = block.shape().get(1..) == Some(shape)
                    && examples > 0
                    && block.rows().is_multiple_of(examples);
                return if fits {
                    Ok(block.clone())
                } else {
                    Err(bad(crate::array::batch_shape(examples, shape), block.shape().to_vec()))
                };
            }
        };
        if let Some(&output) = rows.iter().find(|&&o| o >= count) {
            return Err(bad(vec![count], vec![output]));
        }
        let mut block = Array::zeros(crate::array::batch_shape(rows.len(), shape));
        for (row, output) in block.values_mut().chunks_exact_mut(count.max(1)).zip(rows) {
            row[output] = T::ONE;
        }
        Ok(block)
    }

    /// The same outputs of a range of the examples.
    #[inline(never)]
    pub(crate) fn of_examples(&self, range: std::ops::Range<usize>, examples: usize) -> Self {
        match self {
            Self::Each(list) => Self::Each(list[range].to_vec()),
            Self::Combinations(block) => {
                let width = block.rows() / examples.max(1);
                Self::Combinations(block.slice_rows(range.start * width..range.end * width))
            }
            other => other.clone(),
        }
    }
}
