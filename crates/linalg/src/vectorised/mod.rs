//! **Elementwise functions** on slices, at the width of the machine.
//!
//! Each function is a branch-free scalar formula in [`scalar`], written so that the compiler turns a loop over it into
//! vector code. [`dispatch`] runs a closure compiled for the best instruction set that the processor has, found at
//! run time: AVX-512, AVX2 with FMA, or the portable baseline. Fused loops in other crates (a kernel's tile, say) call the
//! scalar forms inside one `dispatch` of their own.
//!
//! Largest errors, in units in the last place of the exact value. Tests hold them against 30-digit references (f64) and
//! against f64 over every 977th of all 2³² numbers (f32); the largest seen on denser grids (f64: millions of points;
//! f32: every seventh number) stands in brackets.
//!
//! | function | f64 | f32 | outside the finite range |
//! |---|---|---|---|
//! | `exp` | 1.1 (1.01) | 1.1 (1.06) | NaN -> NaN, above the range -> ∞, below -> 0 through the subnormals |
//! | `ln` | 1 (0.84) | 1 (0.83) | ±0 -> -∞, negative or NaN -> NaN, ∞ -> ∞; subnormals as any other |
//! | `tanh` | 3 (2.55) | 2.5 (2.42) | NaN -> NaN, ±∞ -> ±1, -0 -> -0; subnormals exact |
//! | `erf` | 2.5 (2.32) | 1.5 (1.27) | NaN -> NaN, ±∞ -> ±1, -0 -> -0; subnormals to one unit |
//!
//! Every step is one rounded operation or one fused multiply-add, so results are the same bit for bit on every instruction set and
//! wherever in a slice an element stands. The price is paid by processors without a fused multiply-add (x86 before AVX2; every
//! aarch64 has it): there it is computed in software, and these functions are slower than the standard library's.
//!
//! Measured on one Zen 5 core with AVX-512, 4,096 elements, in nanoseconds an element (gigabytes read and written a second, and
//! the standard library's time). The last column is the portable path on the same core, where the C library's fused
//! multiply-add is a call to one instruction; a processor that lacks the instruction takes longer still.
//! `cargo bench -p posterior-linalg --bench vectorised` repeats it.
//!
//! | function | f64 | f32 | portable f64 |
//! |---|---|---|---|
//! | `exp` | 0.53 (30 GB/s; std 2.8) | 0.19 (43 GB/s; std 1.5) | 32 |
//! | `ln` | 0.80 (20 GB/s; std 2.1) | 0.34 (24 GB/s; std 1.9) | 16 |
//! | `tanh` | 0.56 (29 GB/s; std 7.5) | 0.18 (45 GB/s; std 8.3) | 34 |
//! | `erf` | 1.3 (12 GB/s) | 0.31 (25 GB/s) | 91 |

#[cfg(test)]
mod reference;
pub mod scalar;
#[cfg(test)]
mod tests;

use crate::Real;

/// Runs `f` compiled for the widest vectors that this processor has.
///
/// Only what is inlined into the closure is compiled so: mark the closure itself and the functions that it calls
/// `#[inline(always)]`. Closures handed on to iterator methods inside count as calls; plain loops over slices need nothing.
/// The choice costs about two nanoseconds, so one dispatch for each column or tile is enough and one for each element is not.
///
/// ```
/// use posterior_linalg::Real;
/// use posterior_linalg::vectorised::dispatch;
/// let mut squared_distances = vec![0.0, 1.0, 4.0];
/// dispatch(
///     #[inline(always)]
///     || {
///         for value in &mut squared_distances {
///             *value = Real::exp(-0.5 * *value);
///         }
///     },
/// );
/// assert_eq!(squared_distances[0], 1.0);
/// ```
#[inline]
pub fn dispatch<R>(f: impl FnOnce() -> R) -> R {
    struct Work<F>(F);
    impl<R, F: FnOnce() -> R> pulp::WithSimd for Work<F> {
        type Output = R;
        #[inline(always)]
        fn with_simd<S: pulp::Simd>(self, _: S) -> R {
            (self.0)()
        }
    }
    pulp::Arch::new().dispatch(Work(f))
}

/// `out[i] = f(x[i])` with `f` inlined into vector code.
#[inline(always)]
fn map<T: Real>(x: &[T], out: &mut [T], f: impl Fn(T) -> T) {
    assert_eq!(x.len(), out.len(), "input and output have the same length");
    dispatch(
        #[inline(always)]
        || {
            for (o, &v) in out.iter_mut().zip(x) {
                *o = f(v);
            }
        },
    );
}

/// `y += a x` in one fused operation an element: vector code inside [`dispatch`]; outside, each is a call on most processors.
///
/// # Panics
/// When `x` is shorter than `y`.
#[inline(always)]
pub fn add_scaled<T: Real>(a: T, x: &[T], y: &mut [T]) {
    let x = &x[..y.len()];
    for i in 0..y.len() {
        y[i] = x[i].mul_add(a, y[i]);
    }
}

/// `Σ_i a_i b_i` in 32 interleaved sums: vector code inside [`dispatch`]. A sum in order waits four cycles for each of its terms.
///
/// # Panics
/// When `b` is shorter than `a`.
#[inline(always)]
pub fn dot<T: Real>(a: &[T], b: &[T]) -> T {
    const LANES: usize = 32;
    let b = &b[..a.len()];
    let mut sums = [T::ZERO; LANES];
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<LANES>(), b.as_chunks::<LANES>());
    for (a, b) in a.iter().zip(b) {
        for lane in 0..LANES {
            sums[lane] = a[lane].mul_add(b[lane], sums[lane]);
        }
    }
    let mut total = T::ZERO;
    for (&a, &b) in a_rest.iter().zip(b_rest) {
        total += a * b;
    }
    for sum in sums {
        total += sum;
    }
    total
}

/// `out = exp(x)`: one pass over memory, about 25 operations an element.
///
/// # Panics
/// As all functions here, when the lengths of the slices differ.
pub fn exp<T: Real>(x: &[T], out: &mut [T]) {
    map(x, out, T::exp);
}

/// `out = ln(x)`.
///
/// # Panics
/// When the lengths of the slices differ.
pub fn ln<T: Real>(x: &[T], out: &mut [T]) {
    map(x, out, T::ln);
}

/// `out = tanh(x)`.
///
/// # Panics
/// When the lengths of the slices differ.
pub fn tanh<T: Real>(x: &[T], out: &mut [T]) {
    map(x, out, T::tanh);
}

/// `out = erf(x)`.
///
/// # Panics
/// When the lengths of the slices differ.
pub fn erf<T: Real>(x: &[T], out: &mut [T]) {
    map(x, out, T::erf);
}
