//! **Computed tomography with error bars**: from a sinogram to a picture, to where the picture must not be trusted, to the angle at which to look next.
//!
//! Measurements are `y = T x + noise`: line integrals of an image `x` along the rays of a scan. Source of the whole: Antorán (2024), chapter 7.

//! An image prior is Gaussian with covariance `K = F F'`, known by its root F as a linear operator: the identity, a Matérn kernel, or a network's Jacobian times the root of a prior over its weights. Whatever is asked of the posterior asks only for products with F and T.
//!
//! | module | idea |
//! |---|---|
//! | `geometry` | [`Geometry`]: where the rays run; files, sizes and sinograms checked |
//! | `projector` | [`Projector`], [`StoredProjector`]: `T` and its exact transpose |
//! | `filtered` | [`filtered_back_projection`]: a picture in closed form |
//! | `simulate` | [`simulate()`]: scans in silico |
//! | [`phantom`] | images whose truth is known |
//! | [`total_variation`] | the smoothest picture that explains a sinogram |
//! | [`image_prior`] | the deep image prior |
//! | [`priors`] | priors over pixels: isotropic, Matérn |
//! | [`linearised`] | the prior that a trained network is near its weights; its hyperparameters |
//! | [`measured`] | a prior and what the scanner sees of it: posterior, evidence, samples |
//! | [`randomised`] | preconditioners by a randomised singular value decomposition |
//! | [`patches`], [`calibration`], `quality` | what a posterior says about the truth; [`psnr`] |
//! | [`design`] | the next angle |
//! | [`reconstruction`] | a picture in one go, with what is not given chosen on measurements that are held back |
//! | [`uncertainty`] | from sinogram and network to draws of the picture, in one go |
//! | [`running`] | plans, progress, checkpoints |

pub mod calibration;
pub mod design;
mod error;
mod filtered;
mod geometry;
pub mod image_prior;
pub mod linearised;
pub mod measured;
pub mod patches;
pub mod phantom;
pub mod priors;
mod projector;
mod quality;
pub mod randomised;
pub mod reconstruction;
pub mod running;
mod simulate;
#[cfg(test)]
mod test_problem;
pub mod total_variation;
pub mod uncertainty;

pub use error::TomographyError;
pub use filtered::{BackProjection, Filter, filtered_back_projection};
pub use geometry::{
    ConeBeam, FanBeam, Geometry, GeometryWarning, ParallelBeam, StackedParallel, equidistant_angles,
};
pub use projector::{Projector, StoredProjector};
pub use quality::psnr;
pub use simulate::{Simulated, simulate};
