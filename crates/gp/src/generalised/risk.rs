//! **Risks**: what is asked of the data.
//!
//! | risk | of a row, with `f ~ N(m, v)` | is |
//! |---|---|---|
//! | expected negative log-likelihood | `E[-log p(y ǀ f)]` | the loss of variational inference; noise has to be learned |
//! | predictive negative log-likelihood | `-log E[p(y ǀ f)]` | the score by which predictions are judged; of classes the cross-entropy of their probabilities |
//!
//! Both are energies of the likelihood (α = 0 and 1), so that every likelihood has them. Source: spec `generalised_variational_inference`, section 12.

use crate::Observations;
use serde::{Deserialize, Serialize};

/// What is asked of the data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum Risk {
    /// The expected negative log-likelihood, as variational inference has it
    Expected,
    /// The negative log predictive density of each row
    #[default]
    Predictive,
}

impl Risk {
    /// The power of the likelihood whose energy it is.
    pub fn power(self) -> f64 {
        match self {
            Self::Expected => 0.0,
            Self::Predictive => 1.0,
        }
    }
}

/// What a mean over rows is divided by: the sum of their weights, so that weights which are all alike change nothing.
pub(super) fn total_weight(observations: &Observations) -> f64 {
    observations.weights().map_or(observations.rows() as f64, |weights| weights.iter().sum())
}

/// How rows are put together, which says how much the regulariser weighs beside them (erratum E32).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum Reduction {
    /// The sum over rows: the regulariser weighs as much as one row, as in a bound on the evidence
    Sum,
    /// The mean over rows: the regulariser weighs as much as all rows, as in the published program
    #[default]
    Mean,
}

#[cfg(test)]
mod tests {
    use super::*;
    use posterior_likelihoods::{Gaussian, Likelihood, Slopes};

    #[test]
    fn the_values_of_the_specification() {
        // y = 1.2 under f ~ N(0.5, 0.3) and noise 0.25.
        for (risk, expected) in [(Risk::Expected, 1.8057913526), (Risk::Predictive, 1.0654745783)] {
            let (mut means, mut variances, mut parameters) = ([0.0], [0.0], [0.0]);
            let slopes = Slopes { means: &mut means, variances: &mut variances, parameters: &mut parameters };
            let found = Gaussian::new(0.25, 0.0).alpha_energy(risk.power(), &[1.2], &[0.5], &[0.3], slopes);
            assert!((found - expected).abs() < 5e-11, "{risk:?}: {found}");
        }
    }
}
