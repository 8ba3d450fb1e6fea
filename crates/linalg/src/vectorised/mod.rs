//! **Elementwise functions** on slices, at the width of the machine.
//!
//! Each function is a branch-free scalar formula in [`scalar`], written so that the compiler turns a loop over it into
//! vector code. [`dispatch`] runs a closure compiled for the best instruction set that the processor has, found at
//! run time: AVX-512, AVX2 with FMA, or the portable baseline. Fused loops in other crates (a kernel's tile, say) call the
//! scalar forms inside one `dispatch` of their own.
//!
//! Largest errors, in units in the last place, measured on dense grids against `libm` (itself within 1):
//!
//! | function | f64 | f32 | outside the finite range |
//! |---|---|---|---|
//! | `exp` | 2 | 1.25 | NaN -> NaN, above the range -> ∞, below -> 0 through the subnormals |
//! | `ln` | 2 | 1 | 0 -> -∞, negative or NaN -> NaN, subnormals exact |
//! | `tanh` | 4 | 1 | NaN -> NaN, ±∞ -> ±1, -0 -> -0 |
//! | `erf` | 3 | 1 | NaN -> NaN, ±∞ -> ±1, -0 -> -0 |
//!
//! `ln`, `tanh` and `erf` of f32 are computed in f64 and rounded, `exp` natively, because kernels live on it.

pub mod scalar;

use crate::Real;

/// Runs `f` compiled for the widest vectors that this processor has.
///
/// Only what is inlined into the closure is compiled so: mark the functions that it calls `#[inline(always)]`.
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

/// `out = exp(x)`. Bound: one pass over memory, about 25 operations an element.
pub fn exp<T: Real>(x: &[T], out: &mut [T]) {
    map(x, out, T::exp);
}

/// `out = ln(x)`.
pub fn ln<T: Real>(x: &[T], out: &mut [T]) {
    map(x, out, T::ln);
}

/// `out = tanh(x)`.
pub fn tanh<T: Real>(x: &[T], out: &mut [T]) {
    map(x, out, T::tanh);
}

/// `out = erf(x)`.
pub fn erf<T: Real>(x: &[T], out: &mut [T]) {
    map(x, out, T::erf);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Distance in units in the last place of the correctly rounded `expected`.
    fn ulps64(actual: f64, expected: f64) -> f64 {
        if actual == expected || (actual.is_nan() && expected.is_nan()) {
            return 0.0;
        }
        if !actual.is_finite() || !expected.is_finite() {
            return f64::INFINITY;
        }
        let spacing = expected.abs().next_up() - expected.abs();
        (actual - expected).abs() / spacing
    }

    fn worst64(inputs: &[f64], f: fn(&[f64], &mut [f64]), reference: fn(f64) -> f64) -> (f64, f64) {
        let mut out = vec![0.0; inputs.len()];
        f(inputs, &mut out);
        let error = |(&x, &y): (&f64, &f64)| (ulps64(y, reference(x)), x);
        inputs.iter().zip(&out).map(error).fold((0.0, 0.0), |a, b| if b.0 > a.0 { b } else { a })
    }

    fn grid64(low: f64, high: f64, count: usize) -> Vec<f64> {
        // An irrational step avoids special arguments; the ends are included.
        let step = (high - low) / count as f64;
        (0..=count).map(|i| (low + step * (i as f64 + 0.1234567)).min(high)).chain([low, high]).collect()
    }

    #[test]
    fn f64_functions_keep_their_bounds() {
        let check = |name: &str, bound: f64, inputs: Vec<f64>, f: fn(&[f64], &mut [f64]), reference: fn(f64) -> f64| {
            let (error, at) = worst64(&inputs, f, reference);
            assert!(error <= bound, "{name}: {error} ulp at {at:e}");
        };
        check("exp", 2.0, grid64(-746.0, 710.0, 400_000), exp, libm::exp);
        check("exp near 0", 2.0, grid64(-1.0, 1.0, 200_000), exp, libm::exp);
        let magnitudes: Vec<f64> = grid64(-740.0, 709.0, 300_000).into_iter().map(libm::exp).collect();
        check("ln", 2.0, magnitudes.clone(), ln, libm::log);
        check("ln near 1", 2.0, grid64(0.5, 2.0, 300_000), ln, libm::log);
        check("tanh", 4.0, grid64(-25.0, 25.0, 300_000), tanh, libm::tanh);
        check("tanh near 0", 4.0, grid64(-1.0, 1.0, 300_000), tanh, libm::tanh);
        check("tanh of small", 4.0, magnitudes.iter().copied().filter(|x| *x < 1.0).collect(), tanh, libm::tanh);
        check("erf", 3.0, grid64(-7.0, 7.0, 300_000), erf, libm::erf);
        let normal = magnitudes.iter().copied().filter(|x| (1e-300..1.0).contains(x)).collect();
        check("erf of small", 3.0, normal, erf, libm::erf);
    }

    #[test]
    fn special_values() {
        let x = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, -0.0, 5e-324, -1.0, 1e308, -1e308];
        for (f, reference) in [
            (exp as fn(&[f64], &mut [f64]), libm::exp as fn(f64) -> f64),
            (ln, libm::log),
            (tanh, libm::tanh),
            (erf, libm::erf),
        ] {
            let mut out = [0.0; 9];
            f(&x, &mut out);
            for (&input, &output) in x.iter().zip(&out) {
                let expected = reference(input);
                assert!(ulps64(output, expected) <= 2.0, "{input}: {output} against {expected}");
                assert_eq!(output.is_sign_negative() || output.is_nan(), expected.is_sign_negative() || expected.is_nan());
            }
        }
    }

    #[test]
    fn f32_functions_keep_their_bounds_over_all_bit_patterns() {
        let inputs: Vec<f32> = (0..u32::MAX).step_by(1_009).map(f32::from_bits).collect();
        for (name, bound, f, reference) in [
            ("exp", 1.25, exp as fn(&[f32], &mut [f32]), libm::exp as fn(f64) -> f64),
            ("ln", 1.0, ln, libm::log),
            ("tanh", 1.0, tanh, libm::tanh),
            ("erf", 1.0, erf, libm::erf),
        ] {
            let mut out = vec![0.0f32; inputs.len()];
            f(&inputs, &mut out);
            for (&x, &y) in inputs.iter().zip(&out) {
                let exact = reference(f64::from(x));
                let expected = exact as f32;
                if expected == y || (expected.is_nan() && y.is_nan()) {
                    continue;
                }
                let spacing = f64::from(expected.abs().next_up() - expected.abs());
                let error = (f64::from(y) - exact).abs() / spacing;
                assert!(error <= bound, "{name}({x:e}) = {y:e}, expected {expected:e}: {error} ulp");
            }
        }
    }
}
