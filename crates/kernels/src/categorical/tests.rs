//! Categories against matrices that are made by hand.

use super::*;
use crate::features::{FeatureForm, FeatureSettings, PriorDraws, RandomFeatures};
use crate::{KernelExpression, Request, cross, diagonal, gram, pullback};
use faer::Side;
use posterior_linalg::random::Streams;
use posterior_optim::check::{assert_close, gradient};
use std::sync::Arc;

const CATEGORIES: usize = 4;

fn names() -> Vec<String> {
    ["x1", "c=a", "c=b", "c=d", "c=e", "x2"].map(String::from).to_vec()
}

fn build<T: Real>(text: &str) -> Box<dyn Kernel<T>> {
    text.parse::<KernelExpression>().unwrap().build(&names()).unwrap_or_else(|e| panic!("{e}"))
}

/// Rows with one category each, the unknown one (all 0) among them.
fn rows(n: usize) -> (Mat<f64>, Vec<usize>) {
    let category = |i: usize| (i * i + 3 * i) % (CATEGORIES + 1);
    let x = Mat::from_fn(n, 6, |i, j| match j {
        0 => (1.3 * i as f64).sin(),
        5 => (0.7 * i as f64).cos(),
        _ => f64::from(u8::from(category(i) == j - 1)),
    });
    (x, (0..n).map(category).collect())
}

fn low_rank(values: &[f64], rank: usize) -> Mat<f64> {
    let c = CATEGORIES;
    let a = |i: usize, k: usize| values[i * rank + k];
    let kappa = |i: usize| values[c * rank + i];
    let mean = |k: usize| (0..c).map(|i| a(i, k)).sum::<f64>() / c as f64;
    let row = |i: usize| -> Vec<f64> { (0..rank).map(|k| if i == c { mean(k) } else { a(i, k) }).collect() };
    let dot = |i: usize, j: usize| -> f64 { row(i).iter().zip(row(j)).map(|(x, y)| x * y).sum() };
    let total = (0..c).map(|i| dot(i, i) + kappa(i)).sum::<f64>() / c as f64;
    Mat::from_fn(c + 1, c + 1, |i, j| match (i == j, i == c) {
        (true, true) => 1.0,
        (true, false) => (dot(i, i) + kappa(i)) / total,
        _ => dot(i, j) / total,
    })
}

#[test]
fn entries_are_those_of_the_covariance_of_categories() {
    let (x, of) = rows(23);
    let kernel = build::<f64>("categorical(c, lengthscale=0.8, variance=1.5)");
    let k = gram(&*kernel, x.as_ref());
    for i in 0..23 {
        for j in 0..23 {
            let expected = 1.5 * if of[i] == of[j] { 1.0 } else { (-1.0f64 / 0.8).exp() };
            assert!((k[(i, j)] - expected).abs() < 1e-14);
        }
    }
    let mut kernel = build::<f64>("categorical(c, rank=2)");
    let values = [0.9, -0.3, 0.1, 0.8, -0.7, 0.2, 0.4, 0.5, 0.3, 0.6, 0.2, 1.1];
    kernel.set_values(&[&[2.0], &values[..]].concat());
    let b = low_rank(&values, 2);
    assert!(((0..CATEGORIES).map(|i| b[(i, i)]).sum::<f64>() - CATEGORIES as f64).abs() < 1e-14);
    let k = gram(&*kernel, x.as_ref());
    let own = diagonal(&*kernel, x.as_ref());
    for i in 0..23 {
        assert!((own[i] - 2.0 * b[(of[i], of[i])]).abs() < 1e-14);
        (0..23).for_each(|j| assert!((k[(i, j)] - 2.0 * b[(of[i], of[j])]).abs() < 1e-14));
    }
}

/// Rows between categories take the other way, products of matrices.
#[test]
fn look_ups_and_products_agree() {
    let (x, _) = rows(30);
    for text in ["categorical(c)", "categorical(c, rank=3)"] {
        let kernel = build::<f64>(text);
        let mut mixed = x.clone();
        (mixed[(3, 1)], mixed[(3, 2)]) = (0.5, 0.25);
        let (fast, slow) = (gram(&*kernel, x.as_ref()), gram(&*kernel, mixed.as_ref()));
        let single = Mat::from_fn(30, 6, |i, j| x[(i, j)] as f32);
        let rounded = gram(&*build::<f32>(text), single.as_ref());
        for j in (0..30).filter(|j| *j != 3) {
            for i in (0..30).filter(|i| *i != 3) {
                assert!((fast[(i, j)] - slow[(i, j)]).abs() < 1e-15);
                assert!((fast[(i, j)] - f64::from(rounded[(i, j)])).abs() < 1e-7);
            }
        }
        let weights =
            Mat::<f64>::from_fn(30, 30, |i, j| ((i * 7 + j) as f64).sin() * f64::from(i != 3 && j != 3));
        let pull = |x: &Mat<f64>| pullback(&*kernel, x.as_ref(), x.as_ref(), weights.as_ref(), Request::ALL);
        let (fast, slow) = (pull(&x), pull(&mixed));
        assert_close(&fast.parameters, &slow.parameters, 1e-12, 1e-12);
    }
}

#[test]
fn parameters_of_look_ups_have_the_right_slopes() {
    let (x, _) = rows(17);
    let weights = Mat::<f64>::from_fn(17, 17, |i, j| ((i * 5 + 2 * j) as f64).sin());
    for text in ["categorical(c, lengthscale=0.6)", "se * categorical(c, rank=2)", "categorical(c, rank=4)"] {
        let kernel = build::<f64>(text);
        let exact =
            pullback(&*kernel, x.as_ref(), x.as_ref(), weights.as_ref(), Request::PARAMETERS).parameters;
        let mut moved = kernel.clone_box();
        let numeric = gradient(
            |values| {
                moved.set_values(values);
                let k = cross(&*moved, x.as_ref(), x.as_ref());
                (0..17).map(|j| (0..17).map(|i| k[(i, j)] * weights[(i, j)]).sum::<f64>()).sum()
            },
            &kernel.values(),
        );
        assert_close(&exact, &numeric, 1e-8, 1e-9);
    }
}

/// Also where each category's loadings differ by orders of magnitude, or nothing is left of its own.
#[test]
fn the_covariance_is_positive_definite_with_the_unknown_category() {
    for seed in 0..20u64 {
        let mut kernel = Categorical::low_rank("categorical", Columns::all(CATEGORIES), 2);
        let value = |i: usize| (1.7 * i as f64 + seed as f64).sin() * 10f64.powi((seed % 5) as i32 - 2);
        let values: Vec<f64> =
            (0..12).map(|i| if i < 8 { value(i) } else { 1e-6 + value(i).abs() }).collect();
        kernel.set_values(&values);
        let b = kernel.covariance().to_owned();
        let smallest = b.self_adjoint_eigenvalues(Side::Lower).unwrap()[0];
        assert!(smallest > -1e-14, "{seed}: {smallest}");
        assert_eq!(b.nrows(), CATEGORIES + 1);
    }
}

/// `B ⊗ K` on all combinations of places and tasks.
#[test]
fn times_a_kernel_of_numbers_it_is_coregionalisation() {
    let (places, tasks) = (5, CATEGORIES);
    let place = |i: usize| [(0.9 * i as f64).sin(), (0.4 * i as f64).cos()];
    let x = Mat::from_fn(places * tasks, 6, |r, j| match j {
        0 => place(r % places)[0],
        5 => place(r % places)[1],
        _ => f64::from(u8::from(r / places == j - 1)),
    });
    let mut kernel = build::<f64>("matern32(ard, lengthscale=0.7) * categorical(c, rank=2)");
    let names: Vec<String> = kernel.segments().into_iter().map(|s| s.name).collect();
    assert_eq!(
        names,
        [
            "matern32*categorical.variance",
            "matern32.lengthscale",
            "categorical.loading",
            "categorical.specific"
        ]
    );
    let own = [0.9, -0.3, 0.1, 0.8, -0.7, 0.2, 0.4, 0.5, 0.3, 0.6, 0.2, 1.1];
    kernel.set_values(&[&[1.3, 0.7, 0.9], &own[..]].concat());
    let b = low_rank(&own, 2);
    let of_places = |i: usize, j: usize| {
        let (p, q) = (place(i), place(j));
        let r = 3f64.sqrt() * (((p[0] - q[0]) / 0.7).powi(2) + ((p[1] - q[1]) / 0.9).powi(2)).sqrt();
        1.3 * (1.0 + r) * (-r).exp()
    };
    let k = gram(&*kernel, x.as_ref());
    for r in 0..k.nrows() {
        for s in 0..k.nrows() {
            let expected = b[(r / places, s / places)] * of_places(r % places, s % places);
            assert!((k[(r, s)] - expected).abs() < 1e-13);
        }
    }
}

#[test]
fn features_of_categories_are_exact() {
    let (x, _) = rows(12);
    for text in
        ["categorical(c, variance=1.7)", "categorical(c, rank=2)", "categorical(c) * categorical(c, rank=3)"]
    {
        let kernel = build::<f64>(text);
        let map = RandomFeatures::new(&*kernel, 6, FeatureSettings::default(), Streams::new(1)).unwrap();
        let phi = map.evaluate(x.as_ref());
        let difference = &phi * phi.transpose() - gram(&*kernel, x.as_ref());
        assert!(difference.norm_max() < 1e-13, "{text}");
    }
}

/// Waves that categories multiply: four standard errors over draws of the features, in both forms; variances of pairs are exact.
#[test]
fn waves_have_the_covariance_of_products() {
    let (x, _) = rows(7);
    let texts = [
        "se(ard, lengthscale=1.2) * categorical(c)",
        "matern32 * categorical(c, rank=2) * categorical(c)",
        "(se + matern12(x1) + constant) * categorical(c, rank=1)",
    ];
    for text in texts {
        let kernel = build::<f64>(text);
        let exact = gram(&*kernel, x.as_ref());
        for form in [FeatureForm::Phase, FeatureForm::Paired] {
            let how = FeatureSettings { count: 101, form, ..FeatureSettings::default() };
            let draws: Vec<Mat<f64>> = (0..600)
                .map(|seed| {
                    let map = RandomFeatures::new(&*kernel, 6, how, Streams::new(seed)).unwrap();
                    let phi = map.evaluate(x.as_ref());
                    &phi * phi.transpose()
                })
                .collect();
            let n = draws.len() as f64;
            for i in 0..7 {
                for j in 0..7 {
                    let mean = draws.iter().map(|d| d[(i, j)]).sum::<f64>() / n;
                    let spread =
                        draws.iter().map(|d| (d[(i, j)] - mean).powi(2)).sum::<f64>() / (n * (n - 1.0));
                    let error = (mean - exact[(i, j)]).abs();
                    // 588 comparisons: 4.5 standard errors are exceeded by chance once in 250 runs of all.
                    assert!(error < 4.5 * spread.sqrt() + 1e-12, "{text} {form:?} ({i}, {j}): {error}");
                    if i == j && form == FeatureForm::Paired {
                        assert!(spread < 1e-24, "{text} {i}: {spread}");
                    }
                }
            }
        }
    }
}

#[test]
fn functions_of_categories_have_gradients() {
    let mut x = Mat::<f64>::from_fn(4, 6, |i, j| (0.3 * (i * 6 + j) as f64).sin());
    x[(0, 2)] = 1.0;
    let which = [1, 0, 1, 0];
    let flat: Vec<f64> = (0..6).flat_map(|d| x.col_as_slice(d).to_vec()).collect();
    let texts = [
        "categorical(c, rank=2)",
        "categorical(c) * categorical(c, rank=1)",
        "se * categorical(c, rank=2) * categorical(c)",
    ];
    for text in texts {
        for form in [FeatureForm::Phase, FeatureForm::Paired] {
            let how = FeatureSettings { count: 24, form, ..FeatureSettings::default() };
            let map = RandomFeatures::new(&*build::<f64>(text), 6, how, Streams::new(3)).unwrap();
            let draws = PriorDraws::new(Arc::new(map), 2, Streams::new(4));
            let own = draws.gradients_of(x.as_ref(), &which).unwrap();
            let exact: Vec<f64> = (0..6).flat_map(|d| own.col_as_slice(d).to_vec()).collect();
            let numeric = gradient(
                |p| draws.values_of(MatRef::from_column_major_slice(p, 4, 6), &which).iter().sum(),
                &flat,
            );
            assert_close(&exact, &numeric, 1e-7, 1e-8);
        }
    }
}

#[test]
fn too_many_products_are_refused() {
    let sum = "(se + se + se + se + se)";
    let kernel = build::<f64>(&format!("{sum} * {sum} * {sum} * categorical(c)"));
    let error = RandomFeatures::new(&*kernel, 6, FeatureSettings::default(), Streams::new(0)).unwrap_err();
    assert_eq!(error, FeatureError::TooManyTerms { terms: 125, most: 64 });
}
