//! `diag(A₁, A₂, ...)`: each block sees its own piece of the vector.

use super::{LinearOperator, Structure, check_apply, check_apply_transpose};
use crate::Real;
use faer::prelude::ReborrowMut;
use faer::{MatMut, MatRef};

/// Operators along a diagonal, zeros elsewhere. Rows and columns are the sums of those of the blocks.
///
/// Blocks of different kinds are boxed: `BlockDiagonal<Box<dyn LinearOperator<f64>>>`.
#[derive(Clone, Debug)]
pub struct BlockDiagonal<A> {
    blocks: Vec<A>,
}

impl<A> BlockDiagonal<A> {
    /// The operator with these blocks, from the upper left. Without any it is 0 x 0.
    pub fn new(blocks: Vec<A>) -> Self {
        Self { blocks }
    }

    /// The blocks.
    pub fn blocks(&self) -> &[A] {
        &self.blocks
    }
}

impl<T: Real, A: LinearOperator<T>> LinearOperator<T> for BlockDiagonal<A> {
    fn shape(&self) -> (usize, usize) {
        self.blocks
            .iter()
            .map(|block| block.shape())
            .fold((0, 0), |sum, shape| (sum.0 + shape.0, sum.1 + shape.1))
    }

    fn apply(&self, input: MatRef<'_, T>, mut output: MatMut<'_, T>) {
        check_apply(self.shape(), input, &output);
        let (mut row, mut column) = (0, 0);
        for block in &self.blocks {
            let (rows, columns) = block.shape();
            block.apply(input.subrows(column, columns), output.rb_mut().subrows_mut(row, rows));
            (row, column) = (row + rows, column + columns);
        }
    }

    fn apply_transpose(&self, input: MatRef<'_, T>, mut output: MatMut<'_, T>) {
        check_apply_transpose(self.shape(), input, &output);
        let (mut row, mut column) = (0, 0);
        for block in &self.blocks {
            let (rows, columns) = block.shape();
            block.apply_transpose(input.subrows(row, rows), output.rb_mut().subrows_mut(column, columns));
            (row, column) = (row + rows, column + columns);
        }
    }

    fn structure(&self) -> Structure {
        self.blocks
            .iter()
            .map(|block| block.structure())
            .reduce(Structure::blocks)
            .unwrap_or(Structure::IDENTITY)
    }
}
