//! Products with the curvature and its largest eigenvalue.

use super::features::Opaque;
use super::{Problem, assert_matrix, assert_near, normal};
use crate::LinearError;
use crate::features::{DenseFeatures, Indices};
use crate::gauss_newton::{PowerOptions, gauss_newton_product, largest_eigenvalue};
use faer::{Mat, Side};
use posterior_linalg::random::Streams;

#[test]
fn the_product_is_that_of_the_dense_curvature() {
    let problem = Problem::new(7, 5);
    let map = Opaque(DenseFeatures::new(problem.phi.clone(), 2).unwrap());
    let v = normal(5, 3, "v");
    let expected = problem.m() * &v;
    for chunk in [0, 1, 3, 7, 100] {
        let product = gauss_newton_product(&map, &Indices(7), &problem.noise, v.as_ref(), chunk).unwrap();
        assert_matrix(product.as_ref(), expected.as_ref(), 1e-12);
    }
    let short = normal(4, 1, "v");
    assert!(gauss_newton_product(&map, &Indices(7), &problem.noise, short.as_ref(), 7).is_err());
    assert!(gauss_newton_product(&map, &Indices(6), &problem.noise, v.as_ref(), 7).is_err());
}

#[test]
fn power_iteration_finds_the_largest_eigenvalue() {
    let problem = Problem::new(7, 5);
    let m = problem.m();
    let eigenvalues = m.self_adjoint_eigenvalues(Side::Lower).unwrap();
    let options = PowerOptions { steps: 5_000, tolerance: 1e-7 };
    let found = largest_eigenvalue(5, |v| Ok(&m * v), options, Streams::new(1)).unwrap();
    assert!(found.converged && found.value <= eigenvalues[4] * (1.0 + 1e-12), "{found:?}");
    assert_near(found.value, eigenvalues[4], found.residual);
    // A few steps: less sure, and said so.
    let options = PowerOptions { steps: 2, tolerance: 1e-12 };
    let found = largest_eigenvalue(5, |v| Ok(&m * v), options, Streams::new(1)).unwrap();
    assert!(!found.converged && found.steps == 2 && found.value < eigenvalues[4]);
    assert!(eigenvalues.iter().any(|l| (l - found.value).abs() <= found.residual));
}

#[test]
fn power_iteration_of_nothing_and_of_what_is_not_finite() {
    let options = PowerOptions::default();
    let zero = largest_eigenvalue(3, |v| Ok(v * faer::Scale(0.0)), options, Streams::new(1)).unwrap();
    assert!(zero.converged && zero.value == 0.0);
    let nan = |v: faer::MatRef<'_, f64>| Ok(v * faer::Scale(f64::NAN));
    assert!(matches!(
        largest_eigenvalue(3, nan, options, Streams::new(1)),
        Err(LinearError::Diverged { step: 0, .. })
    ));
    assert!(matches!(
        largest_eigenvalue(0, |v| Ok(v.to_owned()), options, Streams::new(1)),
        Err(LinearError::Empty { .. })
    ));
    let wrong = |_: faer::MatRef<'_, f64>| Ok(Mat::<f64>::zeros(2, 1));
    assert!(largest_eigenvalue(3, wrong, options, Streams::new(1)).is_err());
}
