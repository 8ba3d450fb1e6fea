//! Samples and expectation maximisation against dense algebra on the same noise.

mod descent;
mod em;
mod moments;
mod objectives;
mod preconditioner;
mod reference;
mod span;

use super::{assert_matrix, assert_near, column, normal};
use crate::features::{DenseFeatures, Numbered};
use crate::mode::{ModeOptions, Predictor};
use crate::sampled::*;
use crate::structure::{Block, BlockMatrix, Dense, Structure};
use crate::{LinearError, Prior};
use faer::linalg::solvers::DenseSolveCore;
use faer::{Mat, Scale, mat};
use posterior_likelihoods::{Categorical, Gaussian, OutputLikelihood};
use posterior_linalg::dense::eigenvalues;
use posterior_linalg::operator::{LinearOperator, RowAccess};
use posterior_optim::{Clock, Limits, Progress, Reason, Signal, drive};

struct Case {
    features: DenseFeatures,
    source: Numbered,
    likelihood: OutputLikelihood,
    offset: Vec<f64>,
    targets: Vec<f64>,
    examples: usize,
}

impl Case {
    fn softmax(examples: usize, weights: usize) -> Self {
        let offset: Vec<f64> = normal(3 * examples, 1, "offset").col(0).iter().copied().collect();
        let targets: Vec<f64> = (0..examples).map(|i| (i * 2 % 3) as f64).collect();
        let features = DenseFeatures::new(normal(3 * examples, weights, "phi"), 3).unwrap();
        Self {
            features: features.with_offset(offset.clone()).unwrap(),
            source: Numbered::new(examples, targets.clone()).unwrap(),
            likelihood: OutputLikelihood::Categorical(Categorical::new(3).unwrap()),
            offset,
            targets,
            examples,
        }
    }

    /// Spec `linearised_laplace`, section 14.
    fn reference() -> Self {
        let phi = mat![[1.0, 0.0, 2.0], [0.0, 1.0, -1.0], [0.5, -1.0, 0.0], [1.0, 2.0, 1.0]];
        let (offset, targets) = (vec![0.3, -0.2, 1.0, 0.5], vec![0.0, 1.0]);
        Self {
            features: DenseFeatures::new(phi, 2).unwrap().with_offset(offset.clone()).unwrap(),
            source: Numbered::new(2, targets.clone()).unwrap(),
            likelihood: OutputLikelihood::Categorical(Categorical::new(2).unwrap()),
            offset,
            targets,
            examples: 2,
        }
    }

    fn gaussian(examples: usize, weights: usize) -> Self {
        let mut case = Self::softmax(examples, weights);
        let truth = normal(weights, 1, "truth");
        let noise = normal(3 * examples, 1, "noise");
        let mean = case.features.whole() * truth;
        case.targets =
            (0..3 * examples).map(|i| case.offset[i] + mean[(i, 0)] + 0.4 * noise[(i, 0)]).collect();
        case.source = Numbered::new(examples, case.targets.clone()).unwrap();
        case.likelihood = OutputLikelihood::Gaussian(Gaussian::independent(vec![0.5, 1.0, 2.0]).unwrap());
        case
    }

    fn model(&self) -> SampledModel<'_, f64, DenseFeatures> {
        SampledModel::new(&self.features, &self.source, &self.likelihood)
    }

    /// `B` at outputs `f`, block diagonal.
    fn output_curvature(&self, f: &[f64]) -> Mat<f64> {
        let (c, width) = (self.likelihood.outputs(), self.likelihood.target_width());
        let mut out = Mat::zeros(f.len(), f.len());
        for i in 0..self.examples {
            let mut b = vec![0.0; c * c];
            let y = &self.targets[i * width..(i + 1) * width];
            self.likelihood.curvature(y, &f[i * c..(i + 1) * c], &mut b);
            (0..c * c).for_each(|k| out[(i * c + k / c, i * c + k % c)] = b[k]);
        }
        out
    }

    /// `M`.
    fn curvature(&self) -> Mat<f64> {
        let phi = self.features.whole();
        phi.transpose() * self.output_curvature(&self.offset) * phi
    }

    /// The mode by Newton's method with dense matrices.
    fn mode(&self, precision: f64, strength: f64) -> Mat<f64> {
        let (phi, c) = (self.features.whole(), self.likelihood.outputs());
        let (d, width) = (phi.ncols(), self.likelihood.target_width());
        let mut w = Mat::<f64>::zeros(d, 1);
        for _ in 0..60 {
            let f: Vec<f64> = (phi * &w).col(0).iter().zip(&self.offset).map(|(a, b)| a + b).collect();
            let mut slopes = Mat::zeros(f.len(), 1);
            for i in 0..self.examples {
                let mut own = vec![0.0; c];
                let y = &self.targets[i * width..(i + 1) * width];
                self.likelihood.gradient(y, &f[i * c..(i + 1) * c], &mut own);
                (0..c).for_each(|o| slopes[(i * c + o, 0)] = strength * own[o]);
            }
            let h =
                phi.transpose() * self.output_curvature(&f) * phi * Scale(strength) + identity(d, precision);
            w += inverse(&h) * (phi.transpose() * slopes - &w * Scale(precision));
        }
        w
    }
}

fn identity(d: usize, scale: f64) -> Mat<f64> {
    Mat::<f64>::identity(d, d) * Scale(scale)
}

fn inverse(m: &Mat<f64>) -> Mat<f64> {
    m.partial_piv_lu().inverse()
}

fn go(_: usize, _: usize) -> Signal {
    Signal::Continue
}

fn tight() -> ConjugateOptions {
    ConjugateOptions { tolerance: 1e-12, steps: 400 }
}

/// Samples by conjugate gradients.
fn exact(
    model: &SampledModel<'_, f64, DenseFeatures>,
    noise: &Noise,
    precision: f64,
    strength: f64,
) -> Mat<f64> {
    let each = vec![precision; model.dimension()];
    let start = noise.prior_draws(&each).unwrap();
    let ones = model.leading_curvature(&vec![1.0; each.len()], 0, 0, &mut go).unwrap();
    let to = (&each[..], strength);
    solve_exactly(model, noise, to, &ones, start, None, &tight(), &mut |_, _| Signal::Continue).unwrap().0
}

/// Turns with conjugate gradients, to rest or so many.
fn turns(
    case: &Case,
    model: &SampledModel<'_, f64, DenseFeatures>,
    precision: f64,
    samples: usize,
    change: impl Fn(&mut EmOptions),
    count: usize,
) -> (EmState<SolverState>, Vec<EmState<SolverState>>) {
    let mut seen = Vec::new();
    let begin = EmState::begin(&Prior::scalar(model.dimension(), precision).unwrap(), 1.0);
    let solve = Solve::ConjugateGradients(tight());
    let state = resumed(case, model, (begin, &solve), samples, change, count, &mut |progress, state| {
        if progress.is_some() {
            seen.push(state());
        }
        Signal::Continue
    });
    (state, seen)
}

fn resumed(
    case: &Case,
    model: &SampledModel<'_, f64, DenseFeatures>,
    (state, solve): (EmState<SolverState>, &Solve),
    samples: usize,
    change: impl Fn(&mut EmOptions),
    count: usize,
    watch: &mut WatchEm<'_, SolverState>,
) -> EmState<SolverState> {
    let noise = Noise::draw(model, 0..samples, 3, &mut go).unwrap();
    by_noise(case, (model, 0), &noise, (state, solve), change, count, watch)
}

/// Turns on given noise, of a model with so many weights beyond it.
fn by_noise(
    case: &Case,
    (model, beyond): (&SampledModel<'_, f64, DenseFeatures>, usize),
    noise: &Noise,
    (state, solve): (EmState<SolverState>, &Solve),
    change: impl Fn(&mut EmOptions),
    count: usize,
    watch: &mut WatchEm<'_, SolverState>,
) -> EmState<SolverState> {
    let (diagonal, fit) = model.curvature_diagonal(4, 0, &mut go).unwrap();
    let curvature = model.leading_curvature(&diagonal, 2, 0, &mut go).unwrap();
    let mut options = EmOptions {
        tolerance: 0.0,
        update: Update::Mackay,
        estimator: Estimator::Prediction,
        mode: ModeSolver::Newton(ModeOptions {
            tolerance: 1e-20,
            inner_steps: 50,
            newton_steps: 50,
            ..Default::default()
        }),
        predictor: Predictor::Affine,
        learn_noise: false,
    };
    change(&mut options);
    let objective = Objective::LowVariance;
    let sampler = WeightSpace { model, noise, curvature: &curvature, solve, objective };
    let prior = Prior::scalar(model.dimension(), 1.0).unwrap();
    let spectrum = Some(curvature_spectrum(model, (case.features.whole().ncols(), 40), 1).unwrap());
    let mut turns = ExpectationMaximisation {
        model,
        sampler,
        prior,
        beyond,
        curvature: &curvature,
        fit,
        spectrum,
        options: &options,
        state,
        watch,
    };
    let limits = Limits { steps: count, time: None };
    drive(&mut turns, limits, Clock::start(), &mut |_: &Progress, _: &_| Signal::Continue).unwrap();
    turns.state
}
