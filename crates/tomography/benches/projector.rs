//! Products with the forward operators of all beams and with their transposes, one vector in single precision, and filtered back-projection.
//!
//! `cargo bench -p posterior-tomography --bench projector`; the throughput is in interpolations, `measurements` times the longest side.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use faer::Mat;
use posterior_linalg::operator::LinearOperator;
use posterior_tomography::{
    ConeBeam, FanBeam, Filter, Geometry, ParallelBeam, Projector, StackedParallel, filtered_back_projection,
};
use std::hint::black_box;

fn beams() -> Vec<(&'static str, Geometry)> {
    let sized = "the sizes of this file are fine";
    vec![
        ("parallel 256 x 256, 180 angles", ParallelBeam::usual(256, 256, 180).expect(sized).into()),
        ("fan 256 x 256, 180 angles", FanBeam::usual(256, 256, 600.0, 400.0, 180).expect(sized).into()),
        ("stacked 16 x 128 x 128, 60 angles", StackedParallel::usual(16, 128, 128, 60).expect(sized).into()),
        (
            "cone 64 x 64 x 64, 20 angles",
            ConeBeam::usual((64, 64, 64), 200.0, 100.0, 20).expect(sized).into(),
        ),
    ]
}

fn products(c: &mut Criterion) {
    for (name, geometry) in beams() {
        let side = geometry.image_shape().into_iter().max().unwrap_or(1);
        let projector = Projector::new(geometry.clone()).expect("the geometry is one");
        let image: Mat<f32> = Mat::from_fn(geometry.pixels(), 1, |i, _| (i % 17) as f32);
        let sinogram = projector.multiply(image.as_ref());
        let mut group = c.benchmark_group(name);
        group.sample_size(20).throughput(Throughput::Elements((geometry.measurements() * side) as u64));
        group.bench_function(BenchmarkId::from_parameter("forward"), |b| {
            b.iter(|| projector.multiply(black_box(image.as_ref())))
        });
        group.bench_function(BenchmarkId::from_parameter("backward"), |b| {
            b.iter(|| projector.multiply_transpose(black_box(sinogram.as_ref())))
        });
        let double: Vec<f64> = sinogram.col(0).iter().map(|v| f64::from(*v)).collect();
        group.bench_function(BenchmarkId::from_parameter("filtered"), |b| {
            b.iter(|| filtered_back_projection(&projector, black_box(&double), Filter::RamLak, None))
        });
    }
}

criterion_group!(benches, products);
criterion_main!(benches);
