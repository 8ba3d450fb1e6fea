//! The same images rotated or corrupted, to see how predictions hold up away from the training data.

use crate::{ModelData, ModelError};
use posterior_data::ArrayValues;
use posterior_data::transform::{ChannelOrder, Corruption, ImageFormat, Interpolation, corrupt, rotate};
use posterior_linalg::random::Streams;

/// A change of images.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Shift {
    /// Turned about the centre, bilinear, by degrees.
    Rotation(f64),
    /// One of the corruptions at a severity from 0, none, to 5.
    Corruption(Corruption, u8),
}

impl ModelData {
    /// The changed images, with the same truths. Bytes are taken to reach from 0 to 255, other numbers from 0 to 1.
    ///
    /// # Errors
    /// When the inputs are no images `[examples, (channels,) height, width]`.
    pub fn shifted(&self, shift: Shift, seed: u64) -> Result<Self, ModelError> {
        let inputs = match shift {
            Shift::Rotation(degrees) => {
                rotate(&self.inputs, ChannelOrder::First, degrees, Interpolation::Bilinear)?
            }
            Shift::Corruption(kind, severity) => {
                let white = if matches!(self.inputs.values(), ArrayValues::U8(_)) { 255.0 } else { 1.0 };
                let format = ImageFormat { channels: ChannelOrder::First, white };
                corrupt(&self.inputs, format, kind, severity, Streams::new(seed))?
            }
        };
        Ok(Self { inputs, table: None, ..self.clone() })
    }
}
