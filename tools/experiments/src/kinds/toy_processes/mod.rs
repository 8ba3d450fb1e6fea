//! Approximate posteriors of processes in one dimension beside the exact one: data that fill an interval ever more densely, data on a domain that
//! grows with them, and clusters of data from which random features starve.
//!
//! Serves figures 2.6, 3.3, 3.4, 4.1 and 4.7 of the thesis.

mod features;
mod problem;

use crate::gaussian::{Covariance, Job, MethodSettings, check_methods};
use crate::kinds::prelude::*;
use crate::toy::marginal_distances;
use features::FeaturePosterior;
use posterior_gp::Prediction;
use posterior_gp::iterative::Support;
use posterior_report::{PosteriorPanels, TitledPosterior};
use problem::{Problem, ProblemSettings};

/// Settings of the kind.
#[derive(Deserialize)]
pub(crate) struct Settings {
    /// The covariance function, as text.
    kernel: String,
    /// Standard deviation of the noise.
    noise: f64,
    #[serde(rename = "problem")]
    problems: Vec<ProblemSettings>,
    #[serde(rename = "method")]
    methods: Vec<MethodSettings>,
}

impl Checked for Settings {
    fn check(&self) -> Result<()> {
        check_methods(&self.methods)?;
        check_names("problem", self.problems.iter().map(|p| p.name.as_str()))?;
        self.problems.iter().try_for_each(|p| p.check(&self.methods))?;
        if !positive(self.noise) {
            return refused("`noise` must be positive");
        }
        Ok(())
    }
}

/// A posterior on the grid.
struct NamedPosterior {
    name: String,
    prediction: Prediction,
    numbers: Map<String, Value>,
}

/// What a posterior is off from the exact one, near the data and far from them.
fn compare(problem: &Problem, prediction: &Prediction) -> Map<String, Value> {
    let distance = marginal_distances(prediction, &problem.line.exact);
    let count = distance.len();
    let of_mean = |i: usize| (prediction.mean[(i, 0)] - problem.line.exact.mean[(i, 0)]).abs();
    let mut out = Map::new();
    for (name, near) in [("near", true), ("far", false)] {
        let here: Vec<usize> = (0..count).filter(|&i| problem.near[i] == near).collect();
        if here.is_empty() {
            continue;
        }
        let over = |value: &dyn Fn(usize) -> f64| mean(here.iter().map(|&i| value(i)));
        let variances = over(&|i| prediction.latent_variance[i].max(0.0))
            / over(&|i| problem.line.exact.latent_variance[i].max(0.0));
        out.insert(
            name.into(),
            json!({"w2": over(&|i| distance[i]), "mean_error": over(&of_mean), "deviation_ratio": variances.sqrt()}),
        );
    }
    out
}

/// The lowest ratio of a variance from `samples` to another near the data, as multiples of its standard error √(2/s) from 1; and the root of the
/// mean ratio.
fn against(problem: &Problem, prediction: &Prediction, other: &Prediction, samples: usize) -> Value {
    let ratios: Vec<f64> = (0..problem.near.len())
        .filter(|&i| problem.near[i])
        .map(|i| prediction.latent_variance[i] / other.latent_variance[i])
        .collect();
    let lowest = ratios.iter().copied().fold(f64::INFINITY, f64::min);
    let error = (2.0 / samples as f64).sqrt();
    json!({"lowest_in_standard_errors": (lowest - 1.0) / error, "deviation_ratio": mean(ratios).sqrt()})
}

fn fit(problem: &Problem, method: &MethodSettings, context: &mut Context<'_>) -> Result<NamedPosterior> {
    let job = Job {
        covariance: &problem.line.covariance,
        noise_variance: problem.line.noise_variance,
        data: &problem.line.data,
        time_budget: None,
        seed: context.seed,
    };
    let stage = format!("{}, {}", problem.name, method.name);
    let run = method.fit(&job, &stage, context)?;
    let prediction = run.predict(problem.line.points.as_ref())?;
    let mut numbers = compare(problem, &prediction);
    numbers.extend([
        ("seconds".to_string(), json!(run.seconds)),
        ("steps".to_string(), json!(run.steps)),
        ("points".to_string(), json!(run.points)),
    ]);
    if let (Some(Support::Inducing(z, _)), Some(asked)) = (run.support(), method.options.iterative()) {
        let samples = asked.sampling.samples;
        let collapsed = problem.collapsed(z.clone())?;
        numbers.insert("collapsed".into(), against(problem, &prediction, &collapsed, samples));
        numbers.insert("exact".into(), against(problem, &prediction, &problem.line.exact, samples));
    }
    Ok(NamedPosterior { name: method.name.clone(), prediction, numbers })
}

/// The posterior of a linear model in so many random features.
fn starve(problem: &Problem, count: usize, context: &mut Context<'_>) -> Result<NamedPosterior> {
    let name = format!("{count} random features");
    context.step(&format!("{}, {name}", problem.name), 0, 1)?;
    let FeaturePosterior { prediction, effective_dimension, seconds } =
        FeaturePosterior::new(&problem.line, count, context.seed)?;
    let mut numbers = compare(problem, &prediction);
    let left = (1.0 - effective_dimension / count as f64).max(0.0).sqrt();
    numbers.extend([
        ("seconds".to_string(), json!(seconds)),
        ("points".to_string(), json!(count)),
        ("effective_dimension".to_string(), json!(effective_dimension)),
        ("deviation_left".to_string(), json!(left)),
    ]);
    Ok(NamedPosterior { name, prediction, numbers })
}

fn figures(problem: &Problem, seen: &[NamedPosterior]) -> [Item; 2] {
    let panel = |title: &str, prediction: &Prediction| TitledPosterior::new(title, problem.panel(prediction));
    let panels = std::iter::once(panel("exact", &problem.line.exact))
        .chain(seen.iter().map(|s| panel(&s.name, &s.prediction)));
    let line = |s: &NamedPosterior| {
        Line::new(
            s.name.clone(),
            problem.line.grid.clone(),
            marginal_distances(&s.prediction, &problem.line.exact),
        )
    };
    [
        PosteriorPanels::new(
            format!("{}: posteriors", problem.name),
            "y",
            panels.collect(),
            "Two standard deviations; some of the rows.",
        )
        .into(),
        Curves::new(
            format!("{}: distance from the exact posterior", problem.name),
            "x",
            "2-Wasserstein distance of marginals",
            seen.iter().map(line).collect(),
        )
        .captioned("Variances from samples are off by Monte-Carlo error everywhere.")
        .into(),
    ]
}

/// Fits every method to every problem and compares with the exact posterior.
pub(crate) fn run(settings: &Settings, context: &mut Context<'_>) -> Result<Measured> {
    let covariance = Covariance::parse(&settings.kernel, 1)?;
    let mut out = Measured::default();
    for own in &settings.problems {
        let problem = Problem::new(own, &covariance, settings.noise, context)?;
        let mut seen = Vec::new();
        for method in settings.methods.iter().filter(|m| own.has(&m.name)) {
            seen.push(fit(&problem, method, context)?);
        }
        for &count in &own.random_features {
            seen.push(starve(&problem, count, context)?);
        }
        let close = problem.near.iter().filter(|n| **n).count();
        let what = format!("{} rows; {close} of {} grid points near them", own.rows, problem.near.len());
        out.facts.push(SummaryRow::new(own.name.clone(), what));
        out.figures.extend(figures(&problem, &seen));
        out.tables.push(NumberTable::by_name(
            &own.name,
            "posterior",
            &format!("problems.{}", own.name),
            seen.iter().map(|s| s.name.as_str()),
            &[
                ("near.w2", "distance near the data"),
                ("far.w2", "distance far from them"),
                ("near.deviation_ratio", "deviation over the exact one, near"),
                ("far.deviation_ratio", "the same, far"),
                ("points", "points or features"),
                ("seconds", "seconds"),
            ],
            "Mean 2-Wasserstein distance of marginals from those of the exact posterior over grid points with training inputs close by, and without; roots of ratios of mean variances.",
        ));
        let special = |key: &str| {
            seen.iter().filter(|s| s.numbers.contains_key(key)).map(|s| s.name.as_str()).collect::<Vec<_>>()
        };
        if !special("collapsed").is_empty() {
            out.tables.push(NumberTable::by_name(
                &format!("{}: inducing-point descent against the collapsed posterior", own.name),
                "posterior",
                &format!("problems.{}", own.name),
                special("collapsed"),
                &[
                    ("points", "points"),
                    ("collapsed.deviation_ratio", "deviation over the collapsed one"),
                    ("collapsed.lowest_in_standard_errors", "lowest variance against the collapsed one"),
                    ("exact.lowest_in_standard_errors", "against the exact one"),
                ],
                "Near the data. Lowest: the smallest ratio of variances less 1, in Monte-Carlo standard errors.",
            ));
        }
        if !special("deviation_left").is_empty() {
            out.tables.push(NumberTable::by_name(
                &format!("{}: variance starvation", own.name),
                "posterior",
                &format!("problems.{}", own.name),
                special("deviation_left"),
                &[
                    ("effective_dimension", "effective dimension"),
                    ("far.deviation_ratio", "deviation over the exact one, far"),
                    ("deviation_left", "√(1 - effective dimension / features)"),
                    ("far.mean_error", "error of the mean, far"),
                ],
                "What the data use up of the features is missing wherever the features reach: far away the variance is that share of the prior's smaller.",
            ));
        }
        for s in seen {
            let deviation: Vec<f64> =
                s.prediction.latent_variance.iter().map(|v| v.max(0.0).sqrt()).collect();
            let mean: Vec<f64> = s.prediction.mean.col(0).iter().copied().collect();
            out.series[&own.name][&s.name] = json!({"mean": mean, "deviation": deviation});
            out.numbers["problems"][&own.name][&s.name] = Value::Object(s.numbers);
        }
        out.series[&own.name]["grid"] = json!(problem.line.grid);
    }
    Ok(out)
}
