//! **Gaussian processes by iterative solvers**: the posterior of a million rows from products with the kernel matrix, which is never stored.
//!
//! Everything that a posterior needs is the solution of `K̃ X = Z` with `K̃ = K + diag(noise)`: the column `Z = y` gives the mean `k(·, X) x`, a column
//! `f(X) + ε` with a prior function f and noise ε gives a sample `f + k(·, X)(x_mean - x)` that can be evaluated anywhere. Mean and samples
//! are columns of one solve.
//!
//! | file | idea |
//! |---|---|
//! | `problem`, `solver` | [`Problem`], [`Method`], [`Budget`], [`solve`]: one interface, with warm starts, observers and checkpoints ([`SolverState`]) |
//! | `direct` | Cholesky, the reference |
//! | `conjugate` | preconditioned conjugate gradients ([`ConjugateGradientOptions`]) |
//! | `dual` | stochastic dual descent ([`DualDescentOptions`]): the method of choice on large data |
//! | `sketch` | sketch-and-project, for ill-conditioned systems ([`SketchAndProjectOptions`]) |
//! | `descent` | stochastic gradient descent on the primal, and what papers compare with ([`DescentOptions`]) |
//! | `stochastic` | what the stochastic ones share: residuals of batches, divergence, restarts |
//! | `step_size` | the automatic step ([`StepSize`], [`Curvature`]) |
//! | `inducing` | descent on the weights of inducing inputs ([`solve_inducing`]) |
//! | `pathwise` | the posterior as functions ([`PathwisePosterior`]); exact variances by solves, or by one Lanczos basis; the log evidence by stochastic Lanczos quadrature ([`log_evidence`]) |
//! | `blocks` | hyperparameters at scale: one objective over samples and neighbourhoods ([`fit_on_blocks`], [`fit_several_on_blocks`]) |
//! | `evidence`, `neighbourhoods` | the same by stochastic gradients, or as published, by averages ([`evidence_gradient`], [`fit_on_neighbourhoods`]) |
//! | `search` | hyperparameters of all rows: Adam on those gradients, with warm starts ([`search_evidence`]) |
//! | `diagnostics`, `spectral` | error norms, errors by eigendirection ([`SpectralBasis`]) |
//!
//! Source: spec `stochastic_gaussian_processes`, sections 7 to 18.

mod blocks;
mod conjugate;
mod descent;
mod diagnostics;
mod direct;
mod dual;
mod evidence;
mod inducing;
mod neighbourhoods;
mod pathwise;
mod problem;
mod residual;
mod search;
mod sketch;
mod solver;
mod spectral;
mod state;
mod step_size;
mod stochastic;

pub use blocks::{BlockFit, Blocks, fit_on_blocks, fit_several_on_blocks};
pub use conjugate::ConjugateGradientOptions;
pub use descent::{
    Averaging, DescentOptions, DescentRule, Gradient, NoisePlacement, Regulariser, gradient_estimate,
};
pub use diagnostics::{WeightErrors, weight_errors};
pub use dual::{DualAveraging, DualDescentOptions};
pub use evidence::{EvidenceGradient, Probes, evidence_gradient};
pub use inducing::{
    InducingDescentOptions, InducingProblem, InducingRegulariser, StoredTargets, TargetRows, solve_inducing,
};
pub use neighbourhoods::{NeighbourhoodFit, Neighbourhoods, fit_on_neighbourhoods, nearest_rows};
pub use pathwise::{
    CompressedPosterior, EvidenceObserver, KernelFeatures, LanczosBasis, LanczosVariances, LogEvidence,
    PathwiseModel, PathwisePosterior, PathwiseSettings, SolvedVariances, Support, log_evidence,
};
pub use problem::{FreshFeatures, Problem};
pub use search::{
    EvidenceSearch, ProbeKind, SearchHeader, SearchIterate, SearchOptions, SearchState, SearchStep,
    search_evidence,
};
pub use sketch::{Acceleration, SketchAndProjectOptions};
pub use solver::{Budget, Iterate, Method, Solution, SolveObserver, Start, solve};
pub use spectral::{Region, SpectralBasis, regions};
pub use state::{SolverState, StateHeader};
pub use step_size::{Curvature, StepSize};

#[cfg(test)]
mod tests;
