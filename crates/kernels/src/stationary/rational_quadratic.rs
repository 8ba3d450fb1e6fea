//! `k = (1 + q²/(2α))^(-α)`: a mixture of squared exponentials over lengthscales.

use super::{Form, Parts};
use crate::features::SpectralLaw;
use posterior_linalg::Real;

/// The rational quadratic kernel; `alpha -> ∞` gives the squared exponential. Rasmussen and Williams (2006), eq. 4.19.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RationalQuadratic {
    /// Width of the mixture of lengthscales; positive.
    pub alpha: f64,
}

impl RationalQuadratic {
    /// `1 + q²/(2α)`
    #[inline(always)]
    fn base<T: Real>(&self, q2: T) -> T {
        q2.mul_add(T::from_f64(0.5 / self.alpha), T::ONE)
    }
}

impl Form for RationalQuadratic {
    fn spectral_law(&self) -> SpectralLaw {
        SpectralLaw::GammaMixture { shape: self.alpha }
    }

    #[inline(always)]
    fn value<T: Real>(&self, q2: T) -> T {
        (T::from_f64(-self.alpha) * self.base(q2).ln()).exp()
    }

    /// With `b = 1 + q²/(2α)`: `c = k/b` and `∂k/∂α = k ((b - 1)/b - ln b)`.
    #[inline(always)]
    fn parts<T: Real>(&self, q2: T) -> Parts<T> {
        let b = self.base(q2);
        let (inverse, log) = (T::ONE / b, b.ln());
        let value = (T::from_f64(-self.alpha) * log).exp();
        Parts { value, slope: value * inverse, shape_slope: value * ((b - T::ONE) * inverse - log) }
    }

    fn shape(&self) -> Option<(&'static str, f64)> {
        Some(("alpha", self.alpha))
    }

    fn set_shape(&mut self, value: f64) {
        self.alpha = value;
    }
}
