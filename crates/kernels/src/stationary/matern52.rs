//! `k = (1 + √5 q + 5q²/3) exp(-√5 q)`: twice differentiable.

use super::{Form, Parts};
use crate::features::SpectralLaw;
use posterior_linalg::Real;

/// The Matérn kernel of smoothness 5/2. Rasmussen and Williams (2006), eq. 4.17.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Matern52;

impl Form for Matern52 {
    fn spectral_law(&self) -> SpectralLaw {
        SpectralLaw::StudentT { degrees: 5 }
    }

    #[inline(always)]
    fn value<T: Real>(&self, q2: T) -> T {
        let five = q2 * T::from_f64(5.0);
        let s = five.sqrt();
        (five.mul_add(T::from_f64(1.0 / 3.0), s) + T::ONE) * (-s).exp()
    }

    #[inline(always)]
    fn parts<T: Real>(&self, q2: T) -> Parts<T> {
        let five = q2 * T::from_f64(5.0);
        let s = five.sqrt();
        let e = (-s).exp();
        let linear = (s + T::ONE) * e;
        let third = T::from_f64(1.0 / 3.0);
        Parts {
            value: (five * third).mul_add(e, linear),
            slope: T::from_f64(5.0 / 3.0) * linear,
            shape_slope: T::ZERO,
        }
    }
}
