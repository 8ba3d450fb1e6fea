//! Where a fit stands, as plain data.

use super::StochasticGp;
use crate::GpError;
use crate::inducing::{InducingDistribution, InducingError};
use faer::MatRef;
use posterior_linalg::triangular::unpack_lower;
use posterior_optim::Adaptive;
use serde::{Deserialize, Serialize};

/// Everything that a fit changes: save it after any step and [`super::fit_stochastic`] continues bit for bit. Some
/// `12 m²` bytes a root, three times that with Adam on q.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StochasticState {
    /// Steps taken.
    pub step: usize,
    /// Unconstrained values of the parameters that move.
    pub(super) theta: Vec<f64>,
    /// Means of q, m x C by columns.
    pub(super) mean: Vec<f64>,
    /// Lower triangles of the roots, by columns, one after the other.
    pub(super) roots: Vec<f64>,
    pub(super) adam: Adaptive,
    /// The exponentially averaged bound.
    pub(super) average: f64,
    /// Seconds so far, which a limit of time counts.
    pub(super) seconds: f64,
}

impl StochasticState {
    /// The distribution of inducing values, if the state is one of this model with so many parameters that move.
    pub(super) fn distribution(
        &self,
        model: &StochasticGp,
        moving: usize,
    ) -> Result<InducingDistribution, GpError> {
        let (m, latents) = (model.inducing.nrows(), model.latents());
        let triangle = m * (m + 1) / 2;
        let sizes = [
            ("parameters", self.theta.len(), moving),
            ("means", self.mean.len(), m * latents),
            ("entries of roots", self.roots.len(), triangle * model.roots()),
        ];
        for (what, found, expected) in sizes {
            if found != expected {
                return Err(InducingError::State(format!("it has {found} {what}, not {expected}")).into());
            }
        }
        if !(self.seconds >= 0.0 && self.seconds < 1e12) {
            return Err(InducingError::State(format!("{} seconds are no time", self.seconds)).into());
        }
        // With Adam on q its memory covers means and roots as well.
        let all = self.theta.len() + self.mean.len() + self.roots.len();
        self.adam
            .check(self.theta.len(), self.step)
            .or_else(|_| self.adam.check(all, self.step))
            .map_err(InducingError::State)?;
        if self.theta.iter().any(|t| !t.is_finite()) {
            return Err(InducingError::State("a parameter is not finite".into()).into());
        }
        let mean = MatRef::from_column_major_slice(&self.mean, m, latents).to_owned();
        let roots = self.roots.chunks(triangle).map(|packed| unpack_lower(packed, m)).collect();
        InducingDistribution::new(mean, roots).map_err(|e| InducingError::State(e.to_string()).into())
    }
}
