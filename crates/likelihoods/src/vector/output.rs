//! The likelihoods of several latent values as one serialisable type, so that models need no boxes.

use super::{Bernoulli, Categorical, FullGaussian, HeteroscedasticGaussian, IndependentGaussian, Poisson};
use crate::{LikelihoodError, VectorLikelihood};
use rand::Rng;
use serde::{Deserialize, Serialize};

/// One of the likelihoods of several latent values, written as `{ kind = "categorical", classes = 10 }`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum OutputLikelihood {
    /// Additive noise, one variance for each output.
    Gaussian(IndependentGaussian),
    /// Additive noise, correlated between outputs.
    FullGaussian(FullGaussian),
    /// One class of several.
    Categorical(Categorical),
    /// Independent events.
    Bernoulli(Bernoulli),
    /// Independent counts.
    Poisson(Poisson),
    /// Additive noise whose variance is an output as well.
    HeteroscedasticGaussian(HeteroscedasticGaussian),
}

/// Calls a method on whichever likelihood it is.
macro_rules! delegate {
    ($self:ident.$method:ident($($argument:expr),*)) => {
        match $self {
            Self::Gaussian(likelihood) => likelihood.$method($($argument),*),
            Self::FullGaussian(likelihood) => likelihood.$method($($argument),*),
            Self::Categorical(likelihood) => likelihood.$method($($argument),*),
            Self::Bernoulli(likelihood) => likelihood.$method($($argument),*),
            Self::Poisson(likelihood) => likelihood.$method($($argument),*),
            Self::HeteroscedasticGaussian(likelihood) => likelihood.$method($($argument),*),
        }
    };
}

impl OutputLikelihood {
    /// Its name in a configuration.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Gaussian(_) => "gaussian",
            Self::FullGaussian(_) => "full_gaussian",
            Self::Categorical(_) => "categorical",
            Self::Bernoulli(_) => "bernoulli",
            Self::Poisson(_) => "poisson",
            Self::HeteroscedasticGaussian(_) => "heteroscedastic_gaussian",
        }
    }
}

impl VectorLikelihood for OutputLikelihood {
    fn outputs(&self) -> usize {
        delegate!(self.outputs())
    }
    fn target_width(&self) -> usize {
        delegate!(self.target_width())
    }
    fn check_target(&self, y: &[f64]) -> Result<(), LikelihoodError> {
        delegate!(self.check_target(y))
    }
    fn log_density(&self, y: &[f64], f: &[f64]) -> f64 {
        delegate!(self.log_density(y, f))
    }
    fn gradient(&self, y: &[f64], f: &[f64], out: &mut [f64]) {
        delegate!(self.gradient(y, f, out))
    }
    fn hessian(&self, y: &[f64], f: &[f64], out: &mut [f64]) {
        delegate!(self.hessian(y, f, out))
    }
    fn curvature(&self, y: &[f64], f: &[f64], out: &mut [f64]) {
        delegate!(self.curvature(y, f, out))
    }
    fn curvature_product(&self, y: &[f64], f: &[f64], u: &[f64], out: &mut [f64]) {
        delegate!(self.curvature_product(y, f, u, out))
    }
    fn root_width(&self) -> usize {
        delegate!(self.root_width())
    }
    fn root(&self, y: &[f64], f: &[f64], out: &mut [f64]) {
        delegate!(self.root(y, f, out))
    }
    fn root_product(&self, y: &[f64], f: &[f64], e: &[f64], out: &mut [f64]) {
        delegate!(self.root_product(y, f, e, out))
    }
    fn root_transpose_product(&self, y: &[f64], f: &[f64], u: &[f64], out: &mut [f64]) {
        delegate!(self.root_transpose_product(y, f, u, out))
    }
    fn curvature_needs_target(&self) -> bool {
        delegate!(self.curvature_needs_target())
    }
    fn sample(&self, f: &[f64], rng: &mut dyn Rng, out: &mut [f64]) {
        delegate!(self.sample(f, rng, out))
    }
}
