//! Evidence with gradient, and prediction, of exact Gaussian processes.

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use faer::Mat;
use posterior_gp::exact::{ExactGp, log_evidence_and_gradient};
use posterior_gp::{MeanForm, Observations, Posterior};
use posterior_kernels::KernelExpression;
use posterior_likelihoods::Gaussian;
use posterior_linalg::random::Streams;
use rand_distr::{Distribution, StandardNormal};

fn problem(n: usize) -> (ExactGp, Observations) {
    let mut rng = Streams::new(0).stream("bench");
    let x = Mat::<f64>::from_fn(n, 4, |_, _| StandardNormal.sample(&mut rng));
    let y = Mat::from_fn(n, 1, |i, _| x[(i, 0)].sin() + x[(i, 1)]);
    let features: Vec<String> = (0..4).map(|i| format!("x{i}")).collect();
    let kernel = "matern32(ard)".parse::<KernelExpression>().unwrap().build(&features).unwrap();
    (
        ExactGp::new(kernel, MeanForm::Constant, Gaussian::new(0.1, 1e-6), 4, 1),
        Observations::new(x, y, None).unwrap(),
    )
}

fn evidence(c: &mut Criterion) {
    let mut group = c.benchmark_group("evidence_and_gradient");
    group.sample_size(10);
    for n in [200, 1_000, 4_000] {
        let (model, data) = problem(n);
        let mut buffer = None;
        group.bench_with_input(BenchmarkId::from_parameter(n), &n, |b, _| {
            b.iter(|| buffer = Some(log_evidence_and_gradient(&model, &data, buffer.take()).unwrap().buffer));
        });
    }
    group.finish();
}

fn prediction(c: &mut Criterion) {
    let (model, data) = problem(2_000);
    let x = data.inputs().to_owned();
    let posterior = model.condition(data).unwrap();
    c.bench_function("predict_2000_from_2000", |b| b.iter(|| posterior.predict(x.as_ref()).unwrap()));
}

criterion_group!(benches, evidence, prediction);
criterion_main!(benches);
