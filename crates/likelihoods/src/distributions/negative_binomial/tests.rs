//! Against sums, differences, the Poisson distribution, and draws.

use super::*;
use crate::Poisson;
use posterior_linalg::random::Streams;
use posterior_optim::Parameters;

fn near(a: f64, b: f64, tolerance: f64, what: &str) {
    assert!((a - b).abs() <= tolerance * (1.0 + b.abs()), "{what}: {a} {b}");
}

#[test]
fn densities_sum_to_one_with_their_mean_and_variance() {
    for (r, f) in [(0.3, 0.5), (2.0, 1.0), (50.0, -0.7)] {
        let likelihood = NegativeBinomial::new(r).unwrap();
        let (mut total, mut mean, mut square) = (0.0, 0.0, 0.0);
        for y in 0..4000 {
            let y = f64::from(y);
            let p = likelihood.log_density(&[y], &[f]).exp();
            total += p;
            mean += p * y;
            square += p * y * y;
        }
        let m = f64::exp(f);
        near(total, 1.0, 1e-11, "total");
        near(mean, m, 1e-10, "mean");
        near(square - mean * mean, m + m * m / r, 1e-9, "variance");
        let (mut own, mut variance) = ([0.0], [0.0]);
        likelihood.moments(&[f], &mut own, &mut variance);
        near(own[0], m, 1e-14, "moments");
        near(variance[0], m + m * m / r, 1e-14, "moments");
    }
}

#[test]
fn slopes_are_differences_and_curvatures_are_positive() {
    let step = 1e-5;
    for r in [0.2, 1.5, 40.0] {
        let likelihood = NegativeBinomial::new(r).unwrap();
        for y in [0.0, 1.0, 7.0, 300.0] {
            for f in [-3.0, 0.4, 4.0] {
                let at = |f: f64| likelihood.log_density(&[y], &[f]);
                let (mut gradient, mut hessian, mut fisher) = ([0.0], [0.0], [0.0]);
                likelihood.gradient(&[y], &[f], &mut gradient);
                likelihood.hessian(&[y], &[f], &mut hessian);
                likelihood.curvature(&[y], &[f], &mut fisher);
                near(gradient[0], (at(f + step) - at(f - step)) / (2.0 * step), 1e-6, "gradient");
                let slope = |f: f64| {
                    let mut out = [0.0];
                    likelihood.gradient(&[y], &[f], &mut out);
                    out[0]
                };
                near(hessian[0], (slope(f - step) - slope(f + step)) / (2.0 * step), 1e-6, "hessian");
                assert!(hessian[0] > 0.0 && fisher[0] > 0.0);
                let m = f.exp();
                near(fisher[0], m * r / (m + r), 1e-12, "Fisher's matrix");
            }
        }
    }
}

#[test]
fn without_overdispersion_it_is_poisson() {
    let (limit, poisson) = (NegativeBinomial::new(1e12).unwrap(), Poisson::new(1).unwrap());
    for y in [0.0, 3.0, 40.0] {
        for f in [-2.0, 1.0, 3.5] {
            near(limit.log_density(&[y], &[f]), poisson.log_density(&[y], &[f]), 1e-9, "density");
            let (own, other) = (
                limit.log_predictive_density(&[y], &[f], &[0.3]),
                poisson.log_predictive_density(&[y], &[f], &[0.3]),
            );
            near(own, other, 1e-8, "predictive density");
        }
    }
}

#[test]
fn expectations_have_the_slopes_of_differences() {
    for r in [0.5, 3.0] {
        let mut likelihood = NegativeBinomial::new(r).unwrap();
        for y in [0.0, 5.0] {
            let value = |likelihood: &NegativeBinomial, m: f64, v: f64| {
                let (mut a, mut b, mut c) = ([0.0], [0.0], vec![0.0; 1]);
                let slopes = Slopes { means: &mut a, variances: &mut b, parameters: &mut c };
                (likelihood.expected_log_density(&[y], &[m], &[v], slopes), a[0], b[0], c[0])
            };
            let (m, v, h) = (0.6, 0.8, 1e-5);
            let (_, of_mean, of_variance, of_dispersion) = value(&likelihood, m, v);
            let difference = |up: f64, down: f64| (up - down) / (2.0 * h);
            near(
                of_mean,
                difference(value(&likelihood, m + h, v).0, value(&likelihood, m - h, v).0),
                1e-6,
                "mean",
            );
            near(
                of_variance,
                difference(value(&likelihood, m, v + h).0, value(&likelihood, m, v - h).0),
                1e-6,
                "variance",
            );
            likelihood.set_values(&[r + h]);
            let up = value(&likelihood, m, v).0;
            likelihood.set_values(&[r - h]);
            let down = value(&likelihood, m, v).0;
            likelihood.set_values(&[r]);
            near(of_dispersion, difference(up, down), 1e-6, "dispersion");
        }
    }
}

#[test]
fn draws_scatter_as_they_should_and_bad_input_is_named() {
    let likelihood = NegativeBinomial::new(0.8).unwrap();
    let mut rng = Streams::new(3).stream("counts");
    let n = 40_000;
    let draws: Vec<f64> = (0..n)
        .map(|_| {
            let mut out = [0.0];
            likelihood.sample(&[1.2], &mut rng, &mut out);
            out[0]
        })
        .collect();
    let m = 1.2f64.exp();
    let variance = m + m * m / 0.8;
    let mean = draws.iter().sum::<f64>() / f64::from(n);
    assert!((mean - m).abs() < 5.0 * (variance / f64::from(n)).sqrt(), "{mean} {m}");
    assert!(draws.iter().all(|y| likelihood.check_target(&[*y]).is_ok()));
    assert!(NegativeBinomial::new(0.0).is_err() && NegativeBinomial::new(f64::NAN).is_err());
    for y in [-1.0, 0.5, f64::NAN, f64::INFINITY] {
        assert!(likelihood.check_target(&[y]).is_err(), "{y}");
    }
}
