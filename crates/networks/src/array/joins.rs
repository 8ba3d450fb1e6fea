//! Pieces of an axis put together and taken apart.

use super::{Array, Precision, batch_shape, together};
use posterior_linalg::parallel;

/// A piece of an axis: of `total` values for each of `outer` repeats, those from `start`, `length` of them (inner axes included).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) total: usize,
    pub(crate) start: usize,
    pub(crate) length: usize,
}

/// Copies `x` (whose rows are made of this piece alone) into its place in `out`.
#[inline(never)]
pub(crate) fn place<T: Precision>(x: &Array<T>, piece: Piece, out: &mut Array<T>) {
    if piece.length > 0 {
        parallel::chunks(out.values_mut(), piece.total, together(piece.length), |i, to| {
            let from = &x.values()[i * piece.length..][..piece.length];
            to[piece.start..piece.start + piece.length].copy_from_slice(from);
        });
    }
}

/// Adds `x` (whose rows are made of this piece alone) to its place in `out`.
pub(crate) fn add_piece<T: Precision>(x: &Array<T>, piece: Piece, out: &mut Array<T>) {
    if piece.length > 0 {
        parallel::chunks(out.values_mut(), piece.total, together(piece.length), |i, to| {
            let from = &x.values()[i * piece.length..][..piece.length];
            to[piece.start..piece.start + piece.length].iter_mut().zip(from).for_each(|(t, f)| *t += *f);
        });
    }
}

/// The piece of every row of `x`, rows shaped `example`.
pub(crate) fn extract<T: Precision>(x: &Array<T>, piece: Piece, example: &[usize]) -> Array<T> {
    let mut out = Array::any(batch_shape(x.rows(), example));
    if piece.length > 0 {
        parallel::chunks(out.values_mut(), piece.length, together(piece.length), |i, to| {
            to.copy_from_slice(&x.values()[i * piece.total + piece.start..][..piece.length]);
        });
    }
    out
}
