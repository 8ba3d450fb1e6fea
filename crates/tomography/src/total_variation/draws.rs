//! Draws from what total variation says of pictures before anything is measured.

use super::TotalVariation;
use crate::TomographyError;
use crate::running::meant;
use faer::Mat;
use posterior_linalg::random::{ChaCha8Rng, Streams};
use posterior_optim::Signal;
use rand::RngExt;
use rand_distr::{Distribution, StandardNormal};
use serde::{Deserialize, Serialize};

/// `p(x) ~ exp(-weight TV(x) - precision |x|² / 2)`: total variation alone says nothing of a picture's mean, and is no distribution.
#[derive(Clone, Debug)]
pub struct VariationPrior {
    variation: TotalVariation,
    weight: f64,
    precision: f64,
}

/// How a chain is run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ChainOptions {
    /// Draws that are kept.
    pub draws: usize,
    /// Trajectories between two of them.
    pub thin: usize,
    /// Trajectories before the first, over which the step size is found.
    pub warm_up: usize,
    /// Steps of a trajectory.
    pub leaps: usize,
    /// Share of trajectories that are to be accepted.
    pub accepted: f64,
    /// Seed.
    pub seed: u64,
}

impl Default for ChainOptions {
    /// The optimal share of Hamiltonian Monte Carlo for many pixels, 0.65 (Beskos et al. 2013), raised since every kink on the way costs.
    fn default() -> Self {
        Self { draws: 100, thin: 10, warm_up: 500, leaps: 30, accepted: 0.8, seed: 0 }
    }
}

/// What a chain drew.
#[derive(Clone, Debug)]
pub struct Chain {
    /// Pictures (pixels x draws), in their order.
    pub pictures: Mat<f64>,
    /// Share of trajectories after the warm-up that were accepted.
    pub accepted: f64,
    /// The step size that the warm-up found.
    pub step_size: f64,
    /// Total variation of each draw: where it has a trend, the warm-up was too short.
    pub variations: Vec<f64>,
}

/// A chain under way.
struct State {
    picture: Vec<f64>,
    energy: f64,
    gradient: Vec<f64>,
}

impl VariationPrior {
    /// Of a total variation with its weight, and a precision of pixels by themselves.
    ///
    /// # Errors
    /// [`TomographyError::Option`] for numbers that are not positive and finite.
    pub fn new(variation: TotalVariation, weight: f64, precision: f64) -> Result<Self, TomographyError> {
        for (name, value) in
            [("the weight of total variation", weight), ("the precision of pixels", precision)]
        {
            if !(value > 0.0 && value.is_finite()) {
                return Err(TomographyError::Option { name, value, expected: "positive and finite" });
            }
        }
        Ok(Self { variation, weight, precision })
    }

    /// `-log p(x)` without its constant.
    pub fn energy(&self, picture: &[f64]) -> f64 {
        let squares: f64 = picture.iter().map(|v| v * v).sum();
        self.weight * self.variation.value(picture) + 0.5 * self.precision * squares
    }

    fn at(&self, picture: Vec<f64>) -> State {
        let mut gradient: Vec<f64> = picture.iter().map(|v| self.precision * v).collect();
        self.variation.add_subgradient(&picture, self.weight, &mut gradient);
        State { energy: self.energy(&picture), gradient, picture }
    }

    /// Draws by Hamiltonian Monte Carlo: leapfrog steps on subgradients preserve volumes and can be run backwards whatever the gradient, so that the kinks of total variation cost acceptance and not correctness.
    ///
    /// Cost of a trajectory: `leaps` subgradients, some passes over the picture each. Neighbouring draws are correlated, the more the larger the picture.
    ///
    /// Source: Neal (2011), *MCMC using Hamiltonian dynamics*, section 5.3; step size by the recursion of Robbins and Monro; spec `tomography`, E2.
    ///
    /// # Errors
    /// [`TomographyError::Option`] for counts of zero; [`TomographyError::Interrupted`].
    pub fn draw(
        &self,
        options: &ChainOptions,
        watch: &mut dyn FnMut(usize, usize) -> Signal,
    ) -> Result<Chain, TomographyError> {
        meant("the number of draws", options.draws)?;
        meant("the number of trajectories between draws", options.thin)?;
        meant("the number of steps of a trajectory", options.leaps)?;
        meant("the number of trajectories before the first draw", options.warm_up)?;
        let wanted = options.accepted;
        if !(wanted > 0.0 && wanted < 1.0) {
            let (name, expected) = ("the share of accepted trajectories", "between 0 and 1");
            return Err(TomographyError::Option { name, value: wanted, expected });
        }
        let n = self.variation.pixels();
        let mut rng = Streams::new(options.seed).stream("tomography/total variation/chain");
        let mut state = self.at(vec![0.0; n]);
        // A tenth of what two neighbours differ by; the warm-up does the rest.
        let mut log_step = (0.1 / (self.weight + self.precision.sqrt())).ln();
        for done in 0..options.warm_up {
            let accepted = self.trajectory(&mut state, log_step.exp(), options.leaps, &mut rng);
            log_step += (accepted - wanted) / (1.0 + done as f64).powf(0.6);
            if watch(done + 1, options.warm_up + options.draws) == Signal::Stop {
                return Err(TomographyError::Interrupted);
            }
        }
        let step_size = log_step.exp();
        let mut pictures = Mat::zeros(n, options.draws);
        let (mut accepted, mut variations) = (0.0, Vec::with_capacity(options.draws));
        for j in 0..options.draws {
            for _ in 0..options.thin {
                accepted += self.trajectory(&mut state, step_size, options.leaps, &mut rng);
            }
            pictures.col_as_slice_mut(j).copy_from_slice(&state.picture);
            variations.push(self.variation.value(&state.picture));
            if watch(options.warm_up + j + 1, options.warm_up + options.draws) == Signal::Stop {
                return Err(TomographyError::Interrupted);
            }
        }
        accepted /= (options.draws * options.thin) as f64;
        Ok(Chain { pictures, accepted, step_size, variations })
    }

    /// One trajectory; says with what probability it was accepted.
    fn trajectory(&self, state: &mut State, step: f64, leaps: usize, rng: &mut ChaCha8Rng) -> f64 {
        // Steps of one length resonate with the frequencies of pictures.
        let step = step * rng.random_range(0.8..1.2);
        let mut momentum: Vec<f64> = (0..state.picture.len()).map(|_| StandardNormal.sample(rng)).collect();
        let kinetic = |momentum: &[f64]| 0.5 * momentum.iter().map(|p| p * p).sum::<f64>();
        let before = state.energy + kinetic(&momentum);
        let kick = |momentum: &mut [f64], gradient: &[f64], by: f64| {
            momentum.iter_mut().zip(gradient).for_each(|(p, g)| *p -= by * g);
        };
        kick(&mut momentum, &state.gradient, 0.5 * step);
        let mut moved = State { picture: state.picture.clone(), energy: 0.0, gradient: Vec::new() };
        for leap in 0..leaps {
            moved.picture.iter_mut().zip(&momentum).for_each(|(x, p)| *x += step * p);
            moved = self.at(std::mem::take(&mut moved.picture));
            kick(&mut momentum, &moved.gradient, if leap + 1 < leaps { step } else { 0.5 * step });
        }
        let gain = before - moved.energy - kinetic(&momentum);
        // A trajectory that ran away is not accepted.
        let accepted = if gain.is_nan() { 0.0 } else { gain.exp().min(1.0) };
        if rng.random::<f64>() < accepted {
            *state = moved;
        }
        accepted
    }
}
