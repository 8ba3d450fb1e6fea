//! The reference case of spec `linearised_laplace`, section 14: two examples, two classes, three weights. Its numbers have ten digits.

use super::{assert_near, reference};
use crate::Noise;
use crate::Prior;
use crate::exact::{ExactOptions, ExactPosterior, Form};
use crate::features::{DenseFeatures, Numbered};
use crate::hyperparameters::{EvidenceCurvature, RootCurvature, mackay};
use crate::mode::{ModeOptions, ModeProblem, Predictor};
use crate::structure::{Block, BlockMatrix, Dense, Structure};
use faer::{Mat, mat};
use posterior_likelihoods::{Categorical, Likelihood};
use posterior_optim::Signal;

const TOLERANCE: f64 = 1e-9;

/// `M = Phi' B Phi`, summed example by example.
fn curvature(phi: &Mat<f64>, noise: &Noise) -> Mat<f64> {
    phi.transpose() * noise.apply(&[0, 1], phi.as_ref())
}

fn structure(m: Mat<f64>) -> Structure {
    Structure::new(vec![Block { name: "all".into(), range: 0..3, matrix: BlockMatrix::Dense(Dense::new(m)) }])
        .unwrap()
}

#[test]
fn curvature_and_its_scaling() {
    let (phi, noise) = reference();
    // The curvature of the likelihood itself at the logits of the case.
    let softmax = Categorical::new(2).unwrap();
    let mut blocks = [0.0; 8];
    softmax.curvature(&[0.0], &[0.3, -0.2], &mut blocks[..4]);
    softmax.curvature(&[1.0], &[1.0, 0.5], &mut blocks[4..]);
    let from_likelihood = Noise::from_blocks(2, &blocks).unwrap();
    let expected =
        [[0.2937546403, 0.1175018561, 0.8225129927], [0.0, 2.350037122, 0.0], [0.0, 0.0, 2.350037122]];
    let expected_scaling = [1.8450478434, 0.6523229208, 0.6523229208];
    for noise in [&noise, &from_likelihood] {
        let m = curvature(&phi, noise);
        for (i, j) in [(0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)] {
            assert_near(m[(i, j)], expected[i][j], TOLERANCE);
            assert_near(m[(j, i)], expected[i][j], TOLERANCE);
        }
        let scales = structure(m).normalised().unwrap().scales();
        (0..3).for_each(|i| assert_near(scales[i], expected_scaling[i], TOLERANCE));
    }
}

#[test]
fn effective_dimension_and_log_determinant() {
    let (phi, noise) = reference();
    let prior = Prior::scalar(3, 0.5).unwrap();
    for form in [Form::Primal, Form::Dual] {
        let options = ExactOptions { form: Some(form), ..Default::default() };
        let posterior =
            ExactPosterior::around_mode(phi.as_ref(), &[0.0; 3], &noise, &[0.5; 3], options).unwrap();
        assert_near(posterior.effective_dimension(), 1.6655200757, TOLERANCE);
        assert_near(posterior.log_determinant(), 3.5790560196, TOLERANCE);
    }
    let terms = RootCurvature::new(phi.as_ref(), &noise).unwrap().terms(&prior, 1.0).unwrap();
    assert_near(terms.effective_dimensions[0], 1.6655200757, TOLERANCE);
    assert_near(terms.log_determinant, 3.5790560196, TOLERANCE);
}

#[test]
fn the_g_prior() {
    let (phi, noise) = reference();
    let scaled = structure(curvature(&phi, &noise)).normalised().unwrap();
    let terms = scaled.terms(&Prior::scalar(3, 0.5).unwrap(), 1.0).unwrap();
    assert_near(terms.effective_dimensions[0], 1.4666666667, TOLERANCE);
}

#[test]
fn predictive_covariance() {
    let (phi, noise) = reference();
    let test = mat![[1.0, 1.0, 1.0], [0.0, 2.0, -1.0]];
    for form in [Form::Primal, Form::Dual] {
        let options = ExactOptions { form: Some(form), ..Default::default() };
        let posterior =
            ExactPosterior::around_mode(phi.as_ref(), &[0.0; 3], &noise, &[0.5; 3], options).unwrap();
        let prediction = posterior.predict(test.as_ref()).unwrap();
        let expected = [1.5160792509, 0.6013559770, 0.6013559770, 1.8314100139];
        (0..4).for_each(|i| assert_near(prediction.covariance[i], expected[i], TOLERANCE));
        let joint = posterior.joint(test.as_ref()).unwrap().covariance;
        (0..4).for_each(|i| assert_near(joint[(i / 2, i % 2)], expected[i], TOLERANCE));
        // The probit approximation that the case quotes for logits (0.2, -0.4).
        let variance = prediction.variance();
        let scaled = |logit: f64, v: f64| logit / (1.0 + std::f64::consts::PI / 8.0 * v).sqrt();
        let gap = scaled(0.2, variance[0]) - scaled(-0.4, variance[1]);
        assert_near(1.0 / (1.0 + (-gap).exp()), 0.6138233358, TOLERANCE);
    }
}

#[test]
fn mode_evidence_and_update() {
    let (phi, noise) = reference();
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
    let preconditioner =
        structure(curvature(&phi, &noise)).condition(&Prior::scalar(3, 0.5).unwrap(), 1.0).unwrap();
    let options = ModeOptions { tolerance: 1e-20, inner_steps: 50, newton_steps: 50 };
    let mode = problem.solve(&[0.0; 3], &preconditioner, &options, &mut |_, _| Signal::Continue).unwrap();
    assert!(mode.converged, "{mode:?}");
    let expected = [0.2953227226, 0.4158570405, 0.7843710587];
    (0..3).for_each(|i| assert_near(mode.weights[i], expected[i], TOLERANCE));
    let norm: f64 = mode.weights.iter().map(|w| w * w).sum();
    assert_near(norm, 0.8753905462, TOLERANCE);
    // M stays at the linearisation point, not at the mode.
    let posterior =
        ExactPosterior::around_mode(phi.as_ref(), &mode.weights, &noise, &[0.5; 3], ExactOptions::default())
            .unwrap();
    assert_near(mackay(posterior.effective_dimension(), norm), 1.9026023104, TOLERANCE);
    assert_near(posterior.laplace_evidence(&mode.weights, 0.0).unwrap(), -2.0083756464, TOLERANCE);
}
