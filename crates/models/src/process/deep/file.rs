//! Features and weights as tensors, and back.

use super::DeepSummary;
use super::basis::embedding_kernel;
use crate::network::{add_network, take_network};
use crate::process::Header;
use crate::process::file::{exact_model, read_exact};
use posterior_gp::MeanForm;
use posterior_gp::exact::EmbeddedPosterior;
use posterior_likelihoods::Gaussian;
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
    tensors.insert_triangle("weight_root", q.roots()[0].as_ref());
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

/// The posterior that a header and its arrays describe.
pub(in crate::process) fn read(
    header: &Header,
    summary: &DeepSummary,
    tensors: &mut Tensors,
) -> Result<LowRankPosterior, StoreError> {
    let network = network(summary, tensors)?;
    let m = summary.rank;
    let outputs: usize = network.graph().output_shape().iter().product();
    let features: Box<dyn LearnedFeatures> = if summary.inducing {
        let mut kernel = embedding_kernel(&header.kernel, outputs).map_err(|e| tensors.corrupt(e))?;
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
    let noise = header.hyperparameter("noise_variance").and_then(|v| v.first().copied()).unwrap_or_default();
    if !(noise > 0.0 && noise.is_finite()) {
        return Err(tensors.corrupt(format!("its noise variance {noise} is not positive")));
    }
    let mut likelihood = Gaussian::new(noise, 0.0);
    likelihood.set_values(&[noise]);
    let mean = tensors.matrix("weights", m, 1)?;
    let root = tensors.factor("weight_root", m)?;
    let q = WeightDistribution::new(mean, vec![root]).map_err(|e| tensors.corrupt(e))?;
    LowRankPosterior::new(features, q, Box::new(likelihood), summary.rest).map_err(|e| tensors.corrupt(e))
}
