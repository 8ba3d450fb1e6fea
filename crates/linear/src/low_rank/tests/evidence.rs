//! The exact evidence against dense formulas and finite differences.

use super::*;
use posterior_optim::check;

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
        let again = triangular.solve(0.0).unwrap();
        assert_near(again.value, dense, 1e-11 * dense.abs());
        assert!((again.weights() - evidence.weights()).norm_max() < 1e-11);
    }
}

#[test]
fn triangles_say_all_that_squares_say() {
    let (n, m, weight) = (9, 3, 0.6);
    let (phi, y) = (normal(m, n, "phi"), normal(n, 2, "y"));
    let noise: Vec<f64> = (0..n).map(|i| 0.1 + 0.05 * i as f64).collect();
    let variances: Vec<f64> = squares(&phi).iter().map(|k| k + 1.3).collect();
    let rows = ScaledRows::new(phi, y, noise, variances);
    let mut triangles = TriangularSums::new(m, 2);
    triangles.add(&rows);
    let (squared, triangular) = (solved(&rows, weight), triangles.solve(weight).unwrap());
    assert!(squared.is_sound() && !squared.by_triangles() && triangular.is_sound());
    assert_near(triangular.value, squared.value, 1e-12 * squared.value.abs());
    let (a, b) = (squared.posterior().unwrap(), triangular.posterior().unwrap());
    assert!((&a.roots()[0] - &b.roots()[0]).norm_max() < 1e-13 && (a.mean() - b.mean()).norm_max() < 1e-12);
    let (a, b) = (squared.gradient(), triangular.gradient());
    assert!((a.of_psi() - b.of_psi()).norm_max() < 1e-11);
    assert!((a.of_projected() - b.of_projected()).norm_max() < 1e-12);
    let scale = a.outer().norm_max();
    assert!((a.outer() - b.outer()).norm_max() < 1e-12 * scale);
    let (a, b) = (a.block(&rows), b.block(&rows));
    assert!((&a.features - &b.features).norm_max() < 1e-12 * a.features.norm_max());
    (0..n).for_each(|i| assert_near(b.noise[i], a.noise[i], 1e-11 * a.noise[i].abs().max(1.0)));
    assert_eq!(a.variances, b.variances);
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
    let (exact, stable) =
        (triangular.solve(0.0).unwrap().value, evidence.stable_value(block.residual_squares));
    assert!((stable / exact - 1.0).abs() < 1e-11, "{stable} {exact}");
}
