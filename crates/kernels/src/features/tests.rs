//! Features against the kernels that they stand for.

use super::*;
use crate::tests::{build, points};
use crate::{Kernel, KernelExpression, cross};
use faer::{Mat, MatRef};
use posterior_linalg::random::Streams;
use posterior_optim::check::{assert_close, gradient};
use std::sync::Arc;

const D: usize = 3;

fn features(text: &str, settings: FeatureSettings, seed: u64) -> RandomFeatures<f64> {
    RandomFeatures::new(&*build::<f64>(text), D, settings, Streams::new(seed)).unwrap()
}

fn settings(count: usize, form: FeatureForm, frequencies: FrequencyDraw) -> FeatureSettings {
    FeatureSettings { count, form, frequencies }
}

/// Stationary kernels and a product of two, with an amplitude each that is known.
const WAVES: [&str; 9] = [
    "se(ard, lengthscale=1.2)",
    "matern12(lengthscale=2)",
    "matern32(x1, x3, lengthscale=0.8)",
    "matern52(ard)",
    "rq(alpha=0.7)",
    "rq(alpha=3.5, lengthscale=0.6)",
    "se(x1) * matern32(x2, x1, lengthscale=1.5)",
    "rq(x1, alpha=0.4) * matern12(x2) * matern52",
    "additive(rq, order=1, alpha=0.9)",
];

#[test]
fn sixty_thousand_features_reproduce_the_kernels() {
    let x = points(4, 61);
    const COUNT: usize = 60_000;
    for text in WAVES {
        let exact = cross(&*build::<f64>(text), x.as_ref(), x.as_ref());
        for (form, frequencies) in [
            (FeatureForm::Phase, FrequencyDraw::Independent),
            (FeatureForm::Paired, FrequencyDraw::Independent),
            (FeatureForm::Phase, FrequencyDraw::Widened),
            (FeatureForm::Paired, FrequencyDraw::Widened),
        ] {
            let map = features(text, settings(COUNT, form, frequencies), 1);
            let phi = map.evaluate(x.as_ref());
            assert_eq!(phi.shape(), (4, COUNT));
            for i in 0..4 {
                for j in 0..=i {
                    let terms = |l: usize| match form {
                        FeatureForm::Phase => phi[(i, l)] * phi[(j, l)],
                        FeatureForm::Paired => {
                            let half = COUNT / 2;
                            phi[(i, l)] * phi[(j, l)] + phi[(i, half + l)] * phi[(j, half + l)]
                        }
                    };
                    let count = if form == FeatureForm::Phase { COUNT } else { COUNT / 2 };
                    let mean = (0..count).map(terms).sum::<f64>();
                    // Terms are alike and independent: four standard errors of their sum, from their own spread.
                    let spread =
                        (0..count).map(|l| (terms(l) - mean / count as f64).powi(2)).sum::<f64>().sqrt();
                    let error = (mean - exact[(i, j)]).abs();
                    assert!(error <= 4.0 * spread + 1e-9, "{text} {form:?} ({i}, {j}): {error} {spread}");
                }
            }
        }
    }
}

/// Mean squared error of `φ(x)·φ(z)` over draws, and its standard error.
fn error_of(
    text: &str,
    how: FeatureSettings,
    draws: u64,
    (x, z): (MatRef<'_, f64>, MatRef<'_, f64>),
) -> (f64, f64) {
    let exact = cross(&*build::<f64>(text), x, z)[(0, 0)];
    let squares: Vec<f64> = (0..draws)
        .map(|seed| {
            let map = features(text, how, 1000 + seed);
            let (a, b) = (map.evaluate(x), map.evaluate(z));
            ((a * b.transpose())[(0, 0)] - exact).powi(2)
        })
        .collect();
    let n = draws as f64;
    let mean = squares.iter().sum::<f64>() / n;
    let spread = squares.iter().map(|s| (s - mean).powi(2)).sum::<f64>() / (n * (n - 1.0));
    (mean, spread.sqrt())
}

#[test]
fn errors_have_the_variances_of_theory() {
    // (V + ½)/d for phases, 2V/d for pairs, V = (1 + k(2Δ))/2 - k(Δ)².
    let x = Mat::<f64>::zeros(1, D);
    let z = Mat::from_fn(1, D, |_, j| 0.3 + 0.2 * j as f64);
    let twice = Mat::from_fn(1, D, |_, j| 2.0 * z[(0, j)]);
    let count = 50;
    for text in ["se", "matern12", "matern32", "matern52"] {
        let k = |point: &Mat<f64>| cross(&*build::<f64>(text), x.as_ref(), point.as_ref())[(0, 0)];
        let v = (1.0 + k(&twice)) / 2.0 - k(&z).powi(2);
        for (form, expected) in [(FeatureForm::Phase, v + 0.5), (FeatureForm::Paired, 2.0 * v)] {
            let how = settings(count, form, FrequencyDraw::Independent);
            let (mean, error) = error_of(text, how, 2000, (x.as_ref(), z.as_ref()));
            let expected = expected / count as f64;
            assert!((mean - expected).abs() < 5.0 * error, "{text} {form:?}: {mean} {expected} {error}");
        }
    }
}

#[test]
fn orthogonal_and_even_frequencies_err_less() {
    let x = Mat::<f64>::zeros(1, D);
    let z = Mat::from_fn(1, D, |_, j| 0.5 + 0.2 * j as f64);
    for text in ["se", "matern32"] {
        let error = |frequencies| {
            error_of(text, settings(96, FeatureForm::Paired, frequencies), 1500, (x.as_ref(), z.as_ref()))
        };
        let (independent, deviation) = error(FrequencyDraw::Independent);
        for frequencies in [FrequencyDraw::Orthogonal, FrequencyDraw::QuasiRandom] {
            let (mean, other) = error(frequencies);
            // Less, beyond doubt.
            assert!(
                mean + 4.0 * other < independent - 4.0 * deviation,
                "{text} {frequencies:?}: {mean} {independent}"
            );
        }
    }
}

#[test]
fn all_ways_to_draw_are_unbiased() {
    let x = Mat::<f64>::zeros(1, D);
    let z = Mat::from_fn(1, D, |_, j| 0.4 - 0.5 * j as f64);
    for text in [
        "se(lengthscale=0.9)",
        "matern12",
        "matern52(ard)",
        "rq(alpha=1.3)",
        "se * matern32(x2)",
        "matern12(x1) * rq",
    ] {
        let exact = cross(&*build::<f64>(text), x.as_ref(), z.as_ref())[(0, 0)];
        for frequencies in [FrequencyDraw::Orthogonal, FrequencyDraw::QuasiRandom, FrequencyDraw::Widened] {
            for form in [FeatureForm::Phase, FeatureForm::Paired] {
                let values: Vec<f64> = (0..800)
                    .map(|seed| {
                        let map = features(text, settings(30, form, frequencies), seed);
                        (map.evaluate(x.as_ref()) * map.evaluate(z.as_ref()).transpose())[(0, 0)]
                    })
                    .collect();
                let mean = values.iter().sum::<f64>() / 800.0;
                let spread = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (800.0 * 799.0);
                assert!(
                    (mean - exact).abs() < 4.5 * spread.sqrt(),
                    "{text} {frequencies:?} {form:?}: {mean} {exact} ± {}",
                    spread.sqrt()
                );
            }
        }
    }
}

/// Of two points so near that only frequencies of thousands tell them apart, the square distance of their features is `2 (k(0) - k(Δ))` on average; independent frequencies see nothing of it in most draws.
#[test]
fn wider_laws_see_what_is_rare() {
    let matern12 = |delta: f64| -(-delta).exp_m1();
    let matern32 = |delta: f64| {
        let q = 3f64.sqrt() * delta;
        -(-q).exp_m1() - q * (-q).exp()
    };
    let se = |delta: f64| -(-0.5 * delta * delta).exp_m1();
    // (1 + Δ²/(2α))^(-α)
    let rq = |alpha: f64, delta: f64| -(-alpha * (0.5 * delta * delta / alpha).ln_1p()).exp_m1();
    let cases: [(&str, f64, f64); 7] = [
        ("matern32", 3e-4, matern32(3e-4)),
        ("se", 1e-3, se(1e-3)),
        ("matern12", 1e-3, matern12(1e-3)),
        ("rq(alpha=0.6)", 1e-3, rq(0.6, 1e-3)),
        // The other factor is where it was: what is far out is far out in one of them.
        ("matern12(x1) * se(x2, x3)", 1e-3, matern12(1e-3)),
        ("matern32(x1) * matern32(x2) * se", 3e-4, 1.0 - (1.0 - matern32(3e-4)) * (1.0 - se(3e-4))),
        // Each column is in a third of the frequencies.
        ("additive(matern12, order=1)", 1e-3, matern12(1e-3) / 3.0),
    ];
    let x = Mat::<f64>::zeros(1, D);
    for (text, delta, apart) in cases {
        let z = Mat::from_fn(1, D, |_, j| if j == 0 { delta } else { 0.0 });
        let missing = |frequencies| {
            let each: Vec<f64> = (0..200)
                .map(|seed| {
                    let map = features(text, settings(500, FeatureForm::Paired, frequencies), seed);
                    let apart = map.evaluate(x.as_ref()) - map.evaluate(z.as_ref());
                    apart.squared_norm_l2()
                })
                .collect();
            let mean = each.iter().sum::<f64>() / 200.0;
            let spread = each.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (200.0 * 199.0);
            (mean, spread.sqrt())
        };
        let expected = 2.0 * apart;
        let (mean, error) = missing(FrequencyDraw::Widened);
        assert!((mean - expected).abs() < 4.5 * error, "{text}: {mean} {expected} ± {error}");
        // Each set of 250 frequencies is near it, and not one in many.
        assert!(error * 200f64.sqrt() < 0.9 * expected, "{text}: {error} {expected}");
    }
}

#[test]
fn weights_of_wider_laws_are_at_most_two() {
    let x = Mat::<f64>::zeros(1, D);
    for text in ["rq(alpha=0.3)", "se(x1) * matern12(x2) * matern52", "additive(matern32, order=1)", "se"] {
        for count in [1, 2, 3, 64, 501] {
            let phi = features(text, settings(count, FeatureForm::Paired, FrequencyDraw::Widened), 3)
                .evaluate(x.as_ref());
            // At zero, cosines are 1 and sines 0: squares are the weights over their number.
            let waves = phi.ncols() / 2;
            for l in 0..waves {
                let weight = phi[(0, l)].powi(2) * waves as f64;
                assert!(weight > 0.0 && weight < 2.0 + 1e-9, "{text} {count}: {weight}");
            }
        }
    }
}

const SUM: &str = "matern32(ard, variance=1.7) + linear(ard, x2, x3, variance=0.4) + constant(variance=0.6) + se(x1, variance=0.3)";

#[test]
fn sums_are_concatenated_and_exact_terms_are_exact() {
    let (x, z) = (points(5, 62), points(4, 63));
    let kernel =
        build::<f64>("linear(ard, x2, x3, variance=0.4) + constant(variance=0.6) + linear(variance=0.2)");
    let map = RandomFeatures::new(&*kernel, D, FeatureSettings::default(), Streams::new(1)).unwrap();
    assert_eq!(map.count(), 2 + 1 + 3);
    let product = map.evaluate(x.as_ref()) * map.evaluate(z.as_ref()).transpose();
    assert!((product - cross(&*kernel, x.as_ref(), z.as_ref())).norm_max() < 1e-13);

    let map = features(SUM, settings(60_000, FeatureForm::Paired, FrequencyDraw::Independent), 2);
    assert_eq!(map.count(), 60_000 + 2 + 1 + 60_000);
    let product = map.evaluate(x.as_ref()) * map.evaluate(z.as_ref()).transpose();
    let exact = cross(&*build::<f64>(SUM), x.as_ref(), z.as_ref());
    // Deviation at most √(2V/d) with V <= ½ and 2V <= 1, times 1.7 and 0.3: five of them.
    let bound = 5.0 * (1.7f64.powi(2) + 0.3f64.powi(2)).sqrt() / 60_000f64.sqrt();
    assert!((product - exact).norm_max() < bound);
}

#[test]
fn products_in_blocks_are_products_with_the_map() {
    let x = points(333, 64);
    let map = features(SUM, settings(40, FeatureForm::Phase, FrequencyDraw::Orthogonal), 3);
    let phi = map.evaluate(x.as_ref());
    let w = Mat::from_fn(map.count(), 5, |i, j| ((i * 3 + j) as f64).sin());
    assert!((map.multiply(x.as_ref(), w.as_ref()) - &phi * &w).norm_max() < 1e-12);
}

#[test]
fn draws_are_evaluated_and_differentiated_anywhere() {
    let x = points(6, 65);
    let flat: Vec<f64> = (0..D).flat_map(|d| x.col_as_slice(d).to_vec()).collect();
    let at = |p: &[f64]| MatRef::from_column_major_slice(p, 6, D).to_owned();
    let which = [2, 0, 1, 1, 2, 0];
    for form in [FeatureForm::Phase, FeatureForm::Paired] {
        for text in [SUM, "rq(ard, x1, x2)", "se * matern52(x3)"] {
            let map = Arc::new(features(text, settings(30, form, FrequencyDraw::Independent), 4));
            let draws = PriorDraws::new(map.clone(), 3, Streams::new(5));
            let values = draws.values(x.as_ref());
            let alone = draws.values_of(x.as_ref(), &which);
            (0..6).for_each(|i| assert!((alone[i] - values[(i, which[i])]).abs() < 1e-12));
            let own = draws.gradients_of(x.as_ref(), &which).unwrap();
            let numeric = gradient(|p| draws.values_of(at(p).as_ref(), &which).iter().sum(), &flat);
            let exact: Vec<f64> = (0..D).flat_map(|d| own.col_as_slice(d).to_vec()).collect();
            assert_close(&exact, &numeric, 1e-6, 1e-7);
            // A function does not depend on how many there are.
            let more = PriorDraws::new(map, 7, Streams::new(5)).values(x.as_ref());
            assert!((more.subcols(0, 3) - values).norm_max() < 1e-12);
        }
    }
}

#[test]
fn draws_have_the_prior_covariance() {
    // Over weights and features: 4,000 functions of 40 maps, covariance within five standard errors.
    let x = points(3, 66);
    let text = "matern32(variance=2)";
    let exact = cross(&*build::<f64>(text), x.as_ref(), x.as_ref());
    let (maps, each) = (100, 100);
    let mut means = vec![Vec::new(); 9];
    for seed in 0..maps {
        let map = features(text, settings(200, FeatureForm::Paired, FrequencyDraw::Independent), seed);
        let values = PriorDraws::new(Arc::new(map), each, Streams::new(seed)).values(x.as_ref());
        let covariance = &values * values.transpose();
        (0..9).for_each(|k| means[k].push(covariance[(k / 3, k % 3)] / each as f64));
    }
    for (k, values) in means.iter().enumerate() {
        let n = maps as f64;
        let mean = values.iter().sum::<f64>() / n;
        let error = (values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n * (n - 1.0))).sqrt();
        assert!((mean - exact[(k / 3, k % 3)]).abs() < 5.0 * error, "{k}: {mean} ± {error}");
    }
}

#[test]
fn single_precision_and_far_points() {
    let x = points(4, 68);
    let single = Mat::from_fn(4, D, |i, j| x[(i, j)] as f32);
    let (how, text) = (settings(64, FeatureForm::Phase, FrequencyDraw::Independent), "matern52(ard)");
    let exact = features(text, how, 9).evaluate(x.as_ref());
    let rounded =
        RandomFeatures::new(&*build::<f32>(text), D, how, Streams::new(9)).unwrap().evaluate(single.as_ref());
    for l in 0..64 {
        for i in 0..4 {
            // Angles below some 60, off by a few roundings of that; amplitude √(2/64).
            assert!((exact[(i, l)] - f64::from(rounded[(i, l)])).abs() < 1e-5);
        }
    }
    let far = Mat::from_fn(2, D, |i, _| if i == 0 { 1e300 } else { f64::NAN });
    let values = features(text, how, 9).evaluate(far.as_ref());
    assert!((0..64).all(|l| values[(0, l)].is_finite() && values[(1, l)].is_nan()));
}

#[test]
fn what_cannot_be_drawn_is_refused() {
    let error = |text: &str| {
        RandomFeatures::new(&*build::<f64>(text), D, FeatureSettings::default(), Streams::new(0)).unwrap_err()
    };
    assert_eq!(error("periodic"), FeatureError::NoFeatures { kernel: "periodic".into() });
    assert_eq!(error("se + nngp(depth=2, erf)"), FeatureError::NoFeatures { kernel: "nngp".into() });
    assert_eq!(error("se + polynomial"), FeatureError::NoFeatures { kernel: "polynomial".into() });
    assert_eq!(error("se + white"), FeatureError::Noise);
    assert_eq!(error("se * linear"), FeatureError::Product { kernel: "linear".into() });
    let kernel = build::<f64>("se");
    let make = |dimension, count| {
        let how = FeatureSettings { count, ..FeatureSettings::default() };
        RandomFeatures::new(&*kernel, dimension, how, Streams::new(0)).unwrap_err()
    };
    assert_eq!(make(2, 10), FeatureError::Column { column: 2, dimension: 2 });
    assert!(matches!(make(D, 0), FeatureError::Count { count: 0, .. }));
    assert!(matches!(make(D, usize::MAX), FeatureError::Count { .. }));
    let counts: KernelExpression = "tanimoto + se".parse().unwrap();
    let kernel: Box<dyn Kernel<f64>> = counts.build(&["a".to_string()]).unwrap();
    let map = RandomFeatures::new(&*kernel, 1, FeatureSettings::default(), Streams::new(0)).unwrap();
    let draws = PriorDraws::new(Arc::new(map), 1, Streams::new(0));
    let point = Mat::<f64>::zeros(1, 1);
    assert_eq!(draws.gradients_of(point.as_ref(), &[0]).unwrap_err(), FeatureError::NotDifferentiable);
}

#[test]
fn settings_are_words() {
    let text = r#"{"count":500,"form":"phase","frequencies":"quasi-random"}"#;
    let read: FeatureSettings = serde_json::from_str(text).unwrap();
    assert_eq!(read, settings(500, FeatureForm::Phase, FrequencyDraw::QuasiRandom));
    assert_eq!(serde_json::to_string(&read).unwrap(), text);
    assert!(serde_json::from_str::<FeatureSettings>(r#"{"counts":5}"#).is_err());
}
