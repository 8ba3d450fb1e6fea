use super::*;
use posterior_linalg::random::Streams;
use std::f64::consts::PI;

fn within_unit(image: &[f64]) {
    let largest = image.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    assert!(image.iter().all(|v| (0.0..=1.0).contains(v)) && largest > 0.5, "largest {largest}");
}

#[test]
fn areas_are_those_of_the_formulas() {
    let sum = disk(64, 64, 20.0).iter().sum::<f64>();
    assert!((sum / (PI * 400.0) - 1.0).abs() < 2e-3, "{sum}");
    let some = [Ellipse { intensity: 2.0, axes: [0.5, 0.2], centre: [0.1, -0.2], angle: 0.7 }];
    // Half the shorter side is 25 pixels.
    let sum = ellipses(50, 70, &some).iter().sum::<f64>();
    assert!((sum / (2.0 * PI * 0.5 * 0.2 * 625.0) - 1.0).abs() < 5e-3, "{sum}");
}

#[test]
fn the_head_phantom_has_its_intensities() {
    let head = shepp_logan(128, 128);
    within_unit(&head);
    let at = |x: f64, y: f64| head[((64.0 - 64.0 * y) as usize) * 128 + (64.0 + 64.0 * x) as usize];
    for (x, y, value) in
        [(0.0, 0.9, 1.0), (0.5, 0.1, 0.2), (-0.25, 0.0, 0.0), (0.0, 0.35, 0.3), (0.9, 0.9, 0.0)]
    {
        assert!((at(x, y) - value).abs() < 1e-12, "({x}, {y}): {}", at(x, y));
    }
}

#[test]
fn random_images_are_their_seeds_and_differ() {
    let streams = Streams::new(3);
    let makers: [&dyn Fn(Streams, u64) -> Vec<f64>; 2] =
        [&|s, i| random_ellipses(32, 32, 0.4745, s, i), &|s, i| random_rectangles(32, 32, s, i)];
    for make in makers {
        for index in 0..5 {
            let image = make(streams, index);
            within_unit(&image);
            assert_eq!(image, make(streams, index));
            assert_ne!(image, make(streams, index + 1));
            assert_ne!(image, make(Streams::new(4), index));
        }
    }
}

#[test]
fn ellipses_are_as_if_every_pixel_had_all_samples() {
    let mut some = vec![Ellipse { intensity: -0.3, axes: [1e-3, 0.9], centre: [0.1, -0.2], angle: 0.4 }];
    for k in 0..12 {
        let k = f64::from(k);
        let axes = [0.05 + 0.07 * (k * 2.3).sin().abs(), 0.02 + 0.4 * (k * 1.7).cos().abs()];
        some.push(Ellipse {
            intensity: 0.1 * k - 0.3,
            axes,
            centre: [(k * 1.1).sin(), (k * 0.7).cos()],
            angle: k,
        });
    }
    let brute = drawn(21, 30, 8, |x, y| {
        let of = |e: &Ellipse| {
            let ((sin, cos), x, y) = (e.angle.sin_cos(), x - e.centre[0], y - e.centre[1]);
            let (along, across) = ((x * cos + y * sin) / e.axes[0], (y * cos - x * sin) / e.axes[1]);
            if along * along + across * across <= 1.0 { e.intensity } else { 0.0 }
        };
        some.iter().map(of).sum()
    });
    let found = ellipses(21, 30, &some);
    // A sample that lies on an edge but for rounding may fall on either side.
    let wrong = found.iter().zip(&brute).filter(|(a, b)| (*a - *b).abs() > 1e-12).count();
    assert!(wrong <= 2, "{wrong}");
    assert!(found.iter().zip(&brute).all(|(a, b)| (a - b).abs() < 0.05));
}

#[test]
fn the_walnut_has_a_shell_gaps_and_a_middle() {
    let slice = walnut_slice(96, 96, Streams::new(1));
    within_unit(&slice);
    let share = |from: f64, to: f64| slice.iter().filter(|v| (from..to).contains(*v)).count() as f64 / 9216.0;
    // Gaps, kernel and shell, rims.
    let shares = [share(0.01, 0.1), share(0.3, 0.7), share(0.75, 1.1)];
    assert!(slice[0] == 0.0 && shares[0] > 0.05 && shares[1] > 0.1 && shares[2] > 0.02, "{shares:?}");
    let volume = walnut_volume([49, 48, 48], Streams::new(1));
    within_unit(&volume);
    // The middle slice of the volume is the picture at half the resolution.
    let middle = &volume[24 * 48 * 48..25 * 48 * 48];
    let coarse: Vec<f64> = (0..48 * 48)
        .map(|p| {
            let at = (p / 48) * 2 * 96 + (p % 48) * 2;
            0.25 * (slice[at] + slice[at + 1] + slice[at + 96] + slice[at + 97])
        })
        .collect();
    let difference = middle.iter().zip(&coarse).map(|(a, b)| (a - b).abs()).sum::<f64>() / (48.0 * 48.0);
    assert!(difference < 0.05, "{difference}");
}

#[test]
fn digits_are_more_like_themselves_than_like_others() {
    const HANDS: u64 = 6;
    let of = |digit: u64, hand: u64| random_digit(28, 28, Streams::new(5), digit + 10 * hand);
    let all: Vec<Vec<Vec<f64>>> = (0..10).map(|d| (0..HANDS).map(|h| of(d, h)).collect()).collect();
    let distance = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>();
    for (digit, hands) in all.iter().enumerate() {
        for image in hands {
            within_unit(image);
            let ink = image.iter().sum::<f64>() / 784.0;
            assert!((0.02..0.3).contains(&ink), "{digit}: {ink}");
        }
        // The mean distance to other hands, of every digit.
        let to = |other: usize| {
            let pairs = hands.iter().enumerate().flat_map(|(i, a)| {
                all[other]
                    .iter()
                    .enumerate()
                    .filter(move |(j, _)| other != digit || i != *j)
                    .map(move |(_, b)| (a, b))
            });
            let all: Vec<f64> = pairs.map(|(a, b)| distance(a, b)).collect();
            all.iter().sum::<f64>() / all.len() as f64
        };
        let own = to(digit);
        let nearest = (0..10).filter(|other| *other != digit).map(to).fold(f64::INFINITY, f64::min);
        assert!(own < nearest, "{digit}: {own} {nearest}");
    }
}
