//! Laws, precision, points that are alike or far away, other kernels beside it, and every way to the same entries.

use super::*;
use crate::features::FeatureError;
use crate::matrix::KernelMatrix;
use crate::{BlockKernel, Kernel, Separable, TILE, cross, diagonal, gram};
use faer::Scale;
use posterior_linalg::Real;
use posterior_linalg::operator::LinearOperator;
use posterior_optim::Parameters;

fn single(m: &Mat<f64>) -> Mat<f32> {
    Mat::from_fn(m.nrows(), m.ncols(), |i, j| m[(i, j)] as f32)
}

fn double(m: &Mat<f32>) -> Mat<f64> {
    Mat::from_fn(m.nrows(), m.ncols(), |i, j| f64::from(m[(i, j)]))
}

fn build<T: Real>(text: &str) -> Box<dyn Kernel<T>> {
    let names = ["x1", "x2", "x3"].map(String::from);
    text.parse::<crate::KernelExpression>().unwrap().build(&names).unwrap()
}

#[test]
fn matrices_are_positive_semi_definite() {
    for activation in ACTIVATIONS {
        for depth in [1, 2, 5] {
            for (dimension, spread) in
                [(1, 1.0), (1, 0.01), (3, 0.1), (3, 1.0), (3, 10.0), (8, 1.0), (40, 3.0)]
            {
                let x = normal(60, dimension, 21) * Scale(spread);
                for readout in 0..2 {
                    let kernel = network(&vec![activation; depth], &scales(depth + readout), dimension);
                    let values =
                        gram::<f64>(&kernel, x.as_ref()).self_adjoint_eigenvalues(faer::Side::Lower).unwrap();
                    assert!(
                        values[0] >= -1e-10 * values[59],
                        "{kernel:?} {spread}: {} {}",
                        values[0],
                        values[59]
                    );
                }
            }
        }
    }
}

#[test]
fn single_precision_agrees_with_double() {
    for dimension in [3, 40] {
        let x = single(&normal(50, dimension, 22));
        for activation in ACTIVATIONS {
            for depth in 1..=5 {
                let kernel = network(&vec![activation; depth], &scales(depth + 1), dimension);
                let (found, exact) =
                    (gram::<f32>(&kernel, x.as_ref()), gram::<f64>(&kernel, double(&x).as_ref()));
                for j in 0..50 {
                    for i in 0..50 {
                        let size = (exact[(i, i)] * exact[(j, j)]).sqrt();
                        let error = (f64::from(found[(i, j)]) - exact[(i, j)]).abs();
                        assert!(error <= 1e-5 * size, "{kernel:?}: {} {}", found[(i, j)], exact[(i, j)]);
                    }
                }
            }
        }
    }
}

/// Whole numbers, so that variances and covariances behind the first layer (w = b = 1, three columns) are thirds of whole numbers and the differences of
/// large ones are exact: `3a = |x|² + 3` and so on.
fn exact(activation: Activation, x: &[i128; 3], z: &[i128; 3]) -> f64 {
    let thrice = |x: &[i128; 3], z: &[i128; 3]| (0..3).map(|d| x[d] * z[d]).sum::<i128>() + 3;
    let (a, c, b) = (thrice(x, x), thrice(x, z), thrice(z, z));
    let third = |v: i128| v as f64 / 3.0;
    match activation {
        Activation::Erf => {
            let square = (3 + 2 * a) * (3 + 2 * b) - 4 * c * c;
            2.0 / PI * (2.0 * c as f64).atan2((square as f64).sqrt())
        }
        Activation::Sine => 0.5 * ((-0.5 * third(a + b - 2 * c)).exp() - (-0.5 * third(a + b + 2 * c)).exp()),
        Activation::Relu | Activation::LeakyRelu { .. } => {
            let root = ((a * b - c * c) as f64).sqrt();
            let relu = (root + (PI - root.atan2(c as f64)) * c as f64) / (6.0 * PI);
            let slope = if activation == Activation::Relu { 0.0 } else { SLOPE };
            slope * third(c) + (1.0 - slope).powi(2) * relu
        }
    }
}

/// A point of the given size and others at distances of 0 to 1,000.
fn neighbours(size: i128) -> Vec<[i128; 3]> {
    let first = [size, 2 * size, -size];
    let steps = [[0, 0, 0], [1, 0, 0], [0, -1, 1], [3, 2, -1], [100, 0, 7], [1000, -20, 1]];
    steps.iter().map(|s| [0, 1, 2].map(|d| first[d] + s[d])).collect()
}

/// What is lost is what the guide says: `c` is off by some roundings of itself, u = ε/2 each, four of them here. A ReLU keeps that relative to the variances; the arcsine's slope at
/// `1 - 1/(1 + 2a)` makes `√a` of it, the sine's exponent a.
#[test]
fn near_duplicates_keep_what_rounding_leaves_them_at_any_scale() {
    for size in [1, 100, 10_000, 1_000_000] {
        let points = neighbours(size);
        let x = Mat::from_fn(points.len(), 3, |i, d| points[i][d] as f64);
        for activation in ACTIVATIONS {
            let kernel = network(&[activation], &[(1.0, 1.0)], 3);
            let k = gram::<f64>(&kernel, x.as_ref());
            for j in 0..points.len() {
                for i in 0..points.len() {
                    let expected = exact(activation, &points[i], &points[j]);
                    let own = |i: usize| x.row(i).squared_norm_l2() / 3.0 + 1.0;
                    let a = own(i).max(own(j));
                    let lost = if activation == Activation::Erf { a.sqrt() } else { a };
                    let room = 2.0 * f64::EPSILON * lost;
                    // An observation with itself has all digits but those of its own formula.
                    let room = if i == j { 2.0 * f64::EPSILON * expected } else { room };
                    assert!(
                        (k[(i, j)] - expected).abs() <= room,
                        "{activation:?} {size} {i} {j}: {} {expected}",
                        k[(i, j)]
                    );
                }
            }
        }
    }
}

#[test]
fn correlations_above_one_count_as_one() {
    for activation in ACTIVATIONS {
        for (a, b) in [(1.0, 1.0), (0.01, 0.01), (4e6, 4e6), (3.0, 2.0)] {
            let one = f64::sqrt(a * b);
            let (found, expected) =
                (activation.covariance(a, one * (1.0 + 1e-12), b), activation.covariance(a, one, b));
            assert!(
                found.is_finite() && (found - expected).abs() < 1e-5 * expected.abs(),
                "{activation:?} {found}"
            );
            let found = activation.covariance(a, -one * (1.0 + 1e-12), b);
            let expected = activation.covariance(a, -one, b);
            assert!(
                found.is_finite() && (found - expected).abs() < 1e-5 * (1.0 + one),
                "{activation:?} {found}"
            );
        }
    }
}

/// Near duplicates far away: what `near_duplicates_keep_what_rounding_leaves_them_at_any_scale` is about, counted. Nothing else is cut off.
#[test]
fn clipped_correlations_are_counted_and_are_roundings() {
    let ordinary = normal(40, 3, 27);
    let steps = |i: usize, d: usize| 1e6 * (1.0 + d as f64) + 1e-4 * (i as f64) * (d as f64 - 1.0);
    let far = Mat::from_fn(40, 3, steps);
    for activation in ACTIVATIONS {
        let kernel = network(&[activation; 2], &scales(3), 3);
        let found = kernel.clipped_correlations(ordinary.as_ref(), ordinary.as_ref());
        assert_eq!((found.of, found.count), (2 * 40 * 40, 0), "{activation:?} {found:?}");
        let found = kernel.clipped_correlations(far.as_ref(), far.as_ref());
        assert!(found.count > 0 && found.largest <= 8.0 * f64::EPSILON, "{activation:?} {found:?}");
        // Sums and products ask their parts.
        let together =
            crate::composite::Sum::<f64>::new(vec![Box::new(kernel.clone()), Box::new(kernel.clone())]);
        let both = crate::Kernel::clipped_correlations(&together, far.as_ref(), far.as_ref());
        assert_eq!((both.count, both.of, both.largest), (2 * found.count, 2 * found.of, found.largest));
        // An observation with itself is exact, and is not among them.
        let one = far.subrows(0, 1);
        assert_eq!(kernel.clipped_correlations(one, one).count, 0);
        let single = kernel.clipped_correlations(single(&far).as_ref(), single(&far).as_ref());
        assert!(single.largest <= 8.0 * f64::from(f32::EPSILON), "{activation:?} {single:?}");
    }
}

#[test]
fn equal_coordinates_have_the_diagonal_to_the_last_bit() {
    let x = normal(12, 7, 23);
    for activation in ACTIVATIONS {
        for depth in 1..=3 {
            let kernel = network(&vec![activation; depth], &scales(depth + 1), 7);
            let (k, own) =
                (cross::<f64>(&kernel, x.as_ref(), x.as_ref()), diagonal::<f64>(&kernel, x.as_ref()));
            let (k32, own32) = (
                cross::<f32>(&kernel, single(&x).as_ref(), single(&x).as_ref()),
                diagonal::<f32>(&kernel, single(&x).as_ref()),
            );
            for i in 0..12 {
                assert_eq!((k[(i, i)], k32[(i, i)]), (own[i], own32[i]), "{kernel:?}");
            }
        }
    }
}

#[test]
fn every_way_leads_to_the_same_entries() {
    let n = TILE + 31;
    for dimension in [3, 40] {
        let x = normal(n, dimension, 24);
        let kernel = network(&[Activation::Relu, Activation::Sine, Activation::Erf], &scales(4), dimension);
        let kernel: &dyn Kernel<f64> = &kernel;
        let whole = gram(kernel, x.as_ref());
        let near = |a: f64, b: f64| {
            // Entry by entry in up to 32 columns.
            assert!(a == b || (dimension > 32 && (a - b).abs() < 1e-13), "{dimension}: {a} {b}");
        };
        let identity = Mat::<f64>::identity(n, n);
        let mut product = Mat::zeros(n, n);
        KernelMatrix::new(kernel, x.as_ref()).apply(identity.as_ref(), product.as_mut());
        // A window over the border between tiles, and one point by itself.
        let (from, size) = (TILE - 9, 20);
        let part = cross(kernel, x.subrows(from, size), x.as_ref());
        let prepared = kernel.prepare(x.as_ref());
        let order: Vec<usize> = (0..n).rev().collect();
        let turned = prepared.gather(&order);
        let mut again = Mat::zeros(n, size);
        kernel.prepared_tile(turned.block(0..n), prepared.block(from..from + size), None, again.as_mut());
        let mut own = vec![0.0; n];
        kernel.values_at(prepared.block(0..n), &mut own);
        let separable = Separable::independent(kernel.clone_box(), 1);
        let Ok(blocks) = separable.gram(&x, None);
        for j in 0..n {
            assert_eq!(own[j], diagonal(kernel, x.subrows(j, 1))[0]);
            assert_eq!(own[j], whole[(j, j)]);
            for i in 0..n {
                assert!((product[(i, j)] - whole[(i, j)]).abs() < 1e-13);
                near(blocks[(i, j)], whole[(i, j)]);
            }
            (0..size).for_each(|i| near(part[(i, j)], whole[(from + i, j)]));
            (0..size).for_each(|k| near(again[(j, k)], whole[(order[j], from + k)]));
        }
    }
}

#[test]
fn it_stands_in_sums_and_products() {
    let x = normal(15, 3, 25);
    let of = |text: &str| gram(&*build::<f64>(text), x.as_ref());
    let (deep, flat) = (of("nngp(depth=2, erf, weight=1.3)"), of("nngp(depth=1, sine, x2, readout=false)"));
    let (se, linear) = (of("se(lengthscale=0.7)"), of("linear"));
    let sum = of(
        "nngp(depth=2, erf, weight=1.3) + nngp(depth=1, sine, x2, readout=false, variance=0.5) * se(lengthscale=0.7) + linear",
    );
    let product = of("nngp(depth=2, erf, weight=1.3) * (se(lengthscale=0.7) + linear)");
    for j in 0..15 {
        for i in 0..15 {
            let (d, f, s, l) = (deep[(i, j)], flat[(i, j)], se[(i, j)], linear[(i, j)]);
            assert!((sum[(i, j)] - (d + 0.5 * f * s + l)).abs() < 1e-14);
            assert!((product[(i, j)] - d * (s + l)).abs() < 1e-14);
        }
    }
}

#[test]
fn not_a_number_stays_visible() {
    let mut x = normal(4, 3, 26);
    x[(2, 1)] = f64::NAN;
    for activation in ACTIVATIONS {
        let k = cross::<f64>(&network(&[activation; 2], &scales(3), 3), x.as_ref(), x.as_ref());
        for j in 0..4 {
            for i in 0..4 {
                assert_eq!(k[(i, j)].is_nan(), i == 2 || j == 2, "{activation:?} {i} {j}");
            }
        }
    }
}

#[test]
fn parameters_are_one_pair_for_each_layer() {
    let mut kernel = network(&[Activation::Relu, Activation::Erf], &scales(3), 3);
    assert!(kernel.has_readout() && kernel.activations() == [Activation::Relu, Activation::Erf]);
    let names: Vec<_> = kernel.segments().into_iter().map(|s| (s.name, s.shape, s.transform)).collect();
    let log = posterior_optim::Transform::Log;
    assert_eq!(names, [("nngp.weight".into(), vec![3], log), ("nngp.bias".into(), vec![3], log)]);
    kernel.set_values(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    assert_eq!(kernel.values(), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let error = Kernel::<f64>::features(&kernel).unwrap_err();
    assert_eq!(error, FeatureError::NoFeatures { kernel: "nngp".into() });
    assert!(error.to_string().contains("a method without prior samples"), "{error}");
}

#[test]
#[should_panic(expected = "one deviation of weights and one of biases for each layer")]
fn scales_of_another_number_of_layers_are_refused() {
    network(&[Activation::Relu], &scales(3), 1);
}

/// `k(s x, t z) = s t k(x, z)`, and the angle between two points is all that a layer sees beside their lengths.
#[test]
fn networks_without_biases_are_homogeneous_and_stay_without() {
    let scales = [(1.3, 0.0), (0.9, 0.0), (1.1, 0.0)];
    let x = normal(9, 4, 28);
    let kernel = network(&[Activation::Relu, Activation::LeakyRelu { slope: SLOPE }], &scales, 4);
    let (k, longer) = (gram::<f64>(&kernel, x.as_ref()), gram::<f64>(&kernel, (&x * Scale(3.0)).as_ref()));
    for j in 0..9 {
        for i in 0..9 {
            let expected = recursion(kernel.activations(), &scales, &row(x.as_ref(), i), &row(x.as_ref(), j));
            assert!((k[(i, j)] - expected).abs() < 1e-13);
            assert!((longer[(i, j)] - 9.0 * k[(i, j)]).abs() < 1e-13 * longer[(i, i)]);
        }
    }
    // No step of an optimiser moves them, and derivatives in them are 0.
    let mut moved = kernel.clone();
    assert_eq!(kernel.unconstrained().len(), 3);
    moved.set_unconstrained(&[0.1, 0.2, 0.3]);
    assert_eq!(moved.values()[3..], [0.0; 3]);
    let one = Mat::from_fn(9, 9, |_, _| 1.0);
    let found = crate::pullback(&kernel, x.as_ref(), x.as_ref(), one.as_ref(), crate::Request::PARAMETERS);
    assert_eq!(found.parameters[3..], [0.0; 3]);
}

/// A row of zeros has no variance then.
#[test]
fn points_without_variance_have_finite_values_and_gradients() {
    let x = Mat::from_fn(4, 3, |i, j| if i == 0 { 0.0 } else { ((i + j) as f64).sin() });
    let g = Mat::from_fn(4, 4, |_, _| 1.0);
    for activation in ACTIVATIONS {
        let kernel = network(&[activation; 2], &[(1.2, 0.0); 3], 3);
        let k = gram::<f64>(&kernel, x.as_ref());
        assert!((0..4).all(|i| k[(i, 0)] == 0.0 && k[(i, i)].is_finite()), "{activation:?}");
        let found = crate::pullback(&kernel, x.as_ref(), x.as_ref(), g.as_ref(), crate::Request::ALL);
        assert!(found.parameters.iter().all(|v| v.is_finite()), "{activation:?}");
        assert!((0..3).all(|d| found.x.as_ref().unwrap().col(d).iter().all(|v| v.is_finite())));
    }
}

#[test]
#[should_panic(expected = "positive")]
fn a_weight_of_zero_is_refused() {
    network(&[Activation::Relu], &[(0.0, 1.0)], 1);
}

#[test]
#[should_panic(expected = "or those of all biases 0")]
fn a_bias_of_zero_beside_others_is_refused() {
    network(&[Activation::Relu], &[(1.0, 0.0), (1.0, 0.3)], 1);
}
