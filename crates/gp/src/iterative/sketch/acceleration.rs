//! Nesterov's scheme for random blocks, and the one number that it depends on.

use crate::GpError;
use posterior_linalg::solve::SolveError;
use serde::{Deserialize, Serialize};

/// The first μ of sketched blocks where the noise says less: what sketches leave of their blocks is as slow as what blocks leave.
const SKETCHED: f64 = 1e-3;

/// The residual of a pass over that of the pass before from which on velocities are forgotten: μ is too small by far.
const GROWN: f64 = 1.5;

/// What μ grows by where residuals do, and where they do by far.
const FACTOR: f64 = 1.5;
const GROWTH: f64 = 2.0;

/// Passes whose fall is compared with what μ promises.
const WINDOW: usize = 4;

/// Share of that from which on it is kept.
const KEPT: f64 = 0.5;

/// The least that μ shrinks to at a time, as a share of it.
const LEAST: f64 = 0.25;

/// How steps are accelerated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Acceleration {
    /// With a μ that begins at `1/ν`, where it accelerates next to nothing, or of sketched blocks at `max(noise / diagonal, 1e-3)`, shrinks where passes fall less than it promises and grows where their residuals do.
    #[default]
    Adaptive,
    /// With this μ, above 0; more than 1 counts as 1.
    Fixed(f64),
    /// Not at all.
    None,
}

impl Acceleration {
    /// The first μ for blocks of which all rows are ν, and for a noise that is so large a share of the diagonal where they are sketched; None without acceleration.
    pub(super) fn first(self, blocks: f64, sketched: Option<f64>) -> Result<Option<f64>, GpError> {
        match self {
            Self::None => Ok(None),
            Self::Adaptive => Ok(Some(match sketched {
                None => blocks.max(1.0).recip(),
                Some(noise_share) => noise_share.clamp(SKETCHED, 1.0),
            })),
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
    /// Passes that fell, one after the other, under this μ.
    pub(super) falling: usize,
    /// Residuals of the last passes, the last at the end; infinite before there are as many.
    pub(super) recent: [f64; WINDOW + 1],
}

impl Adaptation {
    /// Residuals that are kept.
    pub(super) const REMEMBERED: usize = WINDOW + 1;

    pub(super) fn from(mu: f64) -> Self {
        Self { mu, falling: 0, recent: [f64::INFINITY; WINDOW + 1] }
    }

    /// Judges a pass by its residual, for blocks of which all rows are ν; whether velocities are to be forgotten.
    ///
    /// With μ the smallest eigenvalue of what blocks leave, a pass is promised a fall by `exp(-(μν)^½)`. Where μ is larger than that eigenvalue, passes fall by less, in the proportion of the two: what they fall by over some passes says where it is. Where μ is smaller, residuals swing.
    pub(super) fn judge(&mut self, now: f64, blocks: f64) -> bool {
        let before = self.recent[WINDOW];
        self.recent.rotate_left(1);
        self.recent[WINDOW] = now;
        if now > before {
            let far = now > GROWN * before;
            self.mu = (self.mu * if far { GROWTH } else { FACTOR }).min(blocks.max(1.0).recip());
            self.falling = 0;
            return far;
        }
        self.falling += usize::from(before.is_finite());
        if self.falling >= WINDOW {
            let fall = (self.recent[0] / now).ln() / WINDOW as f64;
            let share = fall / (self.mu * blocks).sqrt();
            if share < KEPT {
                self.mu *= share.max(LEAST);
                self.falling = 0;
            }
        }
        false
    }
}
