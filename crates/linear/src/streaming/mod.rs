//! **Rows that arrive one after the other**: the exact posterior of K linear functions under Gaussian observations whose noise differs from row to row, in bounded memory.
//!
//! Functions `f_k(x) = phi(x)^T w_k` have priors `w_k ~ N(m_k, P^-1)` and are observed as `t_nk` with precisions `b_nk`. Sums over rows are all that there is to keep:
//!
//! ```text
//! L_k = P + sum_n b_nk phi_n phi_n^T        r_k = P m_k + sum_n b_nk t_nk phi_n        w_k | rows ~ N(L_k^-1 r_k, L_k^-1)
//! ```
//!
//! They do not depend on the order of the rows. Labels as numbers ([`posterior_likelihoods::gaussianised`]) have two precisions only, that of the row's class and that of all others: so the least precision of a row goes into one matrix
//! that all functions share and what others have beyond it into their own, and a row of K classes costs two rank-one updates and not K.
//!
//! With the features of a network's last layer this is its Bayesian last layer; with `phi(x) = L^-1 k_u(x)`, `K_uu = L L^T` and `P = I`, a sparse process whose inducing points stay (its latent variance lacks
//! `k(x, x) - |phi(x)|^2`).
//!
//! Source: Bui, *Likelihood approximations via Gaussian approximate inference*; spec `likelihood_approximations`, sections 6.5 and 6.7.

mod model;
#[cfg(test)]
mod tests;

pub use model::{StreamLatents, StreamPosterior, StreamingModel};
