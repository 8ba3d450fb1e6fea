//! **Gauss-Legendre quadrature**: `∫ g` over [-1, 1] as a weighted sum over nodes, exact for polynomials of degree `2n - 1`.

use posterior_linalg::dense::{Eigen, eigen};
use std::sync::OnceLock;

/// Nodes of the rule: functions that are entire, bend on the scale of the interval and grow like a Gaussian beside the real line are integrated to about 1e-15.
pub(crate) const NODES: usize = 16;

/// Nodes and weights on [-1, 1].
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct GaussLegendre {
    pub(crate) nodes: [f64; NODES],
    pub(crate) weights: [f64; NODES],
}

impl GaussLegendre {
    /// The rule, made once (Golub and Welsch 1969): nodes are the eigenvalues of the Jacobi matrix of the Legendre polynomials (off-diagonal `k / √(4 k² - 1)`), weights twice the squared first entries of
    /// its eigenvectors.
    pub(crate) fn standard() -> &'static Self {
        static RULE: OnceLock<GaussLegendre> = OnceLock::new();
        RULE.get_or_init(|| {
            let jacobi = faer::Mat::<f64>::from_fn(NODES, NODES, |i, j| {
                let k = i.max(j) as f64;
                if i.abs_diff(j) == 1 { k / (4.0 * k * k - 1.0).sqrt() } else { 0.0 }
            });
            let Eigen { values, vectors } =
                eigen(jacobi.as_ref()).expect("a finite symmetric matrix has eigenvalues");
            let (mut nodes, mut weights) = ([0.0; NODES], [0.0; NODES]);
            for k in 0..NODES {
                (nodes[k], weights[k]) = (values[k], 2.0 * vectors[(0, k)] * vectors[(0, k)]);
            }
            Self { nodes, weights }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_are_exact_up_to_degree_2n_minus_1() {
        let rule = GaussLegendre::standard();
        for degree in 0..2 * NODES as i32 {
            let found: f64 = rule.nodes.iter().zip(&rule.weights).map(|(x, w)| w * x.powi(degree)).sum();
            let exact = if degree % 2 == 0 { 2.0 / f64::from(degree + 1) } else { 0.0 };
            assert!((found - exact).abs() < 1e-14, "{degree}: {found} for {exact}");
        }
    }
}
