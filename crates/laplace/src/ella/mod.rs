//! **ELLA**: linearised Laplace in the span of a few directions of the weights, the leading ones of the Jacobian at some landmarks.
//!
//! The features `psi(x) = J(x) V` are K for each output, made by K products forward; the curvature `G = sum psi' B psi` is K x K and made in one pass over the data, which may end early, where held-out data say so; the
//! posterior covariance of the outputs is `psi (s G + a I)^-1 psi'`, never more than that of the whole linearised model.
//!
//! Source: spec `valla`, section 7.2; Deng, Zhou and Zhu (2022).

mod fit;
mod options;
mod plan;
mod posterior;

pub use options::{EllaOptions, EllaReport};
pub use plan::plan;
pub use posterior::{ConditionedElla, Ella};
