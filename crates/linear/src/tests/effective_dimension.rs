//! Estimators of the effective dimension.

use super::{Problem, assert_near};
use crate::LinearError;
use crate::effective_dimension::{
    energy_ratio, prediction_space, prediction_space_variance, weight_space, weight_space_by_group,
    weight_space_variance,
};
use crate::exact::{ExactOptions, ExactPosterior};
use crate::features::{DenseFeatures, Numbered};
use crate::{Noise, Prior};
use faer::Mat;
use posterior_linalg::random::Streams;

struct Case {
    features: DenseFeatures,
    noise: Noise,
    posterior: ExactPosterior,
    prior: Prior,
    eigenvalues: Vec<f64>,
}

fn numbered(examples: usize) -> Numbered {
    Numbered::new(examples, Vec::new()).unwrap()
}

/// A problem with a scalar prior and `count` posterior samples.
fn case(examples: usize, dimension: usize, precision: f64, count: usize) -> (Case, Mat<f64>) {
    let problem = Problem::new(examples, dimension);
    let eigenvalues = problem.m().self_adjoint_eigenvalues(faer::Side::Lower).unwrap();
    let posterior = ExactPosterior::new(
        problem.phi.as_ref(),
        &problem.targets,
        &problem.noise,
        &vec![precision; dimension],
        ExactOptions::default(),
    )
    .unwrap();
    let samples = posterior.deviations(count, &mut Streams::new(2).stream("samples")).unwrap();
    let case = Case {
        features: DenseFeatures::new(problem.phi, 2).unwrap(),
        noise: problem.noise,
        posterior,
        prior: problem.prior.with_precisions(&[precision; 2]).unwrap(),
        eigenvalues: eigenvalues.into_iter().map(|l| l.max(0.0)).collect(),
    };
    (case, samples)
}

#[test]
fn both_estimators_are_unbiased_with_the_stated_variances() {
    // Few directions decided (prediction space is the better), and most of them (weight space is).
    for (examples, dimension, precision, better) in [(3, 24, 2.0, true), (30, 8, 0.5, false)] {
        let count = 20_000;
        let (case, samples) = case(examples, dimension, precision, count);
        let gamma = case.posterior.effective_dimension();
        assert_eq!(gamma < 0.5 * dimension as f64, better);
        let predictions =
            prediction_space(&case.features, &numbered(examples), &case.noise, samples.as_ref()).unwrap();
        let weights = weight_space(samples.as_ref(), &case.prior).unwrap();
        let variance = [
            prediction_space_variance(&case.eigenvalues, precision, 1),
            weight_space_variance(&case.eigenvalues, dimension, precision, 1),
        ];
        assert_eq!(variance[0] < variance[1], better);
        for (estimate, variance) in [&predictions, &weights].into_iter().zip(variance) {
            let error = (variance / count as f64).sqrt();
            assert_near(estimate.value, gamma, 4.5 * error);
            // A sample variance of chi-squared sums: relative deviation below sqrt((2 + 12) / n), an excess kurtosis of at most 12.
            let relative = (14.0 / count as f64).sqrt();
            assert_near(estimate.standard_error.unwrap() / error, 1.0, 4.5 * relative);
        }
        assert!(predictions.samples.iter().all(|&s| s >= 0.0));
        // k samples divide the variance by k.
        assert_near(prediction_space_variance(&case.eigenvalues, precision, 4), variance[0] / 4.0, 1e-12);
        let groups = weight_space_by_group(samples.as_ref(), &case.prior).unwrap();
        let expected = case.posterior.group_dimensions(&case.prior).unwrap();
        for (group, expected) in groups.iter().zip(expected) {
            assert_near(group.value, expected, 4.5 * group.standard_error.unwrap());
        }
        assert_near(groups.iter().map(|g| g.value).sum(), weights.value, 1e-9);
        let ratio = energy_ratio(&predictions, samples.as_ref(), &case.prior).unwrap();
        assert_near(ratio, 1.0, 4.5 * (2.0 / (dimension * count) as f64).sqrt());
    }
}

#[test]
fn missing_eigenvalues_count_as_zero() {
    assert_near(weight_space_variance(&[1.0], 3, 1.0, 2), 0.25 + 2.0, 1e-15);
    assert_near(weight_space_variance(&[1.0, 0.0, 0.0], 3, 1.0, 2), 0.25 + 2.0, 1e-15);
    assert_near(prediction_space_variance(&[1.0, 0.0], 1.0, 2), 0.25, 1e-15);
}

#[test]
fn the_published_demonstration_is_consistent() {
    // Spec `linearised_laplace`, section 5.3: with 8 samples and d = 2700, variances of 9.16 against 654.19 mean sum t² = 36.6 and gamma = 59.9.
    // Any spectrum with these two sums reproduces both numbers: take n directions of share t, n t = 59.9 and n t² = 36.6.
    let t: f64 = 36.64 / 59.94;
    let n = 59.94 / t;
    let per_direction = |l: f64| n * l / n.round();
    let eigenvalues = vec![t / (1.0 - t); n.round() as usize];
    assert_near(per_direction(prediction_space_variance(&eigenvalues, 1.0, 8)), 9.16, 0.005);
    let seen = weight_space_variance(&eigenvalues, eigenvalues.len(), 1.0, 8) * n / n.round();
    assert_near(seen + 2.0 / 8.0 * (2700.0 - n), 654.19, 0.02);
}

#[test]
fn estimates_are_kept_where_an_update_is_defined() {
    let (case, samples) = case(3, 6, 1.0, 1);
    let estimate = prediction_space(&case.features, &numbered(3), &case.noise, samples.as_ref()).unwrap();
    assert_eq!(estimate.standard_error, None);
    for (value, expected) in [(-3.0, (1.0, true)), (2.5, (2.5, false)), (9.0, (5.0, true))] {
        let mut moved = estimate.clone();
        moved.value = value;
        assert_eq!(moved.clamped(6), expected);
    }
    let none = Mat::<f64>::zeros(6, 0);
    assert!(matches!(weight_space(none.as_ref(), &case.prior), Err(LinearError::Empty { .. })));
    let nan = Mat::<f64>::from_fn(6, 1, |_, _| f64::NAN);
    assert!(matches!(weight_space(nan.as_ref(), &case.prior), Err(LinearError::NotFinite { .. })));
    let short = Mat::<f64>::zeros(5, 1);
    assert!(
        prediction_space(&case.features, &numbered(3), &case.noise, short.as_ref()).is_err()
            && energy_ratio(&estimate, Mat::<f64>::zeros(6, 2).as_ref(), &case.prior).is_err()
    );
}
