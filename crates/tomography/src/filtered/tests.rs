use super::*;
use crate::{ConeBeam, FanBeam, ParallelBeam, StackedParallel, phantom, psnr};

fn reconstructed(geometry: impl Into<Geometry>, image: &[f64], filter: Filter) -> Vec<f64> {
    let projector = Projector::new(geometry).unwrap();
    filtered_back_projection(&projector, &projector.project(image).unwrap(), filter, None).unwrap()
}

#[test]
fn a_disk_has_the_checked_quality() {
    let beam = ParallelBeam::usual(64, 64, 180).unwrap();
    let disk = phantom::disk(64, 64, 20.0);
    let sharp = reconstructed(beam.clone(), &disk, Filter::RamLak);
    let smooth = reconstructed(beam, &disk, Filter::Hann);
    let place = |i: usize| i as f64 - 31.5;
    let inner: Vec<f64> =
        (0..4096).filter(|p| place(p / 64).hypot(place(p % 64)) < 5.0).map(|p| sharp[p]).collect();
    let centre = inner.iter().sum::<f64>() / inner.len() as f64;
    println!("disk: {:.2} dB, {:.2} dB, centre {centre:.5}", psnr(&sharp, &disk), psnr(&smooth, &disk));
    assert!((psnr(&sharp, &disk) - 31.1).abs() < 0.15, "{}", psnr(&sharp, &disk));
    assert!((psnr(&smooth, &disk) - 25.3).abs() < 0.15, "{}", psnr(&smooth, &disk));
    // The mean of a small disk; the four pixels in the middle are 0.99916, here and by the same formulas in NumPy.
    assert!((centre - 0.9998).abs() < 5e-5 && (sharp[32 * 64 + 32] - 0.999_155).abs() < 1e-5, "{centre}");
}

#[test]
fn the_head_phantom_is_recovered() {
    let head = phantom::shepp_logan(128, 128);
    let picture = reconstructed(ParallelBeam::usual(128, 128, 180).unwrap(), &head, Filter::RamLak);
    println!("head: {:.2} dB", psnr(&picture, &head));
    assert!((psnr(&picture, &head) - 29.56).abs() < 0.1, "{}", psnr(&picture, &head));
}

#[test]
fn fans_and_cones_recover_what_they_see() {
    let disk = phantom::disk(64, 64, 20.0);
    let fan = reconstructed(FanBeam::usual(64, 64, 100.0, 60.0, 360).unwrap(), &disk, Filter::RamLak);
    println!("fan: {:.2} dB, centre {:.4}", psnr(&fan, &disk), fan[32 * 64 + 32]);
    assert!(psnr(&fan, &disk) > 28.0 && (fan[32 * 64 + 32] - 1.0).abs() < 0.01, "{}", psnr(&fan, &disk));
    let ball: Vec<f64> = (0..24 * 24 * 24)
        .map(|p| {
            let place = |i: usize| i as f64 - 11.5;
            let radius = place(p / 576).hypot(place(p / 24 % 24)).hypot(place(p % 24));
            (8.5 - radius).clamp(0.0, 1.0)
        })
        .collect();
    let cone = reconstructed(ConeBeam::usual((24, 24, 24), 90.0, 40.0, 90).unwrap(), &ball, Filter::RamLak);
    println!("cone: {:.2} dB", psnr(&cone, &ball));
    assert!(psnr(&cone, &ball) > 22.0, "{}", psnr(&cone, &ball));
}

#[test]
fn slices_are_reconstructed_one_by_one() {
    let slices = [phantom::disk(32, 32, 9.0), phantom::shepp_logan(32, 32)];
    let stack = StackedParallel::usual(2, 32, 32, 30).unwrap();
    for filter in [Filter::RamLak, Filter::Hann] {
        let alone: Vec<f64> =
            slices.iter().flat_map(|s| reconstructed(stack.slice.clone(), s, filter)).collect();
        let together = reconstructed(stack.clone(), &slices.concat(), filter);
        assert!(together.iter().zip(&alone).all(|(a, b)| (a - b).abs() < 1e-12));
    }
}

#[test]
fn the_matched_transpose_serves_any_angles() {
    let all = Projector::new(ParallelBeam::usual(64, 64, 180).unwrap()).unwrap();
    let disk = phantom::disk(64, 64, 20.0);
    let sinogram = all.project(&disk).unwrap();
    let matched =
        filtered_back_projection(&all, &sinogram, Filter::RamLak, Some(BackProjection::Matched)).unwrap();
    println!("matched: {:.2} dB", psnr(&matched, &disk));
    assert!(psnr(&matched, &disk) > 28.0);
    // Every third angle and a few more.
    let some: Vec<usize> = (0..180).filter(|k| k % 3 == 0 || *k == 10).collect();
    let fewer = all.at_angles(&some).unwrap();
    let sinogram = fewer.project(&disk).unwrap();
    let picture = filtered_back_projection(&fewer, &sinogram, Filter::RamLak, None).unwrap();
    assert!(psnr(&picture, &disk) > 22.0, "{}", psnr(&picture, &disk));
    let interpolated = Some(BackProjection::Interpolated);
    let refused = filtered_back_projection(&fewer, &sinogram, Filter::RamLak, interpolated);
    assert!(matches!(refused, Err(TomographyError::Unsupported { .. })));
    let fan =
        Projector::new(FanBeam { angles: vec![0.0, 1.0], ..FanBeam::usual(8, 8, 20.0, 9.0, 1).unwrap() })
            .unwrap();
    let empty = vec![0.0; fan.geometry().measurements()];
    let refused = filtered_back_projection(&fan, &empty, Filter::RamLak, None).unwrap_err();
    assert!(refused.to_string().contains("total variation"), "{refused}");
}
