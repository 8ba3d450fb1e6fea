//! The density against 17 digits, its limits, sums over all counts, simulation, and expectations against brute force.

use super::*;
use crate::expectation::tests::expect;
use crate::{Poisson, Prediction};
use posterior_linalg::random::Streams;
use posterior_optim::check::{assert_close, gradient};
use statrs::distribution::{Discrete, NegativeBinomial as Reference};

fn of(dispersion: f64) -> NegativeBinomial {
    NegativeBinomial::new(dispersion).unwrap()
}

/// `(y, f, r, log p, d log p / dr)`, computed with 60 digits and more.
const REFERENCE: [(f64, f64, f64, f64, f64); 20] = [
    (0.0, 0.3, 2.5, -1.0793643559904287, -0.08112020648829274),
    (3.0, 0.3, 2.5, -2.342102150883666, 0.04756694453766967),
    (0.0, 30.0, 1e-8, -4.842068074395237e-07, -47.42068074395237),
    (1.0, -30.0, 1e-8, -30.00000935757928, 935.7535404551503),
    (7.0, 2.0, 1e-8, -20.366591082187956, 99999982.08197226),
    (1e6, 14.0, 1e-8, -32.23619149051148, 99999982.14051624),
    (0.0, -3.0, 1e15, -0.049787068367863944, -1.2393760883331791e-33),
    (4.0, 1.2, 1e15, -1.698170753084495, 1.7688795006253834e-30),
    (1000.0, 6.9, 1e15, -4.402894093189693, 4.701599905079469e-28),
    (1e13, 29.93, 1e15, -64304139.649788134, -6.351612182521291e-10),
    (1e13, 29.93, 0.7, -31.144150473347732, 0.8633420995644004),
    (1e13, 29.93, 1e6, -30.454983695731215, -6.0101934133325775e-06),
    (25.0, 30.0, 4.0, -106.36044411055833, -25.51986793325016),
    (1e13, -30.0, 4.0, -313862943611111.1, -2499999999971.264),
    (5.0, 700.0, 0.3, -212.60484550983122, -695.131037650501),
    (5.0, 1e4, 0.3, -3002.604845509831, -9995.1310376505),
    (5.0, -1e4, 0.3, -49996.2237896469, -11.593731512841726),
    (2.0, 0.5, 1e300, -1.3418684512600736, 0.0),
    (2.0, 0.5, 1e-300, -691.4686750787737, 1e300),
    (120.0, 4.8, 1e4, -3.3286571800054934, 5.817693451115731e-07),
];

#[test]
fn the_density_and_its_slope_in_the_dispersion_in_all_regimes() {
    for (y, f, r, value, slope) in REFERENCE {
        let count = Count::new(y, r);
        assert_close(&[count.log_density(f)], &[value], 1e-13, 1e-13);
        // Terms of the size of y/r cancel to the size of (y/r)²; counts of 1e13 are known to 1e-16 of themselves.
        let rounding = 1e-15 * (y + f.exp().min(y + 1.0)) / r;
        let found = count.slope_constant() + count.slope(f);
        assert_close(&[found], &[slope], 1e-9, rounding);
    }
    for (r, p, y) in [(0.7, 0.2, 0u64), (3.0, 0.5, 4), (40.0, 0.9, 2), (2.5, 0.01, 300)] {
        let reference = Reference::new(r, p).unwrap().ln_pmf(y);
        let f = f64::ln(r * (1.0 - p) / p);
        assert_close(&[of(r).log_density(&[y as f64], &[f])], &[reference], 1e-12, 1e-12);
    }
}

#[test]
fn forms_of_the_density_meet_where_one_takes_over() {
    // log p is smooth in f: its slope by differences across all thresholds is the gradient.
    for r in [1e-3, 0.4, 7.0, 300.0, 1e7] {
        for y in [1.0, 3.0, 50.0, 2e4] {
            for k in -60..=60 {
                let f = f64::ln(y) + 0.01 * f64::from(k);
                let numeric = gradient(|f| Count::new(y, r).log_density(f[0]), &[f]);
                let exact = Count::new(y, r).derivatives(f).0;
                // Steps are about 1e-3 f, and higher derivatives of the size of y.
                assert_close(&[exact], &numeric, 1e-7, 1e-7 + 1e-10 * y);
            }
        }
    }
}

#[test]
fn without_overdispersion_it_is_the_poisson_likelihood() {
    let (poisson, nearly) = (Poisson::new(2).unwrap(), of(1e12).with_outputs(2));
    let (y, f, variance) = ([3.0, 0.0], [1.4, -0.7], [0.6, 1.9]);
    let each = |l: &dyn Likelihood| {
        let mut out = vec![0.0; 12];
        l.gradient(&y, &f, &mut out[..2]);
        l.curvature_entries(&y, &f, &mut out[2..4]);
        l.hessian(&y, &f, &mut out[4..8]);
        let (mean, own) = out[8..].split_at_mut(2);
        l.predictive_moments(&f, &variance, (mean, own));
        let (value, slopes) = expect(l, &y, &f, &variance);
        out.extend([l.log_density(&y, &f), l.log_predictive_density(&y, &f, &variance), value]);
        out.extend(&slopes[..4]);
        out
    };
    assert_close(&each(&nearly), &each(&poisson), 1e-10, 1e-10);
    // And nothing is left to be learned.
    assert!(expect(&nearly, &y, &f, &variance).1[4].abs() < 1e-20);
}

#[test]
fn probabilities_sum_to_one_with_the_stated_moments() {
    for (r, f) in [(0.3, 0.5), (2.0, 2.0), (50.0, 3.0)] {
        let likelihood = of(r);
        let (mut mean, mut variance, mut curvature) = ([0.0], [0.0], [0.0]);
        likelihood.moments(&[f], &mut mean, &mut variance);
        likelihood.curvature(&[0.0], &[f], &mut curvature);
        let (mut sums, mut hessian) = ([0.0; 5], [0.0]);
        for y in (0..4000).map(f64::from) {
            let p = likelihood.log_density(&[y], &[f]).exp();
            likelihood.hessian(&[y], &[f], &mut hessian);
            let count = Count::new(y, r);
            let score = count.slope_constant() + count.slope(f);
            for (sum, value) in sums.iter_mut().zip([1.0, y, (y - mean[0]).powi(2), hessian[0], score]) {
                *sum += p * value;
            }
        }
        assert_close(&sums, &[1.0, mean[0], variance[0], curvature[0], 0.0], 1e-11, 1e-12);
        assert_close(&variance, &[mean[0] + mean[0] * mean[0] / r], 1e-15, 0.0);
    }
}

#[test]
fn draws_have_the_stated_moments() {
    let mut rng = Streams::new(2).stream("likelihoods/negative_binomial");
    let (count, mut y) = (100_000, [0.0]);
    for (r, f) in [(0.3, 0.5f64), (8.0, 2.0)] {
        let mu = f.exp();
        let variance = mu + mu * mu / r;
        // The fourth cumulant is (1 + 6 (1 + μ/r) μ/r) of the variance.
        let fourth = 3.0 * variance * variance + variance * (1.0 + 6.0 * mu / r * (1.0 + mu / r));
        let (mut first, mut second) = (0.0, 0.0);
        for _ in 0..count {
            of(r).sample(&[f], &mut rng, &mut y);
            first += (y[0] - mu) / f64::from(count);
            second += (y[0] - mu).powi(2) / f64::from(count);
        }
        let n = f64::from(count);
        assert!(first.abs() < 5.0 * (variance / n).sqrt(), "{first}");
        assert!((second - variance).abs() < 5.0 * ((fourth - variance * variance) / n).sqrt(), "{second}");
    }
    for (r, f) in [(1e-300, 0.0), (1e300, 2.0), (2.0, -800.0), (1e-8, 30.0), (1e3, 44.0)] {
        of(r).sample(&[f], &mut rng, &mut y);
        assert!(y[0] >= 0.0 && y[0].is_finite() && y[0].fract() == 0.0, "{r} {f}: {}", y[0]);
    }
    of(2.0).sample(&[f64::NAN], &mut rng, &mut y);
    assert!(y[0].is_nan());
}

/// Sums on a fine grid that reaches to where the Gaussian times `exp(f)` is negligible.
fn brute(y: f64, r: f64, mean: f64, variance: f64) -> f64 {
    let deviation = variance.sqrt();
    let step = f64::min(0.05, 0.02 / deviation);
    let count = Count::new(y, r);
    let nodes = ((24.0 + 2.0 * deviation) / step) as i64;
    (0..nodes)
        .map(|k| step * k as f64 - 12.0)
        .map(|x| {
            let weight = step * (-0.5 * x * x).exp() / (2.0 * PI).sqrt();
            weight * count.log_density(mean + deviation * x)
        })
        .sum()
}

#[test]
fn expectations_agree_with_brute_force_in_all_regimes() {
    for (y, r) in [(0.0, 0.2), (4.0, 3.0), (1000.0, 40.0), (2.0, 1e9)] {
        for (mean, variance) in [(0.3, 1e-6), (-2.0, 0.5), (6.0, 4.0), (-8.0, 16.0), (1.0, 100.0)] {
            let (found, slopes) = expect(&of(r), &[y], &[mean], &[variance]);
            assert_close(&[found], &[brute(y, r, mean, variance)], 1e-11, 1e-11);
            if variance > 1e-3 {
                let numeric =
                    gradient(|p| expect(&of(p[2]), &[y], &p[..1], &p[1..2]).0, &[mean, variance, r]);
                // The slope in a dispersion of 1e9 is lost in the rounding of differences of the value.
                assert_close(&slopes[..2], &numeric[..2], 1e-6, 1e-7);
                assert_close(&slopes[2..], &numeric[2..], 1e-6, 1e-7 + 1e-12 * found.abs() / r);
            }
        }
    }
    assert!(expect(&of(2.0), &[1.0], &[f64::NAN], &[1.0]).0.is_nan());
    assert!(expect(&of(2.0), &[1.0], &[0.0], &[f64::NAN]).0.is_nan());
    assert_close(
        &[expect(&of(2.0), &[1.0], &[0.4], &[-1e-18]).0],
        &[of(2.0).log_density(&[1.0], &[0.4])],
        1e-13,
        0.0,
    );
}

#[test]
fn predictions_are_moments_of_a_log_normal_mean() {
    let (likelihood, mean, variance) = (of(1.7).with_outputs(2), [0.4, -1.0], [0.5, 1.2]);
    let Prediction::Moments { mean: m, variance: v, .. } = likelihood.predict(&mean, &variance) else {
        panic!("counts have moments")
    };
    for i in 0..2 {
        let average = |g: &dyn Fn(f64) -> f64| -> f64 {
            nodes_reaching(mean[i], variance[i], 0.1, mean[i] + 2.0 * variance[i])
                .map(|(f, w)| w * g(f))
                .sum()
        };
        let first = average(&f64::exp);
        // Given f the second moment is μ + μ²/r + μ².
        let second = average(&|f| f.exp() + f64::exp(2.0 * f) * (1.0 + 1.0 / 1.7));
        assert_close(&[m[i], v[i]], &[first, second - first * first], 1e-12, 0.0);
    }
}

#[test]
fn the_dispersion_is_learned_and_written() {
    let mut likelihood = of(0.4).with_outputs(3);
    let segments = likelihood.segments();
    assert_eq!((segments[0].name.as_str(), segments[0].transform), ("dispersion", Transform::Log));
    likelihood.set_values(&[2.5]);
    assert_eq!((likelihood.values(), likelihood.dispersion(), likelihood.outputs()), (vec![2.5], 2.5, 3));
    for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let error = NegativeBinomial::new(bad).unwrap_err().to_string();
        assert!(error.contains("negative_binomial: dispersion is") && error.contains("poisson"), "{error}");
    }
    // Counts of known dispersion have their most likely dispersion near it.
    let mut rng = Streams::new(5).stream("likelihoods/negative_binomial");
    let (truth, f, mut y) = (of(3.0), 1.5, [0.0]);
    let counts: Vec<f64> = (0..20_000)
        .map(|_| {
            truth.sample(&[f], &mut rng, &mut y);
            y[0]
        })
        .collect();
    let slope = |r: f64| -> f64 { counts.iter().map(|&y| expect(&of(r), &[y], &[f], &[0.0]).1[2]).sum() };
    assert!(slope(2.7) > 0.0 && slope(3.3) < 0.0, "{} {}", slope(2.7), slope(3.3));
}
