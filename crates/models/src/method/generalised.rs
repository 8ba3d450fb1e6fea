//! Generalised variational inference: a process whose mean and covariance are independent of each other, under any likelihood.

use super::stored::Stored;
use super::{blocks_of_points, closed_form_rows, dense_seconds, draws, embedding_kernel, row_effort};
use crate::ModelError;
use crate::latent::{Latent, VarianceMethod};
use crate::network::{add_network, add_network_as, take_network, take_network_as};
use crate::predictor::{Batch, Cost, Predictor, Samples, StreamOf, Want};
use crate::prior::Prior;
use crate::process::KernelNetwork;
use crate::process::MeanKind;
use faer::{Mat, MatRef};
use posterior_gp::exact::{ExactGp, ExactPosterior};
use posterior_gp::generalised::{GeneralisedGp, ReferenceProcess, VariationalKernel, VariationalMean};
use posterior_gp::{Observations, Posterior};
use posterior_kernels::{Kernel, KernelExpression};
use posterior_likelihoods::Gaussian;
use posterior_linalg::cholesky::Cholesky;
use posterior_networks::{Architecture, Network};
use posterior_optim::Parameters;
use posterior_store::{StoreError, Tensors};
use posterior_tangent::{MappedKernel, NetworkEmbedding};
use std::any::Any;
use std::sync::Arc;

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

    fn write(&self, out: &mut Tensors) {
        let reference = self.reference(0);
        let exact = reference.posterior();
        out.insert_matrix("inducing_inputs", reference.inducing());
        out.insert_matrix("inducing_targets", exact.data().targets());
        if let Some(noise) = exact.data().noise_variances() {
            out.insert_vector("inducing_noise", noise);
        }
        out.insert_vector("prior_parameters", &exact.model().values());
        write_kernel(exact.model().kernel(), out);
        out.insert_triangle("prior_factor", exact.cholesky().factor());
        out.insert_matrix("prior_weights", exact.weights());
        out.insert_triangle("factor", reference.whitening().cholesky.factor());
        for (c, kernel) in self.kernels().iter().enumerate() {
            out.insert_vector(kernel_name(c), &kernel.values());
        }
        out.insert_vector("tempering", self.tempering());
        out.insert_vector("likelihood", &self.likelihood().values());
        match self.mean() {
            VariationalMean::Prior => {}
            VariationalMean::Embedding(map) => {
                if let Some(embedding) = map.as_any().downcast_ref::<NetworkEmbedding<f32>>() {
                    add_network(embedding.network(), out);
                }
            }
            own => out.insert_vector("mean", &own.values()),
        }
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

/// Prefix of its network's tensors.
const NETWORK: &str = "kernel_network.";

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
fn write_kernel(kernel: &dyn Kernel<f64>, tensors: &mut Tensors) {
    let kernel: &dyn Any = kernel;
    let map = kernel.downcast_ref::<MappedKernel>().map(|kernel| kernel.map().as_any());
    if let Some(embedding) = map.and_then(|map| map.downcast_ref::<NetworkEmbedding<f64>>()) {
        add_network_as(NETWORK, embedding.network(), tensors);
    }
}

/// The kernel of a file, with the network that it has.
fn read_kernel(
    summary: Option<&KernelNetwork>,
    (text, names): (&KernelExpression, &[String]),
    tensors: &mut Tensors,
) -> Result<Box<dyn Kernel<f64>>, StoreError> {
    let Some(own) = summary else { return text.build(names).map_err(|e| tensors.corrupt(e)) };
    let architecture = Architecture::from_toml(&own.architecture).map_err(|e| tensors.corrupt(e))?;
    let graph = architecture.graph().map_err(|e| tensors.corrupt(e))?;
    let inputs: usize = graph.input_shape().iter().product();
    if inputs != names.len() {
        return Err(tensors.corrupt("the network before its kernel takes other inputs than the table has"));
    }
    let network = take_network_as::<f64>(NETWORK, graph, tensors)?;
    let kernel = kernel_behind(network, text, own.kept).map_err(|e| tensors.corrupt(e))?;
    Ok(Box::new(kernel))
}

fn kernel_name(c: usize) -> String {
    format!("variational_kernel_{c}")
}

/// The parameters of the likelihood are among the arrays.
pub(super) fn read(stored: Stored<'_>, tensors: &mut Tensors) -> Result<Arc<dyn Predictor>, StoreError> {
    let Some(summary) = stored.variation else {
        return Err(tensors.corrupt("its mean and covariance are not described"));
    };
    let mut likelihood = stored.likelihood.unwrap_or_else(|| Box::new(Gaussian::new(1.0, 0.0)));
    let names = stored.schema.feature_names();
    let (m, functions, d) = (summary.prior.inducing, summary.functions, names.len());
    if functions != likelihood.outputs() {
        return Err(tensors.corrupt("its functions are not those of its likelihood"));
    }
    let z = tensors.matrix("inducing_inputs", m, d)?;
    let targets = tensors.matrix("inducing_targets", m, functions)?;
    let noise = match tensors.shape("inducing_noise") {
        Some(_) => Some(tensors.vector("inducing_noise", m)?),
        None => None,
    };
    let kernel = read_kernel(summary.prior.network.as_ref(), (stored.kernel, &names), tensors)?;
    let mut model = ExactGp::new(kernel, stored.mean, Gaussian::new(1.0, 0.0), d, functions);
    let values = finite(tensors, "prior_parameters", model.values().len())?;
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
        ReferenceProcess::from_parts(exact, factor, summary.mode, false).map_err(|e| tensors.corrupt(e))?;
    let mut kernels = Vec::with_capacity(functions);
    for c in 0..functions {
        let mut own = VariationalKernel::blank(summary.family, &reference);
        let values = finite(tensors, &kernel_name(c), own.values().len())?;
        own.set_values(&values);
        kernels.push(own);
    }
    let mean = match summary.mean_form {
        MeanKind::Prior => VariationalMean::Prior,
        MeanKind::Constant => VariationalMean::Constant(finite(tensors, "mean", functions)?),
        MeanKind::Inducing => {
            let mut weights = VariationalMean::Inducing(Mat::zeros(m, functions));
            weights.set_values(&finite(tensors, "mean", m * functions)?);
            weights
        }
        MeanKind::Network => {
            let Some(text) = &summary.architecture else {
                return Err(tensors.corrupt("its mean is a network that it does not have"));
            };
            let architecture = Architecture::from_toml(text).map_err(|e| tensors.corrupt(e))?;
            let graph = architecture.graph().map_err(|e| tensors.corrupt(e))?;
            let network = take_network::<f32>(graph, tensors)?;
            VariationalMean::Embedding(Box::new(NetworkEmbedding::new(network)))
        }
    };
    let own = finite(tensors, "likelihood", likelihood.values().len())?;
    likelihood.set_values(&own);
    let tempering = finite(tensors, "tempering", functions)?;
    if tempering.iter().any(|factor| *factor <= 0.0) {
        return Err(tensors.corrupt("a tempering factor is not positive"));
    }
    let posterior =
        GeneralisedGp::from_parts(vec![reference], kernels, summary.coordinates, mean, likelihood)
            .and_then(|model| model.tempered(tempering));
    Ok(Arc::new(posterior.map_err(|e| tensors.corrupt(e))?))
}

fn finite(tensors: &mut Tensors, name: &str, length: usize) -> Result<Vec<f64>, StoreError> {
    let values = tensors.vector(name, length)?;
    match values.iter().all(|v| v.is_finite()) {
        true => Ok(values),
        false => Err(tensors.corrupt(format!("a number of `{name}` is not finite"))),
    }
}
