//! The golden example of section 13.

use super::maps::own_rows;
use super::*;
use posterior_likelihoods::Gaussian;
use posterior_optim::Parameters;

#[test]
fn the_golden_evidence_and_its_gradients() {
    let (phi, k) = (features(), squares(&features()));
    let rows = ScaledRows::new(phi.clone(), targets(), vec![NOISE; 4], k);
    let evidence = solved(&rows, 0.0);
    assert_near(evidence.value, -3.677904500464514, 1e-12);
    assert_near(evidence.weights()[(0, 0)], 1.056841092375, 1e-12);
    assert_near(evidence.weights()[(1, 0)], -0.025888929619, 1e-12);
    // Λ = s W, so log det Λ = log det W + r log s.
    assert_near(evidence.factor().log_determinant() + 2.0 * NOISE.ln(), 1.4735723692, 1e-10);
    let gradient = evidence.clone().gradient();
    let block = gradient.block(&rows);
    let expected = [
        [-2.079776285968, -0.091045823600],
        [1.688941342687, -0.371534256482],
        [1.464057672448, 0.445828325568],
        [3.528426559894, -0.205448243246],
    ];
    for i in 0..4 {
        for j in 0..2 {
            assert_near(block.features[(j, i)], expected[i][j], 1e-11);
        }
    }
    assert_near(block.noise.iter().sum(), -0.402146403119, 1e-11);
    assert_near(evidence.stable_value(block.residual_squares), evidence.value, 1e-13);
    let mut triangular = TriangularSums::new(2, 1);
    triangular.add(&rows);
    let again = triangular.solve(0.0).unwrap();
    assert_near(again.value, evidence.value, 1e-12);
    assert!((again.weights() - evidence.weights()).norm_max() < 1e-13);
}

#[test]
fn the_golden_correction() {
    let (phi, k) = (features(), squares(&features()));
    let largest = k.iter().copied().fold(0.0, f64::max);
    let rows = ScaledRows::new(phi.clone(), targets(), vec![NOISE; 4], vec![largest; 4]);
    let evidence = solved(&rows, 1.0);
    assert_near(evidence.value, -12.727904500465, 1e-11);
    // What the penalty adds to the gradient, with the largest variance's own row.
    let block = evidence.gradient().block(&rows);
    let plain = solved(&rows, 0.0).gradient().block(&rows);
    let of_largest: f64 = block.variances.iter().sum();
    let expected = [[10.0, 5.0], [-3.0, 8.0], [-6.0, 36.0], [7.0, 4.0]];
    for i in 0..4 {
        for j in 0..2 {
            let own = if i == 2 { 2.0 * of_largest * phi[(j, i)] } else { 0.0 };
            assert_near(block.features[(j, i)] - plain.features[(j, i)] + own, expected[i][j], 1e-10);
        }
    }
    assert_near(block.noise.iter().sum::<f64>() - plain.noise.iter().sum::<f64>(), 90.5, 1e-10);
    // The diagonal correction: the same model under the noise s + c.
    let noise: Vec<f64> = k.iter().map(|k| NOISE + largest - k).collect();
    let corrected = solved(&ScaledRows::new(phi, targets(), noise, k), 0.0);
    assert_near(corrected.value, -4.675926881918, 1e-11);
    assert_near(corrected.weights()[(0, 0)], 0.849950358924, 1e-11);
    assert_near(corrected.weights()[(1, 0)], -0.141390776355, 1e-11);
}

#[test]
fn the_golden_bound_and_its_gradients() {
    let (phi, k) = (features(), squares(&features()));
    let q = distribution();
    assert_near(q.divergence(), 0.844437912434, 1e-12);
    let likelihood = Gaussian::new(NOISE, 0.0);
    let term = DataTerm::new(&q, &likelihood, 0.0);
    let y = targets();
    let rows = ObservedRows { targets: y.as_ref(), noise: None, weights: None, offsets: None };
    let mut buffers = DataTermBuffers::default();
    let slopes = term.slopes(phi.as_ref(), Mat::zeros(4, 1), &k, &rows, 1.0, &mut buffers);
    assert_near(slopes.value - q.divergence(), -12.325021859265, 1e-11);
    let mean = slopes.of_q.of_mean(&q, 1.0);
    assert_near(mean[(0, 0)], 14.96, 5e-3);
    assert_near(mean[(1, 0)], 4.49, 5e-3);
    let of_root = &slopes.of_q.of_roots(&q, 1.0)[0];
    for ((i, j), expected) in [((0, 0), -6.90), ((1, 0), -4.09), ((1, 1), -7.86)] {
        assert_near(of_root[(i, j)], expected, 5e-3);
    }
    assert_near(slopes.parameters[0], 104.10, 5e-3);
    let of_variances = slopes.of_prior_variances();
    let adjoint = term.features_adjoint(&slopes, &mut buffers);
    let expected = [[-1.25, -2.10], [0.23, -1.15], [0.58, 1.70], [0.05, -2.03]];
    for i in 0..4 {
        for j in 0..2 {
            // The prior variance is |φ|².
            let all = adjoint[(j, i)] + 2.0 * of_variances[i] * phi[(j, i)];
            assert_near(all, expected[i][j], 5e-3);
        }
    }
}

/// The golden rows as inputs that are their own features.
fn inputs() -> Mat<f64> {
    features().transpose().to_owned()
}

/// `φ* = (0.5, -0.4)`.
fn place() -> Mat<f64> {
    Mat::from_fn(1, 2, |_, j| [0.5, -0.4][j])
}

/// Mean and variance of what is observed at `φ*`.
fn predicted(posterior: &LowRankPosterior) -> (f64, f64) {
    let WeightMarginals { mean, variance } = posterior.latent(place().as_ref()).unwrap();
    (mean[(0, 0)], variance[(0, 0)] + posterior.likelihood().shared_noise_variance().unwrap())
}

fn observed(y: &Mat<f64>) -> ObservedRows<'_> {
    ObservedRows { targets: y.as_ref(), noise: None, weights: None, offsets: None }
}

#[test]
fn the_golden_predictions() {
    let (x, y) = (inputs(), targets());
    let data = LowRankData { inputs: x.as_ref(), observed: observed(&y) };
    let refitted = |options: &LowRankOptions| {
        predicted(&refit(own_rows(2), Box::new(Gaussian::new(NOISE, 0.0)), &data, options).unwrap())
    };
    let (mean, variance) = refitted(&LowRankOptions::default());
    assert_near(mean, 0.538776118035, 1e-12);
    assert_near(variance, 0.123888837977, 1e-12);
    let corrected = LowRankOptions {
        correction: Correction::Uniform,
        rest_as_noise: true,
        corrected: true,
        ..LowRankOptions::default()
    };
    let (mean, variance) = refitted(&corrected);
    assert_near(mean, 0.481531490004, 1e-12);
    assert_near(variance, 1.225216722215, 1e-12);
}

/// m and L of the example.
fn distribution() -> WeightDistribution {
    let root = Mat::from_fn(2, 2, |i, j| [[0.5, 0.0], [0.1, 0.4]][i][j]);
    WeightDistribution::new(Mat::from_fn(2, 1, |i, _| [0.2, -0.1][i]), vec![root]).unwrap()
}

#[test]
fn the_golden_predictions_of_the_bound() {
    // 1.48 is the largest |φ|², so that c* = 1.07.
    for (rest, expected) in
        [(ResidualVariance::None, 0.1697), (ResidualVariance::Uniform { largest: 1.48 }, 1.2397)]
    {
        let likelihood = Box::new(Gaussian::new(NOISE, 0.0));
        let posterior = LowRankPosterior::new(own_rows(2), distribution(), likelihood, rest).unwrap();
        let (mean, variance) = predicted(&posterior);
        assert_near(mean, 0.14, 1e-15);
        assert_near(variance, expected, 1e-15);
    }
}

#[test]
fn the_golden_bound_with_its_penalty() {
    let (x, y) = (inputs(), targets());
    let data = LowRankData { inputs: x.as_ref(), observed: observed(&y) };
    let likelihood = Gaussian::new(NOISE, 0.0);
    let mut theta = likelihood.unconstrained();
    distribution().unconstrained_into(&mut theta);
    let at = |trace_weight: f64| {
        let training = Training::Batches { size: 4, power: 0.0, divergence_weight: 1.0 };
        let options = LowRankOptions {
            training,
            correction: Correction::Uniform,
            trace_weight,
            ..LowRankOptions::default()
        };
        4.0 * objective(&*own_rows(2), &likelihood, &data, &options, &theta).unwrap().0
    };
    assert_near(at(1.0), -21.375021859265, 1e-11);
    assert_near(at(0.0), -12.325021859265, 1e-11);
}

#[test]
fn features_times_the_dual_weights_are_the_weights() {
    // Φᵀα = μ, with α the slope in the prior means.
    for (phi, y) in [(features(), targets()), (normal(3, 8, "phi"), normal(8, 1, "y"))] {
        let k = squares(&phi);
        let rows = ScaledRows::new(phi.clone(), y.clone(), vec![NOISE; y.nrows()], k);
        let evidence = solved(&rows, 0.0);
        let alpha = evidence.clone().gradient().block(&rows).means;
        assert!((&phi * &alpha - evidence.weights()).norm_max() < 1e-13);
        // And α is what the dense system has.
        let covariance = phi.transpose() * &phi + NOISE * Mat::<f64>::identity(y.nrows(), y.nrows());
        assert!((covariance.partial_piv_lu().inverse() * y - alpha).norm_max() < 1e-11);
    }
}
