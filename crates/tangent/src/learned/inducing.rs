//! Inducing points, behind a network or at the rows themselves.

use super::embedding::{self, NetworkEmbedding};
use faer::linalg::matmul::triangular::BlockStructure::Rectangular;
use faer::{Mat, MatRef};
use posterior_kernels::inducing::Whitening;
use posterior_kernels::{Kernel, Request, diagonal, pullback, pullback_diagonal};
use posterior_linalg::cholesky::JitterPolicy;
use posterior_linalg::triangular::lower_product;
use posterior_linear::LinearError;
use posterior_linear::low_rank::{FeatureValues, FeaturesAt, LearnedFeatures};
use posterior_networks::{Network, Precision};

/// Always added to the diagonal of `K_ZZ`, relative to its mean.
const JITTER: f64 = 1e-6;

/// Whitened features `L⁻¹ k(Z, g(x))` of inducing points Z, which live where the network g ends: with `k(x, x)` known, what they cannot say is known, too. Without a network g is the identity.
#[derive(Debug)]
pub struct DeepInducing<T: Precision> {
    network: Option<NetworkEmbedding<T>>,
    kernel: Box<dyn Kernel<f64>>,
    /// m x h.
    points: Mat<f64>,
    whitening: Whitening,
    inputs: usize,
}

impl<T: Precision> Clone for DeepInducing<T> {
    fn clone(&self) -> Self {
        Self {
            network: self.network.clone(),
            kernel: self.kernel.clone_box(),
            points: self.points.clone(),
            whitening: self.whitening.clone(),
            inputs: self.inputs,
        }
    }
}

fn whitening(kernel: &dyn Kernel<f64>, points: MatRef<'_, f64>) -> Result<Whitening, LinearError> {
    Ok(Whitening::new(kernel, points, JITTER, JitterPolicy::default())?)
}

impl<T: Precision> DeepInducing<T> {
    /// A kernel over h numbers with inducing points (m x h), behind a network with h outputs; without one, over rows of h numbers.
    ///
    /// # Errors
    /// [`LinearError::Shape`] when widths differ, [`LinearError::Cholesky`] when `K_ZZ` cannot be factored.
    pub fn new(
        network: Option<Network<T>>,
        kernel: Box<dyn Kernel<f64>>,
        points: Mat<f64>,
    ) -> Result<Self, LinearError> {
        let network = network.map(NetworkEmbedding::new);
        let outputs = network.as_ref().map_or(points.ncols(), NetworkEmbedding::outputs);
        if outputs != points.ncols() {
            let (what, expected, found) = ("columns of the inducing points", outputs, points.ncols());
            return Err(LinearError::Shape { what, expected, found });
        }
        let inputs = network.as_ref().map_or(outputs, NetworkEmbedding::row_inputs);
        let whitening = whitening(&*kernel, points.as_ref())?;
        Ok(Self { network, kernel, points, whitening, inputs })
    }

    /// The same with the network as it is: kernel and inducing points are learned.
    pub fn with_frozen_network(mut self) -> Self {
        self.network = self.network.map(NetworkEmbedding::kept);
        self
    }

    /// The network, if there is one.
    pub fn network(&self) -> Option<&Network<T>> {
        self.network.as_ref().map(NetworkEmbedding::network)
    }

    /// The kernel behind it.
    pub fn kernel(&self) -> &dyn Kernel<f64> {
        &*self.kernel
    }

    /// Inducing points, m x h.
    pub fn points(&self) -> MatRef<'_, f64> {
        self.points.as_ref()
    }

    /// What was added to the diagonal of `K_ZZ`, relative to its mean.
    pub fn relative_jitter(&self) -> f64 {
        self.whitening.relative_jitter
    }

    fn of(&self, x: MatRef<'_, f64>) -> FeatureValues {
        let features = self.whitening.features(&*self.kernel, self.points.as_ref(), x);
        FeatureValues { features, variances: diagonal(&*self.kernel, x) }
    }

    fn weights(&self) -> usize {
        self.network.as_ref().map_or(0, NetworkEmbedding::learned)
    }
}

impl<T: Precision> LearnedFeatures for DeepInducing<T> {
    fn rank(&self) -> usize {
        self.points.nrows()
    }

    fn inputs(&self) -> usize {
        self.inputs
    }

    /// Weights of the network, then the kernel's, then inducing points by columns.
    fn unconstrained(&self) -> Vec<f64> {
        let mut out = self.network.as_ref().map_or_else(Vec::new, NetworkEmbedding::weights);
        out.extend(self.kernel.unconstrained());
        (0..self.points.ncols()).for_each(|j| out.extend_from_slice(self.points.col_as_slice(j)));
        out
    }

    /// Cost `m³/3`.
    fn set_unconstrained(&mut self, numbers: &[f64]) -> Result<(), LinearError> {
        let (of_network, rest) = numbers.split_at(self.weights());
        let (of_kernel, points) = rest.split_at(self.kernel.unconstrained().len());
        if let Some(network) = &mut self.network {
            network.set_weights(of_network);
        }
        self.kernel.set_unconstrained(of_kernel);
        let (m, h) = self.points.shape();
        self.points.copy_from(MatRef::from_column_major_slice(points, m, h));
        self.whitening = whitening(&*self.kernel, self.points.as_ref())?;
        Ok(())
    }

    fn decays(&self) -> Vec<bool> {
        let own = self.weights();
        let all = own + self.kernel.unconstrained().len() + self.points.nrows() * self.points.ncols();
        (0..all).map(|i| i < own).collect()
    }

    fn rows_at_once(&self) -> usize {
        self.network.as_ref().map_or(2048, NetworkEmbedding::some_rows)
    }

    fn bytes_of_row(&self) -> usize {
        let own = self.network.as_ref().map_or(0, NetworkEmbedding::activation_bytes);
        own + 8 * (self.rank() + self.points.ncols())
    }

    fn values(&self, x: MatRef<'_, f64>) -> Result<FeatureValues, LinearError> {
        match &self.network {
            Some(network) => Ok(self.of(network.columns(x)?.transpose().to_owned().as_ref())),
            None => Ok(self.of(x)),
        }
    }

    fn at<'a>(&'a self, x: MatRef<'_, f64>) -> Result<Box<dyn FeaturesAt + 'a>, LinearError> {
        let (trace, embedded) = match &self.network {
            Some(network) => {
                let trace = network.trace(x)?;
                let embedded = trace.columns().transpose().to_owned();
                (Some(trace), embedded)
            }
            None => (None, x.to_owned()),
        };
        let values = self.of(embedded.as_ref());
        Ok(Box::new(Traced { of: self, trace, embedded, values }))
    }

    fn clone_box(&self) -> Box<dyn LearnedFeatures> {
        Box::new(self.clone())
    }

    fn as_any(&self) -> &dyn std::any::Any {
        self
    }
}

struct Traced<'a, T: Precision> {
    of: &'a DeepInducing<T>,
    trace: Option<embedding::Traced<'a, T>>,
    /// b x h.
    embedded: Mat<f64>,
    values: FeatureValues,
}

impl<T: Precision> FeaturesAt for Traced<'_, T> {
    fn values(&self) -> &FeatureValues {
        &self.values
    }

    /// Cost `3 b m²` and `3 m³` flops, the kernel's pullback, and about two passes through the network.
    fn pull_back(
        &self,
        mut features: Mat<f64>,
        variances: &[f64],
        gradient: &mut [f64],
    ) -> Result<(), LinearError> {
        let DeepInducing { kernel, points, whitening, .. } = self.of;
        let (kernel, z, x) = (&**kernel, points.as_ref(), self.embedded.as_ref());
        let own = (self.values.features.transpose(), Rectangular);
        let outer = lower_product((features.as_ref(), Rectangular), own, 1.0);
        let through_factor = whitening.pull_back_factor(kernel, z, outer, true);
        whitening.cholesky.solve_factor_transpose_in_place(features.as_mut());
        let wanted = Request { parameters: true, x: true, z: self.trace.is_some() };
        let through_rows = pullback(kernel, z, x, features.as_ref(), wanted);
        let wanted = Request { parameters: true, x: self.trace.is_some(), z: false };
        let of_diagonal = pullback_diagonal(kernel, x, variances, wanted);

        let weights = self.of.weights();
        let parameters: Vec<f64> = through_factor
            .parameters
            .iter()
            .zip(&through_rows.parameters)
            .zip(&of_diagonal.parameters)
            .map(|((a, b), c)| a + b + c)
            .collect();
        let chained = kernel.chain(&kernel.unconstrained(), &parameters);
        let start = weights + chained.len();
        gradient[weights..start].iter_mut().zip(chained).for_each(|(g, c)| *g += c);
        for part in [&through_factor.x, &through_rows.x].into_iter().flatten() {
            let columns = (0..part.ncols()).flat_map(|j| part.col_as_slice(j));
            gradient[start..].iter_mut().zip(columns).for_each(|(g, p)| *g += p);
        }
        if let Some(trace) = &self.trace {
            let mut adjoint = through_rows.z.unwrap_or_else(|| Mat::zeros(x.nrows(), x.ncols()));
            if let Some(part) = of_diagonal.x {
                adjoint += part;
            }
            trace.add_gradient(adjoint.transpose(), &mut gradient[..weights])?;
        }
        Ok(())
    }
}
