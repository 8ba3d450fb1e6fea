//! **Prior precisions (and noise) from the evidence**, by alternating between the weights and what governs them.
//!
//! One loop, [`learn`], serves all the published schemes. It asks an [`EvidenceModel`] for the mode at the current precisions, puts a vector
//! `u` into the norm term of the evidence
//!
//! ```text
//! G_u(A) = log p(y | u) - 1/2 |u|²_A - 1/2 log det(I + A^-1 M)
//! ```
//!
//! and moves the precisions of the groups by one of four [`MStep`]s. With Gaussian noise ([`GaussianModel`]) this is expectation maximisation and the evidence
//! is exact.
//!
//! Source: Antorán (2024), chapters 5 and 6; MacKay (1992); spec `linearised_laplace`, sections 4.1, 4.2, 5.1, 5.2 and 5.4.
//!
//! | file | what |
//! |---|---|
//! | `m_step` | the updates as closed formulas |
//! | `limits` | where effective dimensions and precisions are kept, and what was moved |
//! | `curvature` | [`EvidenceCurvature`]: what the updates need of `M`; [`RootCurvature`]: exactly, by spectrum or factor |
//! | `model` | [`EvidenceModel`]: mode, likelihood, curvature together |
//! | `gaussian` | the conjugate model, with the noise learned if wished |
//! | `learn` | the loop |

mod curvature;
mod gaussian;
mod learn;
mod limits;
mod m_step;
mod model;

pub use curvature::{EvidenceCurvature, RootCurvature};
pub use gaussian::GaussianModel;
pub use learn::{Evidence, LearnOptions, LearnStep, Learned, learn};
pub use limits::{Hit, Limited, Limits};
pub use m_step::{MStep, bound, decoupled_elbo, log_precision_gradient, mackay, maximise_bound};
pub use model::EvidenceModel;
