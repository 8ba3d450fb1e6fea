//! Steps of a process whose mean is given: 100 inducing points, batches of 100, 9 columns, squared exponential with a lengthscale for each, f64; one output and ten classes, few rows and many.

use criterion::{Criterion, criterion_group, criterion_main};
use faer::Mat;
use posterior_gp::inducing::fixed_mean::{
    FixedMeanData, FixedMeanFitOptions, FixedMeanModel, fit_fixed_mean,
};
use posterior_kernels::{KernelExpression, Separable};
use posterior_likelihoods::{Categorical, Gaussian, Likelihood};
use posterior_linalg::random::Streams;
use posterior_optim::Signal;
use rand_distr::{Distribution, StandardNormal};
use std::time::Instant;

const INDUCING: usize = 100;

fn steps(c: &mut Criterion) {
    let mut group = c.benchmark_group("fixed_mean_step_100_100");
    group.sample_size(10);
    let features: Vec<String> = (0..9).map(|i| format!("x{i}")).collect();
    let mut rng = Streams::new(0).stream("bench");
    for (name, rows, classes, companion) in [
        ("gaussian_1e3", 1_000, 1, true),
        ("gaussian_1e6", 1_000_000, 1, true),
        ("gaussian_alone", 1_000, 1, false),
        ("ten_classes", 10_000, 10, true),
    ] {
        let x = Mat::<f64>::from_fn(rows, 9, |_, _| StandardNormal.sample(&mut rng));
        let means = Mat::from_fn(rows, classes, |i, j| x[(i, j % 9)].sin());
        let targets =
            Mat::from_fn(rows, 1, |i, _| if classes > 1 { (i % classes) as f64 } else { x[(i, 0)] });
        let likelihood: Box<dyn Likelihood> = match classes {
            1 => Box::new(Gaussian::new(0.1, 0.0)),
            _ => Box::new(Categorical::new(classes).unwrap()),
        };
        let kernel = "rbf(ard)".parse::<KernelExpression>().unwrap().build(&features).unwrap();
        let kernel = match classes {
            1 => Separable::independent(kernel, 1),
            _ => Separable::correlated(kernel, classes),
        };
        let z = x.as_ref().subrows(0, INDUCING).to_owned();
        let labels = (0..INDUCING).map(|m| m % classes).collect();
        let model = FixedMeanModel::new(kernel, likelihood, z, labels, 1.0, companion).unwrap();
        let points = |rows: &[usize]| Mat::from_fn(rows.len(), 9, |i, j| x[(rows[i], j)]);
        let data = FixedMeanData { points: &points, means: means.as_ref(), targets: targets.as_ref() };
        group.bench_function(name, |b| {
            b.iter_custom(|steps| {
                let steps = steps as usize;
                let options = FixedMeanFitOptions { steps: steps + 1, ..FixedMeanFitOptions::default() };
                let mut started = Instant::now();
                // The first step pays for the check of all rows and for the order of the first pass.
                fit_fixed_mean(model.clone(), data, &options, None, None, &mut |progress, _| {
                    if progress.step == 1 {
                        started = Instant::now();
                    }
                    Signal::Continue
                })
                .unwrap();
                started.elapsed()
            });
        });
    }
    group.finish();
}

criterion_group!(benches, steps);
criterion_main!(benches);
