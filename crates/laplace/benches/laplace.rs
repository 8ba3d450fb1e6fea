//! Curvature, Gauss-Newton products and predictions of a small perceptron: enough to notice when one of them becomes slower.

use criterion::{Criterion, criterion_group, criterion_main};
use posterior_laplace::{
    Accumulator, Approximation, Data, FisherEstimate, FitOptions, Form, Mode, PriorKind, Run, Tune, Wanted,
    fit,
};
use posterior_likelihoods::{Categorical, OutputLikelihood};
use posterior_linalg::random::Streams;
use posterior_networks::train::{Tabular, Targets};
use posterior_networks::{Architecture, Array, Curvature, Network, Selection};
use std::hint::black_box;

const TEXT: &str =
    "kind = \"perceptron\"\ninputs = 64\nhidden = [100, 100]\noutputs = 10\nactivation = \"relu\"";

fn numbers(shape: Vec<usize>) -> Array<f32> {
    let count: usize = shape.iter().product();
    Array::new(shape, (0..count).map(|i| ((i * 2_654_435_761) % 1000) as f32 / 1000.0 - 0.5).collect())
}

fn laplace(c: &mut Criterion) {
    let architecture = Architecture::from_toml(TEXT).expect("a valid architecture");
    let graph = architecture.graph().expect("a valid graph");
    let network = Network::<f32>::initialised(graph, Streams::new(0)).expect("finite weights");
    let all = Selection::all(network.graph());
    let (count, x) = (256, numbers(vec![256, 64]));
    let data = Tabular::new(x.clone(), Targets::Classes((0..count).map(|i| i % 10).collect()));
    let likelihood = OutputLikelihood::Categorical(Categorical::new(10).expect("ten classes"));
    let direction = numbers(vec![1, all.len()]);
    let cotangent = numbers(vec![count as usize, 10]);
    let mut group = c.benchmark_group("perceptron 64-100-100-10, 256 examples");
    group.sample_size(20);
    group.bench_function("gradient", |b| {
        b.iter(|| black_box(network.trace(x.clone()).expect("fits").vjp(&all, &cotangent).expect("fits")));
    });
    group.bench_function("Gauss-Newton product", |b| {
        b.iter(|| {
            black_box(network.gauss_newton_products(&x, &Curvature::Softmax, &all, &direction).expect("fits"))
        });
    });
    for (name, form, estimate) in [
        ("Kronecker factors, exact", Form::Kronecker, FisherEstimate::Exact),
        ("Kronecker factors, empirical", Form::Kronecker, FisherEstimate::Empirical),
        ("diagonal, exact", Form::Diagonal, FisherEstimate::Exact),
    ] {
        group.bench_function(name, |b| {
            b.iter(|| {
                let mut sums = Accumulator::new(&network, &all, form, estimate).expect("weights");
                sums.extend(&Data::new(&network, &data, &likelihood), 0, &mut Run::default()).expect("fits");
                black_box(sums)
            });
        });
    }
    let options = FitOptions {
        approximation: Approximation::Kronecker(FisherEstimate::Empirical),
        prior: PriorKind::Scalar,
        mode: Mode::Trained,
        tune: Tune::None,
        ..FitOptions::default()
    };
    let fitted = Data::new(&network, &data, &likelihood);
    let posterior = fit(&fitted, &options, &mut Run::default()).expect("a posterior");
    group.bench_function("latent covariances, Kronecker", |b| {
        b.iter(|| black_box(posterior.latent(&network, &x, Wanted::Full).expect("fits")));
    });
    group.finish();
}

criterion_group!(benches, laplace);
criterion_main!(benches);
