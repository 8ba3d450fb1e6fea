//! Places on a line of pixels, and the innermost loops.

use posterior_linalg::Real;

/// Empty pixels before and after each padded line: rays are looked at from -1 to the number of pixels, and rounding may move them by one.
pub(super) const PAD: usize = 2;

/// `u = j + t` with t in [0, 1].
///
/// The sum with a large number rounds to the nearest integer in its own last bits: no conversion that the processor has for single numbers only. Where u is an
/// integer n, the answer is n and 0, or n - 1 and 1, which means the same place.
#[inline(always)]
pub(crate) fn split(u: f64) -> (i32, f64) {
    // 1.5 · 2^52.
    const LARGE: f64 = 6_755_399_441_055_744.0;
    let shifted = (u - 0.5) + LARGE;
    (shifted.to_bits() as i32, u - (shifted - LARGE))
}

/// `sums[q] += line(starts[q] + slopes[q] i)`, the line being linear between its pixels; `line` is padded.
///
/// For [`posterior_linalg::vectorised::dispatch`]. Reads that may miss are reads of nothing, so that the loop has no way out and becomes vector code.
#[inline(always)]
pub(super) fn gather<T: Real>(line: &[T], starts: &[f64], slopes: &[f64], i: f64, sums: &mut [T]) {
    let (starts, slopes) = (&starts[..sums.len()], &slopes[..sums.len()]);
    for q in 0..sums.len() {
        let (j, t) = split(starts[q] + slopes[q] * i);
        let at = j.wrapping_add(PAD as i32) as u32 as usize;
        let left = if at < line.len() { line[at] } else { T::ZERO };
        let right = if at + 1 < line.len() { line[at + 1] } else { T::ZERO };
        let t = T::from_f64(t);
        sums[q] = left.mul_add(T::ONE - t, right.mul_add(t, sums[q]));
    }
}

/// The transpose of [`gather`] in the line that `lefts` and `rights` add up to: `line(starts[q] + slopes[q] i) += values[q]`.
///
/// Two lines, because the right pixel of a ray is often the left one of the next, which would wait for it.
#[inline(always)]
pub(super) fn scatter<T: Real>(
    [lefts, rights]: [&mut [T]; 2],
    starts: &[f64],
    slopes: &[f64],
    i: f64,
    values: &[T],
) {
    let (starts, slopes) = (&starts[..values.len()], &slopes[..values.len()]);
    for q in 0..values.len() {
        let (j, t) = split(starts[q] + slopes[q] * i);
        let at = j.wrapping_add(PAD as i32) as u32 as usize;
        let t = T::from_f64(t);
        if let (Some(left), Some(right)) = (lefts.get_mut(at), rights.get_mut(at + 1)) {
            *left = values[q].mul_add(T::ONE - t, *left);
            *right = values[q].mul_add(t, *right);
        }
    }
}

/// What [`scatter`] does for rays `step` apart, `u_q = start + step q`, seen from the pixels: pixel j of `line` (not padded) takes `Σ_q values[q] max(0, 1 - |u_q - j|)`. At most `NEAR` rays are within a pixel of
/// any, `NEAR >= 2 / step`. Pixels do not wait for one another, so that the loop becomes vector code.
#[inline(always)]
pub(super) fn collect<T: Real, const NEAR: usize>(line: &mut [T], start: f64, step: f64, values: &[T]) {
    let (inverse, width) = (1.0 / step, T::from_f64(step));
    let first = (-1.0 - start) * inverse;
    for j in 0..line.len() {
        // The first ray after `place` is the first with u > j - 1.
        let (before, t) = split(first + j as f64 * inverse);
        let past = T::from_f64(1.0 - t);
        let mut sum = line[j];
        for k in 0..NEAR {
            let at = before.wrapping_add(k as i32 + 1) as u32 as usize;
            let value = if at < values.len() { values[at] } else { T::ZERO };
            let away = (past + T::from_f64(k as f64)).mul_add(width, -T::ONE);
            sum = value.mul_add((T::ONE - away.abs()).max(T::ZERO), sum);
        }
        line[j] = sum;
    }
}
