//! Parallel Thompson sampling: every step draws as many functions from the posterior as there are experiments to make, and tries where they are largest.
//!
//! Serves figure 4.11 of the thesis.

use crate::gaussian::{Covariance, Job, MethodSettings, check_methods};
use crate::kinds::prelude::*;
use crate::numbers::averages;
use posterior_decisions::{DecisionError, Functions, Known, MultistartOptions, maximise};
use posterior_gp::Observations;
use posterior_gp::inducing::PathwiseSamples;
use posterior_gp::iterative::PathwisePosterior;
use posterior_kernels::features::PriorDraws;
use posterior_metrics::Average;
use rand::RngExt;
use rand_distr::{Distribution, StandardNormal};
use std::fmt::Debug;
use std::time::Instant;

/// Settings of the kind.
#[derive(Deserialize)]
pub(crate) struct Settings {
    /// Columns of the unit cube.
    dimension: usize,
    /// Lengthscales of the Matérn-3/2 processes that the unknown functions are drawn from.
    lengthscales: Vec<f64>,
    /// Unknown functions for each lengthscale, over which curves are averaged.
    repetitions: u64,
    /// Uniform points that are known at the start.
    initial: usize,
    /// Points that are tried in a step.
    batch: usize,
    /// Steps.
    steps: usize,
    /// Standard deviation of the noise of what is observed.
    noise: f64,
    /// Random features of the unknown functions.
    truth_features: usize,
    /// Random features of functions that are drawn from variational posteriors.
    features: usize,
    /// Seconds that a method's fit may take in a step; the same for all.
    seconds: f64,
    /// How the maxima of samples are looked for.
    maxima: MultistartOptions,
    /// The first is compared with the others.
    #[serde(rename = "method")]
    methods: Vec<MethodSettings>,
}

/// The baseline that is always there: uniform points.
const RANDOM: &str = "random search";

impl Settings {
    /// What every search depends on.
    fn shared(&self) -> impl Debug + use<> {
        let counts =
            [self.dimension, self.initial, self.batch, self.steps, self.truth_features, self.features];
        (counts, self.noise, self.seconds, self.maxima.clone())
    }
}

impl Checked for Settings {
    fn check(&self) -> Result<()> {
        check_methods(&self.methods)?;
        if self.methods.iter().any(|m| m.name == RANDOM) {
            return refused("[[method]]: `random search` is always there; give it no entry");
        }
        let counts =
            [self.dimension, self.initial, self.batch, self.steps, self.truth_features, self.features];
        if counts.contains(&0) || self.repetitions == 0 || self.dimension > 1000 {
            return refused(
                "`dimension` (at most 1000), `initial`, `batch`, `steps`, `repetitions` and both counts of features must be at least 1",
            );
        }
        if !positive(self.noise) || !positive(self.seconds) || self.seconds > 1e6 {
            return refused("`noise` and `seconds` (at most a million) must be positive");
        }
        let m = &self.maxima;
        if m.rounds == 0 || m.candidates == 0 || !positive(m.learning_rate) || !positive(m.radius) {
            return refused("[maxima]: rounds, candidates, radius and learning_rate must be positive");
        }
        let samples =
            |m: &MethodSettings| m.options.iterative().is_none_or(|i| i.sampling.samples == self.batch);
        if !self.methods.iter().all(samples) {
            return refused("[[method]]: `samples` are `batch` functions, one for each point that is tried");
        }
        if self.lengthscales.is_empty() {
            return refused("`lengthscales`: give at least one");
        }
        Ok(())
    }
}

/// Draws from a variational posterior.
struct InducingDraws {
    samples: PathwiseSamples,
    dimension: usize,
}

impl Functions for InducingDraws {
    fn count(&self) -> usize {
        self.samples.count()
    }

    fn dimension(&self) -> usize {
        self.dimension
    }

    fn values(&self, x: MatRef<'_, f64>) -> Result<Mat<f64>, DecisionError> {
        Ok(self.samples.values(x)?)
    }

    fn values_and_gradients_of(
        &self,
        x: MatRef<'_, f64>,
        which: &[usize],
    ) -> Result<(Vec<f64>, Mat<f64>), DecisionError> {
        Ok((self.samples.values_of(x, which)?, self.samples.gradients_of(x, which)?))
    }
}

/// The unknown function with its noise, and what has been seen of it.
struct Unknown<'a> {
    truth: &'a PriorDraws<f64>,
    noise: f64,
    streams: Streams,
    x: Mat<f64>,
    y: Vec<f64>,
}

impl Unknown<'_> {
    /// Observes the function at new points. Noise depends on how many were seen before, not on the method.
    fn observe(&mut self, points: MatRef<'_, f64>) {
        let (n, k) = (self.x.nrows(), points.nrows());
        let values = self.truth.values(points);
        let mut rng = self.streams.child("experiment/observed", n as u64).stream("experiment/noise");
        self.y.extend((0..k).map(|i| {
            let white: f64 = StandardNormal.sample(&mut rng);
            values[(i, 0)] + self.noise * white
        }));
        let old = std::mem::replace(&mut self.x, Mat::zeros(0, 0));
        self.x =
            Mat::from_fn(n + k, points.ncols(), |i, j| if i < n { old[(i, j)] } else { points[(i - n, j)] });
    }

    fn best(&self) -> f64 {
        self.y.iter().copied().fold(f64::NEG_INFINITY, f64::max)
    }
}

fn uniform(rows: usize, columns: usize, streams: Streams, name: &str) -> Mat<f64> {
    let mut rng = streams.stream(name);
    Mat::from_fn(rows, columns, |_, _| rng.random::<f64>())
}

/// Best value and seconds spent after each step, the start being the first entry.
#[derive(Clone, Default, Serialize, Deserialize)]
struct Path {
    best: Vec<f64>,
    seconds: Vec<f64>,
    solver_seconds: f64,
    solver_steps: usize,
}

/// One method on one function; `None` is random search.
fn search(
    settings: &Settings,
    covariance: &Covariance,
    lengthscale: f64,
    method: Option<&MethodSettings>,
    mut unknown: Unknown<'_>,
    stage: &str,
    context: &mut Context<'_>,
) -> Result<Path> {
    let d = settings.dimension;
    let mut path = Path { best: vec![unknown.best()], seconds: vec![0.0], ..Path::default() };
    let mut spent = 0.0;
    for step in 0..settings.steps {
        context.step(stage, step, settings.steps)?;
        let streams = unknown.streams.child("experiment/step", step as u64);
        let points = match method {
            None => uniform(settings.batch, d, streams, "experiment/random-search"),
            Some(method) => {
                let clock = Instant::now();
                let targets = Mat::from_fn(unknown.y.len(), 1, |i, _| unknown.y[i]);
                let data = Observations::new(unknown.x.clone(), targets, None)?;
                let seed = streams.seed();
                let job = Job {
                    covariance,
                    noise_variance: settings.noise * settings.noise,
                    data: &data,
                    time_budget: Some(settings.seconds),
                    seed,
                };
                let run = method.fit(&job, stage, context)?;
                path.solver_seconds += run.seconds;
                path.solver_steps += run.steps;
                let draws;
                let single = run.predictor.posterior::<PathwisePosterior<f32>>();
                let double = run.predictor.posterior::<PathwisePosterior<f64>>();
                let functions: &dyn Functions = match (single, double, &run.predictor.inducing()[..]) {
                    (Some(posterior), ..) => posterior,
                    (_, Some(posterior), _) => posterior,
                    (.., [posterior]) => {
                        let prior = covariance.draw(settings.batch, settings.features, streams)?;
                        draws =
                            InducingDraws { samples: posterior.pathwise(0, prior, streams)?, dimension: d };
                        &draws
                    }
                    _ => {
                        let problem = "draws are functions with gradients here, which exact posteriors and learned features do not keep";
                        return refused(problem);
                    }
                };
                let lengthscales = vec![lengthscale; d];
                let known =
                    Known { points: unknown.x.as_ref(), values: &unknown.y, lengthscales: &lengthscales };
                let stage = format!("{stage}, maxima");
                let mut watch = |done, total| context.tell(&stage, done, total);
                let maxima = maximise(functions, known, &settings.maxima, streams, &mut watch)?;
                spent += clock.elapsed().as_secs_f64();
                if maxima.interrupted {
                    return Err(ExperimentError::Interrupted);
                }
                maxima.points
            }
        };
        unknown.observe(points.as_ref());
        path.best.push(unknown.best());
        path.seconds.push(spent);
    }
    Ok(path)
}

/// Mean and standard error at each place of equally long lists.
fn averaged(lists: &[&[f64]]) -> Result<(Vec<f64>, Vec<f64>)> {
    let length = lists.iter().map(|l| l.len()).min().unwrap_or(0);
    let at = |i: usize| -> Result<(f64, f64)> {
        let found = Average::of(&lists.iter().map(|l| l[i]).collect::<Vec<f64>>())?;
        Ok((found.mean, found.standard_error.unwrap_or(f64::NAN)))
    };
    (0..length).map(at).collect()
}

fn key(lengthscale: f64) -> String {
    format!("length {}", lengthscale.to_string().replace('.', "_"))
}

fn figures(lengthscale: f64, names: &[&str], paths: &[Vec<Path>]) -> Result<Vec<Item>> {
    let (mut steps, mut by_second) = (Vec::new(), Vec::new());
    for (name, own) in names.iter().zip(paths) {
        let (y, error) = averaged(&own.iter().map(|p| &p.best[..]).collect::<Vec<_>>())?;
        let (seconds, _) = averaged(&own.iter().map(|p| &p.seconds[..]).collect::<Vec<_>>())?;
        let line = Line { name: (*name).into(), y, error, ..Line::default() };
        if *name != RANDOM {
            by_second.push(Line { x: seconds, ..line.clone() });
        }
        steps.push(Line { error: line.error, ..by_step(line.name, line.y) });
    }
    let curves = |x: &str, lines| {
        Curves::new(format!("Best value found, lengthscale {lengthscale}, by {x}"), x, "best value", lines)
            .captioned("Means over unknown functions; bands are standard errors.")
            .into()
    };
    Ok(vec![curves("step", steps), curves("seconds", by_second)])
}

/// Runs every method on every unknown function.
pub(crate) fn run(settings: &Settings, context: &mut Context<'_>) -> Result<Measured> {
    let names: Vec<&str> = settings.methods.iter().map(|m| m.name.as_str()).chain([RANDOM]).collect();
    let (mut by_length, mut series, mut pictures, mut tables) =
        (Map::new(), Map::new(), Vec::new(), Vec::new());
    // For each method the last best values, one for each lengthscale and repetition.
    let mut finals = vec![Vec::new(); names.len()];
    let mut gains = vec![Vec::new(); names.len()];
    for (index, &lengthscale) in settings.lengthscales.iter().enumerate() {
        let covariance = Covariance::matern32(1.0, &vec![lengthscale; settings.dimension])?;
        let mut paths = vec![Vec::new(); names.len()];
        for repetition in 0..settings.repetitions {
            let streams = Streams::new(context.seed)
                .child("experiment/lengthscale", index as u64)
                .child("experiment/repetition", repetition);
            let truth =
                covariance.draw::<f64>(1, settings.truth_features, streams.child("experiment/truth", 0))?;
            let x = uniform(settings.initial, settings.dimension, streams, "experiment/initial");
            for (m, name) in names.iter().enumerate() {
                let mut unknown = Unknown {
                    truth: &truth,
                    noise: settings.noise,
                    streams,
                    x: Mat::zeros(0, settings.dimension),
                    y: Vec::new(),
                };
                unknown.observe(x.as_ref());
                let stage = format!("{}, function {repetition}, {name}", key(lengthscale));
                let method = settings.methods.get(m);
                let path = context.once(&stage, &(settings.shared(), method), |context| {
                    search(settings, &covariance, lengthscale, method, unknown, &stage, context)
                })?;
                let last = path.best[path.best.len() - 1];
                finals[m].push(last);
                gains[m].push(last - path.best[0]);
                paths[m].push(path);
            }
        }
        let mut own = Map::new();
        for (name, paths) in names.iter().zip(&paths) {
            let steps = settings.steps as f64;
            let of = |p: &Path| {
                json!({
                    "initial": p.best[0],
                    "best": p.best[p.best.len() - 1],
                    "seconds": p.seconds[p.seconds.len() - 1],
                    "solver_seconds_per_step": p.solver_seconds / steps,
                    "solver_steps_per_step": p.solver_steps as f64 / steps,
                })
            };
            let each: Vec<Value> = paths.iter().map(of).collect();
            let (mut numbers, _) = averages(&each);
            let last: Vec<f64> = paths.iter().map(|p| p.best[p.best.len() - 1]).collect();
            numbers.as_object_mut().map_or(Ok(()), |numbers| put(numbers, "best", &last))?;
            own.insert((*name).into(), numbers);
            let lists: Vec<Value> =
                paths.iter().map(|p| json!({"best": p.best, "seconds": p.seconds})).collect();
            series.insert(format!("{} {name}", key(lengthscale)), json!(lists));
        }
        by_length.insert(key(lengthscale), Value::Object(own));
        tables.push(NumberTable::by_name(
            &format!("Lengthscale {lengthscale}"),
            "method",
            &format!("lengths.{}", key(lengthscale)),
            names.iter().copied(),
            &[
                ("initial", "best at the start"),
                ("best_shown", "best at the end"),
                ("seconds", "seconds"),
                ("solver_seconds_per_step", "seconds of the solver in a step"),
                ("solver_steps_per_step", "its steps"),
            ],
            "",
        ));
        pictures.extend(figures(lengthscale, &names, &paths)?);
    }
    let (mut overall, mut lead) = (Map::new(), Map::new());
    for (m, name) in names.iter().enumerate() {
        overall.insert(
            (*name).into(),
            json!({"best": Average::of(&finals[m])?.mean, "gain": Average::of(&gains[m])?.mean}),
        );
        if m > 0 {
            // The same functions and starting points: differences, pair by pair.
            let Average { mean, standard_error } = Average::of_differences(&finals[0], &finals[m])?;
            let upper = mean + 2.0 * standard_error.unwrap_or(0.0);
            lead.insert(
                (*name).into(),
                json!({"difference": mean, "standard_error": standard_error, "upper": upper}),
            );
        }
    }
    let reference = names[0];
    tables.push(NumberTable::by_name(
        &format!("Lead of {reference} over all lengthscales"),
        "over",
        "lead",
        names[1..].iter().copied(),
        &[
            ("difference", "difference of best values"),
            ("standard_error", "standard error"),
            ("upper", "plus two standard errors"),
        ],
        "Differences on the same unknown functions with the same starting points. Not behind within error bars: the last column is not negative.",
    ));
    Ok(Measured {
        numbers: json!({"lengths": by_length, "overall": overall, "lead": lead}),
        series: Value::Object(series),
        tables,
        figures: pictures,
        ..Measured::default()
    })
}
