//! Features and weights as tensors, and back.

use super::DeepSummary;
use super::basis::embedding_kernel;
use crate::network::{add_network, take_network};
use crate::process::file::{exact_model, read_exact};
use crate::process::{Header, Hyperparameter};
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

/// What is shown of a posterior of numbers: its noise, and of inducing points among the rows the hyperparameters of the kernel as well, which belong to columns.
pub(super) fn hyperparameters(posterior: &LowRankPosterior) -> Vec<Hyperparameter> {
    let noise = Hyperparameter { name: "noise_variance".into(), values: posterior.likelihood().values() };
    let features = posterior.features().as_any().downcast_ref::<DeepInducing<f32>>();
    let among_rows = features.filter(|features| features.network().is_none());
    let kernel = among_rows.map_or_else(Vec::new, |features| Hyperparameter::of(features.kernel()));
    kernel.into_iter().chain([noise]).collect()
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
    let Some(text) = &summary.architecture else {
        return Err(tensors.corrupt("it has no network behind which a process could stand"));
    };
    let architecture = Architecture::from_toml(text).map_err(|e| tensors.corrupt(e))?;
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
    let names = header.schema.feature_names();
    read_under(Box::new(likelihood), (&header.kernel, &names), summary, tensors)
}

/// The posterior under any likelihood; its kernel acts on what a network makes of rows, or on columns of these names where there is none.
pub(in crate::process) fn read_under(
    likelihood: Box<dyn Likelihood>,
    (kernel, names): (&KernelExpression, &[String]),
    summary: &DeepSummary,
    tensors: &mut Tensors,
) -> Result<LowRankPosterior, StoreError> {
    let network = match (&summary.architecture, summary.inducing) {
        (None, true) => None,
        _ => Some(network(summary, tensors)?),
    };
    let m = summary.rank;
    let features: Box<dyn LearnedFeatures> = if summary.inducing {
        let outputs = network.as_ref().map(|network| network.graph().output_shape().iter().product());
        let kernel = match outputs {
            Some(outputs) => embedding_kernel(kernel, outputs),
            None => kernel.build(names).map_err(Into::into),
        };
        let mut kernel = kernel.map_err(|e| tensors.corrupt(e))?;
        let values = tensors.vector("kernel", kernel.values().len())?;
        if !kernel.admits(&values) {
            return Err(tensors.corrupt("a hyperparameter is out of its range"));
        }
        kernel.set_values(&values);
        let points = tensors.matrix("inducing_inputs", m, outputs.unwrap_or(names.len()))?;
        Box::new(DeepInducing::new(network, kernel, points).map_err(|e| tensors.corrupt(e))?)
    } else {
        match network {
            Some(network) => Box::new(NetworkFeatures::new(network)),
            None => {
                return Err(tensors.corrupt("its features are outputs of a network that it does not have"));
            }
        }
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
