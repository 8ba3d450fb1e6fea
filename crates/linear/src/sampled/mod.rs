//! **The posterior as samples**: `zeta ~ N(0, H^-1)` of a linear model, `H = s M + A`, each the minimum of a quadratic that is known by products with the features alone, and the prior's precisions learned from such samples.
//!
//! With `u = sum_i Phi_i' R_i e_i` (`e` standard normal, `R_i R_i' = B_i`) and `w` standard normal, `zeta = H^-1 (s^(1/2) u + A^(1/2) w)`. The K samples go through the features together, and nothing has the size of weights x weights
//! or of examples x outputs x weights: memory is a few blocks of weights x samples and one batch.
//!
//! Features may be scaled, `phi diag(s)` (the g-prior, [`SampledModel::scaled`]): samples, modes and precisions here are all in the scaled coordinates, and [`SampledModel::unscaled`] leads back.
//!
//! | file | what |
//! |---|---|
//! | `model` | [`SampledModel`]: features, data, curvature at the expansion point; passes over all examples or some |
//! | `hessian` | [`Hessian`]: `s M + A` as an operator, over all examples or a batch |
//! | `noise` | [`Noise`]: what stays frozen while precisions change |
//! | `objective` | [`SampleObjective`]: two objectives with one minimum, and their gradients on a batch |
//! | `variance` | [`gradient_variances`]: which of the two is noisier |
//! | `descent` | [`descend`]: Nesterov's momentum on batches, averaged |
//! | `mode` | the model's optimum by the same descent |
//! | `exact` | [`solve_exactly`]: conjugate gradients for all samples at once |
//! | `preconditioner` | what they are preconditioned with: the curvature's diagonal and leading directions |
//! | `kernel` | [`ObservedKernel`]: the same model from function space, `R' Phi Phi' R` by products |
//! | `span` | [`Span`]: the model in an orthonormal basis of what its examples move, and [`FunctionSpace`], which makes the samples of all weights there |
//! | `update` | [`Update`]: the next precision |
//! | `sampler` | [`Sampler`]: what makes samples for precisions; [`WeightSpace`] |
//! | `saved` | [`SavedEm`]: a state as facts and arrays |
//! | `em`, `state`, `em_mode` | [`ExpectationMaximisation`]: expectation maximisation; its options and state; its mode |
//!
//! Source: Antorán (2024), chapter 6; spec `linearised_laplace`, section 5; `valla`, section 7.3.

mod descent;
mod em;
mod em_mode;
mod exact;
mod hessian;
mod kernel;
mod mode;
mod model;
mod noise;
mod objective;
pub(crate) mod preconditioner;
mod sampler;
mod saved;
mod span;
mod state;
mod update;
mod variance;

pub use descent::{Averaging, BatchGradient, DescentOptions, DescentState, SampledError, descend};
pub use em::{ExpectationMaximisation, curvature_spectrum};
pub use exact::{ConjugateOptions, solve_exactly};
pub use hessian::Hessian;
pub use kernel::{ObservedKernel, pull, push};
pub use mode::ModeObjective;
pub use model::SampledModel;
pub use noise::{Noise, observed_normals, weight_normals};
pub use objective::{Objective, SampleObjective};
pub use preconditioner::EXACT_ROOTS;
pub use sampler::{Drawn, Sampler, Solve, SolverState, WatchSolver, WeightSpace};
pub use saved::{ConjugateGradientFacts, SavedEm, SavedSolver, SolverFacts};
pub use span::{FunctionSpace, Span, SpanNoise};
pub use state::{EmOptions, EmState, EmStep, Estimator, FoundMode, ModeSolver, WatchEm};
pub use update::{Update, dimension_bounds, sampled_bound};
pub use variance::{GradientVariances, gradient_variances};
