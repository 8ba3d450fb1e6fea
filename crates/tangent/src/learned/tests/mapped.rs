//! Kernels behind networks: their formula, and ways back against finite differences.

use super::*;
use posterior_kernels::{Kernel, Request, cross, diagonal, gram, pullback, pullback_diagonal, pullback_gram};
use posterior_linear::embedding::Embedding;
use posterior_optim::Parameters;

/// A distance, a scale and a constant, so that variances depend on the map; behind it, two numbers.
fn mapped() -> MappedKernel {
    MappedKernel::new(kernel(2), Box::new(NetworkEmbedding::new(network(2))))
}

fn summed(a: &Mat<f64>, b: &Mat<f64>) -> f64 {
    (0..a.ncols())
        .map(|j| a.col_as_slice(j).iter().zip(b.col_as_slice(j)).map(|(a, b)| a * b).sum::<f64>())
        .sum()
}

fn flat(m: &Mat<f64>) -> Vec<f64> {
    (0..m.ncols()).flat_map(|j| m.col_as_slice(j).to_vec()).collect()
}

fn with(theta: &[f64]) -> MappedKernel {
    let mut moved = mapped();
    moved.set_values(theta);
    moved
}

#[test]
fn it_is_the_kernel_of_what_the_map_makes() {
    let (own, x, z) = (mapped(), normal(9, 3, "x"), normal(7, 3, "z"));
    let embedding = NetworkEmbedding::new(network(2));
    let (g, h) = (embedding.embedded(x.as_ref()).unwrap(), embedding.embedded(z.as_ref()).unwrap());
    let base = kernel(2);
    assert!((cross(&own, x.as_ref(), z.as_ref()) - cross(&*base, g.as_ref(), h.as_ref())).norm_max() < 1e-14);
    assert!((gram(&own, x.as_ref()) - gram(&*base, g.as_ref())).norm_max() < 1e-14);
    let values = diagonal(&own, x.as_ref());
    let prepared = own.prepare(x.as_ref());
    let mut again = vec![0.0; 9];
    own.values_at(prepared.block(0..9), &mut again);
    check::assert_close(&values, &again, 1e-14, 0.0);
    // Names of the base come first and are its own.
    let names: Vec<String> = own.segments().into_iter().map(|segment| segment.name).collect();
    assert_eq!(names.last().unwrap(), "map.weights");
    assert_eq!(own.values()[..base.values().len()], base.values());
    // What the map refuses is no number.
    assert!(gram(&own, normal(3, 4, "wide").as_ref())[(1, 0)].is_nan());
}

#[test]
fn every_way_back_is_a_finite_difference() {
    let (own, x, z, weights) = (mapped(), normal(9, 3, "x"), normal(7, 3, "z"), normal(9, 7, "weights"));
    let theta = own.values();
    let found = pullback(&own, x.as_ref(), z.as_ref(), weights.as_ref(), Request::ALL);
    let value = |own: &MappedKernel, x: &Mat<f64>, z: &Mat<f64>| {
        summed(&weights, &cross(own, x.as_ref(), z.as_ref()))
    };
    let numeric = check::gradient(|theta| value(&with(theta), &x, &z), &theta);
    check::assert_close(&found.parameters, &numeric, 1e-6, 1e-6);
    let matrix = |v: &[f64], rows: usize| Mat::from_fn(rows, 3, |i, j| v[j * rows + i]);
    let numeric = check::gradient(|x| value(&own, &matrix(x, 9), &z), &flat(&x));
    check::assert_close(&flat(&found.x.unwrap()), &numeric, 1e-6, 1e-6);
    let numeric = check::gradient(|z| value(&own, &x, &matrix(z, 7)), &flat(&z));
    check::assert_close(&flat(&found.z.unwrap()), &numeric, 1e-6, 1e-6);
    // Values of rows alone, by both ways that there are.
    let of_rows = weights.col_as_slice(0).to_vec();
    let of = |theta: &[f64]| {
        diagonal(&with(theta), x.as_ref()).iter().zip(&of_rows).map(|(v, w)| v * w).sum::<f64>()
    };
    let numeric = check::gradient(of, &theta);
    let mut values = vec![0.0; theta.len()];
    own.pullback_values_at(x.as_ref(), &of_rows, &mut values);
    check::assert_close(&values, &numeric, 1e-6, 1e-6);
    let driven = pullback_diagonal(&own, x.as_ref(), &of_rows, Request::PARAMETERS).parameters;
    check::assert_close(&driven, &numeric, 1e-6, 1e-6);
    // A symmetric matrix, of whose pairs each is looked at once.
    let square = normal(9, 9, "square");
    let symmetric = &square + square.transpose();
    let fill =
        |rows: std::ops::Range<usize>, columns: std::ops::Range<usize>, mut tile: faer::MatMut<'_, f64>| {
            tile.copy_from(symmetric.submatrix(rows.start, columns.start, rows.len(), columns.len()));
        };
    let found = pullback_gram(&own, x.as_ref(), &fill, Request::PARAMETERS).parameters;
    let numeric = check::gradient(|theta| summed(&symmetric, &gram(&with(theta), x.as_ref())), &theta);
    check::assert_close(&found, &numeric, 1e-6, 1e-6);
}

#[test]
fn maps_that_are_kept_stay_and_kernels_learn() {
    let (x, weights) = (normal(6, 3, "x"), normal(6, 6, "weights"));
    let (free, mut own) = (mapped(), mapped().with_map_kept());
    let learned = own.base().parameter_count();
    assert_eq!((own.unconstrained().len(), own.values().len()), (learned, free.values().len()));
    let found = pullback(&own, x.as_ref(), x.as_ref(), weights.as_ref(), Request::PARAMETERS);
    let freely = pullback(&free, x.as_ref(), x.as_ref(), weights.as_ref(), Request::PARAMETERS);
    assert_eq!(found.parameters[..learned], freely.parameters[..learned]);
    assert!(found.parameters[learned..].iter().all(|v| *v == 0.0));
    let (mut values, mut all) = (vec![0.0; own.values().len()], vec![0.0; own.values().len()]);
    own.pullback_values_at(x.as_ref(), weights.col_as_slice(0), &mut values);
    free.pullback_values_at(x.as_ref(), weights.col_as_slice(0), &mut all);
    check::assert_close(&values[..learned], &all[..learned], 1e-12, 1e-12);
    assert!(values[learned..].iter().all(|v| *v == 0.0));
    let before = own.values()[learned..].to_vec();
    own.set_unconstrained(&vec![0.3; learned]);
    assert_eq!(own.values()[learned..], before);
}
