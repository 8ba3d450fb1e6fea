//! **Methods**: what each of them predicts, writes and reads, one file for each kind of [`Predictor`].
//!
//! A new method is a file here with its settings, which implement `MethodSettings`, and its predictor: it needs a line in each of two tables. A reader is given what the predictor wrote, and what is known of every process or network: its kernel, mean, hyperparameters and likelihood, or its record. Other modules ask the traits, and no module asks which method it is: a test searches for that.
//! Accessors such as `low_rank` show users the posterior of one method.
//!
//! | file | what |
//! |---|---|
//! | `exact` | all in closed form |
//! | `embedded` | the same behind a network |
//! | `pathwise`, `precision` | weights by an iterative solver, in single or double precision |
//! | `compressed` | the same, carried by fewer points |
//! | `inducing` | inducing points, under any likelihood |
//! | `low_rank` | weights of learned features, under any likelihood |
//! | `generalised` | a mean and a covariance that are independent of each other, under any likelihood |
//! | `laplace` | the curvature at the mode |
//! | `independent` | a predictor for each function |
//! | `network` | a network with its posterior, in single or double precision |
//! | `mixture` | several networks as one |
//! | `stored` | kernel, mean and likelihood of a process from its header |
//! | `table` | the tables of methods and of readers |
//! | `settings` | how each method is planned, timed and fitted |
//! | `deep` | learned features |
//! | `inference` | fits under any likelihood: classes, counts, outliers |
//! | `gvi` | means and covariances that are free of each other |
//! | `noise` | how far observations scatter at each place |
//! | `large` | methods for large tables |
//! | `regression` | regression with Gaussian noise by the exact method or one for large tables |
//! | `training` | what methods share when they train |

#[macro_use]
mod table;

mod compressed;
pub(crate) mod deep;
mod embedded;
mod exact;
mod folds;
mod generalised;
mod gvi;
mod independent;
mod inducing;
pub(crate) mod inference;
mod laplace;
pub(crate) mod large;
mod low_rank;
mod mixture;
mod network;
pub(crate) mod noise;
mod pathwise;
mod precision;
pub(crate) mod regression;
mod settings;
mod stored;
#[cfg(test)]
mod tests;
pub(crate) mod training;

pub(crate) use compressed::COMPARED;
pub(crate) use embedded::embedding_kernel;
pub(crate) use generalised::kernel_behind;
pub use independent::IndependentFunctions;
pub(crate) use laplace::read_process;
pub(crate) use low_rank::{LowRank, hyperparameters};
pub(crate) use mixture::Mixture;
pub use network::Fitted;
pub(crate) use network::{PIECE, predictor};
pub use precision::SolverPrecision;
pub(crate) use table::{NETWORK_READERS, READERS};

use crate::predictor::{Samples, StreamOf, bytes_of};
use crate::speed::{dense_rate, seconds_of_pair};
use crate::{Batch, Cost, Latent, ModelError, Predictor, Want};
use faer::MatRef;
use posterior_gp::Posterior;
use posterior_kernels::Kernel;
use posterior_linear::low_rank::LowRankPosterior;
use posterior_networks::Precision;
use posterior_store::{StoreError, Tensors};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::any::Any;
use std::sync::Arc;

/// What a file has of a predictor besides its arrays.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct PredictorHeader {
    /// Its key in the table of readers.
    kind: String,
    /// What it wrote itself.
    settings: Value,
}

/// A predictor that was read.
type Read = Result<Arc<dyn Predictor>, StoreError>;

/// Makes a predictor of its settings, of what is known of its source, and of its arrays.
pub(crate) type Reader<S> = fn(Value, &S, &mut Tensors) -> Read;

impl PredictorHeader {
    /// Of a predictor, whose arrays are added.
    pub(crate) fn write(predictor: &dyn Predictor, out: &mut Tensors) -> Result<Self, StoreError> {
        Ok(Self { kind: predictor.kind().into(), settings: predictor.write(out)? })
    }

    /// The predictor, by one of these readers.
    pub(crate) fn read<S>(self, readers: &[(&str, Reader<S>)], source: &S, tensors: &mut Tensors) -> Read {
        match readers.iter().find(|(kind, _)| *kind == self.kind) {
            Some((_, read)) => read(self.settings, source, tensors),
            None => Err(tensors.corrupt(format!("its method `{}` is not known", self.kind))),
        }
    }
}

/// The settings that a predictor wrote.
fn settings<S: DeserializeOwned>(written: Value, tensors: &Tensors) -> Result<S, StoreError> {
    serde_json::from_value(written).map_err(|e| tensors.corrupt(e))
}

/// The posteriors of some methods, for users who want all that these offer.
impl dyn Predictor {
    /// The posterior itself, where it is of this type.
    pub fn posterior<T: Any>(&self) -> Option<&T> {
        let own: &dyn Any = self;
        own.downcast_ref()
    }

    /// A linear model of features.
    pub fn low_rank(&self) -> Option<&LowRankPosterior> {
        self.posterior::<LowRank>().map(|own| &own.posterior)
    }

    /// A network with its posterior, in this precision.
    pub fn fitted<T: Precision>(&self) -> Option<&Fitted<T>> {
        self.posterior::<network::NetworkPredictor<T>>().map(|own| &*own.fitted)
    }
}

/// Marginals of a posterior of one function in closed form.
fn closed_form(posterior: &dyn Posterior, x: Batch<'_>, want: &Want) -> Result<Latent, ModelError> {
    Ok(posterior.predict(closed_form_rows(x, want)?)?.into())
}

/// The rows of a batch, where variances have a closed form.
fn closed_form_rows<'a>(x: Batch<'a>, want: &Want) -> Result<MatRef<'a, f64>, ModelError> {
    want.variances.check_closed_form()?;
    x.rows()
}

/// Joint draws of each of so many functions.
fn draws(
    posterior: &dyn Posterior,
    functions: usize,
    (x, count): (MatRef<'_, f64>, usize),
    stream: StreamOf<'_>,
) -> Samples {
    (0..functions).map(|c| Ok(posterior.sample(x, c, count, &mut stream(c))?.0)).collect()
}

/// Operations of one row of a kernel matrix of so many points of so many inputs.
fn row_effort(points: usize, inputs: usize) -> f64 {
    points as f64 * (2.0 * inputs as f64 + 30.0)
}

/// What marginals by blocks of rows take, of so many operations for each.
fn blocks_of_points(rows: usize, points: usize, flops: f64) -> Cost {
    Cost { bytes: bytes_of(&[3, rows.min(1024) as u64, points as u64]), flops: rows as f64 * flops }
}

/// Seconds of so many entries of a kernel matrix and so many operations on it.
fn dense_seconds(kernel: &dyn Kernel<f64>, points: MatRef<'_, f64>, entries: f64, flops: f64) -> f64 {
    entries * seconds_of_pair(kernel, points, 1) + flops / dense_rate()
}

/// Bytes of tiles of a kernel matrix on all threads, and random features of a block of rows.
pub(crate) const TILES: u64 = 32 << 20;
