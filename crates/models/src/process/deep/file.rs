//! Features and weights as tensors, and back.

use super::DeepSummary;
use super::basis::embedding_kernel;
use crate::network::{add_network, take_network};
use crate::process::Header;
use posterior_likelihoods::Gaussian;
use posterior_linear::low_rank::{LearnedFeatures, LowRankPosterior, WeightDistribution};
use posterior_networks::Architecture;
use posterior_optim::Parameters;
use posterior_store::{StoreError, Tensors};
use posterior_tangent::{DeepInducing, NetworkFeatures};

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

/// The posterior that a header and its arrays describe.
pub(in crate::process) fn read(
    header: &Header,
    summary: &DeepSummary,
    tensors: &mut Tensors,
) -> Result<LowRankPosterior, StoreError> {
    let architecture = Architecture::from_toml(&summary.architecture).map_err(|e| tensors.corrupt(e))?;
    let graph = architecture.graph().map_err(|e| tensors.corrupt(e))?;
    let network = take_network::<f32>(graph, tensors)?;
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
