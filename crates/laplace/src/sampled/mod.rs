//! **Laplace by samples**: the linearised posterior as K draws of the weights, for networks whose curvature cannot be stored, and prior precisions learned from such draws by expectation maximisation.
//!
//! Each turn finds the optimum of the linearised model, draws samples of its posterior on noise that stays the same, and updates the precisions from both. Predictions are the network's outputs with the second moments of
//! `J zeta`, K products forward for each input. Everything is products with the tangent ([`posterior_linear::sampled`]); samples are solved for by descent on batches, by conjugate gradients on the weights or in the span of what the examples move,
//! or by [`posterior_gp::iterative`]'s dual descent.
//!
//! | file | what |
//! |---|---|
//! | `options` | [`SampledOptions`] |
//! | `fit` | [`fit()`]: the turns, and the samples for predictions |
//! | `em` | expectation maximisation in whichever space |
//! | `held_out` | precision and noise by unseen examples |
//! | `setting` | what further samples need as well |
//! | `space_solver`, `solve` | the space, with its kernel; one interface to the solvers |
//! | `dual` | dual descent on the tangent kernel |
//! | `posterior` | [`Sampled`]: predictions, further samples |
//! | `plan` | [`plan()`]: memory and work before the start |
//! | `report` | [`SampledReport`]: how it went |
//! | `saved` | where a fit stands, as arrays |
//!
//! Source: Antorán (2024), chapter 6; spec `linearised_laplace`, section 5; `valla`, section 7.3.

mod dual;
mod em;
mod fit;
mod held_out;
mod options;
mod plan;
mod posterior;
mod report;
mod saved;
mod setting;
mod solve;
mod space_solver;

pub use fit::{SampledFit, fit};
pub use options::{DualOptions, SampledOptions, Solver, Space};
pub use plan::plan;
pub use posterior::Sampled;
pub use posterior_linear::sampled::{
    ConjugateOptions, DescentOptions, EmStep, Estimator, ModeSolver, Objective, Update,
};
pub use report::SampledReport;
