//! **Hyperparameters by held-out data**: the negative log predictive density of examples that the curvature has not seen, under the very predictive that will be used.
//!
//! All prior precisions are multiplied by one factor, tried on a logarithmic grid around a start (the evidence's optimum); under Gaussian noise the noise is then tried likewise. A grid whose
//! best point is its edge is moved until it is not, five times at most, and what was found is told either way.

use super::curvature::Curvature;
use crate::LaplaceError;
use crate::prior::scaled;
use crate::problem::{Data, Problem};
use crate::run::{Run, Stage};
use crate::scores::{GridPoint, HeldOutReport, Scored, plain_nll, scaled_noise};
use posterior_likelihoods::Integration;
use posterior_linear::Prior;
use posterior_networks::Precision;
use posterior_networks::train::Examples;

/// Held-out examples, each set with the curvature of the others.
pub(crate) struct HeldOut<'a, T> {
    pub(crate) problem: Problem<'a, T>,
    pub(crate) integration: Integration,
    pub(crate) sets: Vec<(Curvature<T>, &'a dyn Examples<T>)>,
    /// What predictions count beside the posterior ([`super::ModeSummary::displacement`]).
    pub(crate) displacement: Option<Vec<T>>,
}

impl<T: Precision> HeldOut<'_, T> {
    fn examples(&self) -> usize {
        self.sets.iter().map(|s| s.1.len()).sum()
    }

    /// Mean scores of several settings (prior, noise variance).
    fn scores(&self, settings: &[(Prior, f64)], run: &mut Run<'_>) -> Result<Vec<f64>, LaplaceError> {
        let &Problem { data: Data { network, likelihood, .. }, selection, memory, .. } = &self.problem;
        let displacement = self.displacement.as_ref().map(|own| (selection, &own[..]));
        let noise_variances: Vec<f64> = settings.iter().map(|s| s.1).collect();
        let mut sums: Vec<Result<f64, LaplaceError>> = settings.iter().map(|_| Ok(0.0)).collect();
        let (total, mut done) = (self.examples() * settings.len(), 0);
        for &(ref curvature, examples) in &self.sets {
            let data = Data { examples, ..self.problem.data };
            let by = Scored { data, integration: self.integration, displacement };
            // As many posteriors at a time as memory allows.
            let each =
                (memory / 4 / curvature.posterior_bytes().max(1)).clamp(1, settings.len() as u64) as usize;
            for start in (0..settings.len()).step_by(each) {
                let group = start..(start + each).min(settings.len());
                let weights = (network, selection);
                let posterior = curvature.conditioned(weights, likelihood, &settings[group.clone()])?;
                by.add(
                    &mut |x, wanted| posterior.latents(network, x, wanted),
                    &noise_variances[group.clone()],
                    &mut sums[group.clone()],
                    &mut |range| {
                        done += range.len() * group.len();
                        run.step(Stage::Validation, done, total)
                    },
                )?;
            }
        }
        // A setting whose predictive fails is out of the race, not the whole run.
        let count = self.examples() as f64;
        Ok(sums.into_iter().map(|sum| sum.unwrap_or(f64::NAN) / count).collect())
    }

    /// The search.
    pub(crate) fn search(
        &self,
        start: &Prior,
        noise_variance: f64,
        learn_noise: bool,
        plain_noise: f64,
        run: &mut Run<'_>,
    ) -> Result<HeldOutReport, LaplaceError> {
        if self.examples() == 0 {
            return Err(LaplaceError::Request("there are no held-out examples to tune on".into()));
        }
        let mut scores = |settings: &[(Prior, f64)]| self.scores(settings, run);
        let (grid, best, at_edge) = tried(start, noise_variance, learn_noise, &mut scores)?;
        let not_finite = grid.iter().filter(|p| !p.nll.is_finite()).count();
        let sets: Vec<_> = self.sets.iter().map(|s| s.1).collect();
        let plain = scaled_noise(self.problem.likelihood, plain_noise)?;
        let plain_nll = plain_nll(self.problem.network, &sets, &plain)?;
        Ok(HeldOutReport { examples: self.examples(), grid, best, plain_nll, at_edge, not_finite })
    }
}

/// Scores of several settings (prior, noise variance).
type Scores<'a> = &'a mut dyn FnMut(&[(Prior, f64)]) -> Result<Vec<f64>, LaplaceError>;

/// Every point that the search tries, the best of them, and whether that is still at the edge.
fn tried(
    start: &Prior,
    noise_variance: f64,
    learn_noise: bool,
    scores: Scores<'_>,
) -> Result<(Vec<GridPoint>, GridPoint, bool), LaplaceError> {
    let mut grid: Vec<GridPoint> = Vec::new();
    let mut best = GridPoint { precision_factor: 1.0, noise_variance, nll: f64::INFINITY };
    let mut at_edge = false;
    // Precisions, then noise, then precisions again where noise moved.
    let rounds: &[bool] = if learn_noise { &[false, true, false] } else { &[false] };
    for &noise_round in rounds {
        let (mut low, mut high) = if noise_round { (-8, 8) } else { (-12, 12) };
        let step = if noise_round { 10f64.powf(0.125) } else { 10f64.powf(0.25) };
        let centre = best;
        let mut todo: Vec<i32> = (low..=high).collect();
        let mut own: Vec<(i32, GridPoint)> = Vec::new();
        for _ in 0..6 {
            let point = |k: &i32| {
                let factor = step.powi(*k);
                match noise_round {
                    true => (centre.precision_factor, centre.noise_variance * factor),
                    false => (centre.precision_factor * factor, centre.noise_variance),
                }
            };
            let points: Vec<(f64, f64)> = todo.iter().map(point).collect();
            let settings: Vec<(Prior, f64)> = points
                .iter()
                .map(|(factor, noise)| Ok((scaled(start, *factor)?, *noise)))
                .collect::<Result<_, LaplaceError>>()?;
            for ((k, point), nll) in todo.iter().zip(&points).zip(scores(&settings)?) {
                let point = GridPoint { precision_factor: point.0, noise_variance: point.1, nll };
                grid.push(point);
                own.push((*k, point));
                if nll < best.nll {
                    best = point;
                }
            }
            let at = own.iter().filter(|p| p.1.nll.is_finite()).min_by(|a, b| a.1.nll.total_cmp(&b.1.nll));
            let Some((k, _)) = at else { break };
            at_edge = *k == low || *k == high;
            if !at_edge {
                break;
            }
            todo = if *k == low { (low - 6..low).collect() } else { (high + 1..=high + 6).collect() };
            (low, high) = (low.min(todo[0]), high.max(todo[todo.len() - 1]));
        }
    }
    if !best.nll.is_finite() {
        return Err(LaplaceError::Request(
            "no prior precision gave a finite score on the held-out examples; check their targets".into(),
        ));
    }
    Ok((grid, best, at_edge))
}
