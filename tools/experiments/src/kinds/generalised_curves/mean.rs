//! **The variational mean of all curves**: ten hyperbolic tangents and a read-out, `m_Q(x) = Σ_j v_j tanh(w_j x + b_j) + c`, 31 numbers.
//!
//! Source: spec `generalised_variational_inference`, sections 8 and 16.1.

use super::layer::{Layer, sum, truncated};
use crate::kinds::prelude::*;
use posterior_linalg::vectorised::{add_scaled, dispatch, dot};
use posterior_linear::LinearError;
use posterior_linear::embedding::{EmbeddedAt, Embedding};

/// The network: weights, biases, read-out weights, constant, in this order.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct MeanNetwork {
    hidden: Layer,
    readout: Vec<f64>,
    constant: f64,
}

impl MeanNetwork {
    /// Truncated normal weights of variance one over the inputs of their layer, no biases.
    pub(crate) fn drawn(units: usize, streams: Streams) -> Self {
        let hidden = Layer::drawn(units, streams, "experiment/generalised-mean-hidden");
        let mut rng = streams.stream("experiment/generalised-mean-readout");
        Self { hidden, readout: (0..units).map(|_| truncated(units, &mut rng)).collect(), constant: 0.0 }
    }

    fn values(&self, h: MatRef<'_, f64>) -> Mat<f64> {
        let mut out = Mat::zeros(h.nrows(), 1);
        let values = out.col_as_slice_mut(0);
        values.fill(self.constant);
        dispatch(
            #[inline(always)]
            || {
                for (column, v) in h.col_iter().zip(&self.readout) {
                    add_scaled(*v, column.try_as_col_major().map_or(&[][..], |own| own.as_slice()), values);
                }
            },
        );
        out
    }
}

impl Embedding for MeanNetwork {
    fn inputs(&self) -> usize {
        1
    }

    fn width(&self) -> usize {
        1
    }

    fn unconstrained(&self) -> Vec<f64> {
        [&self.hidden.unconstrained()[..], &self.readout, &[self.constant]].concat()
    }

    fn set_unconstrained(&mut self, numbers: &[f64]) {
        let u = self.hidden.units();
        assert_eq!(numbers.len(), 3 * u + 1, "three numbers for each unit and a constant");
        self.hidden.set_unconstrained(&numbers[..2 * u]);
        self.readout.copy_from_slice(&numbers[2 * u..3 * u]);
        self.constant = numbers[3 * u];
    }

    fn rows_at_once(&self) -> usize {
        1 << 16
    }

    fn bytes_of_row(&self) -> usize {
        size_of::<f64>() * (self.hidden.units() + 2)
    }

    fn embedded(&self, x: MatRef<'_, f64>) -> Result<Mat<f64>, LinearError> {
        Ok(self.values(self.hidden.embedded(x)?.as_ref()))
    }

    fn at<'a>(&'a self, x: MatRef<'_, f64>) -> Result<Box<dyn EmbeddedAt + 'a>, LinearError> {
        let hidden = Embedding::at(&self.hidden, x)?;
        Ok(Box::new(Behind { of: self, embedded: self.values(hidden.embedded()), hidden }))
    }

    fn clone_box(&self) -> Box<dyn Embedding> {
        Box::new(self.clone())
    }

    fn as_any(&self) -> &dyn std::any::Any {
        self
    }
}

/// Rows behind the network.
struct Behind<'a> {
    of: &'a MeanNetwork,
    hidden: Box<dyn EmbeddedAt + 'a>,
    /// n x 1.
    embedded: Mat<f64>,
}

impl Behind<'_> {
    /// Slopes in the units, n x u, of slopes in the mean.
    fn slopes_of_units(&self, slopes: MatRef<'_, f64>) -> Mat<f64> {
        let readout = &self.of.readout;
        Mat::from_fn(slopes.nrows(), readout.len(), |i, j| slopes[(i, 0)] * readout[j])
    }
}

impl EmbeddedAt for Behind<'_> {
    fn embedded(&self) -> MatRef<'_, f64> {
        self.embedded.as_ref()
    }

    fn pull_back(&self, slopes: MatRef<'_, f64>, gradient: &mut [f64]) -> Result<(), LinearError> {
        let u = self.of.hidden.units();
        let (hidden, rest) = gradient.split_at_mut(2 * u);
        let (readout, constant) = rest.split_at_mut(u);
        self.hidden.pull_back(self.slopes_of_units(slopes).as_ref(), hidden)?;
        let outer: Vec<f64> = slopes.col(0).iter().copied().collect();
        let h = self.hidden.embedded();
        dispatch(
            #[inline(always)]
            || {
                for (j, slope) in readout.iter_mut().enumerate() {
                    let units = h.col(j).try_as_col_major().map_or(&[][..], |own| own.as_slice());
                    *slope += dot(&outer, units);
                }
                constant[0] += sum(&outer);
            },
        );
        Ok(())
    }

    fn pull_back_inputs(&self, slopes: MatRef<'_, f64>) -> Result<Mat<f64>, LinearError> {
        self.hidden.pull_back_inputs(self.slopes_of_units(slopes).as_ref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(values: &[f64]) -> Mat<f64> {
        Mat::from_fn(values.len(), 1, |i, _| values[i])
    }

    #[test]
    fn it_is_its_formula_and_its_gradient_a_finite_difference() {
        let network = MeanNetwork::drawn(10, Streams::new(3));
        assert_eq!(network.unconstrained().len(), 31);
        let x = column(&(0..53).map(|i| -2.0 + 4.0 * i as f64 / 52.0).collect::<Vec<_>>());
        let mut moved = network.clone();
        // Biases that are not zero.
        let theta: Vec<f64> =
            network.unconstrained().iter().enumerate().map(|(i, v)| v + 0.03 * i as f64 - 0.4).collect();
        moved.set_unconstrained(&theta);
        assert_eq!(moved.unconstrained(), theta);
        let at = moved.at(x.as_ref()).unwrap();
        for i in 0..53 {
            let unit = |j: usize| theta[20 + j] * (theta[j] * x[(i, 0)] + theta[10 + j]).tanh();
            let expected = theta[30] + (0..10).map(unit).sum::<f64>();
            assert!((at.embedded()[(i, 0)] - expected).abs() < 1e-14);
        }
        let slopes = Mat::from_fn(53, 1, |i, _| ((i * 5) % 13) as f64 / 6.0 - 1.0);
        let mut gradient = vec![0.5; 31];
        at.pull_back(slopes.as_ref(), &mut gradient).unwrap();
        for (k, found) in gradient.iter().enumerate() {
            let value = |by: f64| {
                let mut network = moved.clone();
                let mut theta = theta.clone();
                theta[k] += by;
                network.set_unconstrained(&theta);
                let out = network.embedded(x.as_ref()).unwrap();
                (0..53).map(|i| slopes[(i, 0)] * out[(i, 0)]).sum::<f64>()
            };
            let expected = 0.5 + (value(1e-6) - value(-1e-6)) / 2e-6;
            assert!((found - expected).abs() < 1e-8 * (1.0 + expected.abs()), "{k}: {found} {expected}");
        }
        let of_x = at.pull_back_inputs(slopes.as_ref()).unwrap();
        for i in 0..53 {
            let moved_by = |by: f64| {
                let x = Mat::from_fn(1, 1, |_, _| x[(i, 0)] + by);
                slopes[(i, 0)] * moved.embedded(x.as_ref()).unwrap()[(0, 0)]
            };
            let expected = (moved_by(1e-6) - moved_by(-1e-6)) / 2e-6;
            assert!((of_x[(i, 0)] - expected).abs() < 1e-8, "{i}: {} {expected}", of_x[(i, 0)]);
        }
        let wide = Mat::zeros(3, 2);
        assert!(moved.embedded(wide.as_ref()).is_err() && moved.at(wide.as_ref()).is_err());
    }
}
