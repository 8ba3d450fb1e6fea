//! Inducing points: what a collapsed or a stochastic bound leaves behind, under any likelihood.

use super::{Read, closed_form_rows, dense_seconds, draws, row_effort};
use crate::predictor::{Drawn, Samples, StreamOf};
use crate::shares::Weighted;
use crate::{
    Batch, Cost, DrawnFunctions, Latent, ModelError, Predictor, Prior, SharePlaces, TableSource,
    VarianceMethod, VarianceShares, Want,
};
use faer::{Mat, MatRef};
use posterior_gp::inducing::{InducingDistribution, InducingPosterior, PathwiseSamples};
use posterior_gp::{GpError, Posterior};
use posterior_kernels::features::{FeatureSettings, PriorDraws, RandomFeatures};
use posterior_linalg::cholesky::{Cholesky, CholeskyInfo};
use posterior_linalg::random::Streams;
use posterior_store::{StoreError, Tensors};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;

pub(crate) const KIND: &str = "inducing points";

/// What a file has of it besides arrays.
#[derive(Serialize, Deserialize)]
struct Settings {
    /// Inducing points.
    points: usize,
    /// What the factorisation of their matrix needed.
    cholesky: CholeskyInfo,
}

impl Predictor for InducingPosterior {
    fn latent(&self, x: Batch<'_>, want: &Want) -> Result<Latent, ModelError> {
        let x = closed_form_rows(x, want)?;
        Ok(InducingPosterior::latent(self, x)?.into())
    }

    fn samples(&self, x: MatRef<'_, f64>, count: usize, stream: StreamOf<'_>) -> Samples {
        draws(self, self.latents(), (x, count), stream)
    }

    fn support(&self) -> usize {
        InducingPosterior::inducing(self).nrows()
    }

    fn cost(&self, rows: usize) -> Cost {
        let (n, m, c) = (self.support() as u64, rows as u64, self.latents() as f64);
        let bytes = 24 * m.min(1024).saturating_mul(n);
        Cost { bytes, flops: 2.0 * m as f64 * (c * (n * n) as f64) }
    }

    fn effort(&self, inputs: usize) -> [f64; 2] {
        let (n, c) = (self.support() as f64, self.latents() as f64);
        let row = row_effort(self.support(), inputs);
        // Plans of labels count a product more.
        let both = match self.noise_variance() {
            Some(_) => row + 2.0 * (n * n),
            None => c * (row + 3.0 * n * n),
        };
        [both, both]
    }

    fn seconds(&self, rows: usize, _: VarianceMethod) -> Option<f64> {
        let (m, n) = (rows as f64, self.support() as f64);
        let points = InducingPosterior::inducing(self);
        Some(dense_seconds(self.kernel(), points, m * n, 2.0 * m * n * n))
    }

    fn kind(&self) -> &'static str {
        KIND
    }

    fn write(&self, out: &mut Tensors) -> Result<Value, StoreError> {
        let q = self.distribution();
        out.insert_matrix("inducing_inputs", InducingPosterior::inducing(self));
        out.insert_triangle("factor", self.factor().factor());
        out.insert_matrix("inducing_means", q.mean());
        for (i, root) in q.roots().iter().enumerate() {
            out.insert_triangle(format!("inducing_root_{i}"), root.as_ref());
        }
        let own = Settings { points: self.support(), cholesky: self.factor().info() };
        Ok(posterior_store::to_value(&own)?)
    }

    fn latents(&self) -> usize {
        self.distribution().latents()
    }

    fn process(&self) -> Option<&dyn Posterior> {
        self.noise_variance()?;
        Some(self)
    }

    fn noise_variance(&self) -> Option<f64> {
        self.likelihood().shared_noise_variance()
    }

    fn functions(self: Arc<Self>, count: usize, streams: Streams) -> Option<Drawn> {
        Some(drawn(&self, count, streams).map(|drawn| Arc::new(drawn) as _))
    }

    fn prior(&self) -> Option<Prior<'_>> {
        Some(Prior::Double(self.kernel()))
    }

    fn shares(&self, names: &[String], scale: f64) -> Option<VarianceShares> {
        let points = InducingPosterior::inducing(self);
        let weighted = Weighted { points, weights: self.weights().subcols(0, 1).to_owned() };
        weighted.shares(self.kernel(), points, (SharePlaces::InducingPoints, names), scale)
    }

    fn factored(&self) -> Option<CholeskyInfo> {
        Some(self.factor().info())
    }

    fn inducing(&self) -> Vec<&InducingPosterior> {
        vec![self]
    }

    fn with_inducing(&self, new: Vec<InducingPosterior>) -> Option<Arc<dyn Predictor>> {
        new.into_iter().next().map(|own| Arc::new(own) as _)
    }
}

/// Draws of the first function.
fn drawn(
    posterior: &InducingPosterior,
    count: usize,
    streams: Streams,
) -> Result<PathwiseSamples, ModelError> {
    let (columns, settings) = (posterior.inducing().ncols(), FeatureSettings::default());
    let of_features = streams.child("posterior/features", 0);
    let features = RandomFeatures::new(posterior.kernel(), columns, settings, of_features);
    let features = Arc::new(features.map_err(GpError::from)?);
    let prior = PriorDraws::new(features, count, streams.child("posterior/draws", 0));
    Ok(posterior.pathwise(0, prior, streams)?)
}

impl DrawnFunctions for PathwiseSamples {
    fn values(&self, x: MatRef<'_, f64>) -> Result<Mat<f64>, GpError> {
        PathwiseSamples::values(self, x)
    }
}

pub(crate) fn read(settings: Value, source: &TableSource, tensors: &mut Tensors) -> Read {
    let Settings { points: m, cholesky } = super::settings(settings, tensors)?;
    let outputs = source.output.functions();
    let z = tensors.matrix("inducing_inputs", m, source.inputs.schema.features.len())?;
    let factor = Cholesky::from_factor(tensors.factor("factor", m)?, cholesky);
    let means = tensors.matrix("inducing_means", m, outputs)?;
    let roots = (0..outputs).map(|k| tensors.factor(&format!("inducing_root_{k}"), m));
    let roots = roots.collect::<Result<Vec<_>, _>>()?;
    let distribution = InducingDistribution::new(means, roots).map_err(|e| tensors.corrupt(e))?;
    let (kernel, mean) = source.kernel_and_mean::<f64>().map_err(|e| tensors.corrupt(e))?;
    let likelihood = source.likelihood().map_err(|e| tensors.corrupt(e))?;
    let posterior = InducingPosterior::from_parts(kernel, mean, likelihood, z, factor, distribution);
    Ok(Arc::new(posterior.map_err(|e| tensors.corrupt(e))?))
}
