//! Facts about all kernels: against naive formulas, finite differences, and the laws that they obey.

use crate::infinite::convolution::tests as images;
use crate::infinite::{Activation, ImageLayer, Padding, tests as infinite};
use crate::*;
use faer::{Mat, MatRef};
use posterior_linalg::cholesky::{Cholesky, JitterPolicy};
use posterior_linalg::random::Streams;
use posterior_optim::check;
use rand_distr::{Distribution, StandardNormal};

mod laws;
mod objects;
mod precision;
mod separable;

const D: usize = 3;

pub(crate) fn points(n: usize, seed: u64) -> Mat<f64> {
    let mut rng = Streams::new(seed).stream("kernels/test");
    Mat::from_fn(n, D, |_, _| StandardNormal.sample(&mut rng))
}

pub(crate) fn build<T: posterior_linalg::Real>(text: &str) -> Box<dyn Kernel<T>> {
    // Columns of categories need not be 0 and 1 for any of the laws.
    let names = if text.contains("categorical") { ["x1", "c=a", "c=b"] } else { ["x1", "x2", "x3"] };
    let features = names.map(String::from);
    text.parse::<KernelExpression>().unwrap().build(&features).unwrap()
}

/// Every kernel, isotropic and not, restricted and not, and nested composites.
pub(crate) const TEXTS: [&str; 31] = [
    "se(lengthscale=0.7, variance=1.3)",
    "se(ard, lengthscale=1.4)",
    "matern12(lengthscale=0.9)",
    "matern12(ard)",
    "matern32(ard, x3, x1, lengthscale=0.8)",
    "matern52(lengthscale=1.1)",
    "matern52(ard)",
    "rq(ard, alpha=0.6)",
    "periodic(lengthscale=0.8, period=1.7)",
    "periodic(ard, x1, x2, period=2.3)",
    "linear(variance=0.4)",
    "linear(ard, x2, x3, variance=0.7)",
    "polynomial(degree=3, offset=0.5)",
    "constant(variance=2) + white(variance=0.3)",
    "(se + matern32(x1) * linear) * periodic(x3) + white",
    "matern32(ard) * periodic(x3) + linear + rq(x2)",
    "nngp(depth=3, relu, weight=1.2, bias=0.4)",
    "nngp(depth=2, leaky-relu, x3, x1, slope=0.2)",
    "nngp(depth=1, erf, readout=false)",
    "nngp(depth=2, sine, weight=0.8) * periodic(x2) + linear",
    "nngp-conv(shape=1x3, conv=1x2, relu, pool=1x2, dense, erf, weight=1.2, bias=0.4)",
    "nngp-conv(shape=2x1x1, conv=1, leaky-relu, x3, x1, slope=0.2, readout=false) * se(x2)",
    "categorical(c, lengthscale=0.7, variance=1.3)",
    "categorical(c, rank=2)",
    "matern32(ard) * categorical(c, rank=1) + categorical(c)",
    "additive(matern32, order=2, lengthscale=0.8)",
    "additive(rq, ard, x3, x1, order=1, alpha=0.6, variance=1.5) * se(x2)",
    "additive(se, ard, order=3)",
    "spectral_mixture(components=3, seed=1)",
    "spectral_mixture(x2, components=1, variance=2) + linear",
    "warp(matern32(ard, lengthscale=0.8) * periodic(x3) + linear)",
];

/// The formulas of the documentation, one pair of points at a time; `same` says whether the two are one observation.
fn naive(text: &str, x: &[f64], z: &[f64], same: bool) -> f64 {
    let q2 = |scale: f64, columns: &[usize]| -> f64 {
        columns.iter().map(|&c| ((x[c] - z[c]) / scale).powi(2)).sum()
    };
    let dot = |columns: &[usize]| -> f64 { columns.iter().map(|&c| x[c] * z[c]).sum() };
    let all: &[usize] = &[0, 1, 2];
    let m12 = |q2: f64| (-q2.sqrt()).exp();
    let m32 = |q2: f64| (1.0 + (3.0 * q2).sqrt()) * (-(3.0 * q2).sqrt()).exp();
    let m52 = |q2: f64| (1.0 + (5.0 * q2).sqrt() + 5.0 * q2 / 3.0) * (-(5.0 * q2).sqrt()).exp();
    let rq = |q2: f64, a: f64| (1.0 + q2 / (2.0 * a)).powf(-a);
    let periodic = |columns: &[usize], l: f64, p: f64| -> f64 {
        let sum: f64 =
            columns.iter().map(|&c| (std::f64::consts::PI * (x[c] - z[c]) / p).sin().powi(2)).sum();
        (-2.0 * sum / (l * l)).exp()
    };
    let white = if same { 1.0 } else { 0.0 };
    match text {
        "se(lengthscale=0.7, variance=1.3)" => 1.3 * (-0.5 * q2(0.7, all)).exp(),
        "se(ard, lengthscale=1.4)" => (-0.5 * q2(1.4, all)).exp(),
        "matern12(lengthscale=0.9)" => m12(q2(0.9, all)),
        "matern12(ard)" => m12(q2(1.0, all)),
        "matern32(ard, x3, x1, lengthscale=0.8)" => m32(q2(0.8, &[2, 0])),
        "matern52(lengthscale=1.1)" => m52(q2(1.1, all)),
        "matern52(ard)" => m52(q2(1.0, all)),
        "rq(ard, alpha=0.6)" => rq(q2(1.0, all), 0.6),
        "periodic(lengthscale=0.8, period=1.7)" => periodic(all, 0.8, 1.7),
        "periodic(ard, x1, x2, period=2.3)" => periodic(&[0, 1], 1.0, 2.3),
        "linear(variance=0.4)" => 0.4 * dot(all),
        "linear(ard, x2, x3, variance=0.7)" => 0.7 * dot(&[1, 2]),
        "polynomial(degree=3, offset=0.5)" => (dot(all) + 0.5).powi(3),
        "constant(variance=2) + white(variance=0.3)" => 2.0 + 0.3 * white,
        "(se + matern32(x1) * linear) * periodic(x3) + white" => {
            ((-0.5 * q2(1.0, all)).exp() + m32(q2(1.0, &[0])) * dot(all)) * periodic(&[2], 1.0, 1.0) + white
        }
        "matern32(ard) * periodic(x3) + linear + rq(x2)" => {
            m32(q2(1.0, all)) * periodic(&[2], 1.0, 1.0) + dot(all) + rq(q2(1.0, &[1]), 1.0)
        }
        "nngp(depth=3, relu, weight=1.2, bias=0.4)" => {
            infinite::recursion(&[Activation::Relu; 3], &[(1.2, 0.4); 4], x, z)
        }
        "nngp(depth=2, leaky-relu, x3, x1, slope=0.2)" => {
            let two = [Activation::LeakyRelu { slope: 0.2 }; 2];
            infinite::recursion(&two, &[(1.0, 1.0); 3], &[x[2], x[0]], &[z[2], z[0]])
        }
        "nngp(depth=1, erf, readout=false)" => infinite::recursion(&[Activation::Erf], &[(1.0, 1.0)], x, z),
        "nngp(depth=2, sine, weight=0.8) * periodic(x2) + linear" => {
            let network = infinite::recursion(&[Activation::Sine; 2], &[(0.8, 1.0); 3], x, z);
            network * periodic(&[1], 1.0, 1.0) + dot(all)
        }
        "nngp-conv(shape=1x3, conv=1x2, relu, pool=1x2, dense, erf, weight=1.2, bias=0.4)" => {
            let (filter, window, one) = ([1, 2], [1, 2], [1, 1]);
            let layers = [
                ImageLayer::Convolution { filter, stride: one, padding: Padding::Valid },
                ImageLayer::Activation(Activation::Relu),
                ImageLayer::AveragePool { window, stride: window },
                ImageLayer::Dense,
                ImageLayer::Activation(Activation::Erf),
            ];
            images::recursion([1, 1, 3], &layers, &[(1.2, 0.4); 3], x, z)
        }
        "nngp-conv(shape=2x1x1, conv=1, leaky-relu, x3, x1, slope=0.2, readout=false) * se(x2)" => {
            let leaky = [Activation::LeakyRelu { slope: 0.2 }];
            let network = infinite::recursion(&leaky, &[(1.0, 1.0)], &[x[2], x[0]], &[z[2], z[0]]);
            network * (-0.5 * q2(1.0, &[1])).exp()
        }
        "categorical(c, lengthscale=0.7, variance=1.3)" => {
            let rho = (-1.0f64 / 0.7).exp();
            1.3 * categories(x, z, |i, j| if i == j { 1.0 } else { rho })
        }
        "categorical(c, rank=2)" => {
            // Initial loadings: 0.6 of both, and ±0.3 cos(π/4); 0.6 of each alone; their mean is (0.6, 0).
            let wave = 0.3 * std::f64::consts::FRAC_1_SQRT_2;
            let total = 0.36 + wave * wave + 0.6;
            categories(x, z, |i, j| match (i, j) {
                _ if i == j => 1.0,
                (2, _) | (_, 2) => 0.36 / total,
                _ => (0.36 - wave * wave) / total,
            })
        }
        "matern32(ard) * categorical(c, rank=1) + categorical(c)" => {
            let alike = |rho: f64| categories(x, z, |i, j| if i == j { 1.0 } else { rho });
            m32(q2(1.0, &[0])) * alike(0.36 / 0.96) + alike((-1.0f64).exp())
        }
        "additive(matern32, order=2, lengthscale=0.8)" => {
            let [a, b, c] = [0, 1, 2].map(|d| m32(q2(0.8, &[d])));
            (a + b + c) / 6.0 + (a * b + a * c + b * c) / 6.0
        }
        "additive(rq, ard, x3, x1, order=1, alpha=0.6, variance=1.5) * se(x2)" => {
            let sum = rq(q2(1.0, &[2]), 0.6) + rq(q2(1.0, &[0]), 0.6);
            0.75 * sum * (-0.5 * q2(1.0, &[1])).exp()
        }
        "additive(se, ard, order=3)" => {
            let [a, b, c] = [0, 1, 2].map(|d| (-0.5 * q2(1.0, &[d])).exp());
            ((a + b + c) / 3.0 + (a * b + a * c + b * c) / 3.0 + a * b * c) / 3.0
        }
        "spectral_mixture(components=3, seed=1)" => mixture(text, x, z, all),
        "spectral_mixture(x2, components=1, variance=2) + linear" => mixture(text, x, z, &[1]) + dot(all),
        "warp(matern32(ard, lengthscale=0.8) * periodic(x3) + linear)" => {
            m32(q2(0.8, all)) * periodic(&[2], 1.0, 1.0) + dot(all)
        }
        other => panic!("no naive formula for {other}"),
    }
}

/// The sum over components of weights, Gaussian envelopes and cosines, with the numbers that the kernel begins with.
fn mixture(text: &str, x: &[f64], z: &[f64], columns: &[usize]) -> f64 {
    use std::f64::consts::PI;
    let values = build::<f64>(text).values();
    let d = columns.len();
    let (q, rest) = if text.contains("components=3") { (3, 0) } else { (1, 1) };
    assert_eq!(values.len(), q * (1 + 2 * d) + rest);
    (0..q)
        .map(|q0| {
            let factor = |(k, &c): (usize, &usize)| {
                let (mu, sigma) = (values[q + q0 * d + k], values[q + q * d + q0 * d + k]);
                let tau = x[c] - z[c];
                (-2.0 * (PI * sigma * tau).powi(2)).exp() * (2.0 * PI * mu * tau).cos()
            };
            values[q0] * columns.iter().enumerate().map(factor).product::<f64>()
        })
        .sum()
}

/// `u(x)' B u(z)` for categories in the last two columns, and what is neither.
fn categories(x: &[f64], z: &[f64], b: impl Fn(usize, usize) -> f64) -> f64 {
    let u = |p: &[f64]| [p[1], p[2], 1.0 - p[1] - p[2]];
    (0..9).map(|k| u(x)[k / 3] * b(k / 3, k % 3) * u(z)[k % 3]).sum()
}

fn row(x: MatRef<'_, f64>, i: usize) -> Vec<f64> {
    x.row(i).iter().copied().collect()
}

#[test]
fn matrices_equal_the_naive_formulas() {
    let (x, z) = (points(7, 1), points(5, 2));
    for text in TEXTS {
        let kernel = build::<f64>(text);
        let (rectangle, square) = (cross(&*kernel, x.as_ref(), z.as_ref()), gram(&*kernel, x.as_ref()));
        let diagonal = diagonal(&*kernel, x.as_ref());
        for i in 0..7 {
            for j in 0..5 {
                let expected = naive(text, &row(x.as_ref(), i), &row(z.as_ref(), j), false);
                assert!((rectangle[(i, j)] - expected).abs() <= 1e-13 * (1.0 + expected.abs()), "{text}");
            }
            for j in 0..7 {
                let expected = naive(text, &row(x.as_ref(), i), &row(x.as_ref(), j), i == j);
                assert!(
                    (square[(i, j)] - expected).abs() <= 1e-13 * (1.0 + expected.abs()),
                    "{text} {i} {j}"
                );
            }
            assert!((diagonal[i] - square[(i, i)]).abs() <= 1e-13 * (1.0 + diagonal[i].abs()), "{text}");
        }
    }
}

#[test]
fn pullbacks_equal_finite_differences() {
    let (x, z) = (points(6, 3), points(4, 4));
    let weights = Mat::<f64>::from_fn(6, 4, |i, j| ((3 * i + 5 * j) as f64).sin());
    let pairing = |kernel: &dyn Kernel<f64>, x: MatRef<'_, f64>, z: MatRef<'_, f64>| -> f64 {
        let k = cross(kernel, x, z);
        (0..4).map(|j| (0..6).map(|i| k[(i, j)] * weights[(i, j)]).sum::<f64>()).sum()
    };
    for text in TEXTS {
        let kernel = build::<f64>(text);
        let adjoints = pullback(&*kernel, x.as_ref(), z.as_ref(), weights.as_ref(), Request::ALL);
        let mut moved = kernel.clone_box();
        let numeric = check::gradient(
            |values| {
                moved.set_values(values);
                pairing(&*moved, x.as_ref(), z.as_ref())
            },
            &kernel.values(),
        );
        check::assert_close(&adjoints.parameters, &numeric, 1e-7, 1e-8);
        let flat = |m: &Mat<f64>| -> Vec<f64> {
            (0..m.ncols()).flat_map(|j| m.col(j).iter().copied().collect::<Vec<_>>()).collect()
        };
        let at = |values: &[f64], rows: usize| MatRef::from_column_major_slice(values, rows, D).to_owned();
        let numeric = check::gradient(|v| pairing(&*kernel, at(v, 6).as_ref(), z.as_ref()), &flat(&x));
        check::assert_close(&flat(&adjoints.x.unwrap()), &numeric, 1e-7, 1e-8);
        let numeric = check::gradient(|v| pairing(&*kernel, x.as_ref(), at(v, 4).as_ref()), &flat(&z));
        check::assert_close(&flat(&adjoints.z.unwrap()), &numeric, 1e-7, 1e-8);
    }
}

/// At curves that bend: the kernels above begin with straight ones.
#[test]
fn warped_kernels_have_the_right_slopes() {
    let (x, z) = (points(6, 23), points(5, 24));
    let weights = Mat::<f64>::from_fn(6, 5, |i, j| ((3 * i + 7 * j) as f64).sin());
    for text in ["warp(matern52(ard) * periodic(x3) + linear)", "warp(se(x1)) * warp(additive(rq, x2, x3))"] {
        let mut kernel = build::<f64>(text);
        let segments = kernel.segments();
        let names = segments.iter().flat_map(|s| std::iter::repeat_n(s.name.as_str(), s.len()));
        let bent = |(i, (name, value)): (usize, (&str, f64))| match name.rsplit_once('.') {
            Some((_, "skew")) => 0.8 * (1.0 + 2.0 * i as f64).sin(),
            Some((_, "tail")) => 1.0 + 0.6 * (i as f64).cos(),
            _ => value,
        };
        let values: Vec<f64> = names.zip(kernel.values()).enumerate().map(bent).collect();
        kernel.set_values(&values);
        let pairing = |kernel: &dyn Kernel<f64>, x: MatRef<'_, f64>, z: MatRef<'_, f64>| -> f64 {
            let k = cross(kernel, x, z);
            (0..5).map(|j| (0..6).map(|i| k[(i, j)] * weights[(i, j)]).sum::<f64>()).sum()
        };
        let found = pullback(&*kernel, x.as_ref(), z.as_ref(), weights.as_ref(), Request::ALL);
        let mut moved = kernel.clone_box();
        let numeric = check::gradient(
            |values| {
                moved.set_values(values);
                pairing(&*moved, x.as_ref(), z.as_ref())
            },
            &values,
        );
        check::assert_close(&found.parameters, &numeric, 1e-7, 1e-8);
        let flat: Vec<f64> = (0..D).flat_map(|d| x.col_as_slice(d).to_vec()).collect();
        let numeric = check::gradient(
            |v| pairing(&*kernel, MatRef::from_column_major_slice(v, 6, D), z.as_ref()),
            &flat,
        );
        let of_x = found.x.unwrap();
        let exact: Vec<f64> = (0..D).flat_map(|d| of_x.col_as_slice(d).to_vec()).collect();
        check::assert_close(&exact, &numeric, 1e-7, 1e-8);
    }
}

#[test]
fn pullbacks_of_square_matrices_equal_finite_differences() {
    let x = points(6, 5);
    let weights = Mat::<f64>::from_fn(6, 6, |i, j| ((i + j) as f64).sin() + ((i * j) as f64).cos());
    let pairing = |k: Mat<f64>| -> f64 {
        (0..6).map(|j| (0..6).map(|i| k[(i, j)] * weights[(i, j)]).sum::<f64>()).sum()
    };
    for text in TEXTS {
        let kernel = build::<f64>(text);
        let fill = |rows: std::ops::Range<usize>,
                    columns: std::ops::Range<usize>,
                    mut tile: faer::MatMut<'_, f64>| {
            tile.copy_from(weights.as_ref().submatrix(rows.start, columns.start, rows.len(), columns.len()));
        };
        let request = Request { parameters: true, x: true, z: false };
        let adjoints = pullback_gram(&*kernel, x.as_ref(), &fill, request);
        let mut moved = kernel.clone_box();
        let numeric = check::gradient(
            |values| {
                moved.set_values(values);
                pairing(gram(&*moved, x.as_ref()))
            },
            &kernel.values(),
        );
        check::assert_close(&adjoints.parameters, &numeric, 1e-7, 1e-8);
        let flat: Vec<f64> = (0..D).flat_map(|j| x.col(j).iter().copied().collect::<Vec<_>>()).collect();
        let numeric =
            check::gradient(|v| pairing(gram(&*kernel, MatRef::from_column_major_slice(v, 6, D))), &flat);
        let exact: Vec<f64> = {
            let m = adjoints.x.unwrap();
            (0..D).flat_map(|j| m.col(j).iter().copied().collect::<Vec<_>>()).collect()
        };
        check::assert_close(&exact, &numeric, 1e-7, 1e-8);
        let weights: Vec<f64> = (0..6).map(|i| (i as f64).cos()).collect();
        let adjoints = pullback_diagonal(&*kernel, x.as_ref(), &weights, request);
        let numeric = check::gradient(
            |values| {
                moved.set_values(values);
                diagonal(&*moved, x.as_ref()).iter().zip(&weights).map(|(a, b)| a * b).sum()
            },
            &kernel.values(),
        );
        check::assert_close(&adjoints.parameters, &numeric, 1e-7, 1e-8);
    }
}

#[test]
fn matrices_beyond_one_tile_agree_with_small_ones_and_are_positive_semi_definite() {
    let n = 2 * TILE + 37;
    let x = points(n, 6);
    for text in ["matern32(ard)", "(se + matern32(x1) * linear) * periodic(x3) + white"] {
        let kernel = build::<f64>(text);
        let whole = gram(&*kernel, x.as_ref());
        for (i, j) in [(0, 0), (TILE, TILE - 1), (n - 1, 3), (n - 1, n - 1), (3, n - 2)] {
            let expected = naive_or_unit(text, &row(x.as_ref(), i), &row(x.as_ref(), j), i == j);
            assert!((whole[(i, j)] - expected).abs() < 1e-12, "{text} {i} {j}");
        }
        let jitter = Cholesky::of(whole.as_ref(), JitterPolicy::default()).unwrap().info().jitter;
        assert!(jitter <= 1e-8, "{text}: {jitter}");
    }
}

fn naive_or_unit(text: &str, x: &[f64], z: &[f64], same: bool) -> f64 {
    if text == "matern32(ard)" {
        let q: f64 = x.iter().zip(z).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt() * 3f64.sqrt();
        (1.0 + q) * (-q).exp()
    } else {
        naive(text, x, z, same)
    }
}

#[test]
fn many_dimensions_use_products_and_agree() {
    let mut rng = Streams::new(8).stream("wide");
    let wide = Mat::<f64>::from_fn(20, 50, |_, _| StandardNormal.sample(&mut rng));
    let features: Vec<String> = (0..50).map(|i| format!("f{i}")).collect();
    let kernel: Box<dyn Kernel<f64>> =
        "matern32(ard, lengthscale=5)".parse::<KernelExpression>().unwrap().build(&features).unwrap();
    let k = gram(&*kernel, wide.as_ref());
    for i in 0..20 {
        for j in 0..20 {
            let q2: f64 = (0..50).map(|d| ((wide[(i, d)] - wide[(j, d)]) / 5.0).powi(2)).sum();
            let q = (3.0 * q2).sqrt();
            assert!((k[(i, j)] - (1.0 + q) * (-q).exp()).abs() < 1e-12);
        }
        assert_eq!(k[(i, i)], 1.0);
    }
    let weights = Mat::<f64>::from_fn(20, 20, |i, j| ((i + j) as f64).sin());
    let exact =
        pullback(&*kernel, wide.as_ref(), wide.as_ref(), weights.as_ref(), Request::PARAMETERS).parameters;
    let mut moved = kernel.clone_box();
    let numeric = check::gradient(
        |values| {
            moved.set_values(values);
            let k = cross(&*moved, wide.as_ref(), wide.as_ref());
            (0..20).map(|j| (0..20).map(|i| k[(i, j)] * weights[(i, j)]).sum::<f64>()).sum()
        },
        &kernel.values(),
    );
    check::assert_close(&exact, &numeric, 1e-6, 1e-7);
}
