//! Solves against dense factorisations, estimates against eigenvalues.

use super::*;
use crate::cholesky::{Cholesky, JitterPolicy};
use crate::operator::{Dense, LinearOperator};
use crate::random::Streams;
use faer::{Mat, Side};
use rand_distr::{Distribution, StandardNormal};

/// A squared-exponential or Matérn-3/2 kernel matrix on random points in the plane.
fn kernel_matrix(n: usize, lengthscale: f64, matern: bool, seed: u64) -> Mat<f64> {
    let mut rng = Streams::new(seed).stream("test/points");
    let x = Mat::<f64>::from_fn(n, 2, |_, _| StandardNormal.sample(&mut rng));
    Mat::from_fn(n, n, |i, j| {
        let q2 = ((x[(i, 0)] - x[(j, 0)]).powi(2) + (x[(i, 1)] - x[(j, 1)]).powi(2)) / lengthscale.powi(2);
        let s = (3.0 * q2).sqrt();
        if matern { (1.0 + s) * (-s).exp() } else { (-0.5 * q2).exp() }
    })
}

fn normal(rows: usize, columns: usize, seed: u64) -> Mat<f64> {
    let mut rng = Streams::new(seed).stream("test/normal");
    Mat::from_fn(rows, columns, |_, _| StandardNormal.sample(&mut rng))
}

fn run<T: crate::Real>(
    system: &System<'_, T>,
    preconditioner: &dyn Preconditioner<T>,
    targets: &Mat<T>,
    tolerance: f64,
) -> ConjugateGradientState<T> {
    let mut solver =
        ConjugateGradients::new(system, preconditioner, targets.as_ref(), None, tolerance, 0.0).unwrap();
    while solver.state().iteration < 2000 && solver.step().unwrap() {}
    solver.into_state()
}

fn shifted(matrix: &Mat<f64>, noise: &[f64]) -> Mat<f64> {
    Mat::from_fn(matrix.nrows(), matrix.nrows(), |i, j| matrix[(i, j)] + if i == j { noise[i] } else { 0.0 })
}

#[test]
fn conjugate_gradients_reach_the_direct_solution_with_every_preconditioner() {
    for matern in [false, true] {
        let dense = Dense::new(kernel_matrix(150, 0.7, matern, 1));
        let noise: Vec<f64> = (0..150).map(|i| 0.02 + 0.001 * (i % 7) as f64).collect();
        let system = System::new(&dense, noise.clone()).unwrap();
        let z = normal(150, 4, 2);
        let exact = Cholesky::of(shifted(&dense.matrix().to_owned(), &noise).as_ref(), JitterPolicy::NONE)
            .unwrap()
            .solve(z.as_ref());
        let mut iterations = Vec::new();
        for choice in [
            PreconditionerChoice::None,
            PreconditionerChoice::PivotedCholesky { rank: 60, relative_tolerance: 0.0 },
            PreconditionerChoice::Nystrom { rank: 60, seed: 3 },
        ] {
            let preconditioner = choice.build(&system).unwrap();
            let state = run(&system, &*preconditioner, &z, 1e-11);
            // ‖x - x⋆‖ <= ‖residual‖ / smallest eigenvalue, which is at least 0.02.
            let bound = 1e-11 * z.norm_l2() / 0.02;
            assert!((&state.solution - &exact).norm_l2() < 2.0 * bound, "{choice:?}");
            iterations.push(state.iteration);
        }
        assert!(iterations[1] < iterations[0] && iterations[2] < iterations[0], "{iterations:?}");
    }
}

#[test]
fn a_block_is_its_columns_one_by_one() {
    let dense = Dense::new(kernel_matrix(90, 0.5, true, 4));
    let system = System::uniform(&dense, 0.05).unwrap();
    let mut z = normal(90, 3, 5);
    z.as_mut().col_mut(1).fill(0.0);
    z.as_mut().col_mut(2).iter_mut().for_each(|v| *v *= 1e-6);
    let block = run(&system, &NoPreconditioner, &z, 1e-8);
    for j in 0..3 {
        let column = Mat::from_fn(90, 1, |i, _| z[(i, j)]);
        let alone = run(&system, &NoPreconditioner, &column, 1e-8);
        // The same arithmetic, but for the order of sums inside products of other widths: the residual rule allows 1e-8.
        let difference =
            (0..90).map(|i| (alone.solution[(i, 0)] - block.solution[(i, j)]).abs()).fold(0.0, f64::max);
        assert!(difference <= 1e-9 * column.norm_l2(), "column {j}: {difference}");
    }
    assert_eq!(block.solution.col(1).norm_l2(), 0.0);
}

#[test]
fn an_interrupted_solve_goes_on_bit_by_bit() {
    let dense = Dense::new(kernel_matrix(80, 0.5, true, 6));
    let system = System::uniform(&dense, 0.01).unwrap();
    let z = normal(80, 2, 7);
    let whole = run(&system, &NoPreconditioner, &z, 1e-9);
    let mut first = ConjugateGradients::new(&system, &NoPreconditioner, z.as_ref(), None, 1e-9, 0.0).unwrap();
    for _ in 0..10 {
        first.step().unwrap();
    }
    let state = first.into_state();
    let mut second =
        ConjugateGradients::resume(&system, &NoPreconditioner, z.as_ref(), state, 1e-9, 0.0).unwrap();
    while second.step().unwrap() {}
    assert_eq!(second.into_state(), whole);
}

#[test]
fn single_precision_ends_at_true_residuals() {
    // The attainable residual is about ε λ₁ / noise, 5e-6 here.
    let matrix = kernel_matrix(200, 0.3, false, 8);
    let dense = Dense::new(Mat::<f32>::from_fn(200, 200, |i, j| matrix[(i, j)] as f32));
    let system = System::uniform(&dense, 0.5f32).unwrap();
    let z = Mat::<f32>::from_fn(200, 2, |i, j| ((i * 3 + j) as f32).sin());
    let state = run(&system, &NoPreconditioner, &z, 1e-4);
    let residual = system.residual(state.solution.as_ref(), z.as_ref());
    for j in 0..2 {
        let relative = residual.col(j).norm_l2() / z.col(j).norm_l2();
        assert!(relative <= 1.001e-4, "{relative}");
    }
    // What the precision cannot give ends, too, and says where.
    let state = run(&system, &NoPreconditioner, &z, 1e-12);
    assert!(state.iteration < 2000);
    assert!(state.checked.iter().all(|c| *c < 1e-2));
}

#[test]
fn bad_systems_are_refused() {
    let dense = Dense::new(Mat::<f64>::identity(3, 3));
    assert!(matches!(System::new(&dense, vec![1.0; 2]), Err(SolveError::Shape { .. })));
    assert!(matches!(System::uniform(&dense, 0.0), Err(SolveError::Setting { .. })));
    assert!(System::uniform(&dense, f64::NAN).is_err());
    let system = System::uniform(&dense, 1.0).unwrap();
    let nan = Mat::from_fn(3, 1, |_, _| f64::NAN);
    assert!(ConjugateGradients::new(&system, &NoPreconditioner, nan.as_ref(), None, 1e-3, 0.0).is_err());
    let negative = Dense::new(Mat::<f64>::from_fn(3, 3, |i, j| if i == j { -5.0 } else { 0.0 }));
    let system = System::uniform(&negative, 1.0).unwrap();
    let z = normal(3, 1, 0);
    let mut solver =
        ConjugateGradients::new(&system, &NoPreconditioner, z.as_ref(), None, 1e-3, 0.0).unwrap();
    assert!(matches!(solver.step(), Err(SolveError::Indefinite { column: 0, .. })));
}

#[test]
fn woodbury_is_the_dense_inverse() {
    let factor = normal(40, 6, 9);
    let diagonal: Vec<f64> = (0..40).map(|i| 0.1 + i as f64 * 0.01).collect();
    let woodbury = LowRankPlusDiagonal::new(factor.clone(), &diagonal).unwrap();
    let dense =
        Cholesky::of(shifted(&(&factor * factor.transpose()), &diagonal).as_ref(), JitterPolicy::NONE)
            .unwrap();
    let v = normal(40, 3, 10);
    let mut out = Mat::zeros(40, 3);
    woodbury.apply(v.as_ref(), out.as_mut());
    assert!((&out - dense.solve(v.as_ref())).norm_max() < 1e-11);
    assert!((woodbury.log_determinant() - dense.log_determinant()).abs() < 1e-10);
}

/// In f32 the inverse of a large factor with little noise errs by a few units in the last place of `d⁻¹v`; Woodbury's identity with the factor itself lost
/// hundreds.
#[test]
fn a_low_rank_inverse_keeps_the_digits_of_single_precision() {
    let (n, rank, noise) = (2000, 20, 1e-3);
    let wide = normal(n, rank, 13);
    let exact = LowRankPlusDiagonal::new(wide.clone(), &vec![noise; n]).unwrap();
    let narrow = Mat::<f32>::from_fn(n, rank, |i, j| wide[(i, j)] as f32);
    let rounded = LowRankPlusDiagonal::new(narrow, &vec![noise as f32; n]).unwrap();
    // Vectors that L spans, where nearly everything cancels, and others.
    let v =
        Mat::<f64>::from_fn(
            n,
            2 * rank,
            |i, j| if j < rank { wide[(i, j)] } else { (i * j) as f64 % 7.0 - 3.0 },
        );
    let v32 = Mat::<f32>::from_fn(n, 2 * rank, |i, j| v[(i, j)] as f32);
    let (mut expected, mut found) = (Mat::<f64>::zeros(n, 2 * rank), Mat::<f32>::zeros(n, 2 * rank));
    exact.apply(v.as_ref(), expected.as_mut());
    rounded.apply(v32.as_ref(), found.as_mut());
    for j in 0..2 * rank {
        let error = (0..n).map(|i| (f64::from(found[(i, j)]) - expected[(i, j)]).powi(2)).sum::<f64>().sqrt();
        let scale = v.col(j).norm_l2() / noise * f64::from(f32::EPSILON);
        assert!(error < 4.0 * scale, "column {j}: {:.1} units", error / scale);
    }
}

#[test]
fn pivoted_cholesky_interpolates_its_pivots_and_knows_its_remainder() {
    let matrix = kernel_matrix(60, 0.6, true, 11);
    let partial = PivotedCholesky::new(&Dense::new(matrix.clone()), 15, 0.0).unwrap();
    let approximation = partial.factor() * partial.factor().transpose();
    for &p in partial.pivots() {
        for i in 0..60 {
            assert!((approximation[(i, p)] - matrix[(i, p)]).abs() < 1e-12);
        }
    }
    let remainder: f64 = (0..60).map(|i| matrix[(i, i)] - approximation[(i, i)]).sum();
    assert!((remainder - partial.remainder()).abs() < 1e-11 && remainder > 0.0);
    let difference = &matrix - &approximation;
    let smallest = difference.self_adjoint_eigenvalues(Side::Lower).unwrap()[0];
    assert!(smallest > -1e-12, "{smallest}");
    let whole = PivotedCholesky::new(&Dense::new(matrix.clone()), 60, 0.0).unwrap();
    assert!((whole.factor() * whole.factor().transpose() - &matrix).norm_max() < 1e-12);
    // Low rank is found out.
    let thin = normal(50, 4, 12);
    let found = PivotedCholesky::new(&Dense::new(&thin * thin.transpose()), 30, 0.0).unwrap();
    assert_eq!(found.pivots().len(), 4);
    assert!(PivotedCholesky::new(&Dense::new(Mat::from_fn(2, 2, |_, _| f64::NAN)), 1, 0.0).is_err());
}

#[test]
fn nystrom_is_exact_at_full_rank_and_never_above_the_matrix() {
    let matrix = kernel_matrix(50, 0.4, true, 13);
    let dense = Dense::new(matrix.clone());
    for rank in [10, 50] {
        let found = Nystrom::new(&dense, rank, 14).unwrap();
        let u = found.vectors();
        let scaled = Mat::from_fn(50, u.ncols(), |i, j| u[(i, j)] * found.eigenvalues()[j]);
        let difference = &matrix - &scaled * u.transpose();
        let eigenvalues = difference.self_adjoint_eigenvalues(Side::Lower).unwrap();
        assert!(eigenvalues[0] > -1e-10, "{eigenvalues:?}");
        if rank == 50 {
            assert!(eigenvalues[49] < 1e-9);
        }
        assert!((u.transpose() * u - Mat::<f64>::identity(u.ncols(), u.ncols())).norm_max() < 1e-8);
    }
}

#[test]
fn largest_eigenvalues() {
    let matrix = kernel_matrix(400, 0.8, true, 15);
    let exact = *matrix.self_adjoint_eigenvalues(Side::Lower).unwrap().last().unwrap();
    let dense = Dense::new(matrix);
    let whole = largest_eigenvalue(&dense, 60, 16).unwrap();
    assert!(whole <= exact * (1.0 + 1e-12) && whole > exact * 0.999, "{whole} {exact}");
    let subset = largest_eigenvalue_from_subset(&dense, 200, 17).unwrap();
    assert!((subset / exact - 1.0).abs() < 0.1, "{subset} {exact}");
    // A subset of everything is no estimate.
    let all = largest_eigenvalue_from_subset(&dense, 1000, 16).unwrap();
    assert!((all / exact - 1.0).abs() < 0.02);
}

#[test]
fn traces_and_log_determinants() {
    let matrix = shifted(&kernel_matrix(120, 0.5, true, 18), &[0.1; 120]);
    let dense = Dense::new(matrix.clone());
    let eigenvalues = matrix.self_adjoint_eigenvalues(Side::Lower).unwrap();
    let exact: f64 = eigenvalues.iter().map(|e| e.ln()).sum();
    let found = log_determinant(&dense, 60, 40, 19).unwrap();
    assert!((found.mean - exact).abs() < 4.0 * found.standard_error, "{found:?} {exact}");
    let trace_found = trace(&dense, 60, 20).unwrap();
    let trace_exact: f64 = eigenvalues.iter().sum();
    assert!((trace_found.mean - trace_exact).abs() < 4.0 * trace_found.standard_error);
    // With a diagonal matrix, random signs give every quadratic form exactly, and full Lanczos steps every function.
    let diagonal = Dense::new(Mat::from_fn(9, 9, |i, j| if i == j { 1.0 + i as f64 } else { 0.0 }));
    let exact: f64 = (1..=9).map(|e| (e as f64).ln()).sum();
    let found = log_determinant(&diagonal, 2, 9, 21).unwrap();
    assert!((found.mean - exact).abs() < 1e-10 && found.standard_error < 1e-10);
    // The Lanczos process on a multiple of the identity ends after one step.
    let multiple = trace_of_function(
        &Dense::new(Mat::from_fn(5, 5, |i, j| if i == j { 4.0 } else { 0.0 })),
        f64::sqrt,
        2,
        4,
        0,
    );
    assert!((multiple.unwrap().mean - 10.0).abs() < 1e-12);
    assert!(trace(&dense, 0, 0).is_err());
}

#[test]
fn systems_by_rows_and_whole_agree() {
    let dense = Dense::new(kernel_matrix(20, 0.5, true, 22));
    let system = System::new(&dense, (1..=20).map(f64::from).collect()).unwrap();
    let v = normal(20, 2, 23);
    let whole = system.multiply(v.as_ref());
    let mut some = Mat::zeros(3, 2);
    system.apply_rows(&[4, 19, 4], v.as_ref(), some.as_mut());
    for (a, i) in [4, 19, 4].into_iter().enumerate() {
        for j in 0..2 {
            assert!((some[(a, j)] - whole[(i, j)]).abs() < 1e-13);
        }
    }
    assert!(system.residual(v.as_ref(), whole.as_ref()).norm_max() < 1e-13);
}

#[test]
fn the_lanczos_basis_is_orthonormal_and_makes_the_matrix_tridiagonal() {
    let matrix = shifted(&kernel_matrix(60, 0.5, true, 24), &[0.05; 60]);
    let dense = Dense::new(matrix.clone());
    let mut lanczos = Lanczos::new(&dense, normal(60, 2, 25)).unwrap();
    for _ in 0..20 {
        assert!(lanczos.step());
    }
    let (coefficients, basis) = lanczos.into_parts();
    for (j, own) in coefficients.iter().enumerate() {
        let q = Mat::from_fn(60, 20, |i, p| basis[p][(i, j)]);
        let tridiagonal = Mat::<f64>::from_fn(20, 20, |a, b| match a.abs_diff(b) {
            0 => own.diagonal[a],
            1 => own.off[a.min(b)],
            _ => 0.0,
        });
        assert!((q.transpose() * &q - Mat::<f64>::identity(20, 20)).norm_max() < 1e-13);
        assert!((q.transpose() * &matrix * &q - tridiagonal).norm_max() < 1e-12);
    }
    assert!(Lanczos::new(&dense, normal(59, 1, 0)).is_err());
    assert!(Lanczos::new(&dense, Mat::from_fn(60, 1, |_, _| f64::NAN)).is_err());
    assert!(!Lanczos::new(&dense, Mat::<f64>::zeros(60, 1)).unwrap().step());
}

#[test]
fn the_lanczos_process_goes_on_where_an_invariant_subspace_ends_it() {
    // Two blocks that do not know of each other: from within the first nothing leads to the second.
    let block = shifted(&kernel_matrix(6, 0.5, true, 26), &[0.05; 6]);
    let dense = Dense::new(Mat::<f64>::from_fn(12, 12, |i, j| {
        if i / 6 == j / 6 { block[(i % 6, j % 6)] * (1 + i / 6) as f64 } else { 0.0 }
    }));
    let start = Mat::from_fn(12, 1, |i, _| if i < 6 { 1.0 + i as f64 } else { 0.0 });
    let mut lanczos = Lanczos::new(&dense, start).unwrap();
    while lanczos.step() {}
    assert_eq!(lanczos.coefficients()[0].diagonal.len(), 6);
    let other: Vec<f64> = (0..12).map(|i| 1.0 - 0.1 * i as f64).collect();
    assert!(lanczos.restart(0, &other));
    while lanczos.step() {}
    let all = lanczos.coefficients()[0].clone();
    assert_eq!(all.diagonal.len(), 12);
    assert_eq!(all.off[5], 0.0);
    let mut found: Vec<f64> = all.gauss_rule().unwrap().into_iter().map(|(node, _)| node).collect();
    found.sort_by(f64::total_cmp);
    let exact = dense.matrix().self_adjoint_eigenvalues(Side::Lower).unwrap();
    assert!(found.iter().zip(&exact).all(|(a, b)| (a - b).abs() < 1e-11));
    // Nothing is left outside of everything.
    assert!(!lanczos.restart(0, &other));
}

#[test]
fn conjugate_gradients_record_the_lanczos_process() {
    let dense = Dense::new(kernel_matrix(80, 0.5, true, 27));
    let system = System::uniform(&dense, 0.1).unwrap();
    let z = normal(80, 2, 28);
    let mut solver = ConjugateGradients::new(&system, &NoPreconditioner, z.as_ref(), None, 1e-10, 0.0)
        .unwrap()
        .recording(1..2);
    let mut lanczos = Lanczos::new(&system, z.clone()).unwrap();
    for _ in 0..12 {
        solver.step().unwrap();
        lanczos.step();
    }
    let (own, other) = (solver.tridiagonal(1), &lanczos.coefficients()[1]);
    assert_eq!(own.diagonal.len(), 12);
    for i in 0..12 {
        assert!((own.diagonal[i] - other.diagonal[i]).abs() < 1e-9 * other.diagonal[i]);
        assert!(i == 11 || (own.off[i] - other.off[i]).abs() < 1e-9 * other.off[0]);
    }
    assert!(solver.tridiagonal(0).diagonal.is_empty());
}

#[test]
fn draws_of_a_preconditioner_have_its_covariance() {
    let (n, count) = (5, 40_000);
    let factor = normal(n, 2, 29);
    let diagonal: Vec<f64> = (0..n).map(|i| 0.2 + i as f64).collect();
    let exact = shifted(&(&factor * factor.transpose()), &diagonal);
    let low_rank = LowRankPlusDiagonal::new(factor, &diagonal).unwrap();
    let drawn: Mat<f64> = low_rank.draw(n, count, &mut Streams::new(30).stream("draws"));
    for i in 0..n {
        for j in 0..n {
            let found = (0..count).map(|k| drawn[(i, k)] * drawn[(j, k)]).sum::<f64>() / count as f64;
            let variance = exact[(i, i)] * exact[(j, j)] + exact[(i, j)].powi(2);
            // Five standard errors of a sample covariance.
            assert!((found - exact[(i, j)]).abs() < 5.0 * (variance / count as f64).sqrt(), "{i} {j}");
        }
    }
    let white: Mat<f64> = NoPreconditioner.draw(n, 3, &mut Streams::new(30).stream("draws"));
    assert_eq!(white.shape(), (n, 3));
    assert_eq!(DrawnPreconditioner::<f64>::log_determinant(&NoPreconditioner), 0.0);
}
