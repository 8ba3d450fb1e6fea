use super::{PIXELS, SIDE, Small, wave};
use crate::linearised::roughness::neighbours;
use crate::linearised::*;
use crate::total_variation::TotalVariation;
use std::f64::consts::PI;

fn at(blocks: usize, log_lengthscale: f64) -> FilterHyperparameters {
    FilterHyperparameters {
        log_variances: (0..blocks).map(|k| 0.3 * wave(k + 2)).collect(),
        log_lengthscales: vec![log_lengthscale; blocks],
    }
}

#[test]
fn expected_total_variation_is_that_of_normal_differences_and_its_derivatives_are_finite_differences() {
    let small = Small::new(false);
    let jacobian = small.jacobian();
    let terms = RoughnessTerms::new(&small.weights, &[SIDE, SIDE], jacobian.as_ref());
    let h = 1e-4;
    for (k, block) in small.weights.blocks().iter().enumerate() {
        let hyperparameters = at(5, 0.4);
        let Some(found) = terms.of_block(k, &hyperparameters) else {
            assert_eq!(block.positions(), 1);
            continue;
        };
        // The mean of |z| is sqrt(2 / pi) times the deviation; the variance of a difference from the block's covariance of pictures.
        let mut only = hyperparameters.clone();
        (0..5).filter(|j| *j != k).for_each(|j| only.log_variances[j] = -700.0);
        let kernel = DistanceGrams::new(&small.weights, jacobian.as_ref()).kernel(&only);
        let expected: f64 = neighbours(&[SIDE, SIDE])
            .iter()
            .map(|(i, j)| (kernel[(*i, *i)] + kernel[(*j, *j)] - 2.0 * kernel[(*i, *j)]).max(0.0).sqrt())
            .sum::<f64>()
            * (2.0 / PI).sqrt();
        assert!((found.value - expected).abs() < 1e-6 * expected, "{} {expected}", found.value);
        let value = |step: f64| terms.of_block(k, &at(5, 0.4 + step)).unwrap().value;
        let slope = (value(h) - value(-h)) / (2.0 * h);
        let bend = (value(h) - 2.0 * value(0.0) + value(-h)) / (h * h);
        assert!((slope - found.slope).abs() < 1e-5 * slope.abs().max(expected), "{slope} {}", found.slope);
        assert!((bend - found.bend).abs() < 1e-4 * bend.abs().max(expected), "{bend} {}", found.bend);
    }
}

#[test]
fn samples_agree_with_the_closed_form_and_the_published_second_derivative_does_not() {
    let small = Small::new(false);
    let tangent = small.tangent();
    let terms = RoughnessTerms::new(&small.weights, &[SIDE, SIDE], small.jacobian().as_ref());
    let total_variation = TotalVariation::sum(&[SIDE, SIDE]).unwrap();
    let (hyperparameters, samples) = (at(5, 0.3), 3000);
    let sampled = |bend| SampledRoughness {
        tangent: &tangent,
        weights: &small.weights,
        total_variation: &total_variation,
        samples,
        bend,
        around: None,
    };
    for k in [0, 1, 3] {
        let exact = terms.of_block(k, &hyperparameters).unwrap();
        let of = |bend| sampled(bend).of_block(k, &hyperparameters, 1).unwrap().unwrap();
        let (fair, published) = (of(BendEstimate::Differences { step: 0.1 }), of(BendEstimate::Published));
        // TV scatters by less than itself from picture to picture, and so do its derivatives.
        let tolerance = 4.0 * exact.value / (samples as f64).sqrt();
        assert!((fair.value - exact.value).abs() < tolerance);
        assert!((fair.slope - exact.slope).abs() < tolerance, "{} {}", fair.slope, exact.slope);
        assert_eq!((fair.value, fair.slope), (published.value, published.slope));
        // The difference quotient has an error of its own: a sixth of the step's square times a third derivative of the order of kappa.
        assert!((fair.bend - exact.bend).abs() < 2.0 * tolerance / 0.1, "{} {}", fair.bend, exact.bend);
        let missing = exact.bend - published.bend;
        assert!(
            missing > tolerance,
            "block {k}: {} against {}, less by {missing}",
            published.bend,
            exact.bend
        );
    }
    assert!(sampled(BendEstimate::Published).of_block(2, &hyperparameters, 1).unwrap().is_none());
    assert_eq!(total_variation.pixels(), PIXELS);
}
