//! The likelihoods as one serialisable type, for configurations and model files.

use crate::{
    Bernoulli, Categorical, FullGaussian, Gaussian, HeteroscedasticGaussian, Likelihood, NegativeBinomial,
    Poisson, RobustMax, StudentT,
};
use posterior_optim::{Parameters, Segment};
use serde::{Deserialize, Serialize};
use std::ops::Deref;

/// One of the likelihoods, written as `{ kind = "categorical", classes = 10 }`. It says nothing itself: it lends the
/// [`Likelihood`] inside.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum OutputLikelihood {
    /// Additive noise, independent between outputs.
    Gaussian(Gaussian),
    /// Additive noise, correlated between outputs.
    FullGaussian(FullGaussian),
    /// One class of several.
    Categorical(Categorical),
    /// One class of several, that of the largest latent value but for errors.
    RobustMax(RobustMax),
    /// Independent events.
    Bernoulli(Bernoulli),
    /// Independent counts.
    Poisson(Poisson),
    /// Independent counts with more scatter than those.
    NegativeBinomial(NegativeBinomial),
    /// Additive noise whose variance is an output as well.
    HeteroscedasticGaussian(HeteroscedasticGaussian),
    /// Additive noise with outliers.
    StudentT(StudentT),
}

impl Deref for OutputLikelihood {
    type Target = dyn Likelihood;

    /// Never inlined: each crate that this were inlined in would compile the methods of all likelihoods anew.
    #[inline(never)]
    fn deref(&self) -> &(dyn Likelihood + 'static) {
        match self {
            Self::Gaussian(likelihood) => likelihood,
            Self::FullGaussian(likelihood) => likelihood,
            Self::Categorical(likelihood) => likelihood,
            Self::RobustMax(likelihood) => likelihood,
            Self::Bernoulli(likelihood) => likelihood,
            Self::Poisson(likelihood) => likelihood,
            Self::NegativeBinomial(likelihood) => likelihood,
            Self::HeteroscedasticGaussian(likelihood) => likelihood,
            Self::StudentT(likelihood) => likelihood,
        }
    }
}

impl OutputLikelihood {
    fn learned(&mut self) -> &mut dyn Parameters {
        match self {
            Self::Gaussian(likelihood) => likelihood,
            Self::FullGaussian(likelihood) => likelihood,
            Self::Categorical(likelihood) => likelihood,
            Self::RobustMax(likelihood) => likelihood,
            Self::Bernoulli(likelihood) => likelihood,
            Self::Poisson(likelihood) => likelihood,
            Self::NegativeBinomial(likelihood) => likelihood,
            Self::HeteroscedasticGaussian(likelihood) => likelihood,
            Self::StudentT(likelihood) => likelihood,
        }
    }
}

/// What is learned of the likelihood inside.
impl Parameters for OutputLikelihood {
    fn segments(&self) -> Vec<Segment> {
        (**self).segments()
    }
    fn values(&self) -> Vec<f64> {
        (**self).values()
    }
    fn set_values(&mut self, values: &[f64]) {
        self.learned().set_values(values);
    }
}
