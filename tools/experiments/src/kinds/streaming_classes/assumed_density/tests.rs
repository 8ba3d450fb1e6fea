//! Against moments on a grid, the exact posterior, and weighted draws.

use super::AssumedDensity;
use crate::kinds::prelude::*;
use rand_distr::{Distribution, StandardNormal};

fn wave(k: f64) -> f64 {
    (k * 12.9898).sin()
}

fn prior(features: usize, classes: usize) -> (Mat<f64>, Mat<f64>) {
    let precision = Mat::from_fn(features, features, |i, j| if i == j { 0.7 } else { 0.1 });
    (precision, Mat::from_fn(features, classes, |i, c| 0.2 * wave((i + 3 * c) as f64 + 0.5)))
}

fn fresh(features: usize, classes: usize, damping: f64) -> AssumedDensity {
    let (precision, means) = prior(features, classes);
    AssumedDensity::new(precision.as_ref(), means.as_ref(), damping).unwrap()
}

/// Two classes and one feature: mean and variance of both weights given a row, by sums over a plane.
#[test]
fn one_row_has_the_moments_of_the_tilted_density() {
    let phi = 1.7;
    let model = fresh(1, 2, 1.0);
    let (m, v): (Vec<f64>, f64) =
        ((0..2).map(|k| model.means[(0, k)]).collect(), model.covariances[0][(0, 0)]);
    for label in 0..2 {
        let (mut total, mut first, mut second) = (0.0, [0.0; 2], [0.0; 2]);
        let (steps, width) = (400, 20.0 * v.sqrt() / 400.0);
        for cell in 0..steps * steps {
            let at = |k: usize| {
                let place = if k == 0 { cell % steps } else { cell / steps };
                m[k] + width * (place as f64 + 0.5) - 10.0 * v.sqrt()
            };
            let w = [at(0), at(1)];
            let density: f64 = w.iter().zip(&m).map(|(w, m)| -0.5 * (w - m).powi(2) / v).sum();
            let gap = phi * (w[1 - label] - w[label]);
            let weight = density.exp() / (1.0 + gap.exp());
            total += weight;
            (0..2).for_each(|k| first[k] += weight * w[k]);
            (0..2).for_each(|k| second[k] += weight * w[k] * w[k]);
        }
        let mut found = model.clone();
        found.learn(Mat::from_fn(1, 1, |_, _| phi).as_ref(), &[label]).unwrap();
        assert_eq!(found.skipped(), 0);
        for k in 0..2 {
            let (mean, square) = (first[k] / total, second[k] / total);
            assert!((found.means[(0, k)] - mean).abs() < 1e-8, "{label} {k}: {mean}");
            let variance = found.covariances[k][(0, 0)];
            assert!((variance - (square - mean * mean)).abs() < 1e-7, "{label} {k}: {variance}");
        }
    }
}

/// Four classes and three features: weights of draws from the prior by the probability of the class, whose averages err by about one over the root of their number.
#[test]
fn one_row_has_the_moments_of_weighted_draws() {
    let phi = [1.0, -0.8, 0.6];
    let row = Mat::from_fn(1, 3, |_, j| phi[j]);
    let model = fresh(3, 4, 1.0);
    let latents = model.latents(row.as_ref()).unwrap();
    let mut found = model.clone();
    found.learn(row.as_ref(), &[2]).unwrap();
    let after = found.latents(row.as_ref()).unwrap();
    let mut rng = Streams::new(3).stream("test");
    let draws = 100_000;
    let (mut total, mut first, mut second) = (0.0, [0.0; 4], [0.0; 4]);
    for _ in 0..draws {
        let f: [f64; 4] = std::array::from_fn(|k| {
            let white: f64 = StandardNormal.sample(&mut rng);
            latents.means[(0, k)] + latents.variances[(0, k)].sqrt() * white
        });
        let weight = f[2].exp() / f.iter().map(|f| f.exp()).sum::<f64>();
        total += weight;
        (0..4).for_each(|k| first[k] += weight * f[k]);
        (0..4).for_each(|k| second[k] += weight * f[k] * f[k]);
    }
    for k in 0..4 {
        let (mean, square) = (first[k] / total, second[k] / total);
        // Five standard errors of about 2.5 deviations over the root of the draws: weights differ by less than a factor of ten.
        let error = 12.0 * latents.variances[(0, k)].sqrt() / (draws as f64).sqrt();
        assert!((after.means[(0, k)] - mean).abs() < error, "{k}: {} {mean}", after.means[(0, k)]);
        let variance = square - mean * mean;
        assert!((after.variances[(0, k)] - variance).abs() < 2.0 * error * variance.sqrt(), "{k}");
    }
    // Along the row only: what is orthogonal to it under the prior stays.
    for k in 0..4 {
        let gain = &model.covariances[k] * row.row(0).transpose();
        let moved = found.means.col(k) - model.means.col(k);
        let ratio = moved[0] / gain[0];
        assert!((0..3).all(|a| (moved[a] - ratio * gain[a]).abs() < 1e-12));
        assert!(found.covariances[k] == found.covariances[k].transpose());
    }
}

/// A long stream of two classes and one feature, whose exact posterior is one integral over the difference of the weights.
#[test]
fn a_long_stream_ends_near_the_exact_posterior() {
    let rows = 3000;
    let x = Mat::from_fn(rows, 1, |i, _| 1.0 + 0.8 * wave(i as f64));
    let labels: Vec<usize> = (0..rows)
        .map(|i| usize::from(0.5 + 0.5 * wave(5.3 * i as f64 + 1.0) < 1.0 / (1.0 + (-0.9 * x[(i, 0)]).exp())))
        .collect();
    let precision = Mat::from_fn(1, 1, |_, _| 0.5);
    let none = Mat::<f64>::zeros(1, 2);
    let mut model = AssumedDensity::new(precision.as_ref(), none.as_ref(), 1.0).unwrap();
    model.learn(x.as_ref(), &labels).unwrap();
    assert_eq!(model.skipped(), 0);
    let log = |d: f64| -> f64 {
        let prior = -0.5 * d * d / (2.0 / 0.5);
        let each = |i: usize| {
            let gap = if labels[i] == 1 { -d * x[(i, 0)] } else { d * x[(i, 0)] };
            -gap.exp().ln_1p()
        };
        prior + (0..rows).map(each).sum::<f64>()
    };
    let grid: Vec<f64> = (0..400).map(|j| 0.005 * j as f64).collect();
    let logs: Vec<f64> = grid.iter().map(|d| log(*d)).collect();
    let peak = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let weights: Vec<f64> = logs.iter().map(|l| (l - peak).exp()).collect();
    let total: f64 = weights.iter().sum();
    let moment =
        |g: &dyn Fn(f64) -> f64| grid.iter().zip(&weights).map(|(d, w)| w * g(*d)).sum::<f64>() / total;
    let mean = moment(&|d| d);
    let variance = moment(&|d| (d - mean).powi(2));
    let own = model.means[(0, 1)] - model.means[(0, 0)];
    let spread = model.covariances[0][(0, 0)] + model.covariances[1][(0, 0)];
    assert!((own - mean).abs() < 3.0 * variance.sqrt(), "{own} {mean} {variance}");
    // Functions taken apart after each row: half of what is said of their difference is lost.
    assert!((spread / variance - 2.0).abs() < 0.2, "{spread} {variance}");
}

/// Projections do not commute, unlike sums over rows; damped, a row says less.
#[test]
fn the_order_matters_and_damping_shrinks_what_rows_say() {
    let x = Mat::from_fn(12, 3, |i, j| if j == 0 { 1.0 } else { 2.0 * wave((3 * i + j) as f64) });
    let labels: Vec<usize> = (0..12).map(|i| i * 5 % 7 % 3).collect();
    let back = Mat::from_fn(12, 3, |i, j| x[(11 - i, j)]);
    let backward: Vec<usize> = labels.iter().rev().copied().collect();
    let learned = |x: &Mat<f64>, labels: &[usize], damping: f64| {
        let mut model = fresh(3, 3, damping);
        model.learn(x.as_ref(), labels).unwrap();
        model
    };
    let (forward, other) = (learned(&x, &labels, 1.0), learned(&back, &backward, 1.0));
    let apart = (&forward.means - &other.means).norm_max();
    assert!(apart > 1e-3 && apart < 0.5, "{apart}");
    // Rows in two calls are rows in one.
    let mut twice = fresh(3, 3, 1.0);
    twice.learn(x.as_ref().subrows(0, 5), &labels[..5]).unwrap();
    twice.learn(x.as_ref().subrows(5, 7), &labels[5..]).unwrap();
    assert_eq!(twice.means, forward.means);
    let damped = learned(&x, &labels, 0.3);
    for k in 0..3 {
        let of = |model: &AssumedDensity| (0..3).map(|a| model.covariances[k][(a, a)]).sum::<f64>();
        assert!(of(&forward) < of(&damped) && of(&damped) < of(&fresh(3, 3, 1.0)));
    }
}

/// Surprises far beyond what the prior allows, and features that make it enormous, leave numbers.
#[test]
fn hostile_rows_leave_numbers() {
    let mut model = fresh(2, 3, 1.0);
    let rows = [[1e4, 0.0], [1e4, 1e4], [-1e4, 1.0], [0.0, 0.0], [1e-9, 1e-9], [1e7, -1e7]];
    let x = Mat::from_fn(rows.len(), 2, |i, j| rows[i][j]);
    model.learn(x.as_ref(), &[0, 1, 0, 2, 1, 2]).unwrap();
    model.learn(x.as_ref(), &[2, 2, 2, 2, 2, 2]).unwrap();
    let latents = model.latents(x.as_ref()).unwrap();
    for i in 0..rows.len() {
        for k in 0..3 {
            assert!(latents.means[(i, k)].is_finite() && latents.variances[(i, k)].is_finite());
        }
    }
}

#[test]
fn what_does_not_fit_is_refused_and_nothing_is_learned() {
    let mut model = fresh(3, 3, 1.0);
    let before = model.means.clone();
    let x = Mat::from_fn(2, 3, |i, j| if (i, j) == (1, 0) { f64::INFINITY } else { 1.0 });
    let error = model.learn(x.as_ref(), &[0, 1]).unwrap_err().to_string();
    assert!(error.contains("feature 3 is inf"), "{error}");
    let error = model.learn(x.as_ref().subrows(0, 1), &[7]).unwrap_err().to_string();
    assert!(error.contains("label is 7"), "{error}");
    let error = model.learn(x.as_ref().subcols(0, 2), &[0, 1]).unwrap_err().to_string();
    assert!(error.contains("features: expected 3, found 2"), "{error}");
    assert_eq!(model.means, before);
    let (precision, means) = prior(3, 3);
    let refused = |damping: f64, means: &Mat<f64>| {
        AssumedDensity::new(precision.as_ref(), means.as_ref(), damping).unwrap_err().to_string()
    };
    assert!(refused(0.0, &means).contains("damping") && refused(f64::NAN, &means).contains("damping"));
    assert!(refused(1.0, &Mat::zeros(2, 3)).contains("expected 2, found 3"));
    assert!(refused(1.0, &Mat::zeros(3, 1)).contains("two classes"));
    let negative = Mat::from_fn(3, 3, |i, j| if i == j { -1.0 } else { 0.0 });
    assert!(AssumedDensity::new(negative.as_ref(), means.as_ref(), 1.0).is_err());
}
