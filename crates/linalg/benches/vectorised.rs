//! Elementwise mathematics against the standard library, one thread, 4,096 elements (which stay in the first caches).
//!
//! `cargo bench -p posterior-linalg --bench vectorised`; the throughput is in elements, and an element moves 16 bytes in
//! f64 and 8 in f32 (one read, one write). `portable` is the same formula compiled for the baseline that the build
//! targets, which is what runs on a processor without AVX2 and FMA.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use posterior_linalg::Real;
use posterior_linalg::vectorised;
use std::hint::black_box;

const LENGTH: usize = 4096;

/// A function in its three forms: vectorised over slices, portable, and the standard library's if there is one.
struct Contender<T> {
    name: &'static str,
    /// The ends of the inputs, evenly spaced.
    inputs: (f64, f64),
    slice: fn(&[T], &mut [T]),
    portable: fn(T) -> T,
    standard: Option<fn(T) -> T>,
}

fn measure<T: Real>(c: &mut Criterion, precision: &str, contenders: &[Contender<T>]) {
    for contender in contenders {
        let (low, high) = contender.inputs;
        let step = (high - low) / LENGTH as f64;
        let x: Vec<T> = (0..LENGTH).map(|i| T::from_f64(low + step * i as f64)).collect();
        let mut out = vec![T::ZERO; LENGTH];
        let mut group = c.benchmark_group(format!("{}/{precision}", contender.name));
        group.throughput(Throughput::Elements(LENGTH as u64));
        group.bench_function(BenchmarkId::from_parameter("vectorised"), |b| {
            b.iter(|| (contender.slice)(black_box(&x), black_box(&mut out)))
        });
        let scalars = [("portable", Some(contender.portable)), ("std", contender.standard)];
        for (name, f) in scalars.into_iter().filter_map(|(name, f)| f.map(|f| (name, f))) {
            group.bench_function(BenchmarkId::from_parameter(name), |b| {
                b.iter(|| black_box(&x).iter().zip(black_box(&mut out)).for_each(|(&x, o)| *o = f(x)))
            });
        }
    }
}

fn functions(c: &mut Criterion) {
    macro_rules! contenders {
        ($t:ident) => {
            [
                Contender::<$t> {
                    name: "exp",
                    inputs: (-20.0, 1.0),
                    slice: vectorised::exp,
                    portable: |x| Real::exp(x),
                    standard: Some(|x| x.exp()),
                },
                Contender::<$t> {
                    name: "ln",
                    inputs: (1e-3, 1e3),
                    slice: vectorised::ln,
                    portable: |x| Real::ln(x),
                    standard: Some(|x| x.ln()),
                },
                Contender::<$t> {
                    name: "tanh",
                    inputs: (-4.0, 4.0),
                    slice: vectorised::tanh,
                    portable: |x| Real::tanh(x),
                    standard: Some(|x| x.tanh()),
                },
                Contender::<$t> {
                    name: "erf",
                    inputs: (-4.0, 4.0),
                    slice: vectorised::erf,
                    portable: |x| Real::erf(x),
                    standard: None,
                },
            ]
        };
    }
    measure::<f64>(c, "f64", &contenders!(f64));
    measure::<f32>(c, "f32", &contenders!(f32));
}

/// What choosing the instruction set costs, with nothing to do.
fn dispatch(c: &mut Criterion) {
    c.bench_function("dispatch", |b| b.iter(|| vectorised::dispatch(|| black_box(1))));
}

criterion_group!(benches, functions, dispatch);
criterion_main!(benches);
