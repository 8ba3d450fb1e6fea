//! **Exact deep kernel learning**: a process whose kernel acts on what a learned map g makes of the rows.
//!
//! ```text
//! f ~ GP(m(g(x)), k(g(x), g(z)))
//! slopes of the log evidence in the embedding g_i:   Σ_j (S_ij + S_ji) ∂k(g_i, g_j)/∂g_i,    S = ½ (α αᵀ - K̃⁻¹)
//! ```
//!
//! These go back through the map to its weights, as those of the kernel's hyperparameters and of the noise go to theirs: one factor, one inverse in its place, one pass over the kernel matrix and one through the map. Everything after training
//! is the exact posterior of the embedded rows. Source: Wilson, Hu, Salakhutdinov and Xing (2016), *Deep kernel learning*; spec `deep_kernel_decomposition`, section 7.4.
//!
//! | file | what |
//! |---|---|
//! | `posterior` | [`EmbeddedPosterior`] |
//! | `fit` | [`fit_embedded`]: weights, hyperparameters and noise together, by Adam that rows held back judge |

mod fit;
mod posterior;

pub use fit::{EmbeddedFit, EmbeddedOptions, EmbeddedTraining, embedded_objective, fit_embedded};
pub use posterior::EmbeddedPosterior;

#[cfg(test)]
mod tests;
