//! `k = (1 + √3 q) exp(-√3 q)`: once differentiable.

use super::{Form, Parts};
use crate::features::SpectralLaw;
use posterior_linalg::Real;

/// The Matérn kernel of smoothness 3/2. Rasmussen and Williams (2006), eq. 4.17.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Matern32;

impl Form for Matern32 {
    fn spectral_law(&self) -> SpectralLaw {
        SpectralLaw::StudentT { degrees: 3 }
    }

    #[inline(always)]
    fn value<T: Real>(&self, q2: T) -> T {
        let s = (q2 * T::from_f64(3.0)).sqrt();
        (s + T::ONE) * (-s).exp()
    }

    #[inline(always)]
    fn parts<T: Real>(&self, q2: T) -> Parts<T> {
        let three = T::from_f64(3.0);
        let s = (q2 * three).sqrt();
        let e = (-s).exp();
        Parts { value: (s + T::ONE) * e, slope: three * e, shape_slope: T::ZERO }
    }
}
