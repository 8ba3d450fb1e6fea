//! `k = (1 + q²/(2α))^(-α)`: a mixture of squared exponentials over lengthscales.

use super::Form;
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
    #[inline(always)]
    fn value<T: Real>(&self, q2: T) -> T {
        (T::from_f64(-self.alpha) * self.base(q2).ln()).exp()
    }

    #[inline(always)]
    fn slope<T: Real>(&self, q2: T) -> T {
        self.value(q2) / self.base(q2)
    }

    fn shape(&self) -> Option<(&'static str, f64)> {
        Some(("alpha", self.alpha))
    }

    fn set_shape(&mut self, value: f64) {
        self.alpha = value;
    }

    /// `∂k/∂α = k (-ln b + (b - 1)/b)` with `b = 1 + q²/(2α)`
    #[inline(always)]
    fn shape_slope<T: Real>(&self, q2: T) -> T {
        let b = self.base(q2);
        self.value(q2) * ((b - T::ONE) / b - b.ln())
    }
}
