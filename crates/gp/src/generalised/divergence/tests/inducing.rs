//! Divergences between inducing values: against single points, dense formulas in other coordinates, finite differences, samples.

use super::{all, inverted, near, noise, normal, numbers, on_any_threads, slope, times};
use crate::generalised::divergence::{Direction, Divergence, DivergenceError};
use faer::Mat;

const BACK: Divergence = Divergence::KullbackLeibler { direction: Direction::PriorToPosterior };
const FORTH: Divergence = Divergence::KullbackLeibler { direction: Direction::PosteriorToPrior };

/// A lower-triangular root of size m whose square has eigenvalues around ½.
fn root(m: usize) -> Mat<f64> {
    let z = noise("root", m, m);
    Mat::from_fn(m, m, |i, j| match i.cmp(&j) {
        std::cmp::Ordering::Less => 0.0,
        std::cmp::Ordering::Equal => 0.6 + 0.1 * z[(i, j)].abs(),
        std::cmp::Ordering::Greater => 0.2 * z[(i, j)] / (m as f64).sqrt(),
    })
}

fn means(m: usize) -> (Vec<f64>, Vec<f64>) {
    let z = noise("means", m, 2);
    let of = |j| (0..m).map(|i| 0.4 * z[(i, j)]).collect();
    (of(0), of(1))
}

#[test]
fn of_one_value_they_are_those_of_single_points() {
    for divergence in all() {
        for root in [0.3, -0.9, 1.0, 1.3] {
            let expected = divergence.between(normal((0.2, 1.0)), normal((-0.4, root * root)));
            let found = divergence.of_whitened(&[0.2], &[-0.4], faer::mat![[root]].as_ref()).unwrap();
            near(&format!("{divergence}"), found.value, expected.value, 1e-14);
            // Orders near 1 but not at it lose what is divided by the distance.
            near(&format!("{divergence}, mean"), found.mean[0], expected.mean, 1e-13);
            near(&format!("{divergence}, root"), found.root[(0, 0)], 2.0 * root * expected.variance, 1e-13);
        }
    }
}

#[test]
fn of_independent_values_they_are_sums() {
    let roots = [0.5, 1.0 + 1e-9, 0.01, 1.2];
    let (prior, mean) = means(4);
    let root = Mat::from_fn(4, 4, |i, j| if i == j { roots[i] } else { 0.0 });
    for divergence in all() {
        if matches!(divergence, Divergence::Hellinger | Divergence::SymmetricKullbackLeibler) {
            continue;
        }
        let one =
            |i: usize| divergence.between(normal((prior[i], 1.0)), normal((mean[i], roots[i] * roots[i])));
        let found = divergence.of_whitened(&prior, &mean, root.as_ref()).unwrap();
        let expected: f64 = (0..4).map(|i| one(i).value).sum();
        near(&format!("{divergence}"), found.value, expected, 1e-14);
        for i in 0..4 {
            near(&format!("{divergence}, mean {i}"), found.mean[i], one(i).mean, 1e-13);
            near(
                &format!("{divergence}, root {i}"),
                found.root[(i, i)],
                2.0 * roots[i] * one(i).variance,
                1e-12,
            );
        }
    }
    // Almost the prior, digits are kept where it is said: `½ m p(y)` with `1 + y = (1 + h)²`, by its series.
    let h = (-30f64).exp2();
    let root = Mat::from_fn(4, 4, |i, j| if i == j { 1.0 + h } else { 0.0 });
    let found = FORTH.of_whitened(&prior, &prior, root.as_ref()).unwrap().value;
    let y = h * (2.0 + h);
    let expected = 2.0 * y * y * (0.5 - y / 3.0);
    assert!((found / expected - 1.0).abs() < 1e-14, "{found:e}, {expected:e}");
}

#[test]
fn slopes_are_those_of_the_values() {
    let m = 4;
    let ((prior, mean), root) = (means(m), root(m));
    for divergence in all() {
        let found = divergence.of_whitened(&prior, &mean, root.as_ref()).unwrap();
        let value = |mean: &[f64], root: &Mat<f64>| {
            divergence.of_whitened(&prior, mean, root.as_ref()).unwrap().value
        };
        for i in 0..m {
            let numeric = slope(2e-3, |t| {
                let mut mean = mean.clone();
                mean[i] += t;
                value(&mean, &root)
            });
            near(&format!("{divergence}, mean {i}"), found.mean[i], numeric, 1e-9);
            for j in 0..m {
                if i < j {
                    assert_eq!(found.root[(i, j)], 0.0);
                    continue;
                }
                let numeric = slope(5e-4, |t| {
                    let mut root = root.clone();
                    root[(i, j)] += t;
                    value(&mean, &root)
                });
                near(&format!("{divergence}, root {i}, {j}"), found.root[(i, j)], numeric, 1e-9);
            }
        }
    }
}

/// A normal with a dense covariance.
type Dense<'a> = (&'a Mat<f64>, &'a Mat<f64>);

/// `KL[A, B]`.
fn kullback_leibler(a: Dense<'_>, b: Dense<'_>) -> f64 {
    let ((inverse, log_b), (_, log_a)) = (inverted(b.1), inverted(a.1));
    let delta = a.0 - b.0;
    let m = delta.nrows();
    let trace: f64 = (0..m).map(|i| times(inverse.as_ref(), a.1.as_ref())[(i, i)]).sum();
    let square = times(delta.transpose(), times(inverse.as_ref(), delta.as_ref()).as_ref())[(0, 0)];
    0.5 * (trace - m as f64 + log_b - log_a + square)
}

/// The Rényi divergence of A from B.
fn renyi(order: f64, a: Dense<'_>, b: Dense<'_>) -> f64 {
    let mixture = b.1 * faer::Scale(order) + a.1 * faer::Scale(1.0 - order);
    let ((inverse, log), (_, log_a), (_, log_b)) = (inverted(&mixture), inverted(a.1), inverted(b.1));
    let delta = a.0 - b.0;
    let square = times(delta.transpose(), times(inverse.as_ref(), delta.as_ref()).as_ref())[(0, 0)];
    0.5 * order * square + 0.5 / (1.0 - order) * (log - (1.0 - order) * log_a - order * log_b)
}

#[test]
fn they_are_those_of_processes_that_share_their_conditional() {
    // u = A + L v with v the whitened values, and function values f = B u + e elsewhere, with the same B and e under both.
    let (m, more) = (3, 2);
    let ((prior, mean), root) = (means(m), root(m));
    let square = |root: &Mat<f64>| times(root.as_ref(), root.transpose());
    let up = Mat::from_fn(m, m, |i, j| if i >= j { 1.5 - 0.4 * (i + 2 * j) as f64 } else { 0.0 });
    let along = noise("conditional", more, m);
    let rest = square(&noise("rest", more, more));
    let process = |mean: &[f64], root: &Mat<f64>| {
        let mean = times(up.as_ref(), Mat::from_fn(m, 1, |i, _| mean[i]).as_ref());
        let covariance = square(&times(up.as_ref(), root.as_ref()));
        let (far_mean, cross) =
            (times(along.as_ref(), mean.as_ref()), times(along.as_ref(), covariance.as_ref()));
        let far = times(cross.as_ref(), along.transpose()) + &rest;
        let means = Mat::from_fn(m + more, 1, |i, _| if i < m { mean[(i, 0)] } else { far_mean[(i - m, 0)] });
        let all = Mat::from_fn(m + more, m + more, |i, j| match (i < m, j < m) {
            (true, true) => covariance[(i, j)],
            (false, true) => cross[(i - m, j)],
            (true, false) => cross[(j - m, i)],
            (false, false) => far[(i - m, j - m)],
        });
        (means, all)
    };
    let (p, q) = (process(&prior, &Mat::identity(m, m)), process(&mean, &root));
    let (p, q) = ((&p.0, &p.1), (&q.0, &q.1));
    let of = |divergence: Divergence| divergence.of_whitened(&prior, &mean, root.as_ref()).unwrap().value;
    near("KL[Q, P]", of(FORTH), kullback_leibler(q, p), 1e-11);
    near("KL[P, Q]", of(BACK), kullback_leibler(p, q), 1e-11);
    let both = (kullback_leibler(q, p) + kullback_leibler(p, q)).sqrt();
    near("symmetric", of(Divergence::SymmetricKullbackLeibler), both, 1e-11);
    for order in [0.2, 0.5, 0.95, 1.04, 1.4] {
        near(&format!("Rényi {order}"), of(Divergence::Renyi { order }), renyi(order, q, p), 1e-10);
    }
    let half = 0.5 * renyi(0.5, q, p);
    near("Bhattacharyya", of(Divergence::Bhattacharyya), half, 1e-11);
    near("Hellinger", of(Divergence::Hellinger), 1.0 - (-half).exp(), 1e-11);
}

#[test]
fn orders_near_one_lose_no_digits() {
    let m = 5;
    let ((prior, mean), root) = (means(m), root(m));
    let of = |divergence: Divergence| divergence.of_whitened(&prior, &mean, root.as_ref()).unwrap();
    let limit = of(FORTH);
    for left in [1e-4, 1e-8, 1e-12, f64::EPSILON] {
        for order in [1.0 - left, 1.0 + left] {
            let found = of(Divergence::Renyi { order });
            near(&format!("order {order}"), found.value, limit.value, 10.0 * left + 1e-14);
            let furthest = (&found.root - &limit.root).norm_max();
            assert!(furthest < 10.0 * left + 1e-14, "order {order}: {furthest:e}");
        }
    }
    // Both ways to the logarithms agree where they meet.
    let (inside, outside) =
        (of(Divergence::Renyi { order: 1.0 - 0.0624999 }), of(Divergence::Renyi { order: 1.0 - 0.0625001 }));
    near("where they meet", inside.value, outside.value, 1e-6);
}

#[test]
fn they_are_the_averages_that_define_them() {
    let (m, samples) = (3, 100_000);
    let ((prior, mean), root) = (means(m), root(m));
    let inverse = inverted(&times(root.as_ref(), root.transpose()));
    // `log Q - log P`, but for rounding.
    let ratio = |v: &[f64]| {
        let square = |of: &dyn Fn(usize, usize) -> f64, mean: &[f64]| -> f64 {
            let pair = |i: usize, j: usize| (v[i] - mean[i]) * of(i, j) * (v[j] - mean[j]);
            (0..m).map(|i| (0..m).map(|j| pair(i, j)).sum::<f64>()).sum()
        };
        let own = square(&|i, j| inverse.0[(i, j)], &mean) + inverse.1;
        0.5 * (square(&|i, j| if i == j { 1.0 } else { 0.0 }, &prior) - own)
    };
    let z = noise("samples", m, samples);
    let average = |mean: &[f64], root: &Mat<f64>, f: &dyn Fn(f64) -> f64| {
        let draws = times(root.as_ref(), z.as_ref());
        let value = |s: usize| {
            let v: Vec<f64> = (0..m).map(|i| mean[i] + draws[(i, s)]).collect();
            f(ratio(&v))
        };
        let values: Vec<f64> = (0..samples).map(value).collect();
        let count = samples as f64;
        let mean = values.iter().sum::<f64>() / count;
        let variance = values.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / (count - 1.0);
        (mean, 5.0 * (variance / count).sqrt())
    };
    let of = |divergence: Divergence| divergence.of_whitened(&prior, &mean, root.as_ref()).unwrap().value;
    let check = |name: &str, expected: f64, (found, tolerance): (f64, f64)| {
        assert!((found - expected).abs() < tolerance, "{name}: {found} ± {tolerance}, not {expected}");
    };
    let identity = Mat::identity(m, m);
    check("KL[Q, P]", of(FORTH), average(&mean, &root, &|r| r));
    check("KL[P, Q]", of(BACK), average(&prior, &identity, &|r| -r));
    let overlap = average(&prior, &identity, &|r| (0.5 * r).exp());
    check("Bhattacharyya", (-of(Divergence::Bhattacharyya)).exp(), overlap);
    check("Hellinger", of(Divergence::Hellinger), (1.0 - overlap.0, overlap.1));
    for order in [0.3, 1.4] {
        let expected = ((order - 1.0) * of(Divergence::Renyi { order })).exp();
        check("Rényi", expected, average(&prior, &identity, &|r| (order * r).exp()));
    }
}

#[test]
fn singular_and_forbidden_roots_are_infinitely_far() {
    let (prior, mean) = means(3);
    let mut singular = root(3);
    singular[(1, 1)] = 0.0;
    let mut wide = root(3);
    wide[(2, 2)] = 2.0;
    for divergence in all() {
        let found = divergence.of_whitened(&prior, &mean, singular.as_ref()).unwrap();
        let finite = match divergence {
            Divergence::Hellinger => found.value == 1.0,
            _ => found.value.is_finite(),
        };
        let no_densities = matches!(divergence, Divergence::Wasserstein | Divergence::SquaredDifference);
        assert_eq!(finite, no_densities || divergence == Divergence::Hellinger, "{divergence}");
        assert!(no_densities || (found.mean == [0.0; 3] && found.root.norm_max() == 0.0), "{divergence}");
        let found = divergence.of_whitened(&prior, &mean, wide.as_ref()).unwrap();
        let beyond = matches!(divergence, Divergence::Renyi { order } if order > 1.3);
        assert_eq!(found.value.is_finite(), !beyond, "{divergence}");
        assert!(!beyond || (found.mean == [0.0; 3] && found.root.norm_max() == 0.0));
        // Overflow is as far.
        let far = divergence.of_whitened(&prior, &[1e200; 3], root(3).as_ref()).unwrap();
        let value = if divergence == Divergence::Hellinger { 1.0 } else { f64::INFINITY };
        assert_eq!((far.value, far.root.norm_max()), (value, 0.0), "{divergence}");
    }
    // The prior itself.
    for divergence in all() {
        let found = divergence.of_whitened(&prior, &prior, Mat::identity(3, 3).as_ref()).unwrap();
        assert!(found.value.abs() < 1e-30 && found.root.norm_max() < 1e-15, "{divergence}: {found:?}");
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let (prior, mean) = means(3);
    let of = |prior: &[f64], mean: &[f64], root: &Mat<f64>| {
        Divergence::Hellinger.of_whitened(prior, mean, root.as_ref())
    };
    assert!(matches!(of(&prior[..2], &mean, &root(3)), Err(DivergenceError::Shape { .. })));
    assert!(matches!(of(&prior, &mean, &root(4)), Err(DivergenceError::Shape { .. })));
    assert!(matches!(of(&[], &[], &root(0)), Err(DivergenceError::Empty { .. })));
    assert!(matches!(
        of(&prior, &[0.0, f64::NAN, 0.0], &root(3)),
        Err(DivergenceError::NotFinite { row: 1, .. })
    ));
    let mut spoiled = root(3);
    // Not read.
    spoiled[(0, 2)] = f64::NAN;
    assert!(of(&prior, &mean, &spoiled).is_ok());
    spoiled[(2, 0)] = f64::INFINITY;
    assert!(matches!(of(&prior, &mean, &spoiled), Err(DivergenceError::NotFinite { row: 2, column: 0, .. })));
}

#[test]
fn they_have_the_same_bits_on_any_number_of_threads() {
    let m = 200;
    let ((prior, mean), root) = (means(m), root(m));
    for divergence in [
        BACK,
        FORTH,
        Divergence::Hellinger,
        Divergence::Wasserstein,
        Divergence::SquaredDifference,
        Divergence::Renyi { order: 1.01 },
    ] {
        on_any_threads(|| {
            let found = divergence.of_whitened(&prior, &mean, root.as_ref()).unwrap();
            assert!(found.value.is_finite());
            [found.value].into_iter().chain(found.mean).chain(numbers(&found.root)).collect()
        });
    }
}
