//! Regression benchmarks: tables in ten standard folds, Gaussian processes with given hyperparameters, several methods.
//!
//! Serves tables 4.1, 4.2 and 4.3 and figure 4.8 of the thesis.

use super::settings;
use crate::ExperimentError;
use crate::context::Context;
use crate::gaussian::{Job, MethodSettings, Precision, Run, check_methods};
use crate::measured::{Measured, NumberTable};
use crate::numbers::put;
use crate::tables::{Fold, SetSettings, Source, check_tables};
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
    /// Folder with `TABLE.csv.gz` (the last column is the target) and `TABLE.fold.csv.gz`, counted from the experiment's file; empty: data are
    /// drawn from the prior of the first set of each table.
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
    /// Shares of its steps after which each method is scored as well: fits of their own, since averages depend on how many steps are planned.
    #[serde(default)]
    shares: Vec<f64>,
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
        if self.shares.iter().any(|s| !(*s > 0.0 && *s < 1.0)) || !self.shares.is_sorted() {
            return wrong("`shares` are between 0 and 1, ascending");
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
    points: usize,
    step_size: Option<f64>,
    trace: Vec<(f64, f64)>,
}

impl Found {
    fn score(
        method: &MethodSettings,
        job: &Job<'_>,
        fold: &Fold,
        stage: &str,
        context: &mut Context<'_>,
    ) -> Result<Self, ExperimentError> {
        let Run { fitted, seconds, steps, points, step_size, trace } = method.fit(job, stage, context)?;
        let prediction = fitted.predict(fold.test.as_ref())?;
        let means: Vec<f64> = prediction.mean.col(0).iter().copied().collect();
        let variances = prediction.observed_variance();
        let scores = Gaussians::new(&means, &variances, &fold.truth)?.scores(1.0)?.standardised;
        Ok(Self { scores, seconds, steps, points, step_size, trace })
    }
}

fn summary(folds: &[usize], found: &[Found]) -> Result<Value, ExperimentError> {
    let column = |value: &dyn Fn(&Found) -> f64| found.iter().map(value).collect::<Vec<f64>>();
    let mut out = Map::new();
    put(&mut out, "rmse", &column(&|f| f.scores.rmse))?;
    put(&mut out, "nll", &column(&|f| f.scores.nll))?;
    put(&mut out, "seconds", &column(&|f| f.seconds))?;
    put(&mut out, "steps", &column(&|f| f.steps as f64))?;
    put(&mut out, "points", &column(&|f| f.points as f64))?;
    out.insert("folds_counted".into(), json!(folds.len()));
    let each = folds.iter().zip(found).map(|(fold, f)| {
        let numbers = json!({
            "rmse": f.scores.rmse, "nll": f.scores.nll, "crps": f.scores.crps, "mae": f.scores.mae,
            "seconds": f.seconds, "steps": f.steps, "points": f.points, "step_size": f.step_size,
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

/// What one method found on the first fold after shares of its steps and after all of them.
type Course<'a> = (String, Vec<&'a Found>);

/// A score against time on the first fold.
fn scores(set: &str, y: &str, courses: &[Course<'_>], score: impl Fn(&Found) -> f64) -> Item {
    let line = |(name, found): &Course<'_>| Line {
        name: name.clone(),
        x: found.iter().map(|f| f.seconds).collect(),
        y: found.iter().map(|f| score(f)).collect(),
        ..Line::default()
    };
    Item::Curves(Curves {
        title: format!("{set}: {y}"),
        x: "seconds".into(),
        y: y.into(),
        x_logarithmic: true,
        lines: courses.iter().map(line).collect(),
        caption: "On the first fold; each point is a fit of its own with a share of the steps, the last with all of them.".into(),
        ..Curves::default()
    })
}

/// Fits every method to every fold of every set.
pub(crate) fn run(table: &Table, context: &mut Context<'_>) -> Result<Measured, ExperimentError> {
    let settings: Settings = settings(table)?;
    settings.check()?;
    let (mut numbers, mut series) = (Map::new(), Map::new());
    let (mut tables, mut figures, mut facts) = (Vec::new(), Vec::new(), Vec::new());
    for set in &settings.sets {
        let covariance = set.covariance()?;
        // Sets of one table see the same rows, so that only their hyperparameters differ.
        let (index, first) = set.first_of_table(&settings.sets);
        let streams = Streams::new(context.seed).child("experiment/set", index as u64);
        let folder = (!settings.folder.as_os_str().is_empty()).then(|| context.folder.join(&settings.folder));
        let source = Source::open(first, folder.as_deref(), settings.rows, settings.features, streams)?;
        let mut found: BTreeMap<&str, Vec<Found>> = BTreeMap::new();
        let mut courses: BTreeMap<&str, Vec<Found>> = BTreeMap::new();
        for (done, &fold) in settings.folds.iter().enumerate() {
            let rows = source.fold(fold, settings.rows, streams)?;
            if done == 0 {
                let (train, test) = (rows.train.rows(), &rows.test);
                let what = format!("{train} and {} rows, {} columns", test.nrows(), test.ncols());
                facts.push(SummaryRow::new(format!("{}, training and test", set.name), what));
            }
            for named in settings.methods.iter().filter(|m| settings.folds_of(&m.name).contains(&fold)) {
                let method = settings.method(&set.name, named);
                let stage = format!("{}, fold {fold}, {}", set.name, method.name);
                let job = Job {
                    covariance: &covariance,
                    noise_variance: set.noise * set.noise,
                    data: &rows.train,
                    samples: settings.samples,
                    features: settings.features,
                    precision: settings.precision,
                    cache_bytes: settings.cache_mb.saturating_mul(1_000_000),
                    time: None,
                    seed: context.seed.wrapping_add(fold as u64),
                };
                // Where data are made up, they depend on the first set of the table.
                let depends = (
                    (set, first),
                    (&settings.folder, settings.rows, job.samples, job.features, job.precision),
                );
                let mut fit = |method: &MethodSettings| {
                    context.once(&stage, &(&depends, method), |context| {
                        Found::score(method, &job, &rows, &stage, context)
                    })
                };
                if done == 0 {
                    for share in &settings.shares {
                        let steps = (share * method.steps as f64).ceil() as usize;
                        let early = fit(&MethodSettings { steps, ..method.clone() })?;
                        courses.entry(named.name.as_str()).or_default().push(early);
                    }
                }
                let one = fit(&method)?;
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
        let course = |method: &MethodSettings| -> Option<Course<'_>> {
            let name = method.name.as_str();
            Some((name.into(), courses.get(name)?.iter().chain(found.get(name)?.first()).collect()))
        };
        let courses: Vec<Course<'_>> = settings.methods.iter().filter_map(course).collect();
        if !courses.is_empty() {
            figures.push(scores(&set.name, "RMSE", &courses, |f| f.scores.rmse));
            figures.push(scores(&set.name, "NLL", &courses, |f| f.scores.nll));
            let each = |found: &[&Found]| {
                let point = |f: &&Found| (f.seconds, f.steps, f.scores.rmse, f.scores.nll);
                found.iter().map(point).collect::<Vec<_>>()
            };
            let own: Map<String, Value> =
                courses.iter().map(|(name, found)| (name.clone(), json!(each(found)))).collect();
            series.insert(format!("{} by seconds", set.name), Value::Object(own));
        }
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
                ("points_shown", "points"),
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
