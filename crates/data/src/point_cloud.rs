//! Images as sets of tokens: one token (column, row, intensity) for each pixel that is not black. This turns MNIST into
//! PointCloud-MNIST, on which small transformers are trained.
//!
//! Images have different numbers of such pixels, but arrays have one shape: every image gets the same number of places. An image
//! with more points is cut, one with fewer is filled up, and what was done is counted in [`PointClouds`].
//!
//! Source: the point-cloud form of MNIST as used for transformers in J. Antorán, D. Janz, J. U. Allingham, E. Daxberger,
//! R. Barbano, E. Nalisnick, J. M. Hernández-Lobato, "Adapting the linearised Laplace model evidence for modern deep learning", ICML 2022. The
//! paper leaves scaling, order and padding open; the choices here are this project's.

use crate::arrays::each_type;
use crate::limits::{check_memory, finite_at_least};
use crate::standardise::mean_and_scale;
use crate::transform::{Geometry, ImageFormat, require_pixels};
use crate::{ArrayValues, DataError, NumericArray};
use rayon::prelude::*;

/// Which points stay when an image has more than there are places.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KeptPoints {
    /// Those with the highest intensity; of equal ones, the first. They stay in row-major order.
    #[default]
    Brightest,
    /// The first in row-major order.
    First,
}

/// What the places without a point hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Padding {
    /// The image's points again, from the first on, for networks that use no mask.
    #[default]
    Repeat,
    /// Zeros, for networks that use the mask.
    Zero,
}

/// Means and scales of the three coordinates of tokens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TokenScale {
    /// Subtracted from column, row and intensity, each scaled to [0, 1] before.
    pub means: [f64; 3],
    /// What they are then divided by; finite and positive.
    pub scales: [f64; 3],
}

/// Units of the coordinates.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum TokenScaling {
    /// Column over W - 1, row over H - 1 (0 for a side of one pixel), intensity over white: each in [0, 1].
    #[default]
    UnitInterval,
    /// These, brought to mean 0 and population standard deviation 1 over the kept points of all images.
    Standardised,
    /// These, with the scale that training images had (see [`PointClouds::scale`]).
    Given(TokenScale),
}

/// How tokens are made.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PointCloudOptions {
    /// Layout and white of the images.
    pub format: ImageFormat,
    /// Places for each image; as many as the image with the most points has when absent.
    pub max_points: Option<usize>,
    /// Which points stay when there are more.
    pub kept: KeptPoints,
    /// What fills places up.
    pub padding: Padding,
    /// Units.
    pub scaling: TokenScaling,
}

/// Tokens of N images in T places each, and what was cut and filled.
#[derive(Clone, Debug, PartialEq)]
pub struct PointClouds {
    /// N x T x 3 in single precision: column, row, intensity.
    pub tokens: NumericArray,
    /// N x T: 1 for a point, 0 for a place that was filled up, repeats included.
    pub mask: NumericArray,
    /// Means and scales used: 0 and 1 for [`TokenScaling::UnitInterval`].
    pub scale: TokenScale,
    /// Points that each image had before any was cut (N).
    pub counts: Vec<usize>,
    /// Images that lost points.
    pub cut_images: usize,
    /// Points lost in all images together.
    pub cut_points: usize,
    /// Images without a point. All their places hold 0, whatever the padding, and their mask is 0.
    pub empty_images: usize,
}

/// Turns images of one channel into tokens.
///
/// A set without images gives arrays without values. Cost: two passes over the images and 12 bytes for each place.
///
/// # Errors
/// [`DataError::Argument`] for images that do not have one channel, values outside 0 and white, no places (none asked for, or no
/// image with a point), or a given scale that is not finite and positive; [`DataError::Oversized`] for tokens beyond 8 GiB.
pub fn point_clouds(images: &NumericArray, options: &PointCloudOptions) -> Result<PointClouds, DataError> {
    let geometry = Geometry::of(images, options.format.channels)?;
    let argument =
        |argument, value, reason: &str| DataError::Argument { argument, value, reason: reason.into() };
    if geometry.channels != 1 {
        let value = format!("an array of shape {:?}", images.shape());
        return Err(argument(
            "images",
            value,
            "points are made from images of one channel; average the channels first",
        ));
    }
    require_pixels(images, options.format.white)?;
    if let TokenScaling::Given(TokenScale { means, scales }) = options.scaling {
        means.iter().try_for_each(|mean| finite_at_least("token means", mean.abs(), 0.0))?;
        scales.iter().try_for_each(|scale| finite_at_least("token scales", *scale, f64::MIN_POSITIVE))?;
    }
    let count = images.examples();
    if images.is_empty() && count > 0 {
        let value = format!("an array of shape {:?}", images.shape());
        return Err(argument("images", value, "points are made from pixels, but the images have none"));
    }
    let size = if count > 0 { geometry.size() } else { 0 };
    let counts = if count > 0 { count_points(images, size) } else { Vec::new() };
    let most = counts.iter().copied().max().unwrap_or(0);
    let places = match options.max_points {
        Some(0) => {
            return Err(argument("max_points", "0".into(), "there must be a place for at least one point"));
        }
        Some(places) => places,
        None if most == 0 && count > 0 => {
            return Err(argument(
                "images",
                "black".into(),
                "no image has a point; check the images or give max_points",
            ));
        }
        None => most,
    };
    check_memory("tokens", &[count, places, 3], size_of::<f32>())?;
    let value = |index: usize| images.values().at(index);
    let kept = |image: usize| kept_points(&geometry, image * size, places, options, value);
    let scale = match options.scaling {
        TokenScaling::UnitInterval => TokenScale { means: [0.0; 3], scales: [1.0; 3] },
        TokenScaling::Given(scale) => scale,
        TokenScaling::Standardised => {
            let points: Vec<[f64; 3]> = (0..count).flat_map(&kept).collect();
            let each: [(f64, f64); 3] =
                std::array::from_fn(|c| mean_and_scale(|i| points[i][c], points.len()));
            TokenScale { means: each.map(|e| e.0), scales: each.map(|e| e.1) }
        }
    };
    let mut tokens = vec![0.0f32; count * places * 3];
    let mut mask = vec![0u8; count * places];
    let rows = tokens.par_chunks_mut(3 * places.max(1)).zip(mask.par_chunks_mut(places.max(1)));
    rows.enumerate().for_each(|(image, (tokens, mask))| {
        let points = kept(image);
        let scaled = |point: &[f64; 3]| -> [f32; 3] {
            std::array::from_fn(|c| ((point[c] - scale.means[c]) / scale.scales[c]) as f32)
        };
        let filled = match options.padding {
            Padding::Repeat => places,
            Padding::Zero => points.len(),
        };
        let (tokens, _) = tokens.as_chunks_mut::<3>();
        tokens.iter_mut().zip(points.iter().cycle()).take(filled).for_each(|(to, point)| *to = scaled(point));
        mask[..points.len()].fill(1);
    });
    Ok(PointClouds {
        tokens: NumericArray::new(vec![count, places, 3], ArrayValues::F32(tokens))?,
        mask: NumericArray::new(vec![count, places], ArrayValues::U8(mask))?,
        scale,
        cut_images: counts.iter().filter(|c| **c > places).count(),
        cut_points: counts.iter().map(|c| c.saturating_sub(places)).sum(),
        empty_images: count - counts.iter().filter(|c| **c > 0).count(),
        counts,
    })
}

/// Pixels that are not black, image by image.
fn count_points(images: &NumericArray, size: usize) -> Vec<usize> {
    fn count<T: Copy + Default + PartialEq + Sync>(values: &[T], size: usize) -> Vec<usize> {
        values.par_chunks(size).map(|image| image.iter().filter(|v| **v != T::default()).count()).collect()
    }
    each_type!(images.values(), values => count(values, size))
}

/// The points of the image whose values begin at `start`, at most as many as there are places, in row-major order.
fn kept_points(
    geometry: &Geometry,
    start: usize,
    places: usize,
    options: &PointCloudOptions,
    value: impl Fn(usize) -> f64,
) -> Vec<[f64; 3]> {
    let part = |at: usize, size: usize| if size > 1 { at as f64 / (size - 1) as f64 } else { 0.0 };
    let (height, width) = (geometry.height, geometry.width);
    let points = (0..height).flat_map(|row| (0..width).map(move |column| (row, column))).filter_map(
        |(row, column)| {
            let intensity = value(start + row * geometry.row_stride + column * geometry.column_stride);
            (intensity != 0.0)
                .then(|| [part(column, width), part(row, height), intensity / options.format.white])
        },
    );
    match options.kept {
        KeptPoints::First => points.take(places).collect(),
        KeptPoints::Brightest => {
            let mut points: Vec<[f64; 3]> = points.collect();
            if points.len() > places {
                let mut order: Vec<usize> = (0..points.len()).collect();
                order.sort_by(|a, b| points[*b][2].total_cmp(&points[*a][2]));
                order.truncate(places);
                order.sort_unstable();
                points = order.into_iter().map(|i| points[i]).collect();
            }
            points
        }
    }
}
