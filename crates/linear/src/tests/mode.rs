//! Modes by products alone, held against dense algebra.

use super::{column, normal, normals, to_vec};
use crate::Prior;
use crate::features::{DenseFeatures, Numbered};
use crate::mode::{Mode, ModeOptions, ModeProblem, Predictor};
use crate::structure::{Block, BlockMatrix, Dense, Structure};
use posterior_likelihoods::{Categorical, Gaussian, Likelihood, Poisson};
use posterior_optim::{Signal, check};

struct Case {
    features: DenseFeatures,
    likelihood: Box<dyn Likelihood>,
    quadratic: bool,
    targets: Vec<f64>,
    offset: Vec<f64>,
    source: Numbered,
    prior: Prior,
}

impl Case {
    fn new(name: &str, examples: usize, dimension: usize) -> Self {
        let (likelihood, targets): (Box<dyn Likelihood>, Vec<f64>) = match name {
            "softmax" => {
                (Box::new(Categorical::new(3).unwrap()), (0..examples).map(|i| (i * 2 % 3) as f64).collect())
            }
            "poisson" => {
                let counts = (0..3 * examples).map(|i| (i * 7 % 5) as f64).collect();
                (Box::new(Poisson::new(3).unwrap()), counts)
            }
            _ => (Box::new(Gaussian::independent(vec![0.5, 1.0, 2.0]).unwrap()), normals(3 * examples, "y")),
        };
        let offset = normals(3 * examples, "offset");
        let names = (0..dimension).map(|i| i.to_string()).collect();
        let precisions = (0..dimension).map(|i| 0.5 + 0.1 * i as f64).collect();
        let stretches: Vec<(usize, usize)> = (0..dimension).map(|i| (1, i)).collect();
        Self {
            features: DenseFeatures::new(normal(3 * examples, dimension, "phi"), 3)
                .unwrap()
                .with_offset(offset.clone())
                .unwrap(),
            likelihood,
            quadratic: name == "gaussian",
            source: Numbered::new(examples, targets.clone()).unwrap(),
            targets,
            offset,
            prior: Prior::grouped(&stretches, names, precisions).unwrap(),
        }
    }

    fn problem(&self) -> ModeProblem<'_, f64, DenseFeatures> {
        ModeProblem {
            features: &self.features,
            source: &self.source,
            likelihood: &*self.likelihood,
            quadratic: self.quadratic,
            precisions: self.prior.precisions().to_vec(),
            strength: 1.0,
            predictor: Predictor::Affine,
        }
    }

    /// The mode, preconditioned with the Gram matrix of the features.
    fn mode(&self, problem: &ModeProblem<'_, f64, DenseFeatures>, start: &[f64]) -> Mode {
        let exact =
            ModeOptions { newton_steps: 50, inner_steps: 100, tolerance: 1e-18, ..Default::default() };
        self.mode_within(problem, start, &exact)
    }

    fn mode_within(
        &self,
        problem: &ModeProblem<'_, f64, DenseFeatures>,
        start: &[f64],
        options: &ModeOptions,
    ) -> Mode {
        let d = start.len();
        let gram = self.features.whole().transpose() * self.features.whole();
        let matrix = BlockMatrix::Dense(Dense::new(gram));
        let block = Block { name: "all".into(), range: 0..d, matrix };
        let preconditioner =
            Structure::new(vec![block]).unwrap().condition(&self.prior, problem.strength).unwrap();
        problem.solve(start, &preconditioner, options, &mut |_, _| Signal::Continue).unwrap()
    }

    /// Gradient of the log likelihood in the outputs at `w`, sent back: `Phi' d log p / df`.
    fn slope(&self, w: &[f64], affine: bool) -> Vec<f64> {
        let f = self.features.whole() * column(w);
        let f: Vec<f64> =
            (0..f.nrows()).map(|r| f[(r, 0)] + if affine { self.offset[r] } else { 0.0 }).collect();
        let (width, mut slope) = (self.likelihood.target_width(), vec![0.0; f.len()]);
        for i in 0..f.len() / 3 {
            let y = &self.targets[i * width..(i + 1) * width];
            self.likelihood.gradient(y, &f[3 * i..3 * i + 3], &mut slope[3 * i..3 * i + 3]);
        }
        to_vec(&(self.features.whole().transpose() * column(&slope)))
    }
}

const NAMES: [&str; 3] = ["softmax", "poisson", "gaussian"];

#[test]
fn norms_are_as_good_as_asked_for_with_less_work() {
    for name in NAMES {
        let case = Case::new(name, 30, 20);
        let problem = case.problem();
        let norm = |mode: &Mode| -> f64 {
            mode.weights.iter().zip(case.prior.precisions()).map(|(w, a)| a * w * w).sum()
        };
        // Neither from nothing, whose norm is nothing, nor from far away do searches end before their time.
        for start in [vec![0.0; 20], normals(20, "start").iter().map(|v| 3.0 * v).collect()] {
            let exact = case.mode(&problem, &start);
            for asked in [0.1, 0.01, 1e-4] {
                let options = ModeOptions {
                    newton_steps: 50,
                    norm_tolerance: asked,
                    tolerance: 0.0,
                    ..ModeOptions::default()
                };
                let found = case.mode_within(&problem, &start, &options);
                let off = (norm(&found) / norm(&exact) - 1.0).abs();
                assert!(
                    found.converged && off <= asked,
                    "{name}: {off} where {asked} was asked for, {found:?}"
                );
                assert!(found.products < exact.products, "{name}: {} of {}", found.products, exact.products);
            }
        }
    }
}

#[test]
fn where_the_curvature_is_no_number_nothing_is_called_an_optimum() {
    let case = Case::new("poisson", 30, 20);
    let far: Vec<f64> = normals(20, "start").iter().map(|v| 30.0 * v).collect();
    assert!(!case.mode(&case.problem(), &far).converged);
}

#[test]
fn the_loss_has_the_stated_gradient_and_value() {
    for name in NAMES {
        let case = Case::new(name, 5, 4);
        for (predictor, strength) in [(Predictor::Affine, 1.0), (Predictor::Linear, 2.5)] {
            let problem = ModeProblem { predictor, strength, ..case.problem() };
            let w = normals(4, "w");
            let mut go_on = |_: usize, _: usize| Signal::Continue;
            let (value, gradient) = problem.loss_and_gradient(&w, &mut go_on).unwrap();
            let f = case.features.whole() * column(&w);
            let width = case.likelihood.target_width();
            let mut direct = 0.0;
            for i in 0..5 {
                let offset = |k: usize| if predictor == Predictor::Affine { case.offset[k] } else { 0.0 };
                let f: Vec<f64> = (0..3).map(|c| f[(3 * i + c, 0)] + offset(3 * i + c)).collect();
                direct -= case.likelihood.log_density(&case.targets[i * width..(i + 1) * width], &f);
            }
            assert!((problem.log_likelihood(&w, &mut go_on).unwrap() + direct).abs() < 1e-12);
            let a = case.prior.precisions();
            let prior = (0..4).map(|i| 0.5 * a[i] * w[i] * w[i]).sum::<f64>();
            assert!((value - strength * direct - prior).abs() < 1e-11);
            let loss = |w: &[f64]| problem.loss_and_gradient(w, &mut |_, _| Signal::Continue).unwrap().0;
            check::assert_close(&gradient, &check::gradient(loss, &w), 1e-8, 1e-8);
        }
    }
}

/// More rows than weights, and fewer.
const SIZES: [(usize, usize); 2] = [(12, 6), (4, 20)];

#[test]
fn modes_are_stationary() {
    for (name, (examples, dimension)) in NAMES.iter().flat_map(|n| SIZES.map(|s| (n, s))) {
        let case = Case::new(name, examples, dimension);
        for (predictor, strength) in [(Predictor::Affine, 1.0), (Predictor::Linear, 3.0)] {
            let problem = ModeProblem { predictor, strength, ..case.problem() };
            let mode = case.mode(&problem, &vec![0.0; dimension]);
            assert!(mode.converged, "{name}: {mode:?}");
            // A w = s Phi' d log p / df.
            let back = case.slope(&mode.weights, predictor == Predictor::Affine);
            for (i, a) in case.prior.precisions().iter().enumerate() {
                let error = (a * mode.weights[i] - strength * back[i]).abs();
                assert!(error < 1e-7, "{name} {predictor:?}: {error:e}");
            }
            let (loss, _) = problem.loss_and_gradient(&mode.weights, &mut |_, _| Signal::Continue).unwrap();
            assert_eq!(loss.to_bits(), mode.loss.to_bits());
            if case.quadratic {
                assert!(mode.newton_steps <= 3, "{mode:?}");
            }
        }
    }
}

#[test]
fn newton_recovers_from_a_far_start() {
    // Poisson curvature at large rates is far from that at the mode: full steps alone would jump between extremes.
    let case = Case::new("poisson", 12, 6);
    let near = case.mode(&case.problem(), &[0.0; 6]);
    let far = case.mode(&case.problem(), &[4.0; 6]);
    assert!(near.converged && far.converged, "{far:?}");
    check::assert_close(&far.weights, &near.weights, 1e-6, 1e-8);
}

#[test]
fn weights_of_infinite_precision_stay_at_zero() {
    let case = Case::new("softmax", 9, 5);
    let mut problem = case.problem();
    problem.precisions[1] = f64::INFINITY;
    let mode = case.mode(&problem, &[1.0; 5]);
    assert!(mode.converged && mode.weights[1] == 0.0);
    let back = case.slope(&mode.weights, true);
    for i in [0, 2, 3, 4] {
        assert!((case.prior.precisions()[i] * mode.weights[i] - back[i]).abs() < 1e-7);
    }
}

#[test]
fn searches_can_be_interrupted_and_refuse_what_does_not_fit() {
    let case = Case::new("softmax", 4, 2);
    let stopped = case.problem().loss_and_gradient(&[0.0; 2], &mut |_, _| Signal::Stop);
    assert!(matches!(stopped, Err(crate::LinearError::Interrupted)));
    let block = Block {
        name: "a".into(),
        range: 0..2,
        matrix: BlockMatrix::Dense(Dense::new(faer::Mat::identity(2, 2))),
    };
    let two = Structure::new(vec![block]).unwrap().condition(&case.prior, 1.0).unwrap();
    let options = ModeOptions::default();
    let mut go_on = |_: usize, _: usize| Signal::Continue;
    assert!(case.problem().solve(&[0.0; 3], &two, &options, &mut go_on).is_err());
    let short = ModeProblem { precisions: vec![1.0], ..case.problem() };
    assert!(short.solve(&[0.0; 2], &two, &options, &mut go_on).is_err());
    let other = Case::new("softmax", 4, 3);
    assert!(other.problem().solve(&[0.0; 3], &two, &options, &mut go_on).is_err());
}
