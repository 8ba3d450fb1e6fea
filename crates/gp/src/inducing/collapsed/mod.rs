//! The **collapsed bound** (SGPR): the best Gaussian over inducing values in closed form.
//!
//! With noise variances s, residuals `r = y - m(X)`, `V = L⁻¹ K_ZX diag(s)^{-1/2}` and `W = I + V Vᵀ`, for each target
//!
//! ```text
//! log p(y) >= -½ Σ log 2πs - ½ log det W - ½ Σ r²/s + ½ pᵀ W⁻¹ p - ½ Σ (k_ii - q_ii)/s,   p = V diag(s)^{-1/2} r
//! ```
//!
//! with equality where the inducing points are the inputs. The optimal `q(v)` is `N(W⁻¹p, W⁻¹)`. Value and gradient take two
//! passes over blocks of rows: `6 n m²` flops and `O(m²)` memory.
//!
//! Source: Titsias (2009), *Variational learning of inducing variables in sparse Gaussian processes*; spec
//! `stochastic_gaussian_processes`, section 11.1.
//!
//! | file | what |
//! |---|---|
//! | `model` | kernel, mean, noise and inducing inputs with their parameters |
//! | `accumulate` | the pass over the data that value and posterior share |
//! | `bound` | the bound and its gradient |
//! | `shared_inputs` | both for several functions of the same rows, as classes are |
//! | `fit` | L-BFGS, resumable |

mod accumulate;
mod bound;
mod fit;
mod model;
mod shared_inputs;

pub use bound::{CollapsedEvaluation, collapsed_bound, collapsed_bound_and_gradient};
pub use fit::{CollapsedFit, CollapsedOptions, CollapsedSearch, fit_collapsed, search_collapsed};
pub use model::CollapsedGp;
pub use shared_inputs::passes_of_classes;

#[cfg(test)]
mod tests;
