//! **Sketch-and-project**: block coordinate descent that solves each block exactly, or nearly so by a sketch of it, accelerated.
//!
//! ```text
//! I                  b rows                                       of a permutation; a remainder waits for the next pass
//! P  = K_II + noise_I                                             factored; or, of a sketch,
//!      U (Λ - λ_r) U' + λ_r + noise_I     K_II ~ U Λ U'           randomised Nyström of rank r
//! G  = K_I: Y + noise_I Y_I - Z_I                                 b n s: the cost of the step
//! D  = P^-1 G / λ_1(P^-1 K̃_II)                                    λ_1 = 1; of a sketch by ten power iterations
//! W  = Y;  W_I -= D
//! V  = β V + (1 - β) Y;  V_I -= γ D
//! Y  = α V + (1 - α) W
//! ```
//!
//! with `β = 1 - (μ/ν)^½`, `γ = (μν)^-½`, `α = 1 / (1 + γν)`, `ν = n/b`. Dual descent's step is bounded by the largest eigenvalue of the whole matrix, so that its small end takes for ever; here every block is solved, and what conditioning
//! is left is that between blocks: the method of choice where noise is small and functions are smooth. P is the project's Nyström preconditioner (the published one keeps Λ instead of `Λ - λ_r`: the same directions, a shorter step along them).
//!
//! **μ** is what matters, and the noise does not tell it: what is slow is what blocks leave, which is little where they are large. It begins at `1/ν`, where next to nothing is accelerated (of sketched blocks at the published `max(noise / diagonal, 1e-3)`), and falls of passes say how far it may shrink ([`Acceleration::Adaptive`]): by four passes that are no half of what a μ promises. It grows where residuals do, and where these grow by half, the acceleration begins anew.
//! The specification begins there in any case and has μ grow where passes stall. For a few large blocks that are factored it is too much acceleration by far (up to seven times as many passes as with none, and as these rules need; a test shows it), and ill-conditioned systems always seem to stall, and end without any (a test shows that, too).
//!
//! **Factored or sketched.** A factor costs `b³/3` flops where a gradient costs `n b (2 s + 45)`: with blocks that are chosen so that it is a quarter of that, some hundred to some thousand rows on tables of 10⁴ to 10⁶, and the step solves its block to rounding, in double precision even where values are in single. Sketches are for blocks of many thousands of rows, as the publication has them on graphics cards (`rank`).
//!
//! **Cost** of a pass: one product with K, and `n (b²/3)` flops for factors or `n (2 r + 20) + 22 n r²/b` for sketches and power iterations, and `n b` values of the kernel, beside it ([`SketchAndProjectOptions::block_of`]). **Memory**: 2 n s numbers for Y and `E = V - Y` (W is what both say), b² for the block, never b n.
//! A step multiplies E outside of its block with one number, which stands beside it; Y is one pass over both, two reads and a write, where the product needs 2 b multiplications and additions a number and reads Y as well.
//! Columns that are solved leave the work.
//!
//! Source: Rathore, Frangella, Yang, Derezinski and Udell, *Have ASkotch: a neat solution for large-scale kernel ridge regression* (2024), algorithm 3; spec `sketch_and_project`.
//!
//! | file | what |
//! |---|---|
//! | `block` | a block's factor, or its sketch and the length of its step |
//! | `iterates` | Y and how far V is from it, and one step on them |
//! | `acceleration` | α, β, γ; μ by the residuals of passes |
//! | `run` | options, blocks, columns that leave, checkpoints |

mod acceleration;
mod block;
mod iterates;
mod run;

pub use acceleration::Acceleration;
pub use run::SketchAndProjectOptions;
pub(super) use run::solve_by_sketch_and_project;

#[cfg(test)]
mod tests;
