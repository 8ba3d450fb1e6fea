//! Normalisation of segments (layer, group and RMS norms) and softmax, with first and second derivatives.
//!
//! For `z = (x - mean) r`, `r = (variance + epsilon)^(-1/2)` over a segment of length `L`, the Jacobian is symmetric:
//! `J t = r (t - mean(t) - z mean(z t))`. For `s = softmax(x)` it is `J t = s (t - <s, t>)`, symmetric too. So jvp and vjp are one function.

use super::reductions::sum;
use super::{Array, Precision, piece, together};
use posterior_linalg::vectorised::{dispatch, dot};
use posterior_linalg::{Real, parallel};

/// Calls `f(segment index, out segment)` in parallel, inside one dispatch for each piece.
fn segments<T: Precision>(out: &mut Array<T>, length: usize, f: impl Fn(usize, &mut [T]) + Sync) {
    if out.is_empty() {
        return;
    }
    let each = piece(out.len()).div_ceil(length);
    parallel::chunks(out.values_mut(), each * length, 1, |part, piece| {
        dispatch(
            #[inline(always)]
            || {
                for (i, segment) in piece.chunks_exact_mut(length).enumerate() {
                    f(part * each + i, segment);
                }
            },
        );
    });
}

/// Which segment of values of the examples belongs to a segment of a block with `width` rows for each example.
#[derive(Clone, Copy)]
struct Matching {
    per_row: usize,
    width: usize,
    length: usize,
}

impl Matching {
    fn new<T: Precision>(block: &Array<T>, values: &Array<T>, length: usize) -> Self {
        Self { per_row: block.row_len() / length, width: block.rows() / values.rows().max(1), length }
    }

    #[inline(always)]
    fn index(self, i: usize) -> usize {
        i / self.per_row / self.width * self.per_row + i % self.per_row
    }

    #[inline(always)]
    fn of<T>(self, values: &[T], i: usize) -> &[T] {
        let i = self.index(i);
        &values[i * self.length..(i + 1) * self.length]
    }
}

/// Segment `i`.
#[inline(always)]
fn segment<T>(x: &[T], i: usize, length: usize) -> &[T] {
    &x[i * length..(i + 1) * length]
}

/// Segments that are normalised, each by its own statistics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Segments {
    /// Values of one.
    pub(crate) length: usize,
    /// Whether the mean is taken off; without that `r = (mean of squares + epsilon)^(-1/2)` and `J t = r (t - z mean(z t))`.
    pub(crate) centred: bool,
}

impl Segments {
    /// What is taken off: the mean of values that add up to `sum`.
    #[inline(always)]
    fn mean<T: Precision>(self, sum: T) -> T {
        if self.centred { sum / T::from_f64(self.length as f64) } else { T::ZERO }
    }
}

/// `z` for each segment, and `r` for each segment.
pub(crate) fn normalise<T: Precision>(x: &Array<T>, kind: Segments, epsilon: f64) -> (Array<T>, Vec<T>) {
    let length = kind.length;
    let mut out = x.clone();
    let (count, epsilon) = (T::from_f64(length as f64), T::from_f64(epsilon));
    let scales: Vec<T> = parallel::map(x.len() / length, together(length), |i| {
        let x = segment(x.values(), i, length);
        dispatch(
            #[inline(always)]
            || {
                let mean = kind.mean(sum(x));
                let mut squares = T::ZERO;
                x.iter().for_each(|&v| squares += (v - mean) * (v - mean));
                T::ONE / Real::sqrt(squares / count + epsilon)
            },
        )
    });
    segments(
        &mut out,
        length,
        #[inline(always)]
        |i, z| {
            let mean = kind.mean(sum(z));
            for v in z {
                *v = (*v - mean) * scales[i];
            }
        },
    );
    (out, scales)
}

/// `J t` with `J` at normalised values `z` and scales `r` (both repeated over the rows of `t`, `width` for each example).
pub(crate) fn normalise_tangent<T: Precision>(
    mut t: Array<T>,
    kind: Segments,
    z: &Array<T>,
    scales: &[T],
) -> Array<T> {
    let length = kind.length;
    let matching = Matching::new(&t, z, length);
    let count = T::from_f64(length as f64);
    segments(
        &mut t,
        length,
        #[inline(always)]
        |i, t| {
            let z = matching.of(z.values(), i);
            let (mean, along, r) = (kind.mean(sum(t)), dot(z, t) / count, scales[matching.index(i)]);
            for (t, &z) in t.iter_mut().zip(z) {
                *t = r * (*t - mean - z * along);
            }
        },
    );
    t
}

/// The gradient in `x` of `<c, J(x) t>`.
///
/// With `a = <c, z>`, `b = <z, t>`, `S = <c, J t>`: `-r S z / L + J[-(r / L)(c b + t a)]`, since `dr/dx = -r^2 z / L` and `dz/dx = J`.
pub(crate) fn normalise_second<T: Precision>(
    t: &Array<T>,
    c: &Array<T>,
    kind: Segments,
    z: &Array<T>,
    scales: &[T],
) -> Array<T> {
    let length = kind.length;
    let count = T::from_f64(length as f64);
    let matching = Matching::new(c, z, length);
    let mut inner = c.clone();
    let mut direct = c.clone();
    segments(
        &mut inner,
        length,
        #[inline(always)]
        |i, out| {
            let (z, t, r) =
                (matching.of(z.values(), i), segment(t.values(), i, length), scales[matching.index(i)]);
            let (a, b) = (dot(out, z), dot(z, t));
            for (o, &t) in out.iter_mut().zip(t) {
                *o = -(r / count) * (*o * b + t * a);
            }
        },
    );
    segments(
        &mut direct,
        length,
        #[inline(always)]
        |i, out| {
            let (z, t, r) =
                (matching.of(z.values(), i), segment(t.values(), i, length), scales[matching.index(i)]);
            let total = dot(out, t) - sum(out) * kind.mean(sum(t)) - dot(out, z) * dot(z, t) / count;
            for (o, &z) in out.iter_mut().zip(z) {
                *o = -r * r * total * z / count;
            }
        },
    );
    let mut out = normalise_tangent(inner, kind, z, scales);
    super::add_to(out.values_mut(), direct.values());
    out
}

/// Softmax of each segment of `length` values.
pub(crate) fn softmax<T: Precision>(x: &Array<T>, length: usize) -> Array<T> {
    let mut out = x.clone();
    segments(
        &mut out,
        length,
        #[inline(always)]
        |_, row| {
            let mut largest = row[0];
            for &v in row.iter() {
                largest = Real::max(largest, v);
            }
            let mut total = T::ZERO;
            for v in row.iter_mut() {
                *v = Real::exp(*v - largest);
                total += *v;
            }
            for v in row {
                *v /= total;
            }
        },
    );
    out
}

/// `J t` of softmax at its value `s` (repeated).
pub(crate) fn softmax_tangent<T: Precision>(mut t: Array<T>, length: usize, s: &Array<T>) -> Array<T> {
    let matching = Matching::new(&t, s, length);
    segments(
        &mut t,
        length,
        #[inline(always)]
        |i, t| {
            let s = matching.of(s.values(), i);
            let mean = dot(s, t);
            for (t, &s) in t.iter_mut().zip(s) {
                *t = s * (*t - mean);
            }
        },
    );
    t
}

/// The gradient in `x` of `<c, J(x) t>` for softmax: `J[c (t - <s, t>) - t <c, s>]`.
pub(crate) fn softmax_second<T: Precision>(
    t: &Array<T>,
    c: &Array<T>,
    length: usize,
    s: &Array<T>,
) -> Array<T> {
    let matching = Matching::new(c, s, length);
    let mut out = c.clone();
    segments(
        &mut out,
        length,
        #[inline(always)]
        |i, out| {
            let (s, t) = (matching.of(s.values(), i), segment(t.values(), i, length));
            let (mean, along) = (dot(s, t), dot(s, out));
            for (o, &t) in out.iter_mut().zip(t) {
                *o = *o * (t - mean) - t * along;
            }
        },
    );
    softmax_tangent(out, length, s)
}
