//! Regression benchmarks: tables in ten standard folds, Gaussian processes with given hyperparameters, several methods.
//!
//! Serves tables 4.1, 4.2 and 4.3 and figure 4.8 of the thesis.

use crate::gaussian::{Job, MethodSettings, Run, check_methods};
use crate::kinds::prelude::*;
use crate::tables::{Fold, SetSettings, Source, check_tables};
use posterior_metrics::{Gaussians, StandardisedScores};
use std::collections::BTreeMap;
use std::path::PathBuf;
use toml::Table;

/// Settings of the kind.
#[derive(Deserialize)]
pub(crate) struct Settings {
    /// Folder with `TABLE.csv.gz` (the last column is the target) and `TABLE.fold.csv.gz`, counted from the experiment's file; empty: data are
    /// drawn from the prior of the first set of each table.
    folder: PathBuf,
    /// Which folds are test sets in turn.
    folds: Vec<usize>,
    /// Most training rows, chosen by chance; all if absent. As many are made up without a folder.
    rows: Option<usize>,
    /// Random features of the function that made-up targets come from.
    truth_features: usize,
    #[serde(rename = "set")]
    sets: Vec<SetSettings>,
    #[serde(rename = "method")]
    methods: Vec<MethodSettings>,
    /// Folds by method, where they are not all: for methods that take long.
    #[serde(default)]
    folds_of: BTreeMap<String, Vec<usize>>,
    /// Shares of its steps after which each method is scored as well: fits of their own, since averages depend on how many steps are planned.
    #[serde(default)]
    shares: Vec<f64>,
    /// Options by set and method, where they are not the method's own.
    #[serde(default)]
    options: BTreeMap<String, BTreeMap<String, Table>>,
}

impl Settings {
    /// The folds of a method, in the order of the others.
    fn folds_of(&self, method: &str) -> Vec<usize> {
        let own = self.folds_of.get(method);
        self.folds.iter().copied().filter(|fold| own.is_none_or(|own| own.contains(fold))).collect()
    }

    fn method(&self, set: &str, method: &MethodSettings) -> Result<MethodSettings> {
        let own = self.options.get(set).and_then(|own| own.get(&method.name));
        own.map_or_else(|| Ok(method.clone()), |own| method.with(own))
    }
}

impl Checked for Settings {
    fn check(&self) -> Result<()> {
        check_methods(&self.methods)?;
        check_tables(&self.sets, &self.folds, &self.folder, self.rows)?;
        if self.truth_features == 0 {
            return refused("`truth_features` must be at least 1");
        }
        if self.shares.iter().any(|s| !(*s > 0.0 && *s < 1.0)) || !self.shares.is_sorted() {
            return refused("`shares` are between 0 and 1, ascending");
        }
        for method in self.folds_of.keys() {
            if !self.methods.iter().any(|m| m.name == *method) || self.folds_of(method).is_empty() {
                return refused("[folds_of] names methods and some of `folds`, at least one");
            }
        }
        for (name, own) in &self.options {
            if !self.sets.iter().any(|s| s.name == *name) {
                return refused("[options] names sets and their methods");
            }
            for (method, over) in own {
                match self.methods.iter().find(|m| m.name == *method) {
                    Some(method) => method.with(over)?,
                    None => return refused("[options] names sets and their methods"),
                };
            }
        }
        Ok(())
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
    ) -> Result<Self> {
        let run = method.fit(job, stage, context)?;
        let prediction = run.predict(fold.test.as_ref())?;
        let Run { seconds, steps, points, step_size, trace, .. } = run;
        let means: Vec<f64> = prediction.mean.col(0).iter().copied().collect();
        let variances = prediction.observed_variance();
        let scores = Gaussians::new(&means, &variances, &fold.truth)?.scores(1.0)?.standardised;
        Ok(Self { scores, seconds, steps, points, step_size, trace })
    }
}

/// What is reported of a method on average over folds.
const QUANTITIES: [Quantity<Found>; 5] = [
    ("rmse", "RMSE", |f| Some(f.scores.rmse)),
    ("nll", "NLL", |f| Some(f.scores.nll)),
    ("seconds", "seconds", |f| Some(f.seconds)),
    ("steps", "steps", |f| Some(f.steps as f64)),
    ("points", "points", |f| Some(f.points as f64)),
];

fn summary(folds: &[usize], found: &[Found]) -> Result<Value> {
    let mut out = Map::new();
    put_all(&mut out, "", found, &QUANTITIES)?;
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
    let line = |(name, trace): &(String, Vec<(f64, f64)>)| through(name, trace.iter().copied());
    Curves::new(format!("{set}: residuals"), "seconds", "largest relative residual", lines.iter().filter(|l| !l.1.is_empty()).map(line).collect()).logarithmic(true, true).captioned("Over the mean and all samples, on the first fold. Stochastic methods estimate it from batches; variational inference has none.").into()
}

/// What one method found on the first fold after shares of its steps and after all of them.
type MethodCurve<'a> = (String, Vec<&'a Found>);

/// A score against time on the first fold.
fn scores(set: &str, y: &str, courses: &[MethodCurve<'_>], score: impl Fn(&Found) -> f64) -> Item {
    let line = |(name, found): &MethodCurve<'_>| through(name, found.iter().map(|f| (f.seconds, score(f))));
    Curves::new(format!("{set}: {y}"), "seconds", y, courses.iter().map(line).collect()).logarithmic(true, false).captioned("On the first fold; each point is a fit of its own with a share of the steps, the last with all of them.").into()
}

/// Fits every method to every fold of every set.
pub(crate) fn run(settings: &Settings, context: &mut Context<'_>) -> Result<Measured> {
    let (mut numbers, mut series) = (Map::new(), Map::new());
    let (mut tables, mut figures, mut facts) = (Vec::new(), Vec::new(), Vec::new());
    for set in &settings.sets {
        let covariance = set.covariance()?;
        // Sets of one table see the same rows, so that only their hyperparameters differ.
        let (index, first) = set.first_of_table(&settings.sets);
        let streams = Streams::new(context.seed).child("experiment/set", index as u64);
        let folder = (!settings.folder.as_os_str().is_empty()).then(|| context.folder.join(&settings.folder));
        let source = Source::open(first, folder.as_deref(), settings.rows, settings.truth_features, streams)?;
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
                let method = settings.method(&set.name, named)?;
                let stage = format!("{}, fold {fold}, {}", set.name, method.name);
                let job = Job {
                    covariance: &covariance,
                    noise_variance: set.noise * set.noise,
                    data: &rows.train,
                    time_budget: None,
                    seed: context.seed.wrapping_add(fold as u64),
                };
                // Where data are made up, they depend on the first set of the table.
                let depends = ((set, first), (&settings.folder, settings.rows, settings.truth_features));
                let mut fit = |method: &MethodSettings| {
                    context.once(&stage, &(&depends, method), |context| {
                        Found::score(method, &job, &rows, &stage, context)
                    })
                };
                if done == 0 {
                    for share in &settings.shares {
                        let steps = (share * method.steps(rows.train.rows()) as f64).ceil() as i64;
                        let early =
                            fit(&method.with(&Table::from_iter([("iterations".into(), steps.into())]))?)?;
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
        let course = |method: &MethodSettings| -> Option<MethodCurve<'_>> {
            let name = method.name.as_str();
            Some((name.into(), courses.get(name)?.iter().chain(found.get(name)?.first()).collect()))
        };
        let courses: Vec<MethodCurve<'_>> = settings.methods.iter().filter_map(course).collect();
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
            &[shown_columns("", &QUANTITIES), vec![("folds_counted".into(), "folds")]].concat(),
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
