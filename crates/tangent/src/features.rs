//! The Jacobian as a feature map.

use crate::covariances::add_tapped;
use crate::curvature::{add_dense, add_diagonal, add_kronecker, block_selection};
use crate::head::Head;
use crate::observations::{batch_size, doubles, passing_batch_size, through_batch_size};
use crate::segments::segments;
use faer::{Mat, MatRef};
use posterior_linear::curvature::{BlockSum, FisherEstimate, Form, OutputCurvature, Roots, Segment};
use posterior_linear::latent::{Posteriors, PreparedBlock, Wanted, add_rows};
use posterior_linear::{FeatureMap, LinearError, Linearised};
use posterior_networks::{Array, Network, NetworkError, Outputs, Precision, Selection, Trace};
use std::ops::Range;
use std::sync::OnceLock;

/// The linear model in the selected weights that a network is near its own: `g(x) + J(x) (w - v)`.
#[derive(Clone, Debug)]
pub struct Tangent<'a, T> {
    network: &'a Network<T>,
    selection: &'a Selection,
    /// Flattened when it is asked for: predictions are not.
    trained: OnceLock<Vec<f64>>,
    head: Option<Head>,
}

impl<'a, T: Precision> Tangent<'a, T> {
    /// The tangent at the network's own weights.
    pub fn new(network: &'a Network<T>, selection: &'a Selection) -> Self {
        let head = Head::of(network.graph(), selection);
        Self { network, selection, trained: OnceLock::new(), head }
    }

    /// The output layer, where its weights are those selected: then nothing need be sent back.
    pub fn head(&self) -> Option<&Head> {
        self.head.as_ref()
    }

    /// The head, if it gives exact curvature of this kind from its features alone.
    fn exact_head(&self, estimate: FisherEstimate) -> Option<&Head> {
        self.head.as_ref().filter(|_| estimate == FisherEstimate::Exact)
    }

    /// The weights `v` at which it touches the network.
    pub fn trained(&self) -> &[f64] {
        self.trained.get_or_init(|| doubles(&self.selection.flatten(self.network.parameters())))
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
        Some(self.trained())
    }

    fn examples_at_once(&self, vectors: usize) -> usize {
        passing_batch_size(self.network, vectors)
    }

    fn examples_through_at_once(&self, vectors: usize) -> usize {
        through_batch_size(self.network, self.selection, vectors)
    }

    /// Parameter by parameter.
    fn segments(&self) -> Vec<Segment> {
        segments(self.network.graph(), self.selection)
    }

    fn examples_for_curvature(&self, estimate: FisherEstimate, width: usize) -> usize {
        batch_size(self.network, if self.exact_head(estimate).is_some() { 1 } else { width })
    }

    /// One forward pass.
    #[inline(never)]
    fn at<'a>(&'a self, inputs: Array<T>) -> Result<Box<dyn Linearised<T> + 'a>, LinearError> {
        let trace = self.network.trace(inputs).map_err(failed)?;
        Ok(Box::new(Traced { trace, tangent: self }))
    }
}

/// The tangent at some inputs, which were traced once.
struct Traced<'a, T: Precision> {
    trace: Trace<'a, T>,
    tangent: &'a Tangent<'a, T>,
}

impl<T: Precision> Traced<'_, T> {
    /// Rows as cotangents of the network.
    fn cotangents(&self, roots: Roots<T>) -> Array<T> {
        let mut shape = self.trace.output().shape().to_vec();
        shape[0] *= roots.width;
        Array::new(shape, roots.values)
    }

    /// The network's block of outputs, whose rows are ordered example, vector, output, with a column for each of k vectors.
    fn matrix(&self, block: &Array<T>, k: usize) -> Mat<T> {
        let c = self.trace.output().row_len();
        let mut out = Mat::zeros(block.len().checked_div(k).unwrap_or(self.trace.rows() * c), k);
        for (row, values) in block.values().chunks_exact(c).enumerate() {
            out.col_as_slice_mut(row % k)[row / k * c..][..c].copy_from_slice(values);
        }
        out
    }

    /// The other way round; rows `[examples * k, outputs]`.
    fn block(&self, u: MatRef<'_, T>) -> Array<T> {
        let (c, k) = (self.trace.output().row_len(), u.ncols());
        let (by_column, mut out) = (columns(u), Array::zeros(vec![u.nrows() / c * k, c]));
        for (row, values) in out.values_mut().chunks_exact_mut(c).enumerate() {
            values.copy_from_slice(&by_column.row(row % k)[row / k * c..][..c]);
        }
        out
    }
}

impl<T: Precision> Linearised<T> for Traced<'_, T> {
    fn shape(&self) -> (usize, usize) {
        (self.trace.rows(), self.trace.output().row_len())
    }

    fn outputs(&self) -> Vec<f64> {
        doubles(self.trace.output().values())
    }

    /// About two forward passes for each vector.
    fn apply(&self, weights: MatRef<'_, T>) -> Result<Mat<T>, LinearError> {
        let tangents = columns(weights);
        let moved = self.trace.jvp(self.tangent.selection, &tangents).map_err(failed)?;
        Ok(self.matrix(&moved, weights.ncols()))
    }

    /// About two forward passes for each vector.
    fn apply_transpose(&self, u: MatRef<'_, T>) -> Result<Mat<T>, LinearError> {
        let c = self.trace.output().row_len();
        if u.nrows() != self.trace.rows() * c {
            let (expected, found) = (self.trace.rows() * c, u.nrows());
            return Err(LinearError::Shape { what: "rows of the cotangents", expected, found });
        }
        let mut shape = self.trace.output().shape().to_vec();
        shape[0] *= u.ncols();
        let cotangents = self.block(u).reshaped(shape);
        let back = self.trace.vjp(self.tangent.selection, &cotangents).map_err(failed)?;
        let d = self.tangent.selection.len();
        Ok(MatRef::from_column_major_slice(back.values(), d, u.ncols()).to_owned())
    }

    /// By products of each vector or by features of a few examples: see [`Network::products_through`].
    fn apply_through(
        &self,
        weights: MatRef<'_, T>,
        map: &mut dyn FnMut(Range<usize>, &mut Mat<T>),
    ) -> Result<Mat<T>, LinearError> {
        let tangents = columns(weights);
        let mut through = |_: &Array<T>, examples: Range<usize>, moved: Array<T>| {
            let shape = moved.shape().to_vec();
            let mut block = self.matrix(&moved, weights.ncols());
            map(examples, &mut block);
            self.block(block.as_ref()).reshaped(shape)
        };
        let back =
            self.trace.products_through(self.tangent.selection, &tangents, &mut through).map_err(failed)?;
        Ok(MatRef::from_column_major_slice(back.values(), weights.nrows(), weights.ncols()).to_owned())
    }

    /// Pieces of about 32 MB; one pass forwards and one back for each row.
    fn rows(
        &self,
        along: Option<&Roots<T>>,
        weights: Range<usize>,
        visit: &mut dyn FnMut(Range<usize>, MatRef<'_, T>),
    ) -> Result<(), LinearError> {
        let network = self.tangent.network;
        let outputs = along.map_or(Outputs::All, |r| Outputs::Combinations(self.cotangents(r.clone())));
        let own = block_selection(network, self.tangent.selection, weights);
        let mut visit = |examples: Range<usize>, rows: &Array<T>| {
            visit(examples, MatRef::from_row_major_slice(rows.values(), rows.rows(), rows.row_len()));
        };
        network.jacobian_pieces(self.trace.input(), &own, &outputs, &mut visit).map_err(failed)
    }

    /// Factors and squares from what passes each layer on the way back; of an output layer with its exact curvature from features alone.
    fn add_curvature(
        &self,
        form: Form,
        observed: &OutputCurvature<'_>,
        blocks: &mut [BlockSum],
    ) -> Result<(), LinearError> {
        if let Some(head) = self.tangent.exact_head(observed.estimate) {
            head.add_curvature(&self.trace, observed, blocks);
            return Ok(());
        }
        let (network, selection) = (self.tangent.network, self.tangent.selection);
        let (x, rows) = (self.trace.input(), self.cotangents(observed.roots()?));
        match form {
            Form::Kronecker => add_kronecker(&self.trace, selection, &rows, blocks),
            Form::Diagonal => add_diagonal(network, x, selection, &rows, blocks),
            Form::Full | Form::Block => add_dense(network, x, selection, rows, blocks),
        }
        .map_err(failed)
    }

    /// Tensors that have a block of their own by one pass back for each output, others by rows, an output layer by its features.
    fn add_covariances(
        &self,
        posteriors: &Posteriors<T>,
        wanted: Wanted,
        out: &mut [Vec<f64>],
    ) -> Result<(), LinearError> {
        if let Some(head) = self.tangent.head.as_ref().filter(|head| head.predicts(posteriors)) {
            head.add_covariances(head.values(&self.trace), posteriors, wanted, out);
            return Ok(());
        }
        add_tapped(&self.trace, self.tangent.selection, posteriors, wanted, out).map_err(failed)?;
        for block in posteriors.blocks() {
            if let PreparedBlock::Rows { range, posteriors } = block {
                add_rows(self, range.clone(), posteriors, wanted, out)?;
            }
        }
        Ok(())
    }
}

/// `[columns, rows]`, in a buffer that is used again (one from elsewhere would wait with those of networks, batch after batch).
fn columns<T: Precision>(m: MatRef<'_, T>) -> Array<T> {
    let mut out = Array::zeros(vec![m.ncols(), m.nrows()]);
    for (column, out) in m.col_iter().zip(out.values_mut().chunks_exact_mut(m.nrows().max(1))) {
        match column.try_as_col_major() {
            Some(column) => out.copy_from_slice(column.as_slice()),
            None => out.iter_mut().zip(column.iter()).for_each(|(o, v)| *o = *v),
        }
    }
    out
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
        let features = tangent.at(x.clone()).unwrap();
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
        assert!(tangent.at(Array::zeros(vec![2, 4])).is_err());
    }
}
