//! Averages over rows, class probabilities and full squared differences.

use super::{all, near, noise, normal, slope, times};
use crate::generalised::divergence::{
    DivergenceError, JointNormal, Normals, multinomial, squared_difference,
};
use faer::Mat;

#[test]
fn averages_are_those_of_single_rows() {
    for n in [1, 7, 64, 65, 300] {
        let z = noise("rows", n, 4);
        let column =
            |j: usize, f: fn(f64) -> f64| -> Vec<f64> { z.col_as_slice(j).iter().map(|v| f(*v)).collect() };
        let (prior_means, means) = (column(0, |v| v), column(1, |v| v));
        // Few of them beyond what the Rényi divergences of orders above 1 allow.
        let (prior_variances, variances) = (column(2, |v| 1.0 + v * v), column(3, |v| (0.3 * v).exp() * 0.7));
        let prior = Normals { means: &prior_means, variances: &prior_variances };
        let posterior = Normals { means: &means, variances: &variances };
        for divergence in all() {
            let (mut of_means, mut of_variances) = (vec![f64::NAN; n], vec![f64::NAN; n]);
            let value = divergence.mean_over(prior, posterior, &mut of_means, &mut of_variances).unwrap();
            let mut expected = 0.0;
            for i in 0..n {
                let one = divergence
                    .between(normal((prior_means[i], prior_variances[i])), normal((means[i], variances[i])));
                expected += one.value;
                assert_eq!(of_means[i], one.mean * (1.0 / n as f64), "{divergence}, row {i} of {n}");
                assert_eq!(of_variances[i], one.variance * (1.0 / n as f64), "{divergence}, row {i} of {n}");
            }
            near(&format!("{divergence}, {n} rows"), value, expected / n as f64, 1e-14);
        }
    }
}

#[test]
fn the_distance_of_probabilities_is_its_definition_with_its_slopes() {
    let (rows, classes) = (5, 3);
    let table = |name: &str| -> Vec<f64> {
        let z = noise(name, classes, rows);
        let row = |i: usize| {
            let total: f64 = (0..classes).map(|j| z[(j, i)].exp()).sum();
            (0..classes).map(move |j| (j, i, total)).collect::<Vec<_>>()
        };
        (0..rows).flat_map(row).map(|(j, i, total)| z[(j, i)].exp() / total).collect()
    };
    let (prior, posterior) = (table("p"), table("q"));
    for order in [1.0, 1.3, 2.0, 3.0, 40.0] {
        let mut slopes = vec![f64::NAN; rows * classes];
        let mut of = |q: &[f64]| multinomial(order, classes, &prior, q, &mut slopes).unwrap();
        let plain = |q: &[f64]| {
            let row = |i: usize| -> f64 {
                (0..classes)
                    .map(|j| (prior[i * classes + j] - q[i * classes + j]).abs().powf(order))
                    .sum::<f64>()
            };
            (0..rows).map(|i| row(i).powf(1.0 / order)).sum::<f64>() / rows as f64
        };
        near(&format!("order {order}"), of(&posterior), plain(&posterior), 1e-14);
        for k in 0..rows * classes {
            let numeric = slope(1e-4, |t| {
                let mut q = posterior.clone();
                q[k] += t;
                plain(&q)
            });
            near(&format!("order {order}, entry {k}"), slopes[k], numeric, 1e-9);
        }
    }
    // Agreement, in all and in one class: the subgradient 0.
    let mut slopes = vec![f64::NAN; rows * classes];
    assert_eq!(multinomial(2.0, classes, &prior, &prior, &mut slopes).unwrap(), 0.0);
    assert!(slopes.iter().all(|s| *s == 0.0));
    let mut slopes = [f64::NAN; 3];
    assert_eq!(multinomial(1.0, 3, &[0.5, 0.25, 0.25], &[0.25, 0.5, 0.25], &mut slopes).unwrap(), 0.5);
    assert_eq!(slopes, [-1.0, 1.0, 0.0]);
    // Differences whose powers underflow.
    let value = multinomial(40.0, 2, &[0.5, 0.5], &[0.5 + 1e-10, 0.5 - 1e-10], &mut slopes[..2]).unwrap();
    assert!((value / (1e-10 * 2f64.powf(1.0 / 40.0)) - 1.0).abs() < 1e-5);
}

#[test]
fn the_distance_of_probabilities_refuses_what_does_not_fit() {
    let of = |order, classes, p: &[f64], q: &[f64], n| multinomial(order, classes, p, q, &mut vec![0.0; n]);
    let half = [0.5, 0.5];
    for order in [0.5, 0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(matches!(of(order, 2, &half, &half, 2), Err(DivergenceError::Order { .. })));
    }
    assert!(matches!(of(2.0, 0, &half, &half, 2), Err(DivergenceError::Empty { .. })));
    assert!(matches!(of(2.0, 2, &[], &[], 0), Err(DivergenceError::Empty { .. })));
    assert!(matches!(of(2.0, 3, &half, &half, 2), Err(DivergenceError::Shape { .. })));
    assert!(matches!(of(2.0, 2, &[0.5], &half, 2), Err(DivergenceError::Shape { .. })));
    assert!(matches!(of(2.0, 2, &half, &half, 3), Err(DivergenceError::Shape { .. })));
    let error = of(2.0, 1, &half, &[0.5, f64::NAN], 2);
    assert!(matches!(error, Err(DivergenceError::NotFinite { row: 1, column: 0, .. })));
}

#[test]
fn the_full_squared_difference_is_its_definition_with_its_slopes() {
    for n in [1, 4, 33] {
        let covariance = |name: &str| {
            let root = noise(name, n, n);
            times(root.as_ref(), root.transpose())
        };
        let (k, r) = (covariance("k"), covariance("r"));
        let z = noise("means", n, 2);
        let prior = JointNormal { means: z.col_as_slice(0), covariance: k.as_ref() };
        let plain = |means: &[f64], r: &Mat<f64>| {
            let squares: f64 = means.iter().zip(prior.means).map(|(q, p)| (q - p) * (q - p)).sum();
            let pairs: f64 = (0..n * n).map(|e| (k[(e % n, e / n)] - r[(e % n, e / n)]).powi(2)).sum();
            squares / n as f64 + pairs / (n * n) as f64
        };
        let posterior = JointNormal { means: z.col_as_slice(1), covariance: r.as_ref() };
        let found = squared_difference(prior, posterior).unwrap();
        near("value", found.value, plain(posterior.means, &r), 1e-14);
        let numeric = slope(1e-3, |t| {
            let mut means = posterior.means.to_vec();
            means[n - 1] += t;
            plain(&means, &r)
        });
        near("mean", found.means[n - 1], numeric, 1e-10);
        let numeric = slope(1e-3, |t| {
            let mut r = r.clone();
            r[(n - 1, 0)] += t;
            plain(posterior.means, &r)
        });
        near("covariance", found.covariance[(n - 1, 0)], numeric, 1e-10);
    }
}
