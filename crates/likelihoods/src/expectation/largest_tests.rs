//! Probabilities of being the largest, and their slopes, against closed forms, the quadrature of the specification, a fine grid, finite differences and simulation.

use super::{GaussHermite, largest_probabilities, largest_probability};
use crate::special::normal_tail::{distribution, log_density};
use posterior_linalg::random::{ChaCha8Rng, Streams};
use posterior_optim::check;
use proptest::prelude::*;
use rand::RngExt;
use rand_distr::{Distribution, StandardNormal};

fn all(mean: &[f64], variance: &[f64]) -> Vec<f64> {
    let mut out = vec![f64::NAN; mean.len()];
    largest_probabilities(mean, variance, &mut out);
    out
}

/// One with its slopes in means, then in variances.
fn one(class: usize, mean: &[f64], variance: &[f64]) -> (f64, Vec<f64>) {
    let (mut means, mut variances) = (vec![f64::NAN; mean.len()], vec![f64::NAN; mean.len()]);
    let value = largest_probability(class, (mean, variance), (&mut means, &mut variances));
    (value, [means, variances].concat())
}

/// The printed formula with v_j in the numerator: a rule of so many nodes for each class.
fn by_hermite(mean: &[f64], variance: &[f64], nodes: usize) -> Vec<f64> {
    let rule = GaussHermite::new(nodes);
    let below = |x: f64, j: usize| {
        (0..mean.len())
            .filter(|&l| l != j)
            .map(|l| distribution((x - mean[l]) / variance[l].sqrt()))
            .product::<f64>()
    };
    (0..mean.len()).map(|j| rule.nodes(mean[j], variance[j]).map(|(x, w)| w * below(x, j)).sum()).collect()
}

const MEAN: [f64; 4] = [0.3, -0.2, 0.5, 0.0];
const VARIANCE: [f64; 4] = [0.5, 1.2, 0.3, 2.0];

#[test]
fn reference_values_of_the_specification() {
    let found = all(&MEAN, &VARIANCE);
    // Its 50 nodes are off by 4e-10 for the second class and by 7e-7 for the fourth, which it says of the latter.
    let with_50 = [0.2391858507, 0.1637303650, 0.3224021819, 0.2746808925];
    check::assert_close(&by_hermite(&MEAN, &VARIANCE, 50), &with_50, 0.0, 6e-11);
    check::assert_close(&found, &with_50, 0.0, 7.2e-7);
    // Adaptive quadrature with 25 digits.
    let exact = [0.239185850698, 0.16373036536175, 0.32240218186362, 0.27468160207663];
    check::assert_close(&found, &exact, 0.0, 1e-13);
    // Its 200 nodes.
    assert!((found[3] - 0.2746816021).abs() < 6e-11, "{found:?}");
    assert!((found.iter().sum::<f64>() - 1.0).abs() < 1e-14);
    for (class, probability) in found.iter().enumerate() {
        assert!((one(class, &MEAN, &VARIANCE).0 - probability).abs() < 1e-14);
    }
}

/// A case with deviations in ratios up to `10^decades`.
fn case(rng: &mut ChaCha8Rng, classes: usize, decades: f64) -> (Vec<f64>, Vec<f64>) {
    let spread = 10f64.powf(rng.random_range(-1.0..0.7));
    let mean = (0..classes).map(|_| {
        let z: f64 = StandardNormal.sample(rng);
        spread * z
    });
    let mean = mean.collect();
    (mean, (0..classes).map(|_| 10f64.powf(-2.0 * decades * rng.random::<f64>())).collect())
}

#[test]
fn they_sum_to_one_for_variances_in_any_ratio() {
    let mut rng = Streams::new(1).stream("largest/sums");
    for decades in [0.0, 0.5, 1.0, 2.0, 3.0, 6.0, 9.0] {
        for classes in [2, 3, 4, 7, 10, 30, 100] {
            for _ in 0..20 {
                let (mean, mut variance) = case(&mut rng, classes, decades);
                let total: f64 = all(&mean, &variance).iter().sum();
                assert!((total - 1.0).abs() < 1e-12, "{mean:?} {variance:?}: {total}");
                // Some of them certain.
                variance.iter_mut().step_by(3).for_each(|v| *v = 0.0);
                let total: f64 = all(&mean, &variance).iter().sum();
                assert!((total - 1.0).abs() < 1e-12, "{mean:?} {variance:?}: {total}");
            }
        }
    }
}

#[test]
fn equal_classes_have_equal_parts_and_common_shifts_change_nothing() {
    for classes in [2, 3, 10, 100, 1000, 10_000] {
        for variance in [0.0, 1e-6, 1.0, 1e8] {
            let parts = all(&vec![0.7; classes], &vec![variance; classes]);
            let part = 1.0 / classes as f64;
            assert!(
                parts.iter().all(|p| (p - part).abs() < 1e-11 * part),
                "{classes} {variance}: {} for {part}",
                parts[0]
            );
        }
    }
    let (value, slopes) = one(2, &MEAN, &VARIANCE);
    for shift in [-3.0, 1e3, 1e6] {
        let moved = MEAN.map(|m| m + shift);
        let (shifted, shifted_slopes) = one(2, &moved, &VARIANCE);
        // The means themselves are rounded.
        let rounding = 4.0 * f64::EPSILON * (1.0 + shift.abs());
        assert!((value - shifted).abs() < rounding, "{shift}: {shifted} for {value}");
        check::assert_close(&slopes, &shifted_slopes, 0.0, 8.0 * rounding);
        assert!(shifted_slopes[..4].iter().sum::<f64>().abs() < 1e-14);
    }
}

#[test]
fn of_two_the_difference_is_a_gaussian() {
    for (first, second) in
        [(1.0, 1.0), (0.5, 2.0), (1e-6, 1.0), (1e-18, 1.0), (1.0, 1e-60), (3.0, 0.0), (1e12, 1e-9)]
    {
        let variance: f64 = first + second;
        for z in [-7.0, -2.5, -0.3, 0.0, 1.1, 4.0] {
            // The difference of the means is z deviations.
            let delta = z * variance.sqrt();
            let density = log_density(z).exp() / variance.sqrt();
            for (class, own, other) in [(0, first, second), (1, second, first)] {
                let (mean, variances) = match class {
                    0 => ([delta, 0.0], [own, other]),
                    _ => ([0.0, delta], [other, own]),
                };
                let (value, slopes) = one(class, &mean, &variances);
                let what = format!("{mean:?} {variances:?}: {value} {slopes:?}");
                assert!((value - distribution(z)).abs() < 1e-13, "{what}");
                // Units of the deviation of the difference.
                let toward = [slopes[class], -slopes[1 - class]].map(|s| (s - density) * variance.sqrt());
                assert!(toward.iter().all(|s| s.abs() < 1e-12), "{what}");
                let bend = -0.5 * z * density / variance.sqrt();
                let bends = [slopes[2 + class], slopes[3 - class]].map(|s| (s - bend) * variance);
                assert!(bends.iter().all(|s| s.abs() < 1e-11), "{what}, {bend}");
            }
        }
    }
}

/// One by the trapezoid rule with steps of a quarter of the narrowest deviation.
fn by_grid(class: usize, mean: &[f64], variance: &[f64]) -> f64 {
    let (m, s) = (mean[class], variance[class].sqrt());
    let step = 0.25 * variance.iter().copied().fold(f64::INFINITY, f64::min).sqrt();
    let count = (9.0 * s / step).ceil() as i64;
    (-count..=count)
        .map(|k| {
            let x = step * k as f64;
            let others = (0..mean.len()).filter(|&l| l != class);
            let below = |l: usize| distribution((m - mean[l] + x) / variance[l].sqrt());
            step / s * log_density(x / s).exp() * others.map(below).product::<f64>()
        })
        .sum()
}

#[test]
fn a_fine_grid_agrees_for_ratios_of_a_million() {
    for variance in [[1.0, 1e-6, 0.3], [1e-6, 1.0, 1e-6], [1e-6, 1e-3, 1.0], [2.0, 3.0, 1.0]] {
        for mean in [[0.1, 0.0, -0.4], [0.0, 0.0, 1e-3], [-1.0, 0.5, 0.501]] {
            let found = all(&mean, &variance);
            for (class, found) in found.into_iter().enumerate() {
                let expected = by_grid(class, &mean, &variance);
                assert!((found - expected).abs() < 1e-12, "{mean:?} {variance:?}: {found} for {expected}");
            }
        }
    }
}

#[test]
fn slopes_equal_finite_differences() {
    let mut rng = Streams::new(2).stream("largest/slopes");
    for decades in [0.0, 0.5, 1.5, 3.0] {
        for classes in [2, 3, 5, 8] {
            for _ in 0..6 {
                let (mut mean, variance) = case(&mut rng, classes, decades);
                let narrowest = variance.iter().copied().fold(f64::INFINITY, f64::min).sqrt();
                // Two means that narrow classes can see each other from.
                mean[1] = mean[0] + 0.7 * narrowest;
                let class = rng.random_range(0..classes);
                let (_, slopes) = one(class, &mean, &variance);
                // In units of the narrowest deviation, and in logarithms of variances.
                let at = |a: &[f64]| {
                    let means: Vec<f64> = mean.iter().zip(a).map(|(m, a)| m + narrowest * a).collect();
                    let variances: Vec<f64> =
                        variance.iter().zip(&a[classes..]).map(|(v, a)| v * a.exp()).collect();
                    one(class, &means, &variances).0
                };
                // Steps of a tenth of the difference's rule are relative to 1: the origin is moved there.
                let origin = vec![0.0; 2 * classes];
                let numeric =
                    check::gradient(|a| at(&a.iter().map(|a| 10.0 * a).collect::<Vec<_>>()), &origin);
                let units = (0..classes).map(|_| narrowest).chain(variance.iter().copied());
                let scaled: Vec<f64> = slopes.iter().zip(units).map(|(s, unit)| 10.0 * s * unit).collect();
                check::assert_close(&scaled, &numeric, 1e-7, 3e-9);
            }
        }
    }
}

#[test]
fn classes_without_a_variance_are_limits() {
    for (mean, certain) in [
        (vec![0.3, -0.2, 0.5, 0.0], vec![2]),
        (vec![0.3, -0.2, 0.5, 0.0], vec![0, 2]),
        (vec![0.3, -0.2, 0.5, 0.0], vec![0, 1, 2]),
        (vec![3.0, -0.2, 0.5, 0.0], vec![1]),
        (vec![0.3, -0.2, 0.5, 0.5], vec![3]),
    ] {
        let at = |v: f64| {
            let mut variance = VARIANCE.to_vec();
            certain.iter().for_each(|&l| variance[l] = v);
            variance
        };
        for class in 0..4 {
            let (value, slopes) = one(class, &mean, &at(0.0));
            for nearly in [1e-14, 1e-40, 1e-120] {
                let (near, near_slopes) = one(class, &mean, &at(nearly));
                // The first neglected term is half the variance times a curvature of order 1.
                assert!((value - near).abs() < 1e-13, "{mean:?} {certain:?} {class}: {value} {near}");
                check::assert_close(&slopes, &near_slopes, 1e-12, 1e-13);
            }
            assert_eq!(all(&mean, &at(0.0))[class], all(&mean, &at(-1e-18))[class]);
            assert!((all(&mean, &at(0.0))[class] - value).abs() < 1e-14);
            // One-sided differences in the variances at zero.
            let h = 1e-4;
            for &l in &certain {
                let value_at = |h: f64| {
                    let mut variance = at(0.0);
                    variance[l] = h;
                    one(class, &mean, &variance).0
                };
                let numeric = (4.0 * (value_at(0.5 * h) - value) - (value_at(h) - value)) / h;
                // Richardson's rule leaves h² times a third derivative.
                assert!((numeric - slopes[4 + l]).abs() < 1e-5, "{class} {l}: {numeric} {slopes:?}");
            }
        }
    }
    // All certain: an indicator; equal ones share.
    assert_eq!(all(&MEAN, &[0.0; 4]), [0.0, 0.0, 1.0, 0.0]);
    assert_eq!(all(&[0.5, 0.1, 0.5, 0.5, 0.5], &[0.0; 5]), [0.25, 0.0, 0.25, 0.25, 0.25]);
    let (value, slopes) = one(0, &[0.5, 0.1, 0.5], &[0.0; 3]);
    assert!(value == 0.5 && slopes.iter().all(|s| *s == 0.0));
    // Two that share beside one that is uncertain: each has half of what one alone would have.
    let (both, both_slopes) = one(0, &[0.5, 0.5, 0.0], &[0.0, 0.0, 1.3]);
    let (alone, alone_slopes) = one(0, &[0.5, 0.1, 0.0], &[0.0, 0.0, 1.3]);
    assert_eq!(
        (both, both_slopes[2], both_slopes[5]),
        (0.5 * alone, 0.5 * alone_slopes[2], 0.5 * alone_slopes[5])
    );
}

#[test]
fn simulation_agrees_also_for_a_hundred_classes() {
    let mut rng = Streams::new(3).stream("largest/simulation");
    for (classes, decades, count) in [(3, 1.0, 200_000), (6, 3.0, 200_000), (100, 0.5, 20_000)] {
        let (mean, variance) = case(&mut rng, classes, decades);
        let mut seen = vec![0.0; classes];
        for _ in 0..count {
            let mut best = (0, f64::NEG_INFINITY);
            for l in 0..classes {
                let z: f64 = StandardNormal.sample(&mut rng);
                let f = mean[l] + variance[l].sqrt() * z;
                if f > best.1 {
                    best = (l, f);
                }
            }
            seen[best.0] += 1.0;
        }
        for (p, seen) in all(&mean, &variance).into_iter().zip(seen) {
            let count = f64::from(count);
            // Five standard errors of a share, and a draw where hardly any is expected.
            let tolerance = 5.0 * (p * (1.0 - p) / count).sqrt() + 1.5 / count;
            assert!((p - seen / count).abs() < tolerance, "{classes}: {p} {seen}");
        }
    }
}

#[test]
fn a_hundred_classes_have_slopes() {
    let mut rng = Streams::new(4).stream("largest/hundred");
    let (mean, variance) = case(&mut rng, 100, 0.5);
    let class = (0..100).fold(0, |best, l| if mean[l] > mean[best] { l } else { best });
    let (value, slopes) = one(class, &mean, &variance);
    assert!((value - all(&mean, &variance)[class]).abs() < 1e-14);
    let arguments = [mean.clone(), variance.iter().map(|v| v.ln()).collect()].concat();
    let numeric = check::gradient(
        |a| one(class, &a[..100], &a[100..].iter().map(|a| a.exp()).collect::<Vec<_>>()).0,
        &arguments,
    );
    let units = std::iter::repeat_n(1.0, 100).chain(variance.iter().copied());
    let scaled: Vec<f64> = slopes.iter().zip(units).map(|(s, unit)| s * unit).collect();
    check::assert_close(&scaled, &numeric, 1e-7, 1e-9);
}

#[test]
fn extreme_and_missing_numbers_end() {
    for (mean, variance) in [
        ([0.0, 1.0, 2.0], [1e300, 1.0, 1e-300]),
        ([1e300, -1e300, 0.0], [1.0, 1.0, 1.0]),
        ([0.0, 1e-160, 0.0], [1e-320, 1e-140, 1e-149]),
        ([1e10, 1e10 + 1e-5, 3.0], [1e-140, 1e-140, 1e20]),
        ([f64::MAX, 0.0, -f64::MAX], [f64::MAX, f64::MIN_POSITIVE, 1.0]),
    ] {
        let found = all(&mean, &variance);
        assert!((found.iter().sum::<f64>() - 1.0).abs() < 1e-12, "{mean:?} {variance:?}: {found:?}");
        for (class, probability) in found.iter().enumerate() {
            let (value, slopes) = one(class, &mean, &variance);
            assert!((value - probability).abs() < 1e-13, "{mean:?} {variance:?}: {value} {found:?}");
            assert!(slopes.iter().all(|s| s.is_finite()), "{mean:?} {variance:?}: {slopes:?}");
        }
    }
    // Wide beside narrow: half of the time the wide one is above both, which have the other half as they would have without it.
    let found = all(&[0.0, 0.3, 0.0], &[1.0, 1.0, 1e30]);
    let share = distribution(-0.3 / 2f64.sqrt());
    check::assert_close(&found, &[0.5 * share, 0.5 * (1.0 - share), 0.5], 0.0, 1e-13);
    for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        assert!(all(&[0.0, bad], &[1.0, 1.0]).iter().all(|p| p.is_nan()));
        assert!(all(&[0.0, 0.0], &[bad, 1.0]).iter().all(|p| p.is_nan()));
        let (value, slopes) = one(1, &[0.0, 0.0], &[bad, 1.0]);
        assert!(value.is_nan() && slopes.iter().all(|s| s.is_nan()));
    }
}

proptest! {
    /// Of any numbers: shares of one, and slopes that a common shift does not see.
    #[test]
    fn any_numbers_have_shares(
        parts in prop::collection::vec((-1e3..1e3f64, -30..30i32, any::<bool>()), 2..9), class in 0usize..9,
    ) {
        let mean: Vec<f64> = parts.iter().map(|p| p.0 * 10f64.powi(p.1 / 4)).collect();
        let variance: Vec<f64> = parts.iter().map(|p| if p.2 { 10f64.powi(p.1) } else { 0.0 }).collect();
        let found = all(&mean, &variance);
        prop_assert!((found.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        prop_assert!(found.iter().all(|p| (-1e-15..=1.0 + 1e-12).contains(p)));
        let class = class % mean.len();
        let (value, slopes) = one(class, &mean, &variance);
        prop_assert!((value - found[class]).abs() < 1e-13);
        let (sum, size) = slopes[..mean.len()].iter().fold((0.0, 0.0), |(s, a), t| (s + t, a + t.abs()));
        prop_assert!(f64::abs(sum) <= 1e-12 * size);
    }
}
