//! Laws of frequencies, and how far out they reach.

use std::iter::successors;

/// Laws of frequencies at lengthscale 1. All are normal vectors times one random factor for all coordinates.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SpectralLaw {
    /// Standard normal: the squared exponential.
    Normal,
    /// Multivariate t with 2ν degrees of freedom: the Matérn kernel of smoothness ν. `ω = g √(2ν/u)`, `u ~ χ²_2ν`.
    StudentT {
        /// 2ν.
        degrees: u32,
    },
    /// `ω = g √τ` with τ of the gamma law of this shape and mean 1: the rational quadratic.
    GammaMixture {
        /// The kernel's alpha.
        shape: f64,
    },
}

impl SpectralLaw {
    /// The logarithm of its density where a frequency of D coordinates has this squared length, without its constant.
    pub(super) fn log_density(self, square: f64, dimension: usize) -> f64 {
        match self {
            Self::Normal => -0.5 * square,
            Self::StudentT { degrees } => {
                let degrees = f64::from(degrees.max(1));
                -0.5 * (degrees + dimension as f64) * (square / degrees).ln_1p()
            }
            Self::GammaMixture { shape } => gamma_mixture(shape, square, dimension),
        }
    }

    /// By what a typical length has to be multiplied until some 10⁻¹² of the law is beyond it.
    pub(super) fn reach(self, dimension: usize) -> f64 {
        let normal = 1.0 + 7.0 / (dimension.max(1) as f64).sqrt();
        match self {
            // 7 deviations beyond the length of a normal vector.
            Self::Normal => normal,
            // What is beyond a length R falls as R^(-2ν).
            Self::StudentT { degrees } => 10f64.powf(12.0 / f64::from(degrees.max(1))).min(1e4),
            // What is beyond R falls no more slowly than exp(-√(2 shape) R) does in the end.
            Self::GammaMixture { shape } => {
                (normal + 12.0 * std::f64::consts::LN_10 / (2.0 * shape).sqrt()).min(1e4)
            }
        }
    }
}

/// `log ∫ τ^(a - 1) exp(-shape τ - s / (2 τ)) dτ` with `a = shape - D/2`: up to a constant the log density of `g √τ` where its squared length is s. In `v = log τ` the
/// integrand is log-concave and falls doubly exponentially on both sides, so that the trapezoidal rule has nine digits with steps of half of its width, at most 0.35: some 40 of them.
/// NaN where no gamma law has such a shape.
fn gamma_mixture(shape: f64, square: f64, dimension: usize) -> f64 {
    let a = shape - dimension as f64 / 2.0;
    if !(shape > 0.0 && shape.is_finite() && square > 0.0 && square.is_finite()) {
        return f64::NAN;
    }
    let exponent = |v: f64| a * v - shape * v.exp() - 0.5 * square * (-v).exp();
    // The positive root of shape τ² - a τ - s/2, without cancellation.
    let root = (a * a + 2.0 * shape * square).sqrt();
    let mode = if a >= 0.0 { (a + root) / (2.0 * shape) } else { square / (root - a) };
    let (peak, at) = (exponent(mode.ln()), mode.ln());
    let step = (0.5 / (shape * mode + 0.5 * square / mode).sqrt()).min(0.35);
    let side = |direction: f64| {
        successors(Some(1.0), |k| Some(k + 1.0))
            .map(|k| exponent(at + direction * k * step) - peak)
            .take_while(|e| *e > -40.0)
            .map(f64::exp)
            .sum::<f64>()
    };
    peak + (step * (1.0 + side(1.0) + side(-1.0))).ln()
}

#[cfg(test)]
mod tests {
    use super::*;
    use posterior_optim::check::assert_close;

    #[test]
    fn densities_of_gamma_mixtures_are_those_in_closed_form() {
        // Bessel functions of orders ½ and 3/2 are elementary: with `a = ±½` the integral is that of exp(-√(2 shape s)) times powers of s, with a = 3/2 one more factor.
        for square in [1e-8f64, 1e-3, 0.7, 12.0, 900.0, 1e5] {
            let relative = |shape: f64, dimension| {
                gamma_mixture(shape, square, dimension) - gamma_mixture(shape, 1.0, dimension)
            };
            let fall = |shape: f64| -(2.0 * shape).sqrt() * (square.sqrt() - 1.0);
            // shape 1, D = 1: a = ½, the Laplace law.
            let mut found = vec![relative(1.0, 1)];
            let mut expected = vec![fall(1.0)];
            // shape 1, D = 3: a = -½.
            found.push(relative(1.0, 3));
            expected.push(fall(1.0) - 0.5 * square.ln());
            // shape 2, D = 1: a = 3/2, z = √(2 shape s): exp(-z) (1 + z).
            found.push(relative(2.0, 1));
            let z = 2.0 * square.sqrt();
            expected.push(-z + z.ln_1p() - (-2.0 + 2f64.ln_1p()));
            assert_close(&found, &expected, 1e-9, 1e-9);
        }
        assert!(gamma_mixture(f64::NAN, 1.0, 2).is_nan() && gamma_mixture(-1.0, 1.0, 2).is_nan());
    }

    #[test]
    fn hardly_anything_is_beyond_the_reach() {
        // In one dimension by quadrature of the density: between 10⁻¹⁶ and 10⁻¹⁰ is beyond, of laws whose tails are not cut short.
        for law in [
            SpectralLaw::Normal,
            SpectralLaw::StudentT { degrees: 5 },
            SpectralLaw::GammaMixture { shape: 0.7 },
            SpectralLaw::GammaMixture { shape: 20.0 },
        ] {
            // In steps of a logarithm of length.
            let mass = |from: f64, to: f64| {
                let (count, ratio) = (20_000, (to / from).ln() / 20_000.0);
                (0..count)
                    .map(|i| {
                        let length = from * ((f64::from(i) + 0.5) * ratio).exp();
                        law.log_density(length * length, 1).exp() * length * ratio
                    })
                    .sum::<f64>()
            };
            let reach = law.reach(1);
            let beyond = mass(reach, 1e3 * reach) / mass(1e-12, 1e3 * reach);
            assert!((1e-20..1e-10).contains(&beyond), "{law:?}: {beyond}");
        }
    }
}
