//! The greedy design as a plain state machine: `scores`, `choose`, `add`, and now and then `refresh`.
//!
//! By submodularity, greedily collected information is at least `1 - 1/e` of the best set's of the same size (Nemhauser, Wolsey and Fisher 1978).

use super::baselines::check_angles;
use super::exact::ExactCovariances;
use super::sampled::PosteriorImages;
use super::{Acquisition, DesignError, Scanner};
use faer::MatRef;
use posterior_linalg::operator::LinearOperator;
use posterior_linalg::random::Streams;
use serde::{Deserialize, Serialize};

/// How covariances of angles are had.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DesignMethod {
    /// All of them, exactly.
    Exact,
    /// From draws of the image.
    Sampled {
        /// How many; 3,000 in the thesis.
        samples: usize,
    },
}

/// What a design is made by.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DesignSettings {
    /// What is maximised.
    pub acquisition: Acquisition,
    /// How.
    pub method: DesignMethod,
    /// σ², in the units of the prior's measurements: scaling the prior without it changes designs (fix F10).
    pub noise_variance: f64,
    /// Added to the noise variance, relative to the mean variance of the measurements of the first angles under the prior. 0 is the model; the authors' code has 0.05 to 0.1 for networks. The sum is the noise
    /// of everything (factor, draws and scores), so that draws and factor remain of one model.
    pub stabiliser: f64,
    /// Of draws.
    pub seed: u64,
}

/// Where a design stands: plain data, from which [`Designer::resume`] goes on bit for bit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DesignState {
    /// Its settings.
    pub settings: DesignSettings,
    /// The angles, in the order they were measured; the pilot's first.
    pub chosen: Vec<usize>,
    /// How many there were when the present root of the prior came.
    pub since: usize,
    /// How many roots came before it.
    pub refreshes: u64,
}

/// What an angle is worth.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Score {
    /// Which one.
    pub angle: usize,
    /// By the acquisition of the settings.
    pub value: f64,
}

enum Covariances {
    Exact(ExactCovariances),
    Sampled(PosteriorImages),
}

/// A design in the making. See the [module](super) for its memory, and [`DesignPlan`](super::DesignPlan) before it begins.
pub struct Designer<'a> {
    scanner: &'a dyn Scanner,
    root: &'a dyn LinearOperator<f64>,
    state: DesignState,
    covariances: Covariances,
    /// With the stabiliser.
    noise: f64,
}

impl<'a> Designer<'a> {
    /// Begins after a pilot scan at these angles, which may be none.
    ///
    /// # Errors
    /// [`DesignError::Setting`], [`DesignError::Shape`], [`DesignError::Angle`] and [`DesignError::Repeated`] for what does not fit; [`DesignError::Cholesky`] when the prior's measurements have no positive-definite covariance.
    pub fn new(
        scanner: &'a dyn Scanner,
        root: &'a dyn LinearOperator<f64>,
        settings: DesignSettings,
        pilot: &[usize],
    ) -> Result<Self, DesignError> {
        let since = pilot.len();
        Self::resume(scanner, root, DesignState { settings, chosen: pilot.to_vec(), since, refreshes: 0 })
    }

    /// Goes on from a state with the root that it had. What was computed is computed again, in the same order: as much work as from the last refresh until here.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn resume(
        scanner: &'a dyn Scanner,
        root: &'a dyn LinearOperator<f64>,
        state: DesignState,
    ) -> Result<Self, DesignError> {
        check(scanner, root, &state)?;
        let DesignState { settings, chosen, since, .. } = &state;
        let first = &chosen[..*since];
        let (covariances, noise) = match settings.method {
            DesignMethod::Exact => {
                let mut exact = ExactCovariances::prior(scanner, root);
                let noise = settings.noise_variance + settings.stabiliser * exact.mean_variance(first);
                for &angle in first {
                    exact.add(scanner, root, angle, noise)?;
                }
                (Covariances::Exact(exact), noise)
            }
            DesignMethod::Sampled { samples } => {
                let noise = (settings.noise_variance, settings.stabiliser);
                let draws = (samples, streams(&state));
                let (sampled, noise) = PosteriorImages::of(scanner, root, first, noise, draws)?;
                (Covariances::Sampled(sampled), noise)
            }
        };
        let rest = chosen[*since..].to_vec();
        let state = DesignState { chosen: first.to_vec(), ..state };
        let mut this = Self { scanner, root, state, covariances, noise };
        rest.into_iter().try_for_each(|angle| this.add(angle))?;
        Ok(this)
    }

    /// What can be saved.
    pub fn state(&self) -> &DesignState {
        &self.state
    }

    /// The angles so far.
    pub fn chosen(&self) -> &[usize] {
        &self.state.chosen
    }

    /// The noise variance of factor, draws and scores: that of the settings and the stabiliser's part.
    pub fn noise_variance(&self) -> f64 {
        self.noise
    }

    /// What the stabiliser added to the noise variance.
    pub fn jitter(&self) -> f64 {
        self.noise - self.state.settings.noise_variance
    }

    /// The draws of the image under all angles so far (p x m), zero in the mean; none of an exact design.
    pub fn images(&self) -> Option<MatRef<'_, f64>> {
        match &self.covariances {
            Covariances::Exact(_) => None,
            Covariances::Sampled(sampled) => Some(sampled.images().as_ref()),
        }
    }

    /// The scores of all angles that are not in the design, by number.
    ///
    /// # Errors
    /// [`DesignError::Exhausted`] when there are none, [`DesignError::Cholesky`] or [`DesignError::Score`] when numbers are not finite.
    pub fn scores(&self) -> Result<Vec<Score>, DesignError> {
        let angles = self.scanner.angles();
        let left: Vec<usize> = (0..angles).filter(|angle| !self.state.chosen.contains(angle)).collect();
        if left.is_empty() {
            return Err(DesignError::Exhausted { angles });
        }
        let acquisition = self.state.settings.acquisition;
        let values = match &self.covariances {
            Covariances::Exact(exact) => exact.scores(&left, acquisition, self.noise)?,
            Covariances::Sampled(sampled) => sampled.scores(self.scanner, &left, acquisition, self.noise)?,
        };
        let scores: Vec<Score> =
            left.into_iter().zip(values).map(|(angle, value)| Score { angle, value }).collect();
        match scores.iter().find(|score| !score.value.is_finite()) {
            Some(&Score { angle, value }) => Err(DesignError::Score { angle, value }),
            None => Ok(scores),
        }
    }

    /// The best angle; of equal ones the first. Nothing changes.
    ///
    /// # Errors
    /// As [`Self::scores`].
    pub fn choose(&self) -> Result<Score, DesignError> {
        let scores = self.scores()?;
        let best = |best: Score, next: Score| if next.value > best.value { next } else { best };
        Ok(scores[1..].iter().copied().fold(scores[0], best))
    }

    /// Takes an angle into the design: the best, or any other that is not in it. On error nothing has changed.
    ///
    /// # Errors
    /// [`DesignError::Angle`] and [`DesignError::Repeated`], [`DesignError::Cholesky`] when its measurements repeat others without noise.
    pub fn add(&mut self, angle: usize) -> Result<(), DesignError> {
        let angles = self.scanner.angles();
        if angle >= angles {
            return Err(DesignError::Angle { angle, angles });
        }
        if self.state.chosen.contains(&angle) {
            return Err(DesignError::Repeated { angle });
        }
        let chosen = &self.state.chosen;
        match &mut self.covariances {
            Covariances::Exact(exact) => exact.add(self.scanner, self.root, angle, self.noise)?,
            Covariances::Sampled(sampled) => {
                // Noise of its own for every angle added.
                let own = streams(&self.state).child("tomography/design/step", chosen.len() as u64);
                sampled.add(self.scanner, self.root, (chosen, angle), self.noise, own)?;
            }
        }
        self.state.chosen.push(angle);
        Ok(())
    }

    /// [`Self::choose`] and [`Self::add`].
    ///
    /// # Errors
    /// As both.
    pub fn step(&mut self) -> Result<Score, DesignError> {
        let best = self.choose()?;
        self.add(best.angle)?;
        Ok(best)
    }

    /// Another root of the prior (of the same number of pixels), learned from what was measured: everything is built anew for all angles so far, with new draws.
    ///
    /// Takes the designer, so that the old root and what was computed from it can go before the new ones come: together they may not fit. On error a copy of the [state](Self::state) is what there is.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn refresh<'b>(self, root: &'b dyn LinearOperator<f64>) -> Result<Designer<'b>, DesignError>
    where
        'a: 'b,
    {
        let Self { scanner, mut state, covariances, .. } = self;
        drop(covariances);
        state.since = state.chosen.len();
        state.refreshes += 1;
        Designer::resume(scanner, root, state)
    }
}

/// Draws since the last refresh.
fn streams(state: &DesignState) -> Streams {
    Streams::new(state.settings.seed).child("tomography/design", state.refreshes)
}

fn check(
    scanner: &dyn Scanner,
    root: &dyn LinearOperator<f64>,
    state: &DesignState,
) -> Result<(), DesignError> {
    let settings = &state.settings;
    let setting = |what, value, needed, fits: bool| {
        if fits { Ok(()) } else { Err(DesignError::Setting { what, value, needed }) }
    };
    let (noise, share) = (settings.noise_variance, settings.stabiliser);
    setting("the noise variance", noise, "positive and finite", noise > 0.0 && noise.is_finite())?;
    setting("the stabiliser", share, "at least 0 and finite", share >= 0.0 && share.is_finite())?;
    let first = state.since as f64;
    setting(
        "the number of angles since the last refresh",
        first,
        "at most that of all",
        state.since <= state.chosen.len(),
    )?;
    let stabilised = share == 0.0 || state.since > 0;
    setting("the stabiliser", share, "0 without a pilot scan, whose variance it is relative to", stabilised)?;
    if let DesignMethod::Sampled { samples } = settings.method {
        setting("the number of samples", samples as f64, "at least 1", samples > 0)?;
    }
    if root.shape().0 != scanner.pixels() {
        let (expected, actual) = (scanner.pixels(), root.shape().0);
        return Err(DesignError::Shape { what: "pixels of the prior", expected, actual });
    }
    check_angles(scanner.angles(), &state.chosen)
}
