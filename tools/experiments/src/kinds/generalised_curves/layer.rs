//! **A layer of hyperbolic tangents on one input**, `h_j(x) = tanh(w_j x + b_j)`, with the way back to its weights: of it is made the variational mean; alone it is the map that a kernel acts on.
//!
//! A column of h is one vectorised pass over the rows, 0.6 ns an element, so that 600 rows through ten units take 5 µs. A graph of the same layer takes thirty times as long: its nodes pass arrays of ten numbers a row.

use crate::kinds::prelude::*;
use posterior_linalg::random::ChaCha8Rng;
use posterior_linalg::vectorised::{dispatch, dot, tanh};
use posterior_linear::LinearError;
use posterior_linear::embedding::{EmbeddedAt, Embedding};
use rand_distr::{Distribution, StandardNormal};

/// The standard deviation of a standard normal that is drawn again beyond two of them, by which published programs divide.
const TRUNCATED_DEVIATION: f64 = 0.879_625_661_034_239_8;

/// Weights and biases of u units.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Layer {
    pub(crate) weights: Vec<f64>,
    pub(crate) biases: Vec<f64>,
}

/// A normal number of variance `1 / inputs` that is at most two (of its own, before truncation) standard deviations from zero.
pub(crate) fn truncated(inputs: usize, rng: &mut ChaCha8Rng) -> f64 {
    let own = loop {
        let z: f64 = StandardNormal.sample(rng);
        if z.abs() <= 2.0 {
            break z;
        }
    };
    own / (TRUNCATED_DEVIATION * (inputs as f64).sqrt())
}

impl Layer {
    /// Truncated normal weights of variance 1 (there is one input) and no biases, as the published program begins (spec `generalised_variational_inference`, section 8).
    pub(crate) fn drawn(units: usize, streams: Streams, name: &str) -> Self {
        let mut rng = streams.stream(name);
        Self { weights: (0..units).map(|_| truncated(1, &mut rng)).collect(), biases: vec![0.0; units] }
    }

    /// u.
    pub(crate) fn units(&self) -> usize {
        self.weights.len()
    }

    /// h at n inputs, n x u. Cost n u hyperbolic tangents.
    pub(crate) fn at(&self, x: &[f64]) -> Mat<f64> {
        let mut out = Mat::zeros(x.len(), self.units());
        let mut sums = vec![0.0; x.len()];
        for j in 0..self.units() {
            let (w, b) = (self.weights[j], self.biases[j]);
            dispatch(
                #[inline(always)]
                || {
                    for (s, &x) in sums.iter_mut().zip(x) {
                        *s = x.mul_add(w, b);
                    }
                },
            );
            tanh(&sums, out.col_as_slice_mut(j));
        }
        out
    }

    /// Adds to weight and bias of one unit what slopes (n) in its column of h say, which are overwritten by those before the tangent.
    fn pull_back_unit(x: &[f64], of_h: &[f64], slopes: &mut [f64], (weight, bias): (&mut f64, &mut f64)) {
        let n = slopes.len();
        let (x, of_h) = (&x[..n], &of_h[..n]);
        dispatch(
            #[inline(always)]
            || {
                for i in 0..n {
                    slopes[i] *= (-of_h[i]).mul_add(of_h[i], 1.0);
                }
                *weight += dot(slopes, x);
                *bias += sum(slopes);
            },
        );
    }
}

/// The one column of the inputs.
fn only_column(x: MatRef<'_, f64>) -> Result<Vec<f64>, LinearError> {
    if x.ncols() != 1 {
        return Err(LinearError::Shape { what: "columns of the inputs", expected: 1, found: x.ncols() });
    }
    Ok(x.col(0).iter().copied().collect())
}

/// Parameters: weights, biases.
impl Embedding for Layer {
    fn inputs(&self) -> usize {
        1
    }

    fn width(&self) -> usize {
        self.units()
    }

    fn unconstrained(&self) -> Vec<f64> {
        [&self.weights[..], &self.biases].concat()
    }

    fn set_unconstrained(&mut self, numbers: &[f64]) {
        let u = self.units();
        assert_eq!(numbers.len(), 2 * u, "two numbers for each unit");
        self.weights.copy_from_slice(&numbers[..u]);
        self.biases.copy_from_slice(&numbers[u..]);
    }

    fn rows_at_once(&self) -> usize {
        1 << 16
    }

    fn bytes_of_row(&self) -> usize {
        size_of::<f64>() * (self.units() + 1)
    }

    fn embedded(&self, x: MatRef<'_, f64>) -> Result<Mat<f64>, LinearError> {
        Ok(Layer::at(self, &only_column(x)?))
    }

    fn at<'a>(&'a self, x: MatRef<'_, f64>) -> Result<Box<dyn EmbeddedAt + 'a>, LinearError> {
        let x = only_column(x)?;
        Ok(Box::new(Behind { of: self, h: Layer::at(self, &x), x }))
    }

    fn clone_box(&self) -> Box<dyn Embedding> {
        Box::new(self.clone())
    }

    fn as_any(&self) -> &dyn std::any::Any {
        self
    }
}

/// Inputs behind the layer.
struct Behind<'a> {
    of: &'a Layer,
    x: Vec<f64>,
    /// n x u.
    h: Mat<f64>,
}

impl EmbeddedAt for Behind<'_> {
    fn embedded(&self) -> MatRef<'_, f64> {
        self.h.as_ref()
    }

    fn pull_back(&self, slopes: MatRef<'_, f64>, gradient: &mut [f64]) -> Result<(), LinearError> {
        let (weights, biases) = gradient.split_at_mut(self.of.units());
        let mut own = slopes.to_owned();
        for (j, (weight, bias)) in weights.iter_mut().zip(biases).enumerate() {
            Layer::pull_back_unit(&self.x, self.h.col_as_slice(j), own.col_as_slice_mut(j), (weight, bias));
        }
        Ok(())
    }

    fn pull_back_inputs(&self, slopes: MatRef<'_, f64>) -> Result<Mat<f64>, LinearError> {
        let of_unit =
            |i: usize, j: usize| slopes[(i, j)] * self.of.weights[j] * (1.0 - self.h[(i, j)].powi(2));
        Ok(Mat::from_fn(slopes.nrows(), 1, |i, _| (0..self.of.units()).map(|j| of_unit(i, j)).sum()))
    }
}

/// The sum in interleaved parts, as [`dot`] has it.
#[inline(always)]
pub(crate) fn sum(values: &[f64]) -> f64 {
    const LANES: usize = 8;
    let (chunks, rest) = values.as_chunks::<LANES>();
    let mut sums = [0.0; LANES];
    for chunk in chunks {
        for lane in 0..LANES {
            sums[lane] += chunk[lane];
        }
    }
    rest.iter().sum::<f64>() + sums.iter().sum::<f64>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_have_their_variance_and_end_at_two_deviations() {
        // Variance of a standard normal within ±2: 1 - 4 φ(2) / (2 Φ(2) - 1), with φ(2) and Φ(2) from tables.
        let (density, inside) = (0.053_990_966_513_188_06, 0.954_499_736_103_641_6);
        let deviation = f64::sqrt(1.0 - 4.0 * density / inside);
        assert!((deviation - TRUNCATED_DEVIATION).abs() < 1e-14, "{deviation}");
        let mut rng = Streams::new(1).stream("truncated");
        let draws: Vec<f64> = (0..20_000).map(|_| truncated(4, &mut rng)).collect();
        let square = draws.iter().map(|v| v * v).sum::<f64>() / 20_000.0;
        // Squares of numbers below 2 / 0.88 times ½ have a deviation below their mean of ¼: four standard errors.
        assert!((square - 0.25).abs() < 4.0 * 0.25 / 20_000f64.sqrt(), "{square}");
        assert!(draws.iter().all(|v| v.abs() <= 1.0 / TRUNCATED_DEVIATION));
    }

    #[test]
    fn tangents_are_those_of_the_library_and_slopes_finite_differences() {
        let layer = Layer { weights: vec![0.7, -1.3, 2.0], biases: vec![0.1, 0.0, -0.4] };
        let x: Vec<f64> = (0..37).map(|i| -2.0 + 4.0 * i as f64 / 36.0).collect();
        let h = layer.at(&x);
        for (i, x) in x.iter().enumerate() {
            for j in 0..3 {
                assert!((h[(i, j)] - (layer.weights[j] * x + layer.biases[j]).tanh()).abs() < 1e-15);
            }
        }
        let slope = |i: usize, j: usize| ((3 * i + 7 * j) % 11) as f64 / 5.0 - 1.0;
        let value = |layer: &Layer| -> f64 {
            let h = layer.at(&x);
            (0..37).map(|i| (0..3).map(|j| slope(i, j) * h[(i, j)]).sum::<f64>()).sum()
        };
        for j in 0..3 {
            let (mut weight, mut bias) = (0.0, 0.0);
            let mut slopes: Vec<f64> = (0..37).map(|i| slope(i, j)).collect();
            Layer::pull_back_unit(&x, h.col_as_slice(j), &mut slopes, (&mut weight, &mut bias));
            let moved = |by: f64, of_weight: bool| {
                let mut layer = layer.clone();
                *(if of_weight { &mut layer.weights[j] } else { &mut layer.biases[j] }) += by;
                value(&layer)
            };
            for (found, of_weight) in [(weight, true), (bias, false)] {
                let expected = (moved(1e-6, of_weight) - moved(-1e-6, of_weight)) / 2e-6;
                assert!((found - expected).abs() < 1e-8 * (1.0 + expected.abs()), "{found} {expected}");
            }
        }
    }
}
