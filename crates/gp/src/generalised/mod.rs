//! **Generalised variational inference**: `Q* = argmin E_Q[Σ l(f, y)] + λ D[Q, P]` for any loss l and any divergence D from a prior process P. Source: spec `generalised_variational_inference`, sections 5, 10 and 11.
//!
//! | file | what |
//! |---|---|
//! | [`divergence`] | D, of single function values, of inducing values and of batches, with all slopes |

pub mod divergence;
