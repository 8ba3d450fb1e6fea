//! Arrays by coordinates, random numbers, differences, comparison.

use crate::array::{Array, Sets, batch_shape};
use posterior_linalg::random::Streams;
use rand::RngExt;

/// All coordinates of a shape in row-major order.
pub(super) fn coordinates(shape: &[usize]) -> Vec<Vec<usize>> {
    let mut all = vec![vec![]];
    for &length in shape {
        all =
            all.into_iter().flat_map(|at| (0..length).map(move |i| [at.clone(), vec![i]].concat())).collect();
    }
    all
}

/// The array whose value at each coordinate is `value(coordinate)`.
pub(super) fn build(shape: &[usize], value: impl Fn(&[usize]) -> f64) -> Array<f64> {
    Array::new(shape.to_vec(), coordinates(shape).iter().map(|at| value(at)).collect())
}

/// The value at a coordinate.
pub(super) fn get(x: &Array<f64>, at: &[usize]) -> f64 {
    assert_eq!(x.shape().len(), at.len(), "one coordinate for each axis of {:?}", x.shape());
    x.values()[x.shape().iter().zip(at).fold(0, |sum, (&length, &i)| sum * length + i)]
}

/// Uniform on (-1, 1), a stream for each seed.
pub(super) fn random(shape: impl Into<Vec<usize>>, seed: u64) -> Array<f64> {
    let shape = shape.into();
    let mut rng = Streams::new(seed).stream("networks/operations");
    let values = (0..shape.iter().product()).map(|_| 2.0 * rng.random::<f64>() - 1.0).collect();
    Array::new(shape, values)
}

/// `x + step t`.
pub(super) fn moved(x: &Array<f64>, step: f64, t: &Array<f64>) -> Array<f64> {
    assert_eq!(x.len(), t.len(), "a direction for every value");
    Array::new(x.shape().to_vec(), x.values().iter().zip(t.values()).map(|(x, t)| x + step * t).collect())
}

/// Every row `width` times.
pub(super) fn repeated(x: &Array<f64>, width: usize) -> Array<f64> {
    let rows: Vec<usize> = (0..x.rows() * width).map(|r| r / width).collect();
    let values = rows.iter().flat_map(|&r| x.row(r).to_vec()).collect();
    Array::new(batch_shape(rows.len(), &x.shape()[1..]), values)
}

/// The derivative of `f` at 0 by central differences, twice extrapolated: the error is of sixth order in the step.
pub(super) fn derivative(f: impl Fn(f64) -> Vec<f64>) -> Vec<f64> {
    let difference =
        |h: f64| -> Vec<f64> { f(h).iter().zip(f(-h)).map(|(a, b)| (a - b) / (2.0 * h)).collect() };
    let h = 4e-3;
    let (a, b, c) = (difference(h), difference(h / 2.0), difference(h / 4.0));
    (0..a.len())
        .map(|i| {
            let (ab, bc) = ((4.0 * b[i] - a[i]) / 3.0, (4.0 * c[i] - b[i]) / 3.0);
            (16.0 * bc - ab) / 15.0
        })
        .collect()
}

/// `<x[r], y[r]>` for each row of two arrays with equal rows.
pub(super) fn by_row(x: &Array<f64>, y: &Array<f64>) -> Vec<f64> {
    assert_eq!(x.shape(), y.shape(), "row by row");
    (0..x.rows()).map(|r| x.row(r).iter().zip(y.row(r)).map(|(x, y)| x * y).sum()).collect()
}

/// Which rows of a block belong to set `set`.
pub(super) fn members(sets: Sets, set: usize, rows: usize) -> Vec<usize> {
    (0..rows)
        .filter(|&r| match sets {
            Sets::One => true,
            Sets::Tangents(width) => r % width == set,
            Sets::Rows => r == set,
        })
        .collect()
}

/// Equal up to `tolerance` times the largest value (at least 0.01).
#[track_caller]
pub(super) fn close(what: &str, found: &[f64], expected: &[f64], tolerance: f64) {
    assert_eq!(found.len(), expected.len(), "{what}: as many values");
    let scale = expected.iter().fold(1e-2, |scale: f64, v| scale.max(v.abs()));
    for (i, (a, b)) in found.iter().zip(expected).enumerate() {
        let error = (a - b).abs();
        assert!(error <= tolerance * scale, "{what}, value {i}: {a} instead of {b} (scale {scale})");
    }
}
