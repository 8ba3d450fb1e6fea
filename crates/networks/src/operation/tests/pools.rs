//! Pooling and interpolation.

use super::case::{Case, Fill};
use super::check::check;
use super::numbers::{build, get};
use crate::array::Array;
use crate::operation::{Interpolation, Mode, Operation, Pool, Resize};

/// Windows along one axis: for each output, the positions of its taps, padding included (from -padding).
fn taps(size: usize, pool: &Pool, axis: usize) -> Vec<Vec<isize>> {
    let (kernel, stride) = (pool.kernel[axis], pool.stride.as_ref().unwrap_or(&pool.kernel)[axis]);
    let padding = pool.padding.get(axis).copied().unwrap_or(0) as isize;
    let dilation = pool.dilation.get(axis).copied().unwrap_or(1);
    let mut windows = Vec::new();
    let mut start = -padding;
    loop {
        let window: Vec<isize> = (0..kernel).map(|k| start + (k * dilation) as isize).collect();
        let fits = *window.last().unwrap() < size as isize + padding;
        // With `ceil` one more window counts, if it begins before the image ends.
        let partly = pool.ceil && start < size as isize;
        let previous_ended =
            windows.last().is_none_or(|w: &Vec<isize>| *w.last().unwrap() < size as isize + padding - 1);
        if !(fits || partly && previous_ended) {
            return windows;
        }
        windows.push(window);
        start += stride as isize;
    }
}

/// The values of a window, and how many there are with those in the padding.
fn window_values(x: &Array<f64>, pool: &Pool, at: &[usize]) -> (Vec<f64>, usize) {
    let size = &x.shape()[1..];
    let windows: Vec<Vec<isize>> =
        (0..size.len()).map(|a| taps(size[a], pool, a)[at[a + 1]].clone()).collect();
    let (mut values, mut padded) = (Vec::new(), 0);
    let counts: Vec<usize> = windows.iter().map(Vec::len).collect();
    for tap in super::numbers::coordinates(&counts) {
        let place: Vec<isize> = tap.iter().zip(&windows).map(|(&t, w)| w[t]).collect();
        let inside = |a: usize| place[a] >= 0 && (place[a] as usize) < size[a];
        let padding = |a: usize| pool.padding.get(a).copied().unwrap_or(0);
        if (0..size.len()).all(inside) {
            let from: Vec<usize> = place.iter().map(|&p| p as usize).collect();
            values.push(get(x, &[&at[..1], &from[..]].concat()));
        }
        padded += usize::from((0..size.len()).all(|a| place[a] < (size[a] + padding(a)) as isize));
    }
    (values, padded)
}

fn pooled(x: &Array<f64>, pool: &Pool, value: impl Fn(&[f64], usize) -> f64) -> Array<f64> {
    let s = x.shape();
    let mut shape = s.to_vec();
    (1..s.len()).for_each(|a| shape[a] = taps(s[a], pool, a - 1).len());
    build(&shape, |at| {
        let (values, padded) = window_values(x, pool, at);
        value(&values, padded)
    })
}

fn configurations() -> Vec<(Vec<usize>, Pool)> {
    let p = Pool::square;
    vec![
        (vec![2, 4, 6], p(2, 2, 0)),
        (vec![2, 5, 7], Pool { stride: None, ..p(2, 1, 0) }),
        (vec![1, 5, 6], p(3, 1, 1)),
        (vec![2, 5, 4], Pool { padding: vec![1, 1], ..Pool::new(vec![3, 2], vec![2, 3]) }),
        (vec![1, 7, 8], Pool { dilation: vec![2, 3], ..p(2, 2, 1) }),
        (vec![2, 5, 6], Pool { ceil: true, ..p(2, 2, 0) }),
        (vec![1, 6, 7], Pool { ceil: true, ..p(3, 2, 1) }),
        (vec![1, 4, 5], Pool { ceil: true, ..p(2, 3, 1) }),
        (vec![1, 4, 4], p(4, 1, 2)),
        (vec![1, 1, 1], p(1, 1, 0)),
        (vec![2, 9], Pool { padding: vec![1], dilation: vec![2], ..Pool::new(vec![3], vec![2]) }),
        (vec![2, 7], Pool { ceil: true, ..Pool::new(vec![2], vec![2]) }),
        (vec![2, 3, 4, 5], Pool { padding: vec![1, 0, 1], ..Pool::new(vec![2, 3, 2], vec![2, 1, 3]) }),
        (
            vec![1, 4, 3, 5],
            Pool { ceil: true, dilation: vec![2, 1, 1], ..Pool::new(vec![2; 3], vec![2, 2, 2]) },
        ),
    ]
}

#[test]
fn largest_values() {
    for (shape, pool) in configurations() {
        let copy = pool.clone();
        let case = Case::new(Operation::MaxPool(pool), &[&shape], move |x, _| {
            pooled(&x[0], &copy, |values, _| values.iter().copied().fold(f64::NEG_INFINITY, f64::max))
        });
        check(&case.filled(Fill::Distinct));
    }
}

/// Of equal values the first one gets the whole cotangent, negative images included; NaN is not lost.
#[test]
fn ties_and_nan() {
    let case = Case::new(Operation::MaxPool(Pool::square(3, 1, 1)), &[&[1, 2, 2]], |x, _| x[0].clone());
    let point = case.point(Mode::Evaluation);
    let there = point.with(vec![Array::new(vec![1, 1, 2, 2], vec![-3.0; 4])], vec![], 1);
    assert_eq!(there.output.values(), [-3.0; 4], "padding is never the largest");
    let pulled = there.at(|layer, at| layer.vjp_input(at, 0, &there.output));
    assert_eq!(pulled.values(), [-12.0, 0.0, 0.0, 0.0]);
    for position in 0..4 {
        let mut values = vec![1.0; 4];
        values[position] = f64::NAN;
        let there = point.with(vec![Array::new(vec![1, 1, 2, 2], values)], vec![], 1);
        assert!(there.output.values().iter().all(|v| v.is_nan()), "NaN at {position}");
    }
}

#[test]
fn means_with_and_without_padding() {
    for (shape, pool) in configurations() {
        for count_padding in [true, false] {
            let pool = Pool { count_padding, ..pool.clone() };
            let copy = pool.clone();
            check(&Case::new(Operation::AveragePool(pool), &[&shape], move |x, _| {
                pooled(&x[0], &copy, |values, padded| {
                    let count = if count_padding { padded } else { values.len() };
                    values.iter().sum::<f64>() / count as f64
                })
            }));
        }
    }
}

/// Linear interpolation as a sum of hats: `sum_j max(0, 1 - |position - j|) x[j]`; nearest as the pixel that a position falls into.
fn resized(x: &Array<f64>, resize: &Resize) -> Array<f64> {
    let weights = |axis: usize, i: usize| -> Vec<f64> {
        let (from, to) = (x.shape()[axis + 1] as f64, resize.sizes[axis] as f64);
        let ratio = resize.scales.as_ref().map_or(from / to, |s| s[axis]);
        let last = from - 1.0;
        let position = match resize.interpolation {
            Interpolation::Nearest => (i as f64 * ratio + 1e-9).floor().min(last),
            Interpolation::Linear => ((i as f64 + 0.5) * ratio - 0.5).max(0.0).min(last),
            Interpolation::LinearAligned => {
                if to == 1.0 {
                    0.0
                } else {
                    i as f64 * last / (to - 1.0)
                }
            }
        };
        (0..x.shape()[axis + 1]).map(|j| (1.0 - (position - j as f64).abs()).max(0.0)).collect()
    };
    build(&[&x.shape()[..1], &resize.sizes[..]].concat(), |at| {
        super::numbers::coordinates(&x.shape()[1..])
            .iter()
            .map(|from| {
                let weight: f64 =
                    (0..from.len()).map(|axis| weights(axis, at[axis + 1])[from[axis]]).product();
                weight * get(x, &[&at[..1], &from[..]].concat())
            })
            .sum()
    })
}

#[test]
fn resizing_up_and_down() {
    for interpolation in [Interpolation::Nearest, Interpolation::Linear, Interpolation::LinearAligned] {
        for (shape, sizes) in [
            (vec![2, 3, 4], vec![6, 8]),
            (vec![1, 4, 5], vec![7, 13]),
            (vec![1, 5, 6], vec![2, 3]),
            (vec![2, 4], vec![9]),
            (vec![2, 3], vec![1]),
            (vec![1, 1, 3], vec![4, 3]),
            (vec![1, 2, 3, 2], vec![3, 2, 5]),
        ] {
            let resize = Resize { sizes, interpolation, scales: None };
            let copy = resize.clone();
            check(&Case::new(Operation::Resize(resize), &[&shape], move |x, _| resized(&x[0], &copy)));
        }
    }
    for interpolation in [Interpolation::Nearest, Interpolation::Linear] {
        let resize = Resize { sizes: vec![7, 3], interpolation, scales: Some(vec![0.6, 1.3]) };
        let copy = resize.clone();
        check(&Case::new(Operation::Resize(resize), &[&[2, 4, 5]], move |x, _| resized(&x[0], &copy)));
    }
}

/// `58 / 200 * 100` is 28.999... in floating point; the 100th of 200 pixels still lies in pixel 29 of 58.
#[test]
fn nearest_pixels_are_counted_in_whole_numbers() {
    for (from, to) in [(58, 200), (7, 25), (200, 58), (47, 94), (3, 1000)] {
        let resize = Resize { sizes: vec![to], interpolation: Interpolation::Nearest, scales: None };
        let case = Case::new(Operation::Resize(resize), &[&[1, from]], |x, _| x[0].clone()).examples(1);
        let point = case.point(Mode::Evaluation);
        let x = Array::new(vec![1, 1, from], (0..from).map(|i| i as f64).collect());
        let found = point.with(vec![x], vec![], 1).output;
        for i in 0..to {
            assert_eq!(found.values()[i], (i * from / to) as f64, "{from} to {to}, pixel {i}");
        }
    }
}
