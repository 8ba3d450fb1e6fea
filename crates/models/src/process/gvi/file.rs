//! A process and its reference as tensors, and back: nothing is computed again, so predictions are equal to the last bit.

use super::kernel;
use super::summary::{GviSummary, MeanKind};
use crate::network::{add_network, take_network};
use faer::Mat;
use posterior_gp::exact::{ExactGp, ExactPosterior};
use posterior_gp::generalised::{GeneralisedGp, ReferenceProcess, VariationalKernel, VariationalMean};
use posterior_gp::{MeanForm, Observations};
use posterior_kernels::KernelExpression;
use posterior_likelihoods::{Gaussian, Likelihood};
use posterior_linalg::cholesky::Cholesky;
use posterior_networks::Architecture;
use posterior_optim::Parameters;
use posterior_store::{StoreError, Tensors};
use posterior_tangent::NetworkEmbedding;

/// The arrays of a process.
pub(in crate::process) fn tensors(posterior: &GeneralisedGp, tensors: &mut Tensors) {
    let reference = posterior.reference(0);
    let exact = reference.posterior();
    tensors.insert_matrix("inducing_inputs", reference.inducing());
    tensors.insert_matrix("inducing_targets", exact.data().targets());
    if let Some(noise) = exact.data().noise_variances() {
        tensors.insert_vector("inducing_noise", noise);
    }
    tensors.insert_vector("prior_parameters", &exact.model().values());
    kernel::tensors(exact.model().kernel(), tensors);
    tensors.insert_triangle("prior_factor", exact.cholesky().factor());
    tensors.insert_matrix("prior_weights", exact.weights());
    tensors.insert_triangle("factor", reference.whitening().cholesky.factor());
    for (c, kernel) in posterior.kernels().iter().enumerate() {
        tensors.insert_vector(kernel_name(c), &kernel.values());
    }
    tensors.insert_vector("tempering", posterior.tempering());
    tensors.insert_vector("likelihood", &posterior.likelihood().values());
    match posterior.mean() {
        VariationalMean::Prior => {}
        VariationalMean::Embedding(map) => {
            if let Some(embedding) = map.as_any().downcast_ref::<NetworkEmbedding<f32>>() {
                add_network(embedding.network(), tensors);
            }
        }
        own => tensors.insert_vector("mean", &own.values()),
    }
}

fn kernel_name(c: usize) -> String {
    format!("variational_kernel_{c}")
}

/// The process that a summary and its arrays describe, behind a likelihood whose parameters are among these.
pub(in crate::process) fn read(
    mut likelihood: Box<dyn Likelihood>,
    (kernel, mean, names): (&KernelExpression, MeanForm, &[String]),
    summary: &GviSummary,
    tensors: &mut Tensors,
) -> Result<GeneralisedGp, StoreError> {
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
    let kernel = kernel::read(summary.prior.network.as_ref(), (kernel, names), tensors)?;
    let mut model = ExactGp::new(kernel, mean, Gaussian::new(1.0, 0.0), d, functions);
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
    GeneralisedGp::from_parts(vec![reference], kernels, summary.coordinates, mean, likelihood)
        .and_then(|model| model.tempered(tempering))
        .map_err(|e| tensors.corrupt(e))
}

fn finite(tensors: &mut Tensors, name: &str, length: usize) -> Result<Vec<f64>, StoreError> {
    let values = tensors.vector(name, length)?;
    match values.iter().all(|v| v.is_finite()) {
        true => Ok(values),
        false => Err(tensors.corrupt(format!("a number of `{name}` is not finite"))),
    }
}
