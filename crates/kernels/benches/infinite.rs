//! Kernel matrices of infinitely wide networks: 2,000 x 2,000 (both triangles), D = 20, depth 5, into memory that is there; and a gram matrix's pullback to its
//! parameters. Of convolutional networks: 500 images of 28 x 28 with one another (IMAGES sets the number), the architecture of the specification, and the pullback of 128.
//!
//! Bound: 4 M entries at 40 flops for the inner product and 5 times about 60 (ReLU), 40 (erf) or 60 (sine), each with one or two square roots or divisions. A pair of images takes 18,897 dual maps of
//! a ReLU and 0.2 MFLOP of sums, so 4 M pairs take 76 G dual maps: with one square root of 8 doubles each 24 cycles, at least 80 s of one core at 2.7 GHz, and a third of that in single precision.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use faer::Mat;
use posterior_kernels::{Kernel, KernelExpression, Request, cross_into, pullback, pullback_gram};
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

/// Convolution, ReLU, pool, twice; dense, ReLU, read-out.
fn on_images<T: Real>(count: usize) -> (Box<dyn Kernel<T>>, Mat<T>) {
    let names: Vec<String> = (0..28 * 28).map(|i| format!("p{i}")).collect();
    let text = "nngp-conv(shape=28x28, conv=3, relu, pool=2, conv=3, relu, pool=2, dense, relu, weight=1.4, bias=0.3)";
    let mut rng = Streams::new(0).stream("bench");
    let x = Mat::from_fn(count, names.len(), |_, _| T::from_f64(StandardNormal.sample(&mut rng)));
    (text.parse::<KernelExpression>().unwrap().build::<T>(&names).unwrap(), x)
}

fn image_matrix<T: Real>(c: &mut Criterion, precision: &str) {
    let count = std::env::var("IMAGES").ok().and_then(|v| v.parse().ok()).unwrap_or(500);
    let (kernel, x) = on_images::<T>(count);
    let mut out = Mat::<T>::zeros(count, count);
    let mut group = c.benchmark_group(format!("nngp_images_{count}x{count}_{precision}"));
    group.sample_size(10).throughput(Throughput::Elements((count * count) as u64));
    group.bench_function("cross", |b| b.iter(|| cross_into(&*kernel, x.as_ref(), x.as_ref(), out.as_mut())));
    group.finish();
}

fn image_pullback<T: Real>(c: &mut Criterion, precision: &str) {
    const COUNT: usize = 128;
    let (kernel, x) = on_images::<T>(COUNT);
    let mut group = c.benchmark_group(format!("nngp_images_pullback_{COUNT}_{precision}"));
    group.sample_size(10).throughput(Throughput::Elements((COUNT * COUNT) as u64));
    for (name, request) in [("parameters", Request::PARAMETERS), ("all", Request::ALL)] {
        let ones = Mat::from_fn(COUNT, COUNT, |_, _| T::ONE);
        group.bench_function(name, |b| {
            b.iter(|| pullback(&*kernel, x.as_ref(), x.as_ref(), ones.as_ref(), request));
        });
    }
    group.finish();
}

fn images(c: &mut Criterion) {
    image_matrix::<f64>(c, "f64");
    image_matrix::<f32>(c, "f32");
    image_pullback::<f64>(c, "f64");
    image_pullback::<f32>(c, "f32");
}

criterion_group!(benches, both, pullbacks, images);
criterion_main!(benches);
