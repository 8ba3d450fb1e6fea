//! Elementwise arithmetic. A second argument with fewer rows is repeated: with `width` times as many rows in the first, row `r` meets row
//! `r / width`, which is how the values of a batch meet several tangents or cotangents of each example.

use super::{Array, Precision, Sets, piece, together};
use posterior_linalg::parallel;
use posterior_linalg::vectorised::dispatch;

/// `f` of every value.
pub(super) fn map<T: Precision>(x: &Array<T>, f: impl Fn(T) -> T + Sync) -> Array<T> {
    let mut out = Array::any(x.shape().to_vec());
    let piece = piece(out.len());
    parallel::chunks(out.values_mut(), piece, 1, |part, out| {
        let x = &x.values()[part * piece..][..out.len()];
        dispatch(
            #[inline(always)]
            || {
                for (o, &x) in out.iter_mut().zip(x) {
                    *o = f(x);
                }
            },
        );
    });
    out
}

fn map_in_place<T: Precision>(out: &mut [T], f: impl Fn(T) -> T + Sync) {
    let piece = piece(out.len());
    parallel::chunks(out, piece, 1, |_, out| {
        dispatch(
            #[inline(always)]
            || {
                for o in out {
                    *o = f(*o);
                }
            },
        );
    });
}

/// `out[i] = f(out[i], x[i])` for slices of one length.
fn zip<T: Precision>(out: &mut [T], x: &[T], f: impl Fn(T, T) -> T + Sync) {
    let piece = piece(out.len());
    parallel::chunks(out, piece, 1, |part, out| zip_slice(out, &x[part * piece..][..out.len()], &f));
}

#[inline]
fn zip_slice<T: Precision, F: Fn(T, T) -> T>(out: &mut [T], x: &[T], f: &F) {
    dispatch(
        #[inline(always)]
        || {
            for (o, &x) in out.iter_mut().zip(x) {
                *o = f(*o, x);
            }
        },
    );
}

/// `out[r, i] = f(out[r, i], x[r / width, i])`.
pub(super) fn zip_repeated<T: Precision>(out: &mut Array<T>, x: &Array<T>, f: impl Fn(T, T) -> T + Sync) {
    let length = x.row_len();
    assert_eq!(out.row_len(), length, "rows fit each other");
    if out.is_empty() {
        return;
    }
    let width = out.rows() / x.rows();
    if width == 1 {
        zip(out.values_mut(), x.values(), f);
        return;
    }
    let each = piece(out.len()).div_ceil(length);
    parallel::chunks(out.values_mut(), each * length, 1, |part, rows| {
        for (r, row) in rows.chunks_exact_mut(length).enumerate() {
            zip_slice(row, x.row((part * each + r) / width), &f);
        }
    });
}

/// `out += x`, slices of one length.
#[inline(never)]
pub(crate) fn add_to<T: Precision>(out: &mut [T], x: &[T]) {
    zip(
        out,
        x,
        #[inline(always)]
        |a, b| a + b,
    );
}

/// `a + b`.
pub(crate) fn add<T: Precision>(mut a: Array<T>, b: &Array<T>) -> Array<T> {
    add_to(a.values_mut(), b.values());
    a
}

/// `a b`, with the rows of `b` repeated.
#[inline(never)]
pub(crate) fn multiply<T: Precision>(mut a: Array<T>, b: &Array<T>) -> Array<T> {
    zip_repeated(
        &mut a,
        b,
        #[inline(always)]
        |a, b| a * b,
    );
    a
}

/// `a / b`, with the rows of `b` repeated.
pub(crate) fn divide<T: Precision>(mut a: Array<T>, b: &Array<T>) -> Array<T> {
    zip_repeated(
        &mut a,
        b,
        #[inline(always)]
        |a, b| a / b,
    );
    a
}

/// `a` where the condition is positive (or where it is not), else 0, with the rows of the condition repeated.
pub(crate) fn where_positive<T: Precision>(
    mut a: Array<T>,
    condition: &Array<T>,
    positive: bool,
) -> Array<T> {
    zip_repeated(&mut a, condition, move |a, c| if (c > T::ZERO) == positive { a } else { T::ZERO });
    a
}

/// The larger (or the smaller) of `a` and `b`; NaN where one is.
pub(crate) fn extreme<T: Precision>(mut a: Array<T>, b: &Array<T>, largest: bool) -> Array<T> {
    zip_repeated(&mut a, b, move |a, b| if first_wins(a, b, largest) { a } else { b });
    a
}

/// 1 where `a` is what [`extreme`] takes, else 0.
pub(crate) fn extreme_of_first<T: Precision>(a: &Array<T>, b: &Array<T>, largest: bool) -> Array<T> {
    let mut mask = a.clone();
    zip_repeated(&mut mask, b, move |a, b| if first_wins(a, b, largest) { T::ONE } else { T::ZERO });
    mask
}

/// Whether `a` is the larger (or the smaller) of two; the first of equal ones, and NaN before any number.
#[inline(always)]
pub(super) fn first_wins<T: Precision>(a: T, b: T, largest: bool) -> bool {
    (if largest { a >= b } else { a <= b }) || a.to_f64().is_nan()
}

/// `factor x`.
pub(crate) fn scale<T: Precision>(mut x: Array<T>, factor: T) -> Array<T> {
    map_in_place(
        x.values_mut(),
        #[inline(always)]
        move |v| factor * v,
    );
    x
}

/// Every row `width` times: `[n, ...] -> [n * width, ...]`.
pub(crate) fn repeat<T: Precision>(x: &Array<T>, width: usize) -> Array<T> {
    let length = x.row_len();
    let mut shape = x.shape().to_vec();
    shape[0] *= width;
    let mut out = Array::any(shape);
    if length > 0 {
        parallel::chunks(out.values_mut(), length, together(length), |r, row| {
            row.copy_from_slice(x.row(r / width));
        });
    }
    out
}

/// Where a parameter's entries meet a value: `[outer, channels, inner]`, repeated along `outer` and `inner`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Channels {
    pub(crate) channels: usize,
    pub(crate) inner: usize,
}

impl Channels {
    /// How a parameter of shape `parameter` broadcasts over values of shape `example` (aligned at the last axis), where its axes other than 1 are
    /// next to each other.
    pub(crate) fn broadcast(example: &[usize], parameter: &[usize]) -> Option<Self> {
        let offset = example.len().checked_sub(parameter.len())?;
        let wide = |axis: usize| axis >= offset && parameter[axis - offset] != 1;
        let axes: Vec<usize> = (0..example.len()).filter(|&axis| wide(axis)).collect();
        let (Some(&first), Some(&last)) = (axes.first(), axes.last()) else {
            return Some(Self { channels: 1, inner: example.iter().product() });
        };
        let fits = (first..=last).all(|axis| wide(axis) || example[axis] == 1)
            && axes.iter().all(|&axis| parameter[axis - offset] == example[axis]);
        fits.then(|| Self {
            channels: example[first..=last].iter().product(),
            inner: example[last + 1..].iter().product(),
        })
    }
}

/// `x * scale[c] + shift[c]`, entry `c` of parameters that come in sets.
pub(crate) fn channel_affine<T: Precision>(
    x: &Array<T>,
    channels: Channels,
    scale: Option<&[T]>,
    shift: Option<&[T]>,
    sets: Sets,
) -> Array<T> {
    let (count, inner, row_len) = (channels.channels, channels.inner, x.row_len());
    let mut out = Array::any(x.shape().to_vec());
    if out.is_empty() {
        return out;
    }
    let rows_each = (piece(x.len()) / row_len).max(1);
    parallel::chunks(out.values_mut(), rows_each * row_len, 1, |part, rows| {
        for (r, out) in rows.chunks_exact_mut(row_len).enumerate() {
            let row = part * rows_each + r;
            let set = sets.of(row) * count;
            let scale = scale.map(|s| &s[set..set + count]);
            let shift = shift.map(|s| &s[set..set + count]);
            dispatch(
                #[inline(always)]
                || affine_row(x.row(row), count, inner, scale, shift, out),
            );
        }
    });
    out
}

#[inline(always)]
fn affine_row<T: Precision>(
    row: &[T],
    count: usize,
    inner: usize,
    scale: Option<&[T]>,
    shift: Option<&[T]>,
    out: &mut [T],
) {
    if inner == 1 {
        for (out, row) in out.chunks_exact_mut(count).zip(row.chunks_exact(count)) {
            let out = out.iter_mut().zip(row);
            match (scale, shift) {
                (Some(a), Some(b)) => out.zip(a).zip(b).for_each(|(((o, &v), &a), &b)| *o = v * a + b),
                (Some(a), None) => out.zip(a).for_each(|((o, &v), &a)| *o = v * a),
                (None, Some(b)) => out.zip(b).for_each(|((o, &v), &b)| *o = v + b),
                (None, None) => out.for_each(|(o, &v)| *o = v),
            }
        }
    } else {
        for (i, (out, values)) in out.chunks_exact_mut(inner).zip(row.chunks_exact(inner)).enumerate() {
            let a = scale.map_or(T::ONE, |s| s[i % count]);
            let b = shift.map_or(T::ZERO, |s| s[i % count]);
            for (o, &v) in out.iter_mut().zip(values) {
                *o = v * a + b;
            }
        }
    }
}
