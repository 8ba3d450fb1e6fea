//! Fits that learn everything as `posterior fit` does: hyperparameters, inducing points, features.

use super::context::Context;
use super::error::{ExperimentError, refused};
use super::gaussian::{MethodSettings, check_names};
use super::numbers::put;
use faer::MatRef;
use posterior_kernels::KernelExpression;
use posterior_metrics::{Gaussians, RegressionScores};
use posterior_models::options::{CalibrateName, Limits, PriorSettings, Validation};
use posterior_models::{FitRequest, Method, Model, Predictor, Prepared, Want};
use serde_json::{Map, Value};
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
pub(crate) fn check_learned(methods: &[MethodSettings], seconds: Option<f64>) -> Result<(), ExperimentError> {
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
) -> Result<RegressionScores, ExperimentError> {
    let found = predictor.latent(x.into(), &Want::default())?;
    let noise = predictor.noise_variance().unwrap_or(0.0);
    let variance: Vec<f64> = found.variances().into_iter().map(|v| v + noise).collect();
    Ok(Gaussians::new(&found.mean, &variance, truth)?.scores(1.0)?)
}

/// Columns of tables of [`put_scores`].
pub(crate) const SCORES: [(&str, &str); 6] = [
    ("mae_shown", "MAE"),
    ("rmse_shown", "RMSE"),
    ("nll_shown", "NLL"),
    ("coverage_50_shown", "in 50 %"),
    ("coverage_90_shown", "in 90 %"),
    ("coverage_95_shown", "in 95 %"),
];

/// One of the scores.
type Score = fn(&RegressionScores) -> f64;

/// Means of scores, with standard errors where there are several.
///
/// # Errors
/// When there are none.
pub(crate) fn put_scores(
    out: &mut Map<String, Value>,
    scores: &[RegressionScores],
) -> Result<(), ExperimentError> {
    let columns: [(&str, Score); 8] = [
        ("mae", |s| s.mae),
        ("rmse", |s| s.rmse),
        ("nll", |s| s.nll),
        ("crps", |s| s.crps),
        ("coverage_50", |s| s.coverage_50),
        ("coverage_90", |s| s.coverage_90),
        ("coverage_95", |s| s.coverage_95),
        ("width_95", |s| s.width_95),
    ];
    columns.iter().try_for_each(|(key, of)| put(out, key, &scores.iter().map(of).collect::<Vec<f64>>()))
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
    ) -> Result<Model, ExperimentError> {
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
}
