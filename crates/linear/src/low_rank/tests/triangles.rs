//! Sums by triangles where squares fail: problems of two features that are nearly, or quite, the same.

use super::maps::{Squashed, own_rows};
use super::*;
use posterior_likelihoods::Gaussian;
use posterior_linalg::cholesky::CholeskyError;
use posterior_optim::Signal;

/// Features `(2²⁰, 2²⁰ ± 2⁻⁹)` under the noise variance 2⁻²⁰, so that `v = (2³⁰, 2³⁰ ± 2)`: every sum below is exact, and `W = [[1 + A, A], [A, 1 + A + G]]` with A = 2⁶⁴ and G = 64, whose rounding is a matrix of equal numbers.
struct NearDuplicates {
    features: Mat<f64>,
    targets: Mat<f64>,
    signs: Vec<f64>,
}

const ROWS: usize = 16;
/// 2⁻²⁰.
const LITTLE: f64 = 1.0 / 1048576.0;
/// `Σ v₁²` and `Σ (v₂ - v₁)²`.
const A: f64 = 18446744073709551616.0;
const G: f64 = 64.0;
/// det W.
const DETERMINANT: f64 = A * (2.0 + G) + G + 1.0;

/// What a triangle of V is told apart by, as a share of the smallest singular value of `[V; I]`, √(det / 2A) = 5.7: a reflection of a column of 18 numbers rounds a part in 2⁵³ of its length √(2A) for each of some operations.
fn rounding() -> f64 {
    32.0 * f64::EPSILON * (2.0 * A).sqrt() / (DETERMINANT / (2.0 * A)).sqrt()
}

impl NearDuplicates {
    fn new() -> Self {
        let signs: Vec<f64> = (0..ROWS).map(|i| if i % 2 == 0 { 1.0 } else { -1.0 }).collect();
        let features = Mat::from_fn(2, ROWS, |j, i| 1048576.0 + if j == 1 { signs[i] / 512.0 } else { 0.0 });
        // A level, the signs, and what is orthogonal to both.
        let targets = Mat::from_fn(ROWS, 1, |i, _| {
            0.75 + 0.5 * signs[i] + 0.25 * if (i / 2) % 2 == 0 { 1.0 } else { -1.0 }
        });
        Self { features, targets, signs }
    }

    fn scaled(&self) -> ScaledRows {
        let k = squares(&self.features);
        ScaledRows::new(self.features.clone(), self.targets.clone(), vec![LITTLE; ROWS], k)
    }

    fn sums(&self) -> EvidenceSums {
        let mut sums = EvidenceSums::new(2, 1);
        sums.add(&self.scaled());
        sums
    }

    /// In the orthonormal basis of level and signs, in which everything has a closed form without differences of large numbers.
    fn evidence() -> f64 {
        let root = 1024.0 * (ROWS as f64).sqrt();
        let (level, signs, rest) = (0.75 * root, 0.5 * root, 0.25 * root);
        let seen = (G + 1.0) * level * level - 2.0 * (A * G).sqrt() * level * signs
            + (2.0 * A + 1.0) * signs * signs;
        let log_noise = ROWS as f64 * (2.0 * std::f64::consts::PI * LITTLE).ln();
        -0.5 * (log_noise + DETERMINANT.ln() + seen / DETERMINANT + rest * rest)
    }

    /// `P = (p, p + q)`.
    fn projected() -> (f64, f64) {
        let scale = 1024.0 * ROWS as f64;
        (1073741824.0 * scale * 0.75, 2.0 * scale * 0.5)
    }

    fn weights() -> [f64; 2] {
        let (p, q) = Self::projected();
        [((1.0 + G) * p - A * q) / DETERMINANT, (p + (1.0 + A) * q) / DETERMINANT]
    }

    /// W⁻¹.
    fn covariance() -> Mat<f64> {
        let all = [[1.0 + A + G, -A], [-A, 1.0 + A]];
        Mat::from_fn(2, 2, |i, j| all[i][j] / DETERMINANT)
    }

    /// `W⁻¹ vᵢ`, the leverage `vᵢᵀ W⁻¹ vᵢ` and the residual `r̃ᵢ - Cᵀvᵢ`.
    fn row(&self, i: usize) -> ([f64; 2], f64, f64) {
        let (v, c) = (1073741824.0_f64, self.signs[i]);
        let solved = [((1.0 + G) * v - 2.0 * A * c) / DETERMINANT, (v + 2.0 * c * (1.0 + A)) / DETERMINANT];
        let leverage = ((2.0 + G) * v * v + 4.0 * c * v + 4.0 * (1.0 + A)) / DETERMINANT;
        let (p, q) = Self::projected();
        let sum = ((2.0 + G) * p + q) / DETERMINANT;
        let residual = 1024.0 * self.targets[(i, 0)] - sum * v - 2.0 * c * Self::weights()[1];
        (solved, leverage, residual)
    }
}

#[test]
fn triangles_go_where_squares_lose_positive_definiteness() {
    let (near_duplicates, tolerance) = (NearDuplicates::new(), rounding());
    assert!(tolerance < 1e-5);
    let failed = near_duplicates.sums().solve(0.0, JitterPolicy::NONE);
    assert!(matches!(failed, Err(CholeskyError::NotPositiveDefinite { pivot: 1, .. })), "{failed:?}");
    let jittered = JitterPolicy { initial: 1e-14, growth: 100.0, largest: 1e-6 };
    let elsewhere = near_duplicates.sums().solve(0.0, jittered).unwrap();
    assert!(!elsewhere.is_sound() && (elsewhere.value / NearDuplicates::evidence() - 1.0).abs() > 0.1);

    let mut triangles = TriangularSums::new(2, 1);
    triangles.add(&near_duplicates.scaled());
    let solved = triangles.solve(0.0).unwrap();
    assert!(solved.by_triangles() && solved.factor().info().jitter == 0.0);
    let near = |found: f64, expected: f64, scale: f64| assert_near(found, expected, tolerance * scale);
    near(solved.value, NearDuplicates::evidence(), NearDuplicates::evidence().abs());
    near(solved.factor().log_determinant(), DETERMINANT.ln(), 1.0);
    let [first, second] = NearDuplicates::weights();
    near(solved.weights()[(0, 0)], first, first.abs());
    near(solved.weights()[(1, 0)], second, second.abs());
    let root = solved.posterior().unwrap().roots()[0].clone();
    let covariance = NearDuplicates::covariance();
    assert!((&root * root.transpose() - &covariance).norm_max() < tolerance * covariance.norm_max());

    // The second pass: weights of 248 make a residual of 15 of targets of 512, which multiplies what they have lost.
    let block = solved.clone().gradient().block(&near_duplicates.scaled());
    for i in 0..ROWS {
        let (of_row, leverage, residual) = near_duplicates.row(i);
        let magnified = 1024.0 * 0.5 / residual.abs();
        for (j, weight) in [first, second].into_iter().enumerate() {
            let expected = 1024.0 * (weight * residual - of_row[j]);
            near(block.features[(j, i)], expected, magnified * expected.abs());
        }
        let expected = 0.5 * (leverage - 1.0 + residual * residual) / LITTLE;
        near(block.noise[i], expected, 2.0 * magnified * expected.abs());
    }
    let penalty = 0.7;
    let with_penalty = triangles.solve(penalty).unwrap();
    // Features say all that the process knows: there is nothing to pay, but for the rounding of sums of 2A.
    assert_near(with_penalty.value, solved.value, penalty * 8.0 * f64::EPSILON * 2.0 * A);
}

#[test]
fn triangles_are_told_when_they_fail_as_well() {
    // V of 10¹⁸ rounds the identity away as Ψ of 10¹⁸ does.
    let rows = |scale: f64| {
        let phi = Mat::from_fn(2, 5, |_, i| scale * (1.0 + i as f64));
        let k = squares(&phi);
        ScaledRows::new(phi, Mat::from_fn(5, 1, |i, _| i as f64), vec![1.0; 5], k)
    };
    let mut triangles = TriangularSums::new(2, 1);
    triangles.add(&rows(1e18));
    assert!(matches!(triangles.solve(0.0), Err(CholeskyError::NotPositiveDefinite { pivot: 1, .. })));
    let mut triangles = TriangularSums::new(2, 1);
    triangles.add(&rows(f64::NAN));
    assert!(matches!(triangles.solve(0.0), Err(CholeskyError::NotFinite { row: 0, .. })));
}

#[test]
fn fits_go_by_triangles_where_squares_fail() {
    let near_duplicates = NearDuplicates::new();
    let x = near_duplicates.features.transpose().to_owned();
    let observed =
        ObservedRows { targets: near_duplicates.targets.as_ref(), noise: None, weights: None, offsets: None };
    let data = LowRankData { inputs: x.as_ref(), observed };
    let likelihood = || Box::new(Gaussian::new(LITTLE, 0.0));
    let options = LowRankOptions { steps: 3, settles: false, ..LowRankOptions::default() };
    // Nothing is kept between the passes, or everything: the same bits.
    let mut found = Vec::new();
    for kept_bytes in [0, 1 << 20] {
        let options = LowRankOptions { kept_bytes, ..options.clone() };
        let (value, gradient, _) = objective(&*own_rows(2), &*likelihood(), &data, &options, &[]).unwrap();
        let expected = NearDuplicates::evidence() / ROWS as f64;
        assert_near(value, expected, rounding() * expected.abs());
        found.push((value, gradient));
    }
    assert_eq!(found[0], found[1]);
    let posterior = refit(own_rows(2), likelihood(), &data, &options).unwrap();
    let q = posterior.distribution();
    let (expected, covariance) = (NearDuplicates::weights(), NearDuplicates::covariance());
    (0..2).for_each(|j| assert_near(q.mean_of(0)[j], expected[j], rounding() * expected[j].abs()));
    let found = &q.roots()[0] * q.roots()[0].transpose();
    assert!((found - &covariance).norm_max() < rounding() * covariance.norm_max());
    let fit =
        fit_low_rank(own_rows(2), likelihood(), &data, None, &options, None, &mut |_, _| Signal::Continue);
    let fit = fit.unwrap();
    // Each step, and the posterior at the end.
    assert_eq!((fit.steps, fit.triangular_solves, fit.largest_jitter), (3, 4, 0.0));
    assert_eq!(fit.state.triangular_solves, 4);
    // Residuals of 16 standard deviations ask for more noise.
    assert!(fit.posterior.likelihood().shared_noise_variance().unwrap() > LITTLE);
    assert!(fit.objective > NearDuplicates::evidence() / ROWS as f64);
}

#[test]
fn equal_features_are_trained_as_one_feature_of_twice_the_variance() {
    let (n, noise, scale) = (24, LITTLE, 65536.0);
    let x = normal(n, 2, "inputs");
    let y = Mat::from_fn(n, 1, |i, _| (x[(i, 0)] - 0.4 * x[(i, 1)]).sin());
    let observed = ObservedRows { targets: y.as_ref(), noise: None, weights: None, offsets: None };
    let data = LowRankData { inputs: x.as_ref(), observed };
    let one = Squashed { scale: scale * 2f64.sqrt(), ..Squashed::new(1, 2, 7) };
    let two = Squashed {
        weights: Mat::from_fn(2, 2, |_, d| one.weights[(0, d)]),
        shifts: vec![one.shifts[0]; 2],
        scale,
        ..one.clone()
    };
    let likelihood = Gaussian::new(noise, 0.0);
    let options = LowRankOptions { steps: 20, weight_decay: 0.0, ..LowRankOptions::default() };
    let (of_one, slope, _) = objective(&one, &likelihood, &data, &options, &[]).unwrap();
    let (of_two, slopes, _) = objective(&two, &likelihood, &data, &options, &[]).unwrap();
    // As above, with V of 2²⁶ and the smallest singular value 1 along the difference of both, of which targets know nothing.
    let tolerance = 32.0 * f64::EPSILON * 67108864.0 * (2.0 * n as f64).sqrt();
    assert!(tolerance < 1e-5);
    assert_near(of_two, of_one, tolerance * of_one.abs());
    // Weights by columns, shifts, the extra variance that nothing asks for, the noise. How a slope is shared by both features depends on the difference of their weights, which is rounding times residuals; the sum does not.
    let largest = slope.iter().fold(0.0_f64, |most, s| most.max(s.abs()));
    for (both, single) in [([0, 1], 0), ([2, 3], 1), ([4, 5], 2)] {
        let sum: f64 = both.iter().map(|&k| slopes[k]).sum();
        assert_near(sum, slope[single], tolerance * largest);
    }
    assert_eq!((slopes[6], slope[3]), (0.0, 0.0));
    assert_near(slopes[7], slope[4], tolerance * slope[4].abs());
    let (features, start) = (two.clone_box(), Box::new(likelihood.clone()));
    let fit =
        fit_low_rank(features, start, &data, None, &options, None, &mut |_, _| Signal::Continue).unwrap();
    // The first step at least; later ones lead the two apart.
    assert!(fit.triangular_solves > 0 && fit.largest_jitter == 0.0, "{fit:?}");
    assert_eq!(fit.steps, 20);
    assert!(fit.objective > of_two && fit.posterior.latent(x.as_ref()).is_ok());
}

#[test]
fn what_no_triangle_holds_is_jittered_in_training_told_and_refused_by_a_refit() {
    // Equal features of 10¹⁸ under noise 1.
    let x = Mat::from_fn(6, 2, |i, _| 1e18 * (1.0 + i as f64));
    let y = Mat::from_fn(6, 1, |i, _| i as f64);
    let observed = ObservedRows { targets: y.as_ref(), noise: None, weights: None, offsets: None };
    let data = LowRankData { inputs: x.as_ref(), observed };
    let likelihood = || Box::new(Gaussian::new(1.0, 0.0));
    let options = LowRankOptions { steps: 2, ..LowRankOptions::default() };
    let fit =
        fit_low_rank(own_rows(2), likelihood(), &data, None, &options, None, &mut |_, _| Signal::Continue)
            .unwrap();
    assert!(fit.largest_jitter > 0.0 && fit.objective.is_finite());
    assert_eq!((fit.steps, fit.triangular_solves), (2, 0));
    let message = refit(own_rows(2), likelihood(), &data, &options).unwrap_err().to_string();
    assert!(message.contains("not positive definite"), "{message}");
}
