//! Single or double precision of weights.

use crate::{Predictor, Prior};
use posterior_gp::iterative::PathwisePosterior;
use posterior_kernels::Kernel;
use posterior_linalg::Real;
use posterior_store::Element;
use std::sync::Arc;

/// A precision that weights are kept in.
pub trait SolverPrecision: Real + Element {
    /// A posterior as a predictor, which is compiled here and nowhere else.
    fn predictor(posterior: PathwisePosterior<Self>) -> Arc<dyn Predictor>;

    /// A kernel as the covariance of a prior.
    fn prior(kernel: &dyn Kernel<Self>) -> Prior<'_>;
}

impl SolverPrecision for f32 {
    #[inline(never)]
    fn predictor(posterior: PathwisePosterior<Self>) -> Arc<dyn Predictor> {
        Arc::new(posterior)
    }

    fn prior(kernel: &dyn Kernel<Self>) -> Prior<'_> {
        Prior::Single(kernel)
    }
}

impl SolverPrecision for f64 {
    #[inline(never)]
    fn predictor(posterior: PathwisePosterior<Self>) -> Arc<dyn Predictor> {
        Arc::new(posterior)
    }

    fn prior(kernel: &dyn Kernel<Self>) -> Prior<'_> {
        Prior::Double(kernel)
    }
}
