//! Additive kernels against sums of products, and against their parts.

use super::*;
use crate::features::{FeatureForm, FeatureSettings, FrequencyDraw, RandomFeatures};
use crate::tests::{build, points};
use crate::{Request, gram, pullback};
use posterior_linalg::random::Streams;

/// `v_q / C(3, q)` times sums of products of plain kernels.
#[test]
fn orders_are_sums_of_products_of_plain_kernels() {
    let x = points(40, 71);
    let mut kernel = build::<f64>("additive(matern52, ard, order=3)");
    kernel.set_values(&[0.7, 1.1, 0.4, 0.6, 1.2, 2.0]);
    let plain = |text: &str| gram(&*build::<f64>(text), x.as_ref());
    let single = [
        plain("matern52(x1, lengthscale=0.6)"),
        plain("matern52(x2, lengthscale=1.2)"),
        plain("matern52(x3, lengthscale=2)"),
    ];
    let k = gram(&*kernel, x.as_ref());
    for i in 0..40 {
        for j in 0..40 {
            let [a, b, c] = [0, 1, 2].map(|d| single[d][(i, j)]);
            let expected = 0.7 / 3.0 * (a + b + c) + 1.1 / 3.0 * (a * b + a * c + b * c) + 0.4 * a * b * c;
            assert!((k[(i, j)] - expected).abs() < 1e-14);
        }
    }
    assert!((k[(0, 0)] - 2.2).abs() < 1e-15);
}

#[test]
fn components_add_up_and_columns_and_pairs_to_their_orders() {
    let x = points(30, 72);
    for text in [
        "additive(rq, ard, order=3, alpha=0.7) + linear",
        "warp(additive(se, order=2) + matern12(x2))",
        "spectral_mixture(components=3) + white",
        "se * linear",
        "additive(matern32, order=2) * matern12(x3)",
        "se * (linear + constant)",
    ] {
        let kernel = build::<f64>(text);
        let sum = |components: &[Component<f64>]| {
            let mut total = Mat::<f64>::zeros(30, 30);
            components.iter().for_each(|c| total += gram(&*c.kernel, x.as_ref()));
            total
        };
        let components = kernel.components();
        assert!((sum(&components) - gram(&*kernel, x.as_ref())).norm_max() < 1e-14, "{text}");
        for component in components.iter().filter(|c| !c.parts.is_empty()) {
            // Three columns, and three pairs of them.
            assert_eq!(component.parts.len(), 3);
            assert!(
                component
                    .parts
                    .iter()
                    .all(|p| p.order == component.order && p.order == Some(p.columns.len()))
            );
            let whole = gram(&*component.kernel, x.as_ref());
            assert!((sum(&component.parts) - whole).norm_max() < 1e-14, "{text}");
        }
    }
    let labels = |text: &str| -> Vec<String> {
        build::<f64>(text).components().into_iter().map(|c| c.label).collect()
    };
    assert_eq!(labels("se * linear + linear(ard) + constant"), ["se*linear", "linear[2]", "constant"]);
    assert_eq!(labels("additive(se, order=2)"), ["additive", "additive"]);
}

/// More columns than any test of all kernels has, in single precision as well, and rows beyond a tile's lanes.
#[test]
fn many_columns_and_orders() {
    let (n, d) = (37, 20);
    let names: Vec<String> = (0..d).map(|i| format!("f{i}")).collect();
    let expression: crate::KernelExpression = "additive(matern32, ard, order=6)".parse().unwrap();
    let x = Mat::<f64>::from_fn(n, d, |i, j| ((i * 7 + j * 3) as f64).sin());
    let kernel = expression.build::<f64>(&names).unwrap();
    let k = gram(&*kernel, x.as_ref());
    let rounded = expression.build::<f32>(&names).unwrap();
    let single = gram(&*rounded, Mat::from_fn(n, d, |i, j| x[(i, j)] as f32).as_ref());
    // By a generating function: the coefficient of t^q in Π (1 + t k_d).
    for (i, j) in [(0, 0), (36, 2), (17, 30)] {
        let mut polynomial = vec![1.0];
        for c in 0..d {
            let q = 3f64.sqrt() * (x[(i, c)] - x[(j, c)]).abs();
            let own = (1.0 + q) * (-q).exp();
            polynomial.push(0.0);
            (1..polynomial.len()).rev().for_each(|p| polynomial[p] += own * polynomial[p - 1]);
        }
        let expected: f64 = (1..=6).map(|q| polynomial[q] / sets(d, q) / 6.0).sum();
        assert!((k[(i, j)] - expected).abs() < 1e-14 && (f64::from(single[(i, j)]) - expected).abs() < 3e-6);
    }
    let ones = Mat::<f64>::from_fn(n, n, |i, j| ((i + 2 * j) as f64).cos());
    let pulled = pullback(&*kernel, x.as_ref(), x.as_ref(), ones.as_ref(), Request::PARAMETERS);
    let mut moved = kernel.clone_box();
    let numeric = posterior_optim::check::gradient(
        |values| {
            moved.set_values(values);
            let k = crate::cross(&*moved, x.as_ref(), x.as_ref());
            (0..n).map(|j| (0..n).map(|i| k[(i, j)] * ones[(i, j)]).sum::<f64>()).sum()
        },
        &kernel.values(),
    );
    posterior_optim::check::assert_close(&pulled.parameters, &numeric, 1e-7, 1e-7);
}

/// Frequencies on random sets of columns, around means, and behind warps: four and a half standard errors over draws.
#[test]
fn features_have_the_covariance() {
    let x = points(4, 73);
    for text in [
        "additive(matern32, ard, order=2, lengthscale=0.8)",
        "additive(rq, x1, x3, order=2, alpha=0.8)",
        "additive(se, order=1, variance=2) * matern12(x2)",
        "spectral_mixture(components=2)",
        "warp(additive(matern52, order=3))",
    ] {
        let mut kernel = build::<f64>(text);
        if text.starts_with("warp") {
            let mut values = kernel.values();
            values[..6].copy_from_slice(&[0.4, -0.6, 0.2, 0.7, 1.4, 1.1]);
            kernel.set_values(&values);
        }
        let exact = gram(&*kernel, x.as_ref());
        for frequencies in [
            FrequencyDraw::Independent,
            FrequencyDraw::Orthogonal,
            FrequencyDraw::QuasiRandom,
            FrequencyDraw::Widened,
        ] {
            for form in [FeatureForm::Phase, FeatureForm::Paired] {
                let how = FeatureSettings { count: 60, form, frequencies };
                let draws: Vec<Mat<f64>> = (0..500)
                    .map(|seed| {
                        let map = RandomFeatures::new(&*kernel, 3, how, Streams::new(seed)).unwrap();
                        let phi = map.evaluate(x.as_ref());
                        &phi * phi.transpose()
                    })
                    .collect();
                let n = draws.len() as f64;
                for k in 0..16 {
                    let place = (k / 4, k % 4);
                    let mean = draws.iter().map(|d| d[place]).sum::<f64>() / n;
                    let spread =
                        draws.iter().map(|d| (d[place] - mean).powi(2)).sum::<f64>() / (n * (n - 1.0));
                    let error = (mean - exact[place]).abs();
                    assert!(error < 4.5 * spread.sqrt() + 1e-12, "{text} {how:?} {place:?}: {error}");
                }
            }
        }
    }
}
