//! **A picture from a sinogram**: filtered back-projection, total variation, or the deep image prior, with what is not given chosen on measurements that are held back.
//!
//! | file | what |
//! |---|---|
//! | `options` | [`Method`] and its options |
//! | `scale` | pictures of brightness about 1, whatever the units of the sinogram |
//! | `held_back` | the weight of total variation by measurements that were held back |
//! | `standing` | one checkpoint for all stages |
//! | `plan` | what it will take |
//! | `run` | [`reconstruct`] |

mod held_back;
mod options;
mod plan;
mod run;
mod scale;
mod standing;

pub use held_back::{HeldBack, Trials, WeightTrial, choose_weight};
pub use options::{DeepImagePriorRequest, Method, TotalVariationRequest, TotalVariationSolver};
pub use plan::{architecture, plan};
pub use run::{NetworkPicture, Reconstruction, ReconstructionReport, network_view, reconstruct};
pub use scale::Scaled;

#[cfg(test)]
mod tests;
