//! Kernel matrices: 8,000 x 8,000, D = 8, Matérn-3/2, single precision, into memory that is there; and a gram matrix with its pullback.
//!
//! Bound: 256 MB are written, 64 M entries at about 36 vectorisable operations each.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use faer::Mat;
use posterior_kernels::{KernelExpression, Request, cross_into, gram_lower_into, pullback_gram};
use posterior_linalg::random::Streams;
use rand_distr::{Distribution, StandardNormal};

fn features(d: usize) -> Vec<String> {
    (0..d).map(|i| format!("x{i}")).collect()
}

fn cross(c: &mut Criterion) {
    const N: usize = 8_000;
    let mut rng = Streams::new(0).stream("bench");
    let x = Mat::<f32>::from_fn(N, 8, |_, _| StandardNormal.sample(&mut rng));
    let mut out = Mat::<f32>::zeros(N, N);
    let mut group = c.benchmark_group("cross_8000x8000_f32_d8");
    group.sample_size(10).throughput(Throughput::Bytes((N * N * 4) as u64));
    for name in ["se", "matern32", "matern52"] {
        let kernel =
            format!("{name}(ard)").parse::<KernelExpression>().unwrap().build::<f32>(&features(8)).unwrap();
        group.bench_function(name, |b| b.iter(|| cross_into(&*kernel, x.as_ref(), x.as_ref(), out.as_mut())));
    }
    group.finish();
}

fn gram_and_pullback(c: &mut Criterion) {
    const N: usize = 4_000;
    let mut rng = Streams::new(0).stream("bench");
    let x = Mat::<f64>::from_fn(N, 4, |_, _| StandardNormal.sample(&mut rng));
    let kernel = "matern32(ard)".parse::<KernelExpression>().unwrap().build::<f64>(&features(4)).unwrap();
    let mut out = Mat::<f64>::zeros(N, N);
    let mut group = c.benchmark_group("gram_4000_f64_d4");
    group.sample_size(20);
    group.bench_function("lower", |b| b.iter(|| gram_lower_into(&*kernel, x.as_ref(), out.as_mut())));
    group.bench_function("pullback", |b| {
        b.iter(|| pullback_gram(&*kernel, x.as_ref(), &|_, _, mut tile| tile.fill(1.0), Request::PARAMETERS));
    });
    group.finish();
}

criterion_group!(benches, cross, gram_and_pullback);
criterion_main!(benches);
