//! A network's outputs.

use faer::{Mat, MatRef};
use posterior_linear::LinearError;
use posterior_linear::low_rank::{FeatureValues, FeaturesAt, LearnedFeatures};
use posterior_networks::{Array, Network, NetworkError, Precision, Selection, Trace};

/// Outputs of a network as features, in the network's precision; everything beyond is in doubles. Rows are the network's inputs in their order, whatever their shape.
#[derive(Clone, Debug)]
pub struct NetworkFeatures<T: Precision> {
    network: Network<T>,
    selection: Selection,
}

/// The rows of x as inputs of a network.
pub(super) fn inputs<T: Precision>(network: &Network<T>, x: MatRef<'_, f64>) -> Array<T> {
    let shape = [&[x.nrows()], network.graph().input_shape()].concat();
    // A buffer that was used before: those that come back at every step and are never taken would wait by the hundred.
    let mut out = Array::zeros(shape);
    for (i, row) in out.values_mut().chunks_exact_mut(x.ncols().max(1)).enumerate() {
        row.iter_mut().enumerate().for_each(|(j, v)| *v = T::from_f64(x[(i, j)]));
    }
    out
}

/// Outputs as columns, one for each row.
pub(super) fn columns<T: Precision>(outputs: &Array<T>) -> Mat<f64> {
    let (rows, width, values) = (outputs.rows(), outputs.row_len(), outputs.values());
    Mat::from_fn(width, rows, |j, i| values[i * width + j].to_f64())
}

/// The other way round.
pub(super) fn cotangents<T: Precision>(columns: MatRef<'_, f64>, like: &Array<T>) -> Array<T> {
    let mut out = Array::zeros(like.shape().to_vec());
    for (i, row) in out.values_mut().chunks_exact_mut(columns.nrows().max(1)).enumerate() {
        row.iter_mut().zip(columns.col(i).iter()).for_each(|(v, c)| *v = T::from_f64(*c));
    }
    out
}

pub(super) fn failed(error: NetworkError) -> LinearError {
    LinearError::Features(Box::new(error))
}

/// Adds the network's own gradient.
pub(super) fn add_gradient<T: Precision>(
    trace: &Trace<'_, T>,
    selection: &Selection,
    cotangents: &Array<T>,
    gradient: &mut [f64],
) -> Result<(), LinearError> {
    if selection.is_empty() {
        return Ok(());
    }
    let own = trace.vjp(selection, cotangents).map_err(failed)?;
    gradient.iter_mut().zip(own.values()).for_each(|(g, o)| *g += o.to_f64());
    Ok(())
}

/// The selected weights as doubles.
pub(super) fn weights<T: Precision>(network: &Network<T>, selection: &Selection) -> Vec<f64> {
    selection.flatten(network.parameters()).iter().map(|v| v.to_f64()).collect()
}

/// Gives a network its weights.
pub(super) fn set_weights<T: Precision>(network: &mut Network<T>, selection: &Selection, numbers: &[f64]) {
    let flat: Vec<T> = numbers.iter().map(|v| T::from_f64(*v)).collect();
    selection.assign(&flat, network.parameters_mut());
}

/// None of the weights.
pub(super) fn nothing<T: Precision>(network: &Network<T>) -> Selection {
    let all = Selection::all(network.graph());
    let none = vec![false; all.len()];
    all.masked(network.graph(), &none)
}

/// Rows whose activations take some megabytes.
pub(super) fn rows_at_once<T: Precision>(network: &Network<T>) -> usize {
    network.examples_at_once().clamp(64, 4096)
}

impl<T: Precision> NetworkFeatures<T> {
    /// All trainable weights are learned.
    pub fn new(network: Network<T>) -> Self {
        let selection = Selection::all(network.graph());
        Self { network, selection }
    }

    /// The network stays as it is: Bayesian regression on its outputs.
    pub fn frozen(network: Network<T>) -> Self {
        let selection = nothing(&network);
        Self { network, selection }
    }

    /// The network.
    pub fn network(&self) -> &Network<T> {
        &self.network
    }

    fn of(outputs: &Array<T>) -> FeatureValues {
        let features = columns(outputs);
        let variances = (0..features.ncols()).map(|i| features.col(i).squared_norm_l2()).collect();
        FeatureValues { features, variances }
    }
}

impl<T: Precision> LearnedFeatures for NetworkFeatures<T> {
    fn rank(&self) -> usize {
        self.network.graph().output_shape().iter().product()
    }

    fn inputs(&self) -> usize {
        self.network.graph().input_shape().iter().product()
    }

    fn unconstrained(&self) -> Vec<f64> {
        weights(&self.network, &self.selection)
    }

    fn set_unconstrained(&mut self, numbers: &[f64]) -> Result<(), LinearError> {
        set_weights(&mut self.network, &self.selection, numbers);
        Ok(())
    }

    fn decays(&self) -> Vec<bool> {
        vec![true; self.selection.len()]
    }

    fn rows_at_once(&self) -> usize {
        rows_at_once(&self.network)
    }

    fn bytes_of_row(&self) -> usize {
        size_of::<T>() * self.network.graph().activations() + 8 * self.rank()
    }

    fn values(&self, x: MatRef<'_, f64>) -> Result<FeatureValues, LinearError> {
        Ok(Self::of(&self.network.forward(&inputs(&self.network, x)).map_err(failed)?))
    }

    fn at<'a>(&'a self, x: MatRef<'_, f64>) -> Result<Box<dyn FeaturesAt + 'a>, LinearError> {
        let trace = self.network.trace(inputs(&self.network, x)).map_err(failed)?;
        let values = Self::of(trace.output());
        Ok(Box::new(Traced { trace, selection: &self.selection, values }))
    }

    fn clone_box(&self) -> Box<dyn LearnedFeatures> {
        Box::new(self.clone())
    }

    fn as_any(&self) -> &dyn std::any::Any {
        self
    }
}

struct Traced<'a, T: Precision> {
    trace: Trace<'a, T>,
    selection: &'a Selection,
    values: FeatureValues,
}

impl<T: Precision> FeaturesAt for Traced<'_, T> {
    fn values(&self) -> &FeatureValues {
        &self.values
    }

    /// About two forward passes.
    fn pull_back(
        &self,
        mut features: Mat<f64>,
        variances: &[f64],
        gradient: &mut [f64],
    ) -> Result<(), LinearError> {
        for (i, slope) in variances.iter().enumerate().filter(|(_, slope)| **slope != 0.0) {
            let own = self.values.features.col_as_slice(i);
            features.col_as_slice_mut(i).iter_mut().zip(own).for_each(|(a, f)| *a += 2.0 * slope * f);
        }
        let cotangents = cotangents(features.as_ref(), self.trace.output());
        add_gradient(&self.trace, self.selection, &cotangents, gradient)
    }
}
