//! The Jacobian of a picture in the network's weights, by products.

use super::filters::WeightPrior;
use crate::TomographyError;
use faer::{Mat, MatMut, MatRef};
use posterior_linalg::operator::{LinearOperator, check_apply, check_apply_transpose};
use posterior_networks::{Array, Graph, Network, Precision, Selection, Trace};
use posterior_optim::Signal;

/// Bytes of activations that products may hold at a time.
const BYTES: usize = 1 << 26;

/// What a sweep takes for each value that is alive in it: the value itself, what is made of it and waits to be used again. Peaks of networks with skips are three and a half to four times their live values.
const SWEEP: u64 = 5;

/// Vectors that go through the network at a time at least: one alone costs nearly twice its share of four.
const LEAST: usize = 4;

/// `phi` (pixels x weights): the Jacobian at the trained weights of the picture that a network makes of its one input. Every activation is kept, so that a product is one linear sweep.
///
/// Cost of a product with k vectors: about 2 k forward passes, either way; memory the activations of a few vectors at a time.
pub struct ImageTangent<'a, T: Precision> {
    trace: Trace<'a, T>,
    selection: &'a Selection,
    at_once: usize,
    pixels: usize,
}

impl<'a, T: Precision> ImageTangent<'a, T> {
    /// Of a trained network at its input (one example).
    ///
    /// # Errors
    /// [`TomographyError::Network`].
    pub fn new(
        network: &'a Network<T>,
        input: Array<T>,
        selection: &'a Selection,
    ) -> Result<Self, TomographyError> {
        let trace = network.trace(input)?;
        let pixels = trace.output().len();
        Ok(Self { trace, selection, at_once: at_once::<T>(network.graph()), pixels })
    }

    /// Bytes that it and its products take at most: what is kept of the one forward pass, and the sweeps of as many vectors as go through at a time.
    pub fn bytes(graph: &Graph) -> u64 {
        let (each, sweeps) = (size_of::<T>() as u64, at_once::<T>(graph) as u64);
        let kept = (graph.activations() as u64).saturating_mul(2 * each);
        let swept = (graph.live_values() as u64).saturating_mul(each).saturating_mul(SWEEP * sweeps);
        let weights = (graph.trainable() as u64).saturating_mul(2 * each * sweeps);
        kept.saturating_add(swept).saturating_add(weights)
    }

    /// The picture `g(v)` (pixels).
    pub fn picture(&self) -> Vec<f64> {
        self.trace.output().values().iter().map(|v| v.to_f64()).collect()
    }

    /// Its shape, `[height, width]` or `[depth, height, width]`: that of the output without examples and channels.
    pub fn picture_shape(&self) -> Vec<usize> {
        self.trace.output().shape()[2..].to_vec()
    }

    /// The weights v of which it is the tangent (d).
    pub fn weights(&self) -> Vec<f64> {
        self.selection.flatten(self.trace.network().parameters()).iter().map(|v| v.to_f64()).collect()
    }

    /// The weights that move.
    pub fn selection(&self) -> &'a Selection {
        self.selection
    }

    /// Vectors that go through the network at a time.
    pub fn at_once(&self) -> usize {
        self.at_once
    }

    /// `phi W` (pixels x k) of weights of d x k, whose columns `entry` gives.
    pub(crate) fn push(&self, k: usize, entry: impl Fn(usize, usize) -> T, mut out: impl FnMut(usize, &[T])) {
        let d = self.selection.len();
        for start in (0..k).step_by(self.at_once) {
            let width = self.at_once.min(k - start);
            let mut block = Array::zeros(vec![width, d]);
            for (j, row) in block.values_mut().chunks_exact_mut(d).enumerate() {
                row.iter_mut().enumerate().for_each(|(i, v)| *v = entry(i, start + j));
            }
            let moved = self.trace.jvp(self.selection, &block);
            let moved = moved.unwrap_or_else(|e| unreachable!("tangents of a traced network: {e}"));
            for (j, image) in moved.values().chunks_exact(self.pixels).enumerate() {
                out(start + j, image);
            }
        }
    }

    /// `phi' X` (d x k) of pictures of pixels x k, likewise.
    pub(crate) fn pull(&self, k: usize, entry: impl Fn(usize, usize) -> T, mut out: impl FnMut(usize, &[T])) {
        let d = self.selection.len();
        for start in (0..k).step_by(self.at_once) {
            let width = self.at_once.min(k - start);
            let mut shape = self.trace.output().shape().to_vec();
            shape[0] = width;
            let mut block = Array::zeros(shape);
            for (j, image) in block.values_mut().chunks_exact_mut(self.pixels).enumerate() {
                image.iter_mut().enumerate().for_each(|(i, v)| *v = entry(i, start + j));
            }
            let pulled = self.trace.vjp(self.selection, &block);
            let pulled = pulled.unwrap_or_else(|e| unreachable!("cotangents of a traced network: {e}"));
            for (j, weights) in pulled.values().chunks_exact(d).enumerate() {
                out(start + j, weights);
            }
        }
    }

    /// Rows of `R phi` as columns (d x rows) for directions R' of pixels x rows: the transposed Jacobian where R is the identity. Memory `d x rows` numbers.
    pub fn rows(&self, directions: MatRef<'_, f64>) -> Mat<T> {
        let mut rows = Mat::zeros(self.selection.len(), directions.ncols());
        self.pull(
            directions.ncols(),
            |i, j| T::from_f64(directions[(i, j)]),
            |j, weights| rows.col_as_slice_mut(j).copy_from_slice(weights),
        );
        rows
    }

    /// The same for `count` directions that are made when they are needed, a few at a time; `watch` sees how many are done, and may stop it.
    ///
    /// # Errors
    /// [`TomographyError::Interrupted`].
    pub fn rows_along(
        &self,
        count: usize,
        direction: &dyn Fn(usize) -> Mat<f64>,
        watch: &mut dyn FnMut(usize) -> Signal,
    ) -> Result<Mat<T>, TomographyError> {
        let mut out = Mat::zeros(self.selection.len(), count);
        for start in (0..count).step_by(self.at_once) {
            let width = self.at_once.min(count - start);
            let mut directions = Mat::zeros(self.pixels, width);
            for j in 0..width {
                directions.as_mut().subcols_mut(j, 1).copy_from(direction(start + j));
            }
            out.as_mut().subcols_mut(start, width).copy_from(self.rows(directions.as_ref()));
            if watch(start + width) == Signal::Stop {
                return Err(TomographyError::Interrupted);
            }
        }
        Ok(out)
    }
}

impl<T: Precision> LinearOperator<f64> for ImageTangent<'_, T> {
    fn shape(&self) -> (usize, usize) {
        (self.pixels, self.selection.len())
    }

    fn apply(&self, input: MatRef<'_, f64>, mut output: MatMut<'_, f64>) {
        check_apply(self.shape(), input, &output);
        self.push(input.ncols(), |i, j| T::from_f64(input[(i, j)]), |j, image| fill(&mut output, j, image));
    }

    fn apply_transpose(&self, input: MatRef<'_, f64>, mut output: MatMut<'_, f64>) {
        check_apply_transpose(self.shape(), input, &output);
        self.pull(input.ncols(), |i, j| T::from_f64(input[(i, j)]), |j, own| fill(&mut output, j, own));
    }
}

/// Vectors that go through a network at a time.
fn at_once<T>(graph: &Graph) -> usize {
    (BYTES / (graph.live_values().max(1) * size_of::<T>())).clamp(LEAST, 64)
}

fn fill<T: Precision>(output: &mut MatMut<'_, f64>, column: usize, values: &[T]) {
    let own = output.as_mut().col_mut(column);
    own.iter_mut().zip(values).for_each(|(o, v)| *o = v.to_f64());
}

/// `phi A^-1/2` (pixels x d): the root of the prior `K = phi A^-1 phi'` over pictures.
pub struct PriorRoot<'a, T: Precision> {
    tangent: &'a ImageTangent<'a, T>,
    prior: WeightPrior,
}

impl<'a, T: Precision> PriorRoot<'a, T> {
    /// Of a tangent and a prior over its weights.
    ///
    /// # Errors
    /// [`TomographyError::Shape`] when they are not of the same weights.
    pub fn new(tangent: &'a ImageTangent<'a, T>, prior: WeightPrior) -> Result<Self, TomographyError> {
        crate::error::same_count("weights of the prior", tangent.selection.len(), prior.dimension())?;
        Ok(Self { tangent, prior })
    }

    /// The prior over the weights.
    pub fn prior(&self) -> &WeightPrior {
        &self.prior
    }
}

impl<T: Precision> LinearOperator<f64> for PriorRoot<'_, T> {
    fn shape(&self) -> (usize, usize) {
        self.tangent.shape()
    }

    fn apply(&self, input: MatRef<'_, f64>, output: MatMut<'_, f64>) {
        let mut weights = input.to_owned();
        self.prior.apply_root(weights.as_mut());
        self.tangent.apply(weights.as_ref(), output);
    }

    fn apply_transpose(&self, input: MatRef<'_, f64>, mut output: MatMut<'_, f64>) {
        let mut weights = self.tangent.multiply_transpose(input);
        self.prior.apply_root_transpose(weights.as_mut());
        output.copy_from(weights);
    }
}
