//! Two frames of an image: its rows one after the other, for rays that run along columns, and its columns one after the other.

use posterior_linalg::{Real, parallel};

/// Side of the squares that a transposition works in.
const SQUARE: usize = 32;

/// The transpose of `image` (rows x columns, by rows), each of whose entries is a list of `lanes` numbers.
pub(super) fn transposed<T: Real>(image: &[T], rows: usize, columns: usize, lanes: usize) -> Vec<T> {
    let mut out = vec![T::ZERO; image.len()];
    parallel::chunks(&mut out, SQUARE * rows * lanes, 1, |block, out| {
        let first = block * SQUARE;
        for some in (0..rows).step_by(SQUARE) {
            for (j, row) in out.chunks_exact_mut(rows * lanes).enumerate() {
                for i in some..rows.min(some + SQUARE) {
                    let from = (i * columns + first + j) * lanes;
                    row[i * lanes..(i + 1) * lanes].copy_from_slice(&image[from..from + lanes]);
                }
            }
        }
    });
    out
}

/// `into += transpose of from`, `from` being columns x rows.
pub(super) fn add_transposed<T: Real>(into: &mut [T], from: &[T], rows: usize, columns: usize, lanes: usize) {
    parallel::chunks(into, columns * lanes, 2, |i, row| {
        for (j, entry) in row.chunks_exact_mut(lanes).enumerate() {
            let at = (j * rows + i) * lanes;
            entry.iter_mut().zip(&from[at..at + lanes]).for_each(|(a, b)| *a += *b);
        }
    });
}
