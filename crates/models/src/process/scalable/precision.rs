//! Single or double precision, on the way to files and back.

use crate::process::ProcessPosterior;
use posterior_gp::iterative::PathwisePosterior;
use posterior_linalg::Real;
use posterior_store::Element;

/// A precision that weights are kept in.
pub(in crate::process) trait SolverPrecision: Real + Element {
    /// A posterior among the others.
    fn posterior(posterior: PathwisePosterior<Self>) -> ProcessPosterior;
}

impl SolverPrecision for f32 {
    fn posterior(posterior: PathwisePosterior<Self>) -> ProcessPosterior {
        ProcessPosterior::Single(posterior)
    }
}

impl SolverPrecision for f64 {
    fn posterior(posterior: PathwisePosterior<Self>) -> ProcessPosterior {
        ProcessPosterior::Double(posterior)
    }
}
