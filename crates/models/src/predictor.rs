//! What every method makes of a fit: something that predicts latent functions.

use crate::{Latent, ModelError, Prior, VarianceMethod, VarianceShares};
use faer::{Mat, MatRef};
use posterior_data::NumericArray;
use posterior_gp::exact::{ExactPosterior, LeaveOneOut};
use posterior_gp::inducing::InducingPosterior;
use posterior_gp::iterative::Support;
use posterior_gp::{Averages, GpError, JointPrediction, Observations, Posterior};
use posterior_likelihoods::{Integration, OutputLikelihood};
use posterior_linalg::cholesky::CholeskyInfo;
use posterior_linalg::random::{ChaCha8Rng, Streams};
use posterior_networks::Graph;
use posterior_optim::Progress;
use posterior_store::{StoreError, Tensors};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::any::Any;
use std::fmt;
use std::sync::Arc;

/// Bytes at the peak and floating-point operations, about.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cost {
    /// Bytes.
    pub bytes: u64,
    /// Operations.
    pub flops: f64,
}

/// Bytes of an array of numbers of this shape.
pub(crate) fn bytes_of(shape: &[u64]) -> u64 {
    shape.iter().fold(8, |all, count| all.saturating_mul(*count))
}

/// What is predicted.
#[derive(Clone, Copy, Debug)]
pub enum Batch<'a> {
    /// Rows of standardised inputs (m x D), for processes.
    Rows(MatRef<'a, f64>),
    /// Examples `[m, ...]` as they stand in files, for networks.
    Arrays(&'a NumericArray),
}

impl<'a> Batch<'a> {
    /// The rows.
    ///
    /// # Errors
    /// [`ModelError::Request`] for arrays.
    pub fn rows(self) -> Result<MatRef<'a, f64>, ModelError> {
        match self {
            Self::Rows(x) => Ok(x),
            Self::Arrays(_) => Err(ModelError::Request("a process predicts rows, not arrays".into())),
        }
    }

    /// The arrays.
    ///
    /// # Errors
    /// [`ModelError::Request`] for rows.
    pub fn arrays(self) -> Result<&'a NumericArray, ModelError> {
        match self {
            Self::Arrays(x) => Ok(x),
            Self::Rows(_) => Err(arrays_only()),
        }
    }
}

impl<'a> From<MatRef<'a, f64>> for Batch<'a> {
    fn from(x: MatRef<'a, f64>) -> Self {
        Self::Rows(x)
    }
}

fn arrays_only() -> ModelError {
    ModelError::Request("a network predicts arrays, not rows".into())
}

/// What is wanted of the latent values.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Want {
    /// Where variances come from, where there is a choice.
    pub variances: VarianceMethod,
    /// How predictions average over the outputs of a network; as at the fit where absent.
    pub integration: Option<Integration>,
    /// Whether densities of truths follow, which may need correlations between the outputs of a network.
    pub scored: bool,
    /// Whether networks are asked without their error bars.
    pub plain: bool,
}

/// What only posteriors of networks can do. Values are in the network's own units.
pub trait NetworkPosterior {
    /// The structure of the network.
    fn graph(&self) -> &Graph;

    /// `f32` or `f64`.
    fn precision(&self) -> &'static str;

    /// Number of weights with a posterior.
    fn weights(&self) -> usize;

    /// Prior precisions with the names of their groups.
    fn precisions(&self) -> (&[String], &[f64]);

    /// Whether functions are drawn once, to be followed from input to input; else values are drawn together for all inputs of a question.
    fn draws_functions(&self) -> bool;

    /// `count` functions at all inputs, `[count, m, outputs]`: the same for the same seed.
    ///
    /// # Errors
    /// When inputs do not fit, or more than `memory` bytes are needed.
    fn function_samples(
        &self,
        x: &NumericArray,
        count: usize,
        seed: u64,
        memory: u64,
    ) -> Result<Vec<f64>, ModelError>;

    /// The likelihood, with learned noise, and how predictions average over latent values unless told otherwise.
    fn observed(&self) -> (OutputLikelihood, Integration);

    /// The covariance of all outputs of all inputs, `[m * outputs, m * outputs]`.
    ///
    /// # Errors
    /// As [`Self::function_samples`].
    fn covariance(&self, x: &NumericArray, memory: u64) -> Result<Mat<f64>, ModelError>;

    /// What latent values of so many examples take.
    fn latent_cost(&self, examples: usize, want: &Want) -> Cost;
}

/// Draws of a latent function that can be evaluated anywhere: equal inputs give equal values, whenever they are asked for.
pub trait DrawnFunctions: fmt::Debug + Send + Sync {
    /// All of them at the rows of x (m x D), a column each, in the predictor's units.
    ///
    /// # Errors
    /// [`GpError`] when the width is wrong or a value is not finite.
    fn values(&self, x: MatRef<'_, f64>) -> Result<Mat<f64>, GpError>;
}

/// Random numbers of each function.
pub(crate) type StreamOf<'a> = &'a dyn Fn(usize) -> ChaCha8Rng;

/// Joint draws, a matrix m x count for each function.
pub(crate) type Samples = Result<Vec<Mat<f64>>, ModelError>;

/// Draws that are functions.
pub(crate) type Drawn = Result<Arc<dyn DrawnFunctions>, ModelError>;

/// What finds each row as the others predict it.
pub(crate) type LeftOutRows<'a> = Box<dyn FnOnce() -> LeaveOneOut + 'a>;

/// How far a compressed model is from the one it came from, whose scores, solver and evidence its header keeps.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Compression {
    /// Rows that carried its functions before.
    pub rows: usize,
    /// Points that carry them now.
    pub points: usize,
    /// Training rows on which both were compared.
    pub compared: usize,
    /// By how much means differ there: root mean square, in predicted standard deviations of new observations.
    pub mean_error: f64,
    /// The largest such difference.
    pub largest_mean_error: f64,
    /// By how much these standard deviations differ, relative to what they were (root mean square).
    pub deviation_error: f64,
    /// What was added to the diagonal of the points' kernel matrix (of the standardised target).
    pub jitter: f64,
}

/// A predictor that fewer points carry, and how far it is from the one that it came from.
pub(crate) type Compressed = Result<(Arc<dyn Predictor>, Compression), ModelError>;

/// A posterior over latent functions of standardised inputs, by one of the methods. Methods with a default are for what only some posteriors can do.
pub trait Predictor: Any + fmt::Debug + Send + Sync {
    /// Gaussians over the latent values of a batch, with variances by the method that is wanted where there is a choice.
    ///
    /// # Errors
    /// [`ModelError::Request`] for a batch of another kind; [`ModelError::Gp`] for inputs of another width or not finite; [`ModelError::VarianceMemory`] before anything is solved; [`ModelError::Usage`] for variances that the method does not have.
    fn latent(&self, x: Batch<'_>, want: &Want) -> Result<Latent, ModelError>;

    /// `count` joint draws of each function at the rows of x.
    ///
    /// # Errors
    /// As [`Self::latent`], and where a covariance cannot be factored; by default, since networks draw functions at arrays.
    fn samples(&self, _x: MatRef<'_, f64>, _count: usize, _stream: StreamOf<'_>) -> Samples {
        Err(arrays_only())
    }

    /// Points whose kernels make a prediction, or features; none of networks.
    fn support(&self) -> usize {
        0
    }

    /// What marginals of so many rows take.
    fn cost(&self, rows: usize) -> Cost;

    /// Floating-point operations, about: of the means at one row of so many inputs, and of one row of an average.
    fn effort(&self, _inputs: usize) -> [f64; 2] {
        [self.cost(1).flops; 2]
    }

    /// Its key in the table of readers (`method::READERS`).
    fn kind(&self) -> &'static str;

    /// Adds its arrays, and returns what else only it needs to be read back: its settings, null where there are none.
    ///
    /// # Errors
    /// [`StoreError::State`] for settings that JSON cannot hold.
    fn write(&self, out: &mut Tensors) -> Result<Value, StoreError>;

    /// Number of latent functions.
    fn latents(&self) -> usize {
        1
    }

    /// What only networks can do; of several networks, what the first can.
    fn network(&self) -> Option<&dyn NetworkPosterior> {
        None
    }

    /// Itself as the posterior of one function under Gaussian noise, where it is.
    fn process(&self) -> Option<&dyn Posterior> {
        None
    }

    /// The variance of the Gaussian noise that it was learned under.
    fn noise_variance(&self) -> Option<f64> {
        None
    }

    /// Whether its functions depend on each other at a point.
    fn is_coupled(&self) -> bool {
        false
    }

    /// Means at the rows of x, m x C, up to a constant for each function and a unit that all share. Shares of variance need no more. For some methods they cost much less than variances.
    ///
    /// # Errors
    /// As [`Self::latent`].
    fn means(&self, x: MatRef<'_, f64>) -> Result<Mat<f64>, ModelError> {
        if let Some(process) = self.process() {
            return Ok(process.mean_values(x)?);
        }
        let found = self.latent(x.into(), &Want::default())?;
        Ok(Mat::from_fn(x.nrows(), found.functions, |i, c| found.mean_at(i)[c]))
    }

    /// Means and the covariance of the function at all rows of x.
    fn joint(&self, x: MatRef<'_, f64>) -> Option<Result<JointPrediction, ModelError>> {
        self.process().map(|process| process.joint(x).map_err(ModelError::from))
    }

    /// The function averaged over each run of `each` rows of x.
    fn averages(&self, x: MatRef<'_, f64>, each: usize) -> Option<Result<Averages, ModelError>> {
        self.process().map(|process| process.averages(x, each).map_err(ModelError::from))
    }

    /// What `count` joint draws at so many rows take.
    fn sample_cost(&self, rows: usize, count: usize) -> Cost {
        let (m, n, s) = (rows as u64, self.support() as u64, count as u64);
        let c = self.latents() as u64;
        let together = if self.is_coupled() { c } else { 1 };
        // Features of all rows; covariance, what is taken from it, their difference, its factor; noise, draws, and their copies.
        let bytes = bytes_of(&[2, m, n, together])
            .saturating_add(bytes_of(&[4, m, m, together, together]))
            .saturating_add(bytes_of(&[3, m, s, c]));
        let (m, n, s) = (rows as f64, self.support() as f64, count as f64);
        Cost { bytes, flops: n * n * m + 2.0 * n * m * m + m * m * m / 3.0 + m * m * s }
    }

    /// What the covariance at so many rows takes.
    fn joint_cost(&self, rows: usize) -> Cost {
        let (m, n) = (rows as u64, self.support() as u64);
        // Features of all rows; prior, what is taken from it, their difference, and what becomes the file.
        let bytes = bytes_of(&[3, m, n]).saturating_add(bytes_of(&[4, m, m]));
        let (m, n) = (rows as f64, self.support() as f64);
        Cost { bytes, flops: n * n * m + 2.0 * n * m * m }
    }

    /// What variances of so many rows take that are solved for; nothing where they come from samples or a closed form.
    fn variance_cost(&self, _rows: usize, _variances: VarianceMethod) -> Cost {
        Cost::default()
    }

    /// Seconds that marginals of so many rows take on this machine, about, where they are timed; at most, where variances are solved for.
    fn seconds(&self, _rows: usize, _variances: VarianceMethod) -> Option<f64> {
        None
    }

    /// `count` draws that can be evaluated anywhere.
    fn functions(self: Arc<Self>, _count: usize, _streams: Streams) -> Option<Drawn> {
        None
    }

    /// Samples that are functions, of which draws are a choice; none where draws are made when asked for.
    fn stored_samples(&self) -> Option<usize> {
        None
    }

    /// What weights that an iterative solver found stand at, and where it ended.
    fn solved(&self) -> Option<(&Support, Progress)> {
        None
    }

    /// The rows that it was conditioned on, where it keeps them.
    fn training(&self) -> Option<&Observations> {
        None
    }

    /// Each row of [`Self::training`] as the others predict it, once that is asked for (`n³/3` flops); none where it would have to be learned anew.
    fn leave_one_out(&self) -> Option<LeftOutRows<'_>> {
        None
    }

    /// Itself as an exact process, which takes further rows in closed form.
    fn exact(&self) -> Option<&ExactPosterior> {
        None
    }

    /// The same, to be changed.
    fn exact_mut(&mut self) -> Option<&mut ExactPosterior> {
        None
    }

    /// Inputs of rows that it was conditioned on, where it keeps these.
    fn training_inputs(&self) -> Option<MatRef<'_, f64>> {
        self.training().map(Observations::inputs)
    }

    /// The covariance of the function under its prior.
    fn prior(&self) -> Option<Prior<'_>> {
        None
    }

    /// Shares of the terms of its kernel in the function's variance, for columns of these names and a target of this scale.
    fn shares(&self, _names: &[String], _scale: f64) -> Option<VarianceShares> {
        None
    }

    /// What the factorisation of its kernel matrix needed.
    fn factored(&self) -> Option<CholeskyInfo> {
        None
    }

    /// Its functions, carried by so many points instead of all rows.
    fn compressed(&self, _points: usize, _seed: u64) -> Option<Compressed> {
        None
    }

    /// Posteriors of inducing points: one of all functions, or one for each. Empty for other methods.
    fn inducing(&self) -> Vec<&InducingPosterior> {
        Vec::new()
    }

    /// The same predictor with other posteriors of inducing points, as many as [`Self::inducing`] returns.
    fn with_inducing(&self, _new: Vec<InducingPosterior>) -> Option<Arc<dyn Predictor>> {
        None
    }
}
