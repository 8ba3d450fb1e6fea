//! The golden numbers of spec `deep_kernel_decomposition`, section 13, dense formulas, and finite differences.

use super::*;
use faer::Mat;
use faer::linalg::solvers::DenseSolveCore;
use posterior_likelihoods::{
    Bernoulli, Categorical, Gaussian, Likelihood, Link, NegativeBinomial, Poisson, StudentT,
};
use posterior_linalg::cholesky::JitterPolicy;
use posterior_linalg::random::Streams;
use posterior_optim::{Parameters, check};
use rand_distr::{Distribution, StandardNormal};

const NOISE: f64 = 0.1;

/// Φᵀ of the golden example.
fn features() -> Mat<f64> {
    let phi = [[1.0, 0.5], [-0.3, 0.8], [0.2, -1.2], [0.7, 0.4]];
    Mat::from_fn(2, 4, |j, i| phi[i][j])
}

fn targets() -> Mat<f64> {
    Mat::from_fn(4, 1, |i, _| [0.9, -0.2, 0.4, 1.1][i])
}

/// `|φ|²` of each row.
fn squares(features: &Mat<f64>) -> Vec<f64> {
    (0..features.ncols()).map(|i| features.col(i).squared_norm_l2()).collect()
}

fn solved(rows: &ScaledRows, trace_weight: f64) -> SolvedEvidence {
    let mut sums = EvidenceSums::new(rows.features.nrows(), rows.residuals.ncols());
    sums.add(rows);
    sums.solve(trace_weight, JitterPolicy::NONE).unwrap()
}

fn normal(rows: usize, columns: usize, name: &str) -> Mat<f64> {
    let mut rng = Streams::new(5).stream(name);
    Mat::from_fn(rows, columns, |_, _| StandardNormal.sample(&mut rng))
}

fn assert_near(found: f64, expected: f64, tolerance: f64) {
    assert!((found - expected).abs() <= tolerance, "{found} {expected}");
}

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
    let (value, weights) = triangular.solve();
    assert_near(value, evidence.value, 1e-12);
    assert!((weights - evidence.weights()).norm_max() < 1e-13);
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
    let root = Mat::from_fn(2, 2, |i, j| [[0.5, 0.0], [0.1, 0.4]][i][j]);
    let q = WeightDistribution::new(Mat::from_fn(2, 1, |i, _| [0.2, -0.1][i]), vec![root]).unwrap();
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

#[test]
fn the_evidence_is_the_dense_one_for_more_rows_than_features_and_for_fewer() {
    for (n, m) in [(9, 3), (4, 7)] {
        let (phi, y) = (normal(m, n, "phi"), normal(n, 2, "y"));
        let noise: Vec<f64> = (0..n).map(|i| 0.1 + 0.05 * i as f64).collect();
        let mut covariance = phi.transpose() * &phi;
        (0..n).for_each(|i| covariance[(i, i)] += noise[i]);
        let log_det: f64 =
            covariance.self_adjoint_eigenvalues(faer::Side::Lower).unwrap().iter().map(|e| e.ln()).sum();
        let inverse = covariance.partial_piv_lu().inverse();
        let fit: f64 = (0..2).map(|t| y.col(t).transpose() * &inverse * y.col(t)).sum();
        let dense = -0.5 * (2.0 * (n as f64 * (2.0 * std::f64::consts::PI).ln() + log_det) + fit);
        let rows = ScaledRows::new(phi.clone(), y.clone(), noise.clone(), squares(&phi));
        let evidence = solved(&rows, 0.0);
        assert_near(evidence.value, dense, 1e-11 * dense.abs());
        // Blocks do not show, in either form.
        let (mut sums, mut triangular) = (EvidenceSums::new(m, 2), TriangularSums::new(m, 2));
        for part in [0..2, 2..n] {
            let phi = phi.subcols(part.start, part.len()).to_owned();
            let y = y.subrows(part.start, part.len()).to_owned();
            let k = squares(&phi);
            let rows = ScaledRows::new(phi, y, noise[part].to_vec(), k);
            sums.add(&rows);
            triangular.add(&rows);
        }
        assert_near(sums.solve(0.0, JitterPolicy::NONE).unwrap().value, dense, 1e-11 * dense.abs());
        assert_near(triangular.solve().0, dense, 1e-11 * dense.abs());
        assert!((triangular.solve().1 - evidence.weights()).norm_max() < 1e-11);
    }
}

#[test]
fn triangles_go_where_squares_lose_positive_definiteness() {
    // Two directions of which one is 1e-9 of the other, noise 1e-12: Ψ holds 1e12 and 1e-6 and rounds the second away.
    let n = 50;
    let base = normal(n, 2, "directions");
    let phi = Mat::from_fn(2, n, |j, i| base[(i, 0)] + if j == 1 { 1e-9 * base[(i, 1)] } else { 0.0 });
    let y = Mat::from_fn(n, 1, |i, _| base[(i, 0)]);
    let k = squares(&phi);
    let rows = ScaledRows::new(phi, y, vec![1e-12; n], k);
    let mut triangular = TriangularSums::new(2, 1);
    triangular.add(&rows);
    let (value, weights) = triangular.solve();
    // The sum of both weights is 1 up to the prior's pull.
    assert_near(weights[(0, 0)] + weights[(1, 0)], 1.0, 1e-9);
    assert!(value.is_finite() && value > 0.0, "{value}");
}

#[test]
fn gradients_of_evidence_and_penalty_are_finite_differences() {
    let (n, m) = (7, 3);
    let (phi, y) = (normal(m, n, "phi"), normal(n, 2, "y"));
    let noise: Vec<f64> = (0..n).map(|i| 0.2 + 0.1 * i as f64).collect();
    let variances: Vec<f64> = (0..n).map(|i| 9.0 + i as f64).collect();
    for weight in [0.0, 0.4, 1.0] {
        let point: Vec<f64> =
            [(0..n).flat_map(|i| phi.col_as_slice(i).to_vec()).collect(), noise.clone(), variances.clone()]
                .concat();
        let rows = |point: &[f64]| {
            let phi = Mat::from_fn(m, n, |j, i| point[i * m + j]);
            ScaledRows::new(phi, y.clone(), point[m * n..m * n + n].to_vec(), point[m * n + n..].to_vec())
        };
        let numeric = check::gradient(|point| solved(&rows(point), weight).value, &point);
        let gradient = solved(&rows(&point), weight).gradient();
        let block = gradient.block(&rows(&point));
        let exact: Vec<f64> = [
            (0..n).flat_map(|i| block.features.col_as_slice(i).to_vec()).collect(),
            block.noise,
            block.variances,
        ]
        .concat();
        check::assert_close(&exact, &numeric, 1e-6, 1e-6);
        let outer = &block.features * phi.transpose();
        let found = gradient.outer();
        for j in 0..m {
            for i in j..m {
                assert_near(found[(i, j)], outer[(i, j)], 1e-10);
            }
        }
    }
}

#[test]
fn one_natural_step_on_all_rows_is_the_posterior_where_the_bound_is_the_evidence() {
    let (phi, y) = (normal(4, 9, "phi"), normal(9, 1, "y"));
    let k = squares(&phi);
    let likelihood = Gaussian::new(NOISE, 0.0);
    let rows = ObservedRows { targets: y.as_ref(), noise: None, weights: None, offsets: None };
    let mut q = WeightDistribution::prior(4, 1, true);
    let mut buffers = DataTermBuffers::default();
    let slopes = {
        let term = DataTerm::new(&q, &likelihood, 0.0);
        term.slopes(phi.as_ref(), Mat::zeros(9, 1), &k, &rows, 1.0, &mut buffers)
    };
    natural_step(&mut q, &slopes.of_q, 1.0).unwrap();
    let evidence = solved(&ScaledRows::new(phi.clone(), y.clone(), vec![NOISE; 9], k.clone()), 0.0);
    let posterior = evidence.posterior().unwrap();
    assert!((q.mean() - posterior.mean()).norm_max() < 1e-11);
    assert!((&q.roots()[0] - &posterior.roots()[0]).norm_max() < 1e-11);
    let term = DataTerm::new(&q, &likelihood, 0.0);
    let bound = term.value(phi.as_ref(), Mat::zeros(9, 1), &k, &rows, &mut buffers) - q.divergence();
    assert_near(bound, evidence.value, 1e-10);
    // The average over all batches of two rows is the whole.
    let mut sum = 0.0;
    for i in 0..9 {
        for j in 0..i {
            let phi = Mat::from_fn(4, 2, |a, b| phi[(a, [i, j][b])]);
            let y = Mat::from_fn(2, 1, |b, _| y[([i, j][b], 0)]);
            let rows = ObservedRows { targets: y.as_ref(), ..rows };
            let k = [k[i], k[j]];
            sum += term.slopes(phi.as_ref(), Mat::zeros(2, 1), &k, &rows, 4.5, &mut buffers).value / 36.0;
        }
    }
    assert_near(sum - q.divergence(), bound, 1e-10);
}

/// A likelihood, and targets of it made of normal numbers.
type Case = (Box<dyn Likelihood>, fn(f64) -> f64);

#[test]
fn slopes_of_every_power_and_likelihood_are_finite_differences() {
    let (n, m) = (5, 3);
    let (phi, z) = (normal(m, n, "phi"), normal(n, 1, "y"));
    let classes = || Box::new(Categorical::new(3).unwrap());
    let class = |z: f64| (z.abs() * 2.0).floor().min(2.0);
    // Whether functions share one covariance of their weights.
    let cases: [(Case, bool); 7] = [
        ((Box::new(Gaussian::new(0.3, 0.0)), |z| z), true),
        ((Box::new(Bernoulli::new(1, Link::Logit).unwrap()), |z| f64::from(u8::from(z > 0.0))), true),
        ((Box::new(Poisson::new(1).unwrap()), |z| (z.abs() * 3.0).floor()), true),
        ((Box::new(NegativeBinomial::new(1.7).unwrap()), |z| (z.abs() * 3.0).floor()), true),
        ((Box::new(StudentT::new(0.4, 4.0).unwrap()), |z| z), true),
        ((classes(), class), true),
        ((classes(), class), false),
    ];
    for ((likelihood, of), shared) in cases {
        let latents = likelihood.outputs();
        let y = Mat::from_fn(n, 1, |i, _| of(z[(i, 0)]));
        let rows = ObservedRows { targets: y.as_ref(), noise: None, weights: None, offsets: None };
        for power in [0.0, 0.5, 1.0] {
            let mut q = WeightDistribution::prior(m, latents, shared);
            let start: Vec<f64> = (0..q.unconstrained_len()).map(|i| 0.3 - 0.11 * (i % 9) as f64).collect();
            let own = likelihood.unconstrained().len();
            let point: Vec<f64> = [
                start,
                (0..n).flat_map(|i| phi.col_as_slice(i).to_vec()).collect(),
                likelihood.unconstrained(),
            ]
            .concat();
            let length = q.unconstrained_len();
            let mut value = |point: &[f64]| {
                let mut q = WeightDistribution::prior(m, latents, shared);
                let mut likelihood = likelihood.clone_box();
                q.set_unconstrained(&point[..length]);
                likelihood.set_unconstrained(&point[length + m * n..]);
                let phi = Mat::from_fn(m, n, |j, i| point[length + i * m + j]);
                let term = DataTerm::new(&q, &*likelihood, power);
                let k = squares(&phi);
                let mut buffers = DataTermBuffers::default();
                1.5 * term.value(phi.as_ref(), Mat::zeros(n, latents), &k, &rows, &mut buffers)
                    - 0.7 * q.divergence()
            };
            let numeric = check::gradient(&mut value, &point);
            q.set_unconstrained(&point[..length]);
            let term = DataTerm::new(&q, &*likelihood, power);
            let mut buffers = DataTermBuffers::default();
            let slopes =
                term.slopes(phi.as_ref(), Mat::zeros(n, latents), &squares(&phi), &rows, 1.5, &mut buffers);
            let mut exact = Vec::new();
            slopes.of_q.unconstrained_into(&q, 0.7, 1.0, &mut exact);
            let h = slopes.of_prior_variances();
            let adjoint = term.features_adjoint(&slopes, &mut buffers);
            for i in 0..n {
                exact.extend((0..m).map(|j| adjoint[(j, i)] + 2.0 * h[i] * phi[(j, i)]));
            }
            exact.extend(likelihood.chain(&likelihood.unconstrained(), &slopes.parameters));
            assert_eq!(exact.len(), length + m * n + own);
            check::assert_close(&exact, &numeric, 2e-5, 2e-5);
        }
    }
}

/// `log N(y; 0, Σ)` with the log determinant that it has on the way.
fn dense_log_density(covariance: &Mat<f64>, y: &Mat<f64>) -> f64 {
    let eigenvalues = covariance.self_adjoint_eigenvalues(faer::Side::Lower).unwrap();
    let log_det: f64 = eigenvalues.iter().map(|e| e.ln()).sum();
    let inverse = covariance.partial_piv_lu().inverse();
    let fit = y.col(0).transpose() * &inverse * y.col(0);
    -0.5 * (y.nrows() as f64 * (2.0 * std::f64::consts::PI).ln() + log_det + fit)
}

#[test]
fn the_penalty_bounds_the_evidence_of_every_corrected_process() {
    let (n, m) = (6, 2);
    let (phi, y) = (normal(m, n, "phi"), normal(n, 1, "y"));
    for trial in 0..20 {
        // Any positive semi-definite C, not only a diagonal one.
        let root = normal(n, 3, &format!("correction {trial}"));
        let correction = &root * root.transpose();
        let mut covariance = phi.transpose() * &phi + &correction;
        (0..n).for_each(|i| covariance[(i, i)] += NOISE);
        let variances = (0..n).map(|i| squares(&phi)[i] + correction[(i, i)]).collect();
        let rows = ScaledRows::new(phi.clone(), y.clone(), vec![NOISE; n], variances);
        let (bound, exact) = (solved(&rows, 1.0).value, dense_log_density(&covariance, &y));
        assert!(bound <= exact + 1e-10, "{bound} {exact}");
    }
}

#[test]
fn the_expected_evidence_is_highest_for_a_kernel_of_one_function() {
    // Observations scatter by s around one function f: of all covariances f fᵀ + s I is best, whatever rank was allowed.
    let n = 5;
    let f = normal(n, 1, "function");
    let expected = |sigma: &Mat<f64>| {
        let inverse = sigma.partial_piv_lu().inverse();
        let trace: f64 = (0..n).map(|i| inverse[(i, i)]).sum();
        dense_log_density(sigma, &f) - 0.5 * NOISE * trace
    };
    let with_noise = |k: Mat<f64>| Mat::from_fn(n, n, |i, j| k[(i, j)] + if i == j { NOISE } else { 0.0 });
    let best = expected(&with_noise(&f * f.transpose()));
    for trial in 0..100 {
        let phi = normal(n, 1 + trial % 4, &format!("alternative {trial}"));
        let near = &f * f.transpose() + 0.1 * (&phi * phi.transpose());
        assert!(expected(&with_noise(&phi * phi.transpose())) < best);
        assert!(expected(&with_noise(near)) < best);
    }
}

#[test]
fn the_correction_regularises_and_does_not_bound_the_evidence() {
    // Features (y, √(M - y²)) have constant length, hence no penalty, and hold the targets: the evidence grows without end as the noise falls.
    let n = 8;
    let y = normal(n, 1, "y");
    let most = (0..n).map(|i| y[(i, 0)].powi(2)).fold(0.0, f64::max);
    let phi = Mat::from_fn(
        2,
        n,
        |j, i| if j == 0 { y[(i, 0)] } else { (most - y[(i, 0)].powi(2)).max(0.0).sqrt() },
    );
    let at = |noise: f64| {
        solved(&ScaledRows::new(phi.clone(), y.clone(), vec![noise; n], vec![most; n]), 1.0).value
    };
    let values: Vec<f64> = [1e-2, 1e-4, 1e-6].map(at).to_vec();
    // By ½ (n - r) log 100 = 13.8 for each step.
    assert!(values.windows(2).all(|w| w[1] - w[0] > 12.0 && w[1] - w[0] < 15.0), "{values:?}");

    // Waves in pairs have constant length, too: their correction is none.
    let frequencies = normal(3, 1, "frequencies");
    let x = normal(n, 1, "x");
    let waves = Mat::from_fn(6, n, |j, i| {
        let angle = frequencies[(j / 2, 0)] * x[(i, 0)];
        (if j % 2 == 0 { angle.cos() } else { angle.sin() }) / 3f64.sqrt()
    });
    let k = squares(&waves);
    assert!(k.iter().all(|k| (k - 1.0).abs() < 1e-14));
    let rows = ScaledRows::new(waves, y.clone(), vec![NOISE; n], vec![1.0; n]);
    assert_near(solved(&rows, 1.0).value, solved(&rows, 0.0).value, 1e-11);
}

#[test]
fn single_precision_features_lose_nothing_where_sums_are_in_doubles() {
    // 20,000 rows, little noise: the condition of W is that of n / s.
    let (n, m) = (20_000, 16);
    let base = normal(m, n, "features");
    let y = normal(n, 1, "y");
    let single = Mat::from_fn(m, n, |j, i| f64::from(base[(j, i)].tanh() as f32));
    let rows = ScaledRows::new(single.clone(), y.clone(), vec![1e-6; n], squares(&single));
    let evidence = solved(&rows, 0.0);
    let block = evidence.clone().gradient().block(&rows);
    let mut triangular = TriangularSums::new(m, 1);
    for start in (0..n).step_by(4000) {
        let phi = single.subcols(start, 4000).to_owned();
        let k = squares(&phi);
        triangular.add(&ScaledRows::new(phi, y.subrows(start, 4000).to_owned(), vec![1e-6; 4000], k));
    }
    let (exact, stable) = (triangular.solve().0, evidence.stable_value(block.residual_squares));
    assert!((stable / exact - 1.0).abs() < 1e-11, "{stable} {exact}");
}
