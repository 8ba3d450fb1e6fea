//! Images turned about their centre.

use super::pixels::{change_each, gather};
use super::{ChannelOrder, Geometry};
use crate::limits::check_memory;
use crate::{DataError, NumericArray};

/// How the value at a place between pixels is found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Interpolation {
    /// The pixel whose centre is nearest; of two at one distance (to 1e-9 of a pixel), the one with the larger index.
    #[default]
    Nearest,
    /// The four pixels around the place, weighted by their nearness along rows and columns; pixels outside the image count as 0.
    Bilinear,
}

/// Turns each image counter-clockwise, as seen with the first row on top, by an angle in degrees about its centre, the point
/// ((H - 1)/2, (W - 1)/2). The size stays: corners are cut off, and what comes from outside is 0. Multiples of 360 degrees give the
/// images back, multiples of 90 are exact for square images. Whole-numbered pixels are rounded to the nearest.
///
/// Images without values (N, C, H or W of 0) come back as they are. Values may be any numbers, and need not be finite; bilinear
/// interpolation spreads those that are not.
///
/// Cost: one pass over the values; besides the result, a table of 16 bytes for each value of one image (bilinear: 64 for each of its
/// pixels).
///
/// # Errors
/// [`DataError::Argument`] for an angle that is not finite or an array that has neither three nor four dimensions;
/// [`DataError::Oversized`] for a single image whose table is beyond 8 GiB.
pub fn rotate(
    images: &NumericArray,
    channels: ChannelOrder,
    degrees: f64,
    interpolation: Interpolation,
) -> Result<NumericArray, DataError> {
    let geometry = Geometry::of(images, channels)?;
    if !degrees.is_finite() {
        let reason = "an angle is a finite number of degrees".into();
        return Err(DataError::Argument { argument: "degrees", value: degrees.to_string(), reason });
    }
    if images.is_empty() {
        return Ok(images.clone());
    }
    let values = match interpolation {
        Interpolation::Nearest => gather(images, &nearest(&geometry, degrees)?),
        Interpolation::Bilinear => {
            let map = BilinearRotation::new(&geometry, degrees)?;
            change_each(images, geometry.size(), |_, pixels, scratch| map.apply(&geometry, pixels, scratch))?
        }
    };
    NumericArray::new(images.shape().to_vec(), values)
}

/// Sine and cosine, exact for multiples of 90 degrees.
fn sine_cosine(degrees: f64) -> (f64, f64) {
    let reduced = degrees.rem_euclid(360.0);
    match reduced {
        90.0 => (1.0, 0.0),
        180.0 => (0.0, -1.0),
        270.0 => (-1.0, 0.0),
        // The remainder of a tiny negative angle rounds to 360 itself.
        360.0 => (0.0, 1.0),
        _ => reduced.to_radians().sin_cos(),
    }
}

/// Row and column, in pixels, from which each pixel of the turned image comes, in row-major order.
fn places(geometry: &Geometry, degrees: f64) -> impl Iterator<Item = (f64, f64)> {
    let (sine, cosine) = sine_cosine(degrees);
    let (rows, columns) = (geometry.height, geometry.width);
    let (middle_row, middle_column) = ((rows as f64 - 1.0) / 2.0, (columns as f64 - 1.0) / 2.0);
    (0..rows).flat_map(move |row| {
        let down = row as f64 - middle_row;
        (0..columns).map(move |column| {
            let right = column as f64 - middle_column;
            // Turning clockwise goes back to where the pixel was; rows count downwards.
            (middle_row + sine * right + cosine * down, middle_column + cosine * right - sine * down)
        })
    })
}

/// For each value of an image, the value of the image that it becomes.
fn nearest(geometry: &Geometry, degrees: f64) -> Result<Vec<Option<usize>>, DataError> {
    check_memory("table of a rotation", &[geometry.size()], size_of::<Option<usize>>())?;
    let index = |at: f64, size: usize| {
        let at = (at + 0.5 + 1e-9).floor();
        // Both bounds are exact: sizes of images in memory are far below 2^53.
        (at >= 0.0 && at < size as f64).then_some(at as usize)
    };
    let mut sources = vec![None; geometry.size()];
    for (pixel, (row, column)) in places(geometry, degrees).enumerate() {
        let Some((row, column)) = index(row, geometry.height).zip(index(column, geometry.width)) else {
            continue;
        };
        let from = row * geometry.row_stride + column * geometry.column_stride;
        let to = pixel * geometry.column_stride;
        for channel in 0..geometry.channels {
            let plane = channel * geometry.channel_stride;
            sources[plane + to] = Some(plane + from);
        }
    }
    Ok(sources)
}

/// The pixels, with their weights, that make up each pixel of a turned image.
pub(super) struct BilinearRotation {
    /// Offset within a plane and weight; a weight of 0 is not used.
    neighbours: Vec<[(usize, f64); 4]>,
}

impl BilinearRotation {
    pub(super) fn new(geometry: &Geometry, degrees: f64) -> Result<Self, DataError> {
        check_memory(
            "table of a rotation",
            &[geometry.height, geometry.width],
            size_of::<[(usize, f64); 4]>(),
        )?;
        let inside = |at: f64, size: usize| at >= 0.0 && at < size as f64;
        let of_place = |(row, column): (f64, f64)| {
            let (top, left) = (row.floor(), column.floor());
            let (down, right) = (row - top, column - left);
            [
                (top, left, (1.0 - down) * (1.0 - right)),
                (top, left + 1.0, (1.0 - down) * right),
                (top + 1.0, left, down * (1.0 - right)),
                (top + 1.0, left + 1.0, down * right),
            ]
            .map(|(row, column, weight)| {
                if !inside(row, geometry.height) || !inside(column, geometry.width) {
                    return (0, 0.0);
                }
                (row as usize * geometry.row_stride + column as usize * geometry.column_stride, weight)
            })
        };
        Ok(Self { neighbours: places(geometry, degrees).map(of_place).collect() })
    }

    /// Turns one image.
    pub(super) fn apply(&self, geometry: &Geometry, pixels: &mut Vec<f64>, scratch: &mut Vec<f64>) {
        for channel in 0..geometry.channels {
            let plane = channel * geometry.channel_stride;
            for (pixel, neighbours) in self.neighbours.iter().enumerate() {
                let parts = neighbours.iter().filter(|(_, weight)| *weight != 0.0);
                scratch[plane + pixel * geometry.column_stride] =
                    parts.map(|(at, weight)| weight * pixels[plane + at]).sum();
            }
        }
        std::mem::swap(pixels, scratch);
    }
}
