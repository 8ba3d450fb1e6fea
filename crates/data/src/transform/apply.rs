//! What each corruption does to one image.

use super::Geometry;
use rand::Rng;
use rand_distr::{Distribution, Poisson, StandardNormal};

/// Adds independent normal numbers.
pub(super) fn add_noise(pixels: &mut [f64], deviation: f64, rng: &mut impl Rng) {
    for value in pixels {
        let noise: f64 = StandardNormal.sample(rng);
        *value += deviation * noise;
    }
}

/// Replaces each value by a Poisson count with mean `value * per_unit`, over `per_unit`.
pub(super) fn shoot(pixels: &mut [f64], per_unit: f64, rng: &mut impl Rng) {
    for value in pixels {
        // A mean of 0 is no Poisson distribution to the library; its count is 0, the value there is.
        if let Ok(counts) = Poisson::new(*value * per_unit) {
            *value = counts.sample(rng) / per_unit;
        }
    }
}

/// Normal weights of the given standard deviation in pixels, cut off at four of them, first along rows and then along columns.
/// The pixels at the edge stand for what is outside.
pub(super) fn blur(geometry: &Geometry, pixels: &mut [f64], scratch: &mut [f64], deviation: f64) {
    let radius = (4.0 * deviation).ceil() as usize;
    let mut weights: Vec<f64> =
        (0..=2 * radius).map(|k| (-0.5 * ((k as f64 - radius as f64) / deviation).powi(2)).exp()).collect();
    let total: f64 = weights.iter().sum();
    weights.iter_mut().for_each(|w| *w /= total);
    let g = geometry;
    for channel in 0..g.channels {
        let start = channel * g.channel_stride;
        // One line of pixels: `count` of them, `stride` apart.
        let line = |from: &[f64], to: &mut [f64], start: usize, stride: usize, count: usize| {
            for at in 0..count {
                let neighbour = |k: usize| (at + k).saturating_sub(radius).min(count - 1);
                to[start + at * stride] =
                    weights.iter().enumerate().map(|(k, w)| w * from[start + neighbour(k) * stride]).sum();
            }
        };
        for row in 0..g.height {
            line(pixels, scratch, start + row * g.row_stride, g.column_stride, g.width);
        }
        for column in 0..g.width {
            line(scratch, pixels, start + column * g.column_stride, g.row_stride, g.height);
        }
    }
}

/// Multiplies the differences from the mean of each channel.
pub(super) fn change_contrast(geometry: &Geometry, pixels: &mut [f64], factor: f64) {
    for channel in 0..geometry.channels {
        change_block(geometry, pixels, channel, (0, geometry.height), (0, geometry.width), factor);
    }
}

/// Replaces each block by its mean. There are `part` as many blocks as pixels along each side, but at least one.
pub(super) fn pixelate(geometry: &Geometry, pixels: &mut [f64], part: f64) {
    let blocks = |size: usize| ((part * size as f64).round() as usize).clamp(1, size);
    // In u128, since a side may be as long as the array.
    let edge = |k: usize, size: usize| (k as u128 * size as u128 / blocks(size) as u128) as usize;
    let (height, width) = (geometry.height, geometry.width);
    for channel in 0..geometry.channels {
        for i in 0..blocks(height) {
            let rows = (edge(i, height), edge(i + 1, height));
            for j in 0..blocks(width) {
                let columns = (edge(j, width), edge(j + 1, width));
                change_block(geometry, pixels, channel, rows, columns, 0.0);
            }
        }
    }
}

/// `mean + factor (value - mean)` in a block with that mean.
fn change_block(
    geometry: &Geometry,
    pixels: &mut [f64],
    channel: usize,
    rows: (usize, usize),
    columns: (usize, usize),
    factor: f64,
) {
    let each = || {
        (rows.0..rows.1).flat_map(move |row| {
            (columns.0..columns.1).map(move |column| {
                channel * geometry.channel_stride
                    + row * geometry.row_stride
                    + column * geometry.column_stride
            })
        })
    };
    let count = (rows.1 - rows.0) * (columns.1 - columns.0);
    // From the first value onwards: exact where all are equal, and never beyond the largest number.
    let Some(first) = each().next().map(|at| pixels[at]) else { return };
    let mean = first + each().map(|at| (pixels[at] - first) / count as f64).sum::<f64>();
    each().for_each(|at| pixels[at] = mean + factor * (pixels[at] - mean));
}
