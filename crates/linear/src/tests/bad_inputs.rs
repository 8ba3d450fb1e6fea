//! What exact posteriors, features and curvatures refuse.

use super::{normal, normals};
use crate::exact::{ExactOptions, ExactPosterior, Form};
use crate::features::DenseFeatures;
use crate::hyperparameters::RootCurvature;
use crate::{LinearError, Noise, Prior};
use faer::Mat;
use posterior_linalg::random::Streams;

#[test]
fn exact_posteriors() {
    let noise = Noise::uniform(1.0, 2).unwrap();
    let (phi, y, a) = (normal(6, 3, "phi"), normals(6, "y"), vec![1.0; 3]);
    let new = |phi: &Mat<f64>, y: &[f64], a: &[f64]| {
        let result = ExactPosterior::new(phi.as_ref(), y, &noise, a, ExactOptions::default());
        result.map(|p| p.mean().len())
    };
    assert_eq!(new(&phi, &y, &a).unwrap(), 3);
    assert!(matches!(new(&phi, &y[..5], &a), Err(LinearError::Shape { what: "targets", .. })));
    assert!(matches!(new(&phi, &y, &a[..2]), Err(LinearError::Shape { .. })));
    assert!(matches!(new(&normal(5, 3, "phi"), &y[..5], &a), Err(LinearError::Shape { .. })));
    assert!(matches!(new(&Mat::zeros(6, 0), &y, &[]), Err(LinearError::Empty { .. })));
    for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let result = new(&phi, &y, &[1.0, bad, 1.0]);
        assert!(matches!(result, Err(LinearError::NotPositive { index: 1, .. })), "{bad}: {result:?}");
    }
    for bad in [f64::NAN, f64::INFINITY] {
        let (mut features, mut targets) = (phi.clone(), y.clone());
        features[(4, 1)] = bad;
        targets[2] = bad;
        let result = new(&features, &y, &a);
        assert!(matches!(result, Err(LinearError::NotFinite { index: 13, .. })), "{result:?}");
        assert!(matches!(new(&phi, &targets, &a), Err(LinearError::NotFinite { index: 2, .. })));
    }
    // Finite, but its square is not.
    let mut features = phi.clone();
    features[(4, 1)] = 1e200;
    for form in [Form::Primal, Form::Dual] {
        let options = ExactOptions { form: Some(form), ..Default::default() };
        assert!(ExactPosterior::new(features.as_ref(), &y, &noise, &a, options).is_err());
        let tight = ExactOptions { memory_limit: 8 * 8, ..options };
        let result = ExactPosterior::new(phi.as_ref(), &y, &noise, &a, tight);
        assert!(matches!(result, Err(LinearError::TooLarge { .. })), "{form:?}");
    }
    let blocks = Noise::from_blocks(2, &[1.0; 8]).unwrap();
    let result = ExactPosterior::new(phi.as_ref(), &y, &blocks, &a, ExactOptions::default());
    assert!(matches!(result, Err(LinearError::Shape { expected: 3, found: 2, .. })));
    let posterior = ExactPosterior::new(phi.as_ref(), &y, &noise, &a, ExactOptions::default()).unwrap();
    assert!(posterior.predict(normal(2, 4, "t").as_ref()).is_err());
    assert!(posterior.joint(normal(3, 3, "t").as_ref()).is_err());
    assert!(posterior.solve(normal(2, 1, "t").as_ref()).is_err());
    assert!(posterior.laplace_evidence(&[1.0; 2], 0.0).is_err());
    assert!(posterior.laplace_evidence(&[f64::NAN; 3], 0.0).is_err());
    assert!(posterior.group_dimensions(&Prior::scalar(2, 1.0).unwrap()).is_err());
    let mut rng = Streams::new(0).stream("x");
    assert!(matches!(posterior.samples(usize::MAX, &mut rng), Err(LinearError::TooLarge { .. })));
    let (z, e) = (normal(3, 2, "z"), normal(6, 1, "e"));
    assert!(posterior.pathwise(phi.as_ref(), &noise, z.as_ref(), e.as_ref()).is_err());
    assert!(posterior.pathwise(phi.as_ref(), &blocks, z.as_ref(), normal(6, 2, "e").as_ref()).is_err());
    let none = ExactPosterior::around_mode(phi.as_ref(), &[f64::NAN; 3], &noise, &a, ExactOptions::default());
    assert!(matches!(none, Err(LinearError::NotFinite { .. })));
}

#[test]
fn features_and_curvatures() {
    assert!(matches!(DenseFeatures::new(Mat::zeros(4, 0), 2), Err(LinearError::Empty { .. })));
    assert!(matches!(DenseFeatures::new(Mat::zeros(4, 1), 0), Err(LinearError::Empty { .. })));
    assert!(matches!(DenseFeatures::new(Mat::zeros(5, 1), 2), Err(LinearError::Shape { .. })));
    let nan = Mat::from_fn(2, 1, |_, _| f64::NAN);
    assert!(matches!(DenseFeatures::new(nan.clone(), 2), Err(LinearError::NotFinite { .. })));
    let noise = Noise::uniform(1.0, 1).unwrap();
    assert!(RootCurvature::new(nan.as_ref(), &noise).is_err());
    assert!(RootCurvature::new(Mat::zeros(2, 0).as_ref(), &noise).is_err());
    let two = Noise::uniform(1.0, 2).unwrap();
    assert!(RootCurvature::new(Mat::zeros(3, 1).as_ref(), &two).is_err());
}
