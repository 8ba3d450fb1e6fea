//! A network's outputs as a map that is learned, with the way back to its weights.

use faer::{Mat, MatRef};
use posterior_linalg::tiles::pieces;
use posterior_linear::LinearError;
use posterior_linear::embedding::{EmbeddedAt, Embedding};
use posterior_networks::{Array, Network, NetworkError, Precision, Selection, Trace};

/// What a network makes of rows, in its own precision, in doubles; rows are the network's inputs in their order, whatever their shape. A kernel may act on it
/// ([`Embedding`], [`DeepInducing`](super::DeepInducing)), or it may be features itself ([`NetworkFeatures`](super::NetworkFeatures)).
#[derive(Clone, Debug)]
pub struct NetworkEmbedding<T: Precision> {
    network: Network<T>,
    selection: Selection,
}

/// Outputs of some rows, one column for each, and the passes that they came from.
pub(super) struct Traced<'a, T: Precision> {
    of: &'a NetworkEmbedding<T>,
    trace: Trace<'a, T>,
}

impl<T: Precision> NetworkEmbedding<T> {
    /// All trainable weights are learned.
    pub fn new(network: Network<T>) -> Self {
        let selection = Selection::all(network.graph());
        Self { network, selection }
    }

    /// The network stays as it is.
    pub fn frozen(network: Network<T>) -> Self {
        Self::new(network).kept()
    }

    /// The same with the network as it is.
    pub(super) fn kept(mut self) -> Self {
        let none = vec![false; self.selection.len()];
        self.selection = self.selection.masked(self.network.graph(), &none);
        self
    }

    /// The network.
    pub fn network(&self) -> &Network<T> {
        &self.network
    }

    /// Numbers of a row.
    pub(super) fn row_inputs(&self) -> usize {
        self.network.graph().input_shape().iter().product()
    }

    /// Numbers that are made of it.
    pub(super) fn outputs(&self) -> usize {
        self.network.graph().output_shape().iter().product()
    }

    /// How many weights are learned.
    pub(super) fn learned(&self) -> usize {
        self.selection.len()
    }

    /// The learned weights as doubles.
    pub(super) fn weights(&self) -> Vec<f64> {
        self.selection.flatten(self.network.parameters()).iter().map(|v| v.to_f64()).collect()
    }

    /// Gives the network its weights.
    pub(super) fn set_weights(&mut self, numbers: &[f64]) {
        let flat: Vec<T> = numbers.iter().map(|v| T::from_f64(*v)).collect();
        self.selection.assign(&flat, self.network.parameters_mut());
    }

    /// Rows whose activations take some megabytes.
    pub(super) fn some_rows(&self) -> usize {
        self.network.examples_at_once().clamp(64, 4096)
    }

    /// Bytes of the values of all nodes for one row.
    pub(super) fn activation_bytes(&self) -> usize {
        size_of::<T>() * self.network.graph().activations()
    }

    /// The rows of x as inputs of the network.
    fn inputs_of(&self, x: MatRef<'_, f64>) -> Result<Array<T>, LinearError> {
        if x.ncols() != self.row_inputs() {
            let (what, expected, found) = ("columns of the inputs", self.row_inputs(), x.ncols());
            return Err(LinearError::Shape { what, expected, found });
        }
        let shape = [&[x.nrows()], self.network.graph().input_shape()].concat();
        // A buffer that was used before: those that come back at every step and are never taken would wait by the hundred.
        let mut out = Array::zeros(shape);
        for (i, row) in out.values_mut().chunks_exact_mut(x.ncols().max(1)).enumerate() {
            row.iter_mut().enumerate().for_each(|(j, v)| *v = T::from_f64(x[(i, j)]));
        }
        Ok(out)
    }

    /// Outputs of the rows of x, h x b: one column for each row.
    pub(super) fn columns(&self, x: MatRef<'_, f64>) -> Result<Mat<f64>, LinearError> {
        Ok(columns(&self.network.forward(&self.inputs_of(x)?).map_err(failed)?))
    }

    /// The same with the way back.
    pub(super) fn trace(&self, x: MatRef<'_, f64>) -> Result<Traced<'_, T>, LinearError> {
        Ok(Traced { of: self, trace: self.network.trace(self.inputs_of(x)?).map_err(failed)? })
    }
}

impl<T: Precision> Traced<'_, T> {
    /// Outputs, h x b.
    pub(super) fn columns(&self) -> Mat<f64> {
        columns(self.trace.output())
    }

    /// Adds the gradient in the learned weights of what slopes in the outputs (h x b) say. About two passes through the network.
    pub(super) fn add_gradient(
        &self,
        slopes: MatRef<'_, f64>,
        gradient: &mut [f64],
    ) -> Result<(), LinearError> {
        let selection = &self.of.selection;
        if selection.is_empty() {
            return Ok(());
        }
        let own = self.trace.vjp(selection, &self.cotangents(slopes)).map_err(failed)?;
        gradient.iter_mut().zip(own.values()).for_each(|(g, o)| *g += o.to_f64());
        Ok(())
    }

    /// What these slopes say of the rows, D x b. About one pass through the network.
    pub(super) fn of_inputs(&self, slopes: MatRef<'_, f64>) -> Result<Mat<f64>, LinearError> {
        Ok(columns(&self.trace.vjp_input(&self.cotangents(slopes)).map_err(failed)?))
    }

    /// Slopes in the outputs (h x b) as the network takes them.
    fn cotangents(&self, slopes: MatRef<'_, f64>) -> Array<T> {
        let mut out = Array::zeros(self.trace.output().shape().to_vec());
        for (i, row) in out.values_mut().chunks_exact_mut(slopes.nrows().max(1)).enumerate() {
            row.iter_mut().zip(slopes.col(i).iter()).for_each(|(v, c)| *v = T::from_f64(*c));
        }
        out
    }
}

/// Outputs as columns, one for each row.
fn columns<T: Precision>(outputs: &Array<T>) -> Mat<f64> {
    let (rows, width, values) = (outputs.rows(), outputs.row_len(), outputs.values());
    Mat::from_fn(width, rows, |j, i| values[i * width + j].to_f64())
}

fn failed(error: NetworkError) -> LinearError {
    LinearError::Features(Box::new(error))
}

impl<T: Precision> Embedding for NetworkEmbedding<T> {
    fn inputs(&self) -> usize {
        self.row_inputs()
    }

    fn width(&self) -> usize {
        self.outputs()
    }

    fn unconstrained(&self) -> Vec<f64> {
        self.weights()
    }

    fn set_unconstrained(&mut self, numbers: &[f64]) {
        self.set_weights(numbers);
    }

    fn rows_at_once(&self) -> usize {
        self.some_rows()
    }

    fn bytes_of_row(&self) -> usize {
        self.activation_bytes() + size_of::<f64>() * self.outputs()
    }

    fn embedded(&self, x: MatRef<'_, f64>) -> Result<Mat<f64>, LinearError> {
        let mut out = Mat::zeros(x.nrows(), self.outputs());
        for rows in pieces(x.nrows(), self.some_rows()) {
            let block = self.columns(x.subrows(rows.start, rows.len()))?;
            out.as_mut().subrows_mut(rows.start, rows.len()).copy_from(block.transpose());
        }
        Ok(out)
    }

    fn at<'a>(&'a self, x: MatRef<'_, f64>) -> Result<Box<dyn EmbeddedAt + 'a>, LinearError> {
        let traced = self.trace(x)?;
        let embedded = traced.columns().transpose().to_owned();
        Ok(Box::new(Behind { traced, embedded }))
    }

    fn clone_box(&self) -> Box<dyn Embedding> {
        Box::new(self.clone())
    }

    fn as_any(&self) -> &dyn std::any::Any {
        self
    }
}

/// Rows behind a network.
struct Behind<'a, T: Precision> {
    traced: Traced<'a, T>,
    /// b x h.
    embedded: Mat<f64>,
}

impl<T: Precision> EmbeddedAt for Behind<'_, T> {
    fn embedded(&self) -> MatRef<'_, f64> {
        self.embedded.as_ref()
    }

    fn pull_back(&self, slopes: MatRef<'_, f64>, gradient: &mut [f64]) -> Result<(), LinearError> {
        self.traced.add_gradient(slopes.transpose(), gradient)
    }

    fn pull_back_inputs(&self, slopes: MatRef<'_, f64>) -> Result<Mat<f64>, LinearError> {
        Ok(self.traced.of_inputs(slopes.transpose())?.transpose().to_owned())
    }
}
