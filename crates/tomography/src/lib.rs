//! **Computed tomography with error bars**: from a sinogram to a picture, to where the picture must not be trusted, to the angle at which to look next.
//!
//! Measurements are `y = T x + noise`: line integrals of an image `x` along the rays of a scan. Source of the whole: Antorán (2024), chapter 7.

mod error;
pub mod filtered;
pub mod geometry;
pub mod image_prior;
pub mod linearised;
pub mod phantom;
pub mod projector;
pub mod quality;
mod scanner;
pub mod simulate;
pub mod total_variation;
pub mod work;

pub use error::TomographyError;
pub use geometry::Geometry;
pub use projector::Projector;
pub use scanner::Scanner;
