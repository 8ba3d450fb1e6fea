//! How pixels are laid out and what their values mean.

use crate::limits::finite_at_least;
use crate::{DataError, NumericArray};

/// Where the channels stand in images of four dimensions. Images of three dimensions, N x H x W, have one channel either way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ChannelOrder {
    /// N x C x H x W, as in CIFAR's binary files and in PyTorch.
    #[default]
    First,
    /// N x H x W x C, as in most image files and in the published CIFAR-10-C arrays.
    Last,
}

/// Layout of the pixels and their range.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ImageFormat {
    /// Where the channels stand.
    pub channels: ChannelOrder,
    /// The value of a fully lit pixel; black is 0. Results are clipped to 0 and this.
    pub white: f64,
}

impl Default for ImageFormat {
    /// Channels first, white at 255.
    fn default() -> Self {
        Self { channels: ChannelOrder::First, white: 255.0 }
    }
}

/// Sizes of images and the distances in memory from a pixel to its neighbours.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Geometry {
    pub(crate) channels: usize,
    pub(crate) height: usize,
    pub(crate) width: usize,
    pub(crate) channel_stride: usize,
    pub(crate) row_stride: usize,
    pub(crate) column_stride: usize,
}

impl Geometry {
    /// Of the images; they may be empty.
    pub(crate) fn of(images: &NumericArray, order: ChannelOrder) -> Result<Self, DataError> {
        let (channels, height, width) = match (images.shape(), order) {
            ([_, height, width], _) => (1, *height, *width),
            ([_, channels, height, width], ChannelOrder::First) => (*channels, *height, *width),
            ([_, height, width, channels], ChannelOrder::Last) => (*channels, *height, *width),
            (shape, _) => {
                return Err(DataError::Argument {
                    argument: "images",
                    value: format!("an array of shape {shape:?}"),
                    reason: "images have three dimensions, N x H x W, or four with channels".into(),
                });
            }
        };
        let planes = images.shape().len() == 3 || order == ChannelOrder::First;
        let (channel_stride, column_stride) =
            if planes { (height.saturating_mul(width), 1) } else { (1, channels) };
        let row_stride = width.saturating_mul(column_stride);
        Ok(Self { channels, height, width, channel_stride, row_stride, column_stride })
    }

    /// Values of one image; for images that are not empty, so that it is no larger than the array.
    pub(crate) fn size(&self) -> usize {
        self.channels * self.height * self.width
    }
}

/// That white is a positive number and all values lie between 0 and it.
pub(crate) fn require_pixels(images: &NumericArray, white: f64) -> Result<(), DataError> {
    finite_at_least("white", white, f64::MIN_POSITIVE)?;
    let outside = |_, v: f64| !(0.0..=white).contains(&v);
    let Some((index, value)) = images.values().find(outside) else {
        return Ok(());
    };
    Err(DataError::Argument {
        argument: "images",
        value: format!("{value} at position {:?}, counted from 0", images.position(index)),
        reason: format!(
            "pixels lie between 0 and {white}, the value of white; give the images before they are standardised, or another white"
        ),
    })
}
