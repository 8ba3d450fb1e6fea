//! Fits that learn everything as `posterior fit` does: hyperparameters, inducing points, features.

use super::context::Context;
use super::error::{ExperimentError, Result, refused};
use super::gaussian::{MethodSettings, check_names};
use super::numbers::{Quantity, shown_columns};
use faer::MatRef;
use posterior_data::{Selection, Table};
use posterior_kernels::KernelExpression;
use posterior_metrics::{Gaussians, RegressionScores};
use posterior_models::options::{
    CalibrateName, Limits, OutputRequest, PriorSettings, TargetTransformName, Validation,
};
use posterior_models::{FitRequest, FitSummary, Method, Model, Predictor, Prepared, Process, Want};
use std::path::PathBuf;

/// What a fit is told beside its method.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FitSettings<'a> {
    /// The kernel of methods that have one; the program's usual one if absent.
    pub(crate) kernel: Option<&'a KernelExpression>,
    /// Most seconds, for methods without a budget of their own.
    pub(crate) seconds: Option<f64>,
    /// Most memory, bytes.
    pub(crate) memory: u64,
    /// Seed of everything random.
    pub(crate) seed: u64,
}

/// Methods of a file that learn everything themselves and the most seconds that each has, checked.
pub(crate) fn check_learned(methods: &[MethodSettings], seconds: Option<f64>) -> Result<()> {
    if seconds.is_some_and(|s| !(s > 0.0 && s.is_finite())) {
        return refused("`seconds` must be positive");
    }
    check_names("method", methods.iter().map(|m| m.name.as_str()))?;
    methods.iter().try_for_each(|method| {
        method.check()?;
        method.as_a_user()?;
        let large = method.options.large();
        if large.is_some_and(|large| large.checkpoint.is_some() || large.fresh) {
            return Err(method.wrong(
                "`checkpoint` and `fresh` belong to one fit; finished fits of an experiment are kept by `--journal`",
            ));
        }
        Ok(())
    })
}

/// Whether a kernel means something to a method: the outputs of a network are features without one.
pub(crate) fn has_kernel(method: &Method) -> bool {
    !matches!(method, Method::Dbk(_) | Method::Svdbk(_))
}

/// Scores of new observations at the rows of x, in the posterior's own units.
///
/// # Errors
/// Those of predictions, and of numbers that are not finite.
pub(crate) fn scored(
    predictor: &dyn Predictor,
    x: MatRef<'_, f64>,
    truth: &[f64],
) -> Result<RegressionScores> {
    let found = predictor.latent(x.into(), &Want::default())?;
    let noise = predictor.noise_variance().unwrap_or(0.0);
    let variance: Vec<f64> = found.variances().into_iter().map(|v| v + noise).collect();
    Ok(Gaussians::new(&found.mean, &variance, truth)?.scores(1.0)?)
}

/// Scores in tables; the order is that of their columns.
pub(crate) const SCORES: [Quantity<RegressionScores>; 8] = [
    ("mae", "MAE", |s| Some(s.mae)),
    ("rmse", "RMSE", |s| Some(s.rmse)),
    ("nll", "NLL", |s| Some(s.nll)),
    ("crps", "", |s| Some(s.crps)),
    ("coverage_50", "in 50 %", |s| Some(s.coverage_50)),
    ("coverage_90", "in 90 %", |s| Some(s.coverage_90)),
    ("coverage_95", "in 95 %", |s| Some(s.coverage_95)),
    ("width_95", "", |s| Some(s.width_95)),
];

/// Columns of [`SCORES`], with others behind.
pub(crate) fn score_columns(more: &[(&str, &'static str)]) -> Vec<(String, &'static str)> {
    let more = more.iter().map(|(key, head)| (key.to_string(), *head));
    shown_columns("", &SCORES).into_iter().chain(more).collect()
}

/// A process of one target of numbers, and how its fit went.
///
/// # Errors
/// When the model is another one.
pub(crate) fn gaussian_process(model: &Model) -> Result<(Process<'_>, &FitSummary)> {
    let process = model.process();
    let summary = process.and_then(|own| own.record().fit.gaussian());
    match process.zip(summary) {
        Some(found) => Ok(found),
        None => refused("a process of one target of numbers is wanted"),
    }
}

/// Of learned features: which way of training was chosen.
pub(crate) fn chosen_way(summary: &FitSummary) -> Option<String> {
    summary.scalable.as_ref()?.deep.as_ref().map(|deep| deep.chosen.clone())
}

impl MethodSettings {
    /// Most seconds: its own limit, or that of all.
    pub(crate) fn seconds(&self, usual: Option<f64>) -> Option<f64> {
        self.time_budget.or(usual)
    }

    /// Fits prepared rows, telling the context each step as `stage`. Paths of networks are counted from the experiment's file.
    ///
    /// # Errors
    /// Those of the fit, and [`ExperimentError::Interrupted`].
    pub(crate) fn learn(
        &self,
        prepared: Prepared,
        asked: &FitSettings<'_>,
        stage: &str,
        context: &mut Context<'_>,
    ) -> Result<Model> {
        let mut method = self.options.clone();
        let named: Vec<&mut PathBuf> = match &mut method {
            Method::Dbk(options) | Method::Svdbk(options) => options.network.basis.iter_mut().collect(),
            Method::Dkl(options) | Method::Svdkl(options) => options.deep.network.basis.iter_mut().collect(),
            Method::Gvi(options) => {
                options.kernel_network.basis.iter_mut().chain(&mut options.mean_network).collect()
            }
            _ => Vec::new(),
        };
        for path in named {
            *path = context.folder.join(&*path);
        }
        let mut request = FitRequest {
            method,
            seed: asked.seed,
            limits: Limits { time: self.seconds(asked.seconds), memory: asked.memory },
            prior: PriorSettings { initial_noise: self.initial_noise, ..PriorSettings::default() },
            validation: Validation { calibrate: CalibrateName::None, ..Validation::default() },
            ..FitRequest::default()
        };
        if let Some(kernel) = asked.kernel.filter(|_| has_kernel(&request.method)) {
            request.prior.kernel = kernel.clone();
        }
        let model = Model::fit_prepared(prepared, &request, &mut |progress, _| {
            context.tell(stage, progress.step, progress.steps_planned)
        });
        if context.stopped() { Err(ExperimentError::Interrupted) } else { Ok(model?) }
    }

    /// Fits the column `y` of a table as it is, without a transform of the target, as published; in the memory that a user's fit has.
    ///
    /// # Errors
    /// As [`Self::learn`], and tables that no process learns from.
    pub(crate) fn learn_table(
        &self,
        table: &Table,
        kernel: Option<&KernelExpression>,
        seconds: Option<f64>,
        context: &mut Context<'_>,
    ) -> Result<Model> {
        let request = FitRequest {
            columns: Selection { target: "y".into(), ..Selection::default() },
            output: OutputRequest { target_transform: TargetTransformName::None, ..OutputRequest::default() },
            ..FitRequest::default()
        };
        let prepared = Prepared::from_table(table, &(0..table.rows()).collect::<Vec<_>>(), &request)?;
        let asked = FitSettings { kernel, seconds, memory: request.limits.memory, seed: context.seed };
        self.learn(prepared, &asked, &self.name, context)
    }
}
