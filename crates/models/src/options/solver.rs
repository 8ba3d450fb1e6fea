//! What weights were found with.

use posterior_gp::inducing::stochastic::VariationalOptimizer;
use posterior_gp::iterative::{InducingDescentOptions, Method as SolveMethod};
use serde::{Deserialize, Serialize};

/// What weights were found with, kept in the model file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Solver {
    /// On all rows.
    Rows(SolveMethod),
    /// On inducing inputs.
    Inducing(InducingDescentOptions),
    /// A bound in closed form.
    Collapsed,
    /// A bound on mini-batches.
    Stochastic {
        /// What moved the distribution of inducing values.
        optimizer: VariationalOptimizer,
    },
    /// Training of features.
    Features,
    /// Training of a mean and a covariance.
    Variation,
}
