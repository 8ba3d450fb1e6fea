//! The tangent kernel.

use faer::{Mat, MatRef};
use posterior_kernels::{BlockKernel, Directed, LearnedBlockKernel, SetAdjoints};
use posterior_networks::derivatives::{FEATURES, KernelAdjoints, tangent_feature_size};
use posterior_networks::{Array, Network, NetworkError, Outputs, Precision, Selection, TangentFeatures};
use posterior_optim::{Parameters, Segment};
use std::borrow::Cow;
use std::ops::Range;

/// `k(x, z) = J(x) J(z)^T` over the selected weights: C x C blocks between images, or whatever the network takes.
///
/// Cost for a perceptron with layer widths `d_l`: `2 sum_l d_l` operations for each entry; other parameters: twice their number.
#[derive(Clone, Copy, Debug)]
pub struct TangentKernel<'a, T> {
    network: &'a Network<T>,
    selection: &'a Selection,
}

impl<'a, T: Precision> TangentKernel<'a, T> {
    /// Of the tangent at the network's own weights.
    pub fn new(network: &'a Network<T>, selection: &'a Selection) -> Self {
        Self { network, selection }
    }

    /// Points with `width` rows each that are pulled back at one time: their numbers at other than fully connected layers, which are as many as the weights for each row, are held in full; half as
    /// many as the kernel would prepare at one time, since a tile may copy them.
    pub fn pulled_at_once(&self, width: usize) -> usize {
        self.points_at_once(2 * width)
    }

    /// The gradient in the points `z` of a loss in the kernels between them and others.
    fn pull(
        &self,
        z: &Array<T>,
        along: Option<MatRef<'_, T>>,
        adjoints: &KernelAdjoints<'_, T>,
    ) -> Result<Mat<T>, NetworkError> {
        let back = self.network.tangent_kernel_pullback((z, &self.directions(along)), adjoints)?;
        Ok(MatRef::from_row_major_slice(back.values(), back.rows(), back.row_len()).to_owned())
    }

    fn directions(&self, along: Option<MatRef<'_, T>>) -> Outputs<T> {
        let Some(along) = along else { return Outputs::All };
        let (rows, outputs) = (along.nrows(), along.ncols());
        let values = (0..rows * outputs).map(|k| along[(k / outputs, k % outputs)]).collect();
        let shape = [&[rows], self.network.graph().output_shape()].concat();
        Outputs::Combinations(Array::new(shape, values))
    }
}

impl<T: Precision> BlockKernel<T> for TangentKernel<'_, T> {
    /// `[examples, ...]`.
    type Points = Array<T>;
    type Prepared = TangentFeatures<T>;
    type Error = NetworkError;

    fn outputs(&self) -> usize {
        self.network.graph().output_shape().iter().product()
    }

    fn count(&self, x: &Array<T>) -> usize {
        x.rows()
    }

    fn points_at_once(&self, width: usize) -> usize {
        let size = tangent_feature_size(self.network.graph(), self.selection).max(1);
        (FEATURES / (size * width.max(1))).min(self.network.examples_at_once() / width.max(1)).max(1)
    }

    /// One pass forwards and one back for each row.
    fn prepare(
        &self,
        x: &Array<T>,
        points: Range<usize>,
        along: Option<MatRef<'_, T>>,
    ) -> Result<TangentFeatures<T>, NetworkError> {
        self.network.tangent_features(&x.slice_rows(points), self.selection, &self.directions(along))
    }

    /// The side of fewer rows is the one that is turned (and so copied).
    fn tile(&self, x: &TangentFeatures<T>, z: &TangentFeatures<T>) -> Mat<T> {
        if x.rows() < z.rows() {
            let turned = z.kernel(x);
            return MatRef::from_column_major_slice(turned.values(), x.rows(), z.rows()).to_owned();
        }
        let tile = x.kernel(z);
        MatRef::from_row_major_slice(tile.values(), x.rows(), z.rows()).to_owned()
    }

    fn diagonal(&self, x: &TangentFeatures<T>) -> Vec<T> {
        x.diagonal()
    }

    fn pullback(
        &self,
        x: &TangentFeatures<T>,
        z: &Array<T>,
        along: Option<MatRef<'_, T>>,
        adjoint: MatRef<'_, T>,
    ) -> Result<Mat<T>, NetworkError> {
        let mut adjoints = KernelAdjoints::new(self.selection, adjoint.ncols());
        adjoints.add(Cow::Borrowed(x), &by_rows(adjoint))?;
        self.pull(z, along, &adjoints)
    }
}

/// A matrix row by row.
fn by_rows<T: Precision>(matrix: MatRef<'_, T>) -> Array<T> {
    let (rows, columns) = matrix.shape();
    let turned = if matrix.col_stride() == 1 { Mat::new() } else { matrix.transpose().to_owned() };
    let matrix = if matrix.col_stride() == 1 { matrix } else { turned.transpose() };
    let mut values = Vec::with_capacity(rows * columns);
    (0..rows).for_each(|i| values.extend(matrix.row(i).iter().copied()));
    Array::new(vec![rows, columns], values)
}

/// None: the network's weights are held.
impl<T> Parameters for TangentKernel<'_, T> {
    fn segments(&self) -> Vec<Segment> {
        Vec::new()
    }

    fn values(&self) -> Vec<f64> {
        Vec::new()
    }

    fn set_values(&mut self, values: &[f64]) {
        assert!(values.is_empty(), "the tangent kernel has no parameters");
    }
}

impl LearnedBlockKernel for TangentKernel<'_, f64> {
    fn coordinates(&self, points: &Array<f64>) -> Vec<f64> {
        points.values().to_vec()
    }

    fn with_coordinates(&self, points: &Array<f64>, coordinates: &[f64]) -> Array<f64> {
        Array::new(points.shape().to_vec(), coordinates.to_vec())
    }

    fn pull_tile(
        &self,
        x: &TangentFeatures<f64>,
        (z, along): Directed<'_, Array<f64>>,
        _: &TangentFeatures<f64>,
        adjoint: MatRef<'_, f64>,
        points: bool,
        _: &mut [f64],
    ) -> Result<Option<Mat<f64>>, NetworkError> {
        points.then(|| self.pullback(x, z, along, adjoint)).transpose()
    }

    fn pulled_at_once(&self, width: usize) -> usize {
        Self::pulled_at_once(self, width)
    }

    /// One pass back for all.
    fn pull_sets<'a>(
        &self,
        sets: &mut dyn Iterator<Item = Result<SetAdjoints<'a, TangentFeatures<f64>>, NetworkError>>,
        ((z, along), prepared): (Directed<'_, Array<f64>>, &TangentFeatures<f64>),
        gram: MatRef<'_, f64>,
        points: bool,
        _: &mut [f64],
    ) -> Result<Option<Mat<f64>>, NetworkError> {
        if !points {
            return Ok(None);
        }
        let mut adjoints = KernelAdjoints::new(self.selection, gram.nrows());
        for set in sets {
            let set = set?;
            adjoints.add(Cow::Owned(set.x), &by_rows(set.cross))?;
        }
        let mut twice = by_rows(gram);
        twice.values_mut().iter_mut().for_each(|v| *v *= 2.0);
        adjoints.add(Cow::Borrowed(prepared), &twice)?;
        self.pull(z, along, &adjoints).map(Some)
    }

    fn pull_diagonal(&self, _: &TangentFeatures<f64>, _: &[f64], _: &mut [f64]) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use posterior_networks::Architecture;

    #[test]
    fn blocks_and_gradients_are_those_of_the_jacobian() {
        let text = "kind = 'perceptron'\ninputs = 3\nhidden = [4]\noutputs = 2\nactivation = 'tanh'";
        let graph = Architecture::from_toml(text).unwrap().graph().unwrap();
        let network = Network::<f64>::initialised(graph, posterior_linalg::random::Streams::new(3)).unwrap();
        let selection = Selection::all(network.graph());
        let kernel = TangentKernel::new(&network, &selection);
        let wave = |k: usize| (k as f64 * 0.37).sin();
        let x = Array::new(vec![5, 3], (0..15).map(wave).collect());
        let z = Array::new(vec![2, 3], (20..26).map(wave).collect());
        let jacobian = |x: &Array<f64>| {
            let rows = network.jacobian(x, &selection, &Outputs::All, u64::MAX).unwrap();
            MatRef::from_row_major_slice(rows.values(), rows.rows(), rows.row_len()).to_owned()
        };
        let (j, expected) = (jacobian(&x), jacobian(&x) * jacobian(&z).transpose());
        assert!((kernel.cross((&x, None), (&z, None)).unwrap() - &expected).norm_max() < 1e-13);
        // One combination of both outputs for each point.
        let along = Mat::from_fn(5, 2, |i, c| wave(7 * i + 3 * c + 2));
        let turned = Mat::from_fn(5, j.ncols(), |i, k| {
            along[(i, 0)] * j[(2 * i, k)] + along[(i, 1)] * j[(2 * i + 1, k)]
        });
        let gram = kernel.gram(&x, Some(along.as_ref())).unwrap();
        assert!((gram - &turned * turned.transpose()).norm_max() < 1e-13);
        let features = kernel.prepare(&x, 0..5, None).unwrap();
        for (k, v) in kernel.diagonal(&features).into_iter().enumerate() {
            let (n, o, p) = (k / 4, k / 2 % 2, k % 2);
            let own = (0..j.ncols()).map(|i| j[(2 * n + o, i)] * j[(2 * n + p, i)]).sum::<f64>();
            assert!((v - own).abs() < 1e-13);
        }
        let adjoint = Mat::from_fn(10, 4, |i, k| wave(i + 3 * k));
        let gradient = kernel.pullback(&features, &z, None, adjoint.as_ref()).unwrap();
        let loss = |z: &Array<f64>| {
            let k = kernel.cross((&x, None), (z, None)).unwrap();
            (0..40).map(|e| adjoint[(e / 4, e % 4)] * k[(e / 4, e % 4)]).sum::<f64>()
        };
        for e in 0..6 {
            let moved = |h: f64| {
                let mut moved = z.clone();
                moved.values_mut()[e] += h;
                loss(&moved)
            };
            let slope = (moved(1e-6) - moved(-1e-6)) / 2e-6;
            assert!((slope - gradient[(e / 3, e % 3)]).abs() < 1e-7, "{slope}");
        }
    }
}
