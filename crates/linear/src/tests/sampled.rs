//! Samples and expectation maximisation against dense algebra on the same noise.

use super::{assert_matrix, assert_near, column, normal};
use crate::Prior;
use crate::curvature::FitSums;
use crate::features::{DenseFeatures, Numbered};
use crate::mode::{ModeOptions, Predictor};
use crate::sampled::*;
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
    let diagonal = vec![1.0; each.len()];
    let to = (&each[..], strength);
    solve_exactly(model, noise, to, &diagonal, start, None, &tight(), &mut |_, _| Signal::Continue).unwrap().0
}

#[test]
fn the_hessian_and_the_scales_are_those_of_the_reference_case() {
    let case = Case::reference();
    let model = case.model();
    let none = vec![0.0; 3];
    let m = Hessian::new(&model, &none, 1.0, None).to_dense();
    let expected =
        [[0.2937546403, 0.1175018561, 0.8225129927], [0.0, 2.350037122, 0.0], [0.0, 0.0, 2.350037122]];
    for (i, j) in [(0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)] {
        assert_near(m[(i, j)], expected[i][j], 1e-9);
    }
    let (diagonal, _) = model.curvature_diagonal(1, 0, &mut go).unwrap();
    let scales: Vec<f64> = diagonal.iter().map(|m| m.powf(-0.5)).collect();
    for (found, expected) in scales.iter().zip([1.8450478434, 0.6523229208, 0.6523229208]) {
        assert_near(*found, expected, 1e-9);
    }
    // With the g-prior the trace is the number of weights, and the effective dimension that of the spec, estimated within five standard deviations.
    let scaled = case.model().scaled(scales).unwrap();
    let m = Hessian::new(&scaled, &none, 1.0, None).to_dense();
    assert_near((0..3).map(|i| m[(i, i)]).sum::<f64>(), 3.0, 1e-9);
    let count = 4000;
    for (model, gamma) in [(&case.model(), 1.6655200757), (&scaled, 1.4666666667)] {
        let m = Hessian::new(model, &none, 1.0, None).to_dense();
        let shares: Vec<f64> = eigenvalues(m.as_ref()).unwrap().iter().map(|l| l / (l + 0.5)).collect();
        assert_near(shares.iter().sum(), gamma, 1e-9);
        let noise = Noise::draw(model, 0..count, 3, &mut go).unwrap();
        let samples = exact(model, &noise, 0.5, 1.0);
        let squares = model.squared_outputs(samples.as_ref(), &mut go).unwrap();
        let spread = (2.0 * shares.iter().map(|t| t * t).sum::<f64>() / count as f64).sqrt();
        assert_near(squares.iter().sum::<f64>() / count as f64, gamma, 5.0 * spread);
    }
}

#[test]
fn one_turn_finds_the_mode_of_the_reference_case() {
    let case = Case::reference();
    // The case's linear model has no offset: h = phi w.
    let (state, _) = turns(&case, &case.model(), 0.5, 4000, |o| o.predictor = Predictor::Linear, 1);
    let turn = &state.turns[0];
    let mode = &state.mode.as_ref().unwrap().weights;
    for (found, expected) in mode.iter().zip([0.2953227226, 0.4158570405, 0.7843710587]) {
        assert_near(*found, expected, 1e-8);
    }
    assert_near(turn.squared_norms[0], 0.8753905462, 1e-8);
    // MacKay's update is 1.9026 by the exact effective dimension; ours by 4,000 samples, whose relative error is at most sqrt(2 / (K gamma)).
    let spread = (2.0f64 / (4000.0 * 1.6655)).sqrt();
    assert_near(state.precisions[0], 1.9026023104, 5.0 * spread * 1.9026);
}

/// Turns with conjugate gradients, to rest or so many.
fn turns(
    case: &Case,
    model: &SampledModel<'_, f64, DenseFeatures>,
    precision: f64,
    samples: usize,
    change: impl Fn(&mut TurnOptions),
    count: usize,
) -> (TurnsState<SolverState>, Vec<TurnsState<SolverState>>) {
    let mut seen = Vec::new();
    let begin = TurnsState::begin(&Prior::scalar(model.dimension(), precision).unwrap(), 1.0);
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
    (state, solve): (TurnsState<SolverState>, &Solve),
    samples: usize,
    change: impl Fn(&mut TurnOptions),
    count: usize,
    watch: &mut WatchTurns<'_, SolverState>,
) -> TurnsState<SolverState> {
    let noise = Noise::draw(model, 0..samples, 3, &mut go).unwrap();
    let (diagonal, fit): (Vec<f64>, FitSums) = model.curvature_diagonal(4, 0, &mut go).unwrap();
    let mut options = TurnOptions {
        tolerance: 0.0,
        update: Update::Mackay,
        estimator: Estimator::Prediction,
        mode: ModeSolver::Newton(ModeOptions { tolerance: 1e-20, inner_steps: 50, newton_steps: 50 }),
        predictor: Predictor::Affine,
        learn_noise: false,
    };
    change(&mut options);
    let scaled: Vec<f64> = match model.scales() {
        Some(s) => diagonal.iter().zip(s).map(|(m, s)| m * s * s).collect(),
        None => diagonal.clone(),
    };
    let objective = Objective::LowVariance;
    let sampler = WeightSpace { model, noise: &noise, diagonal: &scaled, solve, objective };
    let prior = Prior::scalar(model.dimension(), 1.0).unwrap();
    let spectrum = Some(curvature_spectrum(model, (case.features.whole().ncols(), 40), 1).unwrap());
    let mut turns =
        Turns { model, sampler, prior, diagonal: &diagonal, fit, spectrum, options: &options, state, watch };
    let limits = Limits { steps: count, time: None };
    drive(&mut turns, limits, Clock::start(), &mut |_: &Progress, _: &_| Signal::Continue).unwrap();
    turns.state
}

#[test]
fn moments_of_exact_samples_are_those_of_the_posterior() {
    let case = Case::softmax(10, 6);
    let (model, a, count) = (case.model(), 0.8, 6000);
    let noise = Noise::draw(&model, 0..count, 7, &mut go).unwrap();
    let samples = exact(&model, &noise, a, 1.0);
    let covariance = inverse(&(case.curvature() + identity(6, a)));
    let found = &samples * samples.transpose() * Scale(1.0 / count as f64);
    for i in 0..6 {
        for j in 0..6 {
            let spread =
                (covariance[(i, i)] * covariance[(j, j)] + covariance[(i, j)].powi(2)) / count as f64;
            assert_near(found[(i, j)], covariance[(i, j)], 5.0 * spread.sqrt());
        }
    }
    // Samples are known by their numbers: others later are those of a longer run, and start anywhere.
    let later = Noise::draw(&model, 5..8, 7, &mut go).unwrap();
    assert_matrix(later.white.as_ref(), noise.white.subcols(5, 3), 0.0);
    assert_matrix(later.pulled.as_ref(), noise.pulled.subcols(5, 3), 1e-12);
}

/// The variances of both estimators of the effective dimension (spec, section 5.3).
#[test]
fn estimators_of_the_effective_dimension_have_their_variances() {
    let case = Case::softmax(10, 6);
    let (model, a, count) = (case.model(), 0.8, 6000);
    let noise = Noise::draw(&model, 0..count, 9, &mut go).unwrap();
    let samples = exact(&model, &noise, a, 1.0);
    let shares: Vec<f64> =
        eigenvalues(case.curvature().as_ref()).unwrap().iter().map(|l| l / (l + a)).collect();
    let by_prediction = model.squared_outputs(samples.as_ref(), &mut go).unwrap();
    let by_weight: Vec<f64> = (0..count).map(|j| 6.0 - a * samples.col(j).squared_norm_l2()).collect();
    for (values, terms) in
        [(by_prediction, shares.clone()), (by_weight, shares.iter().map(|t| 1.0 - t).collect::<Vec<f64>>())]
    {
        let mean = values.iter().sum::<f64>() / count as f64;
        let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (count - 1) as f64;
        let expected = 2.0 * terms.iter().map(|t| t * t).sum::<f64>();
        // A weighted sum of squared normals has the fourth cumulant 48 sum t^4; that is what the variance of a sample variance is made of.
        let fourth = 48.0 * terms.iter().map(|t| t.powi(4)).sum::<f64>();
        let spread = ((fourth + 2.0 * expected * expected) / count as f64).sqrt();
        assert_near(variance, expected, 5.0 * spread);
        assert_near(mean, shares.iter().sum(), 5.0 * (expected / count as f64).sqrt());
    }
}

#[test]
fn both_objectives_have_one_gradient_and_one_minimum() {
    let case = Case::softmax(10, 6);
    let model = case.model().scaled((0..6).map(|i| 0.5 + 0.2 * i as f64).collect()).unwrap();
    let noise = Noise::draw(&model, 0..3, 1, &mut go).unwrap();
    let each: Vec<f64> = (0..6).map(|i| 0.4 + 0.3 * i as f64).collect();
    let strength = 1.7;
    let h = Hessian::new(&model, &each, strength, None).to_dense();
    let solution = inverse(&h) * noise.right_hand_sides(&each, strength).unwrap();
    let z = normal(6, 3, "z");
    let expected = &h * (&z - &solution);
    let mut values = Vec::new();
    for objective in [Objective::LowVariance, Objective::Standard] {
        let own = SampleObjective::new(&model, &noise, &each, strength, objective).unwrap();
        let (gradient, value) = own.gradient_at(z.as_ref(), None).unwrap();
        assert_matrix(gradient.as_ref(), expected.as_ref(), 1e-11);
        let (at_rest, least) = own.gradient_at(solution.as_ref(), None).unwrap();
        assert!(at_rest.norm_max() < 1e-11 && least < value);
        values.push((value, least));
        // The value is that whose gradient it is; by differences, of the mean over three samples.
        let (i, j, step) = (2, 1, 1e-5);
        let at = |h: f64| {
            let mut moved = z.clone();
            moved[(i, j)] += h;
            own.gradient_at(moved.as_ref(), None).unwrap().1
        };
        assert_near((at(step) - at(-step)) / (2.0 * step), gradient[(i, j)] / 3.0, 1e-7);
        // Batches of one epoch have the whole gradient as their mean.
        let parts = [[0, 3, 4, 7, 9], [1, 2, 5, 6, 8]];
        let mut mean = Mat::<f64>::zeros(6, 3);
        parts.iter().for_each(|p| mean += own.gradient_at(z.as_ref(), Some(p)).unwrap().0 * Scale(0.5));
        assert_matrix(mean.as_ref(), gradient.as_ref(), 1e-11);
    }
    assert_near(values[0].0 - values[0].1, values[1].0 - values[1].1, 1e-10);
}

/// The exact difference of single-example variances (spec, section 5.6), against the gradients themselves and against dense algebra.
#[test]
fn the_low_variance_objective_is_as_much_better_as_the_formula_says() {
    let case = Case::softmax(12, 5);
    let (model, a, count) = (case.model(), 0.9, 3000);
    let noise = Noise::draw(&model, 0..count, 4, &mut go).unwrap();
    let samples = exact(&model, &noise, a, 1.0);
    let (m, phi) = (case.curvature(), case.features.whole());
    let covariance = inverse(&(&m + identity(5, a)));
    let b = case.output_curvature(&case.offset);
    let trace = |m: &Mat<f64>| (0..m.nrows()).map(|i| m[(i, i)]).sum::<f64>();
    let mut single = 0.0;
    for i in 0..12 {
        let own = phi.subrows(3 * i, 3);
        let own = own.transpose() * b.submatrix(3 * i, 3 * i, 3, 3) * own;
        single += trace(&(&own * &covariance * &own));
    }
    let expected = 12.0 * (trace(&m) - 2.0 * single) - (trace(&m) - 2.0 * trace(&(&m * &covariance * &m)));
    let each = vec![a; 5];
    let objectives = [Objective::Standard, Objective::LowVariance]
        .map(|o| SampleObjective::new(&model, &noise, &each, 1.0, o).unwrap());
    let mut differences = vec![0.0; count];
    for i in 0..12 {
        for (objective, sign) in objectives.iter().zip([1.0, -1.0]) {
            let gradient = objective.gradient_at(samples.as_ref(), Some(&[i])).unwrap().0;
            (0..count).for_each(|j| differences[j] += sign * gradient.col(j).squared_norm_l2() / 12.0);
        }
    }
    let mean = differences.iter().sum::<f64>() / count as f64;
    let spread = differences.iter().map(|d| (d - mean).powi(2)).sum::<f64>().sqrt() / count as f64;
    assert_near(mean, expected, 5.0 * spread);
    let all: Vec<usize> = (0..12).collect();
    let found = gradient_variances(&model, &noise, samples.as_ref(), (a, 1.0), &all, &mut go).unwrap();
    // Sums of squares of normals: relative errors of a few times sqrt(2 / K), of each of its four terms.
    let scale = 12.0 * trace(&m) + 24.0 * single + 2.0 * trace(&(&m * &covariance * &m));
    assert_near(found.difference, expected, 5.0 * (2.0 / count as f64).sqrt() * scale);
    assert_near(found.trace, trace(&m), 5.0 * (2.0 / count as f64).sqrt() * trace(&m));
    let gamma = trace(&(&covariance * &m));
    assert_near(
        found.published,
        2.0 * a * gamma,
        5.0 * (2.0 / (count as f64 * gamma)).sqrt() * 2.0 * a * gamma,
    );
    assert!(gradient_variances(&model, &noise, samples.as_ref(), (a, 1.0), &[], &mut go).is_err());
}

/// Expectation maximisation with dense matrices on the same noise.
fn dense_turns(
    case: &Case,
    mut a: f64,
    samples: usize,
    update: Update,
    learn_noise: bool,
    count: usize,
) -> (f64, f64) {
    let (m, d) = (case.curvature(), case.features.whole().ncols());
    let noise = Noise::draw(&case.model(), 0..samples, 3, &mut go).unwrap();
    let spectrum = eigenvalues(m.as_ref()).unwrap();
    let mut variance = 1.0;
    for _ in 0..count {
        let s: f64 = 1.0 / variance;
        let w = case.mode(a, s);
        let right = &noise.pulled * Scale(s.sqrt()) + &noise.white * Scale(a.sqrt());
        let z = inverse(&(&m * Scale(s) + identity(d, a))) * right;
        let k = samples as f64;
        let square = |m: &Mat<f64>| (0..m.ncols()).map(|j| m.col(j).squared_norm_l2()).sum::<f64>();
        let weighted = z.transpose() * &m * &z;
        let gamma = s * (0..samples).map(|j| weighted[(j, j)]).sum::<f64>() / k;
        a = match update {
            Update::Mackay => gamma.clamp(1.0, d as f64 - 1.0) / square(&w),
            Update::DecoupledElbo => d as f64 / (square(&w) + square(&z) / k),
            Update::Evidence => {
                // By Newton's method on the logarithm instead of bisection.
                let norm = square(&w);
                let mut t = a.ln();
                for _ in 0..200 {
                    let e = t.exp();
                    let sum: f64 = spectrum.iter().map(|l| s * l / (s * l + e)).sum();
                    let slope: f64 = spectrum.iter().map(|l| -s * l * e / (s * l + e).powi(2)).sum();
                    t -= (e * norm - sum) / (e * norm - slope);
                }
                t.exp()
            }
        };
        if learn_noise {
            let f = case.features.whole() * &w;
            let relative = [0.5, 1.0, 2.0];
            let residual: f64 = (0..f.nrows())
                .map(|i| (case.targets[i] - case.offset[i] - f[(i, 0)]).powi(2) / relative[i % 3])
                .sum();
            variance = residual / (f.nrows() as f64 - gamma);
        }
    }
    (a, variance)
}

#[test]
fn turns_by_conjugate_gradients_are_dense_ones_on_the_same_noise() {
    let softmax = Case::softmax(14, 6);
    let gaussian = Case::gaussian(14, 6);
    for (case, learn_noise) in [(&softmax, false), (&gaussian, false), (&gaussian, true)] {
        for update in [Update::Mackay, Update::DecoupledElbo] {
            let (a, variance) = dense_turns(case, 3.0, 5, update, learn_noise, 4);
            let set = |o: &mut TurnOptions| (o.update, o.learn_noise) = (update, learn_noise);
            let (state, _) = turns(case, &case.model(), 3.0, 5, set, 4);
            assert_near(state.precisions[0] / a, 1.0, 1e-7);
            assert_near(state.noise_variance / variance, 1.0, 1e-7);
        }
    }
    // The bound's maximum needs the spectrum: by random probes, that of the trace within their error.
    let measure = curvature_spectrum(&softmax.model(), (400, 40), 5).unwrap();
    let expected = eigenvalues(softmax.curvature().as_ref()).unwrap();
    for a in [0.1, 2.0, 30.0] {
        let sum: f64 = expected.iter().map(|l| l / (l + a)).sum();
        let found = measure.trace(|l| l / (l + a));
        assert!((found.mean - sum).abs() < 5.0 * found.standard_error, "{found:?} {sum}");
    }
    let (a, _) = dense_turns(&softmax, 3.0, 5, Update::Evidence, false, 4);
    let (state, _) = turns(&softmax, &softmax.model(), 3.0, 5, |o| o.update = Update::Evidence, 4);
    // Six probes: the sum's relative error, measured above as about 5 % of 6 weights, is the precision's.
    let spread = curvature_spectrum(&softmax.model(), (6, 40), 1).unwrap().trace(|l| l / (l + a));
    assert_near(state.precisions[0] / a, 1.0, 5.0 * (spread.standard_error / spread.mean).max(0.01) * 2.0);
}

#[test]
fn turns_end_where_the_update_rests_and_the_weight_estimate_agrees() {
    let case = Case::softmax(14, 6);
    let (state, _) = turns(&case, &case.model(), 3.0, 2000, |o| o.tolerance = 1e-6, 60);
    let turn = state.turns.last().unwrap();
    // MacKay's fixed point.
    assert_near(turn.precisions[0] * turn.squared_norms[0] / turn.effective_dimensions[0], 1.0, 2e-6);
    assert!(state.turns.len() < 60);
    // zeta' H zeta = d in the mean, and both estimators of the same.
    let near = 5.0 * (2.0f64 / (6.0 * 2000.0)).sqrt();
    assert_near(turn.convergence.unwrap(), 1.0, near);
    assert_near(turn.by_weight, turn.by_prediction.unwrap(), 6.0 * near);
    let (by_weight, _) = turns(&case, &case.model(), 3.0, 2000, |o| o.estimator = Estimator::Weight, 1);
    assert_eq!(by_weight.turns[0].by_prediction, None);
    assert_eq!(by_weight.turns[0].effective_dimensions[0], by_weight.turns[0].by_weight);
}

#[test]
fn the_g_prior_is_estimated_without_bias() {
    let case = Case::softmax(40, 6);
    let model = case.model();
    let (exact_diagonal, fit) = model.curvature_diagonal(1, 0, &mut go).unwrap();
    let m = case.curvature();
    (0..6).for_each(|i| assert_near(exact_diagonal[i], m[(i, i)], 1e-10));
    assert_eq!(fit.examples, 40);
    // More root columns than are sent back: twelve classes.
    let rows = 12 * 40;
    let features = DenseFeatures::new(normal(rows, 6, "many"), 12).unwrap();
    let likelihood = OutputLikelihood::Categorical(Categorical::new(12).unwrap());
    let source = Numbered::new(40, vec![1.0; 40]).unwrap();
    let model = SampledModel::new(&features, &source, &likelihood);
    let none = vec![0.0; 6];
    let m = Hessian::new(&model, &none, 1.0, None).to_dense();
    let samples = 2000;
    let (found, _) = model.curvature_diagonal(samples, 8, &mut go).unwrap();
    for i in 0..6 {
        // Of each example a square of a normal with variance m_i: the sum of 2 m_i² is below 2 M².
        assert_near(found[i] / m[(i, i)], 1.0, 5.0 * (2.0 / samples as f64).sqrt());
    }
}

#[test]
fn descent_finds_the_samples_and_goes_on_as_if_it_had_not_stopped() {
    let case = Case::softmax(60, 6);
    let model = case.model();
    let noise = Noise::draw(&model, 0..4, 2, &mut go).unwrap();
    let each = vec![2.0; 6];
    let expected = exact(&model, &noise, 2.0, 1.0);
    let options = DescentOptions { epochs: 300, batch: 10, ..DescentOptions::default() };
    let run = |objective, saved, options: &DescentOptions, seen: &mut Vec<DescentState>| {
        let mut own = SampleObjective::new(&model, &noise, &each, 1.0, objective).unwrap();
        let start = noise.prior_draws(&each).unwrap();
        let (found, reason) =
            descend("it", &mut own, start, saved, Averaging::Geometric, options, &mut |p, s| {
                if p.step == 700 {
                    seen.push(s.clone());
                }
                Signal::Continue
            })
            .unwrap();
        assert_eq!(reason, Reason::Steps);
        found
    };
    let error = |found: &Mat<f64>| (found - &expected).norm_l2() / expected.norm_l2();
    let mut of_batches = Vec::new();
    for objective in [Objective::LowVariance, Objective::Standard] {
        // All data in each step: nothing is random, and 600 steps of momentum 0.9 forget the start. What is left is the average's own start, (1 - 1/6)^600.
        let whole = DescentOptions { epochs: 600, batch: 60, ..options.clone() };
        let exactly = error(&run(objective, None, &whole, &mut Vec::new()));
        assert!(exactly < 1e-9, "{objective:?}: {exactly}");
        // Batches leave noise, which a quarter of the step and four times the steps more than halve: iterates scatter by the root of the step, and averages by one over the root of their window.
        let mut states = Vec::new();
        let found = run(objective, None, &options, &mut states);
        let step = states[0].step_size;
        let longer = DescentOptions { epochs: 1200, step_size: Some(0.25 * step), ..options.clone() };
        let (short, long) = (error(&found), error(&run(objective, None, &longer, &mut Vec::new())));
        assert!(long < 0.5 * short && short < 0.2, "{objective:?}: {short} {long}");
        of_batches.push(short);
        let again = run(objective, states.pop(), &options, &mut Vec::new());
        assert_matrix(again.as_ref(), found.as_ref(), 0.0);
    }
    assert!(of_batches[0] < of_batches[1], "the low-variance objective has less noise: {of_batches:?}");
    // Much too long a step is halved until it is none.
    let mut own = SampleObjective::new(&model, &noise, &each, 1.0, Objective::LowVariance).unwrap();
    let wild = DescentOptions { step_size: Some(1e3), ..options.clone() };
    let mut restarts = 0;
    let (found, _) = descend(
        "it",
        &mut own,
        noise.prior_draws(&each).unwrap(),
        None,
        Averaging::Geometric,
        &wild,
        &mut |p, _| {
            restarts = p.restarts;
            Signal::Continue
        },
    )
    .unwrap();
    assert!(restarts > 5 && (&found - &expected).norm_l2() < 0.3 * expected.norm_l2());
    let hopeless = DescentOptions { step_size: Some(1e30), restarts: 3, ..options };
    let message = descend("it", &mut own, expected, None, Averaging::Geometric, &hopeless, &mut |_, _| {
        Signal::Continue
    })
    .unwrap_err()
    .to_string();
    assert!(message.contains("of it") && message.contains("3 restarts"), "{message}");
}

#[test]
fn the_mode_by_descent_is_that_by_newtons_method() {
    let case = Case::softmax(60, 6);
    let expected = case.mode(2.0, 1.0);
    let model = case.model();
    let each = vec![2.0; 6];
    let mut objective =
        ModeObjective { model: &model, precisions: &each, strength: 1.0, predictor: Predictor::Affine };
    let (gradient, loss) = objective.gradient_at(expected.as_ref(), None).unwrap();
    assert!(gradient.norm_max() < 1e-10);
    let moved = |h: f64| {
        let mut w = normal(6, 1, "w");
        w[(3, 0)] += h;
        objective.gradient_at(w.as_ref(), None).unwrap()
    };
    assert_near((moved(1e-5).1 - moved(-1e-5).1) / 2e-5, moved(0.0).0[(3, 0)], 1e-6);
    let mut reached = |options: &DescentOptions| {
        let zero = Mat::zeros(6, 1);
        let (found, _) =
            descend("the mode", &mut objective, zero, None, Averaging::Decay, options, &mut |_, _| {
                Signal::Continue
            })
            .unwrap();
        objective.gradient_at(found.as_ref(), None).unwrap().1 - loss
    };
    // Nothing random: the optimum. Batches: noise of the order of the last steps, which longer runs make shorter.
    let whole = DescentOptions { epochs: 400, batch: 60, ..DescentOptions::default() };
    assert!(reached(&whole).abs() < 1e-9);
    let options = DescentOptions { epochs: 100, batch: 10, ..DescentOptions::default() };
    let (short, long) = (reached(&options), reached(&DescentOptions { epochs: 800, ..options.clone() }));
    assert!(long < 0.5 * short && short < 0.01, "{short} {long}");
    let set = |o: &mut TurnOptions| o.mode = ModeSolver::Descent(options.clone());
    let (state, _) = turns(&case, &model, 2.0, 3, set, 1);
    let weights = &state.mode.unwrap().weights;
    assert!((column(weights) - &expected).norm_l2() < 0.02 * expected.norm_l2());
}

#[test]
fn turns_go_on_as_if_they_had_not_stopped() {
    let case = Case::softmax(20, 6);
    let model = case.model().scaled((0..6).map(|i| if i == 2 { 0.0 } else { 0.5 }).collect()).unwrap();
    let descent = DescentOptions { epochs: 4, batch: 6, ..DescentOptions::default() };
    for solve in [Solve::ConjugateGradients(tight()), Solve::Descent(descent)] {
        let begin = TurnsState::begin(&Prior::scalar(6, 3.0).unwrap(), 1.0);
        let mut seen = Vec::new();
        let whole = resumed(&case, &model, (begin, &solve), 3, |_| {}, 3, &mut |progress, state| {
            if progress.is_some_and(|p| p.step == 3) {
                seen.push(state());
            }
            Signal::Continue
        });
        assert_eq!(seen.len(), 3);
        for state in seen {
            let again = resumed(&case, &model, (state, &solve), 3, |_| {}, 3, &mut |_, _| Signal::Continue);
            assert_eq!((&again.precisions, &again.mode), (&whole.precisions, &whole.mode));
            assert_matrix(again.samples.unwrap().as_ref(), whole.samples.as_ref().unwrap().as_ref(), 0.0);
        }
        // A weight without influence keeps its prior, and stays at zero in the mode.
        assert_eq!(whole.mode.as_ref().unwrap().weights[2], 0.0);
    }
}

#[test]
fn bad_input_is_refused_with_its_name() {
    let case = Case::softmax(4, 3);
    let model = case.model();
    assert!(Noise::draw(&model, 2..2, 0, &mut go).is_err());
    assert!(case.model().scaled(vec![1.0; 2]).is_err());
    assert!(case.model().scaled(vec![1.0, f64::NAN, 1.0]).is_err());
    let noise = Noise::draw(&model, 0..2, 0, &mut go).unwrap();
    let each = vec![1.0; 3];
    let mut own = SampleObjective::new(&model, &noise, &each, 1.0, Objective::LowVariance).unwrap();
    let base = DescentOptions::default();
    for bad in [
        DescentOptions { epochs: 0, ..base.clone() },
        DescentOptions { batch: 0, ..base.clone() },
        DescentOptions { momentum: 1.0, ..base.clone() },
        DescentOptions { step_size: Some(-1.0), ..base },
    ] {
        let start = noise.prior_draws(&each).unwrap();
        let found =
            descend("it", &mut own, start, None, Averaging::Geometric, &bad, &mut |_, _| Signal::Continue);
        assert!(found.unwrap_err().to_string().contains("option"));
    }
    let none = ConjugateOptions { tolerance: 0.0, steps: 3 };
    let start = noise.prior_draws(&each).unwrap();
    let to = (&each[..], 1.0);
    assert!(
        solve_exactly(&model, &noise, to, &each, start, None, &none, &mut |_, _| Signal::Continue).is_err()
    );
}

/// The kernel between observed directions by products, against its dense form, and its determinant against that of the curvature.
#[test]
fn function_space_is_weight_space() {
    let case = Case::softmax(9, 6);
    let model = case.model().scaled((0..6).map(|i| 0.5 + 0.2 * i as f64).collect()).unwrap();
    let kernel = ObservedKernel::new(&model).unwrap();
    let none = vec![0.0; 6];
    let m = Hessian::new(&model, &none, 1.0, None).to_dense();
    let dense = kernel.to_dense();
    // Roots of three classes have two columns.
    assert_eq!(dense.nrows(), 18);
    let log_determinant = |m: &Mat<f64>| -> f64 {
        eigenvalues(m.as_ref()).unwrap().iter().map(|l| (l.max(0.0) / 0.3).ln_1p()).sum()
    };
    assert_near(log_determinant(&dense), log_determinant(&m), 1e-9);
    let diagonal = RowAccess::diagonal(&kernel);
    (0..18).for_each(|i| assert_near(diagonal[i], dense[(i, i)], 1e-12));
    let (rows, v) = ([3, 17, 3, 0], normal(18, 2, "v"));
    let chosen = Mat::from_fn(4, 18, |i, j| dense[(rows[i], j)]);
    let mut out = Mat::zeros(4, 2);
    kernel.apply_rows(&rows, v.as_ref(), out.as_mut());
    assert_matrix(out.as_ref(), (&chosen * &v).as_ref(), 1e-11);
    let few = normal(4, 2, "few");
    let mut out = Mat::zeros(18, 2);
    kernel.apply_columns(&rows, few.as_ref(), out.as_mut());
    assert_matrix(out.as_ref(), (chosen.transpose() * &few).as_ref(), 1e-11);
    let mut out = Mat::zeros(18, 4);
    kernel.columns_into(&rows, out.as_mut());
    assert_matrix(out.as_ref(), chosen.transpose(), 1e-11);
    kernel.failure().unwrap();
}

/// Spec `linearised_laplace`, sections 5.1 and 14, test 5: the decoupled bound is below that of the mode, which is below the evidence; all touch where the samples were drawn.
#[test]
fn bounds_lie_below_the_evidence_and_touch_it() {
    let case = Case::gaussian(8, 5);
    let (m, phi, drawn_at) = (case.curvature(), case.features.whole(), 0.9);
    let b = case.output_curvature(&case.offset);
    let residual = Mat::from_fn(24, 1, |i, _| case.targets[i] - case.offset[i]);
    let square = |m: &Mat<f64>, v: &Mat<f64>| (v.transpose() * m * v)[(0, 0)];
    let log_determinant = |m: &Mat<f64>| eigenvalues(m.as_ref()).unwrap().iter().map(|l| l.ln()).sum::<f64>();
    let constant = 24.0 * (2.0 * std::f64::consts::PI).ln();
    // From the definition: targets are normal with the prior's kernel and the noise.
    let evidence = |a: f64| {
        let covariance = phi * phi.transpose() * Scale(1.0 / a) + inverse(&b);
        -0.5 * (square(&inverse(&covariance), &residual) + log_determinant(&covariance) + constant)
    };
    let h = &m + identity(5, drawn_at);
    let w = inverse(&h) * phi.transpose() * &b * &residual;
    let left = &residual - phi * &w;
    let fit = -0.5 * (square(&b, &left) - log_determinant(&b) + constant);
    let norm = w.col(0).squared_norm_l2();
    let of_mode =
        |a: f64| fit - 0.5 * (a * norm + log_determinant(&(&m * Scale(1.0 / a) + identity(5, 1.0))));
    let covariance = inverse(&h);
    let trace: f64 = (0..5).map(|i| covariance[(i, i)]).sum();
    let decoupled = |a: f64| {
        let own = |a: f64| sampled_bound(&[5], &[a], &[norm], &[trace]);
        of_mode(drawn_at) + own(a) - own(drawn_at)
    };
    assert_near(of_mode(drawn_at), evidence(drawn_at), 1e-9);
    for a in [0.1, 0.5, 0.8, 1.0, 1.5, 4.0, 30.0] {
        assert!(decoupled(a) < of_mode(a) && of_mode(a) < evidence(a) + 1e-12, "{a}");
    }
    // One slope where they touch.
    let slope = |f: &dyn Fn(f64) -> f64| (f(drawn_at + 1e-5) - f(drawn_at - 1e-5)) / 2e-5;
    assert_near(slope(&of_mode), slope(&evidence), 1e-7);
    assert_near(slope(&decoupled), slope(&of_mode), 1e-7);
    // Updates are where the bounds are flat: the classical one of the decoupled bound.
    let best = 5.0 / (norm + trace);
    assert!(decoupled(best) > decoupled(1.01 * best) && decoupled(best) > decoupled(0.99 * best));
}
