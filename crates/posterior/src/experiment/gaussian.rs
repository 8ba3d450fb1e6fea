//! Gaussian processes in experiments: priors from text and numbers, functions drawn from them, and one way to run any method.

use super::ExperimentError;
use super::context::Context;
use faer::Mat;
use posterior_gp::inducing::InducingPosterior;
use posterior_gp::inducing::stochastic::{
    StochasticGp, StochasticOptions, VariationalOptimizer, fit_stochastic,
};
use posterior_gp::iterative::{
    Budget, Method, PathwiseModel, PathwisePosterior, PathwiseSettings, Progress, Start, Support,
};
use posterior_gp::{GpError, Mean, MeanForm, Observations, Posterior, Prediction};
use posterior_kernels::features::{FeatureSettings, PriorDraws, RandomFeatures};
use posterior_kernels::inducing::InducingChoice;
use posterior_kernels::{Kernel, KernelExpression};
use posterior_likelihoods::{Gaussian, VariationalLikelihood};
use posterior_linalg::Real;
use posterior_linalg::random::Streams;
use rand_distr::{Distribution, StandardNormal};
use serde::Deserialize;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A covariance function on `dimension` columns, in either precision.
#[derive(Clone, Debug)]
pub(crate) struct Covariance {
    expression: KernelExpression,
    values: Option<Vec<f64>>,
    dimension: usize,
}

impl Covariance {
    /// From the text of a kernel, with the numbers in it.
    pub(crate) fn parse(text: &str, dimension: usize) -> Result<Self, ExperimentError> {
        let covariance = Self { expression: text.parse()?, values: None, dimension };
        covariance.kernel::<f64>()?;
        Ok(covariance)
    }

    /// Matérn-3/2 with a standard deviation and one lengthscale for each column.
    pub(crate) fn matern32(deviation: f64, lengthscales: &[f64]) -> Result<Self, ExperimentError> {
        let positive = |v: &f64| v.is_finite() && *v > 0.0;
        if lengthscales.is_empty() || !positive(&deviation) || !lengthscales.iter().all(positive) {
            return Err(ExperimentError::Setting(
                "signal and lengthscales must be positive, with a lengthscale for each column".into(),
            ));
        }
        let mut values = vec![deviation * deviation];
        values.extend_from_slice(lengthscales);
        let dimension = lengthscales.len();
        Ok(Self { expression: "matern32(ard)".parse()?, values: Some(values), dimension })
    }

    /// Columns of the points.
    pub(crate) fn dimension(&self) -> usize {
        self.dimension
    }

    /// The kernel.
    pub(crate) fn kernel<T: Real>(&self) -> Result<Box<dyn Kernel<T>>, ExperimentError> {
        let names: Vec<String> = (1..=self.dimension).map(|j| format!("x{j}")).collect();
        let mut kernel = self.expression.build::<T>(&names)?;
        if let Some(values) = &self.values {
            kernel.set_values(values);
        }
        Ok(kernel)
    }

    /// `count` functions drawn from the prior with `features` random features.
    pub(crate) fn draw<T: Real>(
        &self,
        count: usize,
        features: usize,
        streams: Streams,
    ) -> Result<PriorDraws<T>, ExperimentError> {
        let kernel = self.kernel::<T>()?;
        let settings = FeatureSettings { count: features, ..FeatureSettings::default() };
        let map = RandomFeatures::new(&*kernel, self.dimension, settings, streams).map_err(GpError::from)?;
        Ok(PriorDraws::new(Arc::new(map), count, streams))
    }
}

/// Independent standard normal numbers.
pub(crate) fn normals(rows: usize, columns: usize, streams: Streams, name: &str) -> Mat<f64> {
    let mut rng = streams.stream(name);
    Mat::from_fn(rows, columns, |_, _| StandardNormal.sample(&mut rng))
}

/// How many bits kernels are computed with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Precision {
    /// 32.
    Single,
    /// 64.
    Double,
}

/// An entry of `[[method]]`: either a solver for the weights of all rows, or inducing points.
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
        if self.solver.is_some() == self.inducing.is_some() {
            return wrong("give either `solver` or `inducing`");
        }
        if self.inducing.is_some() && self.tolerance.is_some() {
            return wrong("inducing points have no residual, so `tolerance` means nothing");
        }
        if self.samples == Some(0) || (self.samples.is_some() && self.inducing.is_some()) {
            return wrong("`samples` are those of a solver, at least 1");
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
        let mut run = match (self.seeded_solver(job.seed), &self.inducing) {
            (Some(solver), _) => match job.precision {
                Precision::Single => {
                    let (posterior, trace) = self.condition::<f32>(solver, job, stage, context)?;
                    Run::of(posterior.solution().progress, trace, Fitted::Single(posterior))
                }
                Precision::Double => {
                    let (posterior, trace) = self.condition::<f64>(solver, job, stage, context)?;
                    Run::of(posterior.solution().progress, trace, Fitted::Double(posterior))
                }
            },
            (None, Some(inducing)) => self.vary(inducing, job, started, stage, context)?,
            (None, None) => {
                return Err(ExperimentError::Setting(format!("[[method]] `{}` has no method", self.name)));
            }
        };
        run.seconds = started.elapsed().as_secs_f64();
        if context.stopped() { Err(ExperimentError::Interrupted) } else { Ok(run) }
    }

    #[allow(clippy::type_complexity)]
    fn condition<T: Real>(
        &self,
        solver: Method,
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
            seed: job.seed,
            cache_bytes: job.cache_bytes,
        };
        let (mut trace, mut next) = (Vec::new(), 1);
        let posterior = model.condition(
            job.data.clone(),
            Support::Rows(solver),
            settings,
            Start::Zero,
            &mut |event| {
                let progress = &event.progress;
                // A twentieth further each time: a few hundred points of a run of any length.
                if progress.step >= next {
                    trace.push((progress.elapsed.as_secs_f64(), progress.residual));
                    next = progress.step + 1 + progress.step / 20;
                }
                context.tell(stage, progress.step, progress.steps_planned)
            },
        )?;
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
        let likelihood = VariationalLikelihood::Gaussian(Gaussian::new(job.noise_variance, 0.0));
        let mut model = StochasticGp::new(kernel, MeanForm::Zero, likelihood, points, 1)?;
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
        let fit = fit_stochastic(model, job.data, &options, None, &mut |progress| {
            context.tell(stage, progress.step, progress.steps_planned)
        })?;
        Ok(Run {
            fitted: Fitted::Inducing(Box::new(fit.posterior)),
            seconds: 0.0,
            steps: fit.steps,
            step_size: None,
            trace: Vec::new(),
        })
    }
}

impl Run {
    fn of(progress: Progress, trace: Vec<(f64, f64)>, fitted: Fitted) -> Self {
        Self { fitted, seconds: 0.0, steps: progress.step, step_size: progress.step_size, trace }
    }
}
