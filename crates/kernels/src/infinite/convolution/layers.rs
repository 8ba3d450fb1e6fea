//! Layers of networks on images, and whether they fit one another.

use crate::infinite::Activation;

/// What is added around an image before a convolution.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Padding {
    /// Nothing: filters stay inside, and images become smaller.
    #[default]
    Valid,
    /// Zeros, such that with a stride of 1 images keep their size; of an odd number the larger part comes behind.
    Same,
}

/// A layer of a [`super::ConvolutionalNetwork`]; sizes are `[height, width]`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ImageLayer {
    /// Sums over all channels of what a filter sees.
    Convolution {
        /// The filter's size.
        filter: [usize; 2],
        /// How far it moves.
        stride: [usize; 2],
        /// What stands around the image.
        padding: Padding,
    },
    /// Means over windows that stay inside of the image.
    AveragePool {
        /// The window's size.
        window: [usize; 2],
        /// How far it moves.
        stride: [usize; 2],
    },
    /// An activation, behind a convolution or a fully connected layer.
    Activation(Activation),
    /// A fully connected layer, which sees all positions and channels.
    Dense,
}

/// Largest height or width, number of channels, and number of layers.
pub(crate) const LARGEST: usize = 1024;
pub(crate) const DEEPEST: usize = 64;

/// Why layers are no network on such images.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ImageLayerError {
    /// A size of images that is 0, or far too large.
    #[error("images of {} x {} x {} (channels, height, width); each of them is from 1 to {LARGEST}", shape[0], shape[1], shape[2])]
    Shape {
        /// Channels, height, width.
        shape: [usize; 3],
    },
    /// Rows that have another number of columns than images have numbers.
    #[error("images of {} x {} x {} (channels, height, width) are rows of {} columns; the kernel looks at {columns}", shape[0], shape[1], shape[2], shape[0] * shape[1] * shape[2])]
    Columns {
        /// Channels, height, width.
        shape: [usize; 3],
        /// Columns that the kernel looks at.
        columns: usize,
    },
    /// No layers, or far too many.
    #[error("{count} layers; a network has 1 to {DEEPEST}, such as `conv=3, relu`")]
    Count {
        /// How many.
        count: usize,
    },
    /// A filter, a window or a stride of 0.
    #[error("filters, windows and strides are 1 or more")]
    Zero {
        /// The layer, counted from 0.
        layer: usize,
    },
    /// A filter or a window that is larger than the image.
    #[error("{} x {} does not fit into the {} x {} that the layers before leave of an image", size[0], size[1], image[0], image[1])]
    Fit {
        /// The layer, counted from 0.
        layer: usize,
        /// Height and width of the filter or the window.
        size: [usize; 2],
        /// Height and width of the image in front of it.
        image: [usize; 2],
    },
    /// A convolution or a pool behind a fully connected layer.
    #[error("behind a fully connected layer there are no positions left")]
    BehindDense {
        /// The layer, counted from 0.
        layer: usize,
    },
    /// An activation that is not behind sums of many terms.
    #[error(
        "an activation stands behind a convolution or a `dense`, with no other activation between: elsewhere it does not see normal sums"
    )]
    NoSums {
        /// The layer, counted from 0.
        layer: usize,
    },
    /// A fully connected layer without an activation.
    #[error(
        "a `dense` has an activation behind it; the layer without one at the end is the read-out layer, which is there unless it is switched off"
    )]
    NoActivation {
        /// The layer, counted from 0.
        layer: usize,
    },
    /// More pairs of positions than can be kept for a pair of images.
    #[error(
        "a pair of images would take {pairs} pairs of positions in one layer, and there is room for {most}; pool earlier, with smaller windows or larger strides"
    )]
    Pairs {
        /// How many.
        pairs: usize,
        /// How many there may be.
        most: usize,
    },
}

impl ImageLayerError {
    /// The layer that does not fit, counted from 0, where it is one.
    pub fn layer(&self) -> Option<usize> {
        match *self {
            Self::Zero { layer }
            | Self::Fit { layer, .. }
            | Self::BehindDense { layer }
            | Self::NoSums { layer }
            | Self::NoActivation { layer } => Some(layer),
            Self::Shape { .. } | Self::Columns { .. } | Self::Count { .. } | Self::Pairs { .. } => None,
        }
    }
}

/// Whether images are of a size that there is, and none that would take all memory.
pub(crate) fn fits(shape: [usize; 3]) -> bool {
    shape.iter().all(|size| (1..=LARGEST).contains(size))
}

/// Whether images of a shape `[channels, height, width]` can go through some layers. Allocates nothing.
///
/// # Errors
/// [`ImageLayerError`], except for the number of columns and of pairs.
pub(crate) fn check(shape: [usize; 3], layers: &[ImageLayer]) -> Result<(), ImageLayerError> {
    if !fits(shape) {
        return Err(ImageLayerError::Shape { shape });
    }
    if !(1..=DEEPEST).contains(&layers.len()) {
        return Err(ImageLayerError::Count { count: layers.len() });
    }
    let mut image = [shape[1], shape[2]];
    // Whether a fully connected layer was there; whether there are normal sums that no activation has taken.
    let (mut flat, mut sums) = (false, false);
    for (layer, &this) in layers.iter().enumerate() {
        match this {
            ImageLayer::Convolution { .. } | ImageLayer::AveragePool { .. } if flat => {
                return Err(ImageLayerError::BehindDense { layer });
            }
            ImageLayer::Convolution { filter: size, stride, .. }
            | ImageLayer::AveragePool { window: size, stride } => {
                if [size, stride].concat().contains(&0) {
                    return Err(ImageLayerError::Zero { layer });
                }
                let slides = [0, 1].map(|axis| this.slide(image[axis], axis));
                let [Some(rows), Some(columns)] = slides else {
                    return Err(ImageLayerError::Fit { layer, size, image });
                };
                image = [rows.outputs, columns.outputs];
                sums |= matches!(this, ImageLayer::Convolution { .. });
            }
            ImageLayer::Activation(_) if !sums => return Err(ImageLayerError::NoSums { layer }),
            ImageLayer::Activation(_) => sums = false,
            ImageLayer::Dense => {
                if !matches!(layers.get(layer + 1), Some(ImageLayer::Activation(_))) {
                    return Err(ImageLayerError::NoActivation { layer });
                }
                (flat, sums) = (true, true);
            }
        }
    }
    Ok(())
}

/// A filter or a window along one axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slide {
    /// Positions in front of it.
    pub(super) inputs: usize,
    /// Positions behind it.
    pub(super) outputs: usize,
    pub(super) size: usize,
    pub(super) stride: usize,
    /// Zeros before the first position.
    pub(super) before: usize,
}

impl Slide {
    /// Where tap d of output p stands, if that is inside.
    pub(super) fn tap(&self, p: usize, d: usize) -> Option<usize> {
        (p * self.stride + d).checked_sub(self.before).filter(|&at| at < self.inputs)
    }
}

impl ImageLayer {
    /// What it does along one axis (0: height, 1: width) of so many positions; None where it does not fit, or moves along none.
    pub(super) fn slide(self, inputs: usize, axis: usize) -> Option<Slide> {
        let (size, stride, padding) = match self {
            Self::Convolution { filter, stride, padding } => (filter[axis], stride[axis], padding),
            Self::AveragePool { window, stride } => (window[axis], stride[axis], Padding::Valid),
            Self::Activation(_) | Self::Dense => return None,
        };
        let (outputs, before) = match padding {
            Padding::Valid => (inputs.checked_sub(size)? / stride + 1, 0),
            Padding::Same => {
                let outputs = inputs.div_ceil(stride);
                let spread = ((outputs - 1) * stride).saturating_add(size);
                (outputs, spread.saturating_sub(inputs) / 2)
            }
        };
        Some(Slide { inputs, outputs, size, stride, before })
    }
}
