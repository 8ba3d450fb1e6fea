//! Finite differences, for testing gradients against something independent.

/// The gradient of `f` at `theta` by central differences with one step of Richardson extrapolation: error `O(h⁴)` plus rounding.
pub fn gradient(mut f: impl FnMut(&[f64]) -> f64, theta: &[f64]) -> Vec<f64> {
    let mut point = theta.to_vec();
    (0..theta.len())
        .map(|i| {
            let h = 1e-3 * theta[i].abs().max(0.1);
            let mut central = |h: f64| {
                point[i] = theta[i] + h;
                let up = f(&point);
                point[i] = theta[i] - h;
                let down = f(&point);
                point[i] = theta[i];
                (up - down) / (2.0 * h)
            };
            (4.0 * central(0.5 * h) - central(h)) / 3.0
        })
        .collect()
}

/// Asserts that two vectors agree to `relative` of the larger magnitude plus `absolute`.
///
/// # Panics
/// At the first entry that differs more, naming it.
#[track_caller]
pub fn assert_close(analytic: &[f64], numeric: &[f64], relative: f64, absolute: f64) {
    assert_eq!(analytic.len(), numeric.len(), "vectors of different lengths");
    for (i, (a, b)) in analytic.iter().zip(numeric).enumerate() {
        let tolerance = relative * a.abs().max(b.abs()) + absolute;
        assert!((a - b).abs() <= tolerance, "entry {i}: {a} against {b}, tolerance {tolerance:e}");
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_known_gradient() {
        let f = |t: &[f64]| t[0].sin() * t[1].exp();
        let numeric = super::gradient(f, &[0.7, -0.2]);
        let exact = [0.7f64.cos() * (-0.2f64).exp(), 0.7f64.sin() * (-0.2f64).exp()];
        super::assert_close(&exact, &numeric, 1e-10, 1e-11);
    }

    #[test]
    #[should_panic(expected = "entry 1")]
    fn a_wrong_gradient_is_named() {
        super::assert_close(&[1.0, 2.0], &[1.0, 2.1], 1e-3, 0.0);
    }
}
