//! What the kernel of a process around a network looks at, and the kernel of a text on that.

use crate::LaplaceError;
use crate::fixed_mean::FixedMeanKernel;
use crate::predict::{Latent, Wanted, no_inputs};
use faer::{Mat, MatRef};
use posterior_kernels::{Kernel, KernelExpression, Separable};
use posterior_linalg::Real;
use posterior_linalg::tiles::pieces;
use posterior_networks::{Array, Graph, Network, NetworkError, Precision, Selection};
use posterior_tangent::{Head, doubles};

/// The covariances at points that a kernel sees, with how many variances rounding had made negative.
type Covariances<'a, T> = dyn FnMut(&Array<T>) -> Result<(Vec<f64>, usize), LaplaceError> + 'a;

/// Where the points of a kernel come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum KernelInputs {
    /// The network's tangent.
    Tangent,
    /// Its inputs, flat.
    Inputs,
    /// The values that the last layer reads.
    Features(Head),
}

impl KernelInputs {
    /// Of a kernel.
    ///
    /// # Errors
    /// Features of a network whose last layer is not fully connected.
    pub(crate) fn of(kernel: &FixedMeanKernel, graph: &Graph) -> Result<Self, LaplaceError> {
        match kernel {
            FixedMeanKernel::Tangent => Ok(Self::Tangent),
            FixedMeanKernel::Inputs(_) => Ok(Self::Inputs),
            FixedMeanKernel::Features(_) => {
                let last = Selection::last_layer(graph)?;
                let head = Head::of(graph, &last).ok_or_else(|| LaplaceError::Request(no_features(graph)))?;
                Ok(Self::Features(head))
            }
        }
    }

    /// Numbers of one point.
    pub(crate) fn width(&self, graph: &Graph) -> usize {
        match self {
            Self::Features(head) => head.features,
            _ => graph.input_shape().iter().product(),
        }
    }

    /// Latent predictions of inputs, some at a time: means are the network's outputs bit for bit, and `covariances` finds the covariances at points that a kernel sees, with how many variances rounding had made negative.
    pub(crate) fn latent<T: Precision>(
        &self,
        network: &Network<T>,
        x: &Array<T>,
        wanted: Wanted,
        covariances: &mut Covariances<'_, T>,
    ) -> Result<Latent, LaplaceError> {
        let mut latent = no_inputs(network.graph().output_shape().iter().product(), wanted);
        for range in pieces(x.rows(), network.examples_at_once()) {
            let (mean, seen) = self.look(network, x.slice_rows(range))?;
            latent.mean.extend(doubles(mean.values()));
            let (covariance, clipped) = covariances(&seen)?;
            latent.covariance.extend(covariance);
            latent.clipped += clipped;
        }
        Ok(latent)
    }

    /// The points that a kernel sees at inputs, in rows.
    pub(crate) fn points<T: Precision, U: Real>(
        &self,
        network: &Network<T>,
        x: &Array<T>,
    ) -> Result<Mat<U>, NetworkError> {
        let mut seen = Mat::zeros(x.rows(), self.width(network.graph()));
        for range in pieces(x.rows(), network.examples_at_once()) {
            let (_, piece) = self.look(network, x.slice_rows(range.clone()))?;
            seen.as_mut().subrows_mut(range.start, range.len()).copy_from(matrix::<T, U>(&piece));
        }
        Ok(seen)
    }

    /// Outputs of some inputs, bit for bit as [`Network::forward`] gives them, and the points that a kernel of rows sees there (the inputs for the tangent).
    pub(crate) fn look<T: Precision>(
        &self,
        network: &Network<T>,
        x: Array<T>,
    ) -> Result<(Array<T>, Array<T>), NetworkError> {
        match self {
            Self::Tangent | Self::Inputs => Ok((network.forward(&x)?, x)),
            Self::Features(head) => match head.input {
                Some(node) => network.forward_with(&x, node),
                None => Ok((network.forward(&x)?, x)),
            },
        }
    }
}

/// Which layers there are, for someone who asked for features that are not there.
fn no_features(graph: &Graph) -> String {
    let layers: Vec<&str> = graph
        .nodes()
        .iter()
        .filter(|node| !node.parameters.is_empty())
        .map(|node| node.name.as_str())
        .collect();
    format!(
        "a kernel on features needs a network whose output is a fully connected layer of a vector; the layers with weights are: {}. Take a kernel on the inputs, or the tangent kernel",
        layers.join(", ")
    )
}

/// Rows as a matrix.
pub(crate) fn matrix<T: Precision, U: Real>(rows: &Array<T>) -> Mat<U> {
    let (count, width) = (rows.rows(), rows.row_len());
    let values = MatRef::from_row_major_slice(rows.values(), count, width);
    Mat::from_fn(count, width, |i, j| U::from_f64(values[(i, j)].to_f64()))
}

/// Rows of numbers as inputs of a network.
pub(crate) fn as_inputs(rows: &Mat<f64>, graph: &Graph) -> Array<f64> {
    let shape = [&[rows.nrows()], graph.input_shape()].concat();
    let by_rows = (0..rows.nrows()).flat_map(|i| (0..rows.ncols()).map(move |j| (i, j)));
    Array::new(shape, by_rows.map(|at| rows[at]).collect())
}

/// The kernel of a text on points of so many numbers, for C outputs.
///
/// # Errors
/// A text that is no kernel, or one with white noise, which belongs to the likelihood.
pub(crate) fn separable<T: Real>(
    text: &str,
    width: usize,
    outputs: usize,
    correlated: bool,
) -> Result<Separable<T>, LaplaceError> {
    let request = |e: String| LaplaceError::Request(format!("the kernel `{text}`: {e}"));
    let expression: KernelExpression = text.parse().map_err(|e| request(format!("{e}")))?;
    let columns: Vec<String> = (0..width).map(|i| format!("x{i}")).collect();
    let kernel: Box<dyn Kernel<T>> = expression.build(&columns).map_err(|e| request(format!("{e}")))?;
    if kernel.segments().iter().any(|s| s.name.starts_with("white")) {
        return Err(request("white noise belongs to the likelihood: leave it out".into()));
    }
    Ok(match correlated {
        true => Separable::correlated(kernel, outputs),
        false => Separable::independent(kernel, outputs),
    })
}

/// Rows that the first lengthscale is found among.
pub(crate) const SAMPLED: usize = 10_000;
