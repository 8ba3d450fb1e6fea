//! Names of regularisers.

use super::Regulariser;
use crate::generalised::divergence::{Direction, Divergence, DivergenceError, FidelityForm};
use std::fmt;
use std::str::FromStr;

/// Text that says no regulariser.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum UnknownRegulariser {
    /// A name that none has.
    #[error(
        "`{0}` is no regulariser: take kl, kl-pq, symmetric-kullback-leibler, renyi, hellinger or bhattacharyya (of inducing values); the same after `projected-`, and projected-wasserstein or projected-squared-difference (of marginals); wasserstein, wasserstein-symmetric-roots, wasserstein-two-batches, wasserstein-partial, squared-difference or multinomial. Orders stand behind `=`, as in projected-renyi=0.5 or multinomial=2"
    )]
    Name(String),
    /// An order at which it does not exist.
    #[error(
        "`{text}`: the order of the Rényi divergence is {order}: give a positive number that is not 1, such as {name}=0.5; at 1 it is {}", .name.replace("renyi", "kl")
    )]
    Order {
        /// The whole text.
        text: String,
        /// Its name.
        name: String,
        /// Its order.
        order: f64,
    },
}

/// The usual names of both Kullback-Leibler divergences, of which the second is the one that the report prints.
const KL: (&str, &str) = ("kl", "kl-pq");

fn write_divergence(divergence: &Divergence, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match divergence {
        Divergence::KullbackLeibler { direction: Direction::PosteriorToPrior } => f.write_str(KL.0),
        Divergence::KullbackLeibler { direction: Direction::PriorToPosterior } => f.write_str(KL.1),
        other => write!(f, "{other}"),
    }
}

/// A divergence whose name stands at the end of `text`.
fn read_divergence(name: &str, text: &str) -> Result<Divergence, UnknownRegulariser> {
    Ok(match name {
        _ if name == KL.0 => Divergence::KullbackLeibler { direction: Direction::PosteriorToPrior },
        _ if name == KL.1 => Divergence::KullbackLeibler { direction: Direction::PriorToPosterior },
        _ => name.parse().map_err(|error| match error {
            DivergenceError::Order { value: order, .. } => {
                let name = text.split('=').next().unwrap_or(text).trim().into();
                UnknownRegulariser::Order { text: text.into(), name, order }
            }
            _ => UnknownRegulariser::Name(text.into()),
        })?,
    })
}

impl fmt::Display for Regulariser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Projected(divergence) => {
                f.write_str("projected-")?;
                write_divergence(divergence, f)
            }
            Self::Inducing(divergence) => write_divergence(divergence, f),
            Self::Wasserstein(FidelityForm::NuclearNorm) => f.write_str("wasserstein"),
            Self::Wasserstein(FidelityForm::SymmetricRoots) => f.write_str("wasserstein-symmetric-roots"),
            Self::WassersteinOfTwo => f.write_str("wasserstein-two-batches"),
            Self::PartialWasserstein => f.write_str("wasserstein-partial"),
            Self::SquaredDifference => f.write_str("squared-difference"),
            Self::Multinomial { power } => write!(f, "multinomial={power}"),
        }
    }
}

impl FromStr for Regulariser {
    type Err = UnknownRegulariser;

    fn from_str(text: &str) -> Result<Self, UnknownRegulariser> {
        let unknown = || UnknownRegulariser::Name(text.into());
        let text = text.trim();
        if let Some(name) = text.strip_prefix("projected-") {
            return read_divergence(name, text).map(Self::Projected);
        }
        Ok(match text {
            "wasserstein" => Self::Wasserstein(FidelityForm::NuclearNorm),
            "wasserstein-symmetric-roots" => Self::Wasserstein(FidelityForm::SymmetricRoots),
            "wasserstein-two-batches" => Self::WassersteinOfTwo,
            "wasserstein-partial" => Self::PartialWasserstein,
            "squared-difference" => Self::SquaredDifference,
            "multinomial" => Self::Multinomial { power: 2.0 },
            _ => match text.strip_prefix("multinomial=") {
                Some(power) => Self::Multinomial { power: power.parse().map_err(|_| unknown())? },
                None => Self::Inducing(read_divergence(text, text)?),
            },
        })
    }
}

impl TryFrom<String> for Regulariser {
    type Error = UnknownRegulariser;

    fn try_from(text: String) -> Result<Self, UnknownRegulariser> {
        text.parse()
    }
}

impl From<Regulariser> for String {
    fn from(regulariser: Regulariser) -> Self {
        regulariser.to_string()
    }
}
