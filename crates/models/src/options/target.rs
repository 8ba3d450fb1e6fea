//! What a target goes through before it is learned.

use super::FitRequest;
use posterior_data::Selection;
use serde::{Deserialize, Serialize};

/// What a target with Gaussian noise is mapped by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum TargetTransformName {
    /// For skewed targets without negative values, the one with the largest evidence
    #[default]
    Auto,
    /// As it is
    None,
    /// Logarithm (targets above 0)
    Log,
    /// Power of Yeo and Johnson
    YeoJohnson,
}

impl TargetTransformName {
    /// A map that was asked for, by its name on the command line.
    pub(crate) fn asked(self) -> Option<&'static str> {
        match self {
            Self::Auto | Self::None => None,
            Self::Log => Some("log"),
            Self::YeoJohnson => Some("yeo-johnson"),
        }
    }
}

/// The word of `--noise` that stands for no column.
pub(crate) const HETEROSCEDASTIC: &str = "heteroscedastic";

impl FitRequest {
    /// Whether the noise of each place is learned, by a process of its own.
    pub fn learns_heteroscedastic_noise(&self) -> bool {
        self.columns.noise.as_deref() == Some(HETEROSCEDASTIC)
    }

    /// Roles of the columns: without the word of `--noise` that is no column, and what weighs rows does not predict them.
    pub fn roles(&self) -> Selection {
        let mut roles = self.columns.clone();
        if self.learns_heteroscedastic_noise() {
            roles.noise = None;
        }
        if roles.features.is_none() {
            roles.exclude.extend(self.output.row_weights.clone());
        }
        roles
    }
}
