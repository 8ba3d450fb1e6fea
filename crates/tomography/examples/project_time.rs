//! Seconds of projections, back-projections and filtered back-projections, as one JSON line: what `benches/peers/tomography_projector.py` compares with other libraries.
//!
//! `cargo run --release -p posterior-tomography --example project_time [SIZE] [ANGLES] [REPETITIONS]`

use faer::Mat;
use posterior_linalg::Real;
use posterior_linalg::operator::LinearOperator;
use posterior_tomography::{Filter, ParallelBeam, Projector, filtered_back_projection, phantom};
use serde_json::{Value, json};
use std::time::Instant;

/// The fewest seconds of some runs.
fn best<R>(repetitions: usize, mut work: impl FnMut() -> R) -> f64 {
    let timed = |_| {
        let begun = Instant::now();
        std::hint::black_box(work());
        begun.elapsed().as_secs_f64()
    };
    (0..repetitions).map(timed).fold(f64::INFINITY, f64::min)
}

/// Both products of an operator with one vector.
fn products<T: Real>(operator: &dyn LinearOperator<T>, image: &[f64], repetitions: usize) -> Value {
    let image = Mat::from_fn(image.len(), 1, |i, _| T::from_f64(image[i]));
    let mut sinogram = operator.multiply(image.as_ref());
    let forward = best(repetitions, || operator.apply(image.as_ref(), sinogram.as_mut()));
    let mut back = operator.multiply_transpose(sinogram.as_ref());
    let backward = best(repetitions, || operator.apply_transpose(sinogram.as_ref(), back.as_mut()));
    json!({ "forward_s": forward, "backward_s": backward })
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let given: Vec<usize> = std::env::args().skip(1).map(|a| a.parse()).collect::<Result<_, _>>()?;
    let number = |at: usize, default: usize| given.get(at).copied().unwrap_or(default);
    let (size, angles, repetitions) = (number(0, 256), number(1, 180), number(2, 9));
    let projector = Projector::new(ParallelBeam::usual(size, size, angles)?)?;
    let image = phantom::shepp_logan(size, size);
    let sinogram = projector.project(&image)?;
    let (single, double) = (projector.stored::<f32>(1 << 34)?, projector.stored::<f64>(1 << 34)?);
    let mut runs = Vec::new();
    for threads in [1, 2] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build()?;
        runs.push(pool.install(|| {
            json!({
                "threads": threads,
                "f32": products::<f32>(&projector, &image, repetitions),
                "f64": products::<f64>(&projector, &image, repetitions),
                "stored_f32": products::<f32>(&single, &image, repetitions),
                "stored_f64": products::<f64>(&double, &image, repetitions),
                "fbp_s": best(repetitions, || filtered_back_projection(&projector, &sinogram, Filter::RamLak, None)),
            })
        }));
    }
    println!(
        "{}",
        json!({ "size": size, "angles": angles, "detectors": projector.geometry().measurements_per_angle(), "runs": runs })
    );
    Ok(())
}
