//! Corruptions: each against a closed form or a slow computation, the random ones against their moments.

use crate::common::shared;
use posterior_data::transform::{
    ChannelOrder, Corruption, ImageFormat, Interpolation, SEVERITIES, corrupt, rotate,
};
use posterior_data::{ArrayValues, DataError, NumericArray, ReadOptions, read_images};
use posterior_linalg::random::Streams;
use rand::RngExt;

fn seed() -> Streams {
    Streams::new(11)
}

fn array(shape: &[usize], values: ArrayValues) -> NumericArray {
    NumericArray::new(shape.to_vec(), values).unwrap()
}

fn run(images: &NumericArray, kind: Corruption, severity: u8) -> NumericArray {
    corrupt(images, ImageFormat::default(), kind, severity, seed()).unwrap()
}

/// Bright blobs and fine grain on a dark ground, in bytes, N x 3 x 20 x 20.
fn pictures(count: usize) -> NumericArray {
    let mut rng = seed().stream("test/pictures");
    let mut values = Vec::new();
    for _ in 0..count * 3 {
        let (row, column): (f64, f64) = (5.0 + 10.0 * rng.random::<f64>(), 5.0 + 10.0 * rng.random::<f64>());
        for k in 0..400 {
            let distance = ((k / 20) as f64 - row).powi(2) + ((k % 20) as f64 - column).powi(2);
            let grain: f64 = 60.0 * rng.random::<f64>();
            values.push((20.0 + 150.0 * (-distance / 20.0).exp() + grain) as u8);
        }
    }
    array(&[count, 3, 20, 20], ArrayValues::U8(values))
}

fn mean_square(a: &NumericArray, b: &NumericArray) -> f64 {
    a.to_f64().iter().zip(b.to_f64()).map(|(a, b)| (a - b).powi(2)).sum::<f64>() / a.len() as f64
}

fn grows(images: &NumericArray) {
    for kind in Corruption::ALL {
        assert_eq!(&run(images, kind, 0), images);
        let mut last = 0.0;
        for severity in 1..=SEVERITIES {
            let corrupted = run(images, kind, severity);
            assert_eq!(corrupted.shape(), images.shape());
            assert_eq!(corrupted.values().type_name(), images.values().type_name());
            assert!(corrupted.to_f64().iter().all(|v| (0.0..=255.0).contains(v)));
            let change = mean_square(&corrupted, images);
            assert!(change > last, "{} {severity}: {change} after {last}", kind.name());
            last = change;
        }
    }
}

#[test]
fn severity_strictly_increases_the_change() {
    let bytes = pictures(20);
    grows(&bytes);
    grows(&array(bytes.shape(), ArrayValues::F32(bytes.to_f32())));
    grows(&array(bytes.shape(), ArrayValues::F64(bytes.to_f64())));
}

#[test]
fn severity_strictly_increases_the_change_of_digits() {
    let Some(path) = shared("mnist/t10k-images-idx3-ubyte.gz") else { return };
    let digits = read_images(&path, &ReadOptions::for_arrays()).unwrap();
    let ArrayValues::U8(values) = digits.values() else { panic!("bytes") };
    grows(&array(&[200, 28, 28], ArrayValues::U8(values[..200 * 784].to_vec())));
}

#[test]
fn bytes_are_the_rounded_numbers() {
    let bytes = pictures(3);
    let floats = array(bytes.shape(), ArrayValues::F64(bytes.to_f64()));
    for kind in Corruption::ALL {
        let expected: Vec<f64> = run(&floats, kind, 3).to_f64().iter().map(|v| v.round()).collect();
        assert_eq!(run(&bytes, kind, 3).to_f64(), expected, "{}", kind.name());
    }
}

#[test]
fn an_image_does_not_depend_on_its_neighbours_but_on_the_seed() {
    let many = pictures(6);
    let few =
        array(&[2, 3, 20, 20], ArrayValues::U8(many.to_f64()[..2400].iter().map(|v| *v as u8).collect()));
    for kind in Corruption::ALL {
        assert_eq!(run(&many, kind, 4).to_f64()[..2400], run(&few, kind, 4).to_f64());
        let other = corrupt(&many, ImageFormat::default(), kind, 4, Streams::new(12)).unwrap();
        let random = matches!(kind, Corruption::GaussianNoise | Corruption::ShotNoise | Corruption::Rotation);
        assert_eq!(run(&many, kind, 4) != other, random, "{}", kind.name());
    }
}

#[test]
fn noise_has_its_moments() {
    // Grey far from black and white, so that clipping hardly matters at severities 1 and 2.
    let n = 100 * 400;
    let white = 4.0;
    let format = ImageFormat { white, ..ImageFormat::default() };
    for (grey, severity) in [(2.0, 1), (1.8, 2)] {
        let images = array(&[100, 20, 20], ArrayValues::F64(vec![grey; n]));
        let moments = |kind| {
            let v = corrupt(&images, format, kind, severity, seed()).unwrap().to_f64();
            let mean = v.iter().sum::<f64>() / n as f64;
            (mean, v.iter().map(|v| (v - grey).powi(2)).sum::<f64>() / n as f64)
        };
        let variance = (Corruption::GaussianNoise.amounts()[usize::from(severity) - 1] * white).powi(2);
        let (mean, square) = moments(Corruption::GaussianNoise);
        assert!((mean - grey).abs() < 5.0 * (variance / n as f64).sqrt());
        assert!((square / variance - 1.0).abs() < 5.0 * (2.0 / n as f64).sqrt());

        // Counts of mean m have variance m and fourth central moment m + 3 m².
        let unit = Corruption::ShotNoise.amounts()[usize::from(severity) - 1] / white;
        let m = grey * unit;
        let (mean, square) = moments(Corruption::ShotNoise);
        assert!((mean - grey).abs() < 5.0 * (m / n as f64).sqrt() / unit);
        // Counts above white are clipped: one in 10⁴ at severity 2, hundredths of this tolerance.
        assert!((square * unit * unit / m - 1.0).abs() < 5.0 * ((m + 2.0 * m * m) / n as f64).sqrt() / m);
    }
}

#[test]
fn blur_is_the_average_with_normal_weights() {
    let images = pictures(1);
    let v = images.to_f64();
    let floats = array(images.shape(), ArrayValues::F64(v.clone()));
    for severity in 1..=SEVERITIES {
        let found = run(&floats, Corruption::GaussianBlur, severity).to_f64();
        let deviation = Corruption::GaussianBlur.amounts()[usize::from(severity) - 1] * 20.0;
        let radius = (4.0 * deviation).ceil() as isize;
        for k in (0..v.len()).step_by(7) {
            let (plane, i, j) = (k / 400, (k / 20 % 20) as isize, (k % 20) as isize);
            let (mut total, mut weights) = (0.0, 0.0);
            for di in -radius..=radius {
                for dj in -radius..=radius {
                    let weight = (-((di * di + dj * dj) as f64) / (2.0 * deviation * deviation)).exp();
                    let (row, column) = ((i + di).clamp(0, 19) as usize, (j + dj).clamp(0, 19) as usize);
                    total += weight * v[plane * 400 + row * 20 + column];
                    weights += weight;
                }
            }
            assert!((found[k] - total / weights).abs() < 1e-10, "{severity} {k}");
        }
    }
}

#[test]
fn contrast_brightness_and_rotation_have_closed_forms() {
    let images = pictures(40);
    let floats = array(images.shape(), ArrayValues::F64(images.to_f64()));
    let v = floats.to_f64();
    for severity in 1..=SEVERITIES {
        let amount = |kind: Corruption| kind.amounts()[usize::from(severity) - 1];
        let (contrast, bright) =
            (run(&floats, Corruption::Contrast, severity), run(&floats, Corruption::Brightness, severity));
        for (plane, found) in v.chunks(400).zip(contrast.to_f64().chunks(400)) {
            let (mean, k) = (plane.iter().sum::<f64>() / 400.0, amount(Corruption::Contrast));
            assert!(plane.iter().zip(found).all(|(v, f)| (f - (k * v + (1.0 - k) * mean)).abs() < 1e-10));
        }
        let lift = 255.0 * amount(Corruption::Brightness);
        assert!(v.iter().zip(bright.to_f64()).all(|(v, f)| (f - (v + lift).min(255.0)).abs() < 1e-12));

        let turned = run(&floats, Corruption::Rotation, severity).to_f64();
        let degrees = amount(Corruption::Rotation);
        let by = |degrees| {
            rotate(&floats, ChannelOrder::First, degrees, Interpolation::Bilinear).unwrap().to_f64()
        };
        let (left, right) = (by(degrees), by(-degrees));
        let to_the_left = turned.chunks(1200).zip(left.chunks(1200)).filter(|(a, b)| a == b).count();
        let to_the_right = turned.chunks(1200).zip(right.chunks(1200)).filter(|(a, b)| a == b).count();
        assert_eq!(to_the_left + to_the_right, 40);
        // Forty fair coins: all on one side once in 10¹².
        assert!(to_the_left > 0 && to_the_right > 0);
    }
}

#[test]
fn pixelation_averages_blocks() {
    // Severity 5: a quarter of 8 is 2 blocks along each side. Rows 0 to 3 against 4 to 7, and so the columns.
    let image = array(&[1, 8, 8], ArrayValues::F64((0..64).map(f64::from).collect()));
    let found = run(&image, Corruption::Pixelation, 5).to_f64();
    for k in 0..64 {
        let (block_row, block_column) = (k / 8 / 4, k % 8 / 4);
        // The mean of 8 i + j over the block.
        let expected = 8.0 * (4.0 * block_row as f64 + 1.5) + 4.0 * block_column as f64 + 1.5;
        assert!((found[k] - expected).abs() < 1e-12);
    }
    // Severity 2: round(0.6 * 5) = 3 blocks begin at 0, ⌊5/3⌋ = 1 and ⌊10/3⌋ = 3.
    let line = array(&[1, 5, 1], ArrayValues::F64(vec![0.0, 10.0, 20.0, 40.0, 50.0]));
    assert_eq!(run(&line, Corruption::Pixelation, 2).to_f64(), [0.0, 15.0, 15.0, 45.0, 45.0]);
}

#[test]
fn channels_last_are_changed_alike() {
    let first = pictures(2);
    let v = first.to_f64();
    let reorder = |v: &[f64]| -> Vec<f64> {
        (0..v.len()).map(|k| v[(k / 1200 * 3 + k % 3) * 400 + k % 1200 / 3]).collect()
    };
    let last = array(&[2, 20, 20, 3], ArrayValues::F64(reorder(&v)));
    let first = array(&[2, 3, 20, 20], ArrayValues::F64(v));
    let format = ImageFormat { channels: ChannelOrder::Last, white: 255.0 };
    for kind in Corruption::ALL {
        // Independent noise is drawn in the order of memory.
        if !matches!(kind, Corruption::GaussianNoise | Corruption::ShotNoise) {
            let found = corrupt(&last, format, kind, 3, seed()).unwrap();
            assert_eq!(found.to_f64(), reorder(&run(&first, kind, 3).to_f64()), "{}", kind.name());
        }
    }
}

#[test]
fn small_empty_and_wrong_images() {
    for kind in Corruption::ALL {
        assert_eq!(Corruption::from_name(kind.name()).unwrap(), kind);
        for severity in 0..=SEVERITIES {
            let pixel = array(&[2, 1, 1], ArrayValues::U8(vec![0, 255]));
            let found = run(&pixel, kind, severity);
            let changes =
                matches!(kind, Corruption::GaussianNoise | Corruption::ShotNoise | Corruption::Brightness);
            assert!(changes || found == pixel, "{}", kind.name());
            for shape in [&[0, 28, 28][..], &[2, 0, 3], &[2, 3, 4, 0]] {
                let empty = array(shape, ArrayValues::U8(Vec::new()));
                assert_eq!(run(&empty, kind, severity), empty);
            }
            let flat = array(&[1, 4, 5], ArrayValues::F32(vec![0.3; 20]));
            let unchanged = matches!(kind, Corruption::Contrast | Corruption::Pixelation);
            assert!(!unchanged || run(&flat, kind, severity) == flat);
            // The largest numbers there are stay numbers.
            let extreme =
                array(&[1, 2, 2], ArrayValues::F64(vec![f64::MAX, 0.0, f64::MAX, f64::MIN_POSITIVE]));
            for white in [f64::MAX, 5e-324] {
                let format = ImageFormat { white, ..ImageFormat::default() };
                match corrupt(&extreme, format, kind, severity, seed()) {
                    Ok(found) => assert!(found.to_f64().iter().all(|v| (0.0..=white).contains(v))),
                    Err(error) => assert!(white < 1.0, "{error}"),
                }
            }
        }
    }
    let one = |v: f32| array(&[1, 1, 2], ArrayValues::F32(vec![1.0, v]));
    let message = |images: &NumericArray, white: f64, severity: u8| {
        let format = ImageFormat { white, ..ImageFormat::default() };
        corrupt(images, format, Corruption::Contrast, severity, seed()).unwrap_err().to_string()
    };
    for (found, expected) in [
        (message(&one(f32::NAN), 255.0, 1), "`images` is NaN at position [0, 0, 1]"),
        (message(&one(-0.5), 255.0, 0), "give the images before they are standardised"),
        (message(&one(255.5), 255.0, 1), "pixels lie between 0 and 255"),
        (message(&one(1.0), f64::NAN, 1), "`white` is NaN"),
        (message(&one(1.0), 0.0, 1), "`white` is 0"),
        (message(&one(1.0), 255.0, 6), "`severity` is 6: severities run from 0"),
        (message(&array(&[2], ArrayValues::U8(vec![1, 2])), 255.0, 1), "three dimensions"),
    ] {
        assert!(found.contains(expected), "{found}");
    }
    let unknown = Corruption::from_name("fog").unwrap_err();
    assert!(matches!(unknown, DataError::Argument { .. }) && unknown.to_string().contains("gaussian-blur"));
}
