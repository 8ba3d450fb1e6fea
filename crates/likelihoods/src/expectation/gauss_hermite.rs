//! **Gauss-Hermite quadrature**: `E[g(f)]` under a Gaussian as a weighted sum over nodes, exact for polynomials of degree `2n - 1`.

use posterior_linalg::dense::{Eigen, eigen};
use std::sync::OnceLock;

/// Nodes and weights for expectations under the standard normal distribution.
#[derive(Clone, Debug, PartialEq)]
pub struct GaussHermite {
    nodes: Vec<f64>,
    weights: Vec<f64>,
}

impl GaussHermite {
    /// The rule with `count` nodes (Golub and Welsch 1969): nodes are the eigenvalues of the Jacobi matrix of the Hermite polynomials
    /// (off-diagonal `√k`), weights the squared first entries of its eigenvectors.
    ///
    /// # Panics
    /// When `count` is 0 or above 128, where the outermost weights underflow.
    pub fn new(count: usize) -> Self {
        assert!((1..=128).contains(&count), "a quadrature rule has 1 to 128 nodes");
        let jacobi = faer::Mat::<f64>::from_fn(count, count, |i, j| {
            if i.abs_diff(j) == 1 { (i.max(j) as f64).sqrt() } else { 0.0 }
        });
        let Eigen { values: nodes, vectors } =
            eigen(jacobi.as_ref()).expect("a finite symmetric matrix has eigenvalues");
        let weights = vectors.row(0).iter().map(|u| u * u).collect();
        Self { nodes, weights }
    }

    /// The rule with 20 nodes, made once.
    pub fn standard() -> &'static Self {
        static RULE: OnceLock<GaussHermite> = OnceLock::new();
        RULE.get_or_init(|| Self::new(20))
    }

    /// `(f, weight)` for `f ~ N(mean, variance)`; the weights sum to 1. A variance below zero, as rounding makes it, counts as
    /// zero; NaN goes through to the nodes.
    pub fn nodes(&self, mean: f64, variance: f64) -> impl Iterator<Item = (f64, f64)> + '_ {
        // Not `f64::max`, which would turn NaN into certainty.
        let deviation = if variance < 0.0 { 0.0 } else { variance.sqrt() };
        self.nodes.iter().zip(&self.weights).map(move |(x, &w)| (mean + deviation * x, w))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_of_the_normal_are_exact_up_to_degree_2n_minus_1() {
        for count in [1, 2, 5, 20] {
            let rule = GaussHermite::new(count);
            let mut double_factorial = 1.0;
            for k in 0..count.min(8) {
                // E[z^(2k)] = (2k - 1)!!
                if k > 0 {
                    double_factorial *= (2 * k - 1) as f64;
                }
                let even: f64 = rule.nodes(0.0, 1.0).map(|(x, w)| w * x.powi(2 * k as i32)).sum();
                assert!(
                    (even - double_factorial).abs() < 1e-11 * double_factorial.max(1.0),
                    "{count} {k} {even}"
                );
                let odd: f64 = rule.nodes(0.0, 1.0).map(|(x, w)| w * x.powi(2 * k as i32 + 1)).sum();
                assert!(odd.abs() < 1e-9 * double_factorial.max(1.0));
            }
        }
    }

    #[test]
    fn the_largest_rule_is_still_a_rule() {
        let rule = GaussHermite::new(128);
        let total: f64 = rule.nodes(0.0, 1.0).map(|(_, w)| w).sum();
        assert!((total - 1.0).abs() < 1e-12);
        assert!(rule.nodes(0.0, 1.0).all(|(x, w)| x.is_finite() && w >= 0.0));
        // E[cos z] = exp(-1/2)
        let value: f64 = rule.nodes(0.0, 1.0).map(|(z, w)| w * z.cos()).sum();
        assert!((value - (-0.5f64).exp()).abs() < 1e-12);
    }

    #[test]
    fn variances_from_rounding_are_zero_and_nan_is_not() {
        let rule = GaussHermite::standard();
        assert!(rule.nodes(1.5, -1e-18).all(|(f, _)| f == 1.5));
        assert!(rule.nodes(1.5, f64::NAN).any(|(f, _)| f.is_nan()));
    }

    #[test]
    fn a_smooth_function_is_integrated() {
        // E[exp(f)] = exp(mean + variance/2)
        let value: f64 = GaussHermite::standard().nodes(0.3, 0.7).map(|(f, w)| w * f.exp()).sum();
        assert!((value - (0.3f64 + 0.35).exp()).abs() < 1e-12);
    }
}
