//! Closed forms of single points as the averages that define them, over samples; tolerances are five standard errors, as the samples themselves have them.

use super::{noise, value};
use crate::generalised::divergence::Divergence;

const SAMPLES: usize = 200_000;

/// Mean and standard error of a function of standard normal numbers.
fn average(name: &str, f: impl Fn(f64) -> f64) -> (f64, f64) {
    let noise = noise(name, SAMPLES, 1);
    let values: Vec<f64> = noise.col_as_slice(0).iter().map(|z| f(*z)).collect();
    let count = SAMPLES as f64;
    let mean = values.iter().sum::<f64>() / count;
    let variance = values.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / (count - 1.0);
    (mean, (variance / count).sqrt())
}

/// `log N(x; mean, variance)` but for the constant, which all have.
fn log_density((mean, variance): (f64, f64), x: f64) -> f64 {
    -0.5 * (variance.ln() + (x - mean) * (x - mean) / variance)
}

#[test]
fn divergences_are_the_averages_that_define_them() {
    for (index, (prior, posterior)) in
        [((0.4, 2.25), (-0.3, 0.49)), ((0.0, 1.0), (0.8, 1.3)), ((1.0, 0.3), (0.7, 0.5))]
            .into_iter()
            .enumerate()
    {
        let from = |(mean, variance): (f64, f64), z: f64| mean + variance.sqrt() * z;
        let ratio = |x: f64| log_density(posterior, x) - log_density(prior, x);
        let check = |name: &str, expected: f64, (mean, error): (f64, f64)| {
            assert!(
                (mean - expected).abs() < 5.0 * error,
                "{index}, {name}: {mean} ± {error}, not {expected}"
            );
        };
        let of = |name: &str| value(name.parse().unwrap(), prior, posterior);
        let stream = |what: &str| format!("{what}/{index}");
        check(
            "KL[P, Q]",
            of("kullback-leibler=prior-to-posterior"),
            average(&stream("p"), |z| -ratio(from(prior, z))),
        );
        check(
            "KL[Q, P]",
            of("kullback-leibler=posterior-to-prior"),
            average(&stream("q"), |z| ratio(from(posterior, z))),
        );
        let overlap = average(&stream("overlap"), |z| (0.5 * ratio(from(prior, z))).exp());
        check("Bhattacharyya", (-of("bhattacharyya")).exp(), overlap);
        check("Hellinger", of("hellinger"), (1.0 - overlap.0, overlap.1));
        // `E_P[(Q/P)^α]`; at orders where the variance of that exists.
        for order in [0.2, 0.7, 1.4] {
            let expected = ((order - 1.0) * value(Divergence::Renyi { order }, prior, posterior)).exp();
            check(
                &format!("Rényi of order {order}"),
                expected,
                average(&stream("order"), |z| (order * ratio(from(prior, z))).exp()),
            );
        }
    }
}

/// On the line the best coupling pairs quantiles. Sorted samples are quantiles, and by the triangle inequality the distance of two samples differs from that of what they are drawn from by no more than the sum of both samples' own distances, which are about
/// `σ √(log log n/n)` for normals (Bobkov and Ledoux 2019); five of them are allowed.
#[test]
fn the_wasserstein_distance_is_that_of_quantiles() {
    let sorted = |name: &str, (mean, variance): (f64, f64)| {
        let mut values: Vec<f64> =
            noise(name, SAMPLES, 1).col_as_slice(0).iter().map(|z| mean + variance.sqrt() * z).collect();
        values.sort_by(f64::total_cmp);
        values
    };
    for (prior, posterior) in [((0.4, 2.25), (-0.3, 0.49)), ((0.0, 1.0), (0.0, 1.7))] {
        let pairs = sorted("prior", prior).into_iter().zip(sorted("posterior", posterior));
        let found = (pairs.map(|(p, q)| (p - q) * (p - q)).sum::<f64>() / SAMPLES as f64).sqrt();
        let expected = value(Divergence::Wasserstein, prior, posterior).sqrt();
        let count = SAMPLES as f64;
        let tolerance = 5.0 * (prior.1.sqrt() + posterior.1.sqrt()) * (count.ln().ln() / count).sqrt();
        assert!((found - expected).abs() < tolerance, "{found}, not {expected} ± {tolerance}");
    }
}
