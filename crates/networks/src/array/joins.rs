//! Pieces of an axis put together and taken apart.

use super::{Array, Precision, batch_shape};

/// A piece of an axis: of `total` values for each of `outer` repeats, those from `start`, `length` of them (inner axes included).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) total: usize,
    pub(crate) start: usize,
    pub(crate) length: usize,
}

/// Copies `x` (whose rows are made of this piece alone) into its place in `out`.
pub(crate) fn place<T: Precision>(x: &Array<T>, piece: Piece, out: &mut Array<T>) {
    if piece.length > 0 {
        for (from, to) in
            x.values().chunks_exact(piece.length).zip(out.values_mut().chunks_exact_mut(piece.total))
        {
            to[piece.start..piece.start + piece.length].copy_from_slice(from);
        }
    }
}

/// The piece of every row of `x`, rows shaped `example`.
pub(crate) fn extract<T: Precision>(x: &Array<T>, piece: Piece, example: &[usize]) -> Array<T> {
    let mut values = Vec::with_capacity(x.len() / piece.total.max(1) * piece.length);
    for from in x.values().chunks_exact(piece.total.max(1)) {
        values.extend_from_slice(&from[piece.start..piece.start + piece.length]);
    }
    Array::new(batch_shape(x.rows(), example), values)
}
