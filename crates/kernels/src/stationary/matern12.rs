//! `k = exp(-q)`: continuous, nowhere differentiable (Ornstein-Uhlenbeck).

use super::{Form, Parts};
use crate::features::SpectralLaw;
use posterior_linalg::Real;

/// The Matérn kernel of smoothness 1/2. Rasmussen and Williams (2006), eq. 4.18.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Matern12;

impl Form for Matern12 {
    fn spectral_law(&self) -> SpectralLaw {
        SpectralLaw::StudentT { degrees: 1 }
    }

    #[inline(always)]
    fn value<T: Real>(&self, q2: T) -> T {
        (-q2.sqrt()).exp()
    }

    /// `exp(-q)/q` is infinite at 0; there `q²` is raised to 1e-10 (spec, section 4). At equal points the factor `x - z`
    /// that it is multiplied with is 0 all the same.
    #[inline(always)]
    fn parts<T: Real>(&self, q2: T) -> Parts<T> {
        let value = self.value(q2);
        let slope = value / q2.max(T::from_f64(1e-10)).sqrt();
        Parts { value, slope, shape_slope: T::ZERO }
    }
}
