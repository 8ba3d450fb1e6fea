//! **Cox processes**: events whose intensity is `λ(x) = exp(μ(x) + a(x)ᵀ w)`.
//!
//! The log density of the events in a domain is `Σ log λ(x_e) - ∫ λ(x) dx`. Under `w ~ N(m, R Rᵀ)` the intensity is log-normal, so that with nodes `x_q` and weights `ω_q` of a quadrature of the domain
//!
//! ```text
//! E_q[log p] = Σ_e [μ(x_e) + a_eᵀ m] - Σ_q ρ_q        ρ_q = ω_q exp(μ_q + a_qᵀ m + ½ |Rᵀ a_q|²)
//! of m         Σ_e a_e - Σ_q ρ_q a_q                  of the covariance  G = -½ Σ_q ρ_q a_q a_qᵀ
//! of a_e       m                                      of a_q             -ρ_q (m + R Rᵀ a_q)
//! ```
//!
//! in closed form. [`CoxRows`] says it row by row, so that events and nodes pass in batches of both, as labels do. Source: spec `deep_kernel_decomposition`, section 4.6.

use posterior_likelihoods::{Likelihood, LikelihoodError, Slopes};
use posterior_optim::{Parameters, Segment};
use rand::Rng;

/// The largest logarithm of an expected intensity that is one: e³⁰⁰ = 10¹³⁰, the last magnitudes whose squares, which Adam and variances have, are numbers. In training it can only have exploded before.
const LARGEST_EXPONENT: f64 = 300.0;

/// Events (target 1) and nodes of a quadrature (target 0) as rows of one table, whose log intensity is their latent value: `E_q[log p] = Σ_e m_e - Σ_q exp(m_q + ½ v_q)` is then a sum over rows as that of any likelihood is. The
/// logarithm of a node's weight in the quadrature is the offset of its row ([`ObservedRows::offsets`](super::ObservedRows)).
///
/// Powers of the likelihood are those of cells that are infinitely small: `(1/α) log E[λ^α] = m + ½ α v` of an event, and of a node the same for all α, minus its expected intensity. So α = 0 is the bound on the evidence and
/// α = 1 the log density of the events under the mean intensity, which is the log predictive density here. A row is no outcome of its own: there is nothing to draw.
///
/// A node whose log intensity is above 300 has a term of minus infinity and slopes that are infinite, too, on which training ends with [`LinearError::Exploded`](crate::LinearError::Exploded); what is predicted stays at e³⁰⁰.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CoxRows;

impl Parameters for CoxRows {
    fn segments(&self) -> Vec<Segment> {
        Vec::new()
    }

    fn values(&self) -> Vec<f64> {
        Vec::new()
    }

    fn set_values(&mut self, values: &[f64]) {
        assert!(values.is_empty(), "it has no parameters");
    }
}

impl CoxRows {
    /// The term of a row for a power of the likelihood, with its slopes in mean and variance.
    fn term(y: &[f64], mean: f64, variance: f64, power: f64) -> (f64, f64, f64) {
        if y[0] == 1.0 {
            (mean + 0.5 * power * variance, 1.0, 0.5 * power)
        } else {
            let exponent = mean + 0.5 * variance;
            let expected = if exponent > LARGEST_EXPONENT { f64::INFINITY } else { exponent.exp() };
            (-expected, -expected, -0.5 * expected)
        }
    }

    /// The expected intensity as a number that predictions can be made of.
    fn rate(exponent: f64) -> f64 {
        // Not `f64::min`, which would turn NaN into a number.
        if exponent > LARGEST_EXPONENT { LARGEST_EXPONENT.exp() } else { exponent.exp() }
    }
}

impl Likelihood for CoxRows {
    fn outputs(&self) -> usize {
        1
    }

    fn name(&self) -> &'static str {
        "cox"
    }

    fn check_target(&self, y: &[f64]) -> Result<(), LikelihoodError> {
        let owner = self.name();
        match *y {
            [0.0 | 1.0] => Ok(()),
            [value] => {
                let remedy = "rows are events, 1, or nodes of a quadrature, 0".into();
                Err(LikelihoodError::Target { owner, position: 0, value, remedy })
            }
            _ => {
                let (what, needed, remedy) = ("target", 1, "give one number: whether the row is an event");
                Err(LikelihoodError::Length { owner, what, needed, found: y.len(), remedy })
            }
        }
    }

    fn log_density(&self, y: &[f64], f: &[f64]) -> f64 {
        Self::term(y, f[0], 0.0, 0.0).0
    }

    fn gradient(&self, y: &[f64], f: &[f64], out: &mut [f64]) {
        out[0] = Self::term(y, f[0], 0.0, 0.0).1;
    }

    fn curvature_entries(&self, y: &[f64], f: &[f64], out: &mut [f64]) {
        out[0] = if y[0] == 1.0 { 0.0 } else { -Self::term(y, f[0], 0.0, 0.0).1 };
    }

    fn curvature_needs_target(&self) -> bool {
        true
    }

    /// Of the number of events in a cell of this expectation.
    fn moments(&self, f: &[f64], mean: &mut [f64], variance: &mut [f64]) {
        (mean[0], variance[0]) = (Self::rate(f[0]), Self::rate(f[0]));
    }

    fn sample(&self, _: &[f64], _: &mut dyn Rng, out: &mut [f64]) {
        out[0] = f64::NAN;
    }

    fn expected_log_density(&self, y: &[f64], mean: &[f64], variance: &[f64], slopes: Slopes<'_>) -> f64 {
        let value;
        (value, slopes.means[0], slopes.variances[0]) = Self::term(y, mean[0], variance[0], 0.0);
        value
    }

    fn alpha_energy(&self, alpha: f64, y: &[f64], mean: &[f64], variance: &[f64], slopes: Slopes<'_>) -> f64 {
        let (value, of_mean, of_variance) = Self::term(y, mean[0], variance[0], alpha);
        (slopes.means[0], slopes.variances[0]) = (-of_mean, -of_variance);
        -value
    }

    fn predictive_moments(&self, mean: &[f64], variance: &[f64], out: (&mut [f64], &mut [f64])) {
        let rate = Self::rate(mean[0] + 0.5 * variance[0]);
        let spread = rate + rate * rate * variance[0].exp_m1();
        (out.0[0], out.1[0]) = (rate, if spread == f64::INFINITY { f64::MAX } else { spread });
    }

    fn log_predictive_density(&self, y: &[f64], mean: &[f64], variance: &[f64]) -> f64 {
        Self::term(y, mean[0], variance[0], 1.0).0
    }
}

#[cfg(test)]
mod tests;
