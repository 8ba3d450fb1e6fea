//! Regression benchmarks: tables in ten standard folds, Gaussian processes with given hyperparameters, several methods.
//!
//! Serves table 4.3 of the thesis.

use super::super::ExperimentError;
use super::super::context::Context;
use super::super::gaussian::{Job, MethodSettings, Precision, Run, check_methods};
use super::super::measured::{Measured, NumberTable};
use super::super::numbers::put;
use super::super::tables::{Fold, SetSettings, Source, check_tables};
use super::settings;
use posterior_gp::iterative::Method;
use posterior_linalg::random::Streams;
use posterior_metrics::{Gaussians, StandardisedScores};
use posterior_report::{Curves, Item, Line, SummaryRow};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::path::PathBuf;
use toml::Table;

/// Settings of the kind.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Settings {
    /// Folder with `NAME.csv.gz` (the last column is the target) and `NAME.fold.csv.gz`, counted from the experiment's file; empty: data are
    /// drawn from the prior.
    folder: PathBuf,
    /// Which folds are test sets in turn.
    folds: Vec<usize>,
    /// Most training rows, chosen by chance; all if absent. As many are made up without a folder.
    rows: Option<usize>,
    /// Posterior samples, from which variances are taken.
    samples: usize,
    /// Random features of a prior function.
    features: usize,
    /// Precision of kernels.
    precision: Precision,
    /// Megabytes that may hold a kernel matrix.
    cache_mb: usize,
    #[serde(rename = "set")]
    sets: Vec<SetSettings>,
    #[serde(rename = "method")]
    methods: Vec<MethodSettings>,
    /// Folds by method, where they are not all: for methods that take long.
    #[serde(default)]
    folds_of: BTreeMap<String, Vec<usize>>,
    /// Steps by set and method, where they are not the method's own.
    #[serde(default)]
    steps: BTreeMap<String, BTreeMap<String, usize>>,
    /// Solvers by set and method, where they are not the method's own.
    #[serde(default)]
    solvers: BTreeMap<String, BTreeMap<String, Method>>,
}

impl Settings {
    fn check(&self) -> Result<(), ExperimentError> {
        let wrong = |problem: &str| Err(ExperimentError::Setting(problem.into()));
        check_methods(&self.methods)?;
        check_tables(&self.sets, &self.folds, &self.folder, self.rows)?;
        if self.samples == 0 || self.features == 0 {
            return wrong("`samples` and `features` must be at least 1");
        }
        for method in self.folds_of.keys() {
            if !self.methods.iter().any(|m| m.name == *method) || self.folds_of(method).is_empty() {
                return wrong("[folds_of] names methods and some of `folds`, at least one");
            }
        }
        let set = |name: &String| self.sets.iter().any(|s| s.name == *name);
        let method = |name: &String| self.methods.iter().find(|m| m.name == *name);
        let steps = |(name, own): (&String, &BTreeMap<String, usize>)| {
            set(name) && own.iter().all(|(m, steps)| *steps > 0 && method(m).is_some())
        };
        if !self.steps.iter().all(steps) {
            return wrong("[steps] names sets, their methods and numbers of steps from 1");
        }
        let solvers = |(name, own): (&String, &BTreeMap<String, Method>)| {
            set(name) && own.keys().all(|m| method(m).is_some_and(|m| m.solver.is_some()))
        };
        if !self.solvers.iter().all(solvers) {
            return wrong("[solvers] names sets and those of their methods that have a solver");
        }
        Ok(())
    }

    /// The folds of a method, in the order of the others.
    fn folds_of(&self, method: &str) -> Vec<usize> {
        let own = self.folds_of.get(method);
        self.folds.iter().copied().filter(|fold| own.is_none_or(|own| own.contains(fold))).collect()
    }

    fn method(&self, set: &str, method: &MethodSettings) -> MethodSettings {
        let steps = self.steps.get(set).and_then(|own| own.get(&method.name)).copied();
        let solver = self.solvers.get(set).and_then(|own| own.get(&method.name)).cloned();
        MethodSettings {
            steps: steps.unwrap_or(method.steps),
            solver: solver.or_else(|| method.solver.clone()),
            ..method.clone()
        }
    }
}

/// What one method found on one fold.
#[derive(Serialize, Deserialize)]
struct Found {
    scores: StandardisedScores,
    seconds: f64,
    steps: usize,
    step_size: Option<f64>,
    trace: Vec<(f64, f64)>,
}

fn summary(folds: &[usize], found: &[Found]) -> Result<Value, ExperimentError> {
    let column = |value: &dyn Fn(&Found) -> f64| found.iter().map(value).collect::<Vec<f64>>();
    let mut out = Map::new();
    put(&mut out, "rmse", &column(&|f| f.scores.rmse))?;
    put(&mut out, "nll", &column(&|f| f.scores.nll))?;
    put(&mut out, "seconds", &column(&|f| f.seconds))?;
    put(&mut out, "steps", &column(&|f| f.steps as f64))?;
    out.insert("folds_counted".into(), json!(folds.len()));
    let each = folds.iter().zip(found).map(|(fold, f)| {
        let numbers = json!({
            "rmse": f.scores.rmse, "nll": f.scores.nll, "crps": f.scores.crps, "mae": f.scores.mae,
            "seconds": f.seconds, "steps": f.steps, "step_size": f.step_size,
            "residual": f.trace.last().map(|t| t.1),
        });
        (format!("fold {fold}"), numbers)
    });
    out.insert("folds".into(), Value::Object(each.collect()));
    Ok(Value::Object(out))
}

/// Residuals against time on the first fold.
fn progress(set: &str, lines: &[(String, Vec<(f64, f64)>)]) -> Item {
    let line = |(name, trace): &(String, Vec<(f64, f64)>)| Line {
        name: name.clone(),
        x: trace.iter().map(|t| t.0).collect(),
        y: trace.iter().map(|t| t.1).collect(),
        ..Line::default()
    };
    Item::Curves(Curves {
        title: format!("{set}: residuals"),
        x: "seconds".into(),
        y: "largest relative residual".into(),
        x_logarithmic: true,
        y_logarithmic: true,
        lines: lines.iter().filter(|l| !l.1.is_empty()).map(line).collect(),
        caption: "Over the mean and all samples, on the first fold. Stochastic methods estimate it from batches; variational inference has none."
            .into(),
        ..Curves::default()
    })
}

/// Fits every method to every fold of every set.
pub(crate) fn run(table: &Table, context: &mut Context<'_>) -> Result<Measured, ExperimentError> {
    let settings: Settings = settings(table)?;
    settings.check()?;
    let (mut numbers, mut series) = (Map::new(), Map::new());
    let (mut tables, mut figures, mut facts) = (Vec::new(), Vec::new(), Vec::new());
    for (index, set) in settings.sets.iter().enumerate() {
        let covariance = set.covariance()?;
        let streams = Streams::new(context.seed).child("experiment/set", index as u64);
        let folder = (!settings.folder.as_os_str().is_empty()).then(|| context.folder.join(&settings.folder));
        let source = Source::open(set, folder.as_deref(), settings.rows, settings.features, streams)?;
        let mut found: BTreeMap<&str, Vec<Found>> = BTreeMap::new();
        for (done, &fold) in settings.folds.iter().enumerate() {
            let Fold { train, test, truth } = source.fold(fold, settings.rows, streams)?;
            if done == 0 {
                let what = format!("{} and {} rows, {} columns", train.rows(), truth.len(), test.ncols());
                facts.push(SummaryRow::new(format!("{}, training and test", set.name), what));
            }
            for named in settings.methods.iter().filter(|m| settings.folds_of(&m.name).contains(&fold)) {
                let method = settings.method(&set.name, named);
                let stage = format!("{}, fold {fold}, {}", set.name, method.name);
                let job = Job {
                    covariance: &covariance,
                    noise_variance: set.noise * set.noise,
                    data: &train,
                    samples: settings.samples,
                    features: settings.features,
                    precision: settings.precision,
                    cache_bytes: settings.cache_mb.saturating_mul(1_000_000),
                    time: None,
                    seed: context.seed.wrapping_add(fold as u64),
                };
                let depends =
                    (set, &method, &settings.folder, settings.rows, job.samples, job.features, job.precision);
                let one = context.once(&stage, &depends, |context| {
                    let Run { fitted, seconds, steps, step_size, trace } =
                        method.fit(&job, &stage, context)?;
                    let prediction = fitted.predict(test.as_ref())?;
                    let means: Vec<f64> = prediction.mean.col(0).iter().copied().collect();
                    let variances = prediction.observed_variance();
                    let scores = Gaussians::new(&means, &variances, &truth)?.scores(1.0)?.standardised;
                    Ok(Found { scores, seconds, steps, step_size, trace })
                })?;
                found.entry(named.name.as_str()).or_default().push(one);
            }
        }
        let mut own = Map::new();
        for (name, found) in &found {
            own.insert((*name).into(), summary(&settings.folds_of(name), found)?);
        }
        numbers.insert(set.name.clone(), Value::Object(own));
        let traces: Vec<(String, Vec<(f64, f64)>)> = settings
            .methods
            .iter()
            .filter_map(|m| Some((m.name.clone(), found.get(m.name.as_str())?.first()?.trace.clone())))
            .collect();
        figures.push(progress(&set.name, &traces));
        series.insert(set.name.clone(), json!(traces));
        tables.push(NumberTable::by_name(
            &set.name,
            "method",
            &format!("sets.{}", set.name),
            settings.methods.iter().map(|m| m.name.as_str()),
            &[
                ("rmse_shown", "RMSE"),
                ("nll_shown", "NLL"),
                ("seconds_shown", "seconds"),
                ("steps_shown", "steps"),
                ("folds_counted", "folds"),
            ],
            "Means over folds with standard errors, in units of the target's standard deviation in training.",
        ));
    }
    Ok(Measured {
        numbers: json!({ "sets": numbers }),
        series: Value::Object(series),
        tables,
        figures,
        facts,
        notes: Vec::new(),
    })
}
