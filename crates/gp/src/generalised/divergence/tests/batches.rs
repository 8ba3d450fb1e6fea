//! Squared Wasserstein distances on batches: the spec's values, brute force, finite differences, what must hold.

use super::{inverted, near, noise, numbers, on_any_threads, slope, times};
use crate::generalised::divergence::{
    BatchDistance, Divergence, DivergenceError, FidelityForm, JointNormal, Normals, SameBatch, partial,
    same_batch, two_batches,
};
use faer::{Mat, MatRef};

const FORMS: [FidelityForm; 2] = [FidelityForm::NuclearNorm, FidelityForm::SymmetricRoots];

/// Squared exponential kernel matrices.
fn gram(amplitude: f64, lengthscale: f64, a: &[f64], b: &[f64]) -> Mat<f64> {
    Mat::from_fn(a.len(), b.len(), |i, j| {
        let z = (a[i] - b[j]) / lengthscale;
        amplitude * amplitude * (-0.5 * z * z).exp()
    })
}

const X: [f64; 6] = [-2.0, -1.2, -0.5, 0.1, 0.9, 1.7];
const MEANS: [f64; 6] = [0.1, -0.2, 0.3, 0.0, 0.2, -0.1];

fn distance(
    (prior, k): (&[f64], &Mat<f64>),
    (mean, r): (&[f64], &Mat<f64>),
    form: FidelityForm,
    jitter: f64,
) -> BatchDistance {
    let prior = JointNormal { means: prior, covariance: k.as_ref() };
    let posterior = JointNormal { means: mean, covariance: r.as_ref() };
    same_batch(prior, posterior, SameBatch { form, jitter }).unwrap()
}

/// A positive definite matrix of size n.
fn covariance(name: &str, n: usize) -> Mat<f64> {
    let root = noise(name, n, n);
    let mut out = times(root.as_ref(), root.transpose());
    (0..n).for_each(|i| out[(i, i)] += 0.1);
    out
}

fn diagonal(matrix: &Mat<f64>) -> Vec<f64> {
    (0..matrix.nrows()).map(|i| matrix[(i, i)]).collect()
}

#[test]
fn the_values_of_the_spec_are_met() {
    let (k, r, zero) = (gram(1.2, 0.8, &X, &X), gram(0.9, 1.1, &X, &X), [0.0; 6]);
    for form in FORMS {
        let found = distance((&zero, &k), (&MEANS, &r), form, 1e-10);
        assert!((found.prior_jitter / 1.44e-10 - 1.0).abs() < 1e-12);
        assert!((found.posterior_jitter / 0.81e-10 - 1.0).abs() < 1e-12);
        // The spec has the jitter in the fidelity, but not in the traces.
        let value = found.value - found.prior_jitter - found.posterior_jitter;
        assert!((value - 0.1583032741).abs() < 5.1e-11, "{form:?}: {value}");
        // With 40 digits, the same matrices.
        assert!((found.value - 0.1583032743195408).abs() < 1e-14, "{form:?}: {}", found.value);
        assert!((found.fidelity - 6.370_090_177_716_378).abs() < 1e-13, "{form:?}: {}", found.fidelity);
    }
    let (own, other) = (diagonal(&r), diagonal(&k));
    let prior = Normals { means: &zero, variances: &other };
    let posterior = Normals { means: &MEANS, variances: &own };
    let (mut means, mut variances) = ([0.0; 6], [0.0; 6]);
    let without = partial(prior, posterior, &mut means, &mut variances).unwrap();
    assert!((without - 2.2816666667).abs() < 5e-11);
    let projected = Divergence::Wasserstein.mean_over(prior, posterior, &mut means, &mut variances).unwrap();
    assert!((projected - 0.1216666667).abs() < 5e-11);
    let between = two_batches(prior, posterior, k.as_ref(), r.as_ref()).unwrap();
    assert!((between.value - 0.1583032743544647).abs() < 1e-13, "{}", between.value);
}

/// `tr (R K)^½` by the iteration of Denman and Beavers: nothing of it is a decomposition.
fn fidelity(k: &Mat<f64>, r: &Mat<f64>) -> f64 {
    let n = k.nrows();
    let (mut root, mut inverse) = (times(r.as_ref(), k.as_ref()), Mat::<f64>::identity(n, n));
    for _ in 0..40 {
        let next = (&root + inverted(&inverse).0) * faer::Scale(0.5);
        inverse = (&inverse + inverted(&root).0) * faer::Scale(0.5);
        root = next;
    }
    (0..n).map(|i| root[(i, i)]).sum()
}

#[test]
fn all_forms_agree_with_brute_force() {
    for n in [1, 2, 5, 9] {
        let (k, r, z) = (covariance("k", n), covariance("r", n), noise("means", n, 2));
        let (prior, mean) = (z.col_as_slice(0), z.col_as_slice(1));
        let squares: f64 = prior.iter().zip(mean).map(|(p, q)| (p - q) * (p - q)).sum();
        let fidelity = fidelity(&k, &r);
        let (own, other) = (diagonal(&r), diagonal(&k));
        let traces: f64 = own.iter().chain(&other).sum();
        let expected = (squares + traces - 2.0 * fidelity) / n as f64;
        for form in FORMS {
            let found = distance((prior, &k), (mean, &r), form, 0.0);
            near(&format!("{form:?}, {n}"), found.value, expected, 1e-9);
            near(&format!("{form:?}, {n}"), found.fidelity, fidelity, 1e-9);
            assert_eq!(
                (found.prior_jitter, found.posterior_jitter, found.clipped, found.unresolved),
                (0.0, 0.0, 0, 0)
            );
        }
        let prior = Normals { means: prior, variances: &other };
        let posterior = Normals { means: mean, variances: &own };
        let found = two_batches(prior, posterior, k.as_ref(), r.as_ref()).unwrap();
        near(&format!("two batches, {n}"), found.value, expected, 1e-9);
    }
    // Matrices that commute: the distance of their roots.
    let basis = posterior_linalg::dense::qr(noise("basis", 6, 6).as_ref()).0;
    let spread = |values: &dyn Fn(usize) -> f64| {
        let scaled = Mat::from_fn(6, 6, |i, j| basis[(i, j)] * values(j));
        times(scaled.as_ref(), basis.transpose())
    };
    let (a, b) = (|j: usize| 0.5 + j as f64, |j: usize| 4.0 / (1.0 + j as f64));
    let expected: f64 = (0..6).map(|j| (a(j).sqrt() - b(j).sqrt()).powi(2)).sum::<f64>() / 6.0;
    for form in FORMS {
        let found = distance((&[0.0; 6], &spread(&a)), (&[0.0; 6], &spread(&b)), form, 0.0);
        near(&format!("{form:?}"), found.value, expected, 1e-13);
        // Sorted spectra would be multiplied otherwise (erratum E15) and say too little.
        let sorted: f64 = (0..6).map(|j| (a(j).sqrt() - b(5 - j).sqrt()).powi(2)).sum::<f64>() / 6.0;
        assert!(sorted < 0.5 * found.value);
    }
}

#[test]
fn slopes_are_those_of_the_values() {
    for (n, jitter) in [(1, 0.0), (4, 1e-8), (6, 1e-2)] {
        let (k, r, z) = (covariance("k", n), covariance("r", n), noise("means", n, 2));
        let (prior, mean) = (z.col_as_slice(0), z.col_as_slice(1).to_vec());
        for form in FORMS {
            let value = |mean: &[f64], r: &Mat<f64>| distance((prior, &k), (mean, r), form, jitter).value;
            let found = distance((prior, &k), (&mean, &r), form, jitter);
            for i in 0..n {
                let numeric = slope(1e-3, |t| {
                    let mut mean = mean.clone();
                    mean[i] += t;
                    value(&mean, &r)
                });
                near(&format!("{form:?}, mean {i} of {n}"), found.means[i], numeric, 1e-9);
                for j in 0..=i {
                    // Both entries of a pair move, and so both adjoints count.
                    let numeric = slope(2e-3, |t| {
                        let mut r = r.clone();
                        r[(i, j)] += t;
                        r[(j, i)] = r[(i, j)];
                        value(&mean, &r)
                    });
                    let expected = match i == j {
                        true => found.covariance[(i, i)] + found.variances[i],
                        false => found.covariance[(i, j)] + found.covariance[(j, i)],
                    };
                    near(&format!("{form:?}, covariance {i}, {j} of {n}"), expected, numeric, 1e-8);
                }
            }
        }
    }
}

#[test]
fn slopes_of_two_batches_are_those_of_the_value() {
    for (n, others) in [(5, 3), (3, 5), (4, 4)] {
        let (k, r) = (noise("kbs", n, others), noise("rsb", others, n));
        // Near positive: some eigenvalues real, some complex, few negative.
        let k = Mat::from_fn(n, others, |i, j| 0.4 * k[(i, j)] + if i == j { 1.0 } else { 0.0 });
        let r = Mat::from_fn(others, n, |i, j| 0.4 * r[(i, j)] + if i == j { 1.0 } else { 0.0 });
        let (means, variances) = (vec![0.3; n], vec![2.0; n]);
        let prior = Normals { means: &variances, variances: &means };
        let value = |r: &Mat<f64>| {
            let posterior = Normals { means: &means, variances: &variances };
            two_batches(prior, posterior, k.as_ref(), r.as_ref()).unwrap()
        };
        let found = value(&r);
        near("means", found.means[0], 2.0 * (0.3 - 2.0) / n as f64, 1e-15);
        near("variances", found.variances[0], 1.0 / n as f64, 1e-15);
        for i in 0..others {
            for j in 0..n {
                let numeric = slope(1e-4, |t| {
                    let mut r = r.clone();
                    r[(i, j)] += t;
                    value(&r).value
                });
                near(
                    &format!("covariance {i}, {j} of {others} x {n}"),
                    found.covariance[(i, j)],
                    numeric,
                    1e-8,
                );
            }
        }
    }
}

#[test]
fn clipped_and_complex_eigenvalues_are_counted() {
    let (means, variances) = ([0.0; 3], [1.0; 3]);
    let normals = Normals { means: &means, variances: &variances };
    // The product is a rotation by 90° in a plane and -4 along the rest.
    let turn = faer::mat![[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, -4.0]];
    let found = two_batches(normals, normals, Mat::identity(3, 3).as_ref(), turn.as_ref()).unwrap();
    assert_eq!((found.clipped >= 1, found.complex), (true, 2));
    assert!(found.fidelity < 1e-7 && (found.value - 2.0).abs() < 1e-7);
    // With a real part of 9 each root is 3.
    let turn = faer::mat![[9.0, -1.0, 0.0], [1.0, 9.0, 0.0], [0.0, 0.0, -4.0]];
    let found = two_batches(normals, normals, Mat::identity(3, 3).as_ref(), turn.as_ref()).unwrap();
    assert_eq!((found.clipped, found.complex, found.unresolved), (1, 2, 0));
    assert!((found.fidelity - 6.0).abs() < 1e-14);
    assert!((found.value + 2.0).abs() < 1e-14, "a noisy estimate may be negative");
}

#[test]
fn a_process_is_at_no_distance_from_itself() {
    let points: Vec<f64> = (0..40).map(|i| 0.05 * f64::from(i)).collect();
    // Of almost no rank: all but some ten eigenvalues drown in rounding.
    let k = gram(1.3, 0.7, &points, &points);
    let (r, means) = (gram(1.3, 0.7 + 1e-4, &points, &points), vec![0.4; 40]);
    let found = distance((&means, &k), (&means, &k), FidelityForm::NuclearNorm, 1e-8);
    assert!(found.value < 1e-16, "{:e}", found.value);
    let found = distance((&means, &k), (&means, &k), FidelityForm::SymmetricRoots, 1e-8);
    // Every root of an eigenvalue may be wrong by the root of its rounding, nε times the square of the largest one of K, which is at most the trace.
    let rounding = 2.0 * (40.0 * f64::EPSILON).sqrt() * 40.0 * 1.3 * 1.3;
    assert!(found.value.abs() < rounding, "{:e}", found.value);
    let close = distance((&means, &k), (&means, &r), FidelityForm::NuclearNorm, 1e-8);
    assert!(close.value > 0.0 && close.value < 1e-6 && close.covariance.norm_max().is_finite());
}

#[test]
fn the_distance_is_between_its_bounds() {
    for n in [3, 20] {
        let (k, z) = (covariance("k", n), noise("means", n, 2));
        let points: Vec<f64> = (0..n).map(|i| 0.2 * i as f64).collect();
        for r in [covariance("r", n), gram(0.8, 0.9, &points, &points), gram(2.0, 0.01, &points, &points)] {
            let (prior, mean) = (z.col_as_slice(0), z.col_as_slice(1));
            let (own, other) = (diagonal(&r), diagonal(&k));
            let full = distance((prior, &k), (mean, &r), FidelityForm::NuclearNorm, 1e-8);
            let (p, q) =
                (Normals { means: prior, variances: &other }, Normals { means: mean, variances: &own });
            let (mut means, mut variances) = (vec![0.0; n], vec![0.0; n]);
            let upper = partial(p, q, &mut means, &mut variances).unwrap();
            // Slopes of the bound are those of its formula.
            assert!(variances.iter().all(|v| *v == 1.0 / n as f64));
            assert!((0..n).all(|i| (means[i] - full.means[i]).abs() < 1e-15));
            let lower = Divergence::Wasserstein.mean_over(p, q, &mut means, &mut variances).unwrap();
            let jitter = full.prior_jitter + full.posterior_jitter;
            assert!(
                lower <= full.value + jitter && full.value <= upper + jitter,
                "{lower}, {}, {upper}",
                full.value
            );
        }
    }
}

#[test]
fn singular_covariances_have_a_distance() {
    // Rank one, and nothing at all beside it.
    let ones = Mat::<f64>::from_fn(5, 5, |_, _| 1.0);
    for form in FORMS {
        let found = distance((&[0.0; 5], &ones), (&[0.0; 5], &ones), form, 1e-8);
        assert!(found.value.abs() < 1e-7 && found.covariance.norm_max().is_finite(), "{form:?}");
        let found = distance((&[0.0; 5], &ones), (&[0.0; 5], &Mat::identity(5, 5)), form, 1e-8);
        // Eigenvalues 5, 0, .. and 1, 1, ..
        let expected = ((5f64.sqrt() - 1.0).powi(2) + 4.0) / 5.0;
        assert!((found.value - expected).abs() < 1e-3, "{form:?}: {}, {expected}", found.value);
    }
    let zero = Mat::<f64>::zeros(3, 3);
    let of = |form| {
        let prior = JointNormal { means: &[0.0; 3], covariance: zero.as_ref() };
        same_batch(prior, prior, SameBatch { form, jitter: 1e-8 })
    };
    assert!(matches!(of(FidelityForm::NuclearNorm), Err(DivergenceError::Cholesky(_))));
    let found = of(FidelityForm::SymmetricRoots).unwrap();
    assert_eq!((found.value, found.covariance.norm_max()), (0.0, 0.0));
}

#[test]
fn what_does_not_fit_is_refused() {
    let square = Mat::<f64>::identity(3, 3);
    let of = |p: &[f64], k: MatRef<'_, f64>, q: &[f64], r: MatRef<'_, f64>, jitter: f64| {
        let prior = JointNormal { means: p, covariance: k };
        let posterior = JointNormal { means: q, covariance: r };
        same_batch(prior, posterior, SameBatch { jitter, ..SameBatch::default() })
    };
    let (zeros, one) = ([0.0; 3], square.as_ref());
    assert!(of(&zeros, one, &zeros, one, 0.0).is_ok());
    assert!(matches!(of(&zeros[..2], one, &zeros, one, 0.0), Err(DivergenceError::Shape { .. })));
    assert!(matches!(of(&zeros, one.subrows(0, 2), &zeros, one, 0.0), Err(DivergenceError::Shape { .. })));
    assert!(matches!(of(&zeros, one, &zeros, one.subcols(0, 2), 0.0), Err(DivergenceError::Shape { .. })));
    let none = one.submatrix(0, 0, 0, 0);
    assert!(matches!(of(&[], none, &[], none, 0.0), Err(DivergenceError::Empty { .. })));
    for jitter in [-1e-8, f64::NAN, f64::INFINITY] {
        assert!(matches!(of(&zeros, one, &zeros, one, jitter), Err(DivergenceError::Jitter(_))));
    }
    let mut spoiled = square.clone();
    spoiled[(0, 2)] = f64::NAN;
    let found = of(&zeros, one, &zeros, spoiled.as_ref(), 0.0);
    assert!(matches!(found, Err(DivergenceError::NotFinite { row: 0, column: 2, .. })));
    let negative = Mat::from_fn(3, 3, |i, j| if i == j { -1.0 } else { 0.0 });
    assert!(matches!(of(&zeros, one, &zeros, negative.as_ref(), 1e-8), Err(DivergenceError::Cholesky(_))));
    let normals = Normals { means: &zeros, variances: &zeros };
    let between = |k: MatRef<'_, f64>, r: MatRef<'_, f64>| two_batches(normals, normals, k, r);
    assert!(matches!(between(one.subrows(0, 2), one), Err(DivergenceError::Shape { .. })));
    assert!(matches!(between(one.subcols(0, 2), one), Err(DivergenceError::Shape { .. })));
    assert!(matches!(between(one.subcols(0, 0), one.subrows(0, 0)), Err(DivergenceError::Empty { .. })));
    assert!(matches!(between(one, spoiled.as_ref()), Err(DivergenceError::NotFinite { .. })));
}

#[test]
fn distances_have_the_same_bits_on_any_number_of_threads() {
    let n = 200;
    let points: Vec<f64> = (0..n).map(|i| 0.05 * i as f64).collect();
    let (k, r) = (gram(1.2, 0.3, &points, &points), gram(0.9, 0.5, &points, &points));
    let means: Vec<f64> = points.iter().map(|x| x.sin()).collect();
    let all = |found: BatchDistance| -> Vec<f64> {
        [found.value].into_iter().chain(found.means).chain(numbers(&found.covariance)).collect()
    };
    for form in FORMS {
        on_any_threads(|| all(distance((&means, &k), (&points, &r), form, 1e-8)));
    }
    let variances = diagonal(&k);
    let normals = Normals { means: &means, variances: &variances };
    let half = n / 2;
    on_any_threads(|| {
        all(two_batches(normals, normals, k.as_ref().subcols(0, half), r.as_ref().subrows(half, half))
            .unwrap())
    });
}
