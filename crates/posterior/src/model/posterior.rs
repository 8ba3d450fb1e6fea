//! The posteriors that a model may hold.

use faer::{Mat, MatRef};
use posterior_gp::exact::ExactPosterior;
use posterior_gp::inducing::InducingPosterior;
use posterior_gp::iterative::PathwisePosterior;
use posterior_gp::{GpError, JointPrediction, Posterior, Prediction};
use posterior_linalg::random::ChaCha8Rng;

/// A posterior over functions, by one of the methods.
#[derive(Debug)]
pub enum ProcessPosterior {
    /// All in closed form.
    Exact(ExactPosterior),
    /// Weights by an iterative solver, in single precision.
    Single(PathwisePosterior<f32>),
    /// Weights by an iterative solver, in double precision.
    Double(PathwisePosterior<f64>),
    /// Inducing points.
    Inducing(InducingPosterior),
}

impl ProcessPosterior {
    fn inner(&self) -> &dyn Posterior {
        match self {
            Self::Exact(posterior) => posterior,
            Self::Single(posterior) => posterior,
            Self::Double(posterior) => posterior,
            Self::Inducing(posterior) => posterior,
        }
    }

    /// The training inputs (n x D, standardised) and targets (n x 1), for methods that keep them.
    pub fn training(&self) -> Option<(MatRef<'_, f64>, MatRef<'_, f64>)> {
        let data = match self {
            Self::Exact(posterior) => posterior.data(),
            Self::Single(posterior) => posterior.data(),
            Self::Double(posterior) => posterior.data(),
            Self::Inducing(_) => return None,
        };
        Some((data.inputs(), data.targets()))
    }

    /// Samples that are functions, of which draws are a choice; None where draws are made when asked for.
    pub fn stored_samples(&self) -> Option<usize> {
        match self {
            Self::Single(posterior) => Some(posterior.settings().samples),
            Self::Double(posterior) => Some(posterior.settings().samples),
            Self::Exact(_) | Self::Inducing(_) => None,
        }
    }
}

impl Posterior for ProcessPosterior {
    fn predict(&self, x: MatRef<'_, f64>) -> Result<Prediction, GpError> {
        self.inner().predict(x)
    }

    fn joint(&self, x: MatRef<'_, f64>) -> Result<JointPrediction, GpError> {
        self.inner().joint(x)
    }

    fn sample(
        &self,
        x: MatRef<'_, f64>,
        target: usize,
        count: usize,
        rng: &mut ChaCha8Rng,
    ) -> Result<(Mat<f64>, f64), GpError> {
        self.inner().sample(x, target, count, rng)
    }
}
