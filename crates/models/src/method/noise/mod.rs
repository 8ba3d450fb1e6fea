//! **Heteroscedastic noise**: how far observations scatter around the function, learned by a process of its own.
//!
//! The logarithm of the noise's variance is a Gaussian process `g` of the columns and of the prediction itself, because what most often decides how far a target scatters is how large it is. Its data are squared errors of rows that are predicted
//! from all the others, `e_i² ~ (l_i + exp g_i) χ²₁`, where `l_i` is what the function is unsure of there. New observations scatter by `E exp g = exp(m + v/2)`.
//!
//! | file | what |
//! |---|---|
//! | `learn` | function and noise in turns, on some rows |
//!
//! Source: Goldberg, Williams and Bishop, *Regression with input-dependent noise*, 1998; Kersting, Plagemann, Pfaff and Burgard, *Most likely heteroscedastic Gaussian process regression*, 2007. Here squared errors are those of left-out rows, with their own distribution instead of a
//! Gaussian for their logarithms, and the posterior of g is Laplace's.

mod learn;

pub(crate) use learn::{FOLD_ROWS, LEAST_ROWS, ROWS, learn, plan_in_words};

use posterior_kernels::{KernelExpression, KernelTextError};

/// The kernel of the logarithm of the variance: as wide as its columns want, smooth enough to be learned from few rows.
pub(crate) fn own_kernel() -> Result<KernelExpression, KernelTextError> {
    "matern32(ard)".parse()
}

/// What its inputs are called.
pub(crate) fn names(columns: &[usize], features: &[String]) -> Vec<String> {
    let own = columns.iter().map(|&j| features[j].clone());
    own.chain(["(the prediction)".to_string()]).collect()
}
