//! Expectation maximisation for the one precision of the g-prior, and for the noise.

use super::measured::MeasuredTangent;
use super::measurement_space::{MakePreconditioner, MeasurementSpace};
use super::scaling::Scales;
use super::tangent::ImageTangent;
use crate::TomographyError;
use faer::Mat;
use posterior_likelihoods::{Gaussian, OutputLikelihood};
use posterior_linalg::operator::LinearOperator;
use posterior_linalg::solve::ConjugateGradientState;
use posterior_linear::curvature::FitSums;
use posterior_linear::features::Numbered;
use posterior_linear::mode::Predictor;
use posterior_linear::sampled::{
    ConjugateOptions, DescentOptions, EmOptions, EmState, EmStep, Estimator, ExpectationMaximisation,
    FoundMode, Hessian, ModeSolver, Noise, Objective, SampledModel, Sampler, Solve, SolverState, Update,
    WatchEm, WatchSolver, WeightSpace, weight_normals,
};
use posterior_linear::structure::{Block, BlockMatrix, LowRank, Structure};
use posterior_linear::{LinearError, Prior};
use posterior_networks::Precision;
use posterior_optim::{Clock, Limits, Progress, Reason, Signal, drive};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// How samples and modes are found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GPriorSolver {
    /// Conjugate gradients over the measurements: pictures.
    Measurements(ConjugateOptions),
    /// Descent on the weights, with all measurements in every step: volumes, whose measurements are more than a preconditioner can hold.
    Weights(DescentOptions),
}

/// Descent on all measurements at once: without the noise of batches, momentum as long as the run allows is what makes it fast.
pub fn weight_descent() -> DescentOptions {
    DescentOptions { epochs: 300, momentum: 0.98, ..DescentOptions::default() }
}

/// What is asked of expectation maximisation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GPriorOptions {
    /// Samples of a turn.
    pub samples: usize,
    /// Turns at most.
    pub turns: usize,
    /// The precision counts as at rest when its logarithm moves by less.
    pub tolerance: f64,
    /// How samples and modes are found.
    pub solver: GPriorSolver,
    /// Variance of the measurements' noise; None learns it, from the residual of the network's picture on.
    pub noise_variance: Option<f64>,
    /// Seed of the samples.
    pub seed: u64,
}

impl Default for GPriorOptions {
    /// 4 samples, at most 12 turns: the effective dimension is then known to a few parts in a hundred of its root, and the published 16 end at the same precision for four times the work; the residual that the reference uses for its turns.
    fn default() -> Self {
        Self {
            samples: 4,
            turns: 12,
            tolerance: 0.05,
            solver: GPriorSolver::Measurements(ConjugateOptions { tolerance: 1e-2, steps: 100 }),
            noise_variance: None,
            seed: 0,
        }
    }
}

/// What became of the turns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GPriorFit {
    /// The precision a of scaled weights.
    pub precision: f64,
    /// Variance of the measurements' noise, `1 / b`.
    pub noise_variance: f64,
    /// What each turn found.
    pub turns: Vec<EmStep>,
    /// Why they ended.
    pub reason: Reason,
    /// Mean square of `y - T g(v)`, where the noise began.
    pub residual: f64,
}

impl GPriorFit {
    /// Standard deviations of the weights (d): `s / sqrt(a)`.
    pub fn deviations(&self, scales: &Scales) -> Vec<f64> {
        scales.values.iter().map(|s| s / self.precision.sqrt()).collect()
    }
}

/// Draws of weights, zero in the mean.
#[derive(Clone, Debug)]
pub struct WeightDraws {
    /// d x draws.
    pub weights: Mat<f64>,
    /// Steps taken.
    pub steps: usize,
    /// The largest relative residual of their systems.
    pub residual: f64,
}

/// Sees every step of a solver, or None between turns, and the state over the measurements; may stop the fit.
pub type WatchExpectation<'a> = WatchEm<'a, ConjugateGradientState<f64>>;

/// The same over the weights.
pub type WatchDescent<'a> = WatchEm<'a, SolverState>;

/// The model of scaled weights that turns work on, with what all ways share.
pub struct GPrior<'a, T: Precision> {
    measured: &'a MeasuredTangent<'a, T>,
    scales: &'a Scales,
    sinogram: &'a [f64],
    options: &'a GPriorOptions,
    targets: Vec<f64>,
    source: Numbered,
    likelihood: OutputLikelihood,
    residual: f64,
    start: f64,
}

impl<'a, T: Precision> GPrior<'a, T> {
    /// Of a picture's linear model, the scales of its weights and the measurements (c).
    ///
    /// # Errors
    /// [`TomographyError::Shape`], [`TomographyError::Option`].
    pub fn new(
        measured: &'a MeasuredTangent<'a, T>,
        scales: &'a Scales,
        sinogram: &'a [f64],
        options: &'a GPriorOptions,
    ) -> Result<Self, TomographyError> {
        let refuse = |name, value, expected| Err(TomographyError::Option { name, value, expected });
        if options.samples == 0 {
            return refuse("samples", 0.0, "at least one sample for each turn");
        }
        if options.turns == 0 {
            return refuse("turns", 0.0, "at least one turn");
        }
        if let Some(value) = options.noise_variance.filter(|v| !(*v > 0.0 && v.is_finite())) {
            return refuse("noise_variance", value, "positive and finite");
        }
        let targets = measured.linear_targets(sinogram)?;
        let c = sinogram.len();
        let squares: f64 =
            sinogram.iter().zip(measured.measured_picture()).map(|(y, g)| (y - g).powi(2)).sum();
        let residual = squares / c as f64;
        let unit = options.noise_variance.unwrap_or(residual);
        if !(unit > 0.0 && unit.is_finite()) {
            return refuse(
                "noise_variance",
                unit,
                "positive: the picture explains every measurement exactly, so give the noise of the scanner",
            );
        }
        // tr K = d / a: the prior's pictures are as large as the measurements say.
        let total: f64 = targets.iter().map(|t| t * t).sum();
        let start = scales.values.len() as f64 / total.max(f64::MIN_POSITIVE);
        Ok(Self {
            measured,
            scales,
            sinogram,
            options,
            targets,
            source: Numbered::new(c, sinogram.to_vec())?,
            likelihood: OutputLikelihood::Gaussian(Gaussian::new(unit, 0.0)),
            residual,
            start,
        })
    }

    fn model(&self) -> Result<SampledModel<'_, T, MeasuredTangent<'a, T>>, TomographyError> {
        let model = SampledModel::new(self.measured, &self.source, &self.likelihood);
        Ok(model.scaled(self.scales.values.clone())?)
    }

    /// Before the first turn, with a mode of zero: descent begins there, since from the network's own weights what no measurement moves would fall as slowly as the prior is weak.
    ///
    /// # Errors
    /// Those of the prior.
    pub fn begin<S>(&self) -> Result<EmState<S>, TomographyError> {
        let mut state = EmState::begin(&self.prior()?, 1.0);
        let weights = vec![0.0; self.scales.values.len()];
        state.mode =
            Some(FoundMode { weights, log_likelihood: f64::NEG_INFINITY, steps: 0, converged: None });
        Ok(state)
    }

    /// Turns over the measurements, from a state on. Cost of a turn: conjugate gradients for samples + 1 right-hand sides.
    ///
    /// Source: Antorán (2024), algorithm 6; spec `tomography`, section 7.2.
    ///
    /// # Errors
    /// [`TomographyError::Sampled`]; [`TomographyError::Interrupted`].
    pub fn over_measurements(
        &self,
        conjugate: &ConjugateOptions,
        preconditioner: &MakePreconditioner<'_>,
        state: EmState<ConjugateGradientState<f64>>,
        watch: &mut WatchExpectation<'_>,
    ) -> Result<(GPriorFit, EmState<ConjugateGradientState<f64>>), TomographyError> {
        let (samples, seed) = (0..self.options.samples, self.options.seed);
        let white = weight_normals(self.scales.values.len(), &samples, seed);
        let sampler = MeasurementSpace {
            measured: self.measured,
            scales: &self.scales.values,
            targets: &self.targets,
            unit_noise: self.unit(),
            samples,
            seed,
            white: &white,
            preconditioner,
            options: conjugate,
        };
        self.turns(sampler, ModeSolver::default(), state, watch)
    }

    /// Turns by descent on the weights: nothing has the size of measurements x measurements.
    ///
    /// Source: spec `tomography`, section 7.3.
    ///
    /// # Errors
    /// As [`Self::over_measurements`].
    pub fn over_weights(
        &self,
        descent: &DescentOptions,
        state: EmState<SolverState>,
        watch: &mut WatchDescent<'_>,
    ) -> Result<(GPriorFit, EmState<SolverState>), TomographyError> {
        let (samples, seed, model) = (0..self.options.samples, self.options.seed, self.model()?);
        let noise = Noise::draw(&model, samples, seed, &mut |_, _| Signal::Continue)?;
        let descent = DescentOptions { batch: self.sinogram.len(), ..descent.clone() };
        let (solve, curvature) = (Solve::Descent(descent.clone()), self.no_curvature()?);
        let sampler = WeightSpace {
            model: &model,
            noise: &noise,
            curvature: &curvature,
            solve: &solve,
            objective: Objective::LowVariance,
        };
        self.turns(sampler, ModeSolver::Descent(descent), state, watch)
    }

    /// The picture's tangent.
    pub fn tangent(&self) -> &ImageTangent<'a, T> {
        self.measured.tangent()
    }

    /// Draws of the weights around their mode under what a fit found, by the same descent: nothing has the size of measurements x measurements. Draw j is the same whatever others there are; those of the turns have other numbers. A solve goes on from its saved state.
    ///
    /// # Errors
    /// As [`Self::over_measurements`].
    pub fn draws_over_weights(
        &self,
        descent: &DescentOptions,
        fit: &GPriorFit,
        numbers: Range<usize>,
        saved: Option<SolverState>,
        watch: &mut WatchSolver<'_, SolverState>,
    ) -> Result<WeightDraws, TomographyError> {
        let (model, first) = (self.model()?, self.options.samples);
        let precisions = vec![fit.precision; self.scales.values.len()];
        let strength = self.unit() / fit.noise_variance;
        let numbers = first + numbers.start..first + numbers.end;
        let noise = Noise::draw(&model, numbers, self.options.seed, &mut |_, _| Signal::Continue)?;
        let descent = DescentOptions { batch: self.sinogram.len(), ..descent.clone() };
        let (solve, curvature) = (Solve::Descent(descent), self.no_curvature()?);
        let mut sampler = WeightSpace {
            model: &model,
            noise: &noise,
            curvature: &curvature,
            solve: &solve,
            objective: Objective::LowVariance,
        };
        let drawn = sampler.samples(&precisions, strength, None, saved, watch)?;
        if drawn.reason == Reason::Interrupted {
            return Err(TomographyError::Interrupted);
        }
        let sides = noise.right_hand_sides(&precisions, strength).map_err(TomographyError::Linear)?;
        let hessian = Hessian::new(&model, &precisions, strength, None);
        let left = &sides - hessian.multiply(drawn.samples.as_ref());
        hessian.failure().map_err(TomographyError::Linear)?;
        let relative = |j: usize| left.col(j).norm_l2() / sides.col(j).norm_l2().max(f64::MIN_POSITIVE);
        Ok(WeightDraws {
            weights: model.unscaled(drawn.samples.as_ref()),
            steps: drawn.steps,
            residual: (0..sides.ncols()).map(relative).fold(0.0, f64::max),
        })
    }

    fn prior(&self) -> Result<Prior, TomographyError> {
        let prior = Prior::scalar(self.scales.values.len(), self.start);
        prior.map_err(|e| TomographyError::Linear(LinearError::Features(Box::new(e))))
    }

    /// The variance in units of which the turns learn the noise.
    fn unit(&self) -> f64 {
        self.options.noise_variance.unwrap_or(self.residual)
    }

    /// Nothing is preconditioned with the curvature of the weights here.
    fn no_curvature(&self) -> Result<Structure, TomographyError> {
        let d = self.scales.values.len();
        let matrix = BlockMatrix::LowRank(LowRank::new(Mat::zeros(d, 0), vec![0.0; d]));
        let block = Block { name: "all weights".into(), range: 0..d, matrix };
        Structure::new(vec![block]).map_err(|e| TomographyError::Linear(e.into()))
    }

    fn turns<S: Sampler>(
        &self,
        sampler: S,
        mode: ModeSolver,
        state: EmState<S::State>,
        watch: &mut WatchEm<'_, S::State>,
    ) -> Result<(GPriorFit, EmState<S::State>), TomographyError> {
        let (model, curvature) = (self.model()?, self.no_curvature()?);
        let prior = self.prior()?;
        let mut fit = FitSums::default();
        fit.add_batch(&self.likelihood, self.sinogram, self.measured.measured_picture());
        let options = EmOptions {
            tolerance: self.options.tolerance,
            update: Update::default(),
            estimator: Estimator::Prediction,
            mode,
            predictor: Predictor::Affine,
            learn_noise: self.options.noise_variance.is_none(),
        };
        let mut tell =
            |progress: Option<&Progress>, state: &dyn Fn() -> EmState<S::State>| watch(progress, state);
        let mut turns = ExpectationMaximisation {
            model: &model,
            sampler,
            prior,
            beyond: 0,
            curvature: &curvature,
            fit,
            spectrum: None,
            options: &options,
            state,
            watch: &mut tell,
        };
        let limits = Limits { steps: self.options.turns, time: None };
        let (reason, _) = drive(&mut turns, limits, Clock::start(), &mut |_, _| Signal::Continue)?;
        let state = turns.state;
        let fit = GPriorFit {
            precision: state.precisions[0],
            noise_variance: self.unit() * state.noise_variance,
            turns: state.turns.clone(),
            reason,
            residual: self.residual,
        };
        Ok((fit, state))
    }
}
