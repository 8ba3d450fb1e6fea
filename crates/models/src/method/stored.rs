//! What readers of processes take from a header: kernel, mean and likelihood, with their hyperparameters.

use super::precision::SolverPrecision;
use crate::{Hyperparameter, TableSource};
use posterior_gp::Mean;
use posterior_kernels::Kernel;
use posterior_likelihoods::{Gaussian, Likelihood};
use posterior_optim::Parameters;

impl TableSource {
    /// Kernel and means with their hyperparameters.
    pub(super) fn kernel_and_mean<T: SolverPrecision>(&self) -> Result<(Box<dyn Kernel<T>>, Mean), String> {
        let (names, known) = (self.inputs.schema.feature_names(), &self.record.hyperparameters);
        let mut kernel = self.record.kernel.build::<T>(&names).map_err(|e| e.to_string())?;
        let mut mean = Mean::new(self.record.mean, names.len(), self.output.functions());
        let segments = kernel.segments();
        let bad = |h: &&Hyperparameter| match segments.iter().find(|s| s.name == h.name) {
            Some(segment) => h.out_of_range(segment).is_some(),
            None => h.values.iter().any(|v| !(v.is_finite() && *v > 0.0)),
        };
        if known.iter().filter(|h| !h.name.starts_with("mean.")).any(|h| bad(&h)) {
            return Err("a hyperparameter is out of its range".into());
        }
        let parts: [&mut dyn Parameters; 2] = [&mut *kernel, &mut mean];
        for part in parts {
            if let Some(name) = Hyperparameter::give(known, part).first() {
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
        let noise = self.record.hyperparameters.iter().find(|h| h.name.ends_with("noise_variance"));
        let noise = noise.and_then(|h| h.values.first().copied()).ok_or("it has no noise variance")?;
        let floor = self.record.noise_floor.unwrap_or(0.0);
        match floor >= 0.0 && noise > floor && noise.is_finite() {
            true => Ok(Gaussian::new(noise, floor)),
            false => Err(format!("its noise variance {noise} is not above its floor {floor}")),
        }
    }

    /// The likelihood that latent values are observed through.
    pub(super) fn likelihood(&self) -> Result<Box<dyn Likelihood>, String> {
        match self.output.likelihood() {
            Some(own) => Ok(own.likelihood.clone_box()),
            None => Ok(Box::new(self.noise()?)),
        }
    }
}
