//! Products without a stored matrix, single precision, n = 41,000, D = 9: Matérn-3/2 with 1 and 65 vectors, all rows and 512 of them; every other
//! kernel with one vector. Tanimoto: 8,192 fingerprints of 1,024 counts, about 50 of them not 0, dense, sparse, and as bits.
//!
//! Bound: an entry costs `2D + 25` flops for its value and `2k` for k vectors; all rows compute half of the values. Tanimoto: `3D` flops
//! (dense), 50 additions at scattered places (sparse), `D / 64` population counts (bits).

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use faer::linalg::matmul::matmul;
use faer::{Accum, Mat, Par};
use posterior_kernels::KernelExpression;
use posterior_kernels::matrix::KernelMatrix;
use posterior_kernels::tanimoto::{SparseCounts, TanimotoMatrix};
use posterior_linalg::operator::{LinearOperator, RowAccess};
use posterior_linalg::random::Streams;
use rand::RngExt;
use rand_distr::{Distribution, StandardNormal};
use std::sync::Arc;
use std::time::Duration;

const N: usize = 41_000;
const D: usize = 9;
const BATCH: usize = 512;

/// What the machine can do: a product of two square matrices, 2 * 2,048³ = 17 GFLOP.
fn rate(c: &mut Criterion) {
    let a = Mat::<f32>::from_fn(2048, 2048, |i, j| ((i * 7 + j) as f32).sin());
    let mut out = Mat::<f32>::zeros(2048, 2048);
    let mut group = c.benchmark_group("rate");
    group.sample_size(10).warm_up_time(Duration::from_millis(500)).measurement_time(Duration::from_secs(4));
    group.throughput(Throughput::Elements(2 * 2048u64.pow(3)));
    group.bench_function("f32_product", |b| {
        b.iter(|| matmul(out.as_mut(), Accum::Replace, a.as_ref(), a.as_ref(), 1.0, Par::rayon(0)));
    });
    group.finish();
}

fn products(c: &mut Criterion) {
    let mut rng = Streams::new(0).stream("bench");
    let x = Mat::<f32>::from_fn(N, D, |_, _| StandardNormal.sample(&mut rng));
    let names: Vec<String> = (0..D).map(|i| format!("x{i}")).collect();
    let kernel = "matern32(ard)".parse::<KernelExpression>().unwrap().build::<f32>(&names).unwrap();
    let matrix = KernelMatrix::new(&*kernel, x.as_ref());
    let chosen: Vec<usize> = (0..BATCH).map(|i| i * 80).collect();
    for k in [1, 65] {
        let v = Mat::<f32>::from_fn(N, k, |i, j| ((i + j) as f32).sin());
        let mut group = c.benchmark_group(format!("matern32_f32_n41000_d9_k{k}"));
        group
            .sample_size(10)
            .warm_up_time(Duration::from_millis(500))
            .measurement_time(Duration::from_secs(4));
        group.throughput(Throughput::Elements((N * N) as u64));
        let mut out = Mat::<f32>::zeros(N, k);
        group.bench_function("apply", |b| b.iter(|| matrix.apply(v.as_ref(), out.as_mut())));
        group.throughput(Throughput::Elements((N * BATCH) as u64));
        let mut rows = Mat::<f32>::zeros(BATCH, k);
        group.bench_function("apply_rows_512", |b| {
            b.iter(|| matrix.apply_rows(&chosen, v.as_ref(), rows.as_mut()));
        });
        let mut columns = Mat::<f32>::zeros(N, k);
        let w = v.subrows(0, BATCH);
        group.bench_function("apply_columns_512", |b| {
            b.iter(|| matrix.apply_columns(&chosen, w, columns.as_mut()));
        });
        group.finish();
    }
}

fn kernels(c: &mut Criterion) {
    let mut rng = Streams::new(0).stream("bench");
    let x = Mat::<f32>::from_fn(N, D, |_, _| StandardNormal.sample(&mut rng));
    let names: Vec<String> = (0..D).map(|i| format!("x{i}")).collect();
    let v = Mat::<f32>::from_fn(N, 1, |i, _| (i as f32).sin());
    let mut out = Mat::<f32>::zeros(N, 1);
    let mut group = c.benchmark_group("apply_f32_n41000_d9_k1");
    group.sample_size(10).warm_up_time(Duration::from_millis(500)).measurement_time(Duration::from_secs(4));
    group.throughput(Throughput::Elements((N * N) as u64));
    for text in [
        "se(ard)",
        "matern12(ard)",
        "matern32(ard)",
        "matern52(ard)",
        "rq(ard)",
        "linear",
        "polynomial(degree=3)",
    ] {
        let kernel = text.parse::<KernelExpression>().unwrap().build::<f32>(&names).unwrap();
        let matrix = KernelMatrix::new(&*kernel, x.as_ref());
        group.bench_function(text, |b| b.iter(|| matrix.apply(v.as_ref(), out.as_mut())));
    }
    group.finish();
}

fn fingerprints(c: &mut Criterion) {
    let (n, d, present) = (8192, 1024, 50);
    let mut rng = Streams::new(0).stream("bench");
    let mut dense = Mat::<f32>::zeros(n, d);
    for i in 0..n {
        for _ in 0..present {
            // A square makes low columns common, as they are in fingerprints.
            let u: f64 = rng.random();
            dense[(i, (u * u * d as f64) as usize)] += 1.0;
        }
    }
    let sparse = Arc::new(SparseCounts::from_dense(dense.as_ref()).unwrap());
    let names: Vec<String> = (0..d).map(|i| format!("x{i}")).collect();
    let kernel = "tanimoto".parse::<KernelExpression>().unwrap().build::<f32>(&names).unwrap();
    let v = Mat::<f32>::from_fn(n, 1, |i, _| (i as f32).sin());
    let mut out = Mat::<f32>::zeros(n, 1);
    let mut group = c.benchmark_group("tanimoto_f32_n8192_d1024_k1");
    group.sample_size(10).warm_up_time(Duration::from_millis(500)).measurement_time(Duration::from_secs(4));
    group.throughput(Throughput::Elements((n * n) as u64));
    let matrix = KernelMatrix::new(&*kernel, dense.as_ref());
    group.bench_function("dense", |b| b.iter(|| matrix.apply(v.as_ref(), out.as_mut())));
    let matrix = TanimotoMatrix::of_rows(sparse, 1.0);
    group.bench_function("sparse", |b| b.iter(|| matrix.apply(v.as_ref(), out.as_mut())));
    group.finish();
}

criterion_group!(benches, rate, products, kernels, fingerprints);
criterion_main!(benches);
