//! Nesterov's scheme for random blocks, and the one number that it depends on.

use crate::GpError;
use posterior_linalg::solve::SolveError;
use serde::{Deserialize, Serialize};

/// μ where the noise says less.
const LEAST: f64 = 1e-3;

/// The residual of a pass over that of the pass before: above, μ is too small by far; it may be, between 1 and this; below `SLOW`, it is not too large either.
const GROWN: f64 = 1.5;
const SLOW: f64 = 0.9;

/// Passes that fall slowly, one after the other, until a smaller μ is tried.
const PATIENCE: usize = 3;

/// What μ changes by.
const FACTOR: f64 = 1.5;

/// What it changes by where it is too small by far.
const GROWTH: f64 = 2.0;

/// How steps are accelerated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Acceleration {
    /// With a μ that begins at `max(noise / diagonal, 1e-3)`, grows where residuals of passes do and shrinks where they fall slowly.
    #[default]
    Adaptive,
    /// With this μ, above 0; more than 1 counts as 1.
    Fixed(f64),
    /// Not at all.
    None,
}

impl Acceleration {
    /// The first μ for a noise that is so large a share of the diagonal; None without acceleration.
    pub(super) fn first(self, noise_share: f64) -> Result<Option<f64>, GpError> {
        match self {
            Self::None => Ok(None),
            Self::Adaptive => Ok(Some(noise_share.clamp(LEAST, 1.0))),
            Self::Fixed(mu) if mu > 0.0 && mu.is_finite() => Ok(Some(mu.min(1.0))),
            Self::Fixed(value) => Err(SolveError::Setting {
                what: "the acceleration's μ",
                value,
                needed: "positive and finite",
            }
            .into()),
        }
    }
}

/// α, β, γ.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Momentum {
    pub(super) alpha: f64,
    pub(super) beta: f64,
    pub(super) gamma: f64,
}

impl Momentum {
    /// For a μ of at most 1 and ν = n/b; their product is at most 1.
    pub(super) fn new(mu: f64, blocks: f64) -> Self {
        let nu = blocks.max(1.0);
        let mu = mu.min(1.0 / nu);
        let gamma = (mu * nu).sqrt().recip();
        Self { alpha: 1.0 / (1.0 + gamma * nu), beta: 1.0 - (mu / nu).sqrt(), gamma }
    }
}

/// μ, and how passes have gone of late.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Adaptation {
    pub(super) mu: f64,
    /// Passes that fell, one after the other.
    pub(super) falling: usize,
}

impl Adaptation {
    /// Judges a pass by its residual and that of the pass before; whether velocities are to be forgotten.
    ///
    /// Too small a μ shows in residuals that swing, too large a one in residuals that fall slowly and steadily. A single rise is no sign of anything: residuals of a pass are those of moving points.
    pub(super) fn judge(&mut self, before: f64, now: f64) -> bool {
        if now > before {
            let far = now > GROWN * before;
            self.mu = (self.mu * if far { GROWTH } else { FACTOR }).min(1.0);
            self.falling = 0;
            return far;
        }
        self.falling += 1;
        if self.falling >= PATIENCE && now > SLOW * before {
            self.mu /= FACTOR;
            self.falling = 0;
        }
        false
    }
}
