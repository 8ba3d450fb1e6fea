//! The search for hyperparameters of filters with a stored kernel.

use super::evidence::{
    EvidenceValue, ImageHyperparameters, LEAST_LOG_VARIANCE, LearnedHyperparameters, StoredEvidence,
};
use super::filters::FilterHyperparameters;
use crate::TomographyError;
use posterior_optim::{
    Lbfgs, LoopOptions, Objective, ObjectiveError, Observer, Optimiser, Reason, State, minimise, resume,
};

/// The negative evidence as what a search minimises.
pub struct EvidenceSearch<'a, 'b> {
    /// What is evaluated.
    pub evidence: &'a StoredEvidence<'b>,
    /// What is learned.
    pub learned: LearnedHyperparameters,
    /// Where everything else stays.
    pub held: &'a ImageHyperparameters,
}

impl Objective for EvidenceSearch<'_, '_> {
    fn dimension(&self) -> usize {
        self.learned.pack(self.held).len()
    }

    fn value_and_gradient(&mut self, at: &[f64], gradient: &mut [f64]) -> Result<f64, ObjectiveError> {
        let hyperparameters = self.learned.unpack(at, self.held);
        let found = self.evidence.value_and_slopes(&hyperparameters);
        let EvidenceValue { value, filters, noise } = found.map_err(|e| ObjectiveError(e.to_string()))?;
        // A variance at its least does not move.
        let mut slopes = self.learned.pack_slopes(&filters, noise);
        let variances = if self.learned.tied { 1 } else { filters[0].len() };
        for (own, slope) in at.iter().zip(&mut slopes).take(variances) {
            if *own < LEAST_LOG_VARIANCE && *slope < 0.0 {
                *slope = 0.0;
            }
        }
        gradient.iter_mut().zip(slopes).for_each(|(g, s)| *g = -s);
        Ok(-value)
    }
}

/// What a search found.
#[derive(Clone, Debug)]
pub struct FoundHyperparameters {
    /// The best.
    pub hyperparameters: ImageHyperparameters,
    /// Their evidence (with the density of lengthscales where it was asked for), nats.
    pub evidence: f64,
    /// Steps taken.
    pub steps: usize,
    /// Why it ended.
    pub reason: Reason,
}

impl StoredEvidence<'_> {
    /// Where a search begins: these filters with one variance under which the prior's measurements are as large as the targets, and the noise that is given, or as large as what the network leaves of the measurements.
    pub fn start(
        &self,
        filters: FilterHyperparameters,
        log_noise_variance: Option<f64>,
    ) -> ImageHyperparameters {
        let least = f64::MIN_POSITIVE;
        let squares = |values: &[f64]| values.iter().map(|v| v * v).sum::<f64>().max(least);
        let c = self.targets.len() as f64;
        let log_noise_variance = log_noise_variance.unwrap_or_else(|| (squares(self.residual) / c).ln());
        let mut start = ImageHyperparameters { filters, log_noise_variance };
        start.filters.log_variances.iter_mut().for_each(|v| *v = 0.0);
        let system = self.system(&start);
        let trace: f64 = (0..system.nrows()).map(|i| system[(i, i)]).sum();
        let signal = trace - c * log_noise_variance.exp();
        let level = (squares(self.targets) / signal.max(least)).ln().max(LEAST_LOG_VARIANCE);
        start.filters.log_variances.iter_mut().for_each(|v| *v = level);
        start
    }

    /// The hyperparameters that maximise it, by L-BFGS from a start or from a saved state on.
    ///
    /// # Errors
    /// [`TomographyError`]; [`TomographyError::Interrupted`].
    pub fn search(
        &self,
        learned: LearnedHyperparameters,
        start: &ImageHyperparameters,
        steps: usize,
        saved: Option<State>,
        observer: &mut Observer<'_, State>,
    ) -> Result<FoundHyperparameters, TomographyError> {
        let mut search = EvidenceSearch { evidence: self, learned, held: start };
        let loops = LoopOptions { steps, ..LoopOptions::default() };
        let outcome = match saved {
            Some(state) => resume(&mut search, state, &loops, observer)?,
            None => {
                let optimiser = Optimiser::Lbfgs(Lbfgs::default());
                minimise(&mut search, &learned.pack(start), optimiser, &loops, observer)?
            }
        };
        if outcome.reason == Reason::Interrupted {
            return Err(TomographyError::Interrupted);
        }
        Ok(FoundHyperparameters {
            hyperparameters: learned.unpack(&outcome.theta, start),
            evidence: -outcome.value,
            steps: outcome.steps,
            reason: outcome.reason,
        })
    }
}
