use super::*;

#[test]
fn the_usual_detector_has_the_checked_values() {
    // Spec section 3.1.
    for (size, detectors, spacing) in [(28, 41, 0.9658), (128, 183, 0.9892), (501, 711, 0.9965)] {
        let beam = ParallelBeam::usual(size, size, 4).unwrap();
        assert_eq!(beam.detectors, detectors);
        assert!((beam.spacing - spacing).abs() < 5e-5, "{}", beam.spacing);
        assert_eq!(beam.angles[0], 0.0);
        assert!((beam.angles[1] - std::f64::consts::FRAC_PI_4).abs() < 1e-15);
    }
}

#[test]
fn descriptions_read_and_round_trip() {
    let texts = [
        "kind = 'parallel'\nheight = 6\nwidth = 5\nangles = { count = 3, range_degrees = 180 }",
        "kind = 'parallel'\nheight = 6\nwidth = 5\ndetectors = 4\nangles = { list = [0, 31.5], unit = 'degrees' }",
        "kind = 'fan'\nheight = 6\nwidth = 5\nsource_distance = 20\ndetector_distance = 9\nangles = { count = 7 }",
        "kind = 'stacked'\ndepth = 2\nheight = 6\nwidth = 5\nspacing = 1.5\nangles = { list = [0, 1], unit = 'radians' }",
        "kind = 'cone'\ndepth = 3\nheight = 6\nwidth = 5\nsource_distance = 20\ndetector_distance = 9\nangles = { count = 7 }",
    ];
    for text in texts {
        let geometry = Geometry::from_toml(text).unwrap();
        assert_eq!(Geometry::from_toml(&geometry.to_toml().unwrap()).unwrap(), geometry);
    }
    let usual: Geometry = ParallelBeam::usual(6, 5, 3).unwrap().into();
    let read = Geometry::from_toml(texts[0]).unwrap();
    assert_eq!(read.sinogram_shape(), usual.sinogram_shape());
    assert!(read.angles().iter().zip(usual.angles()).all(|(a, b)| (a - b).abs() < 1e-15));
    assert_eq!(
        Geometry::from_toml(texts[4]).unwrap().angles(),
        Geometry::from_toml(texts[2]).unwrap().angles()
    );
}

#[test]
fn what_cannot_be_meant_is_refused_before_memory_is_taken() {
    let read = |rest: &str| Geometry::from_toml(&format!("kind = 'parallel'\n{rest}")).unwrap_err();
    let angles = "angles = { count = 3 }";
    for size in ["1000000000", "0"] {
        let error = read(&format!("height = {size}\nwidth = {size}\n{angles}"));
        assert!(matches!(error, TomographyError::Size { what: "the height", .. }), "{error}");
    }
    let error = read(&format!("height = 1000000\nwidth = 1000000\n{angles}"));
    assert!(matches!(error, TomographyError::TooLarge { .. }), "{error}");
    let error = read("height = 3\nwidth = 3\nangles = { count = 1000000000 }");
    assert!(matches!(error, TomographyError::Size { .. }), "{error}");
    assert!(matches!(read("height = 3\nwidth = 3\nangles = { count = 0 }"), TomographyError::NoAngles));
    let error = read("height = 3\nwidth = 3\nangles = { list = [0, nan], unit = 'radians' }");
    assert!(matches!(error, TomographyError::Angle { index: 1, .. }), "{error}");
    let error = read("height = 3\nwidth = 3\nangles = { list = [0, 1] }");
    assert!(error.to_string().contains("unit"), "{error}");
    let error = read(&format!("height = 3\nwidth = 3\ndetector = 4\n{angles}"));
    assert!(error.to_string().contains("detector"), "{error}");
    let error = read(&format!("height = 3\nwidth = 3\nspacing = 0.0\n{angles}"));
    assert!(matches!(error, TomographyError::Length { .. }), "{error}");
    let inside = FanBeam::usual(10, 10, 5.0, 20.0, 3).unwrap_err();
    assert!(matches!(inside, TomographyError::Length { .. }), "{inside}");
}

#[test]
fn degrees_for_radians_are_noticed() {
    let degrees =
        "kind = 'parallel'\nheight = 3\nwidth = 3\nangles = { list = [0, 90, 179], unit = 'radians' }";
    let warnings = Geometry::from_toml(degrees).unwrap().check().unwrap();
    assert_eq!(warnings, [GeometryWarning::Degrees { smallest: 0.0, largest: 179.0 }]);
    assert!(warnings[0].to_string().contains("between 0 and 179"));
    let few = degrees.replace("0, 90, 179", "0, 3, 7");
    assert!(matches!(
        Geometry::from_toml(&few).unwrap().check().unwrap()[..],
        [GeometryWarning::Degrees { .. }]
    ));
    assert!(Geometry::from(FanBeam::usual(3, 3, 9.0, 9.0, 360).unwrap()).check().unwrap().is_empty());
    assert!(Geometry::from(ParallelBeam::usual(3, 3, 9).unwrap()).check().unwrap().is_empty());
    let narrow = ParallelBeam { detectors: 2, ..ParallelBeam::usual(9, 9, 2).unwrap() };
    assert!(matches!(Geometry::from(narrow).check().unwrap()[..], [GeometryWarning::Truncated { .. }]));
}

#[test]
fn sinograms_of_another_scan_are_told_apart() {
    let geometry: Geometry = ParallelBeam::usual(6, 6, 4).unwrap().into();
    let (angles, detectors) = (4, geometry.measurements_per_angle());
    let mut values = vec![1.0; angles * detectors];
    geometry.check_counts(&[angles, detectors], &values).unwrap();
    geometry.check_sinogram(&[angles * detectors], &values).unwrap();
    let transposed = geometry.check_sinogram(&[detectors, angles], &values).unwrap_err().to_string();
    assert!(transposed.contains("transposed"), "{transposed}");
    let fewer = geometry.check_sinogram(&[3, detectors], &values[..3 * detectors]).unwrap_err().to_string();
    assert!(fewer.contains("the numbers of angles differ"), "{fewer}");
    values[detectors + 2] = -1.0;
    let negative = geometry.check_counts(&[angles, detectors], &values).unwrap_err();
    assert!(matches!(
        negative,
        TomographyError::NegativeCount { negative: 1, value: -1.0, angle: 1, detector: 2 }
    ));
    values[2 * detectors + 3] = f64::INFINITY;
    let infinite = geometry.check_sinogram(&[angles, detectors], &values).unwrap_err();
    assert!(matches!(infinite, TomographyError::NotFinite { value: f64::INFINITY, angle: 2, detector: 3 }));
    assert!(matches!(geometry.check_image(&[0.0; 35]), Err(TomographyError::ImageShape { .. })));
}

#[test]
fn some_of_the_angles() {
    let geometry: Geometry = StackedParallel::usual(2, 6, 6, 4).unwrap().into();
    let some = geometry.at_angles(&[3, 0]).unwrap();
    assert_eq!(some.angles(), [geometry.angles()[3], 0.0]);
    assert_eq!(some.measurements(), 2 * geometry.measurements_per_angle());
    assert!(matches!(geometry.at_angles(&[4]), Err(TomographyError::AngleIndex { index: 4, angles: 4 })));
    assert!(matches!(geometry.at_angles(&[]), Err(TomographyError::NoAngles)));
}
