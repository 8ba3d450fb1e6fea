//! What readers are given: the part of a header that says which arrays there are, and what their numbers mean.

use super::precision::SolverPrecision;
use crate::Hyperparameter;
use crate::process::DeepSummary;
use crate::process::GviSummary;
use crate::process::ScalableSummary;
use posterior_data::Schema;
use posterior_gp::{Mean, MeanForm};
use posterior_kernels::{Kernel, KernelExpression};
use posterior_likelihoods::{Gaussian, Likelihood};
use posterior_linalg::cholesky::CholeskyInfo;
use posterior_optim::Parameters;

/// A predictor as a header describes it.
pub(crate) struct Stored<'a> {
    /// Its key in the table of readers; empty where the method is not known.
    pub(crate) kind: &'static str,
    /// What the header calls the method.
    pub(crate) method: &'a str,
    pub(crate) schema: &'a Schema,
    pub(crate) kernel: &'a KernelExpression,
    pub(crate) mean: MeanForm,
    pub(crate) rows: usize,
    pub(crate) hyperparameters: &'a [Hyperparameter],
    /// None under Gaussian noise, which is among the hyperparameters.
    pub(crate) likelihood: Option<Box<dyn Likelihood>>,
    pub(crate) noise_floor: f64,
    pub(crate) cholesky: CholeskyInfo,
    /// Inducing points of a bound.
    pub(crate) inducing: Option<usize>,
    /// How weights were solved for.
    pub(crate) solved: Option<&'a ScalableSummary>,
    /// Learned features, and what is added to latent values.
    pub(crate) deep: Option<&'a DeepSummary>,
    pub(crate) level: Option<f64>,
    /// A mean and a covariance.
    pub(crate) variation: Option<&'a GviSummary>,
    /// Functions that are independent of each other: their offsets, common scale and predictors.
    pub(crate) functions: Option<(&'a [f64], f64, Vec<Stored<'a>>)>,
}

impl Stored<'_> {
    /// The values of a hyperparameter.
    pub(super) fn hyperparameter(&self, name: &str) -> Option<&[f64]> {
        self.hyperparameters.iter().find(|h| h.name == name).map(|h| h.values.as_slice())
    }

    /// Kernel and means with their hyperparameters.
    pub(super) fn process<T: SolverPrecision>(&self) -> Result<(Box<dyn Kernel<T>>, Mean), String> {
        let names = self.schema.feature_names();
        let mut kernel = self.kernel.build::<T>(&names).map_err(|e| e.to_string())?;
        let functions = self.likelihood.as_ref().map_or(1, |own| own.outputs());
        let mut mean = Mean::new(self.mean, names.len(), functions);
        let segments = kernel.segments();
        let bad = |h: &&Hyperparameter| match segments.iter().find(|s| s.name == h.name) {
            Some(segment) => h.out_of_range(segment).is_some(),
            None => h.values.iter().any(|v| !(v.is_finite() && *v > 0.0)),
        };
        if self.hyperparameters.iter().filter(|h| !h.name.starts_with("mean.")).any(|h| bad(&h)) {
            return Err("a hyperparameter is out of its range".into());
        }
        let parts: [&mut dyn Parameters; 2] = [&mut *kernel, &mut mean];
        for part in parts {
            if let Some(name) = Hyperparameter::give(self.hyperparameters, part).first() {
                return Err(format!("it has no hyperparameter `{name}` of its length"));
            }
        }
        match mean.values().iter().all(|v| v.is_finite()) {
            true => Ok((kernel, mean)),
            false => Err("its prior mean is not finite".into()),
        }
    }

    /// Gaussian noise, from the hyperparameters.
    pub(super) fn noise(&self) -> Result<Gaussian, String> {
        let noise = self.hyperparameters.iter().find(|h| h.name.ends_with("noise_variance"));
        let noise = noise.and_then(|h| h.values.first().copied()).ok_or("it has no noise variance")?;
        match self.noise_floor >= 0.0 && noise > self.noise_floor {
            true => Ok(Gaussian::new(noise, self.noise_floor)),
            false => Err(format!("its noise variance {noise} is not above its floor {}", self.noise_floor)),
        }
    }
}
