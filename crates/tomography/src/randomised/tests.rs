//! Against dense inverses, eigenvalues and Monte Carlo.

use super::*;
use posterior_linalg::cholesky::{Cholesky, JitterPolicy};
use posterior_linalg::dense::eigenvalues;
use posterior_linalg::operator::Dense;

fn normal(rows: usize, columns: usize, seed: u64) -> Mat<f64> {
    let mut rng = Streams::new(seed).stream("test");
    Mat::from_fn(rows, columns, |_, _| StandardNormal.sample(&mut rng))
}

/// A symmetric matrix with these eigenvalues.
fn with_spectrum(values: &[f64]) -> Mat<f64> {
    let n = values.len();
    let basis = qr(normal(n, n, 3).as_ref()).0;
    let scaled = Mat::from_fn(n, n, |i, j| basis[(i, j)] * values[j]);
    let mut out = product(scaled.as_ref(), basis.transpose());
    average_with_transpose(out.as_mut());
    out
}

fn options(rank: usize, passes: Passes, tail: Tail) -> RandomisedOptions {
    RandomisedOptions { rank, oversampling: 6, passes, tail, unused_above: f64::INFINITY, seed: 5 }
}

fn inverse(preconditioner: &RandomisedPreconditioner, n: usize) -> Mat<f64> {
    let mut out = Mat::zeros(n, n);
    preconditioner.apply(Mat::identity(n, n).as_ref(), out.as_mut());
    out
}

/// `P` by its eigenvectors, without any inverse.
fn dense(preconditioner: &RandomisedPreconditioner) -> Mat<f64> {
    let (u, s, noise) = (preconditioner.vectors(), preconditioner.outside(), preconditioner.noise);
    let weighted =
        Mat::from_fn(u.nrows(), u.ncols(), |i, j| u[(i, j)] * (preconditioner.eigenvalues[j] + noise - s));
    let mut out = &weighted * u.transpose();
    if !preconditioner.is_used() {
        out.fill(0.0);
    }
    (0..u.nrows()).for_each(|i| out[(i, i)] += s);
    out
}

#[test]
fn the_division_free_inverse_is_woodburys_and_inverts() {
    let spectrum: Vec<f64> = (0..40).map(|i| 50.0 * 0.7f64.powi(i)).collect();
    let k = Dense::new(with_spectrum(&spectrum));
    let noise = 0.2;
    for passes in [Passes::Two, Passes::One] {
        let p = RandomisedPreconditioner::new(&k, noise, &options(12, passes, Tail::Noise)).unwrap();
        let (u, b) = (p.vectors().to_owned(), 1.0 / noise);
        // As published: bI - b² U (b UᵀU + Λ⁻¹)⁻¹ Uᵀ.
        let mut small = u.transpose() * &u * faer::Scale(b);
        (0..12).for_each(|i| small[(i, i)] += 1.0 / p.eigenvalues()[i]);
        let small = Cholesky::of(small.as_ref(), JitterPolicy::NONE).unwrap();
        let mut published = &u * small.solve(u.transpose()) * faer::Scale(-b * b);
        (0..40).for_each(|i| published[(i, i)] += b);
        assert!((&published - inverse(&p, 40)).norm_max() < 1e-11 * b);
        for tail in [Tail::Noise, Tail::Last] {
            let p = RandomisedPreconditioner::new(&k, noise, &options(12, passes, tail)).unwrap();
            let product = dense(&p) * inverse(&p, 40);
            assert!((product - Mat::<f64>::identity(40, 40)).norm_max() < 1e-11);
            let logarithms: f64 = eigenvalues(dense(&p).as_ref()).unwrap().iter().map(|e| e.ln()).sum();
            assert!((logarithms - p.log_determinant()).abs() < 1e-9);
        }
    }
}

/// With as many vectors as the matrix has rank, P is C.
#[test]
fn full_rank_is_exact() {
    let spectrum: Vec<f64> = (0..30).map(|i| if i < 9 { 4.0 / (1.0 + i as f64) } else { 0.0 }).collect();
    let k = with_spectrum(&spectrum);
    let mut c = k.clone();
    (0..30).for_each(|i| c[(i, i)] += 0.1);
    for passes in [Passes::Two, Passes::One] {
        for rank in [9, 30] {
            let options = RandomisedOptions { oversampling: 0, ..options(rank, passes, Tail::Noise) };
            let p = RandomisedPreconditioner::new(&Dense::new(k.clone()), 0.1, &options).unwrap();
            let error = (dense(&p) - &c).norm_max();
            // One pass divides by the smallest singular value of a Gaussian matrix, and beyond the rank by rounding itself.
            assert!(
                error < if passes == Passes::Two { 1e-12 } else { 1e-8 },
                "{passes:?} {rank} {error:.1e}"
            );
        }
    }
}

/// Entries of the empirical covariance of m draws have variance `(P_ij² + P_ii P_jj) / m`; of 20 · 21 / 2 entries none is 5 deviations off with probability 1 - 210 · 6e-7.
#[test]
fn draws_have_covariance_p() {
    let spectrum: Vec<f64> = (0..20).map(|i| 3.0 * 0.6f64.powi(i)).collect();
    let k = Dense::new(with_spectrum(&spectrum));
    for tail in [Tail::Noise, Tail::Last] {
        let p = RandomisedPreconditioner::new(&k, 0.05, &options(5, Passes::Two, tail)).unwrap();
        let (m, exact) = (20_000, dense(&p));
        let draws = p.draw(20, m, &mut Streams::new(9).stream("test/draws"));
        let empirical = product(draws.as_ref(), draws.transpose()) * faer::Scale(1.0 / m as f64);
        for j in 0..20 {
            for i in 0..=j {
                let deviation = ((exact[(i, j)].powi(2) + exact[(i, i)] * exact[(j, j)]) / m as f64).sqrt();
                assert!((empirical[(i, j)] - exact[(i, j)]).abs() < 5.0 * deviation);
            }
        }
    }
}

/// `E[(C⁻¹ z)ᵀ dC (P⁻¹ z)] = tr(C⁻¹ dC)` for `z ~ N(0, P)`, with the standard error of the draws themselves.
#[test]
fn preconditioned_probes_are_unbiased() {
    let spectrum: Vec<f64> = (0..25).map(|i| 10.0 * 0.75f64.powi(i)).collect();
    let (k, change) = (with_spectrum(&spectrum), with_spectrum(&[1.5; 25]) + with_spectrum(&spectrum));
    let p = RandomisedPreconditioner::new(&Dense::new(k.clone()), 0.3, &options(8, Passes::Two, Tail::Last));
    let p = p.unwrap();
    let mut c = k;
    (0..25).for_each(|i| c[(i, i)] += 0.3);
    let factor = Cholesky::of(c.as_ref(), JitterPolicy::NONE).unwrap();
    let exact = factor.solve(change.as_ref()).diagonal().column_vector().iter().sum::<f64>();
    let z = p.draw(25, 4000, &mut Streams::new(2).stream("test/probes"));
    let (solved, mut guessed) = (factor.solve(z.as_ref()), z.clone());
    p.apply(z.as_ref(), guessed.as_mut());
    let moved = &change * &guessed;
    let values: Vec<f64> = (0..4000).map(|i| solved.col(i).transpose() * moved.col(i)).collect();
    let estimate = posterior_linalg::solve::Estimate::of(&values);
    assert!((estimate.mean - exact).abs() < 4.0 * estimate.standard_error, "{estimate:?} {exact}");
}

#[test]
fn another_prior_variance_needs_no_products() {
    let spectrum: Vec<f64> = (0..30).map(|i| 2.0 * 0.8f64.powi(i)).collect();
    let k = with_spectrum(&spectrum);
    let scaled = Dense::new(&k * faer::Scale(7.0));
    for tail in [Tail::Noise, Tail::Last] {
        let options = options(10, Passes::Two, tail);
        let from = RandomisedPreconditioner::new(&Dense::new(k.clone()), 0.4, &options).unwrap();
        let (moved, built) = (
            from.rescaled(7.0, 0.2).unwrap(),
            RandomisedPreconditioner::new(&scaled, 0.2, &options).unwrap(),
        );
        assert!((inverse(&moved, 30) - inverse(&built, 30)).norm_max() < 1e-9);
    }
}

fn condition(c: &Mat<f64>, p: &RandomisedPreconditioner) -> f64 {
    // P^-½ C P^-½ has the eigenvalues of L⁻¹ C L⁻ᵀ with P = L Lᵀ.
    let factor = Cholesky::of(dense(p).as_ref(), JitterPolicy::NONE).unwrap();
    let mut half = c.clone();
    factor.solve_factor_in_place(half.as_mut());
    let mut whole = half.transpose().to_owned();
    factor.solve_factor_in_place(whole.as_mut());
    average_with_transpose(whole.as_mut());
    let values = eigenvalues(whole.as_ref()).unwrap();
    values[values.len() - 1] / values[0]
}

/// The spec's rule (unused while `λ_q / σ²` > 0.5) is right for flat spectra and wrong for steep ones that end above the noise. With the last eigenvalue outside of U neither is worse than nothing.
#[test]
fn the_published_rule_throws_away_what_helps() {
    let flat: Vec<f64> = (0..60).map(|i| 6.0 - 0.08 * i as f64).collect();
    let steep: Vec<f64> = (0..60).map(|i| if i < 10 { 1e5 * 0.5f64.powi(i) } else { 5.0 }).collect();
    let mut conditions = Vec::new();
    for spectrum in [flat, steep] {
        let k = with_spectrum(&spectrum);
        let mut c = k.clone();
        (0..60).for_each(|i| c[(i, i)] += 1.0);
        let own = (spectrum[0] + 1.0) / (spectrum[59] + 1.0);
        let published = options(10, Passes::Two, Tail::Noise);
        let k = Dense::new(k);
        let p = RandomisedPreconditioner::new(&k, 1.0, &published).unwrap();
        let rule = RandomisedOptions { unused_above: 0.5, ..published };
        let unused = RandomisedPreconditioner::new(&k, 1.0, &rule).unwrap();
        assert!(!unused.is_used() && unused.tail_ratio() > 0.5);
        assert!((condition(&c, &unused) / own - 1.0).abs() < 1e-6);
        // And with a smaller prior variance it comes back.
        assert!(unused.rescaled(1e-3, 100.0).unwrap().is_used());
        let last = RandomisedPreconditioner::new(&k, 1.0, &options(10, Passes::Two, Tail::Last)).unwrap();
        conditions.push((own, condition(&c, &p), condition(&c, &last)));
    }
    let [(flat, flat_noise, flat_last), (steep, steep_noise, steep_last)] = conditions[..] else {
        unreachable!()
    };
    println!(
        "flat {flat:.2} {flat_noise:.2} {flat_last:.2} steep {steep:.0} {steep_noise:.2} {steep_last:.2}"
    );
    assert!(flat_noise > 1.2 * flat, "a flat spectrum is made worse: {flat_noise} from {flat}");
    assert!(flat_last < 1.2 * flat);
    assert!(steep_noise < 0.001 * steep, "what the rule discards: {steep_noise} from {steep}");
    assert!(steep_last < 0.01 * steep);
}

/// What separates this from `Nystrom` at rank 10 of a decaying spectrum: spectral errors `‖K - U Λ Uᵀ‖`, of which none can be below the eleventh eigenvalue (Eckart and Young). Two passes come nearest, all within a factor of 10.
#[test]
fn two_passes_come_nearest() {
    use posterior_linalg::solve::Nystrom;
    let spectrum: Vec<f64> = (0..80).map(|i| 1.0 / (1.0 + i as f64).powf(1.5)).collect();
    let k = with_spectrum(&spectrum);
    let error = |u: MatRef<'_, f64>, values: &[f64]| {
        let scaled = Mat::from_fn(80, 10, |i, j| u[(i, j)] * values[j]);
        let mut rest = &k - scaled * u.subcols(0, 10).transpose();
        average_with_transpose(rest.as_mut());
        let values = eigenvalues(rest.as_ref()).unwrap();
        values[79].max(-values[0]) / spectrum[10]
    };
    let own = Dense::new(k.clone());
    let of = |passes| {
        let p = RandomisedPreconditioner::new(&own, 0.1, &options(10, passes, Tail::Noise)).unwrap();
        error(p.vectors(), p.eigenvalues())
    };
    let nystrom = Nystrom::new(&own, 16, 5).unwrap();
    let nystrom = error(nystrom.vectors().as_ref(), nystrom.eigenvalues());
    let (two, one) = (of(Passes::Two), of(Passes::One));
    println!("relative to the best: two passes {two:.2}, one pass {one:.2}, Nystrom {nystrom:.2}");
    assert!([two, one, nystrom].iter().all(|error| *error > 1.0 - 1e-9 && *error < 10.0));
    assert!(two < one && two < nystrom);
}

#[test]
fn what_cannot_be_is_said() {
    let k = Dense::new(Mat::<f64>::identity(4, 4));
    let options = options(2, Passes::Two, Tail::Last);
    for noise in [0.0, -1.0, f64::NAN] {
        assert!(matches!(
            RandomisedPreconditioner::new(&k, noise, &options),
            Err(SolveError::Setting { .. })
        ));
    }
    let broken = Dense::new(Mat::from_fn(4, 4, |i, _| if i == 2 { f64::NAN } else { 0.0 }));
    assert!(matches!(
        RandomisedPreconditioner::new(&broken, 1.0, &options),
        Err(SolveError::NotFinite { row: 2, .. })
    ));
    assert!(RandomisedPreconditioner::new(&k, 1.0, &options).unwrap().rescaled(0.0, 1.0).is_err());
}
