//! Searches for hyperparameters, and what is to be told of them together.

use crate::options::{EvidenceOptions, LengthscalePrior};
use crate::process::fit::add_weak_priors;
use crate::process::{FitStage, Hyperparameter, scalable};
use crate::{FitRequest, ModelError};
use posterior_gp::exact::{ExactGp, FitOptions, SeveralObservations};
use posterior_gp::gaussianised::{GaussianisedFit, GaussianisedGp, fit_gaussianised};
use posterior_gp::iterative::fit_several_on_blocks;
use posterior_gp::{Hyperprior, Observations};
use posterior_optim::{Constraint, LoopOptions, Observer, Parameters, Progress, Reason, Signal};
use std::time::{Duration, Instant};

/// Steps at most, and the change of the evidence for each value of a target below which nothing changes, of searches that need not end exactly.
const ROUGH: (usize, f64) = (15, 1e-4);

/// Makes a search end early.
fn rough_search(options: &mut FitOptions) {
    options.restarts = 1;
    options.steps.steps = options.steps.steps.min(ROUGH.0);
    options.steps.value_tolerance = options.steps.value_tolerance.max(ROUGH.1);
}

/// What is to be told of all searches.
#[derive(Clone, Debug)]
pub(super) struct Told {
    pub(super) hyperparameters: Vec<Hyperparameter>,
    pub(super) hyperpriors: Vec<Hyperprior>,
    pub(super) source: String,
    pub(super) reason: Reason,
    pub(super) steps: usize,
    pub(super) evaluations: usize,
    pub(super) largest_jitter: f64,
    pub(super) at_bounds: Vec<(String, f64)>,
}

/// Searches under one request, budget and observer.
pub(super) struct Searching<'a, 'o> {
    request: &'a FitRequest,
    evidence: &'a EvidenceOptions,
    features: usize,
    started: Instant,
    observer: &'a mut Observer<'o, FitStage>,
    reason: Reason,
    steps: usize,
    evaluations: usize,
    largest_jitter: f64,
    at_bounds: Vec<(String, f64)>,
}

impl<'a, 'o> Searching<'a, 'o> {
    pub(super) fn new(
        request: &'a FitRequest,
        evidence: &'a EvidenceOptions,
        features: usize,
        observer: &'a mut Observer<'o, FitStage>,
    ) -> Self {
        Self {
            request,
            evidence,
            features,
            started: Instant::now(),
            observer,
            reason: Reason::Gradient,
            steps: 0,
            evaluations: 0,
            largest_jitter: 0.0,
            at_bounds: Vec::new(),
        }
    }

    /// Seconds of the budget that are left.
    pub(super) fn left(&self) -> Option<f64> {
        let spent = self.started.elapsed().as_secs_f64();
        self.request.time_budget.map(|budget| (budget - spent).max(f64::MIN_POSITIVE))
    }

    /// Whether half of the budget is used up: enough was compared.
    pub(super) fn is_spent(&self) -> bool {
        self.request.time_budget.is_some_and(|budget| 2.0 * self.started.elapsed().as_secs_f64() > budget)
    }

    pub(super) fn observer(&mut self) -> &mut Observer<'o, FitStage> {
        self.observer
    }

    pub(super) fn observe(&mut self, progress: &Progress) -> Signal {
        (self.observer)(progress, &FitStage::Search)
    }

    /// Budget and tolerances of a search.
    pub(super) fn steps(&self) -> LoopOptions {
        let mut steps = FitOptions::default().steps;
        steps.steps = self.evidence.most_steps();
        steps.time = self.left().map(Duration::from_secs_f64);
        steps
    }

    /// What is believed about hyperparameters.
    pub(super) fn hyperpriors(&self, model: &dyn Parameters) -> Vec<Hyperprior> {
        let mut hyperpriors = self.request.hyperpriors.clone();
        if self.request.lengthscale_prior == LengthscalePrior::Weak {
            add_weak_priors(&mut hyperpriors, model, self.features);
        }
        hyperpriors
    }

    /// The model with the hyperparameters that were given, if some were; those of the noise have no meaning here.
    pub(super) fn begun(&self, mut model: ExactGp) -> Result<ExactGp, ModelError> {
        let Some(given) = &self.request.hyperparameters else { return Ok(model) };
        let noise = Hyperparameter::of(&model).into_iter().filter(|h| h.name == "noise_variance");
        let kernel = given.iter().filter(|h| h.name != "noise_variance" && !h.name.starts_with("mean."));
        scalable::set_hyperparameters(&mut model, &kernel.cloned().chain(noise).collect::<Vec<_>>())?;
        Ok(model)
    }

    /// Maximises the summed evidence of several functions from the model's own values, the noise aside, on all their rows or blocks of them, unless hyperparameters are given. A `rough` search ends early: of what is only
    /// compared, or goes on elsewhere, the last digits do not matter.
    pub(super) fn evidence(
        &mut self,
        model: ExactGp,
        data: &SeveralObservations,
        blocks: Option<&[Vec<usize>]>,
        rough: bool,
    ) -> Result<ExactGp, ModelError> {
        if self.request.hyperparameters.is_some() {
            return Ok(model);
        }
        let whole = [(0..data.rows()).collect()];
        let blocks = blocks.unwrap_or(&whole);
        let mut options = FitOptions {
            hyperpriors: self.hyperpriors(&model),
            steps: self.steps(),
            ..self.request.fit_options(self.evidence)
        };
        if rough {
            rough_search(&mut options);
        }
        options.constraints.push(Constraint::Fixed { parameter: "noise_variance".into(), value: None });
        let observer = &mut *self.observer;
        let (model, found) = fit_several_on_blocks(model, data, blocks, &options, &mut |progress, _| {
            observer(progress, &FitStage::Search)
        })?;
        let evaluations = found.attempts.iter().map(|a| a.evaluations).sum();
        self.took((found.reason, found.steps, evaluations), found.largest_jitter, &found.at_bounds)?;
        Ok(model)
    }

    /// Maximises the bound of stand-ins on the evidence of labels, pseudo-count and prior means included, from the model's own values; kernels whose hyperparameters are given stay. A `rough` search ends early.
    pub(super) fn bound(
        &mut self,
        model: GaussianisedGp,
        data: &Observations,
        rough: bool,
    ) -> Result<GaussianisedFit, ModelError> {
        let mut options = FitOptions {
            hyperpriors: self.hyperpriors(&model),
            steps: self.steps(),
            ..self.request.fit_options(self.evidence)
        };
        if self.request.hyperparameters.is_some() {
            let held = model.kernel().segments().into_iter();
            options.constraints =
                held.map(|s| Constraint::Fixed { parameter: s.name, value: None }).collect();
            options.hyperpriors.clear();
        }
        if rough {
            rough_search(&mut options);
        }
        let observer = &mut *self.observer;
        let found = fit_gaussianised(model, data, &options, &mut |progress, _| {
            observer(progress, &FitStage::Search)
        })?;
        self.took((found.reason, found.steps, found.evaluations), found.largest_jitter, &found.at_bounds)?;
        Ok(found)
    }

    /// Notes what a search took.
    ///
    /// # Errors
    /// [`ModelError::Interrupted`].
    pub(super) fn took(
        &mut self,
        (reason, steps, evaluations): (Reason, usize, usize),
        jitter: f64,
        at_bounds: &[(String, f64)],
    ) -> Result<(), ModelError> {
        if reason == Reason::Interrupted {
            return Err(ModelError::Interrupted);
        }
        (self.reason, self.steps) = (reason, steps);
        self.evaluations += evaluations;
        self.largest_jitter = self.largest_jitter.max(jitter);
        self.at_bounds = at_bounds.to_vec();
        Ok(())
    }

    /// All of it.
    pub(super) fn told(
        &self,
        source: String,
        hyperparameters: Vec<Hyperparameter>,
        model: &dyn Parameters,
    ) -> Told {
        let learned = self.request.hyperparameters.is_none();
        Told {
            hyperparameters,
            hyperpriors: if learned { self.hyperpriors(model) } else { Vec::new() },
            source,
            reason: self.reason,
            steps: self.steps,
            evaluations: self.evaluations,
            largest_jitter: self.largest_jitter,
            at_bounds: self.at_bounds.clone(),
        }
    }
}
