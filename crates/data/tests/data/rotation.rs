//! Rotations: exact quarter turns, nearest neighbours by brute force, linear images that bilinear interpolation keeps exactly.

use posterior_data::transform::{ChannelOrder, Interpolation, rotate};
use posterior_data::{ArrayValues, DataError, NumericArray};
use posterior_linalg::random::Streams;
use rand::RngExt;

const BOTH: [Interpolation; 2] = [Interpolation::Nearest, Interpolation::Bilinear];

fn array(shape: &[usize], values: ArrayValues) -> NumericArray {
    NumericArray::new(shape.to_vec(), values).unwrap()
}

fn random_bytes(shape: &[usize]) -> NumericArray {
    let mut rng = Streams::new(4).stream("test");
    array(shape, ArrayValues::U8((0..shape.iter().product()).map(|_| rng.random()).collect()))
}

fn turn(images: &NumericArray, degrees: f64, interpolation: Interpolation) -> NumericArray {
    rotate(images, ChannelOrder::First, degrees, interpolation).unwrap()
}

#[test]
fn quarter_turns_are_exact_in_every_type() {
    for side in [1, 2, 5, 6] {
        let bytes = random_bytes(&[3, 2, side, side]);
        let v = bytes.to_f64();
        let types = [
            bytes.values().clone(),
            ArrayValues::F32(bytes.to_f32()),
            ArrayValues::F64(v.iter().map(|v| v / 7.0).collect()),
            ArrayValues::I64(v.iter().map(|v| *v as i64 - 100).collect()),
        ];
        for values in types {
            let images = array(&[3, 2, side, side], values);
            let v = images.to_f64();
            // Counter-clockwise: what was in the last column is in the first row.
            let quarter: Vec<f64> = (0..v.len())
                .map(|k| {
                    let (plane, i, j) = (k / (side * side), k / side % side, k % side);
                    v[plane * side * side + j * side + side - 1 - i]
                })
                .collect();
            for interpolation in BOTH {
                let once = turn(&images, 90.0, interpolation);
                assert_eq!(once.to_f64(), quarter);
                assert_eq!(once.values().type_name(), images.values().type_name());
                let twice = turn(&once, 90.0, interpolation);
                assert_eq!(twice, turn(&images, 180.0, interpolation));
                let reversed: Vec<f64> =
                    v.chunks(side * side).flat_map(|p| p.iter().rev().copied()).collect();
                assert_eq!(twice.to_f64(), reversed);
                assert_eq!(turn(&images, 270.0, interpolation), turn(&twice, 90.0, interpolation));
                assert_eq!(turn(&once, -90.0, interpolation), images);
                for whole in [0.0, 360.0, -720.0, -1e-300, 360e10] {
                    assert_eq!(turn(&images, whole, interpolation), images, "{whole}");
                }
            }
        }
    }
}

#[test]
fn nearest_pixels_are_those_of_a_search() {
    for (height, width) in [(9, 9), (8, 8), (7, 10), (1, 6)] {
        let images = random_bytes(&[2, height, width]);
        let v = images.to_f64();
        for degrees in [10.0, 37.0, -63.5, 121.0, 170.0, 299.0] {
            let turned = turn(&images, degrees, Interpolation::Nearest).to_f64();
            let (middle_y, middle_x) = ((height as f64 - 1.0) / 2.0, (width as f64 - 1.0) / 2.0);
            for k in 0..v.len() {
                let (image, i, j) = (k / (height * width), k / width % height, k % width);
                // In polar coordinates, y upwards.
                let (x, y) = (j as f64 - middle_x, middle_y - i as f64);
                let (radius, angle) = (x.hypot(y), y.atan2(x) - degrees.to_radians());
                let (row, column) = (middle_y - radius * angle.sin(), middle_x + radius * angle.cos());
                let mut expected = 0.0;
                for r in 0..height {
                    for c in 0..width {
                        if (row - r as f64).abs() < 0.5 && (column - c as f64).abs() < 0.5 {
                            expected = v[image * height * width + r * width + c];
                        }
                    }
                }
                // Ties, if any, go to the larger index and are not searched for.
                let tie = |at: f64| ((at - 0.5) - (at - 0.5).round()).abs() < 1e-6;
                assert!(tie(row) || tie(column) || turned[k] == expected, "{degrees} {i} {j}");
            }
        }
    }
}

#[test]
fn ties_at_45_degrees_go_to_the_larger_index() {
    // On the diagonal of an even side the middle of two columns is met exactly.
    let image = array(&[1, 2, 2], ArrayValues::U8(vec![1, 2, 3, 4]));
    // By hand, (row, column) = (½ - √½, ½), (½, ½ + √½), (½, ½ - √½), (½ + √½, ½), halves rounded upwards.
    let expected = ArrayValues::U8(vec![2, 4, 3, 4]);
    assert_eq!(turn(&image, 45.0, Interpolation::Nearest).values(), &expected);
}

/// A plane that rises by (a, b) per column and row from its middle: bilinear interpolation is exact on it.
fn ramp(side: usize, a: f64, b: f64) -> NumericArray {
    let middle = (side as f64 - 1.0) / 2.0;
    let value = |k: usize| 100.0 + a * ((k % side) as f64 - middle) + b * ((k / side) as f64 - middle);
    array(&[1, side, side], ArrayValues::F64((0..side * side).map(value).collect()))
}

/// Pixels whose distance from the middle is below the inner radius, so that nothing from outside gets in.
fn disc(side: usize, radius: f64) -> impl Iterator<Item = usize> {
    let middle = (side as f64 - 1.0) / 2.0;
    (0..side * side).filter(move |k| ((k / side) as f64 - middle).hypot((k % side) as f64 - middle) < radius)
}

#[test]
fn bilinear_turns_a_ramp_into_the_turned_ramp_and_back() {
    let side = 15;
    for degrees in [1.0f64, 30.0, 45.0, 100.0, -77.0] {
        let (a, b) = (2.0, -0.7);
        let turned = turn(&ramp(side, a, b), degrees, Interpolation::Bilinear);
        let (sine, cosine) = degrees.to_radians().sin_cos();
        // The gradient turns with the image: counter-clockwise while rows count downwards.
        let expected = ramp(side, a * cosine + b * sine, b * cosine - a * sine).to_f64();
        let found = turned.to_f64();
        for k in disc(side, 6.9) {
            assert!((found[k] - expected[k]).abs() < 1e-11, "{degrees} {k}");
        }
        let back = turn(&turned, -degrees, Interpolation::Bilinear).to_f64();
        let original = ramp(side, a, b).to_f64();
        // What is interpolated from pixels of the disc, less the diagonal of a pixel.
        for k in disc(side, 5.4) {
            assert!((back[k] - original[k]).abs() < 1e-11, "{degrees} {k}");
        }
    }
}

#[test]
fn nearest_back_and_forth_stays_within_a_pixel() {
    // Each way moves the place by at most half a pixel along rows and columns, √½ in distance: √2 in all, at 2.12 a pixel.
    let (side, a, b) = (21, 2.0, -0.7);
    let original = ramp(side, a, b);
    let values = original.to_f64();
    for degrees in [13.0, 61.0, 145.0] {
        let there = turn(&original, degrees, Interpolation::Nearest);
        let back = turn(&there, -degrees, Interpolation::Nearest).to_f64();
        for k in disc(side, 8.5) {
            assert!((back[k] - values[k]).abs() <= 2f64.sqrt() * a.hypot(b) + 1e-9, "{degrees} {k}");
        }
    }
}

#[test]
fn channels_last_are_turned_alike() {
    let (n, c, h, w) = (2, 3, 5, 8);
    let first = random_bytes(&[n, c, h, w]);
    let reorder = |images: &NumericArray| -> Vec<f64> {
        let v = images.to_f64();
        let at = |k: usize| {
            let (image, i, j, channel) = (k / (h * w * c), k / (w * c) % h, k / c % w, k % c);
            v[((image * c + channel) * h + i) * w + j]
        };
        (0..v.len()).map(at).collect()
    };
    let last = array(&[n, h, w, c], ArrayValues::U8(reorder(&first).iter().map(|v| *v as u8).collect()));
    for interpolation in BOTH {
        for degrees in [33.0, 90.0, 180.0] {
            let expected = reorder(&turn(&first, degrees, interpolation));
            let found = rotate(&last, ChannelOrder::Last, degrees, interpolation).unwrap();
            assert_eq!((found.shape(), found.to_f64()), (&[n, h, w, c][..], expected));
        }
    }
}

#[test]
fn what_cannot_be_turned_is_refused_and_nothing_stays_nothing() {
    let image = array(&[1, 1, 1], ArrayValues::U8(vec![9]));
    for degrees in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let error = rotate(&image, ChannelOrder::First, degrees, Interpolation::Nearest).unwrap_err();
        assert!(matches!(error, DataError::Argument { argument: "degrees", .. }), "{error}");
    }
    for shape in [&[][..], &[1], &[1, 1], &[1, 1, 1, 1, 1]] {
        let error =
            rotate(&array(shape, ArrayValues::U8(vec![9])), ChannelOrder::First, 1.0, Interpolation::Nearest);
        assert!(error.unwrap_err().to_string().contains("three dimensions, N x H x W"));
    }
    for interpolation in BOTH {
        for degrees in [1.0, 77.7, 1e300] {
            assert_eq!(turn(&image, degrees, interpolation), image);
        }
        for shape in [&[0, 28, 28][..], &[3, 0, 5], &[3, 5, 0], &[usize::MAX, 0, 1], &[1, 0, 4, 4]] {
            let empty = array(shape, ArrayValues::F32(Vec::new()));
            for order in [ChannelOrder::First, ChannelOrder::Last] {
                assert_eq!(rotate(&empty, order, 12.0, interpolation).unwrap(), empty);
            }
        }
        let undefined = array(&[1, 3, 3], ArrayValues::F64(vec![f64::NAN; 9]));
        assert_eq!(turn(&undefined, 20.0, interpolation).shape(), [1, 3, 3]);
    }
}
