//! Against dense kernels and finite differences.

use super::*;
use crate::measured::ObservedPrior;
use crate::test_problem::{detectors, normal, projector};
use faer::Mat;
use posterior_linalg::cholesky::JitterPolicy;
use posterior_linalg::operator::{Dense, LinearOperator};
use posterior_linalg::random::Streams;
use posterior_optim::{LoopOptions, Objective, Signal, check};

fn matern(height: usize, width: usize, lengthscale: f64) -> Matern {
    Matern { height, width, lengthscale, variance: 1.7 }
}

#[test]
fn the_root_of_a_scaled_identity() {
    let root = Isotropic::new(5, 4.0).unwrap();
    assert_eq!(root.to_dense(), Mat::<f64>::identity(5, 5) * faer::Scale(2.0));
    assert!(Isotropic::new(5, 0.0).is_err());
}

#[test]
fn products_on_the_torus_are_those_of_the_dense_kernel() {
    for (height, width) in [(1, 1), (1, 9), (7, 5), (6, 11)] {
        for lengthscale in [0.4, 3.0, 50.0] {
            let prior = matern(height, width, lengthscale);
            let dense = prior.dense();
            let product = prior.product().unwrap();
            assert!((product.to_dense() - &dense).norm_max() < 1e-12);
            let slope =
                Mat::from_fn(dense.nrows(), dense.nrows(), |a, b| dense[(a, b)] * (1.7 / dense[(a, b)]).ln());
            assert!((prior.slope().unwrap().to_dense() - slope).norm_max() < 1e-12);
        }
    }
}

/// Where nothing is clipped, `F Fᵀ = K`; elsewhere no entry is further off than what was reported. Both products are transposes of one another.
#[test]
fn the_root_is_a_root() {
    let mut exact = 0;
    for (height, width) in [(1, 9), (7, 5), (6, 11)] {
        for lengthscale in [0.4, 2.0, 5.0, 60.0] {
            let prior = matern(height, width, lengthscale);
            let root = prior.root(4.0).unwrap();
            let (f, report) = (root.to_dense(), root.embedding());
            let error = (&f * f.transpose() - prior.dense()).norm_max();
            println!("{height} x {width}, {lengthscale}: {report:?} {error:.1e}");
            assert!(error <= report.clipped_share * 1.7 + 1e-11, "{report:?} {error:.1e}");
            exact += usize::from(report.clipped == 0);
            let pixels = height * width;
            let transposed = root.multiply_transpose(Mat::identity(pixels, pixels).as_ref());
            assert!((transposed - f.transpose()).norm_max() < 1e-13);
        }
    }
    assert!(exact >= 9, "{exact} of 12 roots are exact");
    // Where the smallest torus has negative eigenvalues, they are clipped, said, and gone on a larger one.
    let prior = matern(12, 12, 8.0);
    let (tight, wide) = (prior.root(1.0).unwrap(), prior.root(8.0).unwrap());
    println!("{:?} {:?}", tight.embedding(), wide.embedding());
    assert!(tight.embedding().clipped > 0 && wide.embedding().clipped == 0);
    assert!(tight.embedding().clipped_share > 0.0 && wide.embedding().rows > tight.embedding().rows);
}

#[test]
fn settings_out_of_range_are_said() {
    for prior in [matern(3, 3, 0.0), matern(3, 3, f64::NAN), Matern { variance: -1.0, ..matern(3, 3, 1.0) }] {
        assert!(matches!(prior.root(2.0), Err(PriorError::Setting { .. })));
    }
    let operator = Dense::new(Mat::<f64>::zeros(2, 9));
    assert!(PilotEvidence::new(&operator, &[0.0; 3], (3, 3), NoiseModel::Fitted).is_err());
    assert!(PilotEvidence::new(&operator, &[0.0; 2], (3, 3), NoiseModel::Ratio(0.0)).is_err());
}

#[test]
fn evidence_and_gradient() {
    let (height, width) = (6, 5);
    let operator = Dense::new(projector(height, width, detectors(height, width), 3));
    let measurements: Vec<f64> = (0..operator.shape().0).map(|i| (0.9 * i as f64).sin() * 2.0).collect();
    for noise in [NoiseModel::Given(0.2), NoiseModel::Ratio(0.05), NoiseModel::Fitted] {
        let mut evidence = PilotEvidence::new(&operator, &measurements, (height, width), noise).unwrap();
        let theta = &[1.1, -0.3, -1.2][..evidence.dimension()];
        let mut gradient = vec![0.0; theta.len()];
        let value = evidence.value_and_gradient(theta, &mut gradient).unwrap();
        let numeric =
            check::gradient(|at| evidence.value_and_gradient(at, &mut vec![0.0; at.len()]).unwrap(), theta);
        check::assert_close(&gradient, &numeric, 1e-7, 1e-7);
        // The lengthscale is exponentiated once: the value is that of the dense prior.
        let noise = [0.2, 0.05 * (-0.3f64).exp(), (-1.2f64).exp()][match noise {
            NoiseModel::Given(_) => 0,
            NoiseModel::Ratio(_) => 1,
            NoiseModel::Fitted => 2,
        }];
        let prior = Matern { height, width, lengthscale: 1.1f64.exp(), variance: (-0.3f64).exp() };
        let root = posterior_linalg::cholesky::Cholesky::of(prior.dense().as_ref(), JitterPolicy::NONE);
        let root = Dense::new(root.unwrap().multiply_factor(Mat::identity(30, 30).as_ref()));
        let observed = ObservedPrior::new(&root, &operator, noise).unwrap();
        let factor = observed.factor(JitterPolicy::NONE).unwrap();
        let expected = observed.log_evidence(&factor, &measurements).unwrap();
        assert!((value + expected).abs() < 1e-8 * expected.abs());
    }
}

/// Measurements of an image from the prior: the fit has at least the evidence of the truth, and ends where the gradient does.
#[test]
fn a_fit_is_no_worse_than_the_truth() {
    let (height, width) = (14, 14);
    let operator = Dense::new(projector(height, width, detectors(height, width), 6));
    let truth = Matern { height, width, lengthscale: 4.0, variance: 2.0 };
    let root = truth.root(8.0).unwrap();
    let observed = ObservedPrior::new(&root, &operator, 0.1).unwrap();
    let image = observed.prior_samples(1, Streams::new(3));
    let noise = normal(operator.shape().0, 1, 8) * faer::Scale(0.1f64.sqrt());
    let measurements = operator.multiply(image.as_ref()) + noise;
    let measurements = measurements.col_as_slice(0);
    for noise in [NoiseModel::Fitted, NoiseModel::Given(0.1), NoiseModel::Ratio(0.05)] {
        let mut evidence = PilotEvidence::new(&operator, measurements, (height, width), noise).unwrap();
        let at = [4f64.ln(), 2f64.ln(), 0.1f64.ln()];
        let dimension = evidence.dimension();
        let value = evidence.value_and_gradient(&at[..dimension], &mut vec![0.0; dimension]).unwrap();
        let fit =
            evidence.fit((2f64.exp(), 1.0, 1.0), &LoopOptions::default(), &mut |_| Signal::Continue).unwrap();
        println!("{noise:?}: {fit:?} against {value}");
        assert!(fit.log_evidence >= -value - 1e-6);
        let mut again = PilotEvidence::new(&operator, measurements, (height, width), noise).unwrap();
        let theta = [fit.prior.lengthscale.ln(), fit.prior.variance.ln(), fit.noise_variance.ln()];
        let mut gradient = vec![0.0; dimension];
        again.value_and_gradient(&theta[..dimension], &mut gradient).unwrap();
        assert!(gradient.iter().all(|g| g.abs() < 1e-2), "{gradient:?}");
        if let NoiseModel::Ratio(ratio) = noise {
            assert!((fit.noise_variance / fit.prior.variance - ratio).abs() < 1e-12);
        }
    }
}
