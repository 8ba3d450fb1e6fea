//! Exact processes behind a network: deep kernels without an approximation.

use super::exact::{read_process, solved_draws};
use super::{Read, closed_form, dense_seconds, draws, row_effort};
use crate::network::{NETWORK, read_network, write_network};
use crate::predictor::{Drawn, Samples, StreamOf};
use crate::{
    Batch, Cost, DrawnFunctions, Latent, ModelError, Predictor, Prior, TableSource, VarianceMethod, Want,
};
use faer::{Mat, MatRef};
use posterior_gp::exact::EmbeddedPosterior;
use posterior_gp::iterative::PathwisePosterior;
use posterior_gp::{GpError, MeanForm, Posterior};
use posterior_kernels::{Kernel, KernelExpression};
use posterior_linalg::cholesky::CholeskyInfo;
use posterior_linalg::random::Streams;
use posterior_linear::embedding::Embedding;
use posterior_store::{StoreError, Tensors};
use posterior_tangent::NetworkEmbedding;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;

pub(crate) const KIND: &str = "exact behind a network";

/// What a file has of it besides arrays.
#[derive(Serialize, Deserialize)]
struct Settings {
    /// The network.
    architecture: String,
    /// Those of the process behind it.
    process: Value,
}

/// Weights of the network that are learned.
fn weights(posterior: &EmbeddedPosterior) -> f64 {
    posterior.embedding().unconstrained().len() as f64
}

impl Predictor for EmbeddedPosterior {
    fn latent(&self, x: Batch<'_>, want: &Want) -> Result<Latent, ModelError> {
        closed_form(self, x, want)
    }

    fn samples(&self, x: MatRef<'_, f64>, count: usize, stream: StreamOf<'_>) -> Samples {
        draws(self, 1, (x, count), stream)
    }

    fn support(&self) -> usize {
        self.exact().data().rows()
    }

    fn cost(&self, rows: usize) -> Cost {
        let (n, m) = (self.support() as u64, rows as u64);
        let embedding = self.embedding();
        // Rows pass through the network some at a time, and stay embedded.
        let passing = m.min(embedding.rows_at_once() as u64).saturating_mul(embedding.bytes_of_row() as u64);
        let embedded = 8 * m.saturating_mul(embedding.width() as u64);
        let block = 16 * m.min(512).saturating_mul(n);
        Cost { bytes: block + passing + embedded, flops: m as f64 * ((n * n) as f64 + 2.0 * weights(self)) }
    }

    fn effort(&self, inputs: usize) -> [f64; 2] {
        let n = self.support() as f64;
        let row = row_effort(self.support(), inputs) + 2.0 * weights(self);
        [row, row + n * n / 16.0]
    }

    fn seconds(&self, rows: usize, _: VarianceMethod) -> Option<f64> {
        let (m, n, exact) = (rows as f64, self.support() as f64, self.exact());
        let flops = m * (n * n + 2.0 * weights(self));
        Some(dense_seconds(exact.model().kernel(), exact.data().inputs(), m * n, flops))
    }

    fn kind(&self) -> &'static str {
        KIND
    }

    fn write(&self, out: &mut Tensors) -> Result<Value, StoreError> {
        let embedding = self.embedding().as_any().downcast_ref::<NetworkEmbedding<f32>>();
        let network = embedding.map(|own| write_network(NETWORK, own.network(), out));
        let architecture = network.transpose()?.unwrap_or_default();
        let process = self.exact().write(out)?;
        Ok(posterior_store::to_value(&Settings { architecture, process })?)
    }

    fn process(&self) -> Option<&dyn Posterior> {
        Some(self)
    }

    fn noise_variance(&self) -> Option<f64> {
        self.exact().noise_variance()
    }

    fn functions(self: Arc<Self>, count: usize, streams: Streams) -> Option<Drawn> {
        let drawn = solved_draws(EmbeddedPosterior::exact(&self), count, streams);
        Some(drawn.map(|drawn| Arc::new(DrawnBehind { process: self, drawn }) as _))
    }

    fn prior(&self) -> Option<Prior<'_>> {
        Some(Prior::Embedded(self))
    }

    fn factored(&self) -> Option<CholeskyInfo> {
        Some(self.exact().info())
    }
}

/// A kernel on the outputs of a network.
pub(crate) fn embedding_kernel(
    kernel: &KernelExpression,
    outputs: usize,
) -> Result<Box<dyn Kernel<f64>>, ModelError> {
    let names: Vec<String> = (1..=outputs).map(|i| format!("embedding{i}")).collect();
    Ok(kernel.build(&names)?)
}

/// Draws of what the network makes of rows.
#[derive(Debug)]
struct DrawnBehind {
    process: Arc<EmbeddedPosterior>,
    drawn: PathwisePosterior<f64>,
}

impl DrawnFunctions for DrawnBehind {
    fn values(&self, x: MatRef<'_, f64>) -> Result<Mat<f64>, GpError> {
        self.drawn.samples(EmbeddedPosterior::embedded(&self.process, x)?.as_ref(), 0)
    }
}

pub(crate) fn read(settings: Value, source: &TableSource, tensors: &mut Tensors) -> Read {
    let Settings { architecture, process } = super::settings(settings, tensors)?;
    let embedding = NetworkEmbedding::new(read_network::<f32>(NETWORK, &architecture, tensors)?);
    let width = embedding.width();
    let shape = tensors.shape("weights");
    let Some(&[rows, 1]) = shape.as_deref() else {
        return Err(tensors.corrupt("its weights are no column"));
    };
    let kernel = embedding_kernel(&source.record.kernel, width).map_err(|e| tensors.corrupt(e))?;
    let prior = (kernel, MeanForm::Zero, width);
    let exact = read_process(process, (source, prior), (rows, width), tensors)?;
    let posterior = EmbeddedPosterior::new(Box::new(embedding), exact);
    Ok(Arc::new(posterior.map_err(|e| tensors.corrupt(e))?))
}
