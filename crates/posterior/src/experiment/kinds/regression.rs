//! Regression benchmarks: tables in ten standard folds, Gaussian processes with given hyperparameters, several methods.
//!
//! Serves table 4.3 of the thesis.

use super::super::ExperimentError;
use super::super::context::Context;
use super::super::gaussian::{
    Covariance, Job, MethodSettings, Precision, Run, check_methods, check_names, normals,
};
use super::super::measured::{Measured, NumberTable};
use super::super::numbers::shown;
use super::settings;
use faer::Mat;
use posterior_data::{ReadOptions, Standardisation, Table as DataTable, Values, read_table};
use posterior_gp::Observations;
use posterior_gp::iterative::Method;
use posterior_linalg::random::Streams;
use posterior_metrics::{Average, Gaussians, StandardisedScores};
use posterior_report::{Curves, Item, Line, SummaryRow};
use rand::seq::SliceRandom;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
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

/// A data set with its hyperparameters, in standard units.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SetSettings {
    name: String,
    /// Standard deviation of the noise.
    noise: f64,
    /// Standard deviation of the function.
    signal: f64,
    /// One for each column.
    lengthscales: Vec<f64>,
}

/// Standardised training and test rows.
struct Fold {
    train: Observations,
    test: Mat<f64>,
    truth: Vec<f64>,
}

impl Settings {
    fn check(&self) -> Result<(), ExperimentError> {
        let wrong = |problem: &str| Err(ExperimentError::Setting(problem.into()));
        check_methods(&self.methods)?;
        check_names("set", self.sets.iter().map(|s| s.name.as_str()))?;
        if self.sets.iter().any(|s| !(s.noise > 0.0 && s.noise.is_finite())) {
            return wrong("[[set]]: `noise` must be positive");
        }
        if self.folds.is_empty() || self.folds.iter().any(|f| *f > 9) {
            return wrong("`folds` are numbers from 0 to 9, at least one");
        }
        if self.samples == 0 || self.features == 0 || self.rows.is_some_and(|r| r < 10) {
            return wrong("`samples` and `features` must be at least 1 and `rows` at least 10");
        }
        if self.folder.as_os_str().is_empty() && self.rows.is_none_or(|r| r > 100_000) {
            return wrong("data that are made up need `rows`, at most 100000");
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

/// All numbers of a table, by columns.
fn numbers(path: &Path) -> Result<Vec<Vec<f64>>, ExperimentError> {
    if !path.exists() {
        let remedy =
            "put the table and its folds there, or change `folder` in the experiment (--quick makes data up)";
        return Err(ExperimentError::MissingData { path: path.into(), remedy: remedy.into() });
    }
    let DataTable { columns, .. } = read_table(path, &ReadOptions::default())?;
    let numeric = columns.into_iter().map(|column| match column.values {
        Values::Numeric(values) if values.iter().all(|v| v.is_finite()) => Ok(values),
        _ => Err(ExperimentError::Setting(format!(
            "{}: column `{}` holds something else than finite numbers",
            path.display(),
            column.name
        ))),
    });
    numeric.collect()
}

/// Every fold of one set.
struct Source {
    x: Mat<f64>,
    y: Vec<f64>,
    folds: Vec<usize>,
}

impl Source {
    fn read(folder: &Path, name: &str, columns: usize) -> Result<Self, ExperimentError> {
        let mut table = numbers(&folder.join(format!("{name}.csv.gz")))?;
        let folds = numbers(&folder.join(format!("{name}.fold.csv.gz")))?;
        let (Some(y), [folds]) = (table.pop(), &folds[..]) else {
            return Err(ExperimentError::Setting(format!(
                "`{name}`: a target and one column of folds are needed"
            )));
        };
        if table.len() != columns || folds.len() != y.len() {
            let found = table.len();
            return Err(ExperimentError::Setting(format!(
                "`{name}`: {columns} lengthscales for {found} columns, {} folds for {} rows",
                folds.len(),
                y.len()
            )));
        }
        let x = Mat::from_fn(y.len(), columns, |i, j| table[j][i]);
        Ok(Self { x, y, folds: folds.iter().map(|f| *f as usize).collect() })
    }

    /// A draw from the prior on normal inputs; a ninth of `train` more for testing, as in ten folds.
    fn made_up(
        covariance: &Covariance,
        noise: f64,
        train: usize,
        features: usize,
        streams: Streams,
    ) -> Result<Self, ExperimentError> {
        let rows = train + train.div_ceil(9);
        let x = normals(rows, covariance.dimension(), streams, "experiment/inputs");
        let function = covariance.draw::<f64>(1, features, streams.child("experiment/truth", 0))?;
        let (f, e) = (function.values(x.as_ref()), normals(rows, 1, streams, "experiment/noise"));
        let y = (0..rows).map(|i| f[(i, 0)] + noise * e[(i, 0)]).collect();
        Ok(Self { x, y, folds: (0..rows).map(|i| i % 10).collect() })
    }

    fn fold(&self, fold: usize, most: Option<usize>, streams: Streams) -> Result<Fold, ExperimentError> {
        let (test, mut train): (Vec<usize>, Vec<usize>) =
            (0..self.y.len()).partition(|&i| self.folds[i] == fold);
        if test.is_empty() || train.is_empty() {
            return Err(ExperimentError::Setting(format!("fold {fold} has no rows")));
        }
        if let Some(most) = most.filter(|m| *m < train.len()) {
            train.shuffle(&mut streams.child("experiment/fold", fold as u64).stream("experiment/rows"));
            train.truncate(most);
        }
        let inputs = |rows: &[usize]| Mat::from_fn(rows.len(), self.x.ncols(), |i, j| self.x[(rows[i], j)]);
        let targets = |rows: &[usize]| rows.iter().map(|&i| self.y[i]).collect::<Vec<f64>>();
        let (x, y) = (inputs(&train), targets(&train));
        let standard = Standardisation::learn(x.as_ref(), &y);
        let y = Mat::from_fn(y.len(), 1, |i, _| standard.target(y[i]));
        Ok(Fold {
            train: Observations::new(standard.features(x.as_ref()), y, None)?,
            test: standard.features(inputs(&test).as_ref()),
            truth: targets(&test).into_iter().map(|y| standard.target(y)).collect(),
        })
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

/// Mean, standard error and text of some numbers under `key`.
fn put(map: &mut Map<String, Value>, key: &str, values: &[f64]) -> Result<(), ExperimentError> {
    let Average { mean, standard_error } = Average::of(values)?;
    let error = standard_error.map_or(String::new(), |e| format!(" ± {}", shown(e)));
    map.insert(key.into(), json!(mean));
    map.insert(format!("{key}_error"), json!(standard_error));
    map.insert(format!("{key}_shown"), json!(format!("{}{error}", shown(mean))));
    Ok(())
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
        let covariance = Covariance::matern32(set.signal, &set.lengthscales)?;
        let streams = Streams::new(context.seed).child("experiment/set", index as u64);
        let source = if settings.folder.as_os_str().is_empty() {
            let rows = settings.rows.unwrap_or(10);
            Source::made_up(&covariance, set.noise, rows, settings.features, streams)?
        } else {
            Source::read(&context.folder.join(&settings.folder), &set.name, covariance.dimension())?
        };
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folds_are_standardised_with_training_rows_only() {
        let x = Mat::from_fn(20, 2, |i, j| if j == 0 { i as f64 } else { 3.0 });
        let source = Source {
            x,
            y: (0..20).map(|i| 2.0 * i as f64).collect(),
            folds: (0..20).map(|i| i % 10).collect(),
        };
        let fold = source.fold(1, None, Streams::new(0)).unwrap();
        assert_eq!((fold.train.rows(), fold.truth.len()), (18, 2));
        let column: Vec<f64> = fold.train.inputs().col(0).iter().copied().collect();
        let mean = column.iter().sum::<f64>() / 18.0;
        let square = column.iter().map(|v| v * v).sum::<f64>() / 18.0;
        assert!(mean.abs() < 1e-12 && (square - 1.0).abs() < 1e-12);
        // y = 2 x, so standardised inputs and targets are the same; the constant column becomes 0.
        for i in 0..2 {
            assert!((fold.test[(i, 0)] - fold.truth[i]).abs() < 1e-12 && fold.test[(i, 1)] == 0.0);
        }
        assert_eq!(source.fold(1, Some(5), Streams::new(0)).unwrap().train.rows(), 5);
        let none = Source { folds: vec![0; 20], ..source };
        assert!(none.fold(0, None, Streams::new(0)).is_err() && none.fold(1, None, Streams::new(0)).is_err());
    }
}
