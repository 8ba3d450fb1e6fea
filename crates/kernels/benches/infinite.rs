//! Kernel matrices of infinitely wide networks: 2,000 x 2,000 (both triangles), D = 20, depth 5, into memory that is there; and a gram matrix's pullback to its
//! parameters.
//!
//! Bound: 4 M entries at 40 flops for the inner product and 5 times about 60 (ReLU), 40 (erf) or 60 (sine), each with one or two square roots or divisions.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use faer::Mat;
use posterior_kernels::{Kernel, KernelExpression, Request, cross_into, pullback_gram};
use posterior_linalg::Real;
use posterior_linalg::random::Streams;
use rand_distr::{Distribution, StandardNormal};

const N: usize = 2_000;
const D: usize = 20;
const ACTIVATIONS: [&str; 4] = ["relu", "leaky-relu", "erf", "sine"];

fn kernel<T: Real>(activation: &str) -> Box<dyn Kernel<T>> {
    let names: Vec<String> = (0..D).map(|i| format!("x{i}")).collect();
    let text = format!("nngp(depth=5, {activation}, weight=1.4, bias=0.3)");
    text.parse::<KernelExpression>().unwrap().build::<T>(&names).unwrap()
}

fn points<T: Real>() -> Mat<T> {
    let mut rng = Streams::new(0).stream("bench");
    Mat::from_fn(N, D, |_, _| T::from_f64(StandardNormal.sample(&mut rng)))
}

fn matrices<T: Real>(c: &mut Criterion, precision: &str) {
    let (x, mut out) = (points::<T>(), Mat::<T>::zeros(N, N));
    let mut group = c.benchmark_group(format!("nngp_2000x2000_d20_depth5_{precision}"));
    group.sample_size(10).throughput(Throughput::Elements((N * N) as u64));
    for activation in ACTIVATIONS {
        let kernel = kernel::<T>(activation);
        group.bench_function(activation, |b| {
            b.iter(|| cross_into(&*kernel, x.as_ref(), x.as_ref(), out.as_mut()));
        });
    }
    group.finish();
}

fn both(c: &mut Criterion) {
    matrices::<f64>(c, "f64");
    matrices::<f32>(c, "f32");
}

fn pullbacks(c: &mut Criterion) {
    let x = points::<f64>();
    let mut group = c.benchmark_group("nngp_pullback_2000_d20_depth5_f64");
    group.sample_size(10).throughput(Throughput::Elements((N * (N + 1) / 2) as u64));
    for activation in ACTIVATIONS {
        let kernel = kernel::<f64>(activation);
        group.bench_function(activation, |b| {
            b.iter(|| {
                pullback_gram(&*kernel, x.as_ref(), &|_, _, mut tile| tile.fill(1.0), Request::PARAMETERS)
            });
        });
    }
    group.finish();
}

criterion_group!(benches, both, pullbacks);
criterion_main!(benches);
