//! Gaussian processes in experiments: methods in the words of `posterior fit`, and one way to run any of them.

use super::context::Context;
use super::error::{ExperimentError, Result, refused};
use super::prior_targets::{self, PriorTargets};
use faer::MatRef;
use posterior_gp::iterative::{
    Budget, Method as RowsMethod, PathwiseModel, PathwisePosterior, SolveObserver, Start, Support,
};
use posterior_gp::{Mean, MeanForm, Observations, Prediction};
use posterior_likelihoods::Gaussian;
use posterior_linalg::Real;
use posterior_linalg::random::Streams;
use posterior_models::options::{CalibrateName, KernelPrecision, Limits, MethodName, Validation};
use posterior_models::{
    FitRequest, FitStage, Hyperparameter, Method, Model, Predictor, Prepared, Solver, SolverPrecision,
};
use posterior_optim::{Progress, Signal};
use serde::{Deserialize, de};
use std::sync::Arc;
use std::time::{Duration, Instant};
use toml::{Table, Value};

pub(crate) use super::covariance::{Covariance, normals};

/// An entry of `[[method]]`: a name, a method with its options as `posterior fit` has them (keys are flags; what several methods of a file share may
/// stand in `[methods]`), and what only experiments ask for.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(try_from = "Table")]
pub(crate) struct MethodSettings {
    /// Its name in tables.
    pub(crate) name: String,
    /// The method.
    pub(crate) options: Method,
    /// Its solver with the published settings of `beyond`, for which the program has no options.
    beyond: Option<Solver>,
    /// What posterior samples on inducing points are fitted to.
    prior_targets: PriorTargets,
    /// Seconds for the whole fit.
    pub(crate) time_budget: Option<f64>,
    /// Where the noise variance begins, in standard units, of fits that learn it.
    pub(crate) initial_noise: Option<f64>,
    /// As the file has it.
    table: Table,
}

/// Options without which nothing is left but a solver for given right-hand sides.
const OF_SOLVERS: [&str; 12] = [
    "name",
    "method",
    "beyond",
    "iterations",
    "batch",
    "step-size",
    "momentum",
    "tolerance",
    "preconditioner",
    "rank",
    "block-rows",
    "acceleration",
];

/// What is to be fitted, and how precisely.
#[derive(Clone, Debug)]
pub(crate) struct Job<'a> {
    /// The prior's covariance.
    pub(crate) covariance: &'a Covariance,
    /// Variance of the noise.
    pub(crate) noise_variance: f64,
    /// Inputs and one target.
    pub(crate) data: &'a Observations,
    /// Seconds for the whole fit, for methods without a budget of their own.
    pub(crate) time_budget: Option<f64>,
    /// Seed of everything random.
    pub(crate) seed: u64,
}

/// A posterior, and what it took.
#[derive(Debug)]
pub(crate) struct Run {
    /// The posterior.
    pub(crate) predictor: Arc<dyn Predictor>,
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

impl Run {
    /// Marginals.
    pub(crate) fn predict(&self, x: MatRef<'_, f64>) -> Result<Prediction> {
        match self.predictor.process() {
            Some(process) => Ok(process.predict(x)?),
            None => refused("a posterior under Gaussian noise is wanted"),
        }
    }

    /// Where the weights of an iterative solver stand.
    pub(crate) fn support(&self) -> Option<&Support> {
        self.predictor.solved().map(|(support, _)| support)
    }
}

/// Names that can be parts of paths, each once.
pub(crate) fn check_names<'a>(what: &str, names: impl IntoIterator<Item = &'a str>) -> Result<()> {
    let mut seen: Vec<&str> = Vec::new();
    for name in names {
        if name.is_empty() || name.contains('.') || seen.contains(&name) {
            let problem =
                format!("[[{what}]]: `{name}` is no name; give each one of its own, without points");
            return refused(problem);
        }
        seen.push(name);
    }
    if seen.is_empty() {
        return refused(format!("[[{what}]]: give at least one"));
    }
    Ok(())
}

/// The methods of a file, checked.
pub(crate) fn check_methods(methods: &[MethodSettings]) -> Result<()> {
    check_names("method", methods.iter().map(|m| m.name.as_str()))?;
    methods.iter().try_for_each(|method| {
        if method.initial_noise.is_some() {
            return Err(
                method.wrong("`initial-noise` is where learning begins; here hyperparameters are given")
            );
        }
        method.check()
    })
}

/// The keys of a method's options.
fn keys(options: &Method) -> Result<Vec<String>, serde_json::Error> {
    let known = serde_json::to_value(options)?;
    Ok(known.as_object().into_iter().flat_map(|known| known.keys().cloned()).collect())
}

/// Lays the options that the methods of a file share under those of each method that has them; `auto` is what a user gets who gives none.
pub(crate) fn share_options(settings: &mut Table) {
    let Some(Value::Table(shared)) = settings.remove("methods") else { return };
    let methods = settings.get_mut("method").into_iter().flat_map(|methods| match methods {
        Value::Array(all) => all.iter_mut().filter_map(Value::as_table_mut).collect(),
        Value::Table(one) => vec![one],
        _ => Vec::new(),
    });
    for method in methods {
        let name = method.get("method").and_then(|name| name.clone().try_into::<MethodName>().ok());
        let Some(name) = name.filter(|name| *name != MethodName::Auto) else { continue };
        let known = keys(&Method::from(name)).unwrap_or_default();
        for (key, value) in shared.iter().filter(|(key, _)| known.contains(key)) {
            method.entry(key).or_insert_with(|| value.clone());
        }
    }
}

/// The solver with other settings laid over its own.
fn beyond(solver: Solver, over: &Table) -> Result<Solver, toml::de::Error> {
    let lay = |own: Result<Value, toml::ser::Error>| -> Result<Value, toml::de::Error> {
        let mut own = own.map_err(de::Error::custom)?;
        if let Some(key) = over.keys().find(|key| ["batch", "step_size", "seed"].contains(&key.as_str())) {
            return Err(de::Error::custom(format!("`{key}` in `beyond` is an option of the method")));
        }
        if let Value::Table(own) = &mut own {
            own.extend(over.clone());
        }
        Ok(own)
    };
    Ok(match solver {
        Solver::Rows(RowsMethod::Descent(options)) => {
            Solver::Rows(RowsMethod::Descent(lay(Value::try_from(options))?.try_into()?))
        }
        Solver::Inducing(options) => Solver::Inducing(lay(Value::try_from(options))?.try_into()?),
        _ => return Err(de::Error::custom("`beyond` is for the methods sgd and inducing-sgd")),
    })
}

impl TryFrom<Table> for MethodSettings {
    type Error = toml::de::Error;

    fn try_from(table: Table) -> Result<Self, toml::de::Error> {
        /// Options, and what stands beside them.
        #[derive(Deserialize)]
        #[serde(rename_all = "kebab-case")]
        struct Entry {
            name: String,
            beyond: Option<Table>,
            #[serde(default)]
            prior_targets: PriorTargets,
            time_budget: Option<f64>,
            initial_noise: Option<f64>,
            #[serde(flatten)]
            options: Method,
        }
        let entry: Entry = Value::Table(table.clone()).try_into()?;
        let Entry { name, beyond: over, prior_targets, time_budget, initial_noise, options } = entry;
        let beyond = match (over, options.solver(1, 0)) {
            (Some(over), Some(solver)) => Some(beyond(solver, &over)?),
            (Some(_), None) => return Err(de::Error::custom(format!("{} has no `beyond`", options.name()))),
            (None, _) => None,
        };
        Ok(Self { name, options, beyond, prior_targets, time_budget, initial_noise, table })
    }
}

/// The noise by which tolerances are chosen that a file leaves out: so much that they are those of published runs, whatever the noise is.
const PUBLISHED: f64 = 1.0;

impl MethodSettings {
    pub(crate) fn wrong(&self, problem: &str) -> ExperimentError {
        ExperimentError::Setting(format!("[[method]] `{}`: {problem}", self.name))
    }

    pub(crate) fn check(&self) -> Result<()> {
        let Budget { steps, tolerance, .. } = self.options.budget(1, None, PUBLISHED);
        if steps == 0 || !(tolerance >= 0.0 && tolerance.is_finite()) {
            return Err(self.wrong("`iterations` must be at least 1 and `tolerance` zero or positive"));
        }
        let counts = self.options.iterative().map(|i| [i.sampling.samples, i.sampling.random_features]);
        if counts.is_some_and(|counts| counts.contains(&0)) {
            return Err(self.wrong("`samples` and `random-features` must be at least 1"));
        }
        if self.initial_noise.is_some_and(|noise| !(noise > 0.0 && noise.is_finite())) {
            return Err(self.wrong("`initial-noise` is a variance above 0, in units of the target's"));
        }
        if self.time_budget.is_some_and(|seconds| !(seconds > 0.0 && seconds.is_finite())) {
            return Err(self.wrong("`time-budget` is a positive number of seconds"));
        }
        let targets = self.prior_targets != PriorTargets::Approximate;
        if targets && !matches!(self.options, Method::InducingSgd(_)) {
            return Err(self.wrong("`prior-targets` are those of inducing-sgd"));
        }
        Ok(())
    }

    /// Refuses what the program has no options for.
    pub(crate) fn as_a_user(&self) -> Result<()> {
        match (&self.beyond, self.prior_targets) {
            (None, PriorTargets::Approximate) => Ok(()),
            _ => Err(self.wrong(
                "`beyond` and `prior-targets` are for solvers of given hyperparameters; here all is learned",
            )),
        }
    }

    /// The same with other options.
    pub(crate) fn with(&self, over: &Table) -> Result<Self> {
        let mut table = self.table.clone();
        table.extend(over.clone());
        let changed = Self::try_from(table).map_err(|e| self.wrong(e.message()))?;
        changed.check()?;
        Ok(changed)
    }

    /// Most steps.
    pub(crate) fn steps(&self, rows: usize) -> usize {
        self.options.steps(rows)
    }

    /// The solver of weights on all rows, and when it ends; all other options are refused.
    pub(crate) fn rows_solver(&self, rows: usize, seed: u64) -> Result<(RowsMethod, Budget)> {
        if let Some(key) = self.table.keys().find(|key| !OF_SOLVERS.contains(&key.as_str())) {
            return Err(
                self.wrong(&format!("`{key}` has no meaning here, where a solver is looked at alone"))
            );
        }
        match self.solver(rows, seed) {
            Some(Solver::Rows(solver)) => Ok((solver, self.options.budget(rows, None, PUBLISHED))),
            _ => Err(self.wrong("weights on all rows are looked at here: use cg, sgd, sdd or sap")),
        }
    }

    /// The solver with this seed.
    fn solver(&self, rows: usize, seed: u64) -> Option<Solver> {
        let mut solver = self.beyond.clone().or_else(|| self.options.solver(rows, seed))?;
        match &mut solver {
            Solver::Rows(RowsMethod::Descent(options)) => options.seed = seed,
            Solver::Inducing(options) => options.seed = seed,
            _ => {}
        }
        Some(solver)
    }

    /// Fits, telling the context each step as `stage`.
    pub(crate) fn fit(&self, job: &Job<'_>, stage: &str, context: &mut Context<'_>) -> Result<Run> {
        let started = Instant::now();
        let (mut trace, mut next) = (Vec::new(), 1);
        let mut watch = |progress: &Progress, solves: bool| {
            // A twentieth further each time: a few hundred points of a run of any length.
            if solves && progress.step >= next {
                trace.push((progress.elapsed.as_secs_f64(), progress.residual.unwrap_or(f64::NAN)));
                next = progress.step + 1 + progress.step / 20;
            }
            context.tell(stage, progress.step, progress.steps_planned)
        };
        let (predictor, steps) = if self.beyond.is_none() && self.prior_targets == PriorTargets::Approximate {
            self.as_the_program(job, &mut watch)?
        } else {
            let predictor = match self.options.precision() {
                KernelPrecision::Single => f32::predictor(self.condition(job, &mut |p, _| watch(p, true))?),
                KernelPrecision::Double => f64::predictor(self.condition(job, &mut |p, _| watch(p, true))?),
            };
            (predictor, 0)
        };
        let found = predictor.solved().map(|(_, progress)| progress);
        let points = predictor.support();
        let run = Run {
            seconds: started.elapsed().as_secs_f64(),
            steps: found.map_or(steps, |progress| progress.step),
            step_size: found.and_then(|progress| progress.step_size),
            points,
            predictor,
            trace,
        };
        if context.stopped() { Err(ExperimentError::Interrupted) } else { Ok(run) }
    }

    /// As `posterior fit` does it, on numbers in standard units: with the job's prior and noise for its hyperparameters, which `auto` learns itself. Also the
    /// steps taken.
    fn as_the_program(
        &self,
        job: &Job<'_>,
        watch: &mut dyn FnMut(&Progress, bool) -> Signal,
    ) -> Result<(Arc<dyn Predictor>, usize)> {
        let mut request = FitRequest {
            method: self.options.clone(),
            seed: job.seed,
            limits: Limits { time: self.time_budget.or(job.time_budget), ..Limits::default() },
            validation: Validation {
                // Posteriors are compared as they are.
                calibrate: CalibrateName::None,
                ..Validation::default()
            },
            ..FitRequest::default()
        };
        if self.options.name() != MethodName::Auto {
            let mut hyperparameters = Hyperparameter::of(&*job.covariance.kernel::<f64>()?);
            hyperparameters
                .push(Hyperparameter { name: "noise_variance".into(), values: vec![job.noise_variance] });
            request.prior.kernel = job.covariance.expression().clone();
            request.prior.mean = MeanForm::Zero;
            request.start = posterior_models::options::Start::given(hyperparameters);
            (request.prior.noise_floor, request.limits.memory) = (0.0, u64::MAX);
        }
        let prepared = Prepared::standardised(job.data.clone());
        let model = Model::fit_prepared(prepared, &request, &mut |progress, stage| {
            watch(progress, *stage == FitStage::Solve)
        })?;
        let process = model.process();
        let fit = process.and_then(|own| own.record().fit.gaussian());
        let steps = fit.map_or(0, |fit| fit.steps);
        Ok((model.into_predictor(), steps))
    }

    /// With a solver that the program has no options for.
    fn condition<T: Real>(
        &self,
        job: &Job<'_>,
        observer: &mut SolveObserver<'_, T>,
    ) -> Result<PathwisePosterior<T>> {
        let (Some(solver), Some(iterative)) =
            (self.solver(job.data.rows(), job.seed), self.options.iterative())
        else {
            return Err(self.wrong("there is no solver to speak of"));
        };
        let model = PathwiseModel::<T> {
            kernel: job.covariance.kernel()?,
            mean: Mean::new(MeanForm::Zero, job.covariance.dimension(), 1),
            noise: Gaussian::new(job.noise_variance, 0.0),
        };
        let seconds = self.time_budget.or(job.time_budget);
        let time = seconds.and_then(|s| Duration::try_from_secs_f64(s).ok());
        let settings =
            iterative.conditioning(self.options.budget(job.data.rows(), time, PUBLISHED), job.seed);
        let support = match (solver, self.options.inducing()) {
            (Solver::Rows(solver), _) => Support::Rows(solver),
            (Solver::Inducing(options), Some(asked)) => {
                let (kernel, streams) = (job.covariance.kernel::<f64>()?, Streams::new(job.seed));
                let points = asked.choice().points(&*kernel, job.data.inputs(), asked.points(), streams)?;
                if self.prior_targets == PriorTargets::Exact {
                    return prior_targets::condition(model, job, (points, options), settings, observer);
                }
                Support::Inducing(points, options)
            }
            _ => return Err(self.wrong("there is no solver to speak of")),
        };
        Ok(model.condition(job.data.clone(), support, settings, Start::Zero, observer)?)
    }
}
