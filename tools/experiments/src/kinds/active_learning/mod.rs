//! Active learning: a pool whose labels are asked for where they tell most, against labels at random.
//!
//! Serves the experiments with active learning of Bui's *Likelihood approximations via Gaussian approximate inference* (figures 5 and 16 to 18): labels as Gaussian observations, one more at a time,
//! accuracy and log likelihood of other rows by the number of labels, and how many labels a level needs.

mod learning_curve;
mod problem;

use crate::kinds::prelude::*;
use learning_curve::{Asking, LearningCurve, Snapshot, follow};
use posterior_decisions::labelling::Criterion;
use posterior_kernels::KernelExpression;
use posterior_likelihoods::gaussianised::{Gaussianised, Matching};
use posterior_metrics::Average;
use posterior_report::{Plane, PlaneKind, PlanePanel};
use problem::{Problem, Source};

/// Settings of the kind.
#[derive(Deserialize)]
pub(crate) struct Settings {
    /// Pools, of each problem, over which curves are averaged.
    repetitions: u64,
    /// The pseudo-count of all matchings.
    pseudo_count: f64,
    /// The first is compared with the others.
    #[serde(rename = "method")]
    methods: Vec<MethodSettings>,
    #[serde(rename = "problem")]
    problems: Vec<ProblemSettings>,
}

/// One `[[method]]`.
#[derive(Clone, Debug, Deserialize)]
struct MethodSettings {
    name: String,
    criterion: Criterion,
    matching: Matching,
}

/// One `[[problem]]`.
#[derive(Clone, Debug, Deserialize)]
struct ProblemSettings {
    name: String,
    source: Source,
    /// Rows that may be labelled, and rows that predictions are scored on.
    pool: usize,
    test: usize,
    /// Labels at the start, drawn at random, the same for all methods; and at the end.
    initial: usize,
    labels: usize,
    /// Labels asked for at a time.
    #[serde(default = "crate::toy::one")]
    batch: usize,
    /// Labels between two scores.
    every: usize,
    /// The kernel on standardised columns.
    kernel: KernelExpression,
    /// Whether its hyperparameters are learned as labels come; else it is taken as it is, in units of the functions (nats of log-odds).
    #[serde(default)]
    learned: bool,
    /// Levels of accuracy, and of the mean log likelihood in nats, for which labels are counted.
    accuracies: Vec<f64>,
    log_likelihoods: Vec<f64>,
    /// Numbers of labels at which the plane is drawn, for problems of two columns.
    #[serde(default)]
    looks: Vec<usize>,
    /// Points of the drawn grid on a side.
    #[serde(default = "grid")]
    grid: usize,
}

fn grid() -> usize {
    40
}

impl ProblemSettings {
    fn check(&self) -> Result<()> {
        self.source.check((self.pool, self.test))?;
        let wrong = |problem: &str| refused(format!("[[problem]] `{}`: {problem}", self.name));
        if self.batch == 0 || self.every == 0 || self.initial < 2 || self.labels <= self.initial {
            return wrong(
                "`batch` and `every` are at least 1, `initial` at least 2, `labels` more than `initial`",
            );
        }
        if self.labels > self.pool {
            return wrong("`labels` are at most as many as the pool has rows");
        }
        let drawable = matches!(self.source, Source::Clusters(_)) && (2..=200).contains(&self.grid);
        if !drawable && !self.looks.is_empty() {
            return wrong("`looks` are for clusters, with a `grid` of 2 to 200");
        }
        if self.looks.windows(2).any(|w| w[0] >= w[1]) {
            return wrong("`looks` ascend");
        }
        Ok(())
    }
}

impl Checked for Settings {
    fn check(&self) -> Result<()> {
        if self.methods.len() < 2 || self.problems.is_empty() || self.repetitions == 0 {
            return refused("give two [[method]]s, one [[problem]] and one repetition at least");
        }
        let names = self.methods.iter().map(|m| &m.name).chain(self.problems.iter().map(|p| &p.name));
        let mut seen = std::collections::HashSet::new();
        if let Some(twice) = names.into_iter().find(|name| name.contains('.') || !seen.insert(name.as_str()))
        {
            return refused(format!("the name `{twice}` is given twice, or has a point in it"));
        }
        Gaussianised::new(Matching::Variational, self.pseudo_count)?;
        self.problems.iter().try_for_each(ProblemSettings::check)
    }
}

/// Mean and standard error of a curve at each score.
fn averaged(
    courses: &[LearningCurve],
    of: impl Fn(&LearningCurve) -> &[f64],
) -> Result<(Vec<f64>, Vec<f64>)> {
    let length = courses.iter().map(|c| of(c).len()).min().unwrap_or(0);
    let (mut means, mut errors) = (Vec::new(), Vec::new());
    for i in 0..length {
        let Average { mean, standard_error } =
            Average::of(&courses.iter().map(|c| of(c)[i]).collect::<Vec<f64>>())?;
        means.push(mean);
        errors.push(standard_error.unwrap_or(f64::NAN));
    }
    Ok((means, errors))
}

/// One of the curves of a course.
type Curve = fn(&LearningCurve) -> &[f64];

impl ProblemSettings {
    /// Its levels: their names in paths and in words, the curve that reaches them, and how high they are.
    fn levels(&self) -> impl Iterator<Item = (String, String, Curve, f64)> {
        let of = |what: &str, level: f64, curve: Curve| {
            let key = format!("{}_{}", what.replace(' ', "_"), level.abs().to_string().replace('.', "_"));
            (key, format!("{what} {level}"), curve, level)
        };
        let accuracies = self.accuracies.iter().map(move |v| of("accuracy", *v, |c| &c.accuracy));
        let densities = self.log_likelihoods.iter();
        accuracies.chain(densities.map(move |v| of("log likelihood", *v, |c| &c.log_likelihood)))
    }
}

fn numbers_of(problem: &ProblemSettings, courses: &[LearningCurve]) -> Result<Value> {
    let mut out = Map::new();
    let each = |value: &dyn Fn(&LearningCurve) -> f64| courses.iter().map(value).collect::<Vec<f64>>();
    let last = |values: &[f64]| values.last().copied().unwrap_or(f64::NAN);
    put(&mut out, "accuracy", &each(&|c| last(&c.accuracy)))?;
    put(&mut out, "log_likelihood", &each(&|c| last(&c.log_likelihood)))?;
    put(&mut out, "mean_accuracy", &each(&|c| mean(c.accuracy.iter().copied())))?;
    put(&mut out, "mean_log_likelihood", &each(&|c| mean(c.log_likelihood.iter().copied())))?;
    for (key, _, of, level) in problem.levels() {
        // Those that were given where a level was never reached.
        put(&mut out, &key, &each(&|c| c.reached(of(c), level).unwrap_or(problem.labels) as f64))?;
        let missed = courses.iter().filter(|c| c.reached(of(c), level).is_none()).count();
        if let (true, Some(Value::String(text))) = (missed > 0, out.get_mut(&format!("{key}_shown"))) {
            *text = format!("at least {text} ({missed} of {} never)", courses.len());
        }
    }
    Ok(Value::Object(out))
}

/// Which methods a picture shows.
type Wanted<'a> = &'a dyn Fn(&MethodSettings) -> bool;

/// Curves of methods that differ in their criterion, or in their matching, beside random choice.
fn figures(settings: &Settings, problem: &ProblemSettings, all: &[Vec<LearningCurve>]) -> Result<Vec<Item>> {
    let first = &settings.methods[0];
    let same_matching = |m: &MethodSettings| m.matching == first.matching;
    let same_criterion =
        |m: &MethodSettings| m.criterion == first.criterion || m.criterion == Criterion::Random;
    let groups: [(&str, Wanted<'_>); 2] =
        [("by criterion", &same_matching), ("by matching", &same_criterion)];
    let curves: [(&str, Curve); 2] =
        [("accuracy", |c| &c.accuracy), ("mean log likelihood, nats", |c| &c.log_likelihood)];
    let mut out = Vec::new();
    for (group, wanted) in groups {
        for (what, of) in curves {
            let mut lines = Vec::new();
            for (method, courses) in settings.methods.iter().zip(all).filter(|(m, _)| wanted(m)) {
                let (y, error) = averaged(courses, of)?;
                let x = courses.first().map_or(Vec::new(), |c| c.labels.iter().map(|n| *n as f64).collect());
                lines.push(Line { name: method.name.clone(), x, y, error, ..Line::default() });
            }
            let caption = format!(
                "Means over {} pools with their test rows; bands are standard errors.",
                settings.repetitions
            );
            let title = format!("{}: {what}, {group}", problem.name);
            out.push(Curves::new(title, "labels", what, lines).captioned(caption).into());
        }
    }
    Ok(out)
}

/// The rows of the problem with a grid of the plane behind them, in standard units.
fn with_grid(problem: &mut Problem, side: usize) -> (Vec<f64>, Vec<f64>) {
    let n = problem.inputs.nrows();
    let ends = |j: usize| {
        let values = problem.inputs.col_as_slice(j);
        values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), v| (a.min(*v), b.max(*v)))
    };
    let axis = |j: usize| -> Vec<f64> {
        let (low, high) = ends(j);
        (0..side).map(|k| low + (high - low) * k as f64 / (side - 1) as f64).collect()
    };
    let (x, y) = (axis(0), axis(1));
    let old = std::mem::replace(&mut problem.inputs, Mat::zeros(0, 0));
    problem.inputs = Mat::from_fn(n + side * side, 2, |i, j| match i.checked_sub(n) {
        None => old[(i, j)],
        Some(k) => [x[k % side], y[k / side]][j],
    });
    let back = |values: Vec<f64>, j: usize| -> Vec<f64> {
        values.into_iter().map(|v| problem.units.feature_back(j, v)).collect()
    };
    (back(x, 0), back(y, 1))
}

fn pictures(
    name: &str,
    problem: &Problem,
    course: &LearningCurve,
    snapshots: Vec<Snapshot>,
    (grid_x, grid_y): (&[f64], &[f64]),
) -> Vec<Item> {
    let own = |row: usize, j: usize| problem.units.feature_back(j, problem.inputs[(row, j)]);
    let picture = |snapshot: Snapshot| {
        let rows = &course.rows[..snapshot.labels];
        let values = snapshot.probabilities;
        Item::Plane(Plane {
            title: format!("{name}: {} labels", snapshot.labels),
            x: "x1".into(),
            y: "x2".into(),
            grid_x: grid_x.to_vec(),
            grid_y: grid_y.to_vec(),
            panels: vec![PlanePanel::new("probability of the second class", PlaneKind::Probability, values)],
            points_x: rows.iter().map(|&row| own(row, 0)).collect(),
            points_y: rows.iter().map(|&row| own(row, 1)).collect(),
            points_class: rows.iter().map(|&row| problem.labels[row]).collect(),
            caption: "Points are the rows that were labelled so far.".into(),
        })
    };
    snapshots.into_iter().map(picture).collect()
}

/// Every method on every pool of every problem.
pub(crate) fn run(settings: &Settings, context: &mut Context<'_>) -> Result<Measured> {
    let mut measured = Measured::default();
    for (index, problem) in settings.problems.iter().enumerate() {
        let mut all: Vec<Vec<LearningCurve>> = vec![Vec::new(); settings.methods.len()];
        for repetition in 0..settings.repetitions {
            let streams = Streams::new(context.seed)
                .child("experiment/problem", index as u64)
                .child("experiment/repetition", repetition);
            let mut rows = problem.source.open((problem.pool, problem.test), context.folder, streams)?;
            let drawn = repetition == 0 && !problem.looks.is_empty();
            let axes = if drawn { with_grid(&mut rows, problem.grid) } else { Default::default() };
            for (m, method) in settings.methods.iter().enumerate() {
                let stage = format!("{}, pool {repetition}, {}", problem.name, method.name);
                let looks = if drawn { &problem.looks[..] } else { &[] };
                let gaussianised = Gaussianised::new(method.matching, settings.pseudo_count)?;
                let asking = Asking { settings: problem, criterion: method.criterion, gaussianised };
                let mut snapshots = Vec::new();
                let mut work = |context: &mut Context<'_>| -> Result<LearningCurve> {
                    let (course, found) = follow(&rows, &asking, (looks, streams), &stage, context)?;
                    snapshots = found;
                    Ok(course)
                };
                // Pictures are not kept: a course that is drawn is followed again.
                let course = match drawn {
                    true => work(context)?,
                    false => context.once(&stage, &asking, work)?,
                };
                if drawn && (m == 0 || method.criterion == Criterion::Random) {
                    let name = format!("{}, {}", problem.name, method.name);
                    measured.figures.extend(pictures(&name, &rows, &course, snapshots, (&axes.0, &axes.1)));
                }
                all[m].push(course);
            }
        }
        for (method, courses) in settings.methods.iter().zip(&all) {
            let curves = |c: &LearningCurve| json!({"labels": c.labels, "accuracy": c.accuracy, "log_likelihood": c.log_likelihood});
            let lists: Vec<Value> = courses.iter().map(curves).collect();
            measured.series[format!("{} {}", problem.name, method.name)] = json!(lists);
            measured.numbers["problems"][&problem.name][&method.name] = numbers_of(problem, courses)?;
        }
        let names = || settings.methods.iter().map(|m| m.name.as_str());
        let prefix = format!("problems.{}", problem.name);
        let columns: Vec<(String, String)> =
            problem.levels().map(|(key, words, ..)| (format!("{key}_shown"), words)).collect();
        measured.tables.push(NumberTable::by_name(
            &format!("{}: labels until", problem.name),
            "method",
            &prefix,
            names(),
            &columns,
            &format!("Means over {} pools, with standard errors. Where a level was never reached, all {} labels were counted.", settings.repetitions, problem.labels),
        ));
        measured.tables.push(NumberTable::by_name(
            &format!("{}: after {} labels, and on average over all scores", problem.name, problem.labels),
            "method",
            &prefix,
            names(),
            &[
                ("accuracy_shown", "accuracy"),
                ("log_likelihood_shown", "log likelihood"),
                ("mean_accuracy_shown", "mean accuracy"),
                ("mean_log_likelihood_shown", "mean log likelihood"),
            ],
            "",
        ));
        measured.figures.extend(figures(settings, problem, &all)?);
    }
    Ok(measured)
}
