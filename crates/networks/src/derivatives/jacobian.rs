//! Rows of the Jacobian, for those who ask for them.

use super::Outputs;
use crate::array::{Array, Precision};
use crate::graph::{Network, NetworkError, Selection};

/// Bytes of a piece of the Jacobian.
const PIECE: usize = 32 << 20;

impl<T: Precision> Network<T> {
    /// Rows of the Jacobian in the selected parameters: `[examples * width, selection]`, where `width` is the number of outputs asked for of
    /// each example.
    ///
    /// Bound by writing the result: one multiplication and four (f32) or eight bytes for each entry of a fully connected layer. Nothing else of
    /// that size is stored.
    ///
    /// # Errors
    /// When the result would pass `memory` bytes; as [`Trace::vjp`](crate::Trace::vjp) otherwise.
    pub fn jacobian(
        &self,
        x: &Array<T>,
        selection: &Selection,
        outputs: &Outputs<T>,
        memory: u64,
    ) -> Result<Array<T>, NetworkError> {
        self.require_evaluation("Jacobians")?;
        let cotangents = outputs.cotangents(x.rows(), self.graph().output_shape())?;
        let needed = (cotangents.rows() as u64)
            .saturating_mul(selection.len() as u64)
            .saturating_mul(size_of::<T>() as u64);
        if needed > memory {
            let remedy = "take fewer examples at a time, select fewer parameters, or use products with the Jacobian instead of the Jacobian";
            return Err(NetworkError::Memory { what: "the Jacobian", needed, allowed: memory, remedy });
        }
        self.trace(x.clone())?.vjp_by_example(selection, &cotangents)
    }

    /// The same rows piece by piece: `visit(examples, rows)` sees the rows of a few examples at a time, in order. Pieces share one buffer of about
    /// 32 MB (or one example's rows, if those are more), so that this is bound by the cache and not by memory.
    ///
    /// # Errors
    /// As [`Self::jacobian`], except that there is no limit to pass.
    #[inline(never)]
    pub fn jacobian_pieces(
        &self,
        x: &Array<T>,
        selection: &Selection,
        outputs: &Outputs<T>,
        visit: &mut dyn FnMut(std::ops::Range<usize>, &Array<T>),
    ) -> Result<(), NetworkError> {
        self.require_evaluation("Jacobians")?;
        let shape = self.graph().output_shape();
        let width = outputs.cotangents(x.rows(), shape)?.rows() / x.rows().max(1);
        let each =
            (PIECE / (selection.len() * width * size_of::<T>()).max(1)).clamp(1, self.examples_at_once());
        for range in posterior_linalg::tiles::pieces(x.rows(), each) {
            let own = outputs.of_examples(range.clone(), x.rows()).cotangents(range.len(), shape)?;
            let rows = self.trace(x.slice_rows(range.clone()))?.vjp_by_example(selection, &own)?;
            visit(range, &rows);
        }
        Ok(())
    }
}
