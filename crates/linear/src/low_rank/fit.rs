//! Training: features, noise and weights together, by Adam on the evidence or on batches; rows held back say when it is enough.

use super::learned_features::largest;
use super::{
    DataTerm, DataTermBuffers, EvidenceSums, FeatureDiagnostics, FeaturesAt, LearnedFeatures,
    LowRankPosterior, ObservedRows, Rest, ScaledRows, SolvedEvidence, WeightDistribution,
};
use crate::LinearError;
use crate::check::{finite_matrix, same};
use faer::linalg::matmul::triangular::BlockStructure::Rectangular;
use faer::{Mat, MatRef};
use posterior_likelihoods::Likelihood;
use posterior_linalg::cholesky::JitterPolicy;
use posterior_linalg::tiles::pieces;
use posterior_linalg::triangular::add_lower_product;
use posterior_optim::{
    Adam, Batches, Clock, Iteration, Limits, Observer, Progress, Reason, Run, Sampling, Step, drive,
};
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::time::Duration;

/// Rows to learn from, or to judge by.
#[derive(Clone, Copy, Debug)]
pub struct LowRankData<'a> {
    /// n x D.
    pub inputs: MatRef<'a, f64>,
    /// What was observed at them.
    pub observed: ObservedRows<'a>,
}

impl<'a> LowRankData<'a> {
    fn rows(&self) -> usize {
        self.inputs.nrows()
    }

    fn slice(&self, rows: Range<usize>) -> LowRankData<'a> {
        let of = |numbers: Option<&'a [f64]>| numbers.map(|numbers| &numbers[rows.clone()]);
        let ObservedRows { targets, noise, weights, offsets } = self.observed;
        let (noise, weights, offsets) = (of(noise), of(weights), of(offsets));
        let targets = targets.subrows(rows.start, rows.len());
        let observed = ObservedRows { targets, noise, weights, offsets };
        Self { inputs: self.inputs.subrows(rows.start, rows.len()), observed }
    }

    fn check(&self, features: &dyn LearnedFeatures, likelihood: &dyn Likelihood) -> Result<(), LinearError> {
        let ObservedRows { targets, noise, weights, offsets } = self.observed;
        if self.rows() == 0 {
            return Err(LinearError::Empty { what: "rows" });
        }
        same("columns of the inputs", features.inputs(), self.inputs.ncols())?;
        same("rows of the targets", self.rows(), targets.nrows())?;
        for numbers in [noise, weights, offsets].into_iter().flatten() {
            same("numbers of rows", self.rows(), numbers.len())?;
        }
        finite_matrix("an input", self.inputs)?;
        let mut y = vec![0.0; targets.ncols()];
        for example in 0..self.rows() {
            y.iter_mut().zip(targets.row(example).iter()).for_each(|(y, t)| *y = *t);
            likelihood.check_target(&y).map_err(|error| LinearError::Target { example, error })?;
        }
        Ok(())
    }
}

/// Some rows of a table, copied.
struct Gathered {
    inputs: Mat<f64>,
    targets: Mat<f64>,
    numbers: [Option<Vec<f64>>; 3],
}

impl Gathered {
    fn new(data: &LowRankData<'_>, rows: &[usize]) -> Self {
        let of = |from: MatRef<'_, f64>| Mat::from_fn(rows.len(), from.ncols(), |i, j| from[(rows[i], j)]);
        let ObservedRows { targets, noise, weights, offsets } = data.observed;
        let numbers = [noise, weights, offsets].map(|n| n.map(|n| rows.iter().map(|&i| n[i]).collect()));
        Self { inputs: of(data.inputs), targets: of(targets), numbers }
    }

    fn observed(&self) -> ObservedRows<'_> {
        let [noise, weights, offsets] = &self.numbers;
        let (noise, weights, offsets) = (noise.as_deref(), weights.as_deref(), offsets.as_deref());
        ObservedRows { targets: self.targets.as_ref(), noise, weights, offsets }
    }
}

/// What a step looks at, and what it maximises.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Training {
    /// The evidence of all rows, with the weights integrated out: Gaussian noise, one target.
    Evidence,
    /// `Σ (1/α) log E_q[p(y | f)^α] - β KL(q ‖ prior)` as batches estimate it, with a free Gaussian q over the weights.
    Batches {
        /// Rows of a batch.
        size: usize,
        /// α: 0 for the bound on the evidence, 1 for predictive training.
        power: f64,
        /// β: 1 for the bound.
        divergence_weight: f64,
    },
    /// The log density of batches at one value of the weights: a network alone with a learned noise, which every other way has to beat.
    Point {
        /// Rows of a batch.
        size: usize,
    },
}

/// The deviation that weights of [`Training::Point`] have, so that a posterior can be made of them.
const POINT: f64 = 1e-6;

/// What the process knows beyond its features.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Correction {
    /// Nothing: the kernel is that of the features.
    None,
    /// Variance is the same everywhere: what `|a(x)|²` is short of its largest value is a rest.
    Uniform,
    /// The process's own variance is known: `k(x, x) - |a(x)|²` is a rest.
    Own,
}

/// How to train.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LowRankOptions {
    /// What is maximised.
    pub training: Training,
    /// Where the rest comes from.
    pub correction: Correction,
    /// The share of the rest that training is told of: 1 for the bound on the corrected process's evidence, 0 for none.
    pub trace_weight: f64,
    /// Whether rests count as noise of their rows in the evidence, so that their sum is no penalty (FITC; with the uniform correction, the corrected process itself).
    pub rest_as_noise: bool,
    /// Whether predictions have the rest.
    pub corrected: bool,
    /// Step size of Adam.
    pub learning_rate: f64,
    /// Times the weights of a network, added to the gradient of the objective for each row.
    pub weight_decay: f64,
    /// Steps at most.
    pub steps: usize,
    /// Steps between looks at the rows held back.
    pub check_every: usize,
    /// Steps without a better look after which training ends.
    pub patience: usize,
    /// Most time.
    pub time: Option<Duration>,
    /// Where batches come from.
    pub seed: u64,
    /// Bytes that may be kept of rows between the two passes of the evidence; rows beyond are computed twice.
    pub kept_bytes: usize,
}

impl Default for LowRankOptions {
    fn default() -> Self {
        Self {
            training: Training::Evidence,
            correction: Correction::None,
            trace_weight: 0.0,
            rest_as_noise: false,
            corrected: false,
            learning_rate: 1e-3,
            weight_decay: 1e-4,
            steps: 10_000,
            check_every: 100,
            patience: 2_000,
            time: None,
            seed: 0,
            kept_bytes: 1 << 29,
        }
    }
}

/// A look at the rows held back.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Look {
    /// Steps before it.
    pub step: usize,
    /// Mean of `-log p(y)` of the rows, nats; infinite where a density was no number.
    pub nll: f64,
}

/// All that a run needs to go on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LowRankState {
    /// Steps taken.
    pub step: usize,
    /// Parameters: of features, likelihood, and q.
    theta: Vec<f64>,
    adam: Adam,
    /// The best look with the parameters then.
    best: Option<(Look, Vec<f64>)>,
    /// All looks.
    pub looks: Vec<Look>,
    seconds: f64,
}

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
    pub best: Option<Look>,
    /// All looks.
    pub looks: Vec<Look>,
    /// Effective rank and range of variances on the training rows.
    pub diagnostics: FeatureDiagnostics,
    /// Largest amount added to the diagonal of W, relative to its mean.
    pub largest_jitter: f64,
}

/// A run under way.
pub struct LowRankTraining<'a> {
    features: Box<dyn LearnedFeatures>,
    likelihood: Box<dyn Likelihood>,
    q: WeightDistribution,
    data: &'a LowRankData<'a>,
    held: Option<&'a LowRankData<'a>>,
    options: &'a LowRankOptions,
    decays: Vec<bool>,
    batches: Batches,
    buffers: DataTermBuffers,
    state: LowRankState,
    value: Option<f64>,
    average: f64,
    largest_jitter: f64,
}

/// W is factored as it is, or with a little on its diagonal, which is told.
const POLICY: JitterPolicy = JitterPolicy { initial: 1e-14, growth: 100.0, largest: 1e-6 };

/// Trains features and likelihood on `data`, judged by `held`, from their present parameters or from a saved state, bit for bit. The observer sees every step and may stop the run.
///
/// Cost of a step on the evidence of n rows: `6 n m²` flops and three passes through the features; on a batch of b rows `8 b m²` and `2 m³`. Memory: `O(m²)`, and the features' own for some rows.
///
/// # Errors
/// For data that do not fit, settings that do not go together, features that fail, and where the objective stops being a number.
pub fn fit_low_rank<'a>(
    features: Box<dyn LearnedFeatures>,
    likelihood: Box<dyn Likelihood>,
    data: &'a LowRankData<'a>,
    held: Option<&'a LowRankData<'a>>,
    options: &'a LowRankOptions,
    state: Option<LowRankState>,
    observer: &mut Observer<'_, LowRankTraining<'a>>,
) -> Result<LowRankFit, LinearError> {
    let clock = Clock::after(state.as_ref().map_or(0.0, |s| s.seconds));
    data.check(&*features, &*likelihood)?;
    held.map_or(Ok(()), |held| held.check(&*features, &*likelihood))?;
    options.check(&*likelihood)?;
    let mut training = LowRankTraining::new(features, likelihood, data, held, options, state)?;
    let limits = Limits { steps: options.steps, time: options.time };
    let (reason, _) = drive(&mut training, limits, clock, observer)?;
    training.finish(reason)
}

/// The objective of all rows for each of them, its gradient, and the parameters that both are at: `theta`, or where it is empty those that features and likelihood have, with q as the prior is. What is
/// maximised, as tests and plots want it; without weight decay.
///
/// # Errors
/// As [`fit_low_rank`].
pub fn objective(
    features: &dyn LearnedFeatures,
    likelihood: &dyn Likelihood,
    data: &LowRankData<'_>,
    options: &LowRankOptions,
    theta: &[f64],
) -> Result<(f64, Vec<f64>, Vec<f64>), LinearError> {
    data.check(features, likelihood)?;
    options.check(likelihood)?;
    let (features, likelihood) = (features.clone_box(), likelihood.clone_box());
    let mut training = LowRankTraining::new(features, likelihood, data, None, options, None)?;
    if !theta.is_empty() {
        same("parameters", training.state.theta.len(), theta.len())?;
        training.take(theta)?;
        training.state.theta = theta.to_vec();
    }
    let (value, mut gradient) = match options.training {
        Training::Evidence => {
            let Evaluated { value, gradient, .. } = training.evidence_and_gradient()?;
            (value, gradient)
        }
        Training::Batches { power, divergence_weight, .. } => {
            let all: Vec<usize> = (0..data.rows()).collect();
            training.batch_and_gradient(&all, (power, divergence_weight), &mut DataTermBuffers::default())?
        }
        Training::Point { .. } => {
            let all: Vec<usize> = (0..data.rows()).collect();
            training.batch_and_gradient(&all, (0.0, 0.0), &mut DataTermBuffers::default())?
        }
    };
    let scale = 1.0 / data.rows() as f64;
    gradient.iter_mut().for_each(|g| *g *= scale);
    Ok((value, gradient, training.state.theta))
}

/// The exact posterior of the weights for features and noise as they are: what a frozen basis has, and what evens out the last steps of training by batches. One pass over the data; Gaussian noise of one target.
///
/// # Errors
/// As [`fit_low_rank`].
pub fn refit(
    features: Box<dyn LearnedFeatures>,
    likelihood: Box<dyn Likelihood>,
    data: &LowRankData<'_>,
    options: &LowRankOptions,
) -> Result<LowRankPosterior, LinearError> {
    let options = LowRankOptions { training: Training::Evidence, ..options.clone() };
    data.check(&*features, &*likelihood)?;
    options.check(&*likelihood)?;
    let training = LowRankTraining::new(features, likelihood, data, None, &options, None)?;
    let (sums, _, most) = training.pass(false)?;
    training.posterior(training.solve(sums)?.posterior()?, most.1)
}

impl LowRankOptions {
    fn check(&self, likelihood: &dyn Likelihood) -> Result<(), LinearError> {
        let option = |name, value, expected| Err(LinearError::Option { name, value, expected });
        let shared = likelihood.shared_noise_variance().is_some();
        match self.training {
            Training::Evidence if !shared || likelihood.outputs() != 1 => {
                return option(
                    "likelihood",
                    f64::NAN,
                    "Gaussian noise of one target, for the exact evidence",
                );
            }
            Training::Batches { power, .. } if !(0.0..=1.0).contains(&power) => {
                return option("power", power, "between 0 and 1");
            }
            Training::Batches { divergence_weight, .. } if !(divergence_weight >= 0.0) => {
                return option("divergence weight", divergence_weight, "0 or above");
            }
            Training::Batches { size: 0, .. } | Training::Point { size: 0 } => {
                return option("batch", 0.0, "at least 1");
            }
            _ => {}
        }
        for (name, value) in [("trace weight", self.trace_weight), ("weight decay", self.weight_decay)] {
            if !(value >= 0.0 && value.is_finite()) {
                return option(name, value, "0 or above");
            }
        }
        if !(self.learning_rate > 0.0 && self.learning_rate.is_finite()) {
            return option("learning rate", self.learning_rate, "above 0");
        }
        if self.check_every == 0 {
            return option("steps between looks", 0.0, "at least 1");
        }
        Ok(())
    }
}

impl Iteration for LowRankTraining<'_> {
    type Error = LinearError;

    fn progress(&self) -> Progress {
        let value = self.value.map(|_| self.average);
        Progress { step: self.state.step, value, ..Progress::default() }
    }

    fn converged(&self) -> Option<Reason> {
        let (best, _) = self.state.best.as_ref()?;
        (self.state.step >= best.step + self.options.patience).then_some(Reason::Patience)
    }

    fn step(&mut self, run: &mut Run<'_, Self>) -> Result<Step, LinearError> {
        let value = match self.options.training {
            Training::Evidence => self.step_on_evidence(run.steps_planned())?,
            Training::Batches { power, divergence_weight, .. } => {
                self.step_on_batch(power, divergence_weight, run.steps_planned())?
            }
            Training::Point { .. } => self.step_on_batch(0.0, 0.0, run.steps_planned())?,
        };
        let memory = match self.options.training {
            Training::Evidence => 1.0,
            _ => 1.0 / self.batches.per_epoch().max(10) as f64,
        };
        self.average += memory.max(1.0 / (self.state.step + 1) as f64) * (value - self.average);
        self.value = Some(value);
        self.state.step += 1;
        self.state.seconds = run.elapsed().as_secs_f64();
        Ok(Step::Taken)
    }
}

/// A block of rows between the two passes.
struct Passed<'f> {
    rows: Range<usize>,
    traced: Option<(Box<dyn FeaturesAt + 'f>, ScaledRows)>,
}

impl<'a> LowRankTraining<'a> {
    fn new(
        features: Box<dyn LearnedFeatures>,
        likelihood: Box<dyn Likelihood>,
        data: &'a LowRankData<'a>,
        held: Option<&'a LowRankData<'a>>,
        options: &'a LowRankOptions,
        state: Option<LowRankState>,
    ) -> Result<Self, LinearError> {
        let size = match options.training {
            Training::Evidence => data.rows(),
            Training::Batches { size, .. } | Training::Point { size } => size,
        };
        let names = ["linear/epoch", "order"];
        let batches = Batches::new(data.rows(), size, Sampling::Permutation, options.seed, names);
        let mut q =
            WeightDistribution::prior(features.rank(), likelihood.outputs(), likelihood.outputs() == 1);
        let mut theta = [features.unconstrained(), likelihood.unconstrained()].concat();
        match options.training {
            Training::Evidence => {}
            Training::Batches { .. } => q.unconstrained_into(&mut theta),
            Training::Point { .. } => {
                q = q.concentrated(POINT);
                theta.resize(theta.len() + q.rank() * q.latents(), 0.0);
            }
        }
        let length = theta.len();
        let state = match state {
            Some(state) if state.theta.len() == length && state.adam.check(length, state.step).is_ok() => {
                state
            }
            Some(_) => return Err(LinearError::Foreign { what: "training" }),
            None => LowRankState {
                step: 0,
                theta,
                adam: Adam::new(options.learning_rate),
                best: None,
                looks: Vec::new(),
                seconds: 0.0,
            },
        };
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
            largest_jitter: 0.0,
        };
        let theta = std::mem::take(&mut out.state.theta);
        out.take(&theta)?;
        out.state.theta = theta;
        Ok(out)
    }

    /// What could be saved here.
    pub fn state(&self) -> &LowRankState {
        &self.state
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

    /// Moves everything against the gradient of minus the objective for each row.
    fn descend(&mut self, mut gradient: Vec<f64>, planned: usize) -> Result<(), LinearError> {
        let scale = -1.0 / self.data.rows() as f64;
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
        if let Some(index) = gradient.iter().position(|g| !g.is_finite()) {
            return Err(LinearError::NotFinite {
                what: "the gradient's number",
                index,
                value: gradient[index],
            });
        }
        let mut theta = std::mem::take(&mut self.state.theta);
        self.state.adam.step(&mut theta, &gradient, planned);
        let taken = self.take(&theta);
        self.state.theta = theta;
        taken
    }

    /// Noise variances of rows, with what rests add to them.
    fn noise(&self, observed: &ObservedRows<'_>, rest: &[f64]) -> Vec<f64> {
        let own = self.likelihood.shared_noise_variance().unwrap_or(f64::NAN);
        let extra = |i: usize| if self.options.rest_as_noise { rest[i] } else { 0.0 };
        rest.iter()
            .enumerate()
            .map(|(i, _)| {
                let weight = observed.weights.map_or(1.0, |w| w[i]);
                (own + observed.noise.map_or(0.0, |n| n[i]) + extra(i)) / weight
            })
            .collect()
    }

    /// The prior variance of every row under the correction; `most` is the largest of the features' own.
    fn variances(&self, squares: &[f64], own: &[f64], most: f64) -> Vec<f64> {
        match self.options.correction {
            Correction::None => squares.to_vec(),
            Correction::Uniform => squares.iter().map(|k| most.max(*k)).collect(),
            Correction::Own => own.to_vec(),
        }
    }

    /// The largest `|a|²` of all training rows, where the correction needs it.
    fn most(&self) -> Result<(usize, f64), LinearError> {
        let mut most = (0, 0.0);
        if self.options.correction == Correction::Uniform {
            for rows in pieces(self.data.rows(), self.features.rows_at_once()) {
                let values = self.features.values(self.data.slice(rows.clone()).inputs)?;
                if let Some((i, k)) = largest(&squares(&values.features))
                    && k > most.1
                {
                    most = (rows.start + i, k);
                }
            }
        }
        Ok(most)
    }

    /// The first pass over the data: sums, with what is kept of the rows for the second.
    fn pass(&self, keep: bool) -> Result<(EvidenceSums, Vec<Passed<'_>>, (usize, f64)), LinearError> {
        let most = self.most()?;
        let mut sums = EvidenceSums::new(self.features.rank(), 1);
        let each = self.features.bytes_of_row() + 8 * self.features.rank();
        let kept_rows = if keep { self.options.kept_bytes / each.max(1) } else { 0 };
        let mut passed = Vec::new();
        for rows in pieces(self.data.rows(), self.features.rows_at_once()) {
            let traced = self.features.at(self.data.slice(rows.clone()).inputs)?;
            let scaled = self.scaled(&rows, &*traced, most.1);
            sums.add(&scaled);
            let traced = (rows.end <= kept_rows).then_some((traced, scaled));
            passed.push(Passed { rows, traced });
        }
        Ok((sums, passed, most))
    }

    fn scaled(&self, rows: &Range<usize>, traced: &dyn FeaturesAt, most: f64) -> ScaledRows {
        let (values, observed) = (traced.values(), self.data.slice(rows.clone()).observed);
        let squares = squares(&values.features);
        let variances = self.variances(&squares, &values.variances, most);
        let rest: Vec<f64> = variances.iter().zip(&squares).map(|(v, k)| v - k).collect();
        let noise = self.noise(&observed, &rest);
        let residuals = match observed.offsets {
            Some(offsets) => Mat::from_fn(rows.len(), 1, |i, _| observed.targets[(i, 0)] - offsets[i]),
            None => observed.targets.to_owned(),
        };
        ScaledRows::new(values.features.clone(), residuals, noise, variances)
    }

    /// The penalty's weight: none where rests are noise.
    fn penalty(&self) -> f64 {
        if self.options.rest_as_noise || self.options.correction == Correction::None {
            0.0
        } else {
            self.options.trace_weight
        }
    }

    fn solve(&self, sums: EvidenceSums) -> Result<SolvedEvidence, LinearError> {
        Ok(sums.solve(self.penalty(), POLICY)?)
    }

    fn step_on_evidence(&mut self, planned: usize) -> Result<f64, LinearError> {
        let Evaluated { value, gradient, jitter, nll } = self.evidence_and_gradient()?;
        self.largest_jitter = self.largest_jitter.max(jitter);
        if let Some(nll) = nll {
            self.note(nll);
        }
        self.descend(gradient, planned)?;
        Ok(value)
    }

    fn evidence_and_gradient(&self) -> Result<Evaluated, LinearError> {
        let (sums, passed, most) = self.pass(true)?;
        let solved = self.solve(sums)?;
        let (value, jitter) = (solved.value / self.data.rows() as f64, solved.factor().info().jitter);
        if !value.is_finite() {
            return Err(LinearError::NotFinite {
                what: "the evidence after step",
                index: self.state.step,
                value,
            });
        }
        let nll = if self.is_due() { self.judged(&solved.posterior()?, most.1)? } else { None };
        let second = solved.gradient();
        let mut gradient = vec![0.0; self.state.theta.len()];
        let of_noise = self.decays.len();
        let mut of_most = 0.0;
        for Passed { rows, traced } in passed {
            let (traced, scaled) = match traced {
                Some(kept) => kept,
                None => {
                    let traced = self.features.at(self.data.slice(rows.clone()).inputs)?;
                    let scaled = self.scaled(&rows, &*traced, most.1);
                    (traced, scaled)
                }
            };
            let mut block = second.block(&scaled);
            let weights = self.data.slice(rows.clone()).observed.weights;
            let weight = |i: usize| weights.map_or(1.0, |w| w[i]);
            let natural: f64 = block.noise.iter().enumerate().map(|(i, n)| n / weight(i)).sum();
            // One noise variance of its own: the chain rule of the likelihood is applied below, to the sum.
            gradient[of_noise] += natural;
            let of_rest: Vec<f64> = match (self.options.rest_as_noise, self.options.correction) {
                (_, Correction::None) => vec![0.0; rows.len()],
                (true, _) => block.noise.iter().enumerate().map(|(i, n)| n / weight(i)).collect(),
                (false, _) => std::mem::take(&mut block.variances),
            };
            // A rest is what the process's own variance is above |a|²; the penalty's own slope in |a|² is in the features' gradient.
            if self.options.rest_as_noise {
                add_squares(&mut block.features, &traced.values().features, &of_rest, -1.0);
            }
            let own = match self.options.correction {
                Correction::Own => of_rest,
                _ => {
                    of_most += of_rest.iter().sum::<f64>();
                    vec![0.0; rows.len()]
                }
            };
            traced.pull_back(block.features, &own, &mut gradient[..of_noise])?;
        }
        if self.options.correction == Correction::Uniform && of_most != 0.0 {
            self.pull_back_most(most.0, of_most, &mut gradient[..of_noise])?;
        }
        self.chain(&mut gradient[of_noise..]);
        Ok(Evaluated { value, gradient, jitter, nll })
    }

    /// The slope in the largest `|a|²`, which is that of one row.
    fn pull_back_most(&self, row: usize, slope: f64, gradient: &mut [f64]) -> Result<(), LinearError> {
        let traced = self.features.at(self.data.slice(row..row + 1).inputs)?;
        let features = &traced.values().features;
        let mut adjoint = Mat::zeros(features.nrows(), 1);
        add_squares(&mut adjoint, features, &[slope], 1.0);
        traced.pull_back(adjoint, &[0.0], gradient)
    }

    /// The likelihood's natural gradient, in place, to that in its numbers without constraints.
    fn chain(&self, gradient: &mut [f64]) {
        let own = self.likelihood.unconstrained();
        let chained = self.likelihood.chain(&own, &gradient[..own.len()]);
        gradient[..own.len()].copy_from_slice(&chained);
    }

    fn step_on_batch(&mut self, power: f64, kl: f64, planned: usize) -> Result<f64, LinearError> {
        if self.is_due() {
            let most = self.most()?.1;
            if let Some(nll) = self.judged(&self.q, most)? {
                self.note(nll);
            }
        }
        let rows = self.batches.batch(self.state.step);
        let mut buffers = std::mem::take(&mut self.buffers);
        let evaluated = self.batch_and_gradient(&rows, (power, kl), &mut buffers);
        self.buffers = buffers;
        let (value, gradient) = evaluated?;
        self.descend(gradient, planned)?;
        Ok(value)
    }

    /// The objective for each row as a batch estimates it, and the gradient of the objective of all.
    fn batch_and_gradient(
        &self,
        rows: &[usize],
        (power, kl): (f64, f64),
        buffers: &mut DataTermBuffers,
    ) -> Result<(f64, Vec<f64>), LinearError> {
        let batch = Gathered::new(self.data, rows);
        let traced = self.features.at(batch.inputs.as_ref())?;
        let values = traced.values();
        let squares = squares(&values.features);
        let most = largest(&squares).unwrap_or((0, 0.0));
        let share = if self.options.correction == Correction::None { 0.0 } else { self.options.trace_weight };
        let own = self.variances(&squares, &values.variances, most.1);
        let variances: Vec<f64> = squares.iter().zip(&own).map(|(k, v)| k + share * (v - k)).collect();
        let term = DataTerm::new(&self.q, &*self.likelihood, power);
        let (n, latents) = (self.data.rows() as f64, self.q.latents());
        let scale = n / rows.len() as f64;
        let zero = Mat::zeros(rows.len(), latents);
        let slopes =
            term.slopes(values.features.as_ref(), zero, &variances, &batch.observed(), scale, buffers);
        let divergence = if kl == 0.0 { 0.0 } else { kl * self.q.divergence() };
        let value = (slopes.value - divergence) / n;
        if !value.is_finite() {
            return Err(LinearError::NotFinite {
                what: "the objective after step",
                index: self.state.step,
                value,
            });
        }
        let h = slopes.of_prior_variances();
        let mut adjoint = std::mem::replace(term.features_adjoint(&slopes, buffers), Mat::new());
        let of_squares: Vec<f64> = h.iter().map(|h| (1.0 - share) * h).collect();
        add_squares(&mut adjoint, &values.features, &of_squares, 1.0);
        let mut of_own = vec![0.0; rows.len()];
        match self.options.correction {
            Correction::None => {}
            Correction::Own => of_own.iter_mut().zip(&h).for_each(|(o, h)| *o = share * h),
            Correction::Uniform => {
                let sum: f64 = h.iter().sum();
                let column = adjoint.col_as_slice_mut(most.0).iter_mut();
                column
                    .zip(values.features.col_as_slice(most.0))
                    .for_each(|(a, f)| *a += 2.0 * share * sum * f);
            }
        }
        let features = self.decays.len();
        let mut gradient = vec![0.0; features];
        traced.pull_back(adjoint, &of_own, &mut gradient)?;
        gradient.extend(&slopes.parameters);
        self.chain(&mut gradient[features..]);
        match self.options.training {
            Training::Point { .. } => {
                let mean = &slopes.of_q.mean;
                (0..mean.ncols()).for_each(|c| gradient.extend_from_slice(mean.col_as_slice(c)));
            }
            _ => slopes.of_q.unconstrained_into(&self.q, kl, 1.0, &mut gradient),
        }
        Ok((value, gradient))
    }

    fn is_due(&self) -> bool {
        self.held.is_some() && self.state.step % self.options.check_every == 0
    }

    /// Mean of `-log p(y)` of the rows held back under these weights.
    fn judged(&self, q: &WeightDistribution, most: f64) -> Result<Option<f64>, LinearError> {
        let Some(held) = self.held else { return Ok(None) };
        let posterior = self.posterior(q.clone(), most)?;
        Ok(Some(-posterior.log_predictive_density(held.inputs, &held.observed)? / held.rows() as f64))
    }

    fn posterior(&self, q: WeightDistribution, most: f64) -> Result<LowRankPosterior, LinearError> {
        let rest = match self.options.correction {
            Correction::Uniform if self.options.corrected => Rest::Uniform { largest: most },
            Correction::Own if self.options.corrected => Rest::Own,
            _ => Rest::None,
        };
        LowRankPosterior::new(self.features.clone_box(), q, self.likelihood.clone_box(), rest)
    }

    /// Keeps a look, and the parameters where it is the best.
    fn note(&mut self, nll: f64) {
        let nll = if nll.is_finite() { nll } else { f64::INFINITY };
        let look = Look { step: self.state.step, nll };
        self.state.looks.push(look);
        if self.state.best.as_ref().is_none_or(|(best, _)| nll < best.nll) {
            self.state.best = Some((look, self.state.theta.clone()));
        }
    }

    fn finish(mut self, reason: Reason) -> Result<LowRankFit, LinearError> {
        // The last parameters have not been looked at.
        if self.held.is_some() && self.state.looks.last().is_none_or(|look| look.step < self.state.step) {
            let most = self.most()?.1;
            let nll = match self.options.training {
                Training::Evidence => {
                    let (sums, _, most) = self.pass(false)?;
                    self.judged(&self.solve(sums)?.posterior()?, most.1)?
                }
                _ => self.judged(&self.q, most)?,
            };
            if let Some(nll) = nll {
                self.note(nll);
            }
        }
        let best = self.state.best.take();
        if let Some((_, theta)) = &best {
            self.take(theta)?;
        }
        let (posterior, objective) = match self.options.training {
            Training::Evidence => {
                let (sums, _, most) = self.pass(false)?;
                let solved = self.solve(sums)?;
                (self.posterior(solved.posterior()?, most.1)?, solved.value / self.data.rows() as f64)
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
            looks: self.state.looks,
            diagnostics,
            largest_jitter: self.largest_jitter,
        })
    }

    fn diagnostics(&self) -> Result<FeatureDiagnostics, LinearError> {
        let m = self.features.rank();
        let mut gram = Mat::zeros(m, m);
        let mut range = (f64::INFINITY, 0.0_f64);
        for rows in pieces(self.data.rows(), self.features.rows_at_once()) {
            let values = self.features.values(self.data.slice(rows).inputs)?;
            let a = values.features.as_ref();
            add_lower_product(&mut gram, (a, Rectangular), (a.transpose(), Rectangular), 1.0);
            squares(&values.features).into_iter().for_each(|k| range = (range.0.min(k), range.1.max(k)));
        }
        FeatureDiagnostics::new(gram.as_ref(), range)
    }
}

struct Evaluated {
    value: f64,
    gradient: Vec<f64>,
    jitter: f64,
    nll: Option<f64>,
}

impl std::fmt::Debug for LowRankTraining<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LowRankTraining").field("step", &self.state.step).finish_non_exhaustive()
    }
}

/// `|a|²` of each column.
fn squares(features: &Mat<f64>) -> Vec<f64> {
    (0..features.ncols()).map(|i| features.col(i).squared_norm_l2()).collect()
}

/// Adds `sign · 2 slope_i a_i`, the slope in the features of `slope_i |a_i|²`.
fn add_squares(adjoint: &mut Mat<f64>, features: &Mat<f64>, slopes: &[f64], sign: f64) {
    for (i, slope) in slopes.iter().enumerate() {
        let column = adjoint.col_as_slice_mut(i).iter_mut();
        column.zip(features.col_as_slice(i)).for_each(|(a, f)| *a += sign * 2.0 * slope * f);
    }
}
