//! A step: one batch, one evaluation, one step of q and one of everything else.

use super::bound::{Buffers, bound_and_gradient_in};
use super::state::StochasticState;
use super::{Batch, StochasticGp, StochasticOptions, Wanted, natural_step};
use crate::hyperprior::log_prior;
use crate::inducing::{InducingDistribution, InducingError, InducingPosterior, Plan};
use crate::{GpError, RowSource};
use posterior_linalg::triangular::pack_lower;
use posterior_optim::{
    Adaptive, Batches, Clock, Constrained, Iteration, Limits, Observer, Parameters, Progress, Reason, Run,
    Sampling, Step, drive,
};

/// A fitted model.
#[derive(Debug)]
pub struct StochasticFit {
    /// The posterior after the last step.
    pub posterior: InducingPosterior,
    /// The model then.
    pub model: StochasticGp,
    /// What a further fit would go on from.
    pub state: StochasticState,
    /// The bound averaged over recent batches (about an epoch); [`super::stochastic_bound`] has the exact one.
    pub average_bound: f64,
    /// Why the fit ended.
    pub reason: Reason,
    /// Steps taken, resumed ones included.
    pub steps: usize,
    /// Largest amount added to the diagonal of `K_ZZ`, relative to its mean.
    pub largest_jitter: f64,
    /// Parameters that ended at a bound of [`StochasticOptions::constraints`], with the bound.
    pub at_bounds: Vec<(String, f64)>,
    /// What was planned.
    pub plan: Plan,
}

/// A fit under way: what its observer is shown after every step.
#[derive(Debug)]
pub struct StochasticIterate<'a> {
    model: StochasticGp,
    distribution: InducingDistribution,
    data: &'a dyn RowSource,
    options: &'a StochasticOptions,
    batches: Batches,
    /// What moves.
    map: Constrained,
    theta: Vec<f64>,
    adam: Adaptive,
    step: usize,
    /// The bound as the last step's batch estimated it, before the step, in nats.
    bound: Option<f64>,
    average: f64,
    /// Length of the last natural-gradient step.
    length: Option<f64>,
    largest_jitter: f64,
    buffers: Buffers,
}

/// Fits `model` to `data`, in memory or not: q from the prior, parameters from the model's own values; or, given a saved `state`, on from there bit for
/// bit. The observer is told each step, the value of its progress being the bound as the step's batch estimated it (before the step, in nats), and can end the fit or ask for
/// the state to save.
///
/// # Errors
/// [`InducingError`] for unusable options, data, plans or states, and when the bound stops being a number; [`GpError::Optim`] for a constraint that does not fit; [`GpError::Cholesky`] when
/// `K_ZZ` cannot be factored; [`GpError::Rows`] when a batch cannot be had; [`GpError::UnknownParameter`] for a hyperprior without parameter.
pub fn fit_stochastic<'a>(
    model: StochasticGp,
    data: &'a dyn RowSource,
    options: &'a StochasticOptions,
    state: Option<&StochasticState>,
    observer: &mut Observer<'_, StochasticIterate<'a>>,
) -> Result<StochasticFit, GpError> {
    let clock = Clock::after(state.map_or(0.0, |state| state.seconds));
    options.check()?;
    let plan = model.plan(data.rows(), options.batch).of_rows(data);
    if plan.peak_bytes > options.memory_limit {
        return Err(InducingError::Memory { plan, limit: options.memory_limit }.into());
    }
    model.check(data)?;
    log_prior(&options.hyperpriors, &model, &mut vec![0.0; model.values().len()])?;
    let mut fitting = StochasticIterate::new(model, data, options, state)?;
    let limits = Limits { steps: options.steps, time: options.time };
    let (reason, progress) = drive(&mut fitting, limits, clock, observer)?;
    let state = fitting.state(&progress);
    let StochasticIterate { model, map, distribution, step, average, largest_jitter, .. } = fitting;
    let at_bounds = map.at_bounds(&model.values());
    let posterior = model.posterior(distribution)?;
    Ok(StochasticFit {
        posterior,
        model,
        state,
        average_bound: average,
        reason,
        steps: step,
        largest_jitter,
        at_bounds,
        plan,
    })
}

impl Iteration for StochasticIterate<'_> {
    type Error = GpError;

    fn progress(&self) -> Progress {
        Progress { step: self.step, value: self.bound, ..Progress::default() }
    }

    fn step(&mut self, run: &mut Run<'_, Self>) -> Result<Step, GpError> {
        let rows = self.batches.batch(self.step);
        let (bound, length) = self.step_on(&rows, run.steps_planned())?;
        let memory = 1.0 / self.batches.per_epoch().max(10) as f64;
        let share = memory.max(1.0 / (self.step + 1) as f64);
        self.average += share * (bound - self.average);
        (self.bound, self.length) = (Some(bound), length);
        self.step += 1;
        Ok(Step::Taken)
    }
}

impl<'a> StochasticIterate<'a> {
    fn new(
        mut model: StochasticGp,
        data: &'a dyn RowSource,
        options: &'a StochasticOptions,
        state: Option<&StochasticState>,
    ) -> Result<Self, GpError> {
        let map = Constrained::new(&mut model, &options.constraints)?;
        let (theta, distribution, adam, step, average) = match state {
            None => {
                let adam = Adaptive::adam(options.learning_rate).scheduled(options.schedule);
                (map.unconstrained(&model.values()), model.prior(), adam, 0, 0.0)
            }
            Some(s) => {
                let distribution = s.distribution(&model, map.dimension())?;
                (s.theta.clone(), distribution, s.adam.clone(), s.step, s.average)
            }
        };
        map.set(&mut model, &theta);
        let names = ["gp/epoch", "order"];
        let mut batches =
            Batches::new(data.rows(), options.batch, Sampling::Permutation, options.seed, names);
        if batches.per_epoch() == 1 {
            batches = batches.ascending();
        }
        Ok(Self {
            model,
            distribution,
            data,
            options,
            batches,
            map,
            theta,
            adam,
            step,
            bound: None,
            average,
            length: None,
            largest_jitter: 0.0,
            buffers: Buffers::new(),
        })
    }

    /// What could be saved here, `progress` being what the observer was told. Copies q and Adam's memory.
    pub fn state(&self, progress: &Progress) -> StochasticState {
        let mut roots = Vec::new();
        self.distribution.roots().iter().for_each(|root| pack_lower(root.as_ref(), &mut roots));
        StochasticState {
            step: self.step,
            theta: self.theta.clone(),
            mean: (0..self.distribution.latents())
                .flat_map(|c| self.distribution.mean_of(c))
                .copied()
                .collect(),
            roots,
            adam: self.adam.clone(),
            average: self.average,
            seconds: progress.elapsed.as_secs_f64(),
        }
    }

    /// The model as it is now.
    pub fn model(&self) -> &StochasticGp {
        &self.model
    }

    /// The distribution of inducing values as it is now.
    pub fn distribution(&self) -> &InducingDistribution {
        &self.distribution
    }

    /// The bound averaged over recent steps (about an epoch, at least ten).
    pub fn average_bound(&self) -> f64 {
        self.average
    }

    /// Length of the last natural-gradient step, if there was one.
    pub fn length(&self) -> Option<f64> {
        self.length
    }

    /// One step on the given rows; the bound before it and the natural-gradient length taken.
    fn step_on(&mut self, rows: &[usize], planned: usize) -> Result<(f64, Option<f64>), GpError> {
        let data = self.data;
        let own = data.gather(rows)?;
        let batch = Batch {
            inputs: own.inputs(),
            targets: own.targets(),
            noise: own.noise_variances(),
            weights: own.weights(),
            offsets: own.offsets(),
            rows: data.rows(),
        };
        let wanted =
            Wanted { hyperparameters: self.model.learn_hyperparameters, inducing: self.model.learn_inducing };
        let mut evaluation =
            bound_and_gradient_in(&mut self.buffers, &self.model, &self.distribution, batch, wanted)?;
        self.largest_jitter = self.largest_jitter.max(evaluation.relative_jitter);
        let diverged = |what| InducingError::Diverged { step: self.step + 1, what };
        if !evaluation.value.is_finite() {
            return Err(diverged("the bound").into());
        }
        let prior = log_prior(&self.options.hyperpriors, &self.model, &mut evaluation.parameters)?;
        // The objective of Adam is the negative bound for each row.
        let scale = -1.0 / data.rows() as f64;
        let mut gradient = self.map.chain(&self.theta, &evaluation.parameters);
        gradient.iter_mut().for_each(|g| *g *= scale);
        let mut point = self.theta.clone();
        let length = match self.options.length(self.step) {
            Some(length) => Some(natural_step(&mut self.distribution, &evaluation.of_q, length)?),
            None => {
                self.distribution.unconstrained_into(&mut point);
                evaluation.of_q.unconstrained_into(&self.distribution, 1.0, scale, &mut gradient);
                None
            }
        };
        if gradient.iter().any(|g| !g.is_finite()) {
            return Err(InducingError::Diverged { step: self.step + 1, what: "the gradient" }.into());
        }
        self.adam.step(&mut point, &gradient, planned);
        let (theta, rest) = point.split_at(self.theta.len());
        if length.is_none() {
            self.distribution.set_unconstrained(rest);
        }
        self.theta.copy_from_slice(theta);
        self.map.set(&mut self.model, &self.theta);
        Ok((evaluation.value + prior, length))
    }
}
