//! Images as points: by hand, cut, filled up, scaled; MNIST counted elsewhere.

use crate::common::shared;
use posterior_data::point_cloud::{
    KeptPoints, Padding, PointCloudOptions, TokenScale, TokenScaling, point_clouds,
};
use posterior_data::transform::{ChannelOrder, ImageFormat};
use posterior_data::{ArrayValues, DataError, NumericArray, ReadOptions, read_images};

fn array(shape: &[usize], values: ArrayValues) -> NumericArray {
    NumericArray::new(shape.to_vec(), values).unwrap()
}

fn bytes(shape: &[usize], values: &[u8]) -> NumericArray {
    array(shape, ArrayValues::U8(values.to_vec()))
}

/// Three images of 2 x 3: four points, one point, none.
fn images() -> NumericArray {
    bytes(&[3, 2, 3], &[0, 51, 255, 102, 0, 51, 0, 0, 0, 0, 204, 0, 0, 0, 0, 0, 0, 0])
}

const A: [f32; 3] = [0.5, 0.0, 0.2];
const B: [f32; 3] = [1.0, 0.0, 1.0];
const C: [f32; 3] = [0.0, 1.0, 0.4];
const D: [f32; 3] = [1.0, 1.0, 0.2];
const E: [f32; 3] = [0.5, 1.0, 0.8];
const O: [f32; 3] = [0.0; 3];

#[test]
fn points_are_those_written_out_by_hand() {
    let options = PointCloudOptions::default;
    let zero = Padding::Zero;
    let first = KeptPoints::First;
    let cases = [
        (
            options(),
            vec![A, B, C, D, E, E, E, E, O, O, O, O],
            [1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0].to_vec(),
            (0, 0),
        ),
        (
            PointCloudOptions { padding: zero, max_points: Some(5), ..options() },
            vec![A, B, C, D, O, E, O, O, O, O, O, O, O, O, O],
            vec![1, 1, 1, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0],
            (0, 0),
        ),
        (
            PointCloudOptions { max_points: Some(6), ..options() },
            vec![A, B, C, D, A, B, E, E, E, E, E, E, O, O, O, O, O, O],
            vec![1, 1, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
            (0, 0),
        ),
        // Of the two with 0.2, the first.
        (
            PointCloudOptions { max_points: Some(3), ..options() },
            vec![A, B, C, E, E, E, O, O, O],
            vec![1, 1, 1, 1, 0, 0, 0, 0, 0],
            (1, 1),
        ),
        (
            PointCloudOptions { max_points: Some(2), ..options() },
            vec![B, C, E, E, O, O],
            vec![1, 1, 1, 0, 0, 0],
            (1, 2),
        ),
        (
            PointCloudOptions { max_points: Some(2), kept: first, ..options() },
            vec![A, B, E, E, O, O],
            vec![1, 1, 1, 0, 0, 0],
            (1, 2),
        ),
    ];
    for (options, tokens, mask, (cut_images, cut_points)) in cases {
        let made = point_clouds(&images(), &options).unwrap();
        let places = tokens.len() / 3;
        let values = ArrayValues::F32(tokens.into_iter().flatten().collect());
        assert_eq!(made.tokens, array(&[3, places, 3], values), "{options:?}");
        assert_eq!(made.mask, array(&[3, places], ArrayValues::U8(mask)));
        assert_eq!(made.counts, [4, 1, 0]);
        assert_eq!((made.cut_images, made.cut_points, made.empty_images), (cut_images, cut_points, 1));
        // Other types and layouts of one channel.
        let floats = array(&[3, 1, 2, 3], ArrayValues::F32(images().to_f32()));
        assert_eq!(point_clouds(&floats, &options).unwrap(), made);
        let format = ImageFormat { channels: ChannelOrder::Last, white: 510.0 };
        let doubled = images().to_f64().iter().map(|v| 2 * *v as i64).collect();
        let last = array(&[3, 2, 3, 1], ArrayValues::I64(doubled));
        assert_eq!(point_clouds(&last, &PointCloudOptions { format, ..options }).unwrap(), made);
    }
}

#[test]
fn standardised_points_have_mean_0_and_deviation_1_and_the_scale_carries_over() {
    let options = PointCloudOptions { scaling: TokenScaling::Standardised, ..PointCloudOptions::default() };
    let made = point_clouds(&images(), &options).unwrap();
    let (tokens, mask) = (made.tokens.to_f64(), made.mask.to_f64());
    let real: Vec<&[f64]> = tokens.chunks(3).zip(&mask).filter(|(_, m)| **m == 1.0).map(|(t, _)| t).collect();
    assert_eq!(real.len(), 5);
    for c in 0..3 {
        let mean = real.iter().map(|t| t[c]).sum::<f64>() / 5.0;
        let square = real.iter().map(|t| t[c] * t[c]).sum::<f64>() / 5.0;
        // Single precision, values below 2.
        assert!(mean.abs() < 1e-6 && (square - 1.0).abs() < 1e-6);
    }
    // Column: 0.5, 1, 0, 1, 0.5: mean 0.6, variance 0.14.
    assert!(
        (made.scale.means[0] - 0.6).abs() < 1e-12 && (made.scale.scales[0] - 0.14f64.sqrt()).abs() < 1e-12
    );
    let given = PointCloudOptions { scaling: TokenScaling::Given(made.scale), ..options };
    assert_eq!(point_clouds(&images(), &given).unwrap(), made);
    let second = bytes(&[1, 2, 3], &images().to_f64()[6..12].iter().map(|v| *v as u8).collect::<Vec<_>>());
    let alone = point_clouds(&second, &given).unwrap();
    assert_eq!(alone.tokens.to_f64(), tokens[12..15]);
}

#[test]
fn digits_have_the_points_counted_elsewhere() {
    let Some(path) = shared("mnist/t10k-images-idx3-ubyte.gz") else { return };
    let digits = read_images(&path, &ReadOptions::for_arrays()).unwrap();
    let made = point_clouds(&digits, &PointCloudOptions::default()).unwrap();
    // Counted from the bytes of the file with another language.
    let (first, most, total) = (116, 311, 1_511_219);
    assert_eq!((made.counts[0], made.tokens.shape()), (first, &[10_000, most, 3][..]));
    assert_eq!(made.counts.iter().sum::<usize>(), total);
    assert_eq!(made.mask.to_f64().iter().sum::<f64>(), total as f64);
}

#[test]
fn small_empty_and_wrong_images() {
    let options = PointCloudOptions::default();
    let pixel = point_clouds(&bytes(&[1, 1, 1], &[255]), &options).unwrap();
    assert_eq!(pixel.tokens, array(&[1, 1, 3], ArrayValues::F32(vec![0.0, 0.0, 1.0])));
    for max_points in [None, Some(7)] {
        let none =
            point_clouds(&bytes(&[0, 28, 28], &[]), &PointCloudOptions { max_points, ..options }).unwrap();
        assert_eq!(none.tokens.shape(), [0, max_points.unwrap_or(0), 3]);
    }
    let with_places = |max_points| PointCloudOptions { max_points: Some(max_points), ..options };
    let scaled = |means, scales| {
        let scaling = TokenScaling::Given(TokenScale { means, scales });
        PointCloudOptions { scaling, ..options }
    };
    let two = bytes(&[1, 1, 2], &[1, 2]);
    for (images, options, part) in [
        (two.clone(), with_places(0), "`max_points` is 0"),
        (two.clone(), with_places(usize::MAX), "bytes are made; ask for less"),
        (two.clone(), with_places(1 << 40), "the tokens would be an array of shape [1, 1099511627776, 3]"),
        (two.clone(), scaled([f64::NAN, 0.0, 0.0], [1.0; 3]), "`token means` is NaN"),
        (two.clone(), scaled([0.0; 3], [1.0, 0.0, 1.0]), "`token scales` is 0"),
        (bytes(&[2, 1, 1], &[0, 0]), options, "no image has a point"),
        (bytes(&[2, 0, 1], &[]), with_places(3), "the images have none"),
        (bytes(&[usize::MAX, 0, 1], &[]), with_places(3), "the images have none"),
        (bytes(&[1, 2, 1, 1], &[0, 0]), options, "images of one channel"),
        (bytes(&[2], &[0, 0]), options, "three dimensions"),
        (array(&[1, 1, 1], ArrayValues::F64(vec![f64::NAN])), options, "NaN at position [0, 0, 0]"),
    ] {
        let error = point_clouds(&images, &options).unwrap_err();
        assert!(matches!(error, DataError::Argument { .. } | DataError::Oversized { .. }));
        assert!(error.to_string().contains(part), "{error}");
    }
}
