//! A step: one batch, one energy, one step of Adam on everything that is learned.

use super::data_term::Draws;
use super::{
    Batch, Best, FixedMeanData, FixedMeanEnergy, FixedMeanError, FixedMeanFitOptions, FixedMeanModel,
    FixedMeanState, energy,
};
use posterior_kernels::LearnedBlockKernel;
use posterior_linalg::cholesky::CholeskyError;
use posterior_linalg::random::Streams;
use posterior_optim::{
    Batches, Clock, Iteration, Limits, Observer, Parameters, Progress, Reason, Rule, Run, Sampling, Step,
    drive,
};

/// A fitted model.
#[derive(Debug)]
pub struct FixedMeanProcessFit<K: LearnedBlockKernel> {
    /// The model after the last step, or that of the best score.
    pub model: FixedMeanModel<K>,
    /// What a further fit would go on from.
    pub state: FixedMeanState,
    /// Why the fit ended.
    pub reason: Reason,
}

/// A score on held-out rows, of which less is better.
pub type Validate<'a, K> = dyn FnMut(&FixedMeanModel<K>) -> Result<f64, FixedMeanError> + 'a;

/// A fit under way: what its observer is shown after every step.
pub struct FixedMeanIterate<'a, K: LearnedBlockKernel> {
    model: FixedMeanModel<K>,
    data: FixedMeanData<'a, K::Points>,
    options: &'a FixedMeanFitOptions,
    validate: Option<&'a mut Validate<'a, K>>,
    batches: Batches,
    streams: Streams,
    state: FixedMeanState,
    /// The loss as the last step's batch estimated it, before the step.
    loss: Option<f64>,
}

/// Fits `model` to `data`, from its own parameters or on from a saved state bit for bit. `validate` scores a model on rows that are held out; without it the fit takes all its steps.
/// The observer is told each step, the value of its progress being the loss as the step's batch estimated it.
///
/// A step costs the [energy](super::energy) of a batch, whatever the number of rows.
///
/// # Errors
/// [`FixedMeanError`] for unusable options, rows, points or states, and when the loss stops being a number: which term, at which step.
pub fn fit_fixed_mean<'a, K: LearnedBlockKernel>(
    model: FixedMeanModel<K>,
    data: FixedMeanData<'a, K::Points>,
    options: &'a FixedMeanFitOptions,
    validate: Option<&'a mut Validate<'a, K>>,
    state: Option<FixedMeanState>,
    observer: &mut Observer<'_, FixedMeanIterate<'a, K>>,
) -> Result<FixedMeanProcessFit<K>, FixedMeanError> {
    let clock = Clock::after(state.as_ref().map_or(0.0, |state| state.seconds));
    options.check(model.learned.likelihood && !model.likelihood.values().is_empty())?;
    data.check(&model)?;
    let mut fitting = FixedMeanIterate::new(model, data, options, validate, state)?;
    let limits = Limits { steps: options.steps, time: options.time };
    let (reason, progress) = drive(&mut fitting, limits, clock, observer)?;
    let state = fitting.state(&progress);
    let FixedMeanIterate { mut model, .. } = fitting;
    if let (true, Some(best)) = (options.restore_best, &state.best) {
        model.set_unconstrained(&best.theta)?;
    }
    Ok(FixedMeanProcessFit { model, state, reason })
}

impl<K: LearnedBlockKernel> Iteration for FixedMeanIterate<'_, K> {
    type Error = FixedMeanError;

    fn progress(&self) -> Progress {
        Progress { step: self.state.step, value: self.loss, ..Progress::default() }
    }

    fn converged(&self) -> Option<Reason> {
        (self.state.without_improvement >= self.options.patience).then_some(Reason::Patience)
    }

    fn step(&mut self, _: &mut Run<'_, Self>) -> Result<Step, FixedMeanError> {
        let step = self.state.step;
        let rows = self.batches.batch(step);
        let (points, means, targets) = self.data.gather(&rows);
        let batch = Batch { points: &points, means: &means, targets: &targets, rows: self.data.rows() };
        let streams = self.streams.child("gp/fixed-mean-draws", step as u64);
        let draws = self.options.monte_carlo.map(|pairs| Draws { pairs, streams });
        let found = energy(&self.model, batch, self.options.alpha, draws);
        let found = found.map_err(|error| match error {
            FixedMeanError::Cholesky(CholeskyError::NotFinite { .. }) => {
                FixedMeanError::Diverged { step: step + 1, term: "the covariance of the inducing points" }
            }
            other => other,
        })?;
        let gradient = self.model.chain(&found.gradient);
        check_finite(step + 1, &found, &gradient)?;
        let per_epoch = self.batches.per_epoch();
        let passes = (step / per_epoch).min(i32::MAX as usize) as i32;
        let rate = self.options.learning_rate * self.options.decay.powi(passes);
        let state = &mut self.state;
        Rule::adam().step(&mut state.theta, &gradient, &mut state.first, &mut state.second, rate, step + 1);
        state.step += 1;
        state.clipped += found.clipped;
        state.jitter = state.jitter.max(found.jitter);
        state.pass = (state.pass.0 + found.main, state.pass.1 + found.companion);
        if state.step.is_multiple_of(per_epoch) {
            let mean = |sum: f64| sum / per_epoch as f64;
            state.losses.push((state.step, mean(state.pass.0), mean(state.pass.1)));
            state.pass = (0.0, 0.0);
        }
        self.loss = Some(found.main + found.companion);
        self.model.set_unconstrained(&self.state.theta)?;
        self.record();
        self.score()?;
        Ok(Step::Taken)
    }
}

/// Which term is no number, if any.
fn check_finite(step: usize, found: &FixedMeanEnergy, gradient: &[f64]) -> Result<(), FixedMeanError> {
    let terms = [
        ("the divergence", found.divergence),
        ("the data term", found.main),
        ("the companion's loss", found.companion),
        ("the gradient", gradient.iter().sum()),
    ];
    match terms.iter().find(|(_, value)| !value.is_finite()) {
        Some((term, _)) => Err(FixedMeanError::Diverged { step, term }),
        None => Ok(()),
    }
}

impl<'a, K: LearnedBlockKernel> FixedMeanIterate<'a, K> {
    fn new(
        mut model: FixedMeanModel<K>,
        data: FixedMeanData<'a, K::Points>,
        options: &'a FixedMeanFitOptions,
        validate: Option<&'a mut Validate<'a, K>>,
        state: Option<FixedMeanState>,
    ) -> Result<Self, FixedMeanError> {
        let fresh = state.is_none();
        let state = state.unwrap_or_else(|| FixedMeanState::begin(&model));
        state.check(&model)?;
        model.set_unconstrained(&state.theta)?;
        let names = ["gp/fixed-mean-epoch", "order"];
        let batches = Batches::new(data.rows(), options.batch, Sampling::Permutation, options.seed, names);
        let streams = Streams::new(options.seed);
        let mut out = Self { model, data, options, validate, batches, streams, state, loss: None };
        if fresh {
            out.record();
        }
        Ok(out)
    }

    /// The model as it is now.
    pub fn model(&self) -> &FixedMeanModel<K> {
        &self.model
    }

    /// The last score on held-out rows.
    pub fn last_score(&self) -> Option<f64> {
        self.state.scores.last().map(|score| score.1)
    }

    /// What could be saved here, `progress` being what the observer was told.
    pub fn state(&self, progress: &Progress) -> FixedMeanState {
        FixedMeanState { seconds: progress.elapsed.as_secs_f64(), ..self.state.clone() }
    }

    /// Where the inducing points are, from time to time.
    fn record(&mut self) {
        let due = self.options.trajectory_every.is_some_and(|every| self.state.step.is_multiple_of(every));
        if due {
            let numbers = self.model.kernel.coordinates(&self.model.points);
            self.state.trajectory.push((self.state.step, numbers));
        }
    }

    /// The score on held-out rows, when it is time.
    fn score(&mut self) -> Result<(), FixedMeanError> {
        let step = self.state.step;
        let Some(validate) = self.validate.as_mut().filter(|_| step.is_multiple_of(self.options.val_every))
        else {
            return Ok(());
        };
        let score = validate(&self.model)?;
        if !score.is_finite() {
            return Err(FixedMeanError::Diverged { step, term: "the score on held-out rows" });
        }
        let state = &mut self.state;
        state.scores.push((step, score));
        if state.best.as_ref().is_none_or(|best| score < best.score) {
            state.best = Some(Best { step, score, theta: state.theta.clone() });
            state.without_improvement = 0;
        } else {
            state.without_improvement += 1;
        }
        Ok(())
    }
}
