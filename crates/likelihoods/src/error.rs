//! What can be wrong with a likelihood, a target or a prediction.

use posterior_linalg::cholesky::CholeskyError;
use thiserror::Error;

/// What was wrong, where, and what to do.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum LikelihoodError {
    /// A parameter of a likelihood or a prediction rule is not usable.
    #[error("{owner}: {parameter} is {value}; {remedy}")]
    Parameter {
        /// The likelihood or rule.
        owner: &'static str,
        /// The parameter, with its position.
        parameter: String,
        /// What it was.
        value: String,
        /// What it should be.
        remedy: &'static str,
    },
    /// A list of numbers has the wrong length.
    #[error("{what} has {found} numbers where the {owner} likelihood needs {needed}; {remedy}")]
    Length {
        /// The likelihood.
        owner: &'static str,
        /// The list.
        what: &'static str,
        /// How many numbers are needed.
        needed: usize,
        /// How many there were.
        found: usize,
        /// What to check.
        remedy: &'static str,
    },
    /// A target that this likelihood cannot produce.
    #[error("target {position} is {value}, which the {owner} likelihood cannot produce; {remedy}")]
    Target {
        /// The likelihood.
        owner: &'static str,
        /// Which number of the target.
        position: usize,
        /// The number.
        value: f64,
        /// What is valid and what to do.
        remedy: String,
    },
    /// A latent mean or covariance that is NaN or infinite.
    #[error(
        "the latent {what} is {value} at entry {position}; the model diverged or its input was not finite, check both"
    )]
    NotFinite {
        /// Mean, variance, covariance or residual.
        what: &'static str,
        /// Where in the list.
        position: usize,
        /// The number.
        value: f64,
    },
    /// A covariance with a clearly negative eigenvalue or variance.
    #[error(
        "the latent covariance has an eigenvalue or variance of {least:e} beside one of {largest:e}, more than rounding \
         explains; check that it is symmetric and computed as a product of a root with itself"
    )]
    NotPositiveSemidefinite {
        /// The most negative value.
        least: f64,
        /// The largest value.
        largest: f64,
    },
    /// An integration rule that has no meaning for a likelihood.
    #[error("{integration} does not apply to the {owner} likelihood; {remedy}")]
    Integration {
        /// The rule.
        integration: &'static str,
        /// The likelihood.
        owner: &'static str,
        /// What to use instead.
        remedy: &'static str,
    },
    /// A method that needs the curvature of a log density that is flat.
    #[error(
        "the {owner} likelihood is flat between jumps: it has neither slopes nor curvature in single latent values, which Laplace's approximation and modes need; infer by a variational bound or by α-energies, or take `categorical` for classes"
    )]
    Flat {
        /// The likelihood.
        owner: &'static str,
    },
    /// The eigenvalues of a latent covariance that has no Cholesky factor did not converge.
    #[error(
        "the eigenvalues of the latent covariance ({outputs} outputs) did not converge; check its entries for extreme values"
    )]
    Eigenvalues {
        /// Dimension of the covariance.
        outputs: usize,
    },
    /// The covariance of noise, or of an observation, has no Cholesky factor.
    #[error("the covariance of the noise or of an observation cannot be factored: {0}")]
    Covariance(#[from] CholeskyError),
}

/// The largest number of latent values of one observation: beyond it the index of a matrix entry might not be a number of
/// the machine, and a file that asks for it is damaged.
pub(crate) const MOST_OUTPUTS: usize = 1 << 24;

/// The error of a count of outputs that is below `least` or absurd.
pub(crate) fn check_outputs(
    owner: &'static str,
    parameter: &str,
    count: usize,
    least: usize,
    remedy: &'static str,
) -> Result<(), LikelihoodError> {
    if (least..=MOST_OUTPUTS).contains(&count) {
        return Ok(());
    }
    Err(LikelihoodError::Parameter { owner, parameter: parameter.into(), value: count.to_string(), remedy })
}

/// The error of a target with the wrong number of numbers.
pub(crate) fn check_width(owner: &'static str, needed: usize, y: &[f64]) -> Result<(), LikelihoodError> {
    if y.len() == needed {
        return Ok(());
    }
    Err(LikelihoodError::Length {
        owner,
        what: "the target",
        needed,
        found: y.len(),
        remedy: "check the number of target columns, and that classes are given as one index rather than one-hot",
    })
}

/// The error of the first target for which `valid` does not hold.
pub(crate) fn check_each(
    owner: &'static str,
    y: &[f64],
    valid: impl Fn(f64) -> bool,
    remedy: &str,
) -> Result<(), LikelihoodError> {
    match y.iter().position(|&value| !valid(value)) {
        None => Ok(()),
        Some(position) => {
            Err(LikelihoodError::Target { owner, position, value: y[position], remedy: remedy.into() })
        }
    }
}
