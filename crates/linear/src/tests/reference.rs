//! The reference case of spec `linearised_laplace`, section 14: two examples, two classes, three weights. Its numbers have ten digits.

use super::{assert_near, covariance, structures};
use crate::Prior;
use crate::evidence::{DataFit, LaplaceEvidence};
use crate::features::{DenseFeatures, Numbered};
use crate::mode::{ModeOptions, ModeProblem, Predictor};
use faer::{Mat, mat};
use posterior_likelihoods::{Categorical, Likelihood};
use posterior_optim::Signal;

const TOLERANCE: f64 = 1e-9;

/// Features (4 x 3), and the same times a root of the softmax curvature at the logits of the case.
fn reference() -> (Mat<f64>, Mat<f64>) {
    let phi = mat![[1.0, 0.0, 2.0], [0.0, 1.0, -1.0], [0.5, -1.0, 0.0], [1.0, 2.0, 1.0]];
    let p: f64 = 1.0 / (1.0 + (-0.5f64).exp());
    let b = p * (1.0 - p);
    // b (1, -1)' (1, -1), for both examples.
    let q = Mat::from_fn(2, 3, |i, j| b.sqrt() * (phi[(2 * i, j)] - phi[(2 * i + 1, j)]));
    (phi, q)
}

#[test]
fn curvature_and_its_scaling() {
    let (phi, q) = reference();
    // The curvature of the likelihood itself.
    let softmax = Categorical::new(2).unwrap();
    let mut blocks = [[0.0; 4]; 2];
    softmax.curvature(&[0.0], &[0.3, -0.2], &mut blocks[0]);
    softmax.curvature(&[1.0], &[1.0, 0.5], &mut blocks[1]);
    let b = Mat::from_fn(4, 4, |i, j| if i / 2 == j / 2 { blocks[i / 2][i % 2 * 2 + j % 2] } else { 0.0 });
    let expected =
        [[0.2937546403, 0.1175018561, 0.8225129927], [0.0, 2.350037122, 0.0], [0.0, 0.0, 2.350037122]];
    let expected_scaling = [1.8450478434, 0.6523229208, 0.6523229208];
    for m in [q.transpose() * &q, phi.transpose() * b * &phi] {
        for (i, j) in [(0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)] {
            assert_near(m[(i, j)], expected[i][j], TOLERANCE);
            assert_near(m[(j, i)], expected[i][j], TOLERANCE);
        }
    }
    for structure in structures(&q) {
        let scales = structure.normalised().unwrap().scales();
        (0..3).for_each(|i| assert_near(scales[i], expected_scaling[i], TOLERANCE));
    }
}

#[test]
fn effective_dimension_and_log_determinant() {
    let prior = Prior::scalar(3, 0.5).unwrap();
    for structure in structures(&reference().1) {
        let terms = structure.terms(&prior, 1.0).unwrap();
        assert_near(terms.effective_dimensions[0], 1.6655200757, TOLERANCE);
        assert_near(terms.log_determinant, 3.5790560196, TOLERANCE);
        let scaled = structure.normalised().unwrap().terms(&prior, 1.0).unwrap();
        assert_near(scaled.effective_dimensions[0], 1.4666666667, TOLERANCE);
    }
}

#[test]
fn predictive_covariance() {
    let test = mat![[1.0, 1.0, 1.0], [0.0, 2.0, -1.0]];
    for structure in structures(&reference().1) {
        let posterior = structure.condition(&Prior::scalar(3, 0.5).unwrap(), 1.0).unwrap();
        let found = covariance(&posterior, &test);
        let expected = [1.5160792509, 0.6013559770, 0.6013559770, 1.8314100139];
        (0..4).for_each(|i| assert_near(found[(i / 2, i % 2)], expected[i], TOLERANCE));
        // The probit approximation that the case quotes for logits (0.2, -0.4).
        let scaled = |logit: f64, v: f64| logit / (1.0 + std::f64::consts::PI / 8.0 * v).sqrt();
        let gap = scaled(0.2, found[(0, 0)]) - scaled(-0.4, found[(1, 1)]);
        assert_near(1.0 / (1.0 + (-gap).exp()), 0.6138233358, TOLERANCE);
    }
}

#[test]
fn mode_evidence_and_update() {
    let (phi, q) = reference();
    let features = DenseFeatures::new(phi.clone(), 2).unwrap();
    let problem = ModeProblem {
        features: &features,
        source: &Numbered::new(2, vec![0.0, 1.0]).unwrap(),
        likelihood: &Categorical::new(2).unwrap(),
        quadratic: false,
        precisions: vec![0.5; 3],
        strength: 1.0,
        predictor: Predictor::Affine,
    };
    let prior = Prior::scalar(3, 0.5).unwrap();
    let [dense, low_rank] = structures(&q);
    let preconditioner = dense.condition(&prior, 1.0).unwrap();
    let options = ModeOptions { tolerance: 1e-20, inner_steps: 50, newton_steps: 50, ..Default::default() };
    let mode = problem.solve(&[0.0; 3], &preconditioner, &options, &mut |_, _| Signal::Continue).unwrap();
    assert!(mode.converged, "{mode:?}");
    let expected = [0.2953227226, 0.4158570405, 0.7843710587];
    (0..3).for_each(|i| assert_near(mode.weights[i], expected[i], TOLERANCE));
    let norm: f64 = mode.weights.iter().map(|w| w * w).sum();
    assert_near(norm, 0.8753905462, TOLERANCE);
    // M stays at the linearisation point, not at the mode.
    for structure in [dense, low_rank] {
        let fit = DataFit::LogLikelihood { value: 0.0 };
        let evidence = LaplaceEvidence::new(&structure, prior.clone(), &mode.weights, fit).unwrap();
        let value = evidence.at(&[0.5], 1.0).unwrap();
        assert_near(value.effective_dimensions[0] / norm, 1.9026023104, TOLERANCE);
        assert_near(value.log_evidence, -2.0083756464, TOLERANCE);
    }
}
