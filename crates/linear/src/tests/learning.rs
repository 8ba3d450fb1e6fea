//! The loop with other likelihoods, curvatures, evidences and options.

use super::{Problem, assert_near, normal, normals};
use crate::features::{DenseFeatures, Indices};
use crate::hyperparameters::{
    Evidence, EvidenceCurvature, GaussianModel, LaplaceModel, LearnOptions, Learned, Limited, Limits, MStep,
    ModeMethod, RootCurvature, learn, log_precision_gradient,
};
use crate::mode::{DescentOptions, ModeProblem, NewtonCgOptions, NewtonOptions, curvature_at, newton};
use crate::structure::{Block, BlockMatrix, Dense, Diagonal, Structure};
use crate::{LinearError, Noise, Prior};
use posterior_likelihoods::Categorical;
use posterior_optim::{Lbfgs, Optimiser, check};

/// A softmax model linearised at some weights `v`: `f0` is what the linear part at `v` leaves of the outputs.
struct Softmax {
    features: DenseFeatures,
    likelihood: Categorical,
    targets: Vec<f64>,
    offset: Vec<f64>,
    point: Vec<f64>,
    noise: Noise,
    prior: Prior,
}

const EXAMPLES: usize = 25;
const SOURCE: Indices = Indices(EXAMPLES);

impl Softmax {
    fn new(dimension: usize, offset_scale: f64) -> Self {
        let phi = normal(3 * EXAMPLES, dimension, "phi");
        let truth = normals(dimension, "truth");
        let logits = &phi * crate::dense::column(&truth);
        let best =
            |i: usize| (0..3).max_by(|&a, &b| logits[(3 * i + a, 0)].total_cmp(&logits[(3 * i + b, 0)]));
        // A third of the labels are arbitrary, so that the classes cannot be separated.
        let label = |i: usize| if i.is_multiple_of(3) { i % 2 } else { best(i).unwrap() } as f64;
        let targets: Vec<f64> = (0..EXAMPLES).map(label).collect();
        let offset: Vec<f64> = normals(3 * EXAMPLES, "offset").iter().map(|v| offset_scale * v).collect();
        let point: Vec<f64> = truth.iter().map(|v| 2.0 * v).collect();
        let likelihood = Categorical::new(3).unwrap();
        let linear = &phi * crate::dense::column(&point);
        let outputs: Vec<f64> = (0..3 * EXAMPLES).map(|r| linear[(r, 0)] + offset[r]).collect();
        let noise = curvature_at(&likelihood, &targets, &outputs).unwrap();
        let half = dimension / 2;
        let stretches = [(half, 0), (dimension - half, 1)];
        let prior = Prior::grouped(&stretches, vec!["a".into(), "b".into()], vec![0.1, 0.1]).unwrap();
        Self {
            features: DenseFeatures::new(phi, 3).unwrap(),
            likelihood,
            targets,
            offset,
            point,
            noise,
            prior,
        }
    }

    fn problem(&self) -> ModeProblem<'_, DenseFeatures> {
        ModeProblem::new(&self.features, &SOURCE, &self.likelihood, &self.targets)
            .unwrap()
            .with_offset(&self.offset)
            .unwrap()
    }

    fn curvature(&self) -> RootCurvature {
        RootCurvature::new(self.features.whole(), &self.noise).unwrap()
    }

    fn learn(
        &self,
        curvature: &dyn EvidenceCurvature,
        method: ModeMethod,
        evidence: &Evidence,
        options: &LearnOptions,
    ) -> Learned {
        let mut model = LaplaceModel::new(self.problem(), curvature, method).unwrap();
        learn(&mut model, evidence, &self.prior, options).unwrap()
    }
}

fn newton_method() -> ModeMethod {
    ModeMethod::Newton(NewtonOptions::default())
}

#[test]
fn the_fixed_point_is_stationary_for_mode_and_precisions_together() {
    let case = Softmax::new(6, 0.5);
    let curvature = case.curvature();
    let options = LearnOptions { tolerance: 1e-10, steps: 500, ..Default::default() };
    for m_step in [MStep::MacKay, MStep::MaximiseBound, MStep::DecoupledElbo, MStep::Gradient { rate: 0.4 }] {
        let options = LearnOptions { m_step, inner_steps: 2, ..options.clone() };
        let learned = case.learn(&curvature, newton_method(), &Evidence::Mode, &options);
        assert!(learned.converged, "{m_step:?} {:?}", learned.trace.last());
        let each = learned.prior.precision_of_each(0..6);
        let mode = newton(&case.problem(), &each, &[0.0; 6], NewtonOptions::default()).unwrap();
        check::assert_close(&learned.weights, &mode.weights, 1e-8, 1e-9);
        // G as a function of the precisions for these weights, with M kept at the linearisation point.
        let norms = learned.prior.squared_norms(&learned.weights);
        let evidence = |t: &[f64]| {
            let a: Vec<f64> = t.iter().map(|t| t.exp()).collect();
            let terms = curvature.terms(&case.prior.with_precisions(&a).unwrap(), 1.0).unwrap();
            -0.5 * (terms.log_determinant + a[0] * norms[0] + a[1] * norms[1])
        };
        let logs: Vec<f64> = learned.prior.precisions().iter().map(|a| a.ln()).collect();
        check::assert_close(&check::gradient(evidence, &logs), &[0.0; 2], 0.0, 1e-7);
        let last = learned.trace.last().unwrap();
        let likelihood = case.problem().log_likelihood(&learned.weights).unwrap();
        assert_near(last.evidence, likelihood + evidence(&logs), 1e-9);
        // And away from it the slope is the stated one.
        let terms = curvature.terms(&case.prior, 1.0).unwrap();
        let slopes: Vec<f64> =
            (0..2).map(|l| log_precision_gradient(terms.effective_dimensions[l], 0.1, norms[l])).collect();
        check::assert_close(&slopes, &check::gradient(evidence, &[0.1f64.ln(); 2]), 1e-7, 1e-8);
    }
}

#[test]
fn all_ways_to_the_mode_lead_to_the_same_precisions() {
    let case = Softmax::new(6, 0.5);
    let curvature = case.curvature();
    let options = LearnOptions { tolerance: 1e-8, ..Default::default() };
    let exact = case.learn(&curvature, newton_method(), &Evidence::Mode, &options);
    let lbfgs = DescentOptions {
        optimiser: Optimiser::Lbfgs(Lbfgs::default()),
        gradient_tolerance: 1e-9,
        batch: EXAMPLES,
        ..Default::default()
    };
    for method in [
        ModeMethod::NewtonCg(NewtonCgOptions { tolerance: 1e-16, ..Default::default() }),
        ModeMethod::Descent(lbfgs),
    ] {
        let other = case.learn(&curvature, method, &Evidence::Mode, &options);
        check::assert_close(other.prior.precisions(), exact.prior.precisions(), 1e-4, 0.0);
        check::assert_close(&other.weights, &exact.weights, 1e-4, 1e-6);
    }
    let hurried = ModeMethod::Newton(NewtonOptions { steps: 1, ..Default::default() });
    let mut model = LaplaceModel::new(case.problem(), &curvature, hurried).unwrap();
    learn(&mut model, &Evidence::Mode, &case.prior, &LearnOptions { steps: 1, ..options }).unwrap();
    assert!(model.unconverged() >= 1);
}

#[test]
fn structured_curvatures_serve_as_well() {
    let case = Softmax::new(6, 0.5);
    let m = {
        let identity = faer::Mat::<f64>::identity(6, 6);
        crate::gauss_newton::gauss_newton_product(&case.features, &SOURCE, &case.noise, identity.as_ref(), 9)
            .unwrap()
    };
    let diagonal: Vec<f64> = (0..6).map(|i| m[(i, i)]).collect();
    let block = |matrix| Structure::new(vec![Block { name: "all".into(), range: 0..6, matrix }]).unwrap();
    let dense = block(BlockMatrix::Dense(Dense::new(m)));
    let approximate = block(BlockMatrix::Diagonal(Diagonal::new(diagonal.clone())));
    let options = LearnOptions { tolerance: 1e-9, ..Default::default() };
    let exact = case.learn(&case.curvature(), newton_method(), &Evidence::Mode, &options);
    let same = case.learn(&dense, newton_method(), &Evidence::Mode, &options);
    check::assert_close(same.prior.precisions(), exact.prior.precisions(), 1e-7, 0.0);
    let other = case.learn(&approximate, newton_method(), &Evidence::Mode, &options);
    let last = other.trace.last().unwrap();
    for (l, range) in [(0, 0..3), (1, 3..6)] {
        let a = last.precisions[l];
        let gamma: f64 = diagonal[range].iter().map(|m| m / (m + a)).sum();
        assert_near(last.effective_dimensions[l], gamma, 1e-12);
    }
    assert!(case.prior.precisions() != other.prior.precisions() && other.converged);
}

#[test]
fn the_three_evidences_differ_as_they_should() {
    let case = Softmax::new(6, 0.5);
    let curvature = case.curvature();
    let options = LearnOptions { tolerance: 1e-9, ..Default::default() };
    let run =
        |case: &Softmax, evidence: Evidence| case.learn(&curvature, newton_method(), &evidence, &options);
    let naive = run(&case, Evidence::Linearisation(case.point.clone()));
    let mode = run(&case, Evidence::Mode);
    let simple = run(&case, Evidence::SimpleMode);
    // The naive evidence keeps the norm of the linearisation point and fits nothing.
    assert_eq!(naive.weights, case.point);
    let norms = case.prior.squared_norms(&case.point);
    assert!(naive.trace.iter().all(|s| s.squared_norms == norms));
    let last = naive.trace.last().unwrap();
    (0..2).for_each(|l| assert_near(last.precisions[l] * norms[l], last.effective_dimensions[l], 1e-6));
    // Its constant is the likelihood of the network itself, f0 + J v.
    let likelihood = case.problem().log_likelihood(&case.point).unwrap();
    let penalty: f64 = (0..2).map(|l| last.precisions[l] * norms[l]).sum();
    let terms = curvature.terms(&naive.prior, 1.0).unwrap();
    assert_near(last.evidence, likelihood - 0.5 * (penalty + terms.log_determinant), 1e-10);
    // Chapter 5: the point is longer than the mode, so the naive precision comes out too small.
    assert!((0..2).all(|l| naive.prior.precisions()[l] < mode.prior.precisions()[l]));
    assert_ne!(mode.weights, simple.weights);
    let without = Softmax { offset: vec![0.0; 3 * EXAMPLES], ..Softmax::new(6, 0.5) };
    let expected = run(&without, Evidence::Mode);
    check::assert_close(simple.prior.precisions(), expected.prior.precisions(), 1e-7, 0.0);
    check::assert_close(&simple.weights, &expected.weights, 1e-7, 1e-9);
}

#[test]
fn a_group_that_explains_nothing_runs_into_its_limit_and_says_so() {
    // The second group's features are zero: its weights are zero, and the evidence wants them pinned.
    let mut phi = normal(12, 4, "phi");
    (0..12).for_each(|i| (2..4).for_each(|j| phi[(i, j)] = 0.0));
    let noise = Noise::uniform(1.0, 1).unwrap();
    let targets: Vec<f64> =
        normals(12, "y").iter().enumerate().map(|(i, e)| 2.0 * phi[(i, 0)] - phi[(i, 1)] + 0.5 * e).collect();
    let mut model = GaussianModel::new(phi.as_ref(), &targets, None, &noise).unwrap();
    let prior = Prior::grouped(&[(2, 0), (2, 1)], vec!["a".into(), "b".into()], vec![1.0; 2]).unwrap();
    let limits = Limits { precision: (1e-4, 1e4), ..Default::default() };
    for m_step in [MStep::MacKay, MStep::MaximiseBound] {
        let options = LearnOptions { limits, m_step, ..Default::default() };
        let learned = learn(&mut model, &Evidence::Mode, &prior, &options).unwrap();
        assert!(learned.converged);
        assert_eq!(learned.prior.precisions()[1], 1e4);
        let hits = &learned.trace[learned.trace.len() - 2].hits;
        assert!(hits.iter().any(|h| h.what == Limited::PrecisionHigh(1) && h.wanted > 1e4), "{hits:?}");
        assert!(hits.iter().any(|h| h.what == Limited::EffectiveDimension(1)), "{hits:?}");
        assert!(!hits.iter().any(|h| h.what == Limited::PrecisionHigh(0)));
    }
    // With one group the bisection reports its edge too.
    let mut tight = GaussianModel::new(phi.as_ref(), &[0.0; 12], None, &noise).unwrap();
    let options = LearnOptions { limits, m_step: MStep::MaximiseBound, ..Default::default() };
    let learned = learn(&mut tight, &Evidence::Mode, &Prior::scalar(4, 1.0).unwrap(), &options).unwrap();
    assert_eq!(learned.prior.precisions(), [1e4]);
    assert!(learned.trace[0].hits.iter().any(|h| h.what == Limited::PrecisionHigh(0)));
}

#[test]
fn perfect_fits_keep_the_noise_within_its_limits() {
    // As many weights as rows and hardly any prior: the residual vanishes.
    let phi = normal(3, 3, "phi");
    let noise = Noise::uniform(1.0, 1).unwrap();
    let mut model = GaussianModel::new(phi.as_ref(), &[0.0; 3], None, &noise).unwrap().learning_noise();
    let options = LearnOptions { steps: 5, ..Default::default() };
    let learned = learn(&mut model, &Evidence::Mode, &Prior::scalar(3, 1.0).unwrap(), &options).unwrap();
    assert_eq!(learned.noise_factor, Limits::default().noise.1);
    assert!(learned.trace[0].hits.iter().any(|h| h.what == Limited::Noise && h.wanted.is_infinite()));
}

#[test]
fn options_and_sizes_are_checked() {
    let problem = Problem::new(4, 4);
    let new = |y: &[f64], f0: Option<&[f64]>| GaussianModel::new(problem.phi.as_ref(), y, f0, &problem.noise);
    assert!(new(&[0.0; 7], None).is_err() && new(&[f64::NAN; 8], None).is_err());
    assert!(new(&[0.0; 8], Some(&[0.0])).is_err() && new(&[0.0; 8], Some(&[f64::NAN; 8])).is_err());
    let mut model = new(&problem.targets, None).unwrap();
    let mut try_with = |prior: &Prior, evidence: &Evidence, options: LearnOptions| {
        learn(&mut model, evidence, prior, &options).map(|l| l.trace.len())
    };
    let good = || LearnOptions::default();
    let limits = |precision| Limits { precision, ..Default::default() };
    for options in [
        LearnOptions { inner_steps: 0, ..good() },
        LearnOptions { tolerance: f64::NAN, ..good() },
        LearnOptions { tolerance: -1.0, ..good() },
        LearnOptions { m_step: MStep::Gradient { rate: 0.0 }, ..good() },
        LearnOptions { m_step: MStep::Gradient { rate: f64::INFINITY }, ..good() },
        LearnOptions { limits: limits((0.0, 1.0)), ..good() },
        LearnOptions { limits: limits((2.0, 1.0)), ..good() },
        LearnOptions { limits: limits((1.0, f64::NAN)), ..good() },
        LearnOptions { limits: Limits { dimension: 0.0, ..Default::default() }, ..good() },
    ] {
        let result = try_with(&problem.prior, &Evidence::Mode, options.clone());
        assert!(matches!(result, Err(LinearError::Option { .. })), "{options:?}");
    }
    let small = Prior::scalar(3, 1.0).unwrap();
    assert!(matches!(try_with(&small, &Evidence::Mode, good()), Err(LinearError::Shape { .. })));
    for point in [vec![0.0; 3], vec![f64::NAN; 4]] {
        assert!(try_with(&problem.prior, &Evidence::Linearisation(point), good()).is_err());
    }
    // No steps: the state at the start, and nothing learned.
    let options = LearnOptions { steps: 0, ..good() };
    assert_eq!(try_with(&problem.prior, &Evidence::Mode, options).unwrap(), 1);
    // A group without weights keeps its precision.
    let names = vec!["a".into(), "b".into()];
    let hollow = Prior::grouped(&[(4, 0), (0, 1)], names, vec![1.0, 3.0]).unwrap();
    let learned = learn(&mut model, &Evidence::Mode, &hollow, &good()).unwrap();
    assert_eq!(learned.prior.precisions()[1], 3.0);
    let case = Softmax::new(6, 0.5);
    let other = RootCurvature::new(problem.phi.as_ref(), &problem.noise).unwrap();
    assert!(LaplaceModel::new(case.problem(), &other, newton_method()).is_err());
}
