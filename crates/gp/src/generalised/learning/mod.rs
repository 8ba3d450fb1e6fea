//! **Learning the prior and choosing inducing points in turns** (Algorithm 2): given points, hyperparameters by type-II maximum likelihood of the exact process on them; given hyperparameters, points by greedy variance.
//!
//! The pair is as good as its points say: M of them, `O(M³)` an evaluation. It ends when points repeat any earlier set (a prototype of the specification's entered a cycle of two), and keeps the turn of the cycle with the
//! least risk. Hyperparameters go on from the turn before (erratum E8: the published text begins anew and looks up targets by the old points).
//!
//! Classes have a process and inducing points each, and learn together ([`learn_class_references`]).
//!
//! Source: spec `generalised_variational_inference`, section 4.

mod classes;

#[cfg(test)]
pub(super) use classes::together;
pub use classes::{ClassAlternation, ClassLearningOptions, LearnedClasses, learn_class_references};

use super::error::GeneralisedError;
use super::pointwise::pointwise_predictive_risk;
use crate::exact::{ExactGp, ExactPosterior, FitOptions, fit, log_evidence};
use crate::{GpError, Observations};
use faer::{Mat, MatRef};
use posterior_kernels::inducing::{
    KMeansSettings, greedy_variance, k_means, lengthscales, random_rows, scaled,
};
use posterior_kernels::matrix::KernelMatrix;
use posterior_linalg::random::Streams;
use posterior_optim::{
    Constrained, LoopOptions, Objective, ObjectiveError, Observer, Optimiser, Outcome, Parameters, Progress,
    Signal, State, minimise,
};
use rand::seq::SliceRandom;
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};

/// How inducing points are chosen among the rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum Selector {
    /// Rows that those before predict worst: pivoted Cholesky, O(n M²)
    #[default]
    GreedyVariance,
    /// Rows by chance
    Random,
    /// The rows next to the centres of clusters
    KMeans,
}

/// What is minimised in hyperparameters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum RegulariserRisk {
    /// Minus the log evidence
    #[default]
    Evidence,
    /// The published program's: predictions of the inducing points by themselves, unbounded below
    PointwisePredictive,
}

/// How to learn.
#[derive(Clone, Debug)]
pub struct LearningOptions {
    /// M.
    pub points: usize,
    /// How they are chosen.
    pub selector: Selector,
    /// What is minimised.
    pub risk: RegulariserRisk,
    /// Turns at most (published: 5); 0 chooses points and learns nothing.
    pub turns: usize,
    /// The search for the evidence: starts, priors, limits, seed. Its time is that of all turns together, whatever is minimised; they end with the one in which it is used up.
    pub evidence: FitOptions,
    /// The minimisation of the pointwise risk: optimiser (published: AdaBelief with steps of 1e-4) and steps (10,000).
    pub pointwise: (Optimiser, usize),
    /// The pointwise risk at which its minimisation ends (published: -10).
    pub least_risk: f64,
}

/// One turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Alternation {
    /// The rows that were inducing points, as they were chosen.
    pub rows: Vec<usize>,
    /// The risk of the hyperparameters that they led to: minus the log evidence for each target value, or the pointwise one.
    pub risk: f64,
    /// Hyperparameters, natural values.
    pub values: Vec<f64>,
    /// Steps of the search.
    pub steps: usize,
}

/// What was learned.
#[derive(Clone, Debug)]
pub struct LearnedReference {
    /// The exact posterior on the chosen points and their targets.
    pub posterior: ExactPosterior,
    /// The rows that these are.
    pub rows: Vec<usize>,
    /// All turns.
    pub turns: Vec<Alternation>,
    /// Whether points came back to an earlier set, so that more turns would change nothing.
    pub settled: bool,
    /// Whether its time was used up: in the last of its turns, or before all were taken.
    pub timed_out: bool,
    /// Whether the observer ended it.
    pub interrupted: bool,
}

/// M rows of x as inducing points, in the order in which they were chosen. Rows whose variances are equal are taken in an order by chance, so that the first of the table is nothing special. Fewer come back where further rows
/// are predicted already.
///
/// # Errors
/// [`GeneralisedError::TooManyPoints`], [`GeneralisedError::Option`] for no points.
pub fn select_rows(
    selector: Selector,
    kernel: &dyn posterior_kernels::Kernel<f64>,
    x: MatRef<'_, f64>,
    points: usize,
    streams: Streams,
) -> Result<Vec<usize>, GpError> {
    let n = x.nrows();
    if points == 0 {
        return Err(GeneralisedError::Option {
            option: "the number of inducing points",
            value: 0.0,
            remedy: "take at least one",
        }
        .into());
    }
    if points > n {
        return Err(GeneralisedError::TooManyPoints { asked: points, rows: n }.into());
    }
    Ok(match selector {
        Selector::Random => random_rows(n, points, streams),
        Selector::GreedyVariance => {
            let mut order: Vec<usize> = (0..n).collect();
            order.shuffle(&mut streams.stream("gp/greedy-order"));
            let shuffled = Mat::from_fn(n, x.ncols(), |i, j| x[(order[i], j)]);
            // Rows whose values are known to rounding add nothing but trouble.
            let tolerance = 100.0 * f64::EPSILON;
            let chosen = greedy_variance(&KernelMatrix::new(kernel, shuffled.as_ref()), points, tolerance);
            chosen.rows.into_iter().map(|i| order[i]).collect()
        }
        Selector::KMeans => {
            let scaled = scaled(x, &lengthscales(kernel, x.ncols()));
            let centres = k_means(scaled.as_ref(), points, KMeansSettings::default(), streams)
                .map_err(|e| GpError::State { problem: e.to_string() })?;
            nearest_rows(scaled.as_ref(), centres.as_ref())
        }
    })
}

/// The row next to each centre, none twice.
fn nearest_rows(x: MatRef<'_, f64>, centres: MatRef<'_, f64>) -> Vec<usize> {
    let mut taken = vec![false; x.nrows()];
    let mut out = Vec::with_capacity(centres.nrows());
    for centre in 0..centres.nrows() {
        let distance = |i: usize| -> f64 {
            x.row(i).iter().zip(centres.row(centre).iter()).map(|(a, b)| (a - b) * (a - b)).sum()
        };
        let free = (0..x.nrows()).filter(|&i| !taken[i]);
        if let Some(best) = free.min_by(|&a, &b| distance(a).total_cmp(&distance(b))) {
            taken[best] = true;
            out.push(best);
        }
    }
    out
}

/// Learns hyperparameters of `model`, and inducing points among the rows of `data`, in turns. The observer is told the steps of each search, the turn being the part of its progress.
///
/// Cost `turns · (n M² + steps · M³)`; memory `n M` numbers.
///
/// # Errors
/// [`GpError`]: too many points, nothing that could be factored, hyperpriors without parameters.
pub fn learn_reference(
    model: ExactGp,
    data: &Observations,
    options: &LearningOptions,
    observer: &mut Observer<'_, State>,
) -> Result<LearnedReference, GpError> {
    let started = Instant::now();
    let streams = Streams::new(options.evidence.seed);
    let choose = |model: &ExactGp, turn: usize| {
        let streams = streams.child("gp/inducing-turn", turn as u64);
        select_rows(options.selector, model.kernel(), data.inputs(), options.points, streams)
    };
    let left = || options.evidence.steps.time.map(|all| all.saturating_sub(started.elapsed()));
    let search = |model: ExactGp, rows: &[usize], turn: usize| {
        let mut told = |progress: &Progress, state: &State| {
            observer(&Progress { part: turn, parts: options.turns, ..*progress }, state)
        };
        let learned = learn(model, &data.select(rows)?, (options, left()), &mut told)?;
        Ok(Learned { is_last: left().is_some_and(|left| left.is_zero()), ..learned })
    };
    let (model, taken) = alternate(model, options.turns, search, choose)?;
    let Alternations { rows, turns, settled, timed_out, interrupted } = taken;
    let posterior = model.condition(data.select(&rows)?)?;
    Ok(LearnedReference { posterior, rows, turns, settled, timed_out, interrupted })
}

/// What one search led to.
pub(super) struct Learned {
    pub(super) model: ExactGp,
    pub(super) risk: f64,
    pub(super) steps: usize,
    /// Whether the observer ended it.
    pub(super) stopped: bool,
    /// Whether there is no time for another.
    pub(super) is_last: bool,
}

/// What turns led to.
pub(super) struct Alternations {
    pub(super) rows: Vec<usize>,
    pub(super) turns: Vec<Alternation>,
    pub(super) settled: bool,
    pub(super) timed_out: bool,
    pub(super) interrupted: bool,
}

/// At most so many turns of a `search` for hyperparameters, given rows and the turn, and of a choice of rows by these.
pub(super) fn alternate<S, C>(
    mut model: ExactGp,
    most: usize,
    mut search: S,
    choose: C,
) -> Result<(ExactGp, Alternations), GpError>
where
    S: FnMut(ExactGp, &[usize], usize) -> Result<Learned, GpError>,
    C: Fn(&ExactGp, usize) -> Result<Vec<usize>, GpError>,
{
    let mut rows = choose(&model, 0)?;
    let mut turns: Vec<Alternation> = Vec::new();
    let (mut settled, mut timed_out, mut interrupted) = (false, false, false);
    for turn in 0..most {
        let Learned { model: learned, risk, steps, stopped, is_last } = search(model, &rows, turn)?;
        model = learned;
        turns.push(Alternation { rows: rows.clone(), risk, values: model.values(), steps });
        (interrupted, timed_out) = (stopped, is_last && !stopped);
        if stopped || is_last {
            break;
        }
        let next = choose(&model, turn + 1)?;
        let set = as_set(&next);
        if let Some(first) = turns.iter().position(|turn| as_set(&turn.rows) == set) {
            // The turns since then come back for ever: the best of them is as good as it gets.
            let cycle = turns[first..].iter().min_by(|a, b| a.risk.total_cmp(&b.risk));
            if let Some(best) = cycle {
                model.set_values(&best.values);
                rows.clone_from(&best.rows);
            }
            settled = true;
            break;
        }
        if turn + 1 < most {
            rows = next;
        }
    }
    Ok((model, Alternations { rows, turns, settled, timed_out, interrupted }))
}

fn as_set(rows: &[usize]) -> Vec<usize> {
    let mut set = rows.to_vec();
    set.sort_unstable();
    set
}

/// One search, within `left` where time is limited.
fn learn(
    model: ExactGp,
    data: &Observations,
    (options, left): (&LearningOptions, Option<Duration>),
    observer: &mut Observer<'_, State>,
) -> Result<Learned, GpError> {
    let values = (data.rows() * data.targets().ncols()) as f64;
    match options.risk {
        RegulariserRisk::Evidence => {
            let mut stopped = false;
            let mut evidence = options.evidence.clone();
            evidence.steps.time = left;
            let found = fit(model, data.clone(), &evidence, &mut |progress, state| {
                let signal = observer(progress, state);
                stopped |= signal == Signal::Stop;
                signal
            })?;
            let model = found.posterior.model().clone();
            let risk = -log_evidence(&model, data, None)?.value / values;
            Ok(Learned { model, risk, steps: found.steps, stopped, is_last: false })
        }
        RegulariserRisk::PointwisePredictive => {
            let mut model = model;
            let map = Constrained::new(&mut model, &options.evidence.constraints)?;
            let start = map.unconstrained(&model.values());
            let mut objective = Pointwise { model, data, map: &map };
            let descent = Descent {
                optimiser: options.pointwise.0.clone(),
                steps: options.pointwise.1,
                least_risk: options.least_risk,
                time: left,
            };
            let (found, stopped) = descent.minimise(&mut objective, &start, observer)?;
            let mut model = objective.model;
            map.set(&mut model, &found.theta);
            let (risk, steps) = (found.value, found.steps);
            Ok(Learned { model, risk, steps, stopped, is_last: false })
        }
    }
}

/// How a pointwise risk is minimised.
struct Descent {
    optimiser: Optimiser,
    steps: usize,
    /// The risk at which it ends.
    least_risk: f64,
    time: Option<Duration>,
}

impl Descent {
    /// The best that was seen, and whether the observer ended it.
    fn minimise(
        self,
        objective: &mut dyn Objective,
        start: &[f64],
        observer: &mut Observer<'_, State>,
    ) -> Result<(Outcome, bool), GpError> {
        let options = LoopOptions {
            steps: self.steps,
            gradient_tolerance: 1e-9,
            value_tolerance: 0.0,
            patience: usize::MAX,
            time: self.time,
        };
        let mut stopped = false;
        let found = minimise(objective, start, self.optimiser, &options, &mut |progress, state| {
            stopped |= observer(progress, state) == Signal::Stop;
            let deep_enough = progress.value.is_some_and(|value| value < self.least_risk);
            if stopped || deep_enough { Signal::Stop } else { Signal::Continue }
        })?;
        Ok((found, stopped))
    }
}

/// The pointwise risk of free hyperparameters.
struct Pointwise<'a> {
    model: ExactGp,
    data: &'a Observations,
    map: &'a Constrained,
}

impl Objective for Pointwise<'_> {
    fn dimension(&self) -> usize {
        self.map.dimension()
    }

    fn parameter_names(&self) -> Vec<String> {
        self.map.names()
    }

    fn value_and_gradient(&mut self, theta: &[f64], gradient: &mut [f64]) -> Result<f64, ObjectiveError> {
        self.map.set(&mut self.model, theta);
        let failed = |error: GpError| ObjectiveError(error.to_string());
        let (value, natural) = pointwise_predictive_risk(&self.model, self.data).map_err(failed)?;
        gradient.copy_from_slice(&self.map.chain(theta, &natural));
        Ok(value)
    }
}
