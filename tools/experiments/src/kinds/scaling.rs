//! How time and memory grow with the number of rows: made-up tables, a solver, the seconds until a fixed test error.

use crate::gaussian::{Covariance, MethodSettings};
use crate::kinds::prelude::*;
use posterior_gp::iterative::{KernelFeatures, Problem, Start, solve};
use posterior_kernels::features::FeatureSettings;
use posterior_kernels::matrix::KernelMatrix;
use posterior_linalg::operator::LinearOperator;
use posterior_linalg::solve::System;
use posterior_models::peak_memory_bytes;
use posterior_optim::Signal;
use rand::RngExt;
use rand_distr::{Distribution, StandardNormal};
use std::time::Instant;

/// Settings of the kind.
#[derive(Deserialize)]
pub(crate) struct Settings {
    /// Sizes of the tables, ascending.
    rows: Vec<usize>,
    /// Columns, uniform between 0 and 1.
    columns: usize,
    /// The covariance that the function is drawn from and that the model has, as text.
    kernel: String,
    /// Standard deviation of the noise.
    noise: f64,
    /// Random features of the function.
    truth_features: usize,
    /// Posterior samples that are solved for together with the mean.
    samples: usize,
    /// Random features of prior functions.
    features: usize,
    /// Test rows.
    test: usize,
    /// Root mean squared error of the mean against the function without noise at which the clock stops.
    target: f64,
    /// The error is looked at every so many steps, with the clock stopped.
    every: usize,
    method: MethodSettings,
}

impl Checked for Settings {
    fn check(&self) -> Result<()> {
        self.method.rows_solver(1, 0)?;
        if self.rows.len() < 2 || self.rows[0] < 2 || !self.rows.windows(2).all(|w| w[0] < w[1]) {
            return refused("`rows` must be at least two ascending sizes");
        }
        if self.rows.iter().any(|n| *n > 100_000_000) || !(1..=1000).contains(&self.columns) {
            return refused("`rows` go up to a hundred million and `columns` from 1 to 1000");
        }
        if !positive(self.noise) || !positive(self.target) {
            return refused("`noise` and `target` must be positive");
        }
        if [self.truth_features, self.features, self.test, self.every].contains(&0) {
            return refused("`truth_features`, `features`, `test` and `every` must be at least 1");
        }
        Ok(())
    }
}

/// What one size took.
struct Size {
    rows: usize,
    /// Seconds until the target, checks not counted.
    reached: Option<f64>,
    steps: usize,
    seconds_per_step: f64,
    error: f64,
    /// The process's high-water mark so far, in bytes.
    peak: Option<u64>,
    /// Bytes of points, diagonal, targets and the solver's three blocks.
    parts: usize,
    /// (seconds, error) along the way.
    trace: Vec<(f64, f64)>,
}

fn uniform(rows: usize, columns: usize, streams: Streams, name: &str) -> Mat<f32> {
    let mut rng = streams.stream(name);
    Mat::from_fn(rows, columns, |_, _| rng.random::<f32>())
}

fn one_size(
    settings: &Settings,
    covariance: &Covariance,
    n: usize,
    context: &mut Context<'_>,
) -> Result<Size> {
    let stage = format!("{n} rows");
    context.step(&stage, 0, settings.method.steps(n))?;
    let streams = Streams::new(context.seed);
    let truth = covariance.draw::<f32>(1, settings.truth_features, streams.child("experiment/truth", 0))?;
    let x = uniform(n, settings.columns, streams.child("experiment/size", n as u64), "experiment/inputs");
    let test = uniform(settings.test, settings.columns, streams, "experiment/test");
    let wanted = truth.values(test.as_ref());
    let noise = |columns: usize, name: &str| {
        let mut rng = streams.child("experiment/size", n as u64).stream(name);
        Mat::<f32>::from_fn(n, columns, |_, _| {
            let white: f32 = StandardNormal.sample(&mut rng);
            settings.noise as f32 * white
        })
    };
    // The data's noise is not known to the model; that of samples is.
    let mut observed = truth.values(x.as_ref());
    observed += noise(1, "experiment/noise");
    let (mut function, mut errors) =
        (Mat::zeros(n, 1 + settings.samples), Mat::zeros(n, 1 + settings.samples));
    function.col_mut(0).copy_from(observed.col(0));
    if settings.samples > 0 {
        let prior = covariance.draw::<f32>(
            settings.samples,
            settings.features,
            streams.child("experiment/prior", 0),
        )?;
        function.get_mut(.., 1..).copy_from(prior.values(x.as_ref()).as_ref());
        errors.get_mut(.., 1..).copy_from(noise(settings.samples, "experiment/sample-noise").as_ref());
    }
    drop(observed);
    let kernel = covariance.kernel::<f32>()?;
    let matrix = KernelMatrix::new(&*kernel, x.as_ref());
    let between = matrix.cross(test.as_ref());
    let parts = matrix.bytes() + 5 * n * (1 + settings.samples) * size_of::<f32>();
    let system = System::uniform(&matrix, (settings.noise * settings.noise) as f32)
        .map_err(posterior_gp::GpError::from)?;
    let features = KernelFeatures {
        kernel: &*kernel,
        points: x.as_ref(),
        settings: FeatureSettings { count: settings.features, ..FeatureSettings::default() },
    };
    let problem = Problem::new(&system, function.as_ref(), Some(errors.as_ref()))?.with_features(&features);
    let error_of = |weights: &Mat<f32>| {
        let mean = between.multiply(weights.get(.., ..1));
        let squares = (0..mean.nrows()).map(|i| f64::from(mean[(i, 0)] - wanted[(i, 0)]).powi(2));
        (squares.sum::<f64>() / mean.nrows() as f64).sqrt()
    };
    let (solver, budget) = settings.method.rows_solver(n, context.seed)?;
    let (started, mut checking) = (Instant::now(), 0.0);
    let (mut trace, mut reached) = (Vec::new(), None);
    let solution = solve(&solver, &problem, Start::Zero, &budget, &mut |progress, iterate| {
        let step = progress.step;
        if step.is_multiple_of(settings.every) {
            let clock = Instant::now();
            let spent = (clock - started).as_secs_f64() - checking;
            let error = error_of(&iterate.weights());
            trace.push((spent, error));
            checking += clock.elapsed().as_secs_f64();
            if error <= settings.target {
                reached = Some(spent);
                return Signal::Stop;
            }
        }
        context.tell(&stage, step, budget.steps)
    })?;
    let seconds = started.elapsed().as_secs_f64() - checking;
    if context.stopped() {
        return Err(ExperimentError::Interrupted);
    }
    let steps = solution.progress.step;
    let error = error_of(&solution.weights);
    Ok(Size {
        rows: n,
        reached,
        steps,
        seconds_per_step: seconds / steps.max(1) as f64,
        error,
        peak: peak_memory_bytes(),
        parts,
        trace,
    })
}

/// The largest growth from one size to the next over the growth of the rows.
fn growth(rows: &[usize], values: &[f64]) -> f64 {
    let pairs = rows.windows(2).zip(values.windows(2));
    pairs.map(|(n, v)| v[1] / v[0] / (n[1] as f64 / n[0] as f64)).fold(0.0, f64::max)
}

/// Solves at every size.
pub(crate) fn run(settings: &Settings, context: &mut Context<'_>) -> Result<Measured> {
    let covariance = Covariance::parse(&settings.kernel, settings.columns)?;
    let before = peak_memory_bytes();
    let mut sizes = Vec::new();
    for &n in &settings.rows {
        sizes.push(one_size(settings, &covariance, n, context)?);
    }
    let own = |peak: Option<u64>| Some(peak?.saturating_sub(before?) as f64);
    let key = |n: usize| format!("n {n}");
    let mut out = Measured::default();
    for size in &sizes {
        let megabytes = own(size.peak).map(|b| b / 1e6);
        out.numbers["sizes"][key(size.rows)] = json!({
            "seconds": size.reached,
            "steps": size.steps,
            "seconds_per_step": size.seconds_per_step,
            "error": size.error,
            "peak_megabytes": megabytes,
            "peak_bytes_per_row": own(size.peak).map(|b| b / size.rows as f64),
            "parts_megabytes": size.parts as f64 / 1e6,
        });
        out.series[key(size.rows)] = json!(size.trace);
    }
    let peaks: Option<Vec<f64>> = sizes.iter().map(|s| own(s.peak).filter(|b| *b > 0.0)).collect();
    let parts: Vec<f64> = sizes.iter().map(|s| s.parts as f64).collect();
    out.numbers["reached"] = json!(sizes.iter().filter(|s| s.reached.is_some()).count());
    out.numbers["memory_growth"] = json!(peaks.as_deref().map(|p| growth(&settings.rows, p)));
    out.numbers["parts_growth"] = json!(growth(&settings.rows, &parts));
    out.numbers["largest_error"] = json!(sizes.iter().map(|s| s.error).fold(0.0, f64::max));
    let x = |kept: &dyn Fn(&Size) -> bool| {
        sizes.iter().filter(|s| kept(s)).map(|s| s.rows as f64).collect::<Vec<f64>>()
    };
    let picture = |title: &str, y: &str, lines: Vec<Line>, caption: &str| {
        Curves::new(title, "rows", y, lines).logarithmic(true, true).captioned(caption).into()
    };
    let mut memory =
        vec![Line::new("points, targets and weights", x(&|_| true), parts.iter().map(|b| b / 1e6).collect())];
    if let Some(peaks) = &peaks {
        memory.insert(0, Line::new("process at most", x(&|_| true), peaks.iter().map(|b| b / 1e6).collect()));
    }
    out.figures = vec![
        picture(
            "Time to the same error",
            "seconds",
            vec![
                Line::new(
                    "until the error is reached",
                    x(&|s| s.reached.is_some()),
                    sizes.iter().filter_map(|s| s.reached).collect(),
                ),
                Line::new("one step", x(&|_| true), sizes.iter().map(|s| s.seconds_per_step).collect()),
            ],
            "Making up the table and looking at the error are not counted.",
        ),
        picture(
            "Memory",
            "megabytes",
            memory,
            "The process: its high-water mark so far, less what it was before the first size; it includes making up the table.",
        ),
        Curves::new(
            "Error against time",
            "seconds",
            "root mean squared error",
            sizes
                .iter()
                .map(|s| {
                    let (x, y) = s.trace.iter().copied().unzip();
                    Line::new(format!("{} rows", s.rows), x, y)
                })
                .collect(),
        )
        .logarithmic(true, true)
        .into(),
    ];
    if peaks.is_none() {
        out.notes.push(Note::warning(
            "This system does not tell the memory of a process, or other work in the process hides it.",
        ));
    }
    out.tables.push(NumberTable::by_name(
        "Sizes",
        "rows",
        "sizes",
        settings.rows.iter().map(|n| key(*n)),
        &[
            ("seconds", "seconds to the error"),
            ("steps", "steps"),
            ("seconds_per_step", "seconds a step"),
            ("error", "error at the end"),
            ("peak_megabytes", "MB of the process"),
            ("peak_bytes_per_row", "bytes a row"),
            ("parts_megabytes", "MB of the parts"),
        ],
        "No seconds: the error was not reached.",
    ));
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::growth;

    #[test]
    fn growth_is_that_of_the_worst_step() {
        assert!((growth(&[10, 100, 1000], &[1.0, 10.0, 100.0]) - 1.0).abs() < 1e-15);
        assert!((growth(&[10, 100, 1000], &[1.0, 5.0, 100.0]) - 2.0).abs() < 1e-15);
    }
}
