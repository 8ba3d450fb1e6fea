//! Training: features, noise and weights together, by Adam on the evidence or on batches; rows held back say when it is enough.
//!
//! | file | what |
//! |---|---|
//! | `data` | rows, whole or by batches, in memory or elsewhere |
//! | `options` | what is maximised, and how |
//! | `gradient` | the objective and its gradient, in two passes over all rows or of a batch |

mod data;
mod gradient;
mod options;

pub use data::{LowRankData, LowRankRows, OwnedRows, RowBlock};
pub use options::{Correction, LowRankOptions, OnBatches, Training};

pub use crate::training::{TrainingState as LowRankState, ValidationScore};

use super::{
    DataTermBuffers, FeatureDiagnostics, LearnedFeatures, LowRankPosterior, ResidualVariance,
    WeightDistribution,
};
use crate::LinearError;
use crate::check::same;
use faer::Mat;
use faer::linalg::matmul::triangular::BlockStructure::Rectangular;
use gradient::{Evaluated, Factored, LAST_RESORT, squares};
use posterior_likelihoods::Likelihood;
use posterior_linalg::cholesky::JitterPolicy;
use posterior_linalg::tiles::pieces;
use posterior_linalg::triangular::add_lower_product;
use posterior_optim::{
    Batches, Clock, Iteration, Limits, Observer, Progress, Reason, Run, Sampling, Step, drive,
};

/// The deviation that weights of [`Training::Point`] have, so that a posterior can be made of them.
const POINT: f64 = 1e-6;

/// What came of training.
#[derive(Debug)]
pub struct LowRankFit {
    /// The posterior at the best look, or after the last step where nothing was held back.
    pub posterior: LowRankPosterior,
    /// Evidence with its penalty, or the objective's average over the last epoch of batches, for each row, in nats.
    pub objective: f64,
    /// Why it ended.
    pub reason: Reason,
    /// Steps taken.
    pub steps: usize,
    /// Steps before the best look.
    pub best: Option<ValidationScore>,
    /// All looks.
    pub validation_scores: Vec<ValidationScore>,
    /// Effective rank and range of variances on the training rows.
    pub diagnostics: FeatureDiagnostics,
    /// Largest amount added to the diagonal of W, of which no entry is below 1: the last resort, where triangles fail as well.
    pub largest_jitter: f64,
    /// How often W was so ill-conditioned that rows were summed by triangles ([`TriangularSums`](super::TriangularSums)) in one more pass, which is exact again.
    pub triangular_solves: usize,
    /// Where it stands, to go on from with more steps.
    pub state: LowRankState,
}

/// A run under way.
pub struct LowRankTraining<'a> {
    features: Box<dyn LearnedFeatures>,
    likelihood: Box<dyn Likelihood>,
    q: WeightDistribution,
    data: &'a dyn LowRankRows,
    held: Option<&'a LowRankData<'a>>,
    options: &'a LowRankOptions,
    decays: Vec<bool>,
    batches: Batches,
    buffers: DataTermBuffers,
    state: LowRankState,
    value: Option<f64>,
    average: f64,
}

/// Trains features and likelihood on `data`, in memory or elsewhere, judged by `held`, from their present parameters or from a saved state, bit for bit. The observer sees every step and may stop the run.
///
/// Cost of a step on the evidence of n rows: `6 n m²` flops and three passes through the features (two over the rows); on a batch of b rows `8 b m²` and `2 m³`. Memory: `O(m²)`, and the features' own for some rows.
///
/// # Errors
/// For data that do not fit, settings that do not go together, features that fail, and where the objective stops being a number.
pub fn fit_low_rank<'a>(
    features: Box<dyn LearnedFeatures>,
    likelihood: Box<dyn Likelihood>,
    data: &'a dyn LowRankRows,
    held: Option<&'a LowRankData<'a>>,
    options: &'a LowRankOptions,
    state: Option<LowRankState>,
    observer: &mut Observer<'_, LowRankTraining<'a>>,
) -> Result<LowRankFit, LinearError> {
    let clock = Clock::after(state.as_ref().map_or(0.0, LowRankState::seconds));
    data::check(data, &*features, &*likelihood)?;
    held.map_or(Ok(()), |held| data::check(held, &*features, &*likelihood))?;
    options.check(&*likelihood)?;
    let mut training = LowRankTraining::new(features, likelihood, data, held, options, state)?;
    let limits = Limits { steps: options.steps, time: options.time };
    let (reason, _) = drive(&mut training, limits, clock, observer)?;
    training.finish(reason)
}

/// The objective of all rows for each of them, its gradient, and the parameters that both are at: `theta`, or where it is empty those that features and likelihood have, with q as training begins. What is
/// maximised, as tests and plots want it; without weight decay.
///
/// # Errors
/// As [`fit_low_rank`].
pub fn objective(
    features: &dyn LearnedFeatures,
    likelihood: &dyn Likelihood,
    data: &dyn LowRankRows,
    options: &LowRankOptions,
    theta: &[f64],
) -> Result<(f64, Vec<f64>, Vec<f64>), LinearError> {
    data::check(data, features, likelihood)?;
    options.check(likelihood)?;
    let (features, likelihood) = (features.clone_box(), likelihood.clone_box());
    let mut training = LowRankTraining::new(features, likelihood, data, None, options, None)?;
    if !theta.is_empty() {
        same("parameters", training.state.theta.len(), theta.len())?;
        training.take(theta)?;
        training.state.theta = theta.to_vec();
    }
    let (value, mut gradient) = match options.training.on_batches() {
        None => {
            let Evaluated { value, gradient, .. } = training.evidence_and_gradient()?;
            (value, gradient)
        }
        Some(batches) => {
            let all: Vec<usize> = (0..data.row_count()).collect();
            training.batch_and_gradient(&all, batches.power_and_weight, &mut DataTermBuffers::default())?
        }
    };
    let scale = 1.0 / data.row_count() as f64;
    gradient.iter_mut().for_each(|g| *g *= scale);
    Ok((value, gradient, training.state.theta))
}

/// The exact posterior of the weights for features and noise as they are: what a frozen basis has, and what evens out the last steps of training by batches. One pass over the data, or two where the second has to be by triangles; nothing is
/// ever added to a diagonal. Gaussian noise of one target.
///
/// # Errors
/// As [`fit_low_rank`]; where even triangles leave no factor of W.
pub fn refit(
    features: Box<dyn LearnedFeatures>,
    likelihood: Box<dyn Likelihood>,
    data: &dyn LowRankRows,
    options: &LowRankOptions,
) -> Result<LowRankPosterior, LinearError> {
    let options = LowRankOptions { training: Training::Evidence, ..options.clone() };
    data::check(data, &*features, &*likelihood)?;
    options.check(&*likelihood)?;
    let training = LowRankTraining::new(features, likelihood, data, None, &options, None)?;
    let (solved, most) = training.solved(JitterPolicy::NONE)?;
    training.posterior(solved.posterior()?, most)
}

impl Iteration for LowRankTraining<'_> {
    type Error = LinearError;

    fn progress(&self) -> Progress {
        let value = self.value.map(|_| self.average);
        Progress { step: self.state.step, value, ..Progress::default() }
    }

    fn converged(&self) -> Option<Reason> {
        self.state.is_over(&self.options.patience()).then_some(Reason::Patience)
    }

    fn step(&mut self, run: &mut Run<'_, Self>) -> Result<Step, LinearError> {
        let patience = self.options.patience();
        if self.state.is_exhausted(&patience) {
            self.state.go_back(&patience);
            self.take_own()?;
        }
        let (value, memory) = match self.options.training.on_batches() {
            None => (self.step_on_evidence(run.share(self.state.step))?, 1.0),
            Some(batches) => {
                let value = self.step_on_batch(batches.power_and_weight, run.share(self.state.step))?;
                (value, 1.0 / self.batches.per_epoch().max(10) as f64)
            }
        };
        self.average += memory.max(1.0 / (self.state.step + 1) as f64) * (value - self.average);
        self.value = Some(value);
        self.state.took(run.elapsed());
        Ok(Step::Taken)
    }
}

impl<'a> LowRankTraining<'a> {
    fn new(
        features: Box<dyn LearnedFeatures>,
        likelihood: Box<dyn Likelihood>,
        data: &'a dyn LowRankRows,
        held: Option<&'a LowRankData<'a>>,
        options: &'a LowRankOptions,
        state: Option<LowRankState>,
    ) -> Result<Self, LinearError> {
        let size = options.training.on_batches().map_or(data.row_count(), |batches| batches.size);
        let names = ["linear/epoch", "order"];
        let batches = Batches::new(data.row_count(), size, Sampling::Permutation, options.seed, names);
        let latents = likelihood.outputs();
        let shared =
            latents == 1 || options.shared_root || matches!(options.training, Training::Point { .. });
        let mut q = WeightDistribution::prior(features.rank(), latents, shared);
        let mut theta = [features.unconstrained(), likelihood.unconstrained()].concat();
        match options.training {
            Training::Evidence => {}
            Training::Batches { .. } => {
                q = q.concentrated(options.first_deviation);
                q.unconstrained_into(&mut theta);
            }
            Training::Point { .. } => {
                q = q.concentrated(POINT);
                theta.resize(theta.len() + q.rank() * q.latents(), 0.0);
            }
        }
        let state = LowRankState::begin(state, theta, &options.patience())?;
        let decays = features.decays();
        let mut out = Self {
            features,
            likelihood,
            q,
            data,
            held,
            options,
            decays,
            batches,
            buffers: DataTermBuffers::default(),
            state,
            value: None,
            average: 0.0,
        };
        out.take_own()?;
        Ok(out)
    }

    /// What could be saved here.
    pub fn state(&self) -> &LowRankState {
        &self.state
    }

    /// Gives all parts the parameters of the state.
    fn take_own(&mut self) -> Result<(), LinearError> {
        let theta = std::mem::take(&mut self.state.theta);
        let taken = self.take(&theta);
        self.state.theta = theta;
        taken
    }

    /// Gives all parts their parameters.
    fn take(&mut self, theta: &[f64]) -> Result<(), LinearError> {
        let (features, rest) = theta.split_at(self.decays.len());
        let (likelihood, q) = rest.split_at(self.likelihood.unconstrained().len());
        self.features.set_unconstrained(features)?;
        self.likelihood.set_unconstrained(likelihood);
        match self.options.training {
            Training::Evidence => {}
            Training::Batches { .. } => self.q.set_unconstrained(q),
            Training::Point { .. } => self.q.set_means(q),
        }
        Ok(())
    }

    /// Moves everything against the gradient of minus the objective for each row, after so large a share of the run.
    fn descend(&mut self, mut gradient: Vec<f64>, share: f64) -> Result<(), LinearError> {
        let scale = -1.0 / self.data.row_count() as f64;
        gradient.iter_mut().for_each(|g| *g *= scale);
        for ((g, decays), theta) in gradient.iter_mut().zip(&self.decays).zip(&self.state.theta) {
            if *decays {
                *g += self.options.weight_decay * theta;
            }
        }
        if matches!(self.options.training, Training::Point { .. }) {
            // The weights are a layer like others.
            let start = self.decays.len() + self.likelihood.unconstrained().len();
            let weights = gradient[start..].iter_mut().zip(&self.state.theta[start..]);
            weights.for_each(|(g, theta)| *g += self.options.weight_decay * theta);
        }
        self.state.descend(&gradient, &self.options.patience(), share)?;
        self.take_own()
    }

    fn step_on_evidence(&mut self, share: f64) -> Result<f64, LinearError> {
        let Evaluated { value, gradient, factored, nll } = self.evidence_and_gradient()?;
        self.note(factored);
        if let Some(nll) = nll {
            self.state.note(nll);
        }
        self.descend(gradient, share)?;
        Ok(value)
    }

    fn note(&mut self, factored: Factored) {
        self.state.largest_jitter = self.state.largest_jitter.max(factored.jitter);
        self.state.triangular_solves += usize::from(factored.by_triangles);
    }

    fn step_on_batch(&mut self, objective: (f64, f64), share: f64) -> Result<f64, LinearError> {
        if self.is_due() {
            let most = self.most()?.1;
            if let Some(nll) = self.judged(&self.q, most)? {
                self.state.note(nll);
            }
        }
        let rows = self.batches.batch(self.state.step);
        let mut buffers = std::mem::take(&mut self.buffers);
        let evaluated = self.batch_and_gradient(&rows, objective, &mut buffers);
        self.buffers = buffers;
        let (value, gradient) = evaluated?;
        self.descend(gradient, share)?;
        Ok(value)
    }

    fn is_due(&self) -> bool {
        self.held.is_some() && self.state.is_due(&self.options.patience())
    }

    /// [`LowRankPosterior::surprise`] of the rows held back under these weights.
    fn judged(&self, q: &WeightDistribution, most: f64) -> Result<Option<f64>, LinearError> {
        let Some(held) = self.held else { return Ok(None) };
        Ok(Some(self.posterior(q.clone(), most)?.surprise(held)?))
    }

    fn posterior(&self, q: WeightDistribution, most: f64) -> Result<LowRankPosterior, LinearError> {
        let rest = match self.options.correction {
            Correction::Uniform if self.options.corrected => ResidualVariance::Uniform { largest: most },
            Correction::Own if self.options.corrected => ResidualVariance::Own,
            _ => ResidualVariance::None,
        };
        LowRankPosterior::new(self.features.clone_box(), q, self.likelihood.clone_box(), rest)
    }

    fn finish(mut self, reason: Reason) -> Result<LowRankFit, LinearError> {
        // The last parameters have not been looked at.
        if self.held.is_some() && !self.state.is_looked_at() {
            let nll = match self.options.training {
                Training::Evidence => {
                    let (solved, most) = self.solved(LAST_RESORT)?;
                    self.note(Factored::new(&solved));
                    self.judged(&solved.posterior()?, most)?
                }
                _ => self.judged(&self.q, self.most()?.1)?,
            };
            if let Some(nll) = nll {
                self.state.note(nll);
            }
        }
        let best = self.state.best.clone();
        if let Some((_, theta)) = &best {
            self.take(theta)?;
        }
        let (posterior, objective) = match self.options.training {
            Training::Evidence => {
                let (solved, most) = self.solved(LAST_RESORT)?;
                self.note(Factored::new(&solved));
                (self.posterior(solved.posterior()?, most)?, solved.value / self.data.row_count() as f64)
            }
            _ => {
                let most = self.most()?.1;
                (self.posterior(self.q.clone(), most)?, self.average)
            }
        };
        let diagnostics = self.diagnostics()?;
        Ok(LowRankFit {
            posterior,
            objective,
            reason,
            steps: self.state.step,
            best: best.map(|(look, _)| look),
            validation_scores: self.state.validation_scores.clone(),
            diagnostics,
            largest_jitter: self.state.largest_jitter,
            triangular_solves: self.state.triangular_solves,
            state: self.state,
        })
    }

    fn diagnostics(&self) -> Result<FeatureDiagnostics, LinearError> {
        let m = self.features.rank();
        let mut gram = Mat::zeros(m, m);
        let mut range = (f64::INFINITY, 0.0_f64);
        for rows in pieces(self.data.row_count(), self.features.rows_at_once()) {
            let values = self.features.values(self.data.rows_in(rows)?.data().inputs)?;
            let a = values.features.as_ref();
            add_lower_product(&mut gram, (a, Rectangular), (a.transpose(), Rectangular), 1.0);
            squares(&values.features).into_iter().for_each(|k| range = (range.0.min(k), range.1.max(k)));
        }
        FeatureDiagnostics::new(gram.as_ref(), range)
    }
}

impl std::fmt::Debug for LowRankTraining<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LowRankTraining").field("step", &self.state.step).finish_non_exhaustive()
    }
}
