//! **The Gaussian linear model, solved exactly**, in weight space or by duality.
//!
//! ```text
//! y = Phi w + e,   w ~ N(0, A^-1),   e ~ N(0, B^-1),   B = R R'
//! posterior  w ~ N(H^-1 Phi' B y, H^-1),   H = Phi' B Phi + A
//! ```
//!
//! In whitened units, `Q = R' Phi A^{-1/2}` and `t = R' y`, noise and prior are both standard normal and one matrix of the form "identity
//! plus a square" is all there is to factor:
//!
//! | form | matrix | size | mean, in whitened weights | covariance |
//! |---|---|---|---|---|
//! | primal | `S = I + Q'Q` | d x d | `S^-1 Q' t` | `S^-1` |
//! | dual | `S = I + Q Q'` | nC x nC | `Q' S^-1 t` | `I - Q' S^-1 Q` |
//!
//! The smaller is chosen unless told otherwise. No eigenvalue of `S` is below 1, so nothing is ever jittered, and no inverse of `B`
//! is taken, so softmax curvatures (singular) are welcome. `log det S = log det(I + A^-1 M)` in both forms.
//!
//! Source: Antorán (2024), sections 2.2 and 6.1; spec `linearised_laplace`, sections 3.3, 3.5 and 5.11.
//!
//! | file | what |
//! |---|---|
//! | `fit` | building the posterior, around the mean of the data or a given mode |
//! | `predict` | latent mean and covariance, marginal and joint |
//! | `sample` | weight samples, direct or pathwise (Matheron) |
//! | `evidence` | log evidence, Laplace form, effective dimensions |
//! | `update` | more data without starting over |

mod evidence;
mod fit;
mod predict;
mod sample;
mod update;

pub use fit::ExactPosterior;
pub use predict::{LatentJoint, LatentPrediction};

use serde::{Deserialize, Serialize};

/// Which of the two equal matrices is factored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Form {
    /// `I + Q'Q` of d x d: cost `nC d² + d³/3`, `8d²` bytes; the features are not kept.
    Primal,
    /// `I + Q Q'` of nC x nC: cost `(nC)² d + (nC)³/3`, `8 nC (nC + d)` bytes.
    Dual,
}

/// How the posterior is computed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExactOptions {
    /// The form; the smaller matrix when `None`.
    pub form: Option<Form>,
    /// Most bytes of one matrix.
    pub memory_limit: u64,
}

impl Default for ExactOptions {
    /// The smaller form, at most 16 GiB a matrix.
    fn default() -> Self {
        Self { form: None, memory_limit: crate::check::BUFFER_LIMIT }
    }
}
