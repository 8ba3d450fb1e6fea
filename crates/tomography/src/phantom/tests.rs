use super::*;

#[test]
fn a_disk_has_the_area_of_a_circle_and_soft_edges() {
    let disk = disk(64, 64, 20.0);
    let area: f64 = disk.iter().sum();
    assert!((area / (std::f64::consts::PI * 400.0) - 1.0).abs() < 2e-3, "{area}");
    assert!(disk.iter().any(|v| *v > 0.1 && *v < 0.9));
}

#[test]
fn the_head_has_its_known_values() {
    let head = shepp_logan(129, 129);
    let at =
        |x: f64, y: f64| head[((0.5 - 0.5 * y) * 129.0) as usize * 129 + ((0.5 + 0.5 * x) * 129.0) as usize];
    assert_eq!(at(0.95, 0.95), 0.0);
    assert!((at(0.0, 0.9) - 1.0).abs() < 1e-9);
    assert!((at(0.0, -0.4) - 0.2).abs() < 1e-9);
    assert!(at(0.22, 0.0).abs() < 1e-9);
    assert!((at(0.0, 0.35) - 0.3).abs() < 1e-9);
}

#[test]
fn chance_has_a_seed_and_pictures_their_range() {
    for of in [
        &|seed| ellipses(40, 40, seed) as Vec<f64>,
        &|seed| rectangles(40, 40, 3, seed),
        &|seed| walnut(40, 40, seed),
        &|seed| walnut_volume(6, 20, 20, seed),
    ] as [&dyn Fn(u64) -> Vec<f64>; 4]
    {
        assert_eq!(of(1), of(1));
        assert_ne!(of(1), of(2));
        let picture = of(3);
        assert!(picture.iter().all(|v| (0.0..=1.001).contains(v)));
        let (low, high) = picture.iter().fold((1.0f64, 0.0f64), |(l, h), v| (l.min(*v), h.max(*v)));
        assert!(low < 0.05 && high > 0.6, "{low} {high}");
    }
}

#[test]
fn rectangles_share_a_direction_that_differs_from_picture_to_picture() {
    // The direction of the strongest gradients, doubled since a line has no sense: its spread over pictures is wide.
    let directions: Vec<f64> = (0..12)
        .map(|seed| {
            let picture = rectangles(64, 64, 3, seed);
            let (mut c, mut s) = (0.0, 0.0);
            for i in 1..63 {
                for j in 1..63 {
                    let gx = picture[i * 64 + j + 1] - picture[i * 64 + j - 1];
                    let gy = picture[(i - 1) * 64 + j] - picture[(i + 1) * 64 + j];
                    let strength = gx.hypot(gy);
                    if strength > 0.1 {
                        // Sides come in two directions, a right angle apart: four times the angle.
                        let angle = 4.0 * gy.atan2(gx);
                        c += strength * angle.cos();
                        s += strength * angle.sin();
                    }
                }
            }
            s.atan2(c)
        })
        .collect();
    let (c, s) = directions.iter().fold((0.0, 0.0), |(c, s), d| (c + d.cos(), s + d.sin()));
    assert!(c.hypot(s) / 12.0 < 0.7, "{directions:?}");
}
