//! **Expectations under a Gaussian** `q(f)` with independent latent values: what variational inference asks of a likelihood
//! ([`Likelihood::expected_log_density`](crate::Likelihood::expected_log_density)), and the predictions that belong to it.
//!
//! | file | what |
//! |---|---|
//! | [`Slopes`] | where the slopes of an expectation go |
//! | [`GaussHermite`] | quadrature for smooth functions |
//! | `product` | what every likelihood has without further work: one Gauss-Hermite rule for each latent value |
//! | `trapezoid` | exact to rounding for integrands that are analytic in a strip |
//! | `log_sum_exp` | `E[log Σ exp f]` and `E[softmax f]` for any number of classes by two nested one-dimensional integrals |
//!
//! | likelihood | expectation | slopes |
//! |---|---|---|
//! | Gaussian noise of any kind, Poisson | closed form | closed form |
//! | Bernoulli, logit or probit | trapezoid rule | the same |
//! | Student-t | one exponentially convergent integral | of the sum |
//! | categorical | exponentially convergent integrals; no Monte Carlo | of the sum |

mod gauss_hermite;
mod log_sum_exp;
pub(crate) mod product;
mod trapezoid;

pub use gauss_hermite::GaussHermite;
pub(crate) use log_sum_exp::expected_log_sum_exp;
pub(crate) use trapezoid::nodes;

/// Where the slopes of an expectation go.
#[derive(Debug)]
pub struct Slopes<'a> {
    /// In the latent means (C numbers), written.
    pub means: &'a mut [f64],
    /// In the latent variances (C numbers), written.
    pub variances: &'a mut [f64],
    /// In the natural values of the likelihood's own parameters, in their order; these are **added**, since all observations
    /// share them.
    pub parameters: &'a mut [f64],
}

/// The expectation over outputs that are independent: a sum. `each` gives that of one output with its slopes in mean and variance, and
/// adds those in the parameters.
pub(crate) fn sum_over_outputs(
    slopes: Slopes<'_>,
    mut each: impl FnMut(usize, &mut [f64]) -> (f64, f64, f64),
) -> f64 {
    assert_eq!(slopes.means.len(), slopes.variances.len(), "one slope for each latent value");
    let mut total = 0.0;
    for i in 0..slopes.means.len() {
        let value;
        (value, slopes.means[i], slopes.variances[i]) = each(i, slopes.parameters);
        total += value;
    }
    total
}

#[cfg(test)]
pub(crate) mod tests;
