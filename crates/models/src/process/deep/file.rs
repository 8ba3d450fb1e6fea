//! Features and weights as tensors, and back.

use super::DeepSummary;
use super::basis::embedding_kernel;
use crate::network::{add_network, take_network};
use crate::process::Header;
use crate::process::file::{exact_model, read_exact};
use posterior_gp::MeanForm;
use posterior_gp::exact::EmbeddedPosterior;
use posterior_kernels::KernelExpression;
use posterior_likelihoods::{Gaussian, Likelihood};
use posterior_linear::embedding::Embedding;
use posterior_linear::low_rank::{LearnedFeatures, LowRankPosterior, WeightDistribution};
use posterior_networks::{Architecture, Network};
use posterior_optim::Parameters;
use posterior_store::{StoreError, Tensors};
use posterior_tangent::{DeepInducing, NetworkEmbedding, NetworkFeatures};

/// The arrays of a posterior.
pub(in crate::process) fn tensors(posterior: &LowRankPosterior, tensors: &mut Tensors) {
    let features = posterior.features().as_any();
    if let Some(features) = features.downcast_ref::<NetworkFeatures<f32>>() {
        add_network(features.network(), tensors);
    } else if let Some(features) = features.downcast_ref::<DeepInducing<f32>>() {
        if let Some(network) = features.network() {
            add_network(network, tensors);
        }
        tensors.insert_vector("kernel", &features.kernel().values());
        tensors.insert_matrix("inducing_inputs", features.points());
    }
    let q = posterior.distribution();
    tensors.insert_matrix("weights", q.mean());
    for (index, root) in q.roots().iter().enumerate() {
        tensors.insert_triangle(root_name(q.roots().len(), index), root.as_ref());
    }
}

/// The name of a root of so many.
fn root_name(count: usize, index: usize) -> String {
    if count == 1 { "weight_root".into() } else { format!("weight_root_{index}") }
}

/// The arrays of an exact process behind a network; those of the process are beside.
pub(in crate::process) fn embedding_tensors(embedding: &dyn Embedding, tensors: &mut Tensors) {
    if let Some(embedding) = embedding.as_any().downcast_ref::<NetworkEmbedding<f32>>() {
        add_network(embedding.network(), tensors);
    }
}

/// The network that a summary and its arrays describe.
fn network(summary: &DeepSummary, tensors: &mut Tensors) -> Result<Network<f32>, StoreError> {
    let architecture = Architecture::from_toml(&summary.architecture).map_err(|e| tensors.corrupt(e))?;
    let graph = architecture.graph().map_err(|e| tensors.corrupt(e))?;
    take_network::<f32>(graph, tensors)
}

/// The exact process behind a network that a header and its arrays describe.
pub(in crate::process) fn read_dense(
    header: &Header,
    summary: &DeepSummary,
    tensors: &mut Tensors,
) -> Result<EmbeddedPosterior, StoreError> {
    let embedding = NetworkEmbedding::new(network(summary, tensors)?);
    let width = embedding.width();
    let shape = tensors.shape("weights");
    let Some(&[rows, 1]) = shape.as_deref() else {
        return Err(tensors.corrupt("its weights are no column"));
    };
    let kernel = embedding_kernel(&header.kernel, width).map_err(|e| tensors.corrupt(e))?;
    let model = exact_model(header, (kernel, MeanForm::Zero), width).map_err(|e| tensors.corrupt(e))?;
    let exact = read_exact(header, model, (rows, width), tensors)?;
    EmbeddedPosterior::new(Box::new(embedding), exact).map_err(|e| tensors.corrupt(e))
}

/// The posterior of numbers with Gaussian noise that a header and its arrays describe.
pub(in crate::process) fn read(
    header: &Header,
    summary: &DeepSummary,
    tensors: &mut Tensors,
) -> Result<LowRankPosterior, StoreError> {
    let noise = header.hyperparameter("noise_variance").and_then(|v| v.first().copied()).unwrap_or_default();
    if !(noise > 0.0 && noise.is_finite()) {
        return Err(tensors.corrupt(format!("its noise variance {noise} is not positive")));
    }
    let mut likelihood = Gaussian::new(noise, 0.0);
    likelihood.set_values(&[noise]);
    read_under(Box::new(likelihood), &header.kernel, summary, tensors)
}

/// The posterior under any likelihood.
pub(in crate::process) fn read_under(
    likelihood: Box<dyn Likelihood>,
    kernel: &KernelExpression,
    summary: &DeepSummary,
    tensors: &mut Tensors,
) -> Result<LowRankPosterior, StoreError> {
    let network = network(summary, tensors)?;
    let m = summary.rank;
    let outputs: usize = network.graph().output_shape().iter().product();
    let features: Box<dyn LearnedFeatures> = if summary.inducing {
        let mut kernel = embedding_kernel(kernel, outputs).map_err(|e| tensors.corrupt(e))?;
        let values = tensors.vector("kernel", kernel.values().len())?;
        if values.iter().any(|v| !(v.is_finite() && *v > 0.0)) {
            return Err(tensors.corrupt("a hyperparameter is not a positive finite number"));
        }
        kernel.set_values(&values);
        let points = tensors.matrix("inducing_inputs", m, outputs)?;
        Box::new(DeepInducing::new(Some(network), kernel, points).map_err(|e| tensors.corrupt(e))?)
    } else {
        Box::new(NetworkFeatures::new(network))
    };
    let functions = likelihood.outputs();
    if summary.roots != 1 && summary.roots != functions {
        return Err(
            tensors.corrupt(format!("{functions} functions cannot have {} covariances", summary.roots))
        );
    }
    let mean = tensors.matrix("weights", m, functions)?;
    let roots = (0..summary.roots).map(|k| tensors.factor(&root_name(summary.roots, k), m));
    let roots = roots.collect::<Result<Vec<_>, _>>()?;
    let q = WeightDistribution::new(mean, roots).map_err(|e| tensors.corrupt(e))?;
    LowRankPosterior::new(features, q, likelihood, summary.rest).map_err(|e| tensors.corrupt(e))
}
