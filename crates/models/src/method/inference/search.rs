//! Searches for hyperparameters, and what is to be told of them together.

use super::journal::Journal;
use crate::hyperparameter::{FunctionUnits, held};
use crate::method::training::{self, FoundSearch};
use crate::options::EvidenceOptions;
use crate::{FitRequest, FitStage, Hyperparameter, ModelError};
use posterior_gp::exact::{ExactGp, FitOptions, SeveralObservations};
use posterior_gp::gaussianised::{GaussianisedGp, fit_gaussianised};
use posterior_gp::iterative::fit_several_on_blocks;
use posterior_gp::{Hyperprior, Observations};
use posterior_optim::{Constraint, LoopOptions, Observer, Parameters, Reason};
use std::time::Duration;

/// Steps at most, and the change of the evidence for each value of a target below which nothing changes, of searches that need not end exactly.
const ROUGH: (usize, f64) = (15, 1e-4);

/// What is to be told of all searches.
#[derive(Clone, Debug)]
pub(crate) struct SearchRecord {
    pub(crate) hyperparameters: Vec<Hyperparameter>,
    pub(crate) hyperpriors: Vec<Hyperprior>,
    pub(crate) source: String,
    /// How the last one ended, with what all took.
    pub(crate) ended: FoundSearch,
}

/// Gives a model the hyperparameters of a request, if it has some; inducing points it chooses itself.
///
/// # Errors
/// [`ModelError::UnknownHyperparameter`].
pub(crate) fn give(request: &FitRequest, model: &mut dyn Parameters) -> Result<(), ModelError> {
    let Some(given) = request.start.hyperparameters() else { return Ok(()) };
    let missing = Hyperparameter::give(given, model);
    let Some(name) = missing.into_iter().find(|name| name != "inducing_inputs") else { return Ok(()) };
    let known = Hyperparameter::without_inducing(model);
    let known = known.iter().map(|h| format!("{} ({})", h.name, h.values.len())).collect();
    Err(ModelError::UnknownHyperparameter { name, known })
}

/// Searches under one request, budget and observer, with what earlier runs found.
pub(crate) struct Searching<'a, 'o> {
    request: &'a FitRequest,
    evidence: &'a EvidenceOptions,
    features: usize,
    journal: &'a mut Journal,
    observer: &'a mut Observer<'o, FitStage>,
    ended: FoundSearch,
}

impl<'a, 'o> Searching<'a, 'o> {
    pub(crate) fn new(
        request: &'a FitRequest,
        evidence: &'a EvidenceOptions,
        features: usize,
        (journal, observer): (&'a mut Journal, &'a mut Observer<'o, FitStage>),
    ) -> Self {
        Self {
            request,
            evidence,
            features,
            journal,
            observer,
            ended: FoundSearch::new(Vec::new(), (Reason::Gradient, 0, 0), 0.0, Vec::new()),
        }
    }

    /// Seconds of the budget that are left.
    pub(crate) fn left(&self) -> Option<f64> {
        self.journal.left()
    }

    /// Whether half of the budget is used up: enough was compared.
    pub(crate) fn is_spent(&self) -> bool {
        self.request.limits.time.is_some_and(|budget| 2.0 * self.journal.spent() > budget)
    }

    /// What was found before, and who is told of the rest.
    pub(crate) fn kept(&mut self) -> (&mut Journal, &mut Observer<'o, FitStage>) {
        (self.journal, self.observer)
    }

    /// Budget and tolerances of a search.
    pub(crate) fn steps(&self) -> LoopOptions {
        let mut steps = FitOptions::default().steps;
        steps.steps = self.evidence.most_steps();
        steps.time = self.left().map(Duration::from_secs_f64);
        steps
    }

    /// What a search for a model's hyperparameters is told; a `rough` one ends early.
    fn options(&self, model: &dyn Parameters, rough: bool) -> FitOptions {
        let (hyperpriors, steps) = (self.hyperpriors(model), self.steps());
        let mut options = FitOptions { hyperpriors, steps, ..self.request.fit_options(self.evidence) };
        if rough {
            options.restarts = 1;
            options.steps.steps = options.steps.steps.min(ROUGH.0);
            options.steps.value_tolerance = options.steps.value_tolerance.max(ROUGH.1);
        }
        options
    }

    /// What is believed about hyperparameters.
    pub(crate) fn hyperpriors(&self, model: &dyn Parameters) -> Vec<Hyperprior> {
        self.request.hyperpriors_of(model, (self.features, FunctionUnits::Link))
    }

    /// The model with the hyperparameters that were given, if some were; those of the noise have no meaning here.
    pub(crate) fn begun(&self, mut model: ExactGp) -> Result<ExactGp, ModelError> {
        let Some(given) = self.request.start.hyperparameters() else { return Ok(model) };
        let noise = Hyperparameter::of(&model).into_iter().filter(|h| h.name == "noise_variance");
        let kernel = given.iter().filter(|h| h.name != "noise_variance" && !h.name.starts_with("mean."));
        training::set(&mut model, &kernel.cloned().chain(noise).collect::<Vec<_>>())?;
        Ok(model)
    }

    /// Maximises the summed evidence of several functions from the model's own values, under a name by which it is kept, the noise aside, on all their rows or blocks of them, unless hyperparameters are given. A `rough` search ends early: of what is only
    /// compared, or goes on elsewhere, the last digits do not matter.
    pub(crate) fn evidence(
        &mut self,
        name: &str,
        mut model: ExactGp,
        data: &SeveralObservations,
        blocks: Option<&[Vec<usize>]>,
        rough: bool,
    ) -> Result<ExactGp, ModelError> {
        if self.request.start.hyperparameters().is_some() {
            return Ok(model);
        }
        let whole = [(0..data.rows()).collect()];
        let blocks = blocks.unwrap_or(&whole);
        let mut options = self.options(&model, rough);
        options.constraints.push(Constraint::Fixed { parameter: "noise_variance".into(), value: None });
        let start = model.clone();
        let values = self.once(name, |observer| {
            let (model, found) = fit_several_on_blocks(start, data, blocks, &options, &mut |progress, _| {
                observer(progress, &FitStage::Search)
            })?;
            let evaluations = found.attempts.iter().map(|a| a.evaluations).sum();
            let ended = (found.reason, found.steps, evaluations);
            Ok(FoundSearch::new(model.values(), ended, found.largest_jitter, found.at_bounds))
        })?;
        model.set_values(&values);
        Ok(model)
    }

    /// Maximises the bound of pseudo-targets on the evidence of labels, pseudo-count and prior means included, from the model's own values; kernels whose hyperparameters are given stay. A `rough` search ends early.
    /// The value of the bound comes with the model.
    pub(crate) fn bound(
        &mut self,
        name: &str,
        mut model: GaussianisedGp,
        data: &Observations,
        rough: bool,
    ) -> Result<(GaussianisedGp, f64), ModelError> {
        let mut options = self.options(&model, rough);
        if self.request.start.hyperparameters().is_some() {
            options.constraints = held(model.kernel().segments());
            options.hyperpriors.clear();
        }
        let start = model.clone();
        let mut values = self.once(name, |observer| {
            let found = fit_gaussianised(start, data, &options, &mut |progress, _| {
                observer(progress, &FitStage::Search)
            })?;
            let values = [found.model.values(), vec![found.bound.value]].concat();
            let ended = (found.reason, found.steps, found.evaluations);
            Ok(FoundSearch::new(values, ended, found.largest_jitter, found.at_bounds))
        })?;
        let bound = values.pop().unwrap_or(f64::NAN);
        model.set_values(&values);
        Ok((model, bound))
    }

    /// The parameters that the search of this name ended with, in an earlier run or now; notes what it took.
    ///
    /// # Errors
    /// Those of the search; [`ModelError::Interrupted`].
    pub(crate) fn once(
        &mut self,
        name: &str,
        search: impl FnOnce(&mut Observer<'o, FitStage>) -> Result<FoundSearch, ModelError>,
    ) -> Result<Vec<f64>, ModelError> {
        let observer = &mut *self.observer;
        let found = self.journal.once(name, || {
            let found = search(observer)?;
            if found.reason == Reason::Interrupted { Err(ModelError::Interrupted) } else { Ok(found) }
        })?;
        let FoundSearch { evaluations, largest_jitter, .. } = self.ended;
        self.ended = found;
        self.ended.evaluations += evaluations;
        self.ended.largest_jitter = largest_jitter.max(self.ended.largest_jitter);
        Ok(std::mem::take(&mut self.ended.values))
    }

    /// All of it.
    pub(crate) fn told(
        &self,
        source: String,
        hyperparameters: Vec<Hyperparameter>,
        model: &dyn Parameters,
    ) -> SearchRecord {
        let learned = self.request.start.hyperparameters().is_none();
        SearchRecord {
            hyperparameters,
            hyperpriors: if learned { self.hyperpriors(model) } else { Vec::new() },
            source,
            ended: self.ended.clone(),
        }
    }
}
