//! **The linearised image prior**: `h(w) = g(v) + phi (w - v)` with the Jacobian phi of a trained U-Net, a Gaussian prior over its convolution weights, and so a Gaussian prior over pictures that knows what this picture looks like.
//!
//! | file | what |
//! |---|---|
//! | `weights` | [`ConvolutionWeights`]: which weights are random, and to which block of the network they belong |
//! | `filters` | [`FilterPrior`]: Matérn-1/2 within each filter, a variance and a lengthscale for each block; [`WeightPrior`] |
//! | `tangent` | [`ImageTangent`]: products with phi; [`PriorRoot`]: the root of the prior over pictures |
//! | `measured` | [`MeasuredTangent`]: `T phi` as a feature map, so that samples, modes and expectation maximisation are those of [`posterior_linear::sampled`] |
//! | `grams` | [`DistanceGrams`]: `phi phi'` block by block and distance by distance, from which the kernel for any hyperparameters is a sum |
//! | `roughness` | expected total variation of a block's pictures, in closed form and by samples, and the prior over lengthscales that it makes |
//! | `sampled_roughness` | the same by products: differences, or as published |
//! | `evidence` | type-II MAP and marginal likelihood with a stored kernel |
//! | `search` | its maximum |
//! | `stochastic` | the same by products: conjugate gradients and probes |
//! | `leading` | [`LeadingDirections`]: the preconditioner of all solves over the measurements |
//! | `scaling` | the scales of the g-prior |
//! | `measurement_space` | samples and modes by conjugate gradients over the measurements |
//! | `expectation` | expectation maximisation for the one precision of the g-prior |
//!
//! Source: Antorán (2024), chapter 7; spec `tomography`, sections 5 to 8.

mod evidence;
mod expectation;
mod filters;
mod grams;
mod leading;
mod measured;
mod measurement_space;
mod roughness;
mod sampled_roughness;
mod scaling;
mod search;
mod stochastic;
mod tangent;
mod weights;

pub use evidence::{
    ChargedWeights, EvidenceValue, HeldFilters, ImageHyperparameters, LEAST_LOG_VARIANCE,
    LearnedHyperparameters, StoredEvidence,
};
pub use expectation::{
    GPrior, GPriorFit, GPriorOptions, GPriorSolver, WatchDescent, WatchExpectation, WeightDraws,
    weight_descent,
};
pub use filters::{FILTER_JITTER, FilterHyperparameters, FilterPrior, WeightPrior};
pub use grams::{BlockGrams, DistanceGrams};
pub use leading::LeadingDirections;
pub use measured::MeasuredTangent;
pub use measurement_space::{MakePreconditioner, MeasurementSpace};
pub use roughness::{Roughness, RoughnessTerms};
pub use sampled_roughness::{BendEstimate, SampledRoughness};
pub use scaling::{ScaleEstimate, Scales, scales};
pub use search::{EvidenceSearch, FoundHyperparameters};
pub use stochastic::{
    EstimatedSlopes, Probes, StochasticEvidence, StochasticEvidenceOptions, StochasticEvidenceState,
};
pub use tangent::{ImageTangent, PriorRoot};
pub use weights::{ConvolutionWeights, Filters, WeightBlock};

#[cfg(test)]
mod tests;
