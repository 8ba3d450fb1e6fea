//! Pictures of bytes with their labels, from files: cut, framed and made grey to the shape of others.

use crate::error::{ExperimentError, Result, refused};
use posterior_data::{ArrayValues, ImageSet, NumericArray, ReadOptions};
use posterior_models::laplace::Arrays;
use posterior_models::network::{NetworkFile, Strip, open_network};
use posterior_networks::train::{Augmentation, Images, Targets};
use posterior_networks::{Network, Operation, Precision};
use std::path::{Path, PathBuf};

/// A file whose path is counted from `base`.
///
/// # Errors
/// [`ExperimentError::MissingData`].
fn file(base: &Path, path: &Path) -> Result<PathBuf> {
    let path = base.join(path);
    if path.exists() {
        return Ok(path);
    }
    let remedy = "put the file there, or change the path in the experiment".into();
    Err(ExperimentError::MissingData { path, remedy })
}

/// A network that came with its weights, less a softmax at its end.
///
/// # Errors
/// [`ExperimentError::MissingData`], and files that hold no network.
pub(crate) fn network<T: Precision>(base: &Path, path: &Path) -> Result<Network<T>> {
    let path = file(base, path)?;
    let file = NetworkFile { strip: Strip::SoftmaxIfThere, ..NetworkFile::new(&path) };
    Ok(open_network::<T>(&file)?.network)
}

/// The node whose values the last, fully connected layer of a network reads.
///
/// # Errors
/// A network that does not end so.
pub(crate) fn before_last_layer<T: Precision>(network: &Network<T>) -> Result<usize> {
    let graph = network.graph();
    let last = graph.output().node().map(|i| &graph.nodes()[i]);
    let linear = last.filter(|node| matches!(node.operation, Operation::Linear(_)));
    match linear.and_then(|node| node.inputs.first()?.node()) {
        Some(read) => Ok(read),
        None => refused("the network does not end in a linear layer behind others"),
    }
}

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
    ) -> Result<Self> {
        let at = |paths: &[PathBuf]| paths.iter().map(|p| file(base, p)).collect::<Result<Vec<_>, _>>();
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

    /// Refuses labels beyond a number of classes.
    ///
    /// # Errors
    /// [`ExperimentError::Setting`].
    pub(crate) fn check_labels(&self, classes: usize) -> Result<()> {
        match self.labels.iter().find(|l| **l as usize >= classes) {
            Some(label) => refused(format!("there is a label {label}, but `classes` is {classes}")),
            None => Ok(()),
        }
    }

    /// Examples for a network that takes inputs of a shape: channels less their means, over their deviations, on the scale of 0 to 1.
    ///
    /// # Errors
    /// Images of another size, and numbers that are not those of the channels.
    pub(crate) fn standardised(
        self,
        (mean, deviation): (&[f64], &[f64]),
        input: &[usize],
    ) -> Result<Images<f32>> {
        let (shape, channels) = (self.shape, self.shape[0]);
        if input.iter().product::<usize>() != shape.iter().product::<usize>() {
            return refused(format!("the network takes inputs of shape {input:?}, images have {shape:?}"));
        }
        if [mean.len(), deviation.len()] != [channels; 2] || !deviation.iter().all(|d| *d > 0.0) {
            return refused(format!("`mean` and `deviation` have {channels} numbers, deviations positive"));
        }
        let targets = Targets::Classes(self.labels);
        let (bytes, usual) = (self.bytes, Augmentation::default());
        Ok(Images::new(shape, bytes, targets, mean, deviation, usual, input.to_vec()))
    }

    /// Some of the images.
    ///
    /// # Errors
    /// When they are too many for one array.
    pub(crate) fn array(&self, images: std::ops::Range<usize>) -> Result<NumericArray> {
        let size: usize = self.shape.iter().product();
        let bytes = self.bytes[images.start * size..images.end * size].to_vec();
        Ok(NumericArray::new([&[images.len()], &self.shape[..]].concat(), ArrayValues::U8(bytes))?)
    }

    /// Some of the images with their labels.
    ///
    /// # Errors
    /// As [`Self::array`].
    pub(crate) fn arrays(&self, images: std::ops::Range<usize>) -> Result<Arrays> {
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
