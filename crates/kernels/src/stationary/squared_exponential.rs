//! `k = exp(-q²/2)`: infinitely smooth.

use super::{Form, Parts};
use crate::features::SpectralLaw;
use posterior_linalg::Real;

/// The squared exponential (radial basis function, Gaussian) kernel. Rasmussen and Williams (2006), eq. 4.9.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SquaredExponential;

impl Form for SquaredExponential {
    fn spectral_law(&self) -> SpectralLaw {
        SpectralLaw::Normal
    }

    #[inline(always)]
    fn value<T: Real>(&self, q2: T) -> T {
        (q2 * T::from_f64(-0.5)).exp()
    }

    #[inline(always)]
    fn parts<T: Real>(&self, q2: T) -> Parts<T> {
        let value = self.value(q2);
        Parts { value, slope: value, shape_slope: T::ZERO }
    }
}
