//! Seven kinds of corruption at five severities.

use super::apply::{add_noise, blur, change_contrast, pixelate, shoot};
use super::pixels::change_each;
use super::rotation::BilinearRotation;
use super::{Geometry, ImageFormat, require_pixels};
use crate::{DataError, NumericArray};
use posterior_linalg::random::Streams;
use rand::RngExt;

/// The number of severities: 1, the mildest, to this.
pub const SEVERITIES: u8 = 5;

/// A kind of corruption. Kinds and their sense follow Hendrycks and Dietterich 2019, "Benchmarking neural network robustness to
/// common corruptions and perturbations"; the amounts are this project's own, so that scores under them are not to be set beside
/// published ones on CIFAR-10-C and the like.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Corruption {
    /// Independent normal noise on every value; the amount is its standard deviation as a part of white.
    GaussianNoise,
    /// Every value becomes a Poisson count of light, independently; the amount is the mean count for white.
    ShotNoise,
    /// Averages with normal weights, channel by channel, the edge continued outwards; the amount is the standard deviation as a
    /// part of the shorter side.
    GaussianBlur,
    /// Differences from the mean of each image's channel are multiplied by the amount.
    Contrast,
    /// The amount, as a part of white, is added to every value.
    Brightness,
    /// Blocks become their mean; the amount is the number of blocks along a side as a part of its pixels.
    Pixelation,
    /// Turned about the centre, bilinear with zero fill; the amount is in degrees, its direction random for each image.
    Rotation,
}

impl Corruption {
    /// All kinds.
    pub const ALL: [Self; 7] = [
        Self::GaussianNoise,
        Self::ShotNoise,
        Self::GaussianBlur,
        Self::Contrast,
        Self::Brightness,
        Self::Pixelation,
        Self::Rotation,
    ];

    /// Name, as on a command line: `gaussian-noise`, `shot-noise`, `gaussian-blur`, `contrast`, `brightness`, `pixelation`,
    /// `rotation`.
    pub fn name(self) -> &'static str {
        match self {
            Self::GaussianNoise => "gaussian-noise",
            Self::ShotNoise => "shot-noise",
            Self::GaussianBlur => "gaussian-blur",
            Self::Contrast => "contrast",
            Self::Brightness => "brightness",
            Self::Pixelation => "pixelation",
            Self::Rotation => "rotation",
        }
    }

    /// The kind of that name.
    ///
    /// # Errors
    /// [`DataError::Argument`] with the names that there are.
    pub fn from_name(name: &str) -> Result<Self, DataError> {
        Self::ALL.into_iter().find(|kind| kind.name() == name).ok_or_else(|| DataError::Argument {
            argument: "corruption",
            value: format!("`{name}`"),
            reason: format!("the kinds are {}", Self::ALL.map(Self::name).join(", ")),
        })
    }

    /// What the severities 1 to 5 mean, in the unit named with each kind.
    pub fn amounts(self) -> [f64; SEVERITIES as usize] {
        match self {
            Self::GaussianNoise => [0.04, 0.08, 0.12, 0.18, 0.26],
            Self::ShotNoise => [60.0, 25.0, 12.0, 5.0, 3.0],
            Self::GaussianBlur => [0.015, 0.025, 0.035, 0.045, 0.06],
            Self::Contrast => [0.75, 0.6, 0.45, 0.3, 0.15],
            Self::Brightness => [0.1, 0.2, 0.3, 0.4, 0.5],
            Self::Pixelation => [0.8, 0.6, 0.45, 0.35, 0.25],
            Self::Rotation => [6.0, 12.0, 18.0, 24.0, 30.0],
        }
    }
}

/// Corrupts each image. Severity 0 gives the images back as they are, 1 to 5 the amounts of [`Corruption::amounts`]. Results are
/// clipped to 0 and white and have the element type of the images; whole numbers are rounded to the nearest.
///
/// The random numbers of an image depend on the seed, the kind and the image's index alone: not on the severity, so that
/// severities differ in the amount and in nothing else. Images without values come back as they are. On single pixels blur,
/// contrast, pixelation and rotation change nothing.
///
/// Cost: one pass over the values, for blur about a side's length in operations for each value at the highest severity.
///
/// # Errors
/// [`DataError::Argument`] for a severity above 5, a white that is not a positive number, an array that has neither three nor four
/// dimensions, or values outside 0 and white, NaN among them;
/// [`DataError::Oversized`] for a single image too large to be worked on in double precision.
pub fn corrupt(
    images: &NumericArray,
    format: ImageFormat,
    corruption: Corruption,
    severity: u8,
    streams: Streams,
) -> Result<NumericArray, DataError> {
    let geometry = Geometry::of(images, format.channels)?;
    require_pixels(images, format.white)?;
    if severity > SEVERITIES {
        let reason = format!("severities run from 0, no corruption, to {SEVERITIES}");
        return Err(DataError::Argument { argument: "severity", value: severity.to_string(), reason });
    }
    if severity == 0 || images.is_empty() {
        return Ok(images.clone());
    }
    let amount = corruption.amounts()[usize::from(severity) - 1];
    let white = format.white;
    let name = format!("data/corruption/{}", corruption.name());
    let rng = |index: usize| streams.child(&name, index as u64).stream("data/corruption/pixels");
    let side = geometry.height.min(geometry.width) as f64;
    // Both directions, for the one kind that needs them.
    let turned = (corruption == Corruption::Rotation)
        .then(|| {
            let by = |degrees| BilinearRotation::new(&geometry, degrees);
            Ok::<_, DataError>([by(amount)?, by(-amount)?])
        })
        .transpose()?;
    let values = change_each(images, geometry.size(), |index, pixels, scratch| {
        match corruption {
            Corruption::GaussianNoise => add_noise(pixels, amount * white, &mut rng(index)),
            Corruption::ShotNoise => shoot(pixels, amount / white, &mut rng(index)),
            Corruption::GaussianBlur => blur(&geometry, pixels, scratch, amount * side),
            Corruption::Contrast => change_contrast(&geometry, pixels, amount),
            Corruption::Brightness => pixels.iter_mut().for_each(|v| *v += amount * white),
            Corruption::Pixelation => pixelate(&geometry, pixels, amount),
            Corruption::Rotation => {
                let backwards = rng(index).random::<bool>();
                turned.iter().for_each(|both| both[usize::from(backwards)].apply(&geometry, pixels, scratch));
            }
        }
        pixels.iter_mut().for_each(|v| *v = v.clamp(0.0, white));
    })?;
    NumericArray::new(images.shape().to_vec(), values)
}
