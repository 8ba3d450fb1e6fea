use super::*;
use crate::{ConeBeam, FanBeam, ParallelBeam, StackedParallel, phantom};
use faer::Mat;
use posterior_linalg::random::Streams;
use rand_distr::{Distribution, StandardNormal};

fn normal(rows: usize, columns: usize, name: &str) -> Mat<f64> {
    let mut stream = Streams::new(5).stream(name);
    Mat::from_fn(rows, columns, |_, _| StandardNormal.sample(&mut stream))
}

fn single(matrix: &Mat<f64>) -> Mat<f32> {
    Mat::from_fn(matrix.nrows(), matrix.ncols(), |i, j| matrix[(i, j)] as f32)
}

/// One of each kind, images that are not square, and a fan so wide that bundles change within angles.
fn geometries() -> Vec<Geometry> {
    let angles = vec![0.0, 0.4, std::f64::consts::FRAC_PI_2, 2.0, 3.0, 4.0, -0.3];
    let parallel = ParallelBeam { angles: angles.clone(), ..ParallelBeam::usual(9, 12, 1).unwrap() };
    let sparse = ParallelBeam { detectors: 5, spacing: 2.7, ..parallel.clone() };
    let fine = ParallelBeam { detectors: 60, spacing: 0.3, ..parallel.clone() };
    let wider = ParallelBeam { detectors: 13, spacing: 1.2, ..parallel.clone() };
    let fan = FanBeam { angles: angles.clone(), ..FanBeam::usual(9, 12, 20.0, 11.0, 1).unwrap() };
    let wide = FanBeam { angles: angles.clone(), ..FanBeam::usual(9, 12, 7.6, 8.0, 1).unwrap() };
    let cone = ConeBeam { angles, ..ConeBeam::usual((4, 6, 7), 30.0, 12.0, 1).unwrap() };
    let stacked = StackedParallel { depth: 3, slice: parallel.clone() };
    vec![
        parallel.into(),
        sparse.into(),
        fine.into(),
        wider.into(),
        fan.into(),
        wide.into(),
        stacked.into(),
        cone.into(),
    ]
}

#[test]
fn products_are_transposes_on_the_fly_and_stored() {
    for geometry in geometries() {
        let projector = Projector::new(geometry.clone()).unwrap();
        let stored = projector.stored::<f64>(1 << 30).unwrap();
        let (rows, columns) = (geometry.measurements(), geometry.pixels());
        for vectors in [1, 3] {
            let (u, v) = (normal(columns, vectors, "u"), normal(rows, vectors, "v"));
            let operators: [&dyn LinearOperator<f64>; 2] = [&projector, &stored];
            let products = operators.map(|t| (t.multiply(u.as_ref()), t.multiply_transpose(v.as_ref())));
            for (forward, backward) in &products {
                for column in 0..vectors {
                    let a: f64 = (0..rows).map(|i| forward[(i, column)] * v[(i, column)]).sum();
                    let b: f64 = (0..columns).map(|i| backward[(i, column)] * u[(i, column)]).sum();
                    let size = forward.norm_l2() * v.norm_l2();
                    assert!((a - b).abs() < 1e-12 * size, "{} {vectors}: {a} {b}", geometry.kind());
                }
            }
            let [(f, b), (stored_f, stored_b)] = &products;
            assert!((f - stored_f).norm_max() < 1e-12 * f.norm_max(), "{}", geometry.kind());
            assert!((b - stored_b).norm_max() < 1e-12 * b.norm_max(), "{}", geometry.kind());
            // Columns of a block are what they are alone.
            let alone = projector.multiply(u.subcols(0, 1));
            assert!((&alone - f.subcols(0, 1)).norm_max() < 1e-12 * f.norm_max());
            let low = projector.multiply(single(&u).as_ref());
            assert!((single(f) - &low).norm_max() < 2e-6 * f.norm_max() as f32, "{}", geometry.kind());
            let low = projector.multiply_transpose(single(&v).as_ref());
            assert!((single(b) - &low).norm_max() < 2e-6 * b.norm_max() as f32, "{}", geometry.kind());
        }
    }
}

/// Joseph's weights by the formulas of the spec, one ray at a time.
fn spec_matrix(beam: &ParallelBeam) -> Mat<f64> {
    let (h, w) = (beam.height, beam.width);
    let mut matrix = Mat::zeros(beam.angles.len() * beam.detectors, h * w);
    for (k, angle) in beam.angles.iter().enumerate() {
        let (sin, cos) = (angle.sin(), angle.cos());
        for l in 0..beam.detectors {
            let s = (l as f64 - (beam.detectors as f64 - 1.0) / 2.0) * beam.spacing;
            let row = k * beam.detectors + l;
            let mut emit = |i: f64, j: f64, weight: f64| {
                if i >= 0.0 && j >= 0.0 && i < h as f64 && j < w as f64 {
                    matrix[(row, i as usize * w + j as usize)] += weight;
                }
            };
            if cos.abs() >= sin.abs() {
                for i in 0..h {
                    let y = (h as f64 - 1.0) / 2.0 - i as f64;
                    let u = (s - y * sin) / cos + (w as f64 - 1.0) / 2.0;
                    emit(i as f64, u.floor(), (1.0 - (u - u.floor())) / cos.abs());
                    emit(i as f64, u.floor() + 1.0, (u - u.floor()) / cos.abs());
                }
            } else {
                for j in 0..w {
                    let x = j as f64 - (w as f64 - 1.0) / 2.0;
                    let u = (h as f64 - 1.0) / 2.0 - (s - x * cos) / sin;
                    emit(u.floor(), j as f64, (1.0 - (u - u.floor())) / sin.abs());
                    emit(u.floor() + 1.0, j as f64, (u - u.floor()) / sin.abs());
                }
            }
        }
    }
    matrix
}

#[test]
fn the_matrix_is_that_of_the_formulas() {
    for geometry in geometries() {
        let projector = Projector::new(geometry.clone()).unwrap();
        let dense: Mat<f64> = projector.to_dense();
        match &geometry {
            Geometry::Parallel(beam) => assert!((&dense - spec_matrix(beam)).norm_max() < 1e-12),
            Geometry::Stacked(beam) => {
                // Slices do not see each other, and each is the plane's matrix.
                let slice = spec_matrix(&beam.slice);
                let (pixels, detectors) = (slice.ncols(), beam.slice.detectors);
                let expected = Mat::from_fn(dense.nrows(), dense.ncols(), |row, column| {
                    let (angle, depth, l) =
                        (row / detectors / beam.depth, row / detectors % beam.depth, row % detectors);
                    let same = column / pixels == depth;
                    if same { slice[(angle * detectors + l, column % pixels)] } else { 0.0 }
                });
                assert!((&dense - expected).norm_max() < 1e-12);
            }
            Geometry::Fan(_) | Geometry::Cone(_) => {}
        }
        let some = [3, 0, 3];
        let per_angle = geometry.measurements_per_angle();
        let rows = Mat::from_fn(3 * per_angle, dense.ncols(), |i, j| {
            dense[(some[i / per_angle] * per_angle + i % per_angle, j)]
        });
        let chosen: Mat<f64> = projector.at_angles(&some).unwrap().to_dense();
        assert_eq!(chosen, rows);
        let stored = projector.stored::<f64>(1 << 30).unwrap();
        let again = projector.at_angles(&some).unwrap().stored::<f64>(1 << 30).unwrap();
        let chosen = stored.at_angles(&some).unwrap();
        assert_eq!((chosen.rows(), chosen.to_dense()), (again.rows(), again.to_dense()));
    }
}

#[test]
fn a_disk_has_the_checked_errors() {
    let beam = ParallelBeam::usual(64, 64, 180).unwrap();
    assert_eq!(beam.detectors, 93);
    let projector = Projector::new(beam.clone()).unwrap();
    let disk = phantom::disk(64, 64, 20.0);
    let sinogram = projector.project(&disk).unwrap();
    let (mut squares, mut worst) = (0.0, 0.0f64);
    for (row, value) in sinogram.iter().enumerate() {
        let s = ((row % 93) as f64 - 46.0) * beam.spacing;
        let error = value - 2.0 * (400.0 - s * s).max(0.0).sqrt();
        squares += error * error;
        worst = worst.max(error.abs());
    }
    let rms = (squares / sinogram.len() as f64).sqrt();
    println!("disk: rms {rms:.3}, worst {worst:.3}");
    assert!((rms - 0.19).abs() < 0.02 && (worst - 1.2).abs() < 0.15, "rms {rms}, worst {worst}");
    let mass: f64 = disk.iter().sum();
    for angle in sinogram.chunks_exact(93) {
        let sum: f64 = beam.spacing * angle.iter().sum::<f64>();
        assert!((sum / mass - 1.0).abs() < 1e-3, "{sum} {mass}");
    }
}

#[test]
fn a_far_source_makes_parallel_rays() {
    let parallel = ParallelBeam::usual(20, 24, 9).unwrap();
    let fan = FanBeam {
        height: 20,
        width: 24,
        source_distance: 1e9,
        detector_distance: 100.0,
        detectors: parallel.detectors,
        spacing: parallel.spacing,
        angles: parallel.angles.clone(),
    };
    let image = normal(480, 1, "image");
    let a: Mat<f64> = Projector::new(parallel).unwrap().multiply(image.as_ref());
    let b: Mat<f64> = Projector::new(fan).unwrap().multiply(image.as_ref());
    // Kinks of the interpolation amplify the differences of places, 1e-7.
    assert!((&a - &b).norm_max() < 1e-4 * a.norm_max(), "{}", (&a - &b).norm_max());
}

#[test]
fn a_fan_sees_chords_of_a_disk() {
    let fan = FanBeam::usual(64, 64, 100.0, 60.0, 24).unwrap();
    let sinogram = Projector::new(fan.clone()).unwrap().project(&phantom::disk(64, 64, 20.0)).unwrap();
    let mut squares = 0.0;
    for (row, value) in sinogram.iter().enumerate() {
        let s = ((row % fan.detectors) as f64 - 0.5 * (fan.detectors as f64 - 1.0)) * fan.spacing;
        // The distance of the ray from the centre.
        let distance = 100.0 * s / s.hypot(160.0);
        squares += (value - 2.0 * (400.0 - distance * distance).max(0.0).sqrt()).powi(2);
    }
    let rms = (squares / sinogram.len() as f64).sqrt();
    assert!(rms < 0.3, "{rms}");
}

#[test]
fn the_middle_of_a_cone_is_a_fan_and_its_other_rays_are_longer() {
    let cone = ConeBeam { rows: 9, ..ConeBeam::usual((40, 12, 10), 60.0, 25.0, 7).unwrap() };
    let plane = normal(120, 1, "plane");
    let fan: Mat<f64> = Projector::new(cone.central()).unwrap().multiply(plane.as_ref());
    // Constant along the depth, which no ray leaves.
    let volume = Mat::from_fn(40 * 120, 1, |p, _| plane[(p % 120, 0)]);
    let seen: Mat<f64> = Projector::new(cone.clone()).unwrap().multiply(volume.as_ref());
    for angle in 0..7 {
        for row in 0..9 {
            let height = (row as f64 - 4.0) * cone.row_spacing;
            for column in 0..cone.columns {
                let s = (column as f64 - 0.5 * (cone.columns as f64 - 1.0)) * cone.column_spacing;
                let flat = s.hypot(85.0);
                let expected = fan[(angle * cone.columns + column, 0)] * flat.hypot(height) / flat;
                let found = seen[((angle * 9 + row) * cone.columns + column, 0)];
                assert!((found - expected).abs() < 1e-10, "{angle} {row} {column}: {found} {expected}");
            }
        }
    }
}

#[test]
fn a_cone_sees_chords_of_a_ball() {
    let cone = ConeBeam::usual((32, 32, 32), 80.0, 40.0, 3).unwrap();
    let ball: Vec<f64> = (0..32 * 32 * 32)
        .map(|p| {
            let place = |i: usize| i as f64 - 15.5;
            let radius = place(p / 1024).hypot(place(p / 32 % 32)).hypot(place(p % 32));
            (10.5 - radius).clamp(0.0, 1.0)
        })
        .collect();
    let seen = Projector::new(cone.clone()).unwrap().project(&ball).unwrap();
    let mut squares = 0.0;
    for (at, value) in seen.iter().enumerate() {
        let s = ((at % cone.columns) as f64 - 0.5 * (cone.columns as f64 - 1.0)) * cone.column_spacing;
        let row = at / cone.columns % cone.rows;
        let height = (row as f64 - 0.5 * (cone.rows as f64 - 1.0)) * cone.row_spacing;
        let aside = s.hypot(height);
        let distance = 80.0 * aside / aside.hypot(120.0);
        squares += (value - 2.0 * (100.0 - distance * distance).max(0.0).sqrt()).powi(2);
    }
    let rms = (squares / seen.len() as f64).sqrt();
    assert!(rms < 0.3, "{rms}");
}

#[test]
fn bits_do_not_depend_on_threads() {
    for geometry in geometries() {
        let projector = Projector::new(geometry).unwrap();
        let stored = projector.stored::<f64>(1 << 30).unwrap();
        let (rows, columns) = LinearOperator::<f64>::shape(&projector);
        let (u, v) = (normal(columns, 2, "u"), normal(rows, 2, "v"));
        let all = || {
            let one = |m: &Mat<f64>| m.subcols(0, 1).to_owned();
            [
                projector.multiply(u.as_ref()),
                projector.multiply_transpose(v.as_ref()),
                projector.multiply(one(&u).as_ref()),
                projector.multiply_transpose(one(&v).as_ref()),
                stored.multiply(u.as_ref()),
                stored.multiply_transpose(v.as_ref()),
            ]
        };
        let with =
            |threads| rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(all);
        assert_eq!(with(1), with(4));
    }
}

#[test]
fn memory_is_told_before_it_is_taken() {
    let projector = Projector::new(ParallelBeam::usual(64, 64, 30).unwrap()).unwrap();
    let bytes = StoredProjector::<f32>::bytes(&projector);
    assert!(matches!(projector.stored::<f32>(bytes - 1), Err(TomographyError::TooLarge { .. })));
    let stored = projector.stored::<f32>(bytes).unwrap();
    let entries = stored.rows().entries() as u64;
    assert!(16 * entries < bytes && bytes < 32 * entries, "{bytes} bytes for {entries} entries");
}
