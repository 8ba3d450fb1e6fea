//! Chosen points against what they promise.

use super::*;
use crate::gram;
use crate::matrix::KernelMatrix;
use crate::tests::{build, points};
use faer::linalg::solvers::Solve;
use faer::{Mat, MatRef, Side};
use posterior_linalg::random::Streams;

const D: usize = 3;

fn distance(x: MatRef<'_, f64>, i: usize, j: usize) -> f64 {
    (0..x.ncols()).map(|d| (x[(i, d)] - x[(j, d)]).powi(2)).sum::<f64>().sqrt()
}

#[test]
fn greedy_rows_have_the_largest_conditional_variance_each_time() {
    let x = points(60, 71);
    let kernel = build::<f64>("matern32(variance=2) + linear");
    let k = gram(&*kernel, x.as_ref());
    let greedy = greedy_variance(&KernelMatrix::new(&*kernel, x.as_ref()), 12, 0.0);
    assert_eq!(greedy.rows.len(), 12);
    for m in 0..12 {
        let chosen = &greedy.rows[..m];
        let inner = Mat::from_fn(m, m, |i, j| k[(chosen[i], chosen[j])]);
        let across = Mat::from_fn(m, 60, |i, j| k[(chosen[i], j)]);
        let explained =
            if m == 0 { Mat::zeros(0, 60) } else { inner.llt(Side::Lower).unwrap().solve(&across) };
        let left: Vec<f64> = (0..60)
            .map(|j| k[(j, j)] - (0..m).map(|i| across[(i, j)] * explained[(i, j)]).sum::<f64>())
            .collect();
        let best = left.iter().fold(0.0f64, |a, &b| a.max(b));
        assert!((left[greedy.rows[m]] - best).abs() < 1e-10, "{m}");
        if m > 0 {
            assert!((greedy.residuals[m - 1] - left.iter().sum::<f64>()).abs() < 1e-9, "{m}");
        }
    }
    // The matrix has rank 3: it ends there.
    let linear = build::<f64>("linear");
    let greedy = greedy_variance(&KernelMatrix::new(&*linear, x.as_ref()), 60, 1e-10);
    assert_eq!(greedy.rows.len(), 3);
    assert!(greedy.residuals[2] < 1e-10);
}

/// Spec `generalised_variational_inference`, section 20: fixture G.
#[test]
fn greedy_orders_are_those_of_the_specification() {
    let at = [-2.0, -1.2, -0.5, 0.1, 0.9, 1.7];
    let x = Mat::from_fn(6, 1, |i, _| at[i]);
    let greedy = |text: &str| {
        let kernel = text.parse::<crate::KernelExpression>().unwrap().build::<f64>(&["x".into()]).unwrap();
        greedy_variance(&KernelMatrix::new(&*kernel, x.as_ref()), 5, 0.0)
    };
    // All variances are equal at first: the first row.
    assert_eq!(greedy("se(variance=1.44, lengthscale=0.8)").rows, [0, 5, 3, 1, 4]);
    let found = greedy("nngp(depth=1, erf, readout=false)");
    assert_eq!(found.rows, [0, 5, 3, 2, 4]);
    let traces = [1.8043965607, 0.3806978141, 0.0777973297, 0.0201076907];
    for (found, expected) in found.residuals.iter().zip(traces) {
        // Ten digits, and 1e-12 that the specification adds to each variance.
        assert!((found - expected).abs() < 6e-11, "{found} {expected}");
    }
}

/// `diag(K - K_Z K_ZZ⁻¹ K_Z)` anew for each choice, as the rule is written; of equals the first.
#[test]
fn greedy_rows_are_those_of_the_rule_itself() {
    let names: Vec<String> = (0..6).map(|i| format!("x{i}")).collect();
    for text in [
        "se(ard, lengthscale=1.5)",
        "matern32 + linear(ard)",
        "polynomial(degree=3)",
        "nngp(depth=2, relu)",
        "nngp(depth=1, erf, readout=false)",
        "nngp-conv(shape=2x3, conv=1x2, relu, pool=2x1, dense, erf)",
    ] {
        let kernel = text.parse::<crate::KernelExpression>().unwrap().build::<f64>(&names).unwrap();
        for seed in 0..4 {
            let mut rng = Streams::new(seed).stream("kernels/greedy");
            let mut x = Mat::<f64>::from_fn(40, 6, |_, _| {
                rand_distr::Distribution::sample(&rand_distr::StandardNormal, &mut rng)
            });
            // Two rows that are one: the second is never chosen.
            (0..6).for_each(|d| x[(23, d)] = x[(7, d)]);
            let k = gram(&*kernel, x.as_ref());
            let mut rows: Vec<usize> = Vec::new();
            while rows.len() < 9 {
                let m = rows.len();
                let inner = Mat::from_fn(m, m, |i, j| k[(rows[i], rows[j])]);
                let across = Mat::from_fn(m, 40, |i, j| k[(rows[i], j)]);
                let explained =
                    if m == 0 { Mat::zeros(0, 40) } else { inner.llt(Side::Lower).unwrap().solve(&across) };
                let left =
                    |j: usize| k[(j, j)] - (0..m).map(|i| across[(i, j)] * explained[(i, j)]).sum::<f64>();
                let best = (0..40).filter(|j| !rows.contains(j)).fold(None, |best: Option<usize>, j| {
                    // Equals to rounding count as equals.
                    best.filter(|&b| left(j) <= left(b) * (1.0 + 1e-9)).or(Some(j))
                });
                rows.extend(best);
            }
            assert!(!rows.contains(&23));
            let found = greedy_variance(&KernelMatrix::new(&*kernel, x.as_ref()), 9, 0.0);
            assert_eq!(found.rows, rows, "{text} {seed}");
        }
    }
}

#[test]
fn k_means_finds_separate_clusters_and_its_centres_are_means() {
    let noise = points(300, 72);
    let x = Mat::from_fn(300, D, |i, d| 0.1 * noise[(i, d)] + if d == i % 3 { 10.0 } else { 0.0 });
    let centres = k_means(x.as_ref(), 3, KMeansSettings::default(), Streams::new(1)).unwrap();
    assert_eq!(centres.nrows(), 3);
    for cluster in 0..3 {
        let mean: Vec<f64> =
            (0..D).map(|d| (0..100).map(|i| x[(3 * i + cluster, d)]).sum::<f64>() / 100.0).collect();
        let hit = (0..3).any(|k| (0..D).all(|d| (centres[(k, d)] - mean[d]).abs() < 1e-12));
        assert!(hit, "{cluster}");
    }
    // Two different points, forty times: two centres however many are asked for.
    let duplicates = Mat::from_fn(40, 1, |i, _| (i % 2) as f64);
    let centres = k_means(duplicates.as_ref(), 9, KMeansSettings::default(), Streams::new(2)).unwrap();
    let mut values: Vec<f64> = centres.col_as_slice(0).to_vec();
    values.sort_by(f64::total_cmp);
    assert_eq!(values, [0.0, 1.0]);
}

#[test]
fn k_means_does_not_depend_on_the_number_of_threads_and_improves() {
    let x = points(2000, 73);
    let run = |threads, rounds| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let settings = KMeansSettings { rounds, tolerance: 0.0 };
        pool.install(|| k_means(x.as_ref(), 20, settings, Streams::new(3)).unwrap())
    };
    assert_eq!(run(1, 5), run(3, 5));
    let cost = |centres: &Mat<f64>| -> f64 {
        let to = |i: usize, k: usize| (0..D).map(|d| (x[(i, d)] - centres[(k, d)]).powi(2)).sum::<f64>();
        (0..2000).map(|i| (0..centres.nrows()).map(|k| to(i, k)).fold(f64::INFINITY, f64::min)).sum()
    };
    let costs: Vec<f64> = [1, 3, 10].iter().map(|&rounds| cost(&run(1, rounds))).collect();
    assert!(costs[0] > costs[1] && costs[1] > costs[2], "{costs:?}");
}

#[test]
fn neighbours_are_those_of_an_exhaustive_search() {
    let mut x = points(400, 74);
    // Some points coincide, and one coordinate takes few values.
    (0..40).for_each(|i| (0..D).for_each(|d| x[(i, d)] = x[(100, d)]));
    (0..400).for_each(|i| x[(i, 2)] = x[(i, 2)].round());
    let tree = NeighbourTree::new(x.as_ref());
    for i in (0..400).step_by(7) {
        for (radius, most) in [(0.5, 400), (1.2, 5), (100.0, 37), (0.0, 400)] {
            let mut expected: Vec<(f64, usize)> = (0..400)
                .filter(|&j| j != i)
                .map(|j| (distance(x.as_ref(), i, j), j))
                .filter(|(r, _)| *r <= radius)
                .collect();
            expected.sort_by(|a, b| a.0.total_cmp(&b.0));
            expected.truncate(most);
            let found = tree.within(i, radius, most);
            assert_eq!(found.len(), expected.len(), "{i} {radius} {most}");
            for (f, e) in found.iter().zip(&expected) {
                // Equally distant points may be exchanged.
                assert!(
                    (f.0.sqrt() - e.0).abs() < 1e-12 && (distance(x.as_ref(), i, f.1) - e.0).abs() < 1e-12
                );
            }
        }
    }
}

#[test]
fn covers_cover_and_pruned_rows_have_a_kept_neighbour() {
    let x = points(500, 75);
    let kept = cover(x.as_ref(), 0.7, usize::MAX).unwrap();
    for i in 0..500 {
        assert!(kept.iter().any(|&k| distance(x.as_ref(), i, k) <= 0.7));
    }
    for (a, &i) in kept.iter().enumerate() {
        assert!(kept[..a].iter().all(|&j| distance(x.as_ref(), i, j) > 0.7));
    }
    assert_eq!(cover(x.as_ref(), 0.7, 5).unwrap(), kept[..5]);
    let mut counts = Vec::new();
    for threshold in [0.2, 0.5, 1.0] {
        let left = prune_neighbours(x.as_ref(), threshold, 100).unwrap();
        for i in 0..500 {
            assert!(left.iter().any(|&k| distance(x.as_ref(), i, k) <= threshold), "{i}");
        }
        counts.push(left.len());
    }
    assert!(counts[0] > counts[1] && counts[1] > counts[2] && counts[2] < 100, "{counts:?}");
    // Percentile of 1, 4, 9, 16, 25, 36 at 0.2 · 5 = 1: 4.
    assert_eq!(pruning_threshold(&[6.0, 1.0, 2.0, 3.0, 5.0, 4.0], 0.5), 8.0);
}

#[test]
fn radii_grow_until_few_rows_are_left() {
    let x = points(300, 77);
    let kernel = build::<f64>("se(lengthscale=0.5)");
    let choose =
        |choice: InducingChoice, most| choice.choose(&*kernel, x.as_ref(), most, Streams::new(0)).unwrap();
    for choice in
        [InducingChoice::Cover { radius: 0.4 }, InducingChoice::Pruned { neighbours: 20, ratio: 2.0 }]
    {
        let (all, few) = (choose(choice, 300), choose(choice, 15));
        let (radius, grown) = (all.radius.unwrap(), few.radius.unwrap());
        assert!(all.points.nrows() > 30 && few.points.nrows() <= 15 && grown > radius, "{choice:?} {grown}");
        // Rounds of pruning add up; a cover is one.
        let (unit, reach) = match choice {
            InducingChoice::Cover { .. } => (0.5, grown),
            // 0.5² / 2, and at most the geometric series of the thresholds before.
            _ => (1.0, 5.0 * grown),
        };
        assert!(matches!(choice, InducingChoice::Cover { .. }) || radius == 0.125);
        for i in 0..300 {
            let nearest = (0..few.points.nrows())
                .map(|j| (0..D).map(|d| (x[(i, d)] - few.points[(j, d)]).powi(2)).sum::<f64>().sqrt() / unit);
            assert!(nearest.fold(f64::INFINITY, f64::min) <= reach, "{i}");
        }
        assert_eq!(choose(choice, 1).points.nrows(), 1);
    }
    let nothing = InducingChoice::Pruned { neighbours: 20, ratio: f64::NAN };
    let error = nothing.points(&*kernel, x.as_ref(), 3, Streams::new(0)).unwrap_err();
    assert!(matches!(error, InducingError::Ratio { .. }));
    let tiny = InducingChoice::Cover { radius: 1e-300 };
    assert!(tiny.points(&*kernel, x.as_ref(), 3, Streams::new(0)).is_err());
}

#[test]
fn every_choice_gives_points_for_a_kernel() {
    let x = points(200, 76);
    let kernel = build::<f64>("matern32(ard, lengthscale=2, variance=3) + se(x2, lengthscale=0.5) + linear");
    assert_eq!(lengthscales(&*kernel, D), [2.0, 0.5, 2.0]);
    let choices = [
        InducingChoice::Random,
        InducingChoice::KMeans,
        InducingChoice::GreedyVariance,
        InducingChoice::Cover { radius: 0.8 },
        InducingChoice::Pruned { neighbours: 50, ratio: 1.0 },
    ];
    // What is left unexplained, in sum and at the worst.
    let left = |z: &Mat<f64>| {
        let both = crate::cross(&*kernel, x.as_ref(), z.as_ref());
        let mut inner = gram(&*kernel, z.as_ref());
        (0..z.nrows()).for_each(|i| inner[(i, i)] += 1e-9);
        let solved = inner.llt(Side::Lower).unwrap().solve(both.transpose());
        let k = crate::diagonal(&*kernel, x.as_ref());
        let variance = |i: usize| k[i] - (0..z.nrows()).map(|j| both[(i, j)] * solved[(j, i)]).sum::<f64>();
        let variances = (0..200).map(variance);
        variances.fold((0.0, 0.0), |(sum, worst): (f64, f64), v| (sum + v, worst.max(v)))
    };
    let errors: Vec<(f64, f64)> = choices
        .iter()
        .map(|choice| {
            let z = choice.points(&*kernel, x.as_ref(), 25, Streams::new(4)).unwrap();
            assert!(z.nrows() <= 25 && z.nrows() > 5 && z.ncols() == D, "{choice:?}");
            left(&z)
        })
        .collect();
    // Clusters lower the sum, greedy choices the worst.
    assert!(errors[1].0 < errors[0].0 && errors[2].1 < errors[0].1, "{errors:?}");
    for choice in choices {
        let text = serde_json::to_string(&choice).unwrap();
        assert_eq!(serde_json::from_str::<InducingChoice>(&text).unwrap(), choice, "{text}");
        let empty = Mat::<f64>::zeros(0, D);
        let error = choice.points(&*kernel, empty.as_ref(), 3, Streams::new(0)).unwrap_err();
        assert_eq!(error, InducingError::NoRows);
        let error = choice.points(&*kernel, x.as_ref(), 0, Streams::new(0)).unwrap_err();
        assert_eq!(error, InducingError::NoPoints);
        let mut bad = x.clone();
        bad[(7, 1)] = f64::NAN;
        let error = choice.points(&*kernel, bad.as_ref(), 3, Streams::new(0)).unwrap_err();
        assert!(matches!(error, InducingError::NotFinite { row: 7, column: 1, .. }));
    }
    assert!(matches!(cover(x.as_ref(), f64::NAN, 3), Err(InducingError::Radius { .. })));
    let all = random_rows(10, 99, Streams::new(0));
    assert_eq!(all, (0..10).collect::<Vec<_>>());
}
