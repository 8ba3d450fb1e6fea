//! Draws of functions, and the covariance of all outputs of several inputs.

use crate::model::Networks;
use crate::{ModelData, ModelError, NetworkPosterior, Predicted};
use faer::{Mat, Scale};
use posterior_laplace::LaplaceError;
use posterior_linalg::random::Streams;
use posterior_notes::fixes::MEMORY;

impl Networks<'_> {
    /// `count` functions drawn from the posterior of the linearised network at all inputs, without noise: `[count, examples, outputs]`, regression in the target's units. The same
    /// functions for every call with the same seed, except for posteriors of functions (function space, inducing points), where values are drawn from their joint distribution at these inputs.
    /// Of an ensemble from its members in turn: draw `k` is of member `k mod M`.
    ///
    /// # Errors
    /// When they would pass `memory` bytes, or inputs do not fit.
    pub fn function_samples(
        &self,
        data: &ModelData,
        count: usize,
        seed: u64,
        memory: u64,
    ) -> Result<Vec<f64>, ModelError> {
        let each = data.len() * self.output.outputs();
        let values = (count as u64).saturating_mul(each as u64);
        let members = self.members().len();
        if !self.is_ensemble() {
            check(format!("{count} functions at {} inputs", data.len()), values.saturating_mul(16), memory)?;
            let mut draws = self.posterior()?.function_samples(&data.inputs, count, seed, memory)?;
            self.to_target(&mut draws);
            return Ok(draws);
        }
        check("functions of an ensemble".into(), values.saturating_mul(32), memory)?;
        let mut out = vec![0.0; count * each];
        for (k, member) in self.members().iter().enumerate() {
            let own = (count + members - 1 - k) / members;
            if own == 0 {
                continue;
            }
            let drawn = match self.is_plain() {
                true => member.plain_function(data)?.repeat(own),
                false => member.function_samples(data, own, self.seed_of(k, seed), memory)?,
            };
            for (i, draw) in drawn.chunks_exact(each.max(1)).enumerate() {
                let place = (i * members + k) * each;
                out[place..place + each].copy_from_slice(draw);
            }
        }
        Ok(out)
    }

    /// Covariance of all outputs of all inputs, `[examples * outputs, examples * outputs]`, without noise; regression in the target's units. Of an ensemble the mean of the members' covariances, and that
    /// of their functions' means.
    ///
    /// # Errors
    /// When it would pass `memory` bytes, or inputs do not fit.
    pub fn joint_covariance(&self, data: &ModelData, memory: u64) -> Result<Mat<f64>, ModelError> {
        let outputs = self.output.outputs();
        let n = data.len() * outputs;
        let values = (n as u64).saturating_mul(n as u64);
        if !self.is_ensemble() {
            let what = format!("the joint covariance of {} inputs", data.len());
            check(what, values.saturating_mul(16), memory)?;
            let mut joint = self.posterior()?.covariance(&data.inputs, memory)?;
            let (_, scale) = self.output.units;
            if outputs == 1 && scale != 1.0 {
                joint *= Scale(scale * scale);
            }
            return Ok(joint);
        }
        check("the joint covariance of an ensemble".into(), values.saturating_mul(32), memory)?;
        let members = self.members().len() as f64;
        let functions: Vec<Vec<f64>> =
            self.members().iter().map(|m| m.plain_function(data)).collect::<Result<_, _>>()?;
        let mean = |i: usize| functions.iter().map(|f| f[i]).sum::<f64>() / members;
        let mean: Vec<f64> = (0..n).map(mean).collect();
        let mut out = Mat::<f64>::zeros(n, n);
        let mut add = |own: &dyn Fn(usize, usize) -> f64| {
            for j in 0..n {
                (0..n).for_each(|i| out[(i, j)] += own(i, j) / members);
            }
        };
        for (member, function) in self.members().iter().zip(&functions) {
            let apart: Vec<f64> = function.iter().zip(&mean).map(|(f, m)| f - m).collect();
            add(&|i, j| apart[i] * apart[j]);
            if !self.is_plain() {
                let covariance = member.joint_covariance(data, memory)?;
                add(&|i, j| covariance[(i, j)]);
            }
        }
        Ok(out)
    }

    /// What only a posterior of a network can do.
    pub(crate) fn posterior(&self) -> Result<&dyn NetworkPosterior, ModelError> {
        self.predictor.network().ok_or_else(|| ModelError::Request("the model is no network".into()))
    }

    /// The seed by which network `k` draws: each of an ensemble has its own.
    pub(crate) fn seed_of(&self, k: usize, seed: u64) -> u64 {
        match self.is_ensemble() {
            true => Streams::new(seed).child("models/ensemble", k as u64).seed(),
            false => seed,
        }
    }

    /// The function of the network alone at all examples, in the units of draws.
    fn plain_function(&self, data: &ModelData) -> Result<Vec<f64>, ModelError> {
        let mut plain = self.predict_plain(data)?;
        if matches!(plain.predicted, Predicted::Moments { .. }) {
            self.to_target(&mut plain.latent_mean);
        }
        Ok(plain.latent_mean)
    }

    /// Outputs in the target's units, where these are the target's.
    fn to_target(self, outputs: &mut [f64]) {
        let (centre, scale) = self.output.units;
        if self.output.outputs() == 1 {
            outputs.iter_mut().for_each(|f| *f = centre + scale * *f);
        }
    }
}

fn check(what: String, needed: u64, allowed: u64) -> Result<(), ModelError> {
    if needed <= allowed {
        return Ok(());
    }
    let remedy = format!("ask for fewer inputs or samples at a time, or allow more ({MEMORY})");
    Err(LaplaceError::Memory { what, needed, allowed, remedy }.into())
}
