//! Against sums of densities, dense Gaussians and the expected density of a known one.

use super::*;
use crate::test_problem::normal;
use posterior_linalg::dense::eigen;

/// A covariance of `pixels` pixels.
fn covariance(pixels: usize) -> Mat<f64> {
    let root = normal(pixels, pixels, 7);
    &root * root.transpose() * faer::Scale(0.1) + Mat::<f64>::identity(pixels, pixels) * faer::Scale(0.3)
}

fn vector(pixels: usize, seed: u64) -> Vec<f64> {
    normal(pixels, 1, seed).col_as_slice(0).to_vec()
}

/// By eigenvalues.
fn dense_log_density(truth: &[f64], mean: &[f64], covariance: &Mat<f64>) -> f64 {
    let found = eigen(covariance.as_ref()).unwrap();
    let mut out = 0.0;
    for (j, value) in found.values.iter().enumerate() {
        let along: f64 = (0..truth.len()).map(|i| found.vectors[(i, j)] * (truth[i] - mean[i])).sum();
        out -= 0.5 * (along * along / value + (TAU * value).ln());
    }
    out
}

#[test]
fn every_pixel_is_covered_once() {
    for (height, width) in [(1, 1), (5, 7), (13, 10), (28, 28), (10, 29)] {
        for side in 1..=height.min(width).min(10) {
            let tiling = Tiling::new(height, width, side).unwrap();
            let mut seen = vec![0; height * width];
            for patch in tiling.patches() {
                patch.pixels(width).for_each(|pixel| seen[pixel] += 1);
                let longest = patch.rows.len().max(patch.columns.len());
                assert!(longest < 2 * side && patch.rows.len() >= side && patch.columns.len() >= side);
            }
            assert!(seen.iter().all(|&times| times == 1), "{height} x {width} by {side}");
        }
    }
    assert!(Tiling::new(4, 9, 5).is_err() && Tiling::new(4, 4, 0).is_err());
}

/// The published window: pixels 72 to 424 of 501, in patches of ten, are those from 70 to 430.
#[test]
fn windows_are_rounded_outward() {
    let patches = Tiling::new(501, 501, 10).unwrap().within(72..424, 72..424).unwrap().patches();
    assert_eq!(patches.len(), 36 * 36);
    assert_eq!((patches[0].rows.clone(), patches[0].columns.clone()), (70..80, 70..80));
    let last = &patches[patches.len() - 1];
    assert_eq!((last.rows.clone(), last.columns.clone()), (420..430, 420..430));
    // What touches the last patch has its remainder too; edges that fit stay.
    let tiling = Tiling::new(29, 20, 10).unwrap().within(25..26, 10..20).unwrap();
    assert_eq!(tiling.patches(), [Patch { rows: 10..29, columns: 10..20 }]);
    assert!(Tiling::new(9, 9, 3).unwrap().within(3..3, 0..9).is_err());
    assert!(Tiling::new(9, 9, 3).unwrap().within(3..4, 0..10).is_err());
}

#[test]
fn single_pixels_are_independent_normals_and_the_whole_image_is_one_gaussian() {
    let (height, width) = (5, 4);
    let k = covariance(20);
    let (truth, mean) = (vector(20, 1), vector(20, 2));
    let exact = PatchCovariance::Exact(k.as_ref());
    let single = Tiling::new(height, width, 1).unwrap();
    let score = patch_log_density(&truth, &mean, exact, &single, 0.02).unwrap();
    let expected: f64 = (0..20)
        .map(|i| {
            let variance = k[(i, i)] + 0.02;
            -0.5 * ((truth[i] - mean[i]).powi(2) / variance + (TAU * variance).ln())
        })
        .sum();
    assert!((score.total - expected).abs() < 1e-11 && score.patches == 20 && score.pixels == 20);
    assert!((score.per_pixel() - expected / 20.0).abs() < 1e-12);
    // 4 x 4 patches of 5 x 4 pixels are one.
    let whole = Tiling::new(height, width, 4).unwrap();
    let score = patch_log_density(&truth, &mean, exact, &whole, 0.0).unwrap();
    assert!((score.total - dense_log_density(&truth, &mean, &k)).abs() < 1e-9 && score.patches == 1);
    // 2 x 2: the Gaussian of the matrix in which other entries are zero.
    let tiling = Tiling::new(height, width, 2).unwrap();
    let mut blocks = Mat::zeros(20, 20);
    for patch in tiling.patches() {
        for a in patch.pixels(width) {
            patch.pixels(width).for_each(|b| blocks[(a, b)] = k[(a, b)]);
        }
    }
    let score = patch_log_density(&truth, &mean, exact, &tiling, 0.0).unwrap();
    assert!((score.total - dense_log_density(&truth, &mean, &blocks)).abs() < 1e-9);
}

#[test]
fn estimators_are_what_they_say() {
    let images = normal(6, 40, 3);
    let pixels = [0, 1, 2, 3, 4, 5];
    let plain =
        of_patch(PatchCovariance::Samples { images: images.as_ref(), estimator: Estimator::Plain }, &pixels);
    let inflated = of_patch(
        PatchCovariance::Samples { images: images.as_ref(), estimator: Estimator::Inflated },
        &pixels,
    );
    for i in 0..6 {
        for j in 0..6 {
            let product: f64 = (0..40).map(|s| images[(i, s)] * images[(j, s)]).sum();
            let square: f64 = if i == j { product } else { 0.0 };
            assert!((plain[(i, j)] - product / 40.0).abs() < 1e-13);
            assert!((inflated[(i, j)] - (square + product) / 80.0).abs() < 1e-13);
        }
    }
}

/// Truths drawn from the Gaussian have the log density `-½ (log det 2πK + p)` on average, with a variance of `p / 2`; from m draws the estimate of K comes close to that, and few draws without a stabiliser have no density.
#[test]
fn a_known_gaussian_has_its_entropy() {
    let k = covariance(12);
    let factor = Cholesky::of(k.as_ref(), JitterPolicy::NONE).unwrap();
    let entropy = -0.5 * (factor.log_determinant() + 12.0 * TAU.ln() + 12.0);
    let draws = factor.multiply_factor(normal(12, 3000, 5).as_ref());
    let tiling = Tiling::new(4, 3, 3).unwrap();
    let zero = [0.0; 12];
    let truths = factor.multiply_factor(normal(12, 400, 6).as_ref());
    let mean_of = |covariance: PatchCovariance<'_>| -> f64 {
        let own = |j: usize| patch_log_density(truths.col_as_slice(j), &zero, covariance, &tiling, 0.0);
        (0..400).map(|j| own(j).unwrap().total).sum::<f64>() / 400.0
    };
    let deviation = (6.0f64 / 400.0).sqrt();
    let exact = mean_of(PatchCovariance::Exact(k.as_ref()));
    assert!((exact - entropy).abs() < 4.0 * deviation, "{exact} {entropy}");
    let plain = mean_of(PatchCovariance::Samples { images: draws.as_ref(), estimator: Estimator::Plain });
    // A Wishart estimate of dimension k from m draws loses about k (k + 1) / 4m nats, here 0.013; ten times that is allowed.
    assert!((plain - exact).abs() < 0.13, "{plain} {exact}");
    let inflated =
        mean_of(PatchCovariance::Samples { images: draws.as_ref(), estimator: Estimator::Inflated });
    assert!(inflated < plain, "with many draws, halved correlations cost: {inflated} {plain}");
    let few = PatchCovariance::Samples { images: draws.as_ref().subcols(0, 5), estimator: Estimator::Plain };
    let error = patch_log_density(&zero, &zero, few, &tiling, 0.0).unwrap_err();
    assert!(matches!(error, PatchError::Cholesky { .. }) && error.to_string().contains("rows 0..4"));
    assert!(patch_log_density(&zero, &zero, few, &tiling, 1e-6).is_ok());
    assert!(patch_log_density(&zero[..11], &zero, few, &tiling, 0.0).is_err());
    assert!(patch_log_density(&zero, &zero, few, &tiling, -1.0).is_err());
}

#[test]
fn the_derived_stabiliser_is_the_mean_of_a_pseudo_inverse() {
    let t = normal(5, 8, 4);
    let normal_matrix = t.transpose() * &t;
    for rank in [3, 5, 8] {
        let found = eigen(normal_matrix.as_ref()).unwrap();
        let mut pseudo = 0.0;
        for j in (8 - rank.min(5))..8 {
            pseudo += (0..8).map(|i| found.vectors[(i, j)].powi(2)).sum::<f64>() / found.values[j];
        }
        let stabiliser = pseudo_inverse_stabiliser(normal_matrix.as_ref(), 0.3, rank).unwrap();
        assert!((stabiliser - 0.3 * pseudo / 8.0).abs() < 1e-10 * stabiliser);
    }
    assert!(pseudo_inverse_stabiliser(normal_matrix.as_ref(), 0.0, 3).is_err());
    assert!(pseudo_inverse_stabiliser(Mat::zeros(3, 3).as_ref(), 0.1, 3).is_err());
}

/// The spec's observation on 10 x 10 pixels: with few draws the inflated estimator is better, with many the plain one. The expected log density of a truth from `N(0, K)` under `N(0, S)` is `-½ (tr S⁻¹ K + log det 2πS)`.
#[test]
fn inflation_helps_few_draws_and_costs_many() {
    let k = crate::priors::Matern { height: 10, width: 10, lengthscale: 4.0, variance: 1.0 }.dense();
    let root = Cholesky::of(k.as_ref(), JitterPolicy::NONE).unwrap();
    let pixels: Vec<usize> = (0..100).collect();
    let density = |covariance: &Mat<f64>| {
        let factor = Cholesky::of(covariance.as_ref(), JitterPolicy::NONE).unwrap();
        let solved = factor.solve(k.as_ref());
        let trace: f64 = (0..100).map(|i| solved[(i, i)]).sum();
        -0.5 * (trace + factor.log_determinant() + 100.0 * TAU.ln()) / 100.0
    };
    println!("exact {:.3}", density(&k));
    let mut gains = Vec::new();
    for m in [128, 256, 1024, 4096] {
        let draws = root.multiply_factor(normal(100, m, 8).as_ref());
        let by = |estimator| {
            density(&of_patch(PatchCovariance::Samples { images: draws.as_ref(), estimator }, &pixels))
        };
        let (plain, inflated) = (by(Estimator::Plain), by(Estimator::Inflated));
        println!("{m} draws: plain {plain:.3}, inflated {inflated:.3} nats a pixel");
        gains.push(inflated - plain);
    }
    assert!(gains[0] > 0.0 && gains[3] < 0.0, "{gains:?}");
}
