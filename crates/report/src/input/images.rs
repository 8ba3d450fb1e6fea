//! Pictures, with predictions or alone.

use serde::{Deserialize, Serialize};

/// How the bytes of a picture are ordered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ImageLayout {
    /// Grey values [height, width].
    #[default]
    Grey,
    /// Red, green and blue planes [3, height, width].
    ColourPlanes,
    /// Red, green and blue of each pixel [height, width, 3].
    ColourPixels,
}

/// A picture of bytes. One with a side of 0 or more than [`Image::LONGEST_SIDE`], or with the wrong number of bytes, is left out and counted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Image {
    /// Order of the bytes.
    pub layout: ImageLayout,
    /// Rows of pixels.
    pub height: usize,
    /// Pixels per row.
    pub width: usize,
    /// The bytes: 0 is dark.
    pub pixels: Vec<u8>,
}

impl Image {
    /// Pictures with a longer side are not drawn.
    pub const LONGEST_SIDE: usize = 512;
}

/// A picture with the probabilities that a method gave its classes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ImagePrediction {
    /// The picture.
    pub image: Image,
    /// The true class, if there is one (not for out-of-distribution pictures).
    pub label: Option<usize>,
    /// One probability per class.
    pub probabilities: Vec<f64>,
}

/// Pictures with predictions; the first 12 that can be drawn are shown.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ImageGallery {
    /// Heading.
    pub title: String,
    /// Names of the classes; missing ones are numbered.
    pub class_names: Vec<String>,
    /// The pictures in order.
    pub images: Vec<ImagePrediction>,
    /// How to read it; may be empty.
    pub caption: String,
}

/// One picture of pixels by itself. One that [cannot be drawn](Image) is left out, and its caption says so.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Picture {
    /// Heading, which is read out where the picture cannot be seen.
    pub title: String,
    /// The picture.
    pub image: Image,
    /// What is to be seen; may be empty.
    pub caption: String,
}
