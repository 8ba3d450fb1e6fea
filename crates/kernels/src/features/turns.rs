//! Sine and cosine of angles in turns, as vector code.

use posterior_linalg::Real;

/// Coefficients of `sin(2π s) = s Σ_k c_k s^(2k)`: its Taylor series, whose first missing term is below 2e-18 for |s| <= 1/4 with 11
/// of them, and below 7e-10 with 7.
const SINE: [f64; 11] = {
    let mut coefficients = [0.0; 11];
    let mut term = std::f64::consts::TAU;
    let mut k = 0;
    while k < 11 {
        coefficients[k] = term;
        k += 1;
        term *= -std::f64::consts::TAU * std::f64::consts::TAU / ((2 * k) * (2 * k + 1)) as f64;
    }
    coefficients
};

/// `(sin 2πt, cos 2πt)`. Whole turns are taken off exactly, so the error is a few units of 1, for the t that is given; beyond
/// 2²² (f32) or 2⁵¹ (f64) turns there is nothing between whole ones, and the result is that for 0. NaN and infinities give NaN.
#[inline(always)]
pub(super) fn sin_cos<T: Real>(t: T) -> (T, T) {
    // Adding and subtracting it rounds to whole numbers.
    let magic = T::from_f64(if size_of::<T>() == 4 { 12_582_912.0 } else { 6_755_399_441_055_744.0 });
    let (half, quarter) = (T::from_f64(0.5), T::from_f64(0.25));
    let turn = t - ((t + magic) - magic);
    let turn = if turn.abs() > half { T::ZERO } else { turn };
    let size = turn.abs();
    // sin(2π s) = sin(2π (½ - s))
    let folded = if size > quarter { half - size } else { size };
    let sine = odd_sine(if turn < T::ZERO { -folded } else { folded });
    (sine, odd_sine(quarter - size))
}

#[inline(always)]
fn odd_sine<T: Real>(s: T) -> T {
    let square = s * s;
    let terms = if size_of::<T>() == 4 { 7 } else { 11 };
    let mut sum = T::from_f64(SINE[terms - 1]);
    let mut k = terms - 1;
    while k > 0 {
        k -= 1;
        sum = sum.mul_add(square, T::from_f64(SINE[k]));
    }
    sum * s
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sines_and_cosines_agree_with_the_standard_library() {
        for i in -4000..=4000 {
            let t = f64::from(i) * 0.00037 + f64::from(i % 7) * 3.0;
            let angle = std::f64::consts::TAU * (t - t.round());
            let (s, c) = sin_cos(t);
            // The angle of the reference is off by one rounding of up to π.
            assert!((s - angle.sin()).abs() < 1e-15 && (c - angle.cos()).abs() < 1e-15, "{t}");
            let t = t as f32;
            let (s, c) = sin_cos(t);
            let angle = std::f64::consts::TAU * f64::from(t - t.round());
            assert!(
                (f64::from(s) - angle.sin()).abs() < 3e-7 && (f64::from(c) - angle.cos()).abs() < 3e-7,
                "{t}"
            );
        }
    }

    #[test]
    fn enormous_and_missing_angles() {
        assert_eq!(sin_cos(1e300), (0.0, 1.0));
        assert_eq!(sin_cos(3e9f32).0, 0.0);
        assert!(sin_cos(f64::NAN).0.is_nan() && sin_cos(f64::INFINITY).1.is_nan());
    }
}
