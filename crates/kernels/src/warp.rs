//! **Warps of columns**: a monotone curve for each, learned with the kernel that sees the warped columns.
//!
//! `w(x) = (sinh(δ asinh(x) - ε) + sinh ε) / (δ cosh ε)`: the sinh-arcsinh transform of M. C. Jones and A. Pewsey, "Sinh-arcsinh distributions", Biometrika 2009, eq. 1, moved and scaled such
//! that `w(0) = 0` and `w'(0) = 1`. The skew ε makes one side steeper than the other (by `e^2ε` far away), the tail δ bends both: below 1 far values come together, as under a logarithm, above 1
//! they move apart. With ε = 0 and δ = 1 it is `w(x) = x`.
//!
//! Why this one: columns are in standard units and have no ends. The cumulative beta and Kumaraswamy distributions (J. Snoek, K. Swersky, R. Zemel, R. Adams, "Input warping for Bayesian
//! optimization of non-stationary functions", ICML 2014) are curves of [0, 1]: with the range of the training rows, rows beyond it would all be one. This one goes on, with its slope at the column's mean fixed,
//! so that lengthscales keep their meaning there.

use faer::{Mat, MatRef};
use posterior_linalg::Real;
use posterior_optim::{Segment, Transform};

/// Hyperbolic functions are taken of no larger numbers, so that single precision can hold them: with δ = 1 these are columns beyond 1e34 standard deviations.
const LARGEST: f64 = 80.0;

/// Skews and the range of tails that a search may give.
const MOST_SKEW: f64 = 3.0;
const TAILS: (f64, f64) = (0.2, 5.0);

/// One curve for each of some columns.
#[derive(Clone, Debug, PartialEq)]
pub struct Warp {
    columns: Vec<usize>,
    skew: Vec<f64>,
    tail: Vec<f64>,
}

/// The curve at one place, with its slopes.
struct At {
    value: f64,
    slope: f64,
    by_skew: f64,
    by_tail: f64,
}

impl Warp {
    /// No warp yet, of these columns.
    pub fn new(columns: Vec<usize>) -> Self {
        let count = columns.len();
        Self { columns, skew: vec![0.0; count], tail: vec![1.0; count] }
    }

    /// A warp of these columns with a skew (any number) and a tail (above 0) for each.
    ///
    /// # Panics
    /// When there is not one of each for each column.
    pub fn bent(columns: Vec<usize>, skew: Vec<f64>, tail: Vec<f64>) -> Self {
        let count = columns.len();
        assert!(skew.len() == count && tail.len() == count, "a skew and a tail for each column");
        Self { columns, skew, tail }
    }

    /// Its columns.
    pub fn columns(&self) -> &[usize] {
        &self.columns
    }

    /// The curve of the d-th of its columns at some places.
    pub fn curve(&self, d: usize, x: &[f64]) -> Vec<f64> {
        x.iter().map(|&x| self.at(d, x).value).collect()
    }

    fn at(&self, d: usize, x: f64) -> At {
        let (skew, tail) = (self.skew[d], self.tail[d]);
        let arc = x.asinh();
        let angle = (tail * arc - skew).clamp(-LARGEST, LARGEST);
        let (hyperbolic_sine, hyperbolic_cosine) = (angle.sinh(), angle.cosh());
        let scale = 1.0 / (tail * skew.cosh());
        let value = (hyperbolic_sine + skew.sinh()) * scale;
        // Flat where the angle is held.
        let moves = if angle.abs() < LARGEST { hyperbolic_cosine } else { 0.0 };
        At {
            value,
            slope: moves * tail * scale / x.hypot(1.0),
            by_skew: (skew.cosh() - moves) * scale - value * skew.tanh(),
            by_tail: arc * moves * scale - value / tail,
        }
    }

    /// A copy of the points with warped columns.
    pub(crate) fn apply<T: Real>(&self, x: MatRef<'_, T>) -> Mat<T> {
        let mut out = x.to_owned();
        for (d, &c) in self.columns.iter().enumerate() {
            for v in out.col_as_slice_mut(c) {
                *v = T::from_f64(self.at(d, v.to_f64()).value);
            }
        }
        out
    }

    /// What an adjoint of the warped points contributes to skews and tails (added to `parameters`, where there are any); the adjoint becomes that of the points.
    pub(crate) fn pull<T: Real>(&self, x: MatRef<'_, T>, adjoint: &mut Mat<T>, parameters: &mut [f64]) {
        let count = self.columns.len();
        for (d, &c) in self.columns.iter().enumerate() {
            for (i, own) in adjoint.col_as_slice_mut(c).iter_mut().enumerate() {
                let at = self.at(d, x[(i, c)].to_f64());
                let toward = own.to_f64();
                if parameters.len() >= 2 * count {
                    parameters[d] += toward * at.by_skew;
                    parameters[count + d] += toward * at.by_tail;
                }
                *own = T::from_f64(toward * at.slope);
            }
        }
    }

    /// How many numbers it has.
    pub(crate) fn parameter_count(&self) -> usize {
        2 * self.columns.len()
    }

    pub(crate) fn segments(&self, label: &str) -> Vec<Segment> {
        let segment = |name: &str, transform| Segment {
            name: format!("{label}.{name}"),
            shape: vec![self.columns.len()],
            transform,
        };
        vec![
            segment("skew", Transform::Bounded { lower: -MOST_SKEW, upper: MOST_SKEW }),
            segment("tail", Transform::LogBounded { lower: TAILS.0, upper: TAILS.1 }),
        ]
    }

    pub(crate) fn values(&self) -> Vec<f64> {
        [self.skew.as_slice(), &self.tail].concat()
    }

    pub(crate) fn set_values(&mut self, values: &[f64]) {
        let (skew, tail) = values.split_at(self.columns.len());
        self.skew.copy_from_slice(skew);
        self.tail.copy_from_slice(tail);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use posterior_optim::check::{assert_close, gradient};

    #[test]
    fn curves_rise_and_begin_at_the_mean_with_slope_one() {
        for (skew, tail) in [(0.0, 1.0), (1.2, 0.4), (-2.9, 4.9), (3.0, 0.2)] {
            let warp = Warp { columns: vec![0], skew: vec![skew], tail: vec![tail] };
            let places: Vec<f64> = (-400..=400).map(|i| 0.02 * f64::from(i)).collect();
            let curve = warp.curve(0, &places);
            assert!(curve.windows(2).all(|w| w[0] < w[1]), "{skew} {tail}");
            let middle = warp.at(0, 0.0);
            assert!(middle.value.abs() < 1e-14 && (middle.slope - 1.0).abs() < 1e-14);
            if skew == 0.0 {
                places.iter().zip(&curve).for_each(|(x, w)| assert!((x - w).abs() < 1e-13));
            }
            for x in [-3.0, -0.4, 0.0, 1.7] {
                let at =
                    |p: &[f64]| Warp { columns: vec![0], skew: vec![p[1]], tail: vec![p[2]] }.at(0, p[0]);
                let own = at(&[x, skew, tail]);
                let numeric = gradient(|p| at(p).value, &[x, skew, tail]);
                let scale = numeric.iter().fold(1.0f64, |m, v| m.max(v.abs()));
                assert_close(&[own.slope, own.by_skew, own.by_tail], &numeric, 1e-7, 1e-8 * scale);
            }
            for x in [1e300, -1e300] {
                let far = warp.at(0, x);
                let numbers = [far.value, far.slope, far.by_skew, far.by_tail];
                assert!(numbers.iter().all(|v| v.is_finite() && v.abs() < 1e37), "{numbers:?}");
            }
            assert!(warp.at(0, f64::NAN).value.is_nan());
        }
    }
}
