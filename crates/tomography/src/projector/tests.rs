use super::*;
use crate::geometry::{ConeBeam, FanBeam, ParallelBeam, StackedParallel};
use faer::Mat;
use std::f64::consts::PI;

fn wave(k: usize) -> f64 {
    ((k * k) as f64 * 0.7391 + k as f64 * 0.317).sin()
}

fn cone() -> ConeBeam {
    ConeBeam {
        depth: 7,
        height: 9,
        width: 8,
        rows: 9,
        columns: 13,
        spacing: 1.3,
        source: 20.0,
        detector: 9.0,
        angles: crate::geometry::equidistant(5, 2.0 * PI),
    }
}

fn fan() -> FanBeam {
    FanBeam {
        height: 9,
        width: 8,
        detectors: 21,
        spacing: 0.9,
        source: 15.0,
        detector: 6.0,
        angles: crate::geometry::equidistant(7, 2.0 * PI),
    }
}

fn all() -> Vec<Geometry> {
    // A picture that is not square, and one of a single column.
    let parallel = ParallelBeam::usual(11, 8, 9);
    vec![
        Geometry::Parallel(parallel.clone()),
        Geometry::Parallel(ParallelBeam::usual(6, 1, 4)),
        Geometry::Fan(fan()),
        Geometry::Stacked(StackedParallel { depth: 3, slice: parallel }),
        Geometry::Cone(cone()),
    ]
}

#[test]
fn both_directions_are_exact_transposes_on_the_fly_and_stored() {
    for geometry in all() {
        let projector = Projector::new(geometry).unwrap();
        let stored = StoredProjector::new(&projector).unwrap();
        assert!(stored.weights() as u64 <= projector.weights());
        let (c, n) = LinearOperator::<f64>::shape(&projector);
        let x = Mat::from_fn(n, 2, |i, j| wave(i + 3 * j));
        let y = Mat::from_fn(c, 2, |i, j| wave(7 * i + j + 5));
        for operator in [&projector as &dyn LinearOperator<f64>, &stored] {
            let (forward, back) = (operator.multiply(x.as_ref()), operator.multiply_transpose(y.as_ref()));
            for j in 0..2 {
                let dot = |a: &Mat<f64>, b: &Mat<f64>| {
                    a.col(j).iter().zip(b.col(j).iter()).map(|(a, b)| a * b).sum::<f64>()
                };
                let scale = forward.col(j).norm_l2() * y.col(j).norm_l2();
                assert!((dot(&forward, &y) - dot(&x, &back)).abs() < 1e-12 * scale);
            }
        }
        let (fly, kept) = (projector.multiply(x.as_ref()), stored.multiply(x.as_ref()));
        assert!((&fly - kept).norm_max() < 1e-12 * fly.norm_max());
        // In single precision to single precision.
        let narrow = Mat::from_fn(n, 2, |i, j| x[(i, j)] as f32);
        let single = LinearOperator::<f32>::multiply(&projector, narrow.as_ref());
        let worst = (0..c).map(|i| (f64::from(single[(i, 0)]) - fly[(i, 0)]).abs()).fold(0.0, f64::max);
        assert!(worst < 1e-5 * fly.norm_max());
    }
}

/// Joseph's weights as the specification writes them, entry by entry.
fn dense(scan: &ParallelBeam) -> Mat<f64> {
    let (h, w) = (scan.height, scan.width);
    let mut out = Mat::zeros(scan.angles.len() * scan.detectors, h * w);
    for (k, angle) in scan.angles.iter().enumerate() {
        let (sin, cos) = angle.sin_cos();
        for l in 0..scan.detectors {
            let s = (l as f64 - (scan.detectors as f64 - 1.0) / 2.0) * scan.spacing;
            let row = k * scan.detectors + l;
            if cos.abs() >= sin.abs() {
                for i in 0..h {
                    let y = (h as f64 - 1.0) / 2.0 - i as f64;
                    let u = (s - y * sin) / cos + (w as f64 - 1.0) / 2.0;
                    let (j, t) = (u.floor(), u - u.floor());
                    for (j, weight) in [(j, (1.0 - t) / cos.abs()), (j + 1.0, t / cos.abs())] {
                        if j >= 0.0 && j < w as f64 {
                            out[(row, i * w + j as usize)] += weight;
                        }
                    }
                }
            } else {
                for j in 0..w {
                    let x = j as f64 - (w as f64 - 1.0) / 2.0;
                    let u = (h as f64 - 1.0) / 2.0 - (s - x * cos) / sin;
                    let (i, t) = (u.floor(), u - u.floor());
                    for (i, weight) in [(i, (1.0 - t) / sin.abs()), (i + 1.0, t / sin.abs())] {
                        if i >= 0.0 && i < h as f64 {
                            out[(row, i as usize * w + j)] += weight;
                        }
                    }
                }
            }
        }
    }
    out
}

#[test]
fn weights_are_those_of_the_formula() {
    let mut scan = ParallelBeam::usual(7, 10, 8);
    scan.angles.extend([0.3, 2.0, 4.1, -1.0]);
    let projector = Projector::new(Geometry::Parallel(scan.clone())).unwrap();
    let found: Mat<f64> = projector.to_dense();
    assert!((found - dense(&scan)).norm_max() < 1e-12);
}

#[test]
fn a_disk_has_the_chords_of_a_circle_and_its_mass() {
    // Spec `tomography`, section 3.2: RMS 0.19, worst 1.2 at the rim, mass within 0.1 %.
    let scan = ParallelBeam::usual(64, 64, 180);
    assert_eq!(scan.detectors, 93);
    let disk = crate::phantom::disk(64, 64, 20.0);
    let projector = Projector::new(Geometry::Parallel(scan.clone())).unwrap();
    let sinogram = projector.multiply(MatRef::from_column_major_slice(&disk, 64 * 64, 1));
    let mass: f64 = disk.iter().sum();
    let (mut squares, mut worst) = (0.0, 0.0f64);
    for row in sinogram.col_as_slice(0).chunks_exact(93) {
        assert!((row.iter().sum::<f64>() * scan.spacing / mass - 1.0).abs() < 1e-3);
        for (l, y) in row.iter().enumerate() {
            let s = (l as f64 - 46.0) * scan.spacing;
            let error: f64 = y - 2.0 * (400.0 - s * s).max(0.0).sqrt();
            squares += error * error;
            worst = worst.max(error.abs());
        }
    }
    let rms = (squares / (180.0 * 93.0)).sqrt();
    assert!((rms - 0.19).abs() < 0.02 && (worst - 1.2).abs() < 0.15, "{rms} {worst}");
}

#[test]
fn slices_are_projected_by_themselves() {
    let slice = ParallelBeam::usual(6, 5, 4);
    let stacked = Geometry::Stacked(StackedParallel { depth: 3, slice: slice.clone() });
    let volume: Vec<f64> = (0..90).map(wave).collect();
    let whole = Projector::new(stacked).unwrap();
    let whole = whole.multiply(MatRef::from_column_major_slice(&volume, 90, 1));
    let one = Projector::new(Geometry::Parallel(slice.clone())).unwrap();
    for k in 0..3 {
        let own = one.multiply(MatRef::from_column_major_slice(&volume[30 * k..30 * (k + 1)], 30, 1));
        for angle in 0..4 {
            for l in 0..slice.detectors {
                let there = whole[((angle * 3 + k) * slice.detectors + l, 0)];
                assert_eq!(there.to_bits(), own[(angle * slice.detectors + l, 0)].to_bits());
            }
        }
    }
}

#[test]
fn a_far_source_sends_parallel_rays() {
    let parallel = ParallelBeam { angles: vec![0.0, 0.4, 1.3, 2.2], ..ParallelBeam::usual(12, 12, 4) };
    let far = FanBeam {
        height: 12,
        width: 12,
        detectors: parallel.detectors,
        spacing: parallel.spacing,
        source: 1e7,
        detector: 0.0,
        angles: parallel.angles.clone(),
    };
    let a: Mat<f64> = Projector::new(Geometry::Parallel(parallel)).unwrap().to_dense();
    let b: Mat<f64> = Projector::new(Geometry::Fan(far)).unwrap().to_dense();
    assert!((a - b).norm_max() < 1e-4);
}

#[test]
fn the_middle_row_of_a_panel_is_a_fan() {
    // An odd number of slices and rows: the middle row's rays stay in the middle slice.
    let cone = cone();
    let flat = FanBeam {
        height: cone.height,
        width: cone.width,
        detectors: cone.columns,
        spacing: cone.spacing,
        source: cone.source,
        detector: cone.detector,
        angles: cone.angles.clone(),
    };
    let picture: Vec<f64> = (0..72).map(wave).collect();
    let mut volume = vec![0.0; 7 * 72];
    volume[3 * 72..4 * 72].copy_from_slice(&picture);
    let space = Projector::new(Geometry::Cone(cone.clone())).unwrap();
    let space = space.multiply(MatRef::from_column_major_slice(&volume, 7 * 72, 1));
    let plane = Projector::new(Geometry::Fan(flat)).unwrap();
    let plane = plane.multiply(MatRef::from_column_major_slice(&picture, 72, 1));
    for angle in 0..5 {
        for l in 0..13 {
            let (a, b) = (space[((angle * 9 + 4) * 13 + l, 0)], plane[(angle * 13 + l, 0)]);
            assert!((a - b).abs() < 1e-10, "{angle} {l}: {a} {b}");
        }
    }
}

#[test]
fn a_ball_in_a_cone_has_the_chords_of_a_sphere() {
    let scan = ConeBeam {
        depth: 32,
        height: 32,
        width: 32,
        rows: 21,
        columns: 21,
        spacing: 2.0,
        source: 80.0,
        detector: 40.0,
        angles: crate::geometry::equidistant(6, 2.0 * PI),
    };
    // Anti-aliased by the distance to the surface.
    let radius = 11.0f64;
    let volume: Vec<f64> = (0..32usize.pow(3))
        .map(|v| {
            let [z, y, x] = [v / 1024, v / 32 % 32, v % 32].map(|i| i as f64 - 15.5);
            (radius - (x * x + y * y + z * z).sqrt() + 0.5).clamp(0.0, 1.0)
        })
        .collect();
    let projector = Projector::new(Geometry::Cone(scan.clone())).unwrap();
    let sinogram = projector.multiply(MatRef::from_column_major_slice(&volume, volume.len(), 1));
    let (mut squares, mut peak) = (0.0, 0.0f64);
    for angle in 0..6 {
        for r in 0..21 {
            for c in 0..21 {
                // Distance of the ray from the centre, from similar triangles: independent of the angle.
                let [v, u] = [r, c].map(|k| (k as f64 - 10.0) * 2.0);
                let sine = (u * u + v * v).sqrt() / (120.0f64.powi(2) + u * u + v * v).sqrt();
                let distance = 80.0 * sine;
                let chord = 2.0 * (radius * radius - distance * distance).max(0.0).sqrt();
                let y = sinogram[((angle * 21 + r) * 21 + c, 0)];
                squares += (y - chord).powi(2);
                peak = peak.max(y);
            }
        }
    }
    let rms = (squares / (6.0 * 441.0)).sqrt();
    // The surface of a ball is two thirds of a voxel thick here, as the rim of the disk above: 0.34 of 22.
    assert!(rms < 0.4 && (peak - 22.0).abs() < 0.3, "{rms} {peak}");
}

#[test]
fn threads_do_not_change_a_bit() {
    for geometry in all() {
        let projector = Projector::new(geometry).unwrap();
        let (c, n) = LinearOperator::<f64>::shape(&projector);
        let (x, y) = (Mat::from_fn(n, 1, |i, _| wave(i)), Mat::from_fn(c, 1, |i, _| wave(i + 9)));
        let of = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| (projector.multiply(x.as_ref()), projector.multiply_transpose(y.as_ref())))
        };
        assert_eq!(of(1), of(3));
    }
}

#[test]
fn some_angles_are_rows_of_all() {
    let projector = Projector::new(Geometry::Fan(fan())).unwrap();
    let whole: Mat<f64> = projector.to_dense();
    let some: Mat<f64> = Scanner::at(&projector, &[5, 2]).to_dense();
    for (i, angle) in [5, 2].iter().enumerate() {
        assert_eq!(some.subrows(21 * i, 21), whole.subrows(21 * angle, 21));
    }
}
