//! Steps of inducing-point methods: 512 inducing points, 9 columns, Matérn-3/2 with a lengthscale for each, f64.

use criterion::{Criterion, criterion_group, criterion_main};
use faer::Mat;
use posterior_gp::inducing::collapsed::{CollapsedGp, collapsed_bound_and_gradient};
use posterior_gp::inducing::stochastic::{
    StochasticGp, StochasticOptions, VariationalOptimizer, Wanted, fit_stochastic,
};
use posterior_gp::{MeanForm, Observations};
use posterior_kernels::{Kernel, KernelExpression};
use posterior_likelihoods::{Categorical, Gaussian, Likelihood};
use posterior_linalg::random::Streams;
use posterior_optim::Signal;
use rand_distr::{Distribution, StandardNormal};
use std::time::Instant;

const INDUCING: usize = 512;

fn kernel() -> Box<dyn Kernel<f64>> {
    let features: Vec<String> = (0..9).map(|i| format!("x{i}")).collect();
    "matern32(ard)".parse::<KernelExpression>().unwrap().build(&features).unwrap()
}

fn data(n: usize, classes: bool) -> Observations {
    let mut rng = Streams::new(0).stream("bench");
    let x = Mat::<f64>::from_fn(n, 9, |_, _| StandardNormal.sample(&mut rng));
    let y = Mat::from_fn(n, 1, |i, _| {
        let value = x[(i, 0)].sin() + x[(i, 1)];
        if classes { (value.abs() * 4.0).floor().min(9.0) } else { value }
    });
    Observations::new(x, y, None).unwrap()
}

fn stochastic(c: &mut Criterion) {
    let mut group = c.benchmark_group("stochastic_step_512_1024");
    group.sample_size(10);
    let natural = VariationalOptimizer::NaturalGradient { length: 0.1, warm_up: 0 };
    let gaussian: Box<dyn Likelihood> = Box::new(Gaussian::new(0.1, 1e-6));
    let softmax = Box::new(Categorical::new(10).unwrap());
    for (name, likelihood, variational, wanted) in [
        ("adam_everything", gaussian.clone(), VariationalOptimizer::Adam, Wanted::ALL),
        ("natural_everything", gaussian.clone(), natural, Wanted::ALL),
        ("natural_distribution_only", gaussian, natural, Wanted::DISTRIBUTION),
        ("natural_softmax_10_everything", softmax, natural, Wanted::ALL),
    ] {
        let data = data(20_480, name.contains("softmax"));
        let z = data.inputs().subrows(0, INDUCING).to_owned();
        let mut model = StochasticGp::new(kernel(), MeanForm::Constant, likelihood, z).unwrap();
        (model.learn_hyperparameters, model.learn_inducing) = (wanted.hyperparameters, wanted.inducing);
        group.bench_function(name, |b| {
            b.iter_custom(|steps| {
                let options =
                    StochasticOptions { steps: steps as usize, variational, ..StochasticOptions::default() };
                let started = Instant::now();
                fit_stochastic(model.clone(), &data, &options, None, &mut |_, _| Signal::Continue).unwrap();
                started.elapsed()
            });
        });
    }
    group.finish();
}

fn collapsed(c: &mut Criterion) {
    let mut group = c.benchmark_group("collapsed");
    group.sample_size(10);
    let data = data(20_480, false);
    let z = data.inputs().subrows(0, INDUCING).to_owned();
    let model = CollapsedGp::new(kernel(), MeanForm::Constant, Gaussian::new(0.1, 1e-6), z, 1).unwrap();
    group.bench_function("bound_and_gradient_20480_512", |b| {
        b.iter(|| collapsed_bound_and_gradient(&model, &data).unwrap());
    });
    group.finish();
}

criterion_group!(benches, stochastic, collapsed);
criterion_main!(benches);
