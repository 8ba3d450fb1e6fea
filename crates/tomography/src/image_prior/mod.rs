//! **The deep image prior**: a picture is the output of a U-Net on a fixed input, and only weights that explain the measurements are looked for.
//!
//! `min_v 1/c |T g(v) - y|² + lambda TV(g(v))` by Adam, from fresh or from pretrained weights; the picture is `g(v)` where the loss was lowest. Networks are in single precision, sinograms and losses in double.
//!
//! | file | what |
//! |---|---|
//! | `descent` | [`DeepImagePrior`]: one step of Adam, the best iterate; its state can be saved |
//! | `dropout` | [`ChannelDropout`]: masks of channels as weights, for the Monte Carlo baseline |
//! | `pretraining` | [`EllipseExamples`]: pairs of filtered back-projection and picture for a supervised beginning |
//! | `input` | what the network looks at |
//!
//! Source: Antorán (2024), section 7.1.2 and appendix A.2; spec `tomography`, section 4.

mod descent;
mod dropout;
mod input;
mod pretraining;

pub use descent::{DeepImagePrior, DeepImagePriorOptions, DeepImagePriorState};
pub use dropout::ChannelDropout;
pub use input::network_input;

#[cfg(test)]
mod tests;
pub use pretraining::{EllipseExamples, PretrainOptions, pretrain};
