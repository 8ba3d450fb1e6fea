//! Learned features with a Gaussian over their weights: deep kernels of low rank, under any likelihood.

use super::embedded::embedding_kernel;
use super::{Read, blocks_of_points, closed_form_rows, draws, row_effort};
use crate::network::{NETWORK, read_network, write_network};
use crate::predictor::{Drawn, Samples, StreamOf, bytes_of};
use crate::speed::dense_rate;
use crate::{
    Batch, Cost, DrawnFunctions, Hyperparameter, Latent, ModelError, Predictor, Prior, TableSource,
    VarianceMethod, Want,
};
use faer::{Mat, MatRef};
use posterior_gp::{GpError, Posterior};
use posterior_likelihoods::{Gaussian, Likelihood};
use posterior_linalg::random::Streams;
use posterior_linear::low_rank::{
    LearnedFeatures, LowRankFunctions, LowRankPosterior, ResidualVariance, WeightDistribution,
    WeightMarginals,
};
use posterior_store::{StoreError, Tensors};
use posterior_tangent::{DeepInducing, NetworkFeatures};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;

pub(crate) const KIND: &str = "learned features";

/// What a file has of it besides arrays.
#[derive(Serialize, Deserialize)]
struct Settings {
    /// Whether features are inducing points, behind the network or among the rows; else they are the network's outputs.
    inducing: bool,
    /// The network; none where inducing points stand among the rows themselves.
    architecture: Option<String>,
    /// Features.
    rank: usize,
    /// What is added to their variance.
    residual_variance: ResidualVariance,
    /// Covariances of weights: one for each latent function, or one that all share.
    roots: usize,
    /// [`LowRank::level`].
    level: Option<f64>,
}

/// A posterior over the weights of features that all functions share.
#[derive(Debug)]
pub(crate) struct LowRank {
    pub(crate) posterior: LowRankPosterior,
    /// What is added to every latent value; none under Gaussian noise.
    pub(crate) level: Option<f64>,
}

impl LowRank {
    fn features(&self) -> &dyn LearnedFeatures {
        self.posterior.features()
    }

    /// Weights of the network that are learned.
    fn weights(&self) -> f64 {
        self.features().unconstrained().len() as f64
    }
}

impl Predictor for LowRank {
    fn latent(&self, x: Batch<'_>, want: &Want) -> Result<Latent, ModelError> {
        let x = closed_form_rows(x, want)?;
        let WeightMarginals { mean, variance } = self.posterior.latent(x).map_err(GpError::from)?;
        let levels = self.level.map(|level| vec![level; x.nrows()]);
        Ok(Latent::independent(&mean, &variance, 0).with_offsets(levels.as_deref()))
    }

    /// Draws are functions of weights: no covariance is factored.
    fn samples(&self, x: MatRef<'_, f64>, count: usize, stream: StreamOf<'_>) -> Samples {
        let mut drawn = draws(&self.posterior, self.latents(), (x, count), stream)?;
        if let Some(level) = self.level {
            for own in &mut drawn {
                *own = Mat::from_fn(own.nrows(), count, |i, j| level + own[(i, j)]);
            }
        }
        Ok(drawn)
    }

    fn support(&self) -> usize {
        self.features().rank()
    }

    fn cost(&self, rows: usize) -> Cost {
        let (n, m, c) = (self.support() as u64, rows as u64, self.latents() as f64);
        let (features, flops) = (self.features(), c * (n * n) as f64 + 2.0 * self.weights());
        if self.level.is_some() {
            let passing = m.min(4096).saturating_mul(features.bytes_of_row() as u64);
            let blocks = blocks_of_points(rows, self.support(), flops);
            return Cost { bytes: blocks.bytes.saturating_add(passing), ..blocks };
        }
        let at_once = m.min(features.rows_at_once() as u64);
        let bytes = at_once.saturating_mul(features.bytes_of_row() as u64 + 16 * n);
        Cost { bytes, flops: m as f64 * flops }
    }

    fn effort(&self, inputs: usize) -> [f64; 2] {
        let (n, c) = (self.support() as f64, self.latents() as f64);
        let both = match self.level {
            Some(_) => 2.0 * self.weights() + c * n * n,
            None => row_effort(self.support(), inputs) + self.cost(1).flops,
        };
        [both, both]
    }

    fn seconds(&self, rows: usize, _: VarianceMethod) -> Option<f64> {
        let (m, n) = (rows as f64, self.support() as f64);
        Some(m * (2.0 * self.weights() + n * n) / dense_rate())
    }

    fn kind(&self) -> &'static str {
        KIND
    }

    fn write(&self, out: &mut Tensors) -> Result<Value, StoreError> {
        let features = self.features().as_any();
        let inducing = features.downcast_ref::<DeepInducing<f32>>();
        let network = match (features.downcast_ref::<NetworkFeatures<f32>>(), inducing) {
            (Some(features), _) => Some(features.network()),
            (None, features) => features.and_then(DeepInducing::network),
        };
        let architecture = network.map(|network| write_network(NETWORK, network, out)).transpose()?;
        if let Some(features) = inducing {
            out.insert_vector("kernel", &features.kernel().values());
            out.insert_matrix("inducing_inputs", features.points());
        }
        let q = self.posterior.distribution();
        out.insert_matrix("weights", q.mean());
        for (index, root) in q.roots().iter().enumerate() {
            out.insert_triangle(root_name(q.roots().len(), index), root.as_ref());
        }
        let own = Settings {
            inducing: inducing.is_some(),
            architecture,
            rank: q.rank(),
            residual_variance: self.posterior.residual_variance(),
            roots: q.roots().len(),
            level: self.level,
        };
        Ok(posterior_store::to_value(&own)?)
    }

    fn latents(&self) -> usize {
        self.posterior.distribution().latents()
    }

    fn process(&self) -> Option<&dyn Posterior> {
        self.noise_variance()?;
        Some(&self.posterior)
    }

    fn noise_variance(&self) -> Option<f64> {
        self.posterior.likelihood().shared_noise_variance()
    }

    fn sample_cost(&self, rows: usize, count: usize) -> Cost {
        let (m, n, s) = (rows as u64, self.support() as u64, count as u64);
        let (c, block) = (self.latents() as u64, self.level.map_or(0, |_| bytes_of(&[2, m.min(4096), n])));
        // Weights of functions, their values, and copies of these.
        let bytes = bytes_of(&[2, n, s, c]).saturating_add(bytes_of(&[3, m, s, c])).saturating_add(block);
        Cost { bytes, flops: 2.0 * rows as f64 * self.support() as f64 * count as f64 }
    }

    fn functions(self: Arc<Self>, count: usize, streams: Streams) -> Option<Drawn> {
        let rng = &mut streams.stream("posterior/weights");
        Some(Ok(Arc::new(self.posterior.functions(0, count, rng))))
    }

    fn prior(&self) -> Option<Prior<'_>> {
        Some(Prior::Features(&self.posterior))
    }
}

impl DrawnFunctions for LowRankFunctions {
    fn values(&self, x: MatRef<'_, f64>) -> Result<Mat<f64>, GpError> {
        Ok(LowRankFunctions::values(self, x)?)
    }
}

/// What is shown of a posterior of numbers: its noise, and of inducing points among the rows the hyperparameters of the kernel as well, which belong to columns.
pub(crate) fn hyperparameters(posterior: &LowRankPosterior) -> Vec<Hyperparameter> {
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

/// Gaussian noise, from the hyperparameters of a header.
fn noise(source: &TableSource) -> Result<Box<dyn Likelihood>, String> {
    let noise = source.record.hyperparameter("noise_variance").and_then(|v| v.first().copied());
    let noise = noise.unwrap_or_default();
    if !(noise > 0.0 && noise.is_finite()) {
        return Err(format!("its noise variance {noise} is not positive"));
    }
    Ok(Box::new(Gaussian::new(noise, 0.0)))
}

/// The kernel acts on what a network makes of rows, or on columns where there is none.
pub(crate) fn read(settings: Value, source: &TableSource, tensors: &mut Tensors) -> Read {
    let Settings { inducing, architecture, rank: m, residual_variance, roots, level } =
        super::settings(settings, tensors)?;
    let likelihood = match source.output.likelihood() {
        Some(output) => output.seen_in_training(),
        None => noise(source).map_err(|e| tensors.corrupt(e))?,
    };
    let names = source.inputs.schema.feature_names();
    let network = architecture.map(|own| read_network::<f32>(NETWORK, &own, tensors)).transpose()?;
    let features: Box<dyn LearnedFeatures> = if inducing {
        let outputs = network.as_ref().map(|network| network.graph().output_shape().iter().product());
        let kernel = match outputs {
            Some(outputs) => embedding_kernel(&source.record.kernel, outputs),
            None => source.record.kernel.build(&names).map_err(Into::into),
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
    if roots != 1 && roots != functions {
        return Err(tensors.corrupt(format!("{functions} functions cannot have {roots} covariances")));
    }
    let mean = tensors.matrix("weights", m, functions)?;
    let roots = (0..roots).map(|k| tensors.factor(&root_name(roots, k), m));
    let roots = roots.collect::<Result<Vec<_>, _>>()?;
    let q = WeightDistribution::new(mean, roots).map_err(|e| tensors.corrupt(e))?;
    let posterior = LowRankPosterior::new(features, q, likelihood, residual_variance);
    let posterior = posterior.map_err(|e| tensors.corrupt(e))?;
    Ok(Arc::new(LowRank { posterior, level }))
}
