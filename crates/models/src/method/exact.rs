//! Exact processes: all in closed form.

use super::{Read, closed_form, dense_seconds, draws, row_effort};
use crate::predictor::{Drawn, LeftOutRows, Samples, StreamOf};
use crate::shares::Weighted;
use crate::{
    Batch, Cost, Hyperparameter, Latent, ModelError, Predictor, Prior, SharePlaces, TableSource,
    VarianceMethod, VarianceShares, Want,
};
use faer::MatRef;
use posterior_gp::exact::{ExactGp, ExactPosterior};
use posterior_gp::iterative::{
    Budget, Method, PathwiseModel, PathwisePosterior, PathwiseSettings, Start, Support,
};
use posterior_gp::{MeanForm, Observations, Posterior};
use posterior_kernels::Kernel;
use posterior_kernels::features::FeatureSettings;
use posterior_linalg::cholesky::{Cholesky, CholeskyInfo};
use posterior_linalg::random::Streams;
use posterior_optim::{Parameters, Segment, Signal};
use posterior_store::{StoreError, Tensors};
use serde_json::Value;
use std::sync::Arc;

pub(crate) const KIND: &str = "exact";

/// Bytes that samples of an exact posterior may need: 8 GiB, what a fit may need unless told otherwise.
const MEMORY: u64 = 8 << 30;

impl Predictor for ExactPosterior {
    fn latent(&self, x: Batch<'_>, want: &Want) -> Result<Latent, ModelError> {
        closed_form(self, x, want)
    }

    fn samples(&self, x: MatRef<'_, f64>, count: usize, stream: StreamOf<'_>) -> Samples {
        draws(self, 1, (x, count), stream)
    }

    fn support(&self) -> usize {
        self.data().rows()
    }

    fn cost(&self, rows: usize) -> Cost {
        let (n, m) = (self.support() as u64, rows as u64);
        Cost { bytes: 16 * m.min(512).saturating_mul(n), flops: m as f64 * (n * n) as f64 }
    }

    fn effort(&self, inputs: usize) -> [f64; 2] {
        let (n, row) = (self.support() as f64, row_effort(self.support(), inputs));
        // One solve for all rows of a run, which are some ten.
        [row, row + n * n / 16.0]
    }

    fn seconds(&self, rows: usize, _: VarianceMethod) -> Option<f64> {
        let (m, n) = (rows as f64, self.support() as f64);
        Some(dense_seconds(self.model().kernel(), self.data().inputs(), m * n, m * n * n))
    }

    fn kind(&self) -> &'static str {
        KIND
    }

    /// What its factorisation needed.
    fn write(&self, out: &mut Tensors) -> Result<Value, StoreError> {
        write_observations(self.data(), out);
        out.insert_matrix("weights", self.weights());
        out.insert_triangle("factor", self.cholesky().factor());
        Ok(posterior_store::to_value(&self.info())?)
    }

    fn process(&self) -> Option<&dyn Posterior> {
        Some(self)
    }

    fn noise_variance(&self) -> Option<f64> {
        Some(self.model().noise().noise_variance())
    }

    fn functions(self: Arc<Self>, count: usize, streams: Streams) -> Option<Drawn> {
        Some(solved_draws(&self, count, streams).map(|drawn| Arc::new(drawn) as _))
    }

    fn training(&self) -> Option<&Observations> {
        Some(self.data())
    }

    fn exact(&self) -> Option<&ExactPosterior> {
        Some(self)
    }

    fn exact_mut(&mut self) -> Option<&mut ExactPosterior> {
        Some(self)
    }

    fn leave_one_out(&self) -> Option<LeftOutRows<'_>> {
        Some(Box::new(|| ExactPosterior::leave_one_out(self)))
    }

    fn prior(&self) -> Option<Prior<'_>> {
        Some(Prior::Double(self.model().kernel()))
    }

    fn shares(&self, names: &[String], scale: f64) -> Option<VarianceShares> {
        let weights = self.weights().subcols(0, 1).to_owned();
        let weighted = Weighted { points: self.data().inputs(), weights };
        let places = (SharePlaces::TrainingRows, names);
        weighted.shares(self.model().kernel(), self.data().inputs(), places, scale)
    }

    fn factored(&self) -> Option<CholeskyInfo> {
        Some(self.info())
    }
}

/// Samples of an exact posterior as functions: one solve for all of them.
pub(crate) fn solved_draws(
    exact: &ExactPosterior,
    count: usize,
    streams: Streams,
) -> Result<PathwisePosterior<f64>, ModelError> {
    let rows = exact.data().rows();
    let needed = 16 * (rows as u64).pow(2);
    if needed > MEMORY {
        return Err(ModelError::TooManySampleRows { rows, needed, limit: MEMORY });
    }
    let process = exact.model();
    let model = PathwiseModel {
        kernel: process.kernel().clone_box(),
        mean: process.mean().clone(),
        noise: process.noise().clone(),
    };
    let settings = PathwiseSettings {
        budget: Budget::steps(1),
        samples: count,
        features: FeatureSettings::default(),
        samples_per_features: Some(8),
        seed: streams.seed(),
        cache_bytes: 0,
    };
    let support = Support::Rows(Method::Direct);
    let data = exact.data().clone();
    Ok(model.condition(data, support, settings, Start::Zero, &mut |_, _| Signal::Continue)?)
}

/// Adds the arrays of the rows that a posterior keeps.
pub(crate) fn write_observations(data: &Observations, out: &mut Tensors) {
    out.insert_matrix("inputs", data.inputs());
    out.insert_matrix("targets", data.targets());
    if let Some(noise) = data.noise_variances() {
        out.insert_vector("noise_variances", noise);
    }
    if let Some(weights) = data.weights() {
        out.insert_vector("row_weights", weights);
    }
}

/// So many rows of so many inputs.
pub(crate) fn read_observations(
    (n, d): (usize, usize),
    tensors: &mut Tensors,
) -> Result<Observations, StoreError> {
    let (inputs, targets) = (tensors.matrix("inputs", n, d)?, tensors.matrix("targets", n, 1)?);
    let noise = tensors.optional_vector("noise_variances", n)?;
    let weights = tensors.optional_vector("row_weights", n)?;
    let data = Observations::new(inputs, targets, noise).map_err(|e| tensors.corrupt(e))?;
    match weights {
        Some(weights) => data.with_weights(weights).map_err(|e| tensors.corrupt(e)),
        None => Ok(data),
    }
}

pub(crate) fn read(settings: Value, source: &TableSource, tensors: &mut Tensors) -> Read {
    let names = source.inputs.schema.feature_names();
    let kernel = source.record.kernel.build(&names).map_err(|e| tensors.corrupt(e))?;
    let prior = (kernel, source.record.mean, names.len());
    let sizes = (source.record.rows, source.inputs.schema.features.len());
    Ok(Arc::new(read_process(settings, (source, prior), sizes, tensors)?))
}

/// A kernel and the form of a mean, of so many inputs.
type PriorForm = (Box<dyn Kernel<f64>>, MeanForm, usize);

/// A process with this kernel and mean, on so many rows of so many inputs.
pub(crate) fn read_process(
    settings: Value,
    (source, (kernel, mean, width)): (&TableSource, PriorForm),
    (n, d): (usize, usize),
    tensors: &mut Tensors,
) -> Result<ExactPosterior, StoreError> {
    let info: CholeskyInfo = super::settings(settings, tensors)?;
    let model = model(source, (kernel, mean), width).map_err(|e| tensors.corrupt(e))?;
    let data = read_observations((n, d), tensors)?;
    let weights = tensors.matrix("weights", n, 1)?;
    let cholesky = Cholesky::from_factor(tensors.factor("factor", n)?, info);
    ExactPosterior::from_parts(model, data, cholesky, weights).map_err(|e| tensors.corrupt(e))
}

/// The process with its hyperparameters.
fn model(
    source: &TableSource,
    (kernel, mean): (Box<dyn Kernel<f64>>, MeanForm),
    inputs: usize,
) -> Result<ExactGp, String> {
    let mut model = ExactGp::new(kernel, mean, source.noise()?, inputs, 1);
    let segments = model.segments();
    let known = &source.record.hyperparameters;
    let expected: Vec<(&str, usize)> = segments.iter().map(|s| (s.name.as_str(), s.len())).collect();
    let found: Vec<(&str, usize)> = known.iter().map(|h| (h.name.as_str(), h.values.len())).collect();
    if expected != found {
        return Err(format!("its hyperparameters {found:?} are not those of its kernel, {expected:?}"));
    }
    let bad = |(h, segment): (&Hyperparameter, &Segment)| h.out_of_range(segment).is_some();
    if known.iter().zip(&segments).any(bad) {
        return Err("a hyperparameter is out of its range".into());
    }
    let values: Vec<f64> = known.iter().flat_map(|h| h.values.iter().copied()).collect();
    model.set_values(&values);
    Ok(model)
}
