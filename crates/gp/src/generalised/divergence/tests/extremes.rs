//! What comes out of single points at the ends of the numbers, and of no normals at all.

use super::{all, normal};
use crate::generalised::divergence::{Divergence, DivergenceError, Normals, Slopes};

fn at(divergence: Divergence, delta: f64, prior: f64, posterior: f64) -> Slopes {
    divergence.between(normal((0.0, prior)), normal((delta, posterior)))
}

#[test]
fn no_value_or_slope_is_lost_between_the_ends_of_the_numbers() {
    let variances =
        [f64::MIN_POSITIVE, 1e-300, 1e-160, 1e-100, 1e-8, 1.0, 1.0 + f64::EPSILON, 1e8, 1e100, 1e160, 1e300];
    for divergence in all() {
        for prior in variances {
            for posterior in variances {
                for delta in [0.0, 1e-300, -1e-160, 1e-80, 1.0, -1e80, 1e160, 1e300] {
                    let found = at(divergence, delta, prior, posterior);
                    let name = format!("{divergence} at {delta:e}, {prior:e}, {posterior:e}: {found:?}");
                    assert!(found.value >= 0.0, "{name}");
                    assert!(!found.mean.is_nan() && !found.variance.is_nan(), "{name}");
                    assert!(
                        found.value < f64::INFINITY || (found.mean, found.variance) == (0.0, 0.0),
                        "{name}"
                    );
                    assert!(found.mean * delta >= 0.0, "{name}");
                }
            }
        }
    }
    // What is finite there, is right there.
    let (tiny, huge) = (1e-300, 1e300);
    let decades = 600.0 * 10f64.ln();
    let bhattacharyya = at(Divergence::Bhattacharyya, 0.0, huge, tiny);
    assert!((bhattacharyya.value - (0.25 * decades - 0.5 * 2f64.ln())).abs() < 1e-12 * decades);
    assert!((bhattacharyya.variance * tiny + 0.25).abs() < 1e-15);
    assert_eq!(at(Divergence::Hellinger, 0.0, huge, tiny).value, 1.0);
    assert!((at(Divergence::Wasserstein, 0.0, huge, tiny).value / huge - 1.0).abs() < 1e-15);
    let symmetric = at(Divergence::SymmetricKullbackLeibler, 0.0, huge, tiny).value;
    assert!((symmetric / huge - 0.5f64.sqrt()).abs() < 1e-15);
    let forward = "kullback-leibler=posterior-to-prior".parse().unwrap();
    assert!((at(forward, 0.0, huge, tiny).value - 0.5 * (decades - 1.0)).abs() < 1e-12 * decades);
    // What overflows is infinite; the Rényi divergence does not.
    assert_eq!(at(forward, 0.0, tiny, huge).value, f64::INFINITY);
    for (prior, posterior) in [(tiny, huge), (huge, tiny)] {
        for order in [0.3, 0.5, 0.8] {
            let found = at(Divergence::Renyi { order }, 0.0, prior, posterior).value;
            // Of H only the larger variance is left, with its weight.
            let weight: f64 = if prior > posterior { order } else { 1.0 - order };
            let expected = 0.5 * ((1.0 - weight) * decades + weight.ln()) / (1.0 - order);
            assert!((found / expected - 1.0).abs() < 1e-13, "{order}: {found}, {expected}");
        }
    }
}

#[test]
fn variances_of_zero_are_at_the_largest_value() {
    for divergence in all() {
        for (prior, posterior) in
            [(0.0, 1.0), (1.0, 0.0), (0.0, 0.0), (5e-324, 1.0), (1.0, 1e-310), (-0.0, 1.0)]
        {
            let found = at(divergence, 0.5, prior, posterior);
            let name = format!("{divergence} at {prior:e}, {posterior:e}: {found:?}");
            match divergence {
                Divergence::Wasserstein => {
                    assert!(
                        (found.value - (0.25 + (prior.sqrt() - posterior.sqrt()).powi(2))).abs() < 1e-15,
                        "{name}"
                    );
                    assert_eq!(found.mean, 1.0);
                    let expected = match (prior == 0.0, posterior == 0.0) {
                        (true, _) => 1.0,
                        (false, true) => f64::NEG_INFINITY,
                        _ => 1.0 - prior.sqrt() / posterior.sqrt(),
                    };
                    assert!(
                        found.variance == expected || (found.variance / expected - 1.0).abs() < 1e-14,
                        "{name}"
                    );
                }
                Divergence::SquaredDifference => {
                    let expected = Slopes {
                        value: 0.25 + (posterior - prior).powi(2),
                        mean: 1.0,
                        variance: 2.0 * (posterior - prior),
                    };
                    assert_eq!(found, expected, "{name}");
                }
                _ => {
                    let value = if divergence == Divergence::Hellinger { 1.0 } else { f64::INFINITY };
                    assert_eq!(found, Slopes { value, mean: 0.0, variance: 0.0 }, "{name}");
                }
            }
        }
    }
}

#[test]
fn what_is_no_normal_has_no_divergence() {
    for divergence in all() {
        for (delta, prior, posterior) in [
            (0.0, -1.0, 1.0),
            (0.0, 1.0, -1e-300),
            (0.0, f64::NAN, 1.0),
            (0.0, 1.0, f64::NAN),
            (f64::NAN, 1.0, 1.0),
            (f64::INFINITY, 1.0, 1.0),
            (0.0, f64::INFINITY, 1.0),
            (0.0, 1.0, f64::INFINITY),
            (0.0, -2.0, -2.0),
        ] {
            let found = at(divergence, delta, prior, posterior);
            let all = found.value.is_nan() && found.mean.is_nan() && found.variance.is_nan();
            assert!(all, "{divergence} at {delta}, {prior}, {posterior}: {found:?}");
        }
    }
}

#[test]
fn one_bad_row_spoils_the_average_but_no_other_slopes() {
    let (means, mut variances) = (vec![0.3; 70], vec![0.7; 70]);
    let (prior_means, prior_variances) = (vec![0.0; 70], vec![1.0; 70]);
    let prior = Normals { means: &prior_means, variances: &prior_variances };
    let (mut of_means, mut of_variances) = (vec![9.0; 70], vec![9.0; 70]);
    let divergence = Divergence::Renyi { order: 1.5 };
    let mut average = |variances: &[f64]| {
        let posterior = Normals { means: &means, variances };
        let value = divergence.mean_over(prior, posterior, &mut of_means, &mut of_variances).unwrap();
        (value, of_means.clone(), of_variances.clone())
    };
    let good = average(&variances);
    variances[65] = 4.0;
    let beyond = average(&variances);
    assert_eq!((beyond.0, beyond.1[65], beyond.2[65]), (f64::INFINITY, 0.0, 0.0));
    variances[65] = -1.0;
    let negative = average(&variances);
    assert!(negative.0.is_nan() && negative.1[65].is_nan() && negative.2[65].is_nan());
    for i in (0..70).filter(|i| *i != 65) {
        assert_eq!((good.1[i], good.2[i]), (beyond.1[i], beyond.2[i]));
        assert_eq!((good.1[i], good.2[i]), (negative.1[i], negative.2[i]));
    }
}

#[test]
fn averages_refuse_what_does_not_fit() {
    let (one, two) = ([1.0], [1.0, 1.0]);
    let (short, long) = (Normals { means: &one, variances: &one }, Normals { means: &two, variances: &two });
    let mixed = Normals { means: &two, variances: &one };
    let none = Normals { means: &[], variances: &[] };
    let average = |divergence: Divergence, prior, posterior, a: usize, b: usize| {
        divergence.mean_over(prior, posterior, &mut vec![0.0; a], &mut vec![0.0; b])
    };
    let hellinger = Divergence::Hellinger;
    for (prior, posterior, a, b) in [
        (short, long, 2, 2),
        (long, short, 1, 1),
        (long, mixed, 2, 2),
        (mixed, long, 2, 2),
        (long, long, 1, 2),
        (long, long, 2, 3),
    ] {
        assert!(matches!(average(hellinger, prior, posterior, a, b), Err(DivergenceError::Shape { .. })));
    }
    assert!(matches!(average(hellinger, none, none, 0, 0), Err(DivergenceError::Empty { .. })));
    let renyi = Divergence::Renyi { order: 1.0 };
    assert!(matches!(average(renyi, long, long, 2, 2), Err(DivergenceError::Order { .. })));
}
