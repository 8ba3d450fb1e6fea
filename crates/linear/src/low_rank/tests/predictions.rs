//! Predictions against dense processes.

use super::maps::{Given, own_rows};
use super::*;
use posterior_likelihoods::Gaussian;

/// Mean and variance at places of a process with the covariance `cross` to n rows, `own` at the places themselves, and Σ of the rows.
fn dense(sigma: &Mat<f64>, cross: &Mat<f64>, own: &[f64], y: &Mat<f64>) -> (Mat<f64>, Vec<f64>) {
    let inverse = sigma.partial_piv_lu().inverse();
    let explained = cross * &inverse * cross.transpose();
    (cross * &inverse * y, own.iter().enumerate().map(|(i, k)| k - explained[(i, i)]).collect())
}

fn corrected(correction: Correction) -> LowRankOptions {
    LowRankOptions { correction, rest_as_noise: true, corrected: true, ..LowRankOptions::default() }
}

#[test]
fn corrected_predictions_are_those_of_a_dense_process_with_noise_of_its_own_in_each_row() {
    let (n, m, places) = (17, 3, 6);
    let (x, y) = (normal(n, m, "rows"), normal(n, 1, "y"));
    // One of the places has more variance than any row.
    let there =
        Mat::from_fn(places, m, |i, j| if i == 0 { 3.0 } else { normal(places, m, "places")[(i, j)] });
    let noise: Vec<f64> = (0..n).map(|i| 0.02 * i as f64).collect();
    let length = |x: &Mat<f64>, i: usize| x.row(i).squared_norm_l2();
    let most = (0..n).map(|i| length(&x, i)).fold(0.0, f64::max);
    let mut sigma = &x * x.transpose();
    (0..n).for_each(|i| sigma[(i, i)] += most - length(&x, i) + NOISE + noise[i]);
    let own: Vec<f64> = (0..places).map(|i| most.max(length(&there, i))).collect();
    assert!(own[0] > most && own[1..].contains(&most));
    let (mean, variance) = dense(&sigma, &(&there * x.transpose()), &own, &y);

    let observed = ObservedRows { targets: y.as_ref(), noise: Some(&noise), weights: None, offsets: None };
    let data = LowRankData { inputs: x.as_ref(), observed };
    let likelihood = Box::new(Gaussian::new(NOISE, 0.0));
    let posterior = refit(own_rows(m), likelihood, &data, &corrected(Correction::Uniform)).unwrap();
    let found = posterior.latent(there.as_ref()).unwrap();
    assert!((&found.mean - mean).norm_max() < 1e-12);
    (0..places).for_each(|i| assert_near(found.variance[(i, 0)], variance[i], 1e-12 * own[i]));
}

#[test]
fn features_of_inducing_points_with_their_own_rest_are_fitc() {
    // Snelson and Ghahramani (2006), equations 9 to 11, with K_ZZ and K_XZ as they are: nothing is whitened here.
    let (n, places) = (15, 4);
    let kernel = |a: f64, b: f64| (-0.5 * (a - b).powi(2)).exp();
    let z = [-1.5, 0.2, 1.4];
    let (x, y, there) = (normal(n, 1, "x"), normal(n, 1, "y"), normal(places, 1, "places"));
    let between = |x: &Mat<f64>| Mat::from_fn(3, x.nrows(), |j, i| kernel(z[j], x[(i, 0)]));
    let gram = Mat::from_fn(3, 3, |i, j| kernel(z[i], z[j]));
    let (to_rows, to_places, inverse) = (between(&x), between(&there), gram.partial_piv_lu().inverse());
    let said = to_rows.transpose() * &inverse * &to_rows;
    let scaled = Mat::from_fn(3, n, |j, i| to_rows[(j, i)] / (1.0 - said[(i, i)] + NOISE));
    let q = (&gram + &scaled * to_rows.transpose()).partial_piv_lu().inverse();
    let mean = to_places.transpose() * &q * &scaled * &y;
    let less = to_places.transpose() * (&inverse - &q) * &to_places;

    let whiten = gram.llt(faer::Side::Lower).unwrap().L().partial_piv_lu().inverse();
    let features = Given::new(1, 3, move |x: &[f64]| {
        let column = Mat::from_fn(3, 1, |j, _| kernel(z[j], x[0]));
        ((&whiten * column).col_as_slice(0).to_vec(), 1.0)
    });
    let observed = ObservedRows { targets: y.as_ref(), noise: None, weights: None, offsets: None };
    let data = LowRankData { inputs: x.as_ref(), observed };
    let likelihood = Box::new(Gaussian::new(NOISE, 0.0));
    let posterior = refit(Box::new(features), likelihood, &data, &corrected(Correction::Own)).unwrap();
    assert_eq!(posterior.residual_variance(), ResidualVariance::Own);
    let found = posterior.latent(there.as_ref()).unwrap();
    assert!((&found.mean - mean).norm_max() < 1e-12);
    (0..places).for_each(|i| assert_near(found.variance[(i, 0)], 1.0 - less[(i, i)], 1e-12));
}
