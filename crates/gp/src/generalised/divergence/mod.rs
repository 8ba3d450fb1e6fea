//! **Divergences**, by which a posterior process Q is kept near a prior process P: the D of `E_Q[Σ l(f, y)] + λ D[Q, P]`.
//!
//! A process is more than any number of its values, so three things are compared instead:
//!
//! ```text
//! single values     (1/n) Σ_i D₀[N(m_Q, r)(x_i), N(m_P, k)(x_i)]      O(n)     D may be 0 for Q ≠ P
//! inducing values   D₀[N(m, V Vᵀ), N(m_P, I)]                         O(m³)    that of the processes, if they share their conditional
//! a batch           W₂²[N(m_Q, R), N(m_P, K)]/n                       O(n³)    an estimate of that of the processes
//! ```
//!
//! Source: spec `generalised_variational_inference`, sections 5, 10 and 11, errata E14 to E19.
//!
//! | file | what |
//! |---|---|
//! | `pointwise`, `formulas` | [`Divergence`]: seven of them for normals on the line, with slopes; averages over rows |
//! | `stable` | logarithms and exponentials that keep their digits |
//! | `text` | their names |
//! | `joint` | [`Divergence::of_whitened`]: the same between whitened inducing values |
//! | `wasserstein` | [`same_batch`]: the squared 2-Wasserstein distance on a batch; [`partial`]: its upper bound without the expensive term |
//! | `two_batches` | [`two_batches`]: the same from two batches |
//! | `squared_difference` | [`squared_difference`]: of all covariances of a batch |
//! | `multinomial` | [`multinomial`]: of class probabilities |

mod error;
mod formulas;
mod joint;
mod multinomial;
mod pointwise;
mod squared_difference;
mod stable;
#[cfg(test)]
mod tests;
mod text;
mod two_batches;
mod wasserstein;

pub use error::DivergenceError;
pub use joint::JointSlopes;
pub use multinomial::multinomial;
pub use pointwise::{Direction, Divergence, Normal, Normals, Slopes};
pub use squared_difference::{SquaredDifference, squared_difference};
pub use two_batches::two_batches;
pub use wasserstein::{BatchDistance, FidelityForm, JointNormal, SameBatch, partial, same_batch};
