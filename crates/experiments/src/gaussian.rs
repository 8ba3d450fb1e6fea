//! Gaussian processes in experiments: one way to run any method.

use super::ExperimentError;
use super::automatic::{self, AutomaticSettings};
use super::context::Context;
use super::inducing_descent::InducingDescentSettings;
use posterior_gp::inducing::InducingPosterior;
use posterior_gp::inducing::stochastic::{
    StochasticGp, StochasticOptions, VariationalOptimizer, fit_stochastic,
};
use posterior_gp::iterative::{
    Budget, Method, PathwiseModel, PathwisePosterior, PathwiseSettings, SolveObserver, Start, Support,
};
use posterior_gp::{GpError, Mean, MeanForm, Observations, Posterior, Prediction};
use posterior_kernels::features::FeatureSettings;
use posterior_kernels::inducing::InducingChoice;
use posterior_likelihoods::Gaussian;
use posterior_linalg::Real;
use posterior_linalg::random::Streams;
use posterior_optim::Progress;
use serde::Deserialize;
use std::time::{Duration, Instant};

pub(crate) use super::covariance::{Covariance, normals};

/// How many bits kernels are computed with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Precision {
    /// 32.
    Single,
    /// 64.
    Double,
}

/// An entry of `[[method]]`: a solver for the weights of all rows, descent for those of inducing points, or variational inducing points.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MethodSettings {
    /// Its name in tables.
    pub(crate) name: String,
    /// Most steps (iterations, batches).
    pub(crate) steps: usize,
    /// Relative residual at which a solver stops; 0 unless given.
    pub(crate) tolerance: Option<f64>,
    /// Posterior samples of a solver, where they are not as many as for the others.
    pub(crate) samples: Option<usize>,
    /// A solver.
    pub(crate) solver: Option<Method>,
    /// The stochastic variational method.
    pub(crate) inducing: Option<InducingSettings>,
    /// Stochastic descent for the weights of inducing points.
    #[serde(rename = "inducing-descent")]
    pub(crate) inducing_descent: Option<InducingDescentSettings>,
    /// The default of `fit gp`, which learns its hyperparameters itself.
    pub(crate) automatic: Option<AutomaticSettings>,
}

/// Settings of the stochastic variational method; hyperparameters stay what they are.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct InducingSettings {
    /// Inducing points.
    pub(crate) points: usize,
    /// How they are chosen.
    #[serde(default)]
    pub(crate) choice: InducingChoice,
    /// Whether they move.
    pub(crate) learn_inputs: bool,
    /// Rows of a batch.
    pub(crate) batch: usize,
    /// Length of natural-gradient steps; Adam moves everything if absent.
    pub(crate) natural_length: Option<f64>,
    /// Step size of Adam.
    pub(crate) learning_rate: f64,
}

/// What is to be fitted, and how precisely.
#[derive(Clone, Debug)]
pub(crate) struct Job<'a> {
    /// The prior's covariance.
    pub(crate) covariance: &'a Covariance,
    /// Variance of the noise.
    pub(crate) noise_variance: f64,
    /// Inputs and one target.
    pub(crate) data: &'a Observations,
    /// Posterior samples, at least 1.
    pub(crate) samples: usize,
    /// Features of prior functions.
    pub(crate) features: usize,
    /// Precision of solvers; inducing points always compute in double.
    pub(crate) precision: Precision,
    /// Bytes for a kernel matrix in memory.
    pub(crate) cache_bytes: usize,
    /// Most time in the solver.
    pub(crate) time: Option<Duration>,
    /// Seed of everything random.
    pub(crate) seed: u64,
}

/// A posterior.
#[derive(Debug)]
pub(crate) enum Fitted {
    /// Weights on all rows in single precision.
    Single(Box<PathwisePosterior<f32>>),
    /// Weights on all rows in double precision.
    Double(Box<PathwisePosterior<f64>>),
    /// Inducing points.
    Inducing(Box<InducingPosterior>),
    /// Whatever the default kept.
    Automatic(Box<posterior_models::ProcessModel>),
}

/// A posterior, and what it took.
#[derive(Debug)]
pub(crate) struct Run {
    /// The posterior.
    pub(crate) fitted: Fitted,
    /// Seconds in all: prior functions, cached matrices, preconditioners and inducing points included.
    pub(crate) seconds: f64,
    /// Steps taken.
    pub(crate) steps: usize,
    /// Points that carry weights: rows, or inducing points.
    pub(crate) points: usize,
    /// The step size βn, where there is one.
    pub(crate) step_size: Option<f64>,
    /// (seconds, largest relative residual) along the way, where the method knows it.
    pub(crate) trace: Vec<(f64, f64)>,
}

impl Fitted {
    /// Marginals.
    pub(crate) fn predict(&self, x: faer::MatRef<'_, f64>) -> Result<Prediction, GpError> {
        match self {
            Self::Single(posterior) => posterior.predict(x),
            Self::Double(posterior) => posterior.predict(x),
            Self::Inducing(posterior) => posterior.predict(x),
            Self::Automatic(model) => automatic::predict(model, x),
        }
    }
}

/// Names that can be parts of paths, each once.
pub(crate) fn check_names<'a>(
    what: &str,
    names: impl IntoIterator<Item = &'a str>,
) -> Result<(), ExperimentError> {
    let mut seen: Vec<&str> = Vec::new();
    for name in names {
        if name.is_empty() || name.contains('.') || seen.contains(&name) {
            let problem =
                format!("[[{what}]]: `{name}` is no name; give each one of its own, without points");
            return Err(ExperimentError::Setting(problem));
        }
        seen.push(name);
    }
    if seen.is_empty() {
        return Err(ExperimentError::Setting(format!("[[{what}]]: give at least one")));
    }
    Ok(())
}

/// A solver with a seed added to its own, so that folds and repetitions see other batches.
pub(crate) fn seeded(solver: &Method, seed: u64) -> Method {
    let mut solver = solver.clone();
    match &mut solver {
        Method::DualDescent(options) => options.seed = options.seed.wrapping_add(seed),
        Method::Descent(options) => options.seed = options.seed.wrapping_add(seed),
        Method::Direct | Method::ConjugateGradients(_) => {}
    }
    solver
}

/// The methods of a file, checked.
pub(crate) fn check_methods(methods: &[MethodSettings]) -> Result<(), ExperimentError> {
    check_names("method", methods.iter().map(|m| m.name.as_str()))?;
    methods.iter().try_for_each(MethodSettings::check)
}

impl MethodSettings {
    pub(crate) fn check(&self) -> Result<(), ExperimentError> {
        let wrong =
            |problem: &str| Err(ExperimentError::Setting(format!("[[method]] `{}`: {problem}", self.name)));
        let given = [
            self.solver.is_some(),
            self.inducing.is_some(),
            self.inducing_descent.is_some(),
            self.automatic.is_some(),
        ];
        if given.iter().filter(|g| **g).count() != 1 {
            return wrong("give one of `solver`, `inducing`, `inducing-descent` and `automatic`");
        }
        if self.automatic.as_ref().is_some_and(|a| !(a.seconds > 0.0 && a.seconds.is_finite())) {
            return wrong("`seconds` of `automatic` must be a positive number");
        }
        if self.solver.is_none() && self.tolerance.is_some() {
            return wrong("inducing points have no residual, so `tolerance` means nothing");
        }
        if self.samples == Some(0)
            || (self.samples.is_some() && (self.inducing.is_some() || self.automatic.is_some()))
        {
            return wrong("`samples` are those of a solver or of inducing-descent, at least 1");
        }
        if let Some(problem) = self.inducing_descent.as_ref().and_then(InducingDescentSettings::problem) {
            return wrong(problem);
        }
        if self.tolerance.is_some_and(|t| !(t >= 0.0 && t.is_finite())) {
            return wrong("`tolerance` must be zero or positive");
        }
        if self.steps == 0 {
            return wrong("`steps` must be at least 1");
        }
        Ok(())
    }

    /// The solver with a seed added to its own.
    pub(crate) fn seeded_solver(&self, seed: u64) -> Option<Method> {
        Some(seeded(self.solver.as_ref()?, seed))
    }

    /// Fits, telling the context each step as `stage`.
    pub(crate) fn fit(
        &self,
        job: &Job<'_>,
        stage: &str,
        context: &mut Context<'_>,
    ) -> Result<Run, ExperimentError> {
        let started = Instant::now();
        let mut run = match &self.inducing {
            _ if let Some(automatic) = &self.automatic => automatic.fit(job, stage, context)?,
            Some(inducing) => self.vary(inducing, job, started, stage, context)?,
            None if job.precision == Precision::Single => {
                let (posterior, trace) = self.condition::<f32>(job, stage, context)?;
                Run::of(
                    posterior.solution().progress,
                    posterior.solution().weights.nrows(),
                    trace,
                    Fitted::Single(posterior),
                )
            }
            None => {
                let (posterior, trace) = self.condition::<f64>(job, stage, context)?;
                Run::of(
                    posterior.solution().progress,
                    posterior.solution().weights.nrows(),
                    trace,
                    Fitted::Double(posterior),
                )
            }
        };
        run.seconds = started.elapsed().as_secs_f64();
        if context.stopped() { Err(ExperimentError::Interrupted) } else { Ok(run) }
    }

    #[allow(clippy::type_complexity)]
    fn condition<T: Real>(
        &self,
        job: &Job<'_>,
        stage: &str,
        context: &mut Context<'_>,
    ) -> Result<(Box<PathwisePosterior<T>>, Vec<(f64, f64)>), ExperimentError> {
        let model = PathwiseModel::<T> {
            kernel: job.covariance.kernel()?,
            mean: Mean::new(MeanForm::Zero, job.covariance.dimension(), 1),
            noise: Gaussian::new(job.noise_variance, 0.0),
        };
        let settings = PathwiseSettings {
            budget: Budget { steps: self.steps, time: job.time, tolerance: self.tolerance.unwrap_or(0.0) },
            samples: self.samples.unwrap_or(job.samples),
            features: FeatureSettings { count: job.features, ..FeatureSettings::default() },
            // As published.
            samples_per_features: None,
            seed: job.seed,
            cache_bytes: job.cache_bytes,
        };
        let (mut trace, mut next) = (Vec::new(), 1);
        let observer: &mut SolveObserver<'_, T> = &mut |progress, _| {
            // A twentieth further each time: a few hundred points of a run of any length.
            if progress.step >= next {
                trace.push((progress.elapsed.as_secs_f64(), progress.residual.unwrap_or(f64::NAN)));
                next = progress.step + 1 + progress.step / 20;
            }
            context.tell(stage, progress.step, progress.steps_planned)
        };
        let posterior = match (&self.inducing_descent, self.seeded_solver(job.seed)) {
            (Some(inducing), _) => inducing.condition(model, job, settings, observer)?,
            (None, Some(solver)) => {
                let support = Support::Rows(solver);
                model.condition(job.data.clone(), support, settings, Start::Zero, observer)?
            }
            (None, None) => {
                return Err(ExperimentError::Setting(format!("[[method]] `{}` has no method", self.name)));
            }
        };
        Ok((Box::new(posterior), trace))
    }

    fn vary(
        &self,
        inducing: &InducingSettings,
        job: &Job<'_>,
        started: Instant,
        stage: &str,
        context: &mut Context<'_>,
    ) -> Result<Run, ExperimentError> {
        let kernel = job.covariance.kernel::<f64>()?;
        let streams = Streams::new(job.seed);
        let points = inducing.choice.points(&*kernel, job.data.inputs(), inducing.points, streams)?;
        let count = points.nrows();
        let noise = Box::new(Gaussian::new(job.noise_variance, 0.0));
        let mut model = StochasticGp::new(kernel, MeanForm::Zero, noise, points)?;
        (model.learn_hyperparameters, model.learn_inducing) = (false, inducing.learn_inputs);
        let variational = match inducing.natural_length {
            Some(length) => VariationalOptimizer::NaturalGradient { length, warm_up: 20 },
            None => VariationalOptimizer::Adam,
        };
        let options = StochasticOptions {
            steps: self.steps,
            batch: inducing.batch,
            variational,
            learning_rate: inducing.learning_rate,
            seed: job.seed,
            time: job.time.map(|limit| limit.saturating_sub(started.elapsed())),
            ..StochasticOptions::default()
        };
        let fit = fit_stochastic(model, job.data, &options, None, &mut |progress, _| {
            context.tell(stage, progress.step, progress.steps_planned)
        })?;
        Ok(Run {
            fitted: Fitted::Inducing(Box::new(fit.posterior)),
            seconds: 0.0,
            steps: fit.steps,
            points: count,
            step_size: None,
            trace: Vec::new(),
        })
    }
}

impl Run {
    fn of(progress: Progress, points: usize, trace: Vec<(f64, f64)>, fitted: Fitted) -> Self {
        let Progress { step: steps, step_size, .. } = progress;
        Self { fitted, seconds: 0.0, steps, points, step_size, trace }
    }
}
