//! Expectation maximisation: mode and samples for the precisions, precisions for mode and samples.

use super::descent::{Averaging, DescentOptions, DescentState, SampledError, descend};
use super::exact::{ConjugateOptions, solve_exactly};
use super::mode::ModeObjective;
use super::model::SampledModel;
use super::noise::Noise;
use super::objective::{Objective, SampleObjective};
use super::update::{Group, Update, sampled_bound};
use crate::curvature::{FitSums, is_gaussian};
use crate::evidence::{DataFit, noise_update};
use crate::features::FeatureMap;
use crate::mode::{ModeOptions, ModeProblem, Predictor};
use crate::structure::{Block, BlockMatrix, Diagonal, Structure};
use crate::{LinearError, Prior, PriorError};
use faer::{Mat, MatRef};
use posterior_linalg::Real;
use posterior_linalg::solve::{ConjugateGradientState, SpectralMeasure};
use posterior_optim::{Iteration, Progress, Reason, Run, Signal, Step};
use serde::{Deserialize, Serialize};
use std::time::Instant;

/// How samples are solved for in weight space.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Solve {
    /// By descent on batches.
    Descent(DescentOptions),
    /// By conjugate gradients on all data.
    ConjugateGradients(ConjugateOptions),
}

/// Where a solve stands.
#[derive(Clone, Debug, PartialEq)]
pub enum SolverState {
    /// A descent.
    Descent(DescentState),
    /// Conjugate gradients.
    ConjugateGradients(ConjugateGradientState<f64>),
}

/// How the mode is found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ModeSolver {
    /// Newton's method with truncated steps, all data in every product.
    Newton(ModeOptions),
    /// Descent on batches with steps that fall to zero.
    Descent(DescentOptions),
}

impl Default for ModeSolver {
    fn default() -> Self {
        Self::Newton(ModeOptions::default())
    }
}

/// By which space the effective dimension is estimated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Estimator {
    /// `mean_j sum_i |phi_i zeta_j|²_B`: one pass, never negative, the better where less than half of the weights are determined.
    #[default]
    Prediction,
    /// `d - mean_j |zeta_j|²_A`: no pass; several groups of weights use it always.
    Weight,
}

/// Samples that were solved for.
#[derive(Clone, Debug, PartialEq)]
pub struct Drawn {
    /// d x K.
    pub samples: Mat<f64>,
    /// `s |phi zeta_j|²_B` of each, where it is known without a pass.
    pub squared_outputs: Option<Vec<f64>>,
    /// Steps taken.
    pub steps: usize,
    /// Why it ended.
    pub reason: Reason,
}

/// Sees every step of a solver, which makes its state when asked to, and may stop it.
pub type WatchSolver<'a, S> = dyn FnMut(&Progress, &dyn Fn() -> S) -> Signal + 'a;

/// Something that makes the samples of frozen noise for any precisions.
pub trait Sampler {
    /// Where it stands within a solve: plain data.
    type State: Clone;

    /// Samples for prior precisions of each weight (d) and a strength, from earlier ones where there are some, or from a state of the same solve.
    ///
    /// # Errors
    /// [`SampledError`].
    fn samples(
        &mut self,
        precisions: &[f64],
        strength: f64,
        start: Option<&Mat<f64>>,
        saved: Option<Self::State>,
        watch: &mut WatchSolver<'_, Self::State>,
    ) -> Result<Drawn, SampledError>;
}

/// Samples in weight space.
pub struct WeightSpace<'a, T: Real, F: FeatureMap<T>> {
    /// The model.
    pub model: &'a SampledModel<'a, T, F>,
    /// The noise.
    pub noise: &'a Noise,
    /// Diagonal of the (scaled) curvature.
    pub diagonal: &'a [f64],
    /// How.
    pub solve: &'a Solve,
    /// Which objective descent minimises.
    pub objective: Objective,
}

impl<T: Real, F: FeatureMap<T>> Sampler for WeightSpace<'_, T, F> {
    type State = SolverState;

    fn samples(
        &mut self,
        precisions: &[f64],
        strength: f64,
        start: Option<&Mat<f64>>,
        saved: Option<SolverState>,
        watch: &mut WatchSolver<'_, SolverState>,
    ) -> Result<Drawn, SampledError> {
        let start = match start {
            Some(start) => start.clone(),
            None => self.noise.prior_draws(precisions)?,
        };
        let foreign = || SampledError::State {
            what: "the samples",
            problem: "they were being solved for in another way".into(),
        };
        let mut steps = 0;
        let (samples, reason) = match self.solve {
            Solve::Descent(options) => {
                let saved = match saved {
                    None => None,
                    Some(SolverState::Descent(state)) => Some(state),
                    Some(_) => return Err(foreign()),
                };
                let mut objective =
                    SampleObjective::new(self.model, self.noise, precisions, strength, self.objective)?;
                let tell = &mut |progress: &Progress, state: &DescentState| {
                    steps = progress.step;
                    watch(progress, &|| SolverState::Descent(state.clone()))
                };
                descend("the samples", &mut objective, start, saved, Averaging::Geometric, options, tell)?
            }
            Solve::ConjugateGradients(options) => {
                let saved = match saved {
                    None => None,
                    Some(SolverState::ConjugateGradients(state)) => Some(state),
                    Some(_) => return Err(foreign()),
                };
                let tell = &mut |progress: &Progress, state: &ConjugateGradientState<f64>| {
                    steps = progress.step;
                    watch(progress, &|| SolverState::ConjugateGradients(state.clone()))
                };
                let to = (precisions, strength);
                solve_exactly(self.model, self.noise, to, self.diagonal, start, saved, options, tell)?
            }
        };
        Ok(Drawn { samples, squared_outputs: None, steps, reason })
    }
}

/// What is asked of the turns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TurnOptions {
    /// Precisions count as at rest when no logarithm moves by more.
    pub tolerance: f64,
    /// How precisions are updated.
    pub update: Update,
    /// How the effective dimension is estimated.
    pub estimator: Estimator,
    /// How the mode is found.
    pub mode: ModeSolver,
    /// Whose mode.
    pub predictor: Predictor,
    /// Whether a Gaussian noise variance (relative to the likelihood's) is learned too.
    pub learn_noise: bool,
}

/// What one turn found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Turn {
    /// Precisions of the groups, at which mode and samples were found.
    pub precisions: Vec<f64>,
    /// Noise variance, relative to the likelihood's own.
    pub noise_variance: f64,
    /// Effective dimensions of the groups.
    pub effective_dimensions: Vec<f64>,
    /// That of all weights by prediction space, where a pass was made.
    pub by_prediction: Option<f64>,
    /// That of all weights by weight space.
    pub by_weight: f64,
    /// `|w|²` of the mode, by group.
    pub squared_norms: Vec<f64>,
    /// `Tr H^-1` by group, estimated.
    pub traces: Vec<f64>,
    /// The sampled bound of the log evidence, without its constant.
    pub bound: f64,
    /// `mean_j zeta_j' H zeta_j / d`, which is near 1 for samples that are solved: within `2 sqrt(2 / (d K))` of it.
    pub convergence: Option<f64>,
    /// `log p(Y | w)` at the mode.
    pub log_likelihood: f64,
    /// Steps towards the mode.
    pub mode_steps: usize,
    /// Steps towards the samples.
    pub solver_steps: usize,
    /// Why these ended.
    pub solver_ended: Reason,
    /// Seconds of the turn, as far as this run made it.
    pub seconds: f64,
}

/// A mode.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FoundMode {
    /// Weights in scaled coordinates (d).
    pub weights: Vec<f64>,
    /// `log p(Y | w)`.
    pub log_likelihood: f64,
    /// Steps.
    pub steps: usize,
}

/// Where the turns stand: plain data.
#[derive(Clone, Debug, PartialEq)]
pub struct TurnsState<S> {
    /// Precisions of the groups for the turn under way.
    pub precisions: Vec<f64>,
    /// Noise variance for the turn under way.
    pub noise_variance: f64,
    /// The mode of the last turn.
    pub mode: Option<FoundMode>,
    /// Whether that is the mode of the turn under way.
    pub mode_is_current: bool,
    /// The samples of the last turn.
    pub samples: Option<Mat<f64>>,
    /// The solve under way.
    pub solving: Option<S>,
    /// Turns taken.
    pub turns: Vec<Turn>,
}

/// Sees every step of mode and solver (None of the former), and the state, made when asked for; may stop the turns.
pub type WatchTurns<'a, S> = dyn FnMut(Option<&Progress>, &dyn Fn() -> TurnsState<S>) -> Signal + 'a;

/// Expectation maximisation, one turn a step, run by [`posterior_optim::drive`].
///
/// Source: spec `linearised_laplace`, section 5.8; Antorán (2024), algorithm 4.
pub struct Turns<'a, T: Real, F: FeatureMap<T>, S: Sampler> {
    /// The model.
    pub model: &'a SampledModel<'a, T, F>,
    /// Makes samples.
    pub sampler: S,
    /// Groups of weights; its precisions are those of the first turn.
    pub prior: Prior,
    /// Diagonal of the unscaled curvature, for the mode's preconditioner.
    pub diagonal: &'a [f64],
    /// How well the network fits: the constants of Gaussian noise.
    pub fit: FitSums,
    /// The spectrum of the curvature, which [`Update::Evidence`] needs.
    pub spectrum: Option<SpectralMeasure>,
    /// What is asked for.
    pub options: &'a TurnOptions,
    /// Where they stand.
    pub state: TurnsState<S::State>,
    /// Who watches.
    pub watch: &'a mut WatchTurns<'a, S::State>,
}

impl<S> TurnsState<S> {
    /// Before the first turn.
    pub fn begin(prior: &Prior, noise_variance: f64) -> Self {
        Self {
            precisions: prior.precisions().to_vec(),
            noise_variance,
            mode: None,
            mode_is_current: false,
            samples: None,
            solving: None,
            turns: Vec::new(),
        }
    }
}

fn prior_error(error: PriorError) -> SampledError {
    SampledError::State { what: "the prior", problem: error.to_string() }
}

impl<T: Real, F: FeatureMap<T>, S: Sampler> Turns<'_, T, F, S> {
    fn strength(&self) -> f64 {
        if is_gaussian(self.model.likelihood()) { 1.0 / self.state.noise_variance } else { 1.0 }
    }

    /// The mode for the precisions under way, in scaled coordinates, from the last one.
    fn mode(&mut self, each: &[f64]) -> Result<FoundMode, SampledError> {
        let (model, strength) = (self.model, self.strength());
        let Self { options, state, watch, diagonal, .. } = self;
        let d = model.dimension();
        let scale = |i: usize| model.scales().map_or(1.0, |s| s[i]);
        let divided = |w: &[f64]| -> Vec<f64> {
            (0..d).map(|i| if scale(i) == 0.0 { 0.0 } else { w[i] / scale(i) }).collect()
        };
        match &options.mode {
            ModeSolver::Newton(newton) => {
                let own = |i: usize| if scale(i) == 0.0 { f64::INFINITY } else { each[i] / scale(i).powi(2) };
                let precisions: Vec<f64> = (0..d).map(own).collect();
                let finite = precisions.iter().map(|a| if a.is_finite() { *a } else { 1.0 }).collect();
                let matrix = BlockMatrix::Diagonal(Diagonal::new(diagonal.to_vec()));
                let block = Block { name: "all weights".into(), range: 0..d, matrix };
                let structure = Structure::new(vec![block]).map_err(LinearError::from)?;
                let preconditioner = structure
                    .condition(&Prior::each(finite).map_err(prior_error)?, strength)
                    .map_err(LinearError::from)?;
                let start = match &state.mode {
                    Some(mode) => (0..d).map(|i| mode.weights[i] * scale(i)).collect(),
                    None => model.features().expansion_point().map_or_else(|| vec![0.0; d], <[f64]>::to_vec),
                };
                let likelihood = model.likelihood();
                let problem = ModeProblem {
                    features: model.features(),
                    source: model.source(),
                    likelihood: &**likelihood,
                    quadratic: is_gaussian(likelihood),
                    precisions,
                    strength,
                    predictor: options.predictor,
                };
                let mode = problem
                    .solve(&start, &preconditioner, newton, &mut |_, _| watch(None, &|| state.clone()))?;
                let weights = divided(&mode.weights);
                Ok(FoundMode { weights, log_likelihood: mode.log_likelihood, steps: mode.newton_steps })
            }
            ModeSolver::Descent(descent) => {
                let mut objective =
                    ModeObjective { model, precisions: each, strength, predictor: options.predictor };
                let start = state.mode.as_ref().map_or_else(|| vec![0.0; d], |m| m.weights.clone());
                let start = Mat::from_fn(d, 1, |i, _| start[i]);
                let mut steps = 0;
                let tell = &mut |progress: &Progress, _: &DescentState| {
                    steps = progress.step;
                    watch(Some(progress), &|| state.clone())
                };
                let (found, reason) =
                    descend("the mode", &mut objective, start, None, Averaging::Decay, descent, tell)?;
                if reason == Reason::Interrupted {
                    return Err(LinearError::Interrupted.into());
                }
                let (_, loss) = objective.gradient_at(found.as_ref(), None)?;
                let penalty: f64 = (0..d).map(|i| 0.5 * each[i] * found[(i, 0)].powi(2)).sum();
                let weights = found.col(0).iter().copied().collect();
                Ok(FoundMode { weights, log_likelihood: (penalty - loss) / strength, steps })
            }
        }
    }

    /// `mean_j |zeta_j|²` of each group.
    fn traces(&self, samples: MatRef<'_, f64>) -> Vec<f64> {
        let mut sums = vec![0.0; self.prior.names().len()];
        for column in samples.col_iter() {
            let own: Vec<f64> = column.iter().copied().collect();
            sums.iter_mut().zip(self.prior.squared_norms(&own)).for_each(|(s, v)| *s += v);
        }
        sums.iter().map(|s| s / samples.ncols() as f64).collect()
    }

    /// Precisions and noise for the next turn, from mode and samples.
    fn update(&mut self, drawn: &Drawn, begun: Instant) -> Result<(), SampledError> {
        let (state, strength) = (&self.state, self.strength());
        let Some(mode) = &state.mode else {
            let problem = "it has samples but no mode".into();
            return Err(SampledError::State { what: "the turns", problem });
        };
        let k = drawn.samples.ncols() as f64;
        let traces = self.traces(drawn.samples.as_ref());
        let squared_outputs = match (&drawn.squared_outputs, self.options.estimator) {
            (Some(known), _) => Some(known.clone()),
            (None, Estimator::Weight) => None,
            (None, Estimator::Prediction) => {
                let watch = &mut *self.watch;
                let mut tell = |_, _| watch(None, &|| state.clone());
                let squares = self.model.squared_outputs(drawn.samples.as_ref(), &mut tell)?;
                Some(squares.into_iter().map(|s| strength * s).collect())
            }
        };
        let by_prediction = squared_outputs.map(|s| s.iter().sum::<f64>() / k);
        let (sizes, d) = (self.prior.group_sizes(), self.model.dimension() as f64);
        let (a, squared_norms) = (&state.precisions, self.prior.squared_norms(&mode.weights));
        let charged: Vec<f64> = a.iter().zip(&traces).map(|(a, t)| a * t).collect();
        let by_weight = d - charged.iter().sum::<f64>();
        let effective_dimensions: Vec<f64> = match (by_prediction, sizes.len()) {
            (Some(gamma), 1) => vec![gamma],
            _ => sizes.iter().zip(&charged).map(|(d, c)| *d as f64 - c).collect(),
        };
        let convergence = by_prediction.map(|g| (g + charged.iter().sum::<f64>()) / d);
        let measure = self.spectrum.as_ref().map(|m| (m, strength));
        let next: Vec<f64> = (0..sizes.len())
            .map(|g| {
                let group = Group {
                    size: sizes[g],
                    squared_norm: squared_norms[g],
                    effective_dimension: effective_dimensions[g],
                    trace: traces[g],
                };
                self.options.update.next(group, measure)
            })
            .collect();
        let mut noise_variance = state.noise_variance;
        let fit = FitSums { log_likelihood: mode.log_likelihood, ..self.fit };
        if let (true, DataFit::Gaussian { residual_sum, values, .. }) =
            (self.options.learn_noise, fit.data_fit(self.model.likelihood()))
        {
            let gamma = by_prediction.unwrap_or(by_weight).max(0.0);
            noise_variance = noise_update(residual_sum, values, gamma, noise_variance);
        }
        if let Some(value) = next.iter().chain([&noise_variance]).find(|v| !(v.is_finite() && **v > 0.0)) {
            let problem =
                format!("turn {} leads to a precision or noise variance of {value}", state.turns.len() + 1);
            return Err(SampledError::State { what: "the turns", problem });
        }
        let turn = Turn {
            bound: sampled_bound(&sizes, a, &squared_norms, &traces),
            precisions: a.clone(),
            noise_variance: state.noise_variance,
            effective_dimensions,
            by_prediction,
            by_weight,
            squared_norms,
            traces,
            convergence,
            log_likelihood: mode.log_likelihood,
            mode_steps: mode.steps,
            solver_steps: drawn.steps,
            solver_ended: drawn.reason,
            seconds: begun.elapsed().as_secs_f64(),
        };
        let state = &mut self.state;
        state.turns.push(turn);
        state.precisions = next;
        state.noise_variance = noise_variance;
        Ok(())
    }
}

impl<T: Real, F: FeatureMap<T>, S: Sampler> Iteration for Turns<'_, T, F, S>
where
    S::State: Clone,
{
    type Error = SampledError;

    fn progress(&self) -> Progress {
        let value = self.state.turns.last().map(|t| t.bound);
        Progress { step: self.state.turns.len(), value, ..Progress::default() }
    }

    fn converged(&self) -> Option<Reason> {
        let last = self.state.turns.last()?;
        let moved = |from: f64, to: f64| (to / from).ln().abs() <= self.options.tolerance;
        let rest = last.precisions.iter().zip(&self.state.precisions).all(|(from, to)| moved(*from, *to))
            && moved(last.noise_variance, self.state.noise_variance);
        rest.then_some(Reason::Tolerance)
    }

    fn step(&mut self, _: &mut Run<'_, Self>) -> Result<Step, SampledError> {
        let begun = Instant::now();
        let prior = self.prior.with_precisions(&self.state.precisions).map_err(prior_error)?;
        let each = prior.precision_of_each(0..self.model.dimension());
        if !self.state.mode_is_current {
            let mode = self.mode(&each)?;
            (self.state.mode, self.state.mode_is_current) = (Some(mode), true);
        }
        let strength = self.strength();
        let Self { sampler, state, watch, .. } = self;
        let saved = state.solving.take();
        let drawn =
            sampler.samples(&each, strength, state.samples.as_ref(), saved, &mut |progress, solving| {
                watch(Some(progress), &|| TurnsState { solving: Some(solving()), ..state.clone() })
            })?;
        if drawn.reason == Reason::Interrupted {
            return Err(LinearError::Interrupted.into());
        }
        self.update(&drawn, begun)?;
        self.state.samples = Some(drawn.samples);
        self.state.mode_is_current = false;
        let Self { state, watch, .. } = self;
        if watch(None, &|| state.clone()) == Signal::Stop {
            return Err(LinearError::Interrupted.into());
        }
        Ok(Step::Taken)
    }
}

/// The spectrum of a model's curvature for [`Update::Evidence`]: `steps` products with `probes` vectors, once.
///
/// # Errors
/// [`SampledError`].
pub fn curvature_spectrum<T: Real, F: FeatureMap<T>>(
    model: &SampledModel<'_, T, F>,
    (probes, steps): (usize, usize),
    seed: u64,
) -> Result<SpectralMeasure, SampledError> {
    let none = vec![0.0; model.dimension()];
    let curvature = super::Hessian::new(model, &none, 1.0, None);
    let measure = SpectralMeasure::of(&curvature, probes, steps, seed);
    curvature.failure()?;
    Ok(measure?)
}
