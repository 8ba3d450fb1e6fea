//! Pictures of bytes with their labels, from files: cut, framed and made grey to the shape of others.

use crate::error::{ExperimentError, refused};
use posterior_data::{ArrayValues, ImageSet, NumericArray, ReadOptions};
use posterior_models::laplace::Arrays;
use std::path::{Path, PathBuf};

/// Labelled images as bytes, `[images, channels, height, width]`.
pub(crate) struct Pictures {
    pub(crate) shape: [usize; 3],
    pub(crate) bytes: Vec<u8>,
    pub(crate) labels: Vec<u32>,
}

impl Pictures {
    /// The first `most` images of some files (all if absent), whose paths are counted from `base`.
    ///
    /// # Errors
    /// [`ExperimentError::MissingData`] where a file is not there; files that hold something else.
    pub(crate) fn read(
        base: &Path,
        images: &[PathBuf],
        labels: &[PathBuf],
        most: Option<usize>,
    ) -> Result<Self, ExperimentError> {
        let at = |paths: &[PathBuf]| -> Result<Vec<PathBuf>, ExperimentError> {
            let paths: Vec<PathBuf> = paths.iter().map(|p| base.join(p)).collect();
            match paths.iter().find(|p| !p.exists()) {
                Some(path) => Err(ExperimentError::MissingData {
                    path: path.clone(),
                    remedy: "put the file there, or change the path in the experiment".into(),
                }),
                None => Ok(paths),
            }
        };
        let set = ImageSet::read(&at(images)?, &at(labels)?, &ReadOptions::for_arrays())?;
        let shape = match *set.images.example_shape() {
            [height, width] => [1, height, width],
            [channels, height, width] => [channels, height, width],
            _ => return refused("images have two or three dimensions"),
        };
        let (_, values) = set.images.into_parts();
        let (ArrayValues::U8(mut bytes), Some(mut labels)) = (values, set.labels) else {
            return refused("the files hold no labelled images of bytes");
        };
        if let Some(most) = most {
            labels.truncate(most);
            bytes.truncate(labels.len() * shape.iter().product::<usize>());
        }
        Ok(Self { shape, bytes, labels })
    }

    /// Some of the images.
    ///
    /// # Errors
    /// When they are too many for one array.
    pub(crate) fn array(&self, images: std::ops::Range<usize>) -> Result<NumericArray, ExperimentError> {
        let size: usize = self.shape.iter().product();
        let bytes = self.bytes[images.start * size..images.end * size].to_vec();
        Ok(NumericArray::new([&[images.len()], &self.shape[..]].concat(), ArrayValues::U8(bytes))?)
    }

    /// Some of the images with their labels.
    ///
    /// # Errors
    /// As [`Self::array`].
    pub(crate) fn arrays(&self, images: std::ops::Range<usize>) -> Result<Arrays, ExperimentError> {
        let labels: Vec<i64> = self.labels[images.clone()].iter().map(|l| i64::from(*l)).collect();
        let targets = NumericArray::new(vec![labels.len()], ArrayValues::I64(labels))?;
        Ok(Arrays { inputs: self.array(images)?, targets })
    }

    /// The same images with as many channels, rows and columns as others: grey by the mean of the channels (or the same in each), cut or framed in black about the middle.
    pub(crate) fn like(&self, shape: [usize; 3]) -> Self {
        let [c, h, w] = self.shape;
        let [channels, height, width] = shape;
        let mut bytes = Vec::with_capacity(self.labels.len() * channels * height * width);
        for image in self.bytes.chunks_exact((c * h * w).max(1)) {
            let pixel = |channel: usize, row: usize, column: usize| -> u8 {
                let place = |i: usize, own: usize, new: usize| {
                    (i + own / 2).checked_sub(new / 2).filter(|i| *i < own)
                };
                let (Some(i), Some(j)) = (place(row, h, height), place(column, w, width)) else { return 0 };
                let value = |k: usize| u32::from(image[(k * h + i) * w + j]);
                if c == channels {
                    return value(channel) as u8;
                }
                ((0..c).map(value).sum::<u32>() / c as u32) as u8
            };
            for k in 0..channels {
                for i in 0..height {
                    bytes.extend((0..width).map(|j| pixel(k, i, j)));
                }
            }
        }
        Self { shape, bytes, labels: self.labels.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_take_the_shape_of_others() {
        let colour = Pictures { shape: [3, 4, 4], bytes: (0..48).collect(), labels: vec![0] };
        let grey = colour.like([1, 2, 2]);
        // The middle of each channel: 5, 6, 9, 10 with 16 more for each channel.
        assert_eq!(grey.bytes, [21, 22, 25, 26]);
        let framed = grey.like([3, 4, 4]);
        assert_eq!(framed.bytes[..16], [0, 0, 0, 0, 0, 21, 22, 0, 0, 25, 26, 0, 0, 0, 0, 0]);
        assert_eq!(framed.bytes[16..32], framed.bytes[..16]);
    }
}
