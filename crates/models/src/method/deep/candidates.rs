//! The ways in which features are trained: what became of each, how it is judged, and which go on.

use super::targets::Scatter;
use super::weights::refitted;
use crate::options::{GO_ON, Setting};
use crate::{ModelError, TriedSetting};
use faer::{Mat, MatRef};
use posterior_likelihoods::Likelihood;
use posterior_linalg::triangular::{pack_lower, unpack_lower};
use posterior_linear::LinearError;
use posterior_linear::low_rank::{
    FeatureDiagnostics, LearnedFeatures, LowRankData, LowRankFit, LowRankOptions, LowRankPosterior,
    LowRankRows, LowRankState, ResidualVariance, WeightDistribution, refit,
};
use posterior_optim::{Parameters as _, Reason};
use serde::{Deserialize, Serialize};
use std::time::Instant;

/// What the first round ends by where a second could go on.
pub(crate) const GOES_ON: [Reason; 2] = [Reason::Steps, Reason::Time];

/// Why none of some ways to train something led anywhere: what each is called, and why it ended.
pub(crate) fn nowhere<'a>(what: &str, ways: impl Iterator<Item = (&'a String, &'a String)>) -> ModelError {
    let all: Vec<String> = ways.map(|(name, ended)| format!("{name}: {ended}")).collect();
    ModelError::Request(format!("no way to train {what} led anywhere: {}", all.join("; ")))
}

/// Everything that was found so far, for a checkpoint.
#[derive(Clone, Default, Serialize, Deserialize)]
pub(crate) struct DeepState {
    /// What became of each way.
    pub(crate) runs: Vec<Way>,
    /// The round, and how many runs of it are over.
    pub(crate) round: usize,
    pub(crate) over: usize,
    pub(crate) running: Option<LowRankState>,
}

/// One way to train, as far as it has come.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Way {
    pub(crate) tried: TriedSetting,
    pub(crate) best: Option<Best>,
    /// Where it can go on, if it can.
    pub(crate) state: Option<LowRankState>,
}

impl Way {
    pub(crate) fn nll(&self) -> f64 {
        self.best.as_ref().map_or(f64::INFINITY, |best| best.nll)
    }
}

/// What a way led to, as numbers.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Best {
    pub(crate) nll: f64,
    pub(crate) refitted: bool,
    pub(crate) features: Vec<f64>,
    /// What was learned of the likelihood.
    pub(crate) likelihood: Vec<f64>,
    /// By columns, one for each function.
    mean: Vec<f64>,
    /// Lower triangles, one for each function or one for all.
    pub(crate) roots: Vec<Vec<f64>>,
    pub(crate) residual_variance: ResidualVariance,
    pub(crate) objective: f64,
    pub(crate) reason: Reason,
    pub(crate) jitter: f64,
    pub(crate) diagnostics: FeatureDiagnostics,
}

impl DeepState {
    /// Which ways a round runs, by their numbers: all in the first, then the best of those that can go on.
    pub(crate) fn order(&self, count: usize) -> Vec<usize> {
        if self.round == 0 {
            return (0..count).collect();
        }
        let mut all: Vec<usize> = (0..self.runs.len()).collect();
        // What a run of this round changes must not change which runs it has.
        let first = |index: &usize| self.runs[*index].tried.first_nll;
        all.sort_by(|a, b| first(a).total_cmp(&first(b)));
        all.truncate(GO_ON);
        all.retain(|index| {
            GOES_ON.iter().any(|reason| self.runs[*index].tried.first_ended == reason.to_string())
        });
        all
    }

    /// Steps of earlier rounds that the way under way has behind it.
    pub(crate) fn going_on(&self, count: usize) -> usize {
        let way = self.order(count).get(self.over).and_then(|index| self.runs.get(*index));
        way.filter(|_| self.running.is_some()).map_or(0, |way| way.tried.steps[0])
    }
}

/// One run of a way.
pub(crate) struct Run<'a> {
    pub(crate) setting: &'a Setting,
    pub(crate) scatter: Scatter,
    pub(crate) begun: Instant,
    /// Whether the way does not go on.
    pub(crate) ends: bool,
    /// When weights that have no closed form are to be found.
    pub(crate) deadline: Option<Instant>,
}

impl Way {
    /// What a run led to: as it is, or with the exact posterior of its weights (the best Gaussian where that has no closed form), where it is better on the rows set aside.
    pub(crate) fn new(
        run: &Run<'_>,
        fit: LowRankFit,
        (train, aside): (&dyn LowRankRows, &LowRankData<'_>),
        before: Option<&Self>,
    ) -> Result<Self, ModelError> {
        let Run { setting, scatter, begun, ends, deadline } = *run;
        let own = fit.posterior.surprise(aside)?;
        let by_batches = setting.options.training.on_batches().is_some();
        let exactly = |as_noise: bool| {
            let options = LowRankOptions { rest_as_noise: as_noise, ..setting.options.clone() };
            let (features, likelihood) =
                (fit.posterior.features().clone_box(), fit.posterior.likelihood().clone_box());
            refit(features, likelihood, train, &options)
        };
        // After training on the evidence with a correction, its rests are the noise of the corrected process.
        let corrected = setting.options.corrected
            && matches!(fit.posterior.residual_variance(), ResidualVariance::Uniform { .. });
        let other = match scatter {
            Scatter::Gaussian => (by_batches || corrected).then(|| exactly(corrected)),
            Scatter::Labels { .. } | Scatter::Events => {
                (by_batches && ends).then(|| refitted(&fit.posterior, train, &setting.options, deadline))
            }
        };
        let other = other.transpose().ok().flatten();
        let refitted_nll = other.as_ref().map(|p| p.surprise(aside)).transpose()?.filter(|v| v.is_finite());
        let noise = fit.posterior.likelihood().shared_noise_variance();
        let (chosen, again) = match (other, refitted_nll) {
            // Of events rows judge the mean alone: how uncertain it is the bound says, which these weights have made largest.
            (Some(other), Some(score)) if score < own || !own.is_finite() || scatter == Scatter::Events => {
                (other, true)
            }
            _ => (fit.posterior, false),
        };
        let score = if again { refitted_nll.unwrap_or(own) } else { own };
        let shown = if score.is_finite() { score } else { f64::MAX };
        let seconds = begun.elapsed().as_secs_f64() + before.map_or(0.0, |way| way.tried.seconds);
        let ended = TriedSetting::ended(&setting.name, fit.reason.to_string(), seconds);
        let tried = TriedSetting {
            nll: if own.is_finite() { own } else { f64::MAX },
            refitted_nll,
            first_nll: before.map_or(shown, |way| way.tried.first_nll),
            first_ended: before.map_or(ended.first_ended, |way| way.tried.first_ended.clone()),
            noise,
            steps: [fit.steps, fit.best.map_or(fit.steps, |look| look.step)],
            triangular_solves: fit.triangular_solves,
            validation_scores: fit
                .validation_scores
                .into_iter()
                .filter(|look| look.nll.is_finite())
                .collect(),
            ..ended
        };
        let best = score.is_finite().then(|| {
            let q = chosen.distribution();
            let packed = |root: &Mat<f64>| {
                let mut out = Vec::new();
                pack_lower(root.as_ref(), &mut out);
                out
            };
            Best {
                nll: score,
                refitted: again,
                features: chosen.features().unconstrained(),
                likelihood: chosen.likelihood().values(),
                mean: (0..q.latents()).flat_map(|c| q.mean_of(c).to_vec()).collect(),
                roots: q.roots().iter().map(packed).collect(),
                residual_variance: chosen.residual_variance(),
                objective: fit.objective,
                reason: fit.reason,
                jitter: fit.largest_jitter,
                diagnostics: fit.diagnostics,
            }
        });
        let state = GOES_ON.contains(&fit.reason).then_some(fit.state);
        Ok(Self { tried, best, state })
    }

    pub(crate) fn failed(setting: &Setting, error: &LinearError, begun: Instant) -> Self {
        let seconds = begun.elapsed().as_secs_f64();
        let tried = TriedSetting::ended(&setting.name, error.to_string(), seconds);
        Self { tried, best: None, state: None }
    }
}

impl Best {
    pub(crate) fn posterior(
        &self,
        mut features: Box<dyn LearnedFeatures>,
        mut likelihood: Box<dyn Likelihood>,
    ) -> Result<LowRankPosterior, ModelError> {
        features.set_unconstrained(&self.features)?;
        let m = features.rank();
        let mean = MatRef::from_column_major_slice(&self.mean, m, self.mean.len() / m).to_owned();
        let roots = self.roots.iter().map(|root| unpack_lower(root, m)).collect();
        let q = WeightDistribution::new(mean, roots)?;
        likelihood.set_values(&self.likelihood);
        Ok(LowRankPosterior::new(features, q, likelihood, self.residual_variance)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn way(first_nll: f64, reason: Reason) -> Way {
        let tried =
            TriedSetting { first_nll, steps: [1, 1], ..TriedSetting::ended("", reason.to_string(), 1.0) };
        Way { tried, best: None, state: None }
    }

    #[test]
    fn the_best_that_can_go_on_do() {
        let order = |runs: Vec<Way>| DeepState { runs, round: 1, ..DeepState::default() }.order(4);
        let (steps, time, patience) = (Reason::Steps, Reason::Time, Reason::Patience);
        // Runs that were short of time are no worse than those that had all their passes.
        assert_eq!(order(vec![way(0.3, time), way(0.1, time), way(0.2, steps), way(0.4, steps)]), [1, 2]);
        // What patience ended is not replaced by what is worse.
        assert_eq!(order(vec![way(0.3, steps), way(0.1, patience), way(0.2, time)]), [2]);
        assert_eq!(DeepState::default().order(4), [0, 1, 2, 3]);
    }

    #[test]
    fn steps_of_a_way_that_goes_on_are_not_counted_twice() {
        let mut state = DeepState {
            runs: vec![way(0.3, Reason::Steps), way(0.1, Reason::Steps)],
            ..DeepState::default()
        };
        assert_eq!(state.going_on(2), 0);
        (state.round, state.over) = (1, 1);
        assert_eq!(state.going_on(2), 0);
        state.running =
            Some(LowRankState::begin(None, vec![0.0], &LowRankOptions::default().patience()).unwrap());
        assert_eq!(state.going_on(2), 1);
    }
}
