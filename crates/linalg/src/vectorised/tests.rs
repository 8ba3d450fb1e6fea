//! The stated bounds, against 30-digit references in f64 and against `libm`'s f64 over all bit patterns in f32.

use super::reference::{self, Wide};
use super::*;

type Slice<T> = fn(&[T], &mut [T]);
type Exact = fn(f64) -> f64;

/// Stated bounds: those of the module's table.
const BOUNDS_64: [(&str, f64); 4] = [("exp", 1.1), ("ln", 1.0), ("tanh", 3.0), ("erf", 2.5)];

/// Error of `actual` in units in the last place of the exact `value · 2^power`; the unit of subnormals is that of their range.
fn ulps(actual: f64, value: Wide, power: i32) -> f64 {
    // Compared at the scale of the value, which is exact, so that subnormal results lose nothing.
    let actual = reference::scale(actual, -power);
    let spacing =
        (value.high.abs().next_up() - value.high.abs()).max(reference::scale(f64::from_bits(1), -power));
    ((actual - value.high) - value.low).abs() / spacing
}

fn worst(inputs: &[f64], f: Slice<f64>, exact: impl Fn(f64) -> (Wide, i32)) -> (f64, f64) {
    let mut out = vec![0.0; inputs.len()];
    f(inputs, &mut out);
    let error = |(&x, &y): (&f64, &f64)| {
        let (value, power) = exact(x);
        (ulps(y, value, power), x)
    };
    inputs.iter().zip(&out).map(error).fold((0.0, 0.0), |a, b| if b.0 > a.0 || b.0.is_nan() { b } else { a })
}

/// From `low` to `high`; the step is no round number, and the ends are included.
fn grid(low: f64, high: f64, count: usize) -> impl Iterator<Item = f64> {
    let step = (high - low) / count as f64;
    (0..count).map(move |i| low + step * (i as f64 + 0.123_456_7)).chain([low, high])
}

/// Both signs of all magnitudes between two powers of two.
fn magnitudes(low: f64, high: f64, count: usize) -> impl Iterator<Item = f64> {
    grid(low, high, count).flat_map(|e| [e.exp2(), -e.exp2()])
}

#[test]
fn f64_functions_keep_their_bounds() {
    let check = |name: &str, inputs: Vec<f64>, f: Slice<f64>, exact: fn(f64) -> (Wide, i32)| {
        let (error, at) = worst(&inputs, f, exact);
        println!("{name}: {error:.3} ulp at {at:e}");
        let bound = BOUNDS_64.iter().find(|(key, _)| *key == name).unwrap().1;
        assert!(error <= bound, "{name}: {error} ulp at {at:e}");
    };
    let near_zero = || grid(-1.0, 1.0, 40_000).chain(magnitudes(-300.0, 0.0, 5_000));
    check("exp", grid(-745.13, 709.78, 80_000).chain(near_zero()).collect(), exp, |x| {
        reference::exp(x.into())
    });
    let positive = magnitudes(-1074.0, 1023.99, 40_000).filter(|x| *x > 0.0);
    let around_one = magnitudes(-53.0, -1.0, 10_000).map(|d| 1.0 + d);
    let inputs = positive.chain(grid(0.5, 2.0, 80_000)).chain(around_one).collect();
    check("ln", inputs, ln, |x| (reference::ln(x), 0));
    check("tanh", grid(-22.0, 22.0, 40_000).chain(near_zero()).collect(), tanh, |x| (reference::tanh(x), 0));
    let inputs = grid(-6.5, 6.5, 40_000).chain(grid(0.7, 0.8, 10_000)).chain(near_zero()).collect();
    check("erf", inputs, erf, |x| (reference::erf(x), 0));
}

#[test]
fn special_values_of_both_precisions() {
    let x =
        [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, -0.0, 5e-324, -5e-324, 3e-310, -1.0, 1e308, -1e308];
    let narrow = x.map(|x| x as f32).into_iter().chain([
        f32::from_bits(1),
        -f32::from_bits(1),
        3e-39,
        -3e-39,
        3e38,
        -3e38,
    ]);
    let narrow: Vec<f32> = narrow.collect();
    let functions: [(&str, Slice<f64>, Slice<f32>, Exact); 4] = [
        ("exp", exp, exp, libm::exp),
        ("ln", ln, ln, libm::log),
        ("tanh", tanh, tanh, libm::tanh),
        ("erf", erf, erf, libm::erf),
    ];
    for (name, wide, single, exact) in functions {
        let mut out = [0.0; 11];
        wide(&x, &mut out);
        for (&x, &y) in x.iter().zip(&out) {
            let expected = exact(x);
            assert_eq!(y.is_nan(), expected.is_nan(), "{name}({x:e}) = {y:e}");
            let close =
                y == expected || (y - expected).abs() <= 2.0 * (expected.abs().next_up() - expected.abs());
            assert!(close || y.is_nan(), "{name}({x:e}) = {y:e}, not {expected:e}");
            assert!(
                y.is_nan() || y.is_sign_negative() == expected.is_sign_negative(),
                "{name}({x:e}) = {y:e}"
            );
        }
        let mut out = vec![0.0; narrow.len()];
        single(&narrow, &mut out);
        for (&x, &y) in narrow.iter().zip(&out) {
            let expected = exact(f64::from(x)) as f32;
            assert_eq!(y.is_nan(), expected.is_nan(), "{name}({x:e}) = {y:e}");
            let close =
                y == expected || (y - expected).abs() <= 2.0 * (expected.abs().next_up() - expected.abs());
            assert!(close || y.is_nan(), "{name}({x:e}) = {y:e}, not {expected:e}");
            assert!(
                y.is_nan() || y.is_sign_negative() == expected.is_sign_negative(),
                "{name}({x:e}) = {y:e}"
            );
        }
    }
}

/// Worst error over every `stride`-th of all 2³² numbers; the reference, within 2⁻²⁹ of a unit of f32, counts as exact.
fn worst_single(stride: usize, f: Slice<f32>, exact: fn(f64) -> f64) -> (f64, f32) {
    let mut worst = (0.0, 0.0);
    let mut out = vec![0.0f32; 4096];
    let mut bits = 0usize;
    while bits <= u32::MAX as usize {
        let inputs: Vec<f32> = (0..4096)
            .map(|i| bits + i * stride)
            .take_while(|&b| b <= u32::MAX as usize)
            .map(|b| f32::from_bits(b as u32))
            .collect();
        f(&inputs, &mut out[..inputs.len()]);
        for (&x, &y) in inputs.iter().zip(&out) {
            let exact = exact(f64::from(x));
            let rounded = exact as f32;
            if rounded == y || (rounded.is_nan() && y.is_nan()) {
                continue;
            }
            let spacing =
                f64::from(rounded.abs().min(f32::MAX).next_up().min(f32::MAX) - rounded.abs().min(f32::MAX));
            let spacing = if spacing == 0.0 { f64::from(f32::MAX - f32::MAX.next_down()) } else { spacing };
            // Infinity stands for 2¹²⁸, the next number if the range went on.
            let finite = if y.is_infinite() { 2f64.powi(128).copysign(f64::from(y)) } else { f64::from(y) };
            let error = (finite - exact).abs() / spacing;
            if error > worst.0 || error.is_nan() {
                worst = (error, x);
            }
        }
        bits += 4096 * stride;
    }
    worst
}

#[test]
fn f32_functions_keep_their_bounds_over_all_bit_patterns() {
    let functions: [(&str, f64, Slice<f32>, Exact); 4] = [
        ("exp", 1.25, exp, libm::exp),
        ("ln", 1.0, ln, libm::log),
        ("tanh", 3.0, tanh, libm::tanh),
        ("erf", 3.0, erf, libm::erf),
    ];
    for (name, bound, f, exact) in functions {
        let (error, at) = worst_single(977, f, exact);
        println!("{name}: {error:.3} ulp at {at:e}");
        assert!(error <= bound, "{name}: {error} ulp at {at:e}");
    }
}

/// The functions over a slice, compiled for whatever instruction set it is inlined into.
struct Every<'a, T>(&'a [T], &'a mut Vec<T>);

impl<T: Real> pulp::WithSimd for Every<'_, T> {
    type Output = ();
    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _: S) {
        let (n, out) = (self.0.len(), self.1);
        for i in 0..n {
            out[i] = self.0[i].exp();
        }
        for i in 0..n {
            out[n + i] = self.0[i].ln();
        }
        for i in 0..n {
            out[2 * n + i] = self.0[i].tanh();
        }
        for i in 0..n {
            out[3 * n + i] = self.0[i].erf();
        }
    }
}

fn same_on_every_instruction_set<T: Real>(x: &[T]) {
    use pulp::Simd;
    let mut portable = vec![T::ZERO; 4 * x.len()];
    Simd::vectorize(pulp::Scalar::new(), Every(x, &mut portable));
    let same = |other: &[T], name: &str| {
        for (i, (&a, &b)) in portable.iter().zip(other).enumerate() {
            // Bits of what is no NaN; the signs of zeros count.
            let (a, b) = (a.to_f64(), b.to_f64());
            assert!(
                a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan()),
                "{name}, output {i}: {a:e} and {b:e}"
            );
        }
    };
    let mut out = vec![T::ZERO; x.len()];
    for (i, f) in [exp, ln, tanh, erf].into_iter().enumerate() {
        f(x, &mut out);
        for (&a, &b) in portable[i * x.len()..].iter().zip(&out) {
            assert!(
                a == b || (a.to_f64().is_nan() && b.to_f64().is_nan()),
                "dispatched function {i}: {a} and {b}"
            );
        }
    }
    #[cfg(target_arch = "x86_64")]
    {
        let mut out = vec![T::ZERO; 4 * x.len()];
        match pulp::x86::V3::try_new() {
            Some(simd) => {
                Simd::vectorize(simd, Every(x, &mut out));
                same(&out, "AVX2");
            }
            None => posterior_testing::skip("no AVX2 here"),
        }
        match pulp::x86::V4::try_new() {
            Some(simd) => {
                Simd::vectorize(simd, Every(x, &mut out));
                same(&out, "AVX-512");
            }
            None => posterior_testing::skip("no AVX-512 here"),
        }
    }
}

#[test]
fn results_do_not_depend_on_the_instruction_set_or_the_position() {
    // An odd number of elements, so that vector bodies and scalar tails both run.
    let special = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, -0.0, 5e-324, 1e308];
    let x: Vec<f64> =
        grid(-50.0, 50.0, 10_000).chain(magnitudes(-1074.0, 10.0, 5_000)).chain(special).collect();
    assert_eq!(x.len() % 2, 1);
    same_on_every_instruction_set(&x);
    same_on_every_instruction_set(&x.iter().map(|&x| x as f32).collect::<Vec<_>>());
}

/// Integers, whose products and sums f64 holds exactly: any order of additions must give the same. Lengths on both sides of whole vectors.
#[test]
fn inner_products_take_every_entry_once() {
    for length in 0..100_usize {
        let a: Vec<f64> = (0..length).map(|i| (i * i % 31) as f64 - 15.0).collect();
        let b: Vec<f64> = (0..length + 3).map(|i| (i * 7 % 23) as f64 - 11.0).collect();
        let exact: f64 = a.iter().zip(&b).map(|(a, b)| a * b).sum();
        let inside = dispatch(
            #[inline(always)]
            || dot(&a, &b),
        );
        assert_eq!((dot(&a, &b), inside), (exact, exact), "{length} entries");
    }
}
