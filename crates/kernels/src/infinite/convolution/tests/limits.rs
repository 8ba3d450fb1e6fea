//! Laws, precision, images that are alike, every way to the same entries, and layers that do not fit.

use super::super::ImageLayerError;
use super::*;
use crate::features::FeatureError;
use crate::matrix::KernelMatrix;
use crate::{Kernel, TILE, cross, diagonal, gram};
use faer::{Mat, Scale, Side};
use posterior_linalg::operator::LinearOperator;
use posterior_optim::Parameters;

fn single(m: &Mat<f64>) -> Mat<f32> {
    Mat::from_fn(m.nrows(), m.ncols(), |i, j| m[(i, j)] as f32)
}

#[test]
fn matrices_are_positive_semi_definite() {
    for (kernel, _) in networks() {
        for spread in [0.05, 1.0, 20.0] {
            let x = normal(30, kernel.columns.count(), 21) * Scale(spread);
            let values = gram::<f64>(&kernel, x.as_ref()).self_adjoint_eigenvalues(Side::Lower).unwrap();
            assert!(values[0] >= -1e-10 * values[29], "{kernel:?} {spread}: {} {}", values[0], values[29]);
        }
    }
}

#[test]
fn single_precision_agrees_with_double() {
    for (kernel, _) in networks() {
        let x = single(&normal(20, kernel.columns.count(), 22));
        let exact = Mat::from_fn(20, x.ncols(), |i, j| f64::from(x[(i, j)]));
        let (found, exact) = (gram::<f32>(&kernel, x.as_ref()), gram::<f64>(&kernel, exact.as_ref()));
        for j in 0..20 {
            for i in 0..20 {
                let size = (exact[(i, i)] * exact[(j, j)]).sqrt();
                let error = (f64::from(found[(i, j)]) - exact[(i, j)]).abs();
                assert!(error <= 1e-5 * size, "{kernel:?}: {} {}", found[(i, j)], exact[(i, j)]);
            }
        }
    }
}

#[test]
fn equal_images_have_the_diagonal_to_the_last_bit() {
    for (kernel, _) in networks() {
        let x = normal(19, kernel.columns.count(), 23);
        let (k, own) = (cross::<f64>(&kernel, x.as_ref(), x.as_ref()), diagonal::<f64>(&kernel, x.as_ref()));
        let x = single(&x);
        let (k32, own32) =
            (cross::<f32>(&kernel, x.as_ref(), x.as_ref()), diagonal::<f32>(&kernel, x.as_ref()));
        for i in 0..19 {
            assert_eq!((k[(i, i)], k32[(i, i)]), (own[i], own32[i]), "{kernel:?}");
        }
    }
}

#[test]
fn every_way_leads_to_the_same_entries() {
    let n = TILE + 31;
    let layers = [convolution([2, 2]), RELU, pool([2, 1], [1, 1]), DENSE, ERF];
    let kernel = network([2, 3, 3], &layers, true, &scales(3));
    let kernel: &dyn Kernel<f64> = &kernel;
    let x = normal(n, 18, 24);
    let whole = gram(kernel, x.as_ref());
    let mut product = Mat::zeros(n, n);
    KernelMatrix::new(kernel, x.as_ref()).apply(Mat::<f64>::identity(n, n).as_ref(), product.as_mut());
    // A window over the border between tiles; points in another order; fewer points on the first side than stand side by side.
    let (from, size) = (TILE - 9, 20);
    let part = cross(kernel, x.subrows(from, size), x.as_ref());
    let few = cross(kernel, x.subrows(from, 3), x.as_ref());
    let prepared = kernel.prepare(x.as_ref());
    let order: Vec<usize> = (0..n).rev().collect();
    let turned = prepared.gather(&order);
    let mut again = Mat::zeros(n, size);
    kernel.prepared_tile(turned.block(0..n), prepared.block(from..from + size), None, again.as_mut());
    let mut own = vec![0.0; n];
    kernel.values_at(prepared.block(0..n), &mut own);
    let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-14, "{a} {b}");
    for j in 0..n {
        assert_eq!(own[j], diagonal(kernel, x.subrows(j, 1))[0]);
        assert_eq!(own[j], whole[(j, j)]);
        (0..n).for_each(|i| near(product[(i, j)], whole[(i, j)]));
        (0..size).for_each(|i| near(part[(i, j)], whole[(from + i, j)]));
        (0..3).for_each(|i| near(few[(i, j)], whole[(from + i, j)]));
        (0..size).for_each(|k| near(again[(j, k)], whole[(order[j], from + k)]));
    }
}

#[test]
fn composites_have_the_tiles_of_their_costliest_part() {
    let names = ["x1", "x2"].map(String::from);
    let tile =
        |text: &str| text.parse::<crate::KernelExpression>().unwrap().build::<f64>(&names).unwrap().tile();
    assert_eq!([tile("se + linear * rq"), tile("nngp")], [TILE; 2]);
    let images = tile("nngp-conv(shape=1x2, conv=1, erf)");
    assert!(images < TILE);
    assert_eq!(tile("se * (linear + nngp-conv(shape=1x2, conv=1, erf, readout=false, variance=2))"), images);
}

#[test]
fn threads_do_not_change_a_bit() {
    let layers = [convolution([2, 2]), RELU, pool([2, 1], [1, 1]), DENSE, ERF];
    let kernel = network([2, 3, 3], &layers, true, &scales(3));
    let x = normal(TILE + 40, 18, 25);
    let run = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let pulled = crate::pullback_gram(
                &kernel as &dyn Kernel<f64>,
                x.as_ref(),
                &|_, _, mut tile| tile.fill(0.5),
                crate::Request::ALL,
            );
            (gram::<f64>(&kernel, x.as_ref()), pulled)
        })
    };
    assert_eq!(run(1), run(3));
}

#[test]
fn not_a_number_stays_visible_where_it_is_seen() {
    for (kernel, _) in networks() {
        let mut x = normal(4, kernel.columns.count(), 26);
        x[(2, 0)] = f64::NAN;
        let k = cross::<f64>(&kernel, x.as_ref(), x.as_ref());
        for j in 0..4 {
            (0..4).for_each(|i| assert_eq!(k[(i, j)].is_nan(), i == 2 || j == 2, "{kernel:?} {i} {j}"));
        }
    }
}

/// Black images have no variance but that of the biases; where these are small, as good as none.
#[test]
fn black_images_have_finite_values_and_gradients() {
    for (shape, layers) in cases() {
        let count = parameters(&layers, true);
        let kernel = network(shape, &layers, true, &vec![(1.0, 1e-180); count]);
        let pixels = kernel.columns.count();
        let x = Mat::from_fn(3, pixels, |i, j| if i == 0 { 0.0 } else { ((i + j) as f64).sin() });
        let k = gram::<f64>(&kernel, x.as_ref());
        let g = Mat::from_fn(3, 3, |_, _| 1.0);
        let found = crate::pullback(&kernel, x.as_ref(), x.as_ref(), g.as_ref(), crate::Request::ALL);
        assert!((0..3).all(|i| k[(i, i)].is_finite()) && k[(0, 0)] == 0.0, "{kernel:?}");
        assert!(found.parameters.iter().all(|v| v.is_finite()), "{kernel:?}: {:?}", found.parameters);
        assert!(found.x.unwrap().col_iter().all(|c| c.iter().all(|v| v.is_finite())), "{kernel:?}");
    }
}

#[test]
fn parameters_are_one_pair_for_each_convolution_and_fully_connected_layer() {
    let layers = [convolution([2, 2]), RELU, pool([2, 2], [2, 2]), DENSE, ERF];
    let mut kernel = network([1, 5, 5], &layers, true, &scales(3));
    assert!(kernel.has_readout() && kernel.layers() == layers && kernel.shape() == [1, 5, 5]);
    let names: Vec<_> = kernel.segments().into_iter().map(|s| (s.name, s.shape, s.transform)).collect();
    let log = posterior_optim::Transform::Log;
    assert_eq!(names, [("nngp-conv.weight".into(), vec![3], log), ("nngp-conv.bias".into(), vec![3], log)]);
    kernel.set_values(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    assert_eq!(kernel.values(), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let error = Kernel::<f64>::features(&kernel).unwrap_err();
    assert_eq!(error, FeatureError::NoFeatures { kernel: "nngp-conv".into() });
}

#[test]
fn layers_that_do_not_fit_are_refused_without_being_planned() {
    use ImageLayerError::{BehindDense, Count, Fit, NoActivation, NoSums, Pairs, Shape, Zero};
    let big = |side: usize| pool([side, side], [1, 1]);
    let error = |shape: [usize; 3], columns: usize, layers: &[ImageLayer]| {
        let columns = crate::Columns::all(columns);
        ConvolutionalNetwork::new("nngp-conv", columns, shape, layers.to_vec(), true, 1.0, 1.0).unwrap_err()
    };
    let huge = [3, 1_000_000, 1_000_000];
    assert_eq!(error(huge, 4, &[convolution([3, 3])]), Shape { shape: huge });
    assert_eq!(error([usize::MAX; 3], 4, &[convolution([3, 3])]), Shape { shape: [usize::MAX; 3] });
    assert_eq!(error([0, 2, 2], 4, &[convolution([1, 1])]), Shape { shape: [0, 2, 2] });
    assert_eq!(error([1, 2, 2], 4, &[]), Count { count: 0 });
    assert_eq!(error([1, 2, 2], 4, &[RELU; 65]), Count { count: 65 });
    let columns = ImageLayerError::Columns { shape: [1, 2, 3], columns: 4 };
    assert_eq!(error([1, 2, 3], 4, &[convolution([1, 1])]), columns);
    assert_eq!(error([1, 2, 2], 4, &[convolution([0, 1])]), Zero { layer: 0 });
    let fit = Fit { layer: 2, size: [2, 1], image: [1, 1] };
    assert_eq!(error([1, 2, 2], 4, &[convolution([2, 2]), RELU, pool([2, 1], [1, 1])]), fit);
    assert_eq!(error([1, 2, 2], 4, &[pool([usize::MAX; 2], [1, 1])]).layer(), Some(0));
    assert_eq!(error([1, 2, 2], 4, &[DENSE, RELU, pool([1, 1], [1, 1])]), BehindDense { layer: 2 });
    assert_eq!(error([1, 2, 2], 4, &[RELU, convolution([1, 1])]), NoSums { layer: 0 });
    assert_eq!(
        error([1, 2, 2], 4, &[convolution([1, 1]), RELU, pool([1, 1], [1, 1]), ERF]),
        NoSums { layer: 3 }
    );
    assert_eq!(error([1, 2, 2], 4, &[convolution([1, 1]), RELU, DENSE]), NoActivation { layer: 2 });
    // Fits, but has far too many pairs of positions: in the windows, and behind them.
    let side = super::super::layers::LARGEST;
    let found = error([1, side, side], side * side, &[convolution([1, 1]), RELU, big(side / 2)]);
    assert!(matches!(found, Pairs { .. }), "{found}");
    let found = error([1, 200, 200], 40_000, &[convolution([1, 1]), RELU, big(10)]);
    assert!(matches!(found, Pairs { .. }), "{found}");
}

#[test]
#[should_panic(expected = "for each of 2 layers")]
fn scales_of_another_number_of_layers_are_refused() {
    network([1, 2, 2], &[convolution([2, 2]), RELU], true, &scales(3));
}
