//! Rows of the Jacobian, for those who ask for them.

use super::Outputs;
use crate::array::{Array, Precision};
use crate::graph::{Network, NetworkError, Selection};

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
}
