use super::*;
use std::f64::consts::PI;

#[test]
fn the_usual_detector_is_that_of_the_specification() {
    for (side, detectors, spacing) in [(28, 41, 0.9658), (128, 183, 0.9892), (501, 711, 0.9965)] {
        let scan = ParallelBeam::usual(side, side, 3);
        assert_eq!(scan.detectors, detectors);
        assert!((scan.spacing - spacing).abs() < 1e-4, "{}", scan.spacing);
    }
    assert_eq!(ParallelBeam::usual(4, 4, 4).angles, [0.0, PI / 4.0, PI / 2.0, 0.75 * PI]);
}

#[test]
fn files_have_defaults_and_are_refused_by_name() {
    let scan = Geometry::from_toml(
        "kind = 'cone'\ndepth = 10\nheight = 20\nwidth = 20\nsource = 60\ndetector = 30\nangles = { count = 8 }",
    )
    .unwrap();
    let Geometry::Cone(cone) = &scan else { panic!() };
    assert!((cone.angles[1] - PI / 4.0).abs() < 1e-12);
    // The panel covers the shadow of the slices' circle.
    assert!(cone.columns as f64 * cone.spacing > 2.0 * 14.14 * 90.0 / 60.0);
    assert_eq!(scan.sinogram_shape(), [8, cone.rows, cone.columns]);
    for (text, says) in [
        ("kind = 'parallel'\nheight = 0\nwidth = 3\nangles = { count = 2 }", "`height` is 0"),
        ("kind = 'parallel'\nheight = 3\nwidth = 3\nangles = { count = 0 }", "no angles"),
        ("kind = 'parallel'\nheight = 3\nwidth = 3\nangles = { values = [] }", "no angles"),
        ("kind = 'parallel'\nheight = 3\nwidth = 3\nangles = { values = [nan] }", "angle 0 is NaN"),
        ("kind = 'parallel'\nheight = 3\nwidth = 3\nangles = {}", "`count` (equidistant) or `values`"),
        ("kind = 'parallel'\nheight = 3\nwidth = 3\nangles = { count = 2, values = [1] }", "both"),
        ("kind = 'parallel'\nheight = 3\nwidth = 3\nspacing = -1\nangles = { count = 2 }", "`spacing` is -1"),
        ("kind = 'parallel'\nheight = 1000000000\nwidth = 1000000000\nangles = { count = 2 }", "more than"),
        ("kind = 'parallel'\nheight = 3\nwidth = 3\nangle = { count = 2 }", "unknown field `angle`"),
        (
            "kind = 'fan'\nheight = 30\nwidth = 30\nsource = 5\ndetector = 5\nangles = { count = 2 }",
            "stands outside",
        ),
        ("kind = 'spiral'", "unknown variant `spiral`"),
    ] {
        let error = Geometry::from_toml(text).unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    }
}

#[test]
fn degrees_called_radians_are_seen() {
    let of = |unit| {
        let text = format!(
            "kind = 'parallel'\nheight = 8\nwidth = 8\nangles = {{ values = [0, 90, 179], unit = '{unit}' }}"
        );
        Geometry::from_toml(&text).unwrap()
    };
    assert!(of("degrees").warnings().is_empty());
    let warnings = of("radians").warnings();
    assert!(warnings[0].contains("between 0.0000 and 179.0000 radians"), "{warnings:?}");
}

#[test]
fn some_angles_are_a_scan_of_their_own() {
    let scan = Geometry::Parallel(ParallelBeam::usual(6, 6, 4));
    let some = scan.at_angles(&[2, 0]);
    assert_eq!(some.angles(), [PI / 2.0, 0.0]);
    assert_eq!(some.measurements(), 2 * scan.measurements_per_angle());
}
