//! The Jacobian as a feature map.

use crate::observations::{batch_size, doubles};
use faer::{Mat, MatRef};
use posterior_linear::{FeatureMap, LinearError, Linearised};
use posterior_networks::{Array, Network, NetworkError, Precision, Selection, Trace};

/// The linear model in the selected weights that a network is near its own: `g(x) + J(x) (w - v)`.
#[derive(Clone, Debug)]
pub struct Tangent<'a, T> {
    network: &'a Network<T>,
    selection: &'a Selection,
    trained: Vec<f64>,
}

impl<'a, T: Precision> Tangent<'a, T> {
    /// The tangent at the network's own weights.
    pub fn new(network: &'a Network<T>, selection: &'a Selection) -> Self {
        let trained = doubles(&selection.flatten(network.parameters()));
        Self { network, selection, trained }
    }

    /// The weights `v` at which it touches the network.
    pub fn trained(&self) -> &[f64] {
        &self.trained
    }
}

fn failed(error: NetworkError) -> LinearError {
    LinearError::Features(Box::new(error))
}

impl<T: Precision> FeatureMap<T> for Tangent<'_, T> {
    /// `[examples, ...]`.
    type Inputs = Array<T>;

    fn dimension(&self) -> usize {
        self.selection.len()
    }

    fn outputs(&self) -> usize {
        self.network.graph().output_shape().iter().product()
    }

    fn expansion_point(&self) -> Option<&[f64]> {
        Some(&self.trained)
    }

    fn examples_at_once(&self, vectors: usize) -> usize {
        batch_size(self.network, vectors)
    }

    /// One forward pass.
    fn at<'a>(&'a self, inputs: &'a Array<T>) -> Result<Box<dyn Linearised<T> + 'a>, LinearError> {
        let trace = self.network.trace(inputs.clone()).map_err(failed)?;
        Ok(Box::new(Traced { trace, selection: self.selection }))
    }
}

/// The tangent at some inputs, which were traced once.
struct Traced<'a, T: Precision> {
    trace: Trace<'a, T>,
    selection: &'a Selection,
}

impl<T: Precision> Linearised<T> for Traced<'_, T> {
    fn outputs(&self) -> Vec<f64> {
        doubles(self.trace.output().values())
    }

    /// About two forward passes for each vector.
    fn apply(&self, weights: MatRef<'_, T>) -> Result<Mat<T>, LinearError> {
        let tangents = Array::new(vec![weights.ncols(), weights.nrows()], columns(weights));
        let moved = self.trace.jvp(self.selection, &tangents).map_err(failed)?;
        // Rows of the network's block are ordered example, vector, output.
        let (c, k) = (self.trace.output().row_len(), weights.ncols());
        let value = |row: usize, j: usize| moved.values()[(row / c * k + j) * c + row % c];
        Ok(Mat::from_fn(self.trace.rows() * c, k, value))
    }

    /// About two forward passes for each vector.
    fn apply_transpose(&self, u: MatRef<'_, T>) -> Result<Mat<T>, LinearError> {
        let (c, k) = (self.trace.output().row_len(), u.ncols());
        let mut shape = self.trace.output().shape().to_vec();
        shape[0] = self.trace.rows() * k;
        if u.nrows() != self.trace.rows() * c {
            let (expected, found) = (self.trace.rows() * c, u.nrows());
            return Err(LinearError::Shape { what: "rows of the cotangents", expected, found });
        }
        let cotangents = match k {
            1 => columns(u),
            _ => (0..u.nrows() * k).map(|i| u[(i / (c * k) * c + i % c, i / c % k)]).collect(),
        };
        let back = self.trace.vjp(self.selection, &Array::new(shape, cotangents)).map_err(failed)?;
        Ok(MatRef::from_column_major_slice(back.values(), self.selection.len(), k).to_owned())
    }
}

/// Numbers column by column.
fn columns<T: Copy>(m: MatRef<'_, T>) -> Vec<T> {
    (0..m.ncols()).flat_map(|j| (0..m.nrows()).map(move |i| m[(i, j)])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use posterior_networks::{Architecture, Outputs};

    #[test]
    fn products_are_those_of_the_jacobian() {
        let text = "kind = 'perceptron'\ninputs = 3\nhidden = [4]\noutputs = 2\nactivation = 'tanh'";
        let graph = Architecture::from_toml(text).unwrap().graph().unwrap();
        let network = Network::<f64>::initialised(graph, posterior_linalg::random::Streams::new(3)).unwrap();
        let selection = Selection::all(network.graph());
        let tangent = Tangent::new(&network, &selection);
        let d = tangent.dimension();
        let wave = |k: usize| (k as f64 * 0.37).sin();
        let x = Array::new(vec![5, 3], (0..15).map(wave).collect());
        let jacobian = network.jacobian(&x, &selection, &Outputs::All, u64::MAX).unwrap();
        let jacobian = Mat::from_fn(10, d, |i, j| jacobian.values()[i * d + j]);
        let features = tangent.at(&x).unwrap();
        assert_eq!((features.outputs().len(), tangent.outputs()), (10, 2));
        for k in [1, 3] {
            let w = Mat::from_fn(d, k, |i, j| wave(i + 7 * j + 1));
            let u = Mat::from_fn(10, k, |i, j| wave(3 * i + j + 2));
            let forward = features.apply(w.as_ref()).unwrap() - &jacobian * &w;
            let back = features.apply_transpose(u.as_ref()).unwrap() - jacobian.transpose() * &u;
            assert!(forward.norm_max() < 1e-13 && back.norm_max() < 1e-13);
        }
        assert_eq!(tangent.expansion_point().unwrap(), selection.flatten(network.parameters()));
        assert!(features.apply(Mat::zeros(d + 1, 1).as_ref()).is_err());
        assert!(features.apply_transpose(Mat::zeros(9, 1).as_ref()).is_err());
        assert!(tangent.at(&Array::zeros(vec![2, 4])).is_err());
    }
}
