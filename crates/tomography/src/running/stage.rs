//! How far long work is.

use posterior_optim::Signal;
use serde::{Deserialize, Serialize};
use std::fmt;

/// What is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    /// Pictures of ellipses.
    Pretraining,
    /// The deep image prior.
    Training,
    /// The weight of total variation.
    Weight,
    /// Total variation.
    Reconstruction,
    /// The scales of the g-prior.
    Scales,
    /// Directions of the preconditioner.
    Directions,
    /// Rows of the Jacobian.
    Jacobian,
    /// Hyperparameters.
    Hyperparameters,
    /// Posterior pictures.
    Pictures,
    /// Angles.
    Angles,
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Pretraining => "pretraining",
            Self::Training => "training",
            Self::Weight => "weight of total variation",
            Self::Reconstruction => "reconstruction",
            Self::Scales => "scales of weights",
            Self::Directions => "directions",
            Self::Jacobian => "Jacobian",
            Self::Hyperparameters => "hyperparameters",
            Self::Pictures => "pictures",
            Self::Angles => "angles",
        })
    }
}

/// Told the stage, how many of how many steps are done, and a loss or residual where there is one; says whether to go on.
pub type Watch<'a> = dyn FnMut(Stage, usize, usize, Option<f64>) -> Signal + 'a;
