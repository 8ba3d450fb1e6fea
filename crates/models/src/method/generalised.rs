//! Generalised variational inference: a process whose mean and covariance are independent of each other, under any likelihood.

use super::embedded::embedding_kernel;
use super::{Read, blocks_of_points, closed_form_rows, dense_seconds, draws, row_effort};
use crate::network::{NETWORK, read_network, write_network};
use crate::predictor::{Samples, StreamOf};
use crate::{Batch, Cost, Latent, ModelError, Predictor, Prior, TableSource, VarianceMethod, Want};
use faer::MatRef;
use posterior_gp::exact::{ExactGp, ExactPosterior};
use posterior_gp::generalised::{
    Coordinates, Family, GeneralisedGp, Mode, ReferenceProcess, VariationalKernel, VariationalMean,
};
use posterior_gp::{Observations, Posterior};
use posterior_kernels::{Kernel, KernelExpression};
use posterior_likelihoods::{Gaussian, Likelihood};
use posterior_linalg::cholesky::Cholesky;
use posterior_networks::Network;
use posterior_optim::Parameters;
use posterior_store::{StoreError, Tensors};
use posterior_tangent::{MappedKernel, NetworkEmbedding};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::any::Any;
use std::sync::Arc;

pub(crate) const KIND: &str = "mean and covariance";

/// What a file has of it besides arrays.
#[derive(Serialize, Deserialize)]
struct Settings {
    /// Inducing points of the process that regularises.
    points: usize,
    /// The network before its kernel.
    kernel: Option<KernelNetwork>,
    mode: Mode,
    family: Family,
    coordinates: Coordinates,
    /// The network that is its mean.
    mean: Option<String>,
}

/// A network behind which a kernel acts.
#[derive(Serialize, Deserialize)]
struct KernelNetwork {
    architecture: String,
    /// Whether its weights stayed as they were.
    kept: bool,
}

/// Weights of the network of the mean.
fn mean_weights(posterior: &GeneralisedGp) -> f64 {
    match posterior.mean() {
        VariationalMean::Embedding(map) => map.unconstrained().len() as f64,
        _ => 0.0,
    }
}

impl Predictor for GeneralisedGp {
    fn latent(&self, x: Batch<'_>, want: &Want) -> Result<Latent, ModelError> {
        let x = closed_form_rows(x, want)?;
        Ok(GeneralisedGp::latent(self, x, None)?.into())
    }

    fn samples(&self, x: MatRef<'_, f64>, count: usize, stream: StreamOf<'_>) -> Samples {
        draws(self, self.latents(), (x, count), stream)
    }

    fn support(&self) -> usize {
        self.reference(0).rank()
    }

    fn cost(&self, rows: usize) -> Cost {
        let (n, m) = (self.support() as u64, rows as u64);
        let square = (n * n) as f64;
        if self.noise_variance().is_none() {
            return blocks_of_points(rows, self.support(), self.latents() as f64 * square);
        }
        let bytes = 48 * m.min(1024).saturating_mul(n);
        Cost { bytes, flops: m as f64 * (3.0 * square + 2.0 * mean_weights(self)) }
    }

    fn effort(&self, inputs: usize) -> [f64; 2] {
        let (n, c) = (self.support() as f64, self.latents() as f64);
        let row = row_effort(self.support(), inputs);
        let both = match self.noise_variance() {
            Some(_) => row + self.cost(1).flops,
            None => c * (row + 3.0 * n * n),
        };
        [both, both]
    }

    fn seconds(&self, rows: usize, _: VarianceMethod) -> Option<f64> {
        let (m, n, reference) = (rows as f64, self.support() as f64, self.reference(0));
        let flops = m * (3.0 * n * n + 2.0 * mean_weights(self));
        Some(dense_seconds(reference.kernel(), reference.inducing(), 2.0 * m * n, flops))
    }

    fn kind(&self) -> &'static str {
        KIND
    }

    fn write(&self, out: &mut Tensors) -> Result<Value, StoreError> {
        let reference = self.reference(0);
        let exact = reference.posterior();
        out.insert_matrix("inducing_inputs", reference.inducing());
        out.insert_matrix("inducing_targets", exact.data().targets());
        if let Some(noise) = exact.data().noise_variances() {
            out.insert_vector("inducing_noise", noise);
        }
        out.insert_vector("prior_parameters", &exact.model().values());
        let kernel = write_kernel(exact.model().kernel(), out)?;
        out.insert_triangle("prior_factor", exact.cholesky().factor());
        out.insert_matrix("prior_weights", exact.weights());
        out.insert_triangle("factor", reference.whitening().cholesky.factor());
        for (c, kernel) in self.kernels().iter().enumerate() {
            out.insert_vector(kernel_name(c), &kernel.values());
        }
        out.insert_vector("tempering", self.tempering());
        out.insert_vector("likelihood", &self.likelihood().values());
        let mut mean = None;
        match self.mean() {
            VariationalMean::Prior => {}
            VariationalMean::Constant(values) => out.insert_vector("mean", values),
            VariationalMean::Inducing(weights) => out.insert_matrix("mean", weights.as_ref()),
            VariationalMean::Embedding(map) => {
                let embedding = map.as_any().downcast_ref::<NetworkEmbedding<f32>>();
                let network = embedding.map(|own| write_network(NETWORK, own.network(), out));
                mean = Some(network.transpose()?.unwrap_or_default());
            }
        }
        let own = Settings {
            points: self.support(),
            kernel,
            mode: reference.mode(),
            family: self.kernels().first().map(VariationalKernel::family).unwrap_or_default(),
            coordinates: self.coordinates(),
            mean,
        };
        Ok(posterior_store::to_value(&own)?)
    }

    fn latents(&self) -> usize {
        GeneralisedGp::functions(self)
    }

    fn process(&self) -> Option<&dyn Posterior> {
        self.noise_variance()?;
        Some(self)
    }

    fn noise_variance(&self) -> Option<f64> {
        self.likelihood().shared_noise_variance()
    }

    fn prior(&self) -> Option<Prior<'_>> {
        Some(Prior::Double(self.reference(0).kernel()))
    }
}

/// Prefix of the tensors of the network before its kernel.
const KERNEL_NETWORK: &str = "kernel_network.";

/// The kernel of this text behind a network.
pub(crate) fn kernel_behind(
    network: Network<f64>,
    text: &KernelExpression,
    kept: bool,
) -> Result<MappedKernel, ModelError> {
    let outputs = network.graph().output_shape().iter().product();
    let kernel =
        MappedKernel::new(embedding_kernel(text, outputs)?, Box::new(NetworkEmbedding::new(network)));
    Ok(if kept { kernel.with_map_kept() } else { kernel })
}

/// Adds its network's arrays, if it has one: weights stand among hyperparameters as well, whatever else a network knows only here.
fn write_kernel(kernel: &dyn Kernel<f64>, out: &mut Tensors) -> Result<Option<KernelNetwork>, StoreError> {
    let kernel: &dyn Any = kernel;
    let Some(kernel) = kernel.downcast_ref::<MappedKernel>() else { return Ok(None) };
    let Some(embedding) = kernel.map().as_any().downcast_ref::<NetworkEmbedding<f64>>() else {
        return Ok(None);
    };
    let architecture = write_network(KERNEL_NETWORK, embedding.network(), out)?;
    Ok(Some(KernelNetwork { architecture, kept: kernel.keeps_map() }))
}

/// The kernel of a file, with the network that it has.
fn read_kernel(
    network: Option<KernelNetwork>,
    (text, names): (&KernelExpression, &[String]),
    tensors: &mut Tensors,
) -> Result<Box<dyn Kernel<f64>>, StoreError> {
    let Some(KernelNetwork { architecture, kept }) = network else {
        return text.build(names).map_err(|e| tensors.corrupt(e));
    };
    let network = read_network::<f64>(KERNEL_NETWORK, &architecture, tensors)?;
    let inputs: usize = network.graph().input_shape().iter().product();
    if inputs != names.len() {
        return Err(tensors.corrupt("the network before its kernel takes other inputs than the table has"));
    }
    let kernel = kernel_behind(network, text, kept).map_err(|e| tensors.corrupt(e))?;
    Ok(Box::new(kernel))
}

fn kernel_name(c: usize) -> String {
    format!("variational_kernel_{c}")
}

/// The parameters of the likelihood are among the arrays.
pub(crate) fn read(settings: Value, source: &TableSource, tensors: &mut Tensors) -> Read {
    let own: Settings = super::settings(settings, tensors)?;
    let mut likelihood: Box<dyn Likelihood> = match source.output.likelihood() {
        Some(output) => output.likelihood.clone_box(),
        None => Box::new(Gaussian::new(1.0, 0.0)),
    };
    let names = source.inputs.schema.feature_names();
    let (m, functions, d) = (own.points, likelihood.outputs(), names.len());
    let z = tensors.matrix("inducing_inputs", m, d)?;
    let targets = tensors.matrix("inducing_targets", m, functions)?;
    let noise = tensors.optional_vector("inducing_noise", m)?;
    let kernel = read_kernel(own.kernel, (&source.record.kernel, &names), tensors)?;
    let mut model = ExactGp::new(kernel, source.record.mean, Gaussian::new(1.0, 0.0), d, functions);
    let values = tensors.vector("prior_parameters", model.values().len())?;
    if !model.admits(&values) {
        return Err(tensors.corrupt("a hyperparameter is out of its range"));
    }
    model.set_values(&values);
    let data = Observations::new(z, targets, noise).map_err(|e| tensors.corrupt(e))?;
    let factor = Cholesky::from_factor(tensors.factor("prior_factor", m)?, Default::default());
    let weights = tensors.matrix("prior_weights", m, functions)?;
    let exact = ExactPosterior::from_parts(model, data, factor, weights).map_err(|e| tensors.corrupt(e))?;
    let factor = Cholesky::from_factor(tensors.factor("factor", m)?, Default::default());
    let reference =
        ReferenceProcess::from_parts(exact, factor, own.mode, false).map_err(|e| tensors.corrupt(e))?;
    let mut kernels = Vec::with_capacity(functions);
    for c in 0..functions {
        let mut kernel = VariationalKernel::blank(own.family, &reference);
        let values = tensors.vector(&kernel_name(c), kernel.values().len())?;
        kernel.set_values(&values);
        kernels.push(kernel);
    }
    let mean = match (own.mean, tensors.shape("mean").map(|shape| shape.len())) {
        (Some(architecture), _) => {
            let network = read_network::<f32>(NETWORK, &architecture, tensors)?;
            VariationalMean::Embedding(Box::new(NetworkEmbedding::new(network)))
        }
        (None, None) => VariationalMean::Prior,
        (None, Some(1)) => VariationalMean::Constant(tensors.vector("mean", functions)?),
        (None, Some(_)) => VariationalMean::Inducing(tensors.matrix("mean", m, functions)?),
    };
    let values = tensors.vector("likelihood", likelihood.values().len())?;
    likelihood.set_values(&values);
    let tempering = tensors.vector("tempering", functions)?;
    if tempering.iter().any(|factor| *factor <= 0.0) {
        return Err(tensors.corrupt("a tempering factor is not positive"));
    }
    let posterior = GeneralisedGp::from_parts(vec![reference], kernels, own.coordinates, mean, likelihood)
        .and_then(|model| model.tempered(tempering));
    Ok(Arc::new(posterior.map_err(|e| tensors.corrupt(e))?))
}
