//! What a step of generalised variational inference costs: value and gradient of the whole objective on n rows with M inducing points.
//!
//! Bounds: features of rows do not change, so that a step reads them once: `8 n M` bytes and `4 n M` flops with a diagonal covariance, `6 n M²` flops with any covariance; a kernel of its own reads neither. Projected regularisers add some hundred
//! flops a row; the Wasserstein distance of b rows `25 b³` and the covariance of these, whatever n. A step of the stochastic bound on the same rows makes the features anew: `8 n M²` flops.

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use faer::Mat;
use posterior_gp::exact::ExactGp;
use posterior_gp::generalised::{
    Coordinates, Family, GeneralisedData, GeneralisedGp, GeneralisedObjective, JITTER, Mode, Reduction,
    ReferenceProcess, Risk, VariationalMean, objective_on,
};
use posterior_gp::inducing::stochastic::{Batch, StochasticGp, Wanted, stochastic_bound_and_gradient};
use posterior_gp::{MeanForm, Observations};
use posterior_kernels::{Kernel, KernelExpression};
use posterior_likelihoods::{CloneLikelihood, Gaussian};

const D: usize = 4;

fn kernel() -> Box<dyn Kernel<f64>> {
    let names: Vec<String> = (0..D).map(|i| format!("x{i}")).collect();
    "se(ard)".parse::<KernelExpression>().unwrap().build(&names).unwrap()
}

fn rows(n: usize) -> Observations {
    let value = |i: usize, j: usize| (((i * (2 * j + 3) * 7919) % 10_007) as f64 / 10_007.0 - 0.5) * 4.0;
    let x = Mat::from_fn(n, D, value);
    let y = Mat::from_fn(n, 1, |i, _| (x[(i, 0)] + x[(i, 1)]).sin() + 0.1 * value(i, 7));
    Observations::new(x, y, None).unwrap()
}

fn process(data: &Observations, m: usize, family: Family) -> GeneralisedGp {
    let points: Vec<usize> = (0..m).map(|k| k * data.rows() / m).collect();
    let model = ExactGp::new(kernel(), MeanForm::Zero, Gaussian::new(0.1, 0.0), D, 1);
    let posterior = model.condition(data.select(&points).unwrap()).unwrap();
    let reference = ReferenceProcess::new(posterior, Mode::Prior, false, JITTER).unwrap();
    let parts = (family, Coordinates::Whitened);
    let likelihood = Gaussian::new(0.1, 0.0).clone_box();
    let few = data.inputs().subrows(0, m);
    GeneralisedGp::begin(vec![reference], parts, VariationalMean::Constant(vec![0.0]), likelihood, few)
        .unwrap()
}

fn step(c: &mut Criterion, group: &str, (n, m): (usize, usize), (family, regulariser): (Family, &str)) {
    let data = rows(n);
    let model = process(&data, m, family);
    let objective = GeneralisedObjective {
        risk: Risk::Predictive,
        reduction: Reduction::Mean,
        regulariser: regulariser.parse().unwrap(),
        weight: 1.0,
        rows_together: 1024,
    };
    let given = GeneralisedData { observations: &data, given: None };
    let known = model.known(data.inputs()).unwrap();
    let name = format!("{regulariser} {family:?}");
    c.benchmark_group(group).sample_size(10).bench_function(
        BenchmarkId::new(name, format!("n{n}_m{m}")),
        |b| {
            b.iter(|| objective_on(&model, &objective, &given, &known).unwrap());
        },
    );
}

fn stochastic(c: &mut Criterion, group: &str, (n, m): (usize, usize)) {
    let data = rows(n);
    let z = data.inputs().subrows(0, m).to_owned();
    let model = StochasticGp::new(kernel(), MeanForm::Zero, Gaussian::new(0.1, 0.0).clone_box(), z).unwrap();
    let q = model.prior();
    let batch = Batch {
        inputs: data.inputs(),
        targets: data.targets(),
        noise: None,
        weights: None,
        offsets: None,
        rows: n,
    };
    c.benchmark_group(group).sample_size(10).bench_function(
        BenchmarkId::new("svgp", format!("n{n}_m{m}")),
        |b| {
            b.iter(|| stochastic_bound_and_gradient(&model, &q, batch, Wanted::DISTRIBUTION).unwrap());
        },
    );
}

fn over_rows(c: &mut Criterion) {
    let group = "step_over_rows";
    for n in [1_000, 10_000, 100_000, 1_000_000] {
        step(c, group, (n, 64), (Family::Kernelised, "projected-renyi=0.5"));
        step(c, group, (n, 64), (Family::Diagonal, "projected-renyi=0.5"));
        step(c, group, (n, 64), (Family::Cholesky, "projected-renyi=0.5"));
        stochastic(c, group, (n, 64));
    }
    // Distances of all rows together are for few.
    for n in [250, 500, 1_000] {
        step(c, group, (n, 64), (Family::Diagonal, "wasserstein"));
    }
}

fn over_points(c: &mut Criterion) {
    let group = "step_over_points";
    for m in [16, 64, 256, 1024, 2048] {
        let n = 10_000;
        step(c, group, (n, m), (Family::Kernelised, "projected-renyi=0.5"));
        step(c, group, (n, m), (Family::Diagonal, "projected-renyi=0.5"));
        step(c, group, (n, m), (Family::Cholesky, "projected-renyi=0.5"));
        stochastic(c, group, (n, m));
    }
}

criterion_group!(benches, over_rows, over_points);
criterion_main!(benches);
