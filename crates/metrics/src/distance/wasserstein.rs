//! The 2-Wasserstein distance between Gaussians: of one mean in several dimensions, of any mean and deviation on the line.

use crate::MetricsError;
use faer::{Mat, MatRef};
use posterior_linalg::dense::{Eigen, eigen, eigenvalues};

/// Eigenvalues may be negative by this much of the largest, and entries may differ from their mirror image by it.
const TOLERANCE: f64 = 1e-8;

/// The square of the 2-Wasserstein distance between Gaussians of equal mean with the given covariances,
/// `tr(A + B) - 2 tr (A^½ B A^½)^½` (Dowson and Landau 1982, eq. 16). A zero covariance (a point prediction) is
/// allowed. Two eigendecompositions: cost `O(d³)`. Rounding leaves an absolute error of some `1e-8 · tr(A + B)` where the
/// covariances are nearly singular, `1e-15` elsewhere.
///
/// # Errors
/// [`MetricsError::Covariance`] for a matrix that is not square, finite, symmetric and positive semi-definite; `Unequal` for
/// different sizes.
pub fn squared_wasserstein2_gaussians(
    first: MatRef<'_, f64>,
    second: MatRef<'_, f64>,
) -> Result<f64, MetricsError> {
    if first.nrows() != second.nrows() {
        return Err(MetricsError::Unequal {
            left_what: "rows of the first covariance",
            left: first.nrows(),
            right_what: "rows of the second",
            right: second.nrows(),
        });
    }
    let root = square_root("first", first)?;
    square_root("second", second)?;
    let product = &root * second * &root;
    let eigenvalues = eigenvalues(product.as_ref())
        .map_err(|_| MetricsError::Covariance { which: "product of the", problem: NO_EIGENVALUES.into() })?;
    let cross: f64 = eigenvalues.iter().map(|e| e.max(0.0).sqrt()).sum();
    let trace = |a: MatRef<'_, f64>| (0..a.nrows()).map(|i| a[(i, i)]).sum::<f64>();
    Ok((trace(first) + trace(second) - 2.0 * cross).max(0.0))
}

/// The 2-Wasserstein distance between two Gaussians on the line, each given by mean and standard deviation (0 for a point):
/// `√((μ₁ - μ₂)² + (σ₁ - σ₂)²)`. For comparing the marginals of two posteriors point by point.
///
/// ```
/// assert_eq!(posterior_metrics::wasserstein2_marginals((1.0, 0.5), (4.0, 4.5)), 5.0);
/// ```
pub fn wasserstein2_marginals(first: (f64, f64), second: (f64, f64)) -> f64 {
    (first.0 - second.0).hypot(first.1 - second.1)
}

const NO_EIGENVALUES: &str = "its eigenvalues did not converge";

/// The symmetric square root of a covariance, after checking it.
fn square_root(which: &'static str, a: MatRef<'_, f64>) -> Result<Mat<f64>, MetricsError> {
    let fail = |problem: String| MetricsError::Covariance { which, problem };
    let n = a.nrows();
    if n != a.ncols() || n == 0 {
        return Err(fail(format!("it is {n} × {}, not square", a.ncols())));
    }
    let mut scale = 0.0f64;
    for j in 0..n {
        for i in 0..n {
            if !a[(i, j)].is_finite() {
                return Err(fail(format!("entry ({i}, {j}) is {}", a[(i, j)])));
            }
            scale = scale.max(a[(i, j)].abs());
        }
    }
    for j in 0..n {
        for i in 0..j {
            if (a[(i, j)] - a[(j, i)]).abs() > TOLERANCE * scale {
                return Err(fail(format!("entries ({i}, {j}) and ({j}, {i}) differ: it is not symmetric")));
            }
        }
    }
    let Eigen { values, vectors } = eigen(a).map_err(|_| fail(NO_EIGENVALUES.into()))?;
    // Eigenvalues come in ascending order.
    let (least, most) = (values[0], values[n - 1]);
    if least < -TOLERANCE * most.abs().max(least.abs()) {
        return Err(fail(format!("it has the negative eigenvalue {least:e}")));
    }
    let scaled = Mat::from_fn(n, n, |i, k| vectors[(i, k)] * values[k].max(0.0).sqrt());
    Ok(scaled * vectors.transpose())
}

#[cfg(test)]
mod tests {
    use super::*;
    use posterior_linalg::random::Streams;
    use rand_distr::{Distribution, StandardNormal};

    fn random(n: usize, columns: usize, name: &str) -> Mat<f64> {
        let mut rng = Streams::new(3).stream(name);
        Mat::from_fn(n, columns, |_, _| StandardNormal.sample(&mut rng))
    }

    /// The distance on the line is that of the quantile functions in L2: `∫ (F⁻¹(p) - G⁻¹(p))² dp`, here by the midpoint rule.
    #[test]
    fn marginals_are_compared_by_their_quantiles() {
        use statrs::distribution::{ContinuousCDF, Normal};
        let (a, b) = ((0.3, 1.2), (-0.5, 0.4));
        let (first, second) = (Normal::new(a.0, a.1).unwrap(), Normal::new(b.0, b.1).unwrap());
        let count = 200_000;
        let square: f64 = (0..count)
            .map(|i| {
                let p = (i as f64 + 0.5) / count as f64;
                (first.inverse_cdf(p) - second.inverse_cdf(p)).powi(2) / count as f64
            })
            .sum();
        // Tails beyond the last midpoint carry about 1e-4.
        assert!((square.sqrt() - wasserstein2_marginals(a, b)).abs() < 1e-4);
    }

    #[test]
    fn commuting_covariances_have_a_closed_form() {
        let diagonal = |d: &[f64]| Mat::from_fn(d.len(), d.len(), |i, j| if i == j { d[i] } else { 0.0 });
        let (a, b) = (diagonal(&[4.0, 9.0, 0.25]), diagonal(&[1.0, 16.0, 0.0]));
        // Σ (√a - √b)² = 1 + 1 + ¼.
        let w = squared_wasserstein2_gaussians(a.as_ref(), b.as_ref()).unwrap();
        assert!((w - 2.25).abs() < 1e-13, "{w}");
        // The same in turned coordinates.
        let q = random(3, 3, "turn").qr().compute_Q();
        let (a, b) = (&q * a * q.transpose(), &q * b * q.transpose());
        let w = squared_wasserstein2_gaussians(a.as_ref(), b.as_ref()).unwrap();
        assert!((w - 2.25).abs() < 1e-6, "{w}");
        // Against a point: the trace.
        let w = squared_wasserstein2_gaussians(a.as_ref(), Mat::zeros(3, 3).as_ref()).unwrap();
        assert!((w - 13.25).abs() < 1e-12, "{w}");
    }

    #[test]
    fn two_by_two_has_a_closed_form() {
        // tr √M = √(tr M + 2 √det M) for 2 × 2, and A^½ B A^½ has the trace and determinant of A B.
        for k in 0..20 {
            let name = format!("pair {k}");
            let (f, g) = (random(2, 3, &name), random(2, 3, &format!("{name} b")));
            let (a, b) = (&f * f.transpose(), &g * g.transpose());
            let product = &a * &b;
            let determinant = product[(0, 0)] * product[(1, 1)] - product[(0, 1)] * product[(1, 0)];
            let cross = (product[(0, 0)] + product[(1, 1)] + 2.0 * determinant.sqrt()).sqrt();
            let expected = a[(0, 0)] + a[(1, 1)] + b[(0, 0)] + b[(1, 1)] - 2.0 * cross;
            let found = squared_wasserstein2_gaussians(a.as_ref(), b.as_ref()).unwrap();
            assert!((found - expected).abs() < 1e-10, "{found} {expected}");
        }
    }

    #[test]
    fn it_is_symmetric_vanishes_on_equals_and_is_the_least_transport() {
        let (f, g) = (random(6, 8, "f"), random(6, 4, "g"));
        let (a, b) = (&f * f.transpose(), &g * g.transpose());
        let ab = squared_wasserstein2_gaussians(a.as_ref(), b.as_ref()).unwrap();
        let ba = squared_wasserstein2_gaussians(b.as_ref(), a.as_ref()).unwrap();
        let scale = (0..6).map(|i| a[(i, i)] + b[(i, i)]).sum::<f64>();
        assert!((ab - ba).abs() < 1e-6 * scale && ab > 0.0);
        assert!(squared_wasserstein2_gaussians(a.as_ref(), a.as_ref()).unwrap() < 1e-12 * scale);
        // Any coupling costs at least as much: samples x = F e, y = G e with shared e cost ‖F - G‖².
        let g = Mat::from_fn(6, 8, |i, j| if j < 4 { g[(i, j)] } else { 0.0 });
        assert!(ab <= (&f - &g).squared_norm_l2());
    }

    #[test]
    fn bad_matrices_are_refused_with_a_reason() {
        let good = Mat::<f64>::identity(2, 2);
        let reason = |bad: Mat<f64>| {
            squared_wasserstein2_gaussians(good.as_ref(), bad.as_ref()).unwrap_err().to_string()
        };
        assert!(
            reason(Mat::from_fn(2, 2, |i, j| if i + j == 0 { f64::NAN } else { 0.0 }))
                .contains("(0, 0) is NaN")
        );
        assert!(
            reason(Mat::from_fn(2, 2, |i, j| if i == j { 1.0 } else { i as f64 })).contains("not symmetric")
        );
        assert!(
            reason(Mat::from_fn(2, 2, |_, _| 1.0) * 1.0 - Mat::<f64>::identity(2, 2))
                .contains("negative eigenvalue")
        );
        assert!(reason(Mat::zeros(2, 3)).contains("2 × 3"));
        assert!(reason(Mat::zeros(3, 3)).contains("equally many"));
        let empty = Mat::<f64>::zeros(0, 0);
        assert!(squared_wasserstein2_gaussians(empty.as_ref(), empty.as_ref()).is_err());
    }
}
