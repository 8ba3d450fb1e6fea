//! Divergences as users and files write them: a name, and after `=` the direction or order of those that have one.

use super::{Direction, Divergence, DivergenceError};
use std::fmt;
use std::str::FromStr;

/// The order of the published comparison (spec `generalised_variational_inference`, section 11).
const USUAL_ORDER: f64 = 0.5;

/// Its text.
pub(super) fn write(divergence: &Divergence, out: &mut fmt::Formatter<'_>) -> fmt::Result {
    match divergence {
        Divergence::KullbackLeibler { direction: Direction::PriorToPosterior } => {
            out.write_str("kullback-leibler=prior-to-posterior")
        }
        Divergence::KullbackLeibler { direction: Direction::PosteriorToPrior } => {
            out.write_str("kullback-leibler=posterior-to-prior")
        }
        Divergence::Renyi { order } => write!(out, "renyi={order}"),
        Divergence::Bhattacharyya => out.write_str("bhattacharyya"),
        Divergence::Hellinger => out.write_str("hellinger"),
        Divergence::Wasserstein => out.write_str("wasserstein"),
        Divergence::SquaredDifference => out.write_str("squared-difference"),
        Divergence::SymmetricKullbackLeibler => out.write_str("symmetric-kullback-leibler"),
    }
}

impl FromStr for Divergence {
    type Err = DivergenceError;

    /// Without a direction the Kullback-Leibler divergence is that from prior to posterior, and without an order the Rényi divergence that of order ½, as published.
    fn from_str(text: &str) -> Result<Self, DivergenceError> {
        let unknown = || DivergenceError::Unknown(text.into());
        let (name, detail) = match text.trim().split_once('=') {
            Some((name, detail)) => (name.trim(), Some(detail.trim())),
            None => (text.trim(), None),
        };
        let plain = |divergence| if detail.is_none() { Ok(divergence) } else { Err(unknown()) };
        match name {
            "kullback-leibler" => {
                let direction = match detail {
                    None | Some("prior-to-posterior") => Direction::PriorToPosterior,
                    Some("posterior-to-prior") => Direction::PosteriorToPrior,
                    Some(_) => return Err(unknown()),
                };
                Ok(Self::KullbackLeibler { direction })
            }
            "renyi" => {
                let order = detail.map_or(Ok(USUAL_ORDER), str::parse).map_err(|_| unknown())?;
                let divergence = Self::Renyi { order };
                divergence.check().map(|()| divergence)
            }
            "bhattacharyya" => plain(Self::Bhattacharyya),
            "hellinger" => plain(Self::Hellinger),
            "wasserstein" => plain(Self::Wasserstein),
            "squared-difference" => plain(Self::SquaredDifference),
            "symmetric-kullback-leibler" => plain(Self::SymmetricKullbackLeibler),
            _ => Err(unknown()),
        }
    }
}

impl TryFrom<String> for Divergence {
    type Error = DivergenceError;
    fn try_from(text: String) -> Result<Self, DivergenceError> {
        text.parse()
    }
}

impl From<Divergence> for String {
    fn from(divergence: Divergence) -> Self {
        divergence.to_string()
    }
}
