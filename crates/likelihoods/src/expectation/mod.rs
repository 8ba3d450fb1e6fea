//! **Expectations under a Gaussian** `q(f)` with independent latent values: what variational inference asks of a likelihood
//! ([`Likelihood::expected_log_density`]), and the predictions that belong to it.
//!
//! | file | what |
//! |---|---|
//! | [`Slopes`] | where the slopes of an expectation go |
//! | [`GaussHermite`] | quadrature for smooth functions |
//! | `gauss_legendre` | quadrature on an interval |
//! | `largest` | which of several independent Gaussians is the largest |
//! | `product` | what every likelihood has without further work: one Gauss-Hermite rule for each latent value |
//! | `trapezoid` | exact to rounding for integrands that are analytic in a strip |
//! | `log_sum_exp` | `E[log Σ exp f]`, `E[softmax f]` and `E[(Σ exp f)^(-α)]` for any number of classes by two nested one-dimensional integrals |
//! | `softmax_evidence` | `log E[softmax(f)_y]`, the normaliser of one observed class, with slopes |
//! | `tilted` | `log E[p^α]` in one latent value, with slopes |
//! | [`sampled_alpha_energy`] | the same for correlated latent values by Monte Carlo |
//!
//! | likelihood | expectation | slopes |
//! |---|---|---|
//! | Gaussian noise of any kind, Poisson | closed form | closed form |
//! | Bernoulli, logit or probit; negative binomial | trapezoid rule | the same |
//! | Student-t | one exponentially convergent integral | of the sum |
//! | categorical | exponentially convergent integrals; no Monte Carlo | of the sum |
//! | robust max | panels of Gauss-Legendre nodes | the same, by parts where that divides by less |

mod gauss_hermite;
mod gauss_legendre;
mod largest;
mod log_sum_exp;
mod monte_carlo;
pub(crate) mod product;
mod softmax_evidence;
mod tilted;
mod trapezoid;

pub use gauss_hermite::GaussHermite;
pub(crate) use gauss_legendre::GaussLegendre;
pub(crate) use largest::{largest_probabilities, largest_probability};
pub(crate) use log_sum_exp::{expected_log_sum_exp, log_expected_power};
pub use monte_carlo::{CorrelatedSlopes, sampled_alpha_energy};
pub(crate) use softmax_evidence::softmax_evidence;
pub(crate) use tilted::{Tilted, one_dimensional};
pub(crate) use trapezoid::{nodes, nodes_reaching};

use crate::Likelihood;

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

/// Minus the expected log density with minus its slopes: the energy at α = 0.
pub(crate) fn negative_expectation<L: Likelihood + ?Sized>(
    likelihood: &L,
    y: &[f64],
    (mean, variance): (&[f64], &[f64]),
    slopes: Slopes<'_>,
) -> f64 {
    let Slopes { means, variances, parameters } = slopes;
    let mut own = vec![0.0; parameters.len()];
    let inner = Slopes { means: &mut *means, variances: &mut *variances, parameters: &mut own };
    let value = likelihood.expected_log_density(y, mean, variance, inner);
    means.iter_mut().chain(variances).for_each(|s| *s = -*s);
    parameters.iter_mut().zip(own).for_each(|(p, o)| *p -= o);
    -value
}

#[cfg(test)]
mod energy_tests;
#[cfg(test)]
mod largest_tests;
#[cfg(test)]
pub(crate) mod tests;
