//! **Stochastic dual descent**: descent on `½ αᵀK̃α - αᵀz` along random coordinates.
//!
//! ```text
//! P      = α + ρ v                                        look ahead
//! G_I    = (n/r) (K_I P + noise_I P_I - z_I)              r rows of the gradient, times n/r
//! v      = ρ v;  v_I -= β G_I
//! α     += v
//! ᾱ      = χ α + (1 - χ) ᾱ
//! ```
//!
//! The noise of this gradient vanishes at the solution, and the dual's condition number is that of `K̃` instead of its square, so steps
//! are `κn` times as long as the primal's. Source: spec `stochastic_gaussian_processes`, sections 15.1 to 15.4; Lin et al. (2024),
//! algorithm 1.
//!
//! **Memory traffic.** As printed, a step reads and writes α, v, ᾱ and P: seven passes over n x s numbers. But a row that is not in the
//! batch moves along a known curve: `v` decays, and α approaches `s = α + ρ v / (1 - ρ)` geometrically. So `state` stores P, and v and ᾱ **as
//! they were when the row was last touched**; only P must be current everywhere, because the product needs it. That is one pass that
//! reads v and updates P, three streams, and it skips rows whose velocity has decayed below rounding: on a million rows with batches of 512,
//! all but a tenth. ᾱ and v are worked on for rows of the batch only. The s numbers of a row lie together, so that a touched
//! row is a few cache lines.
//!
//! | file | what |
//! |---|---|
//! | `state` | the iterates, and one step on them |
//! | `run` | options, step size, batches, divergence, restarts, checkpoints |

mod run;
mod state;

pub(super) use run::solve_by_dual_descent;
pub use run::{DualAveraging, DualDescentOptions};

#[cfg(test)]
mod tests;
