//! **Methods**: what each of them predicts, writes and reads, one file for each kind of [`Predictor`].
//!
//! A new method is a file here and a line in the table of readers. Other modules ask the trait. Accessors such as `exact` are for what only one method can do: add rows, leave one out.
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
//! | `stored` | what readers are given |

mod compressed;
mod embedded;
mod exact;
mod generalised;
mod independent;
mod inducing;
mod laplace;
mod low_rank;
mod mixture;
mod network;
mod pathwise;
mod precision;
mod stored;

pub(crate) use compressed::COMPARED;
pub(crate) use embedded::embedding_kernel;
pub(crate) use generalised::kernel_behind;
pub use independent::IndependentFunctions;
pub(crate) use laplace::read_process as read_laplace;
pub(crate) use low_rank::{LowRank, hyperparameters as hyperparameters_of_features};
pub(crate) use mixture::{Mixture, prefix};
pub use network::Fitted;
pub(crate) use network::{PIECE, StoredNetwork, predictor as network_predictor, read as read_network};
pub use pathwise::Solved;
pub use precision::SolverPrecision;
pub(crate) use stored::Stored;

use crate::ModelError;
use crate::latent::Latent;
use crate::predictor::{Batch, Cost, Predictor, Samples, StreamOf, Want, bytes_of};
use crate::speed::{dense_rate, seconds_of_pair};
use faer::MatRef;
use posterior_gp::Posterior;
use posterior_gp::exact::{EmbeddedPosterior, ExactPosterior};
use posterior_gp::generalised::GeneralisedGp;
use posterior_kernels::Kernel;
use posterior_linear::low_rank::LowRankPosterior;
use posterior_networks::Precision;
use posterior_store::{StoreError, Tensors};
use std::any::Any;
use std::sync::Arc;

/// Keys of the table of readers.
pub(crate) mod kind {
    pub(crate) const EXACT: &str = "exact";
    pub(crate) const EMBEDDED: &str = "exact behind a network";
    pub(crate) const SINGLE: &str = "weights in single precision";
    pub(crate) const DOUBLE: &str = "weights in double precision";
    pub(crate) const INDUCING: &str = "inducing points";
    pub(crate) const LOW_RANK: &str = "learned features";
    pub(crate) const GENERALISED: &str = "mean and covariance";
    pub(crate) const LAPLACE: &str = "mode";
    pub(crate) const INDEPENDENT: &str = "independent functions";
}

/// Makes a predictor of what a header and its arrays say.
type Reader = fn(Stored<'_>, &mut Tensors) -> Result<Arc<dyn Predictor>, StoreError>;

const READERS: [(&str, Reader); 9] = [
    (kind::EXACT, exact::read),
    (kind::EMBEDDED, embedded::read),
    (kind::SINGLE, pathwise::read::<f32>),
    (kind::DOUBLE, pathwise::read::<f64>),
    (kind::INDUCING, inducing::read),
    (kind::LOW_RANK, low_rank::read),
    (kind::GENERALISED, generalised::read),
    (kind::LAPLACE, laplace::read),
    (kind::INDEPENDENT, independent::read),
];

/// The predictor that a header and its arrays describe.
pub(crate) fn read(stored: Stored<'_>, tensors: &mut Tensors) -> Result<Arc<dyn Predictor>, StoreError> {
    match READERS.iter().find(|(kind, _)| *kind == stored.kind) {
        Some((_, reader)) => reader(stored, tensors),
        None => Err(tensors.corrupt(format!("its method `{}` is not known", stored.method))),
    }
}

/// The posteriors of some methods, for what only these can do.
impl dyn Predictor {
    fn downcast<T: Any>(&self) -> Option<&T> {
        let own: &dyn Any = self;
        own.downcast_ref()
    }

    /// An exact process.
    pub fn exact(&self) -> Option<&ExactPosterior> {
        self.downcast()
    }

    /// The same, to be changed.
    pub fn exact_mut(&mut self) -> Option<&mut ExactPosterior> {
        let own: &mut dyn Any = self;
        own.downcast_mut()
    }

    /// An exact process behind a network.
    pub fn embedded(&self) -> Option<&EmbeddedPosterior> {
        self.downcast()
    }

    /// A linear model of features.
    pub fn low_rank(&self) -> Option<&LowRankPosterior> {
        self.downcast::<LowRank>().map(|own| &own.posterior)
    }

    /// A variational process, whose mean and covariance are independent of each other.
    pub fn variational(&self) -> Option<&GeneralisedGp> {
        self.downcast()
    }

    /// Weights by an iterative solver.
    pub fn solved(&self) -> Option<Solved<'_>> {
        let single = self.downcast().map(Solved::Single);
        single.or_else(|| self.downcast().map(Solved::Double))
    }

    /// A network with its posterior, in this precision.
    pub fn fitted<T: Precision>(&self) -> Option<&Fitted<T>> {
        self.downcast::<network::NetworkPredictor<T>>().map(|own| &*own.fitted)
    }

    /// A predictor for each function.
    pub fn independent(&self) -> Option<&IndependentFunctions> {
        self.downcast()
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
