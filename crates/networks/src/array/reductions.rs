//! Sums over rows and within channels.

use super::{Array, Channels, Precision, Sets, together};
use posterior_linalg::parallel;
use posterior_linalg::vectorised::{dispatch, dot};

/// Elements that one thread sums at a time.
const PIECE: usize = 1 << 15;

/// `out[set * stride + c] += sum over the rows of the set and the positions of channel c of cotangent (times primal, rows repeated)`.
pub(crate) fn channel_sums<T: Precision>(
    cotangent: &Array<T>,
    primal: Option<&Array<T>>,
    channels: Channels,
    sets: Sets,
    stride: usize,
    out: &mut [T],
) {
    let (count, row_len, rows) = (channels.channels, cotangent.row_len(), cotangent.rows());
    if cotangent.is_empty() {
        return;
    }
    let sum_rows = |(first, step, count): (usize, usize, usize), out: &mut [T]| {
        for r in (0..count).map(|i| first + i * step) {
            let row = cotangent.row(r);
            let primal = primal.map(|p| p.row(r / (rows / p.rows())));
            dispatch(
                #[inline(always)]
                || sum_row(row, primal, channels, out),
            );
        }
    };
    let rows_each = (PIECE / row_len).max(1);
    parallel::chunks(out, stride, 1, |set, out| {
        let (first, step, members) = sets.rows(set, rows);
        let out = &mut out[..count];
        if members <= rows_each {
            sum_rows((first, step, members), out);
            return;
        }
        let parts = parallel::map(members.div_ceil(rows_each), 1, |part| {
            let mut own = vec![T::ZERO; count];
            let start = part * rows_each;
            sum_rows((first + start * step, step, rows_each.min(members - start)), &mut own);
            own
        });
        for part in parts {
            out.iter_mut().zip(part).for_each(|(o, p)| *o += p);
        }
    });
}

#[inline(always)]
fn sum_row<T: Precision>(row: &[T], primal: Option<&[T]>, channels: Channels, out: &mut [T]) {
    let Channels { channels: count, inner } = channels;
    if inner == 1 {
        for (i, row) in row.chunks_exact(count).enumerate() {
            match primal {
                Some(p) => {
                    for ((o, &v), &p) in out.iter_mut().zip(row).zip(&p[i * count..(i + 1) * count]) {
                        *o += v * p;
                    }
                }
                None => out.iter_mut().zip(row).for_each(|(o, &v)| *o += v),
            }
        }
    } else {
        for (i, values) in row.chunks_exact(inner).enumerate() {
            out[i % count] += match primal {
                Some(p) => dot(values, &p[i * inner..(i + 1) * inner]),
                None => sum(values),
            };
        }
    }
}

/// Sum in 16 lanes, so that it becomes vector code; call inside a dispatch.
#[inline(always)]
pub(super) fn sum<T: Precision>(x: &[T]) -> T {
    let mut lanes = [T::ZERO; 16];
    let mut pieces = x.chunks_exact(16);
    for piece in &mut pieces {
        for (l, &v) in lanes.iter_mut().zip(piece) {
            *l += v;
        }
    }
    let mut total = T::ZERO;
    for &v in lanes.iter().chain(pieces.remainder()) {
        total += v;
    }
    total
}

/// `<x[r], y[r / width]>` for each row.
pub(crate) fn row_dots<T: Precision>(x: &Array<T>, y: &Array<T>) -> Vec<T> {
    let width = x.rows() / y.rows().max(1);
    parallel::map(x.rows(), together(x.row_len()), |r| {
        dispatch(
            #[inline(always)]
            || dot(x.row(r), y.row(r / width)),
        )
    })
}

/// Sums the `width` rows of each example: `[n * width, ...] -> [n, ...]`.
#[inline(never)]
pub(crate) fn fold_rows<T: Precision>(x: &Array<T>, width: usize) -> Array<T> {
    if width == 1 {
        return x.clone();
    }
    let length = x.row_len();
    let mut shape = x.shape().to_vec();
    shape[0] /= width;
    let mut out = Array::zeros(shape);
    if length > 0 {
        parallel::chunks(out.values_mut(), length, together(length * width), |n, out| {
            for r in n * width..(n + 1) * width {
                out.iter_mut().zip(x.row(r)).for_each(|(o, &v)| *o += v);
            }
        });
    }
    out
}

/// The sum of squares in double precision, in pieces of fixed length so that the result does not depend on threads. Not finite exactly if a value is not.
pub(crate) fn sum_of_squares<T: Precision>(x: &[T]) -> f64 {
    let parts = of_pieces(x, 1 << 14, |x| {
        dispatch(
            #[inline(always)]
            || {
                let mut lanes = [0.0f64; 16];
                let mut pieces = x.chunks_exact(16);
                for piece in &mut pieces {
                    for (l, &v) in lanes.iter_mut().zip(piece) {
                        *l += v.to_f64() * v.to_f64();
                    }
                }
                lanes.iter().sum::<f64>()
                    + pieces.remainder().iter().map(|v| v.to_f64() * v.to_f64()).sum::<f64>()
            },
        )
    });
    parts.iter().sum()
}

/// Whether every value is finite.
pub(crate) fn all_finite<T: Precision>(x: &[T]) -> bool {
    let parts = of_pieces(x, 1 << 16, |x| {
        dispatch(
            #[inline(always)]
            || {
                // Zero times a number is zero, and NaN if the number is not finite.
                let mut lanes = [T::ZERO; 16];
                let mut pieces = x.chunks_exact(16);
                for piece in &mut pieces {
                    for (l, &v) in lanes.iter_mut().zip(piece) {
                        *l += v * T::ZERO;
                    }
                }
                lanes.iter().chain(pieces.remainder()).all(|v| v.is_finite())
            },
        )
    });
    parts.into_iter().all(|finite| finite)
}

/// `f` of pieces of `each` values, in their order.
fn of_pieces<T: Precision, R: Send>(x: &[T], each: usize, f: impl Fn(&[T]) -> R + Sync) -> Vec<R> {
    parallel::map(x.len().div_ceil(each), 1, |piece| f(&x[piece * each..x.len().min((piece + 1) * each)]))
}
