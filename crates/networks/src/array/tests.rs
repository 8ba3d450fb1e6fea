//! Array kernels at sizes that are cut into pieces for several threads, in pools of different sizes, against plain loops.

use super::*;
use crate::array::Sets;
use posterior_linalg::random::Streams;
use rand::RngExt;

fn random(shape: &[usize], seed: u64) -> Array<f64> {
    let mut rng = Streams::new(seed).stream("networks/arrays");
    Array::new(shape.to_vec(), (0..shape.iter().product()).map(|_| rng.random::<f64>() - 0.5).collect())
}

/// Runs in pools of one to five threads; all results are equal bit for bit.
fn in_pools(f: impl Fn() -> Vec<f64> + Sync, expected: &[f64]) {
    let mut first: Option<Vec<f64>> = None;
    for threads in [1, 2, 4, 5] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let found = pool.install(&f);
        assert_eq!(found.len(), expected.len());
        for (i, (a, b)) in found.iter().zip(expected).enumerate() {
            assert!((a - b).abs() <= 1e-11 * (1.0 + b.abs()), "{threads} threads, value {i}: {a} {b}");
        }
        let first = first.get_or_insert_with(|| found.clone());
        let same = found.iter().zip(&*first).all(|(a, b)| a.to_bits() == b.to_bits());
        assert!(same, "bit for bit with {threads} threads");
    }
}

#[test]
fn sums_by_channel_over_many_rows() {
    for (example, channels, inner) in
        [(vec![7, 3, 5], 7, 15), (vec![4, 9], 9, 1), (vec![30], 30, 1), (vec![2, 3, 40], 3, 40)]
    {
        let (examples, width) = (1500, 2);
        let rows = examples * width;
        let c = random(&batch_shape(rows, &example), 1);
        let p = random(&batch_shape(examples, &example), 2);
        for sets in [Sets::One, Sets::Tangents(width), Sets::Rows] {
            for primal in [None, Some(&p)] {
                let (count, stride) = (sets.count(rows), channels + 3);
                let mut expected = vec![0.25; count * stride];
                for r in 0..rows {
                    for (i, v) in c.row(r).iter().enumerate() {
                        expected[sets.of(r) * stride + i / inner % channels] +=
                            v * primal.map_or(1.0, |p| p.row(r / width)[i]);
                    }
                }
                let run = || {
                    let mut out = vec![0.25; count * stride];
                    channel_sums(&c, primal, Channels { channels, inner }, sets, stride, &mut out);
                    out
                };
                in_pools(run, &expected);
            }
        }
    }
}

#[test]
fn scales_and_shifts_by_channel() {
    for (example, channels, inner) in [(vec![7, 3, 5], 7, 15), (vec![40], 40, 1), (vec![2, 3, 20], 3, 20)] {
        let (rows, width) = (900, 3);
        let x = random(&batch_shape(rows, &example), 1);
        for sets in [Sets::One, Sets::Tangents(width), Sets::Rows] {
            let (a, b) = (random(&[sets.count(rows), channels], 2), random(&[sets.count(rows), channels], 3));
            for (scale, shift) in [(true, true), (true, false), (false, true), (false, false)] {
                let entry = |r: usize, i: usize| sets.of(r) * channels + i / inner % channels;
                let expected: Vec<f64> = (0..x.len())
                    .map(|at| {
                        let k = entry(at / x.row_len(), at % x.row_len());
                        let scaled = x.values()[at] * if scale { a.values()[k] } else { 1.0 };
                        scaled + if shift { b.values()[k] } else { 0.0 }
                    })
                    .collect();
                let (scale, shift) = (scale.then(|| a.values()), shift.then(|| b.values()));
                let channels = Channels { channels, inner };
                in_pools(|| channel_affine(&x, channels, scale, shift, sets).into_values(), &expected);
            }
        }
    }
}

#[test]
fn rows_that_are_repeated_and_folded() {
    for (examples, width, length) in [(700, 3, 31), (5, 1, 4), (1, 4, 20_000), (3, 2, 1)] {
        let x = random(&[examples, length], 1);
        let block = random(&[examples * width, length], 2);
        let of = |at: usize| (at / length / width) * length + at % length;
        let products: Vec<f64> = (0..block.len()).map(|at| block.values()[at] * x.values()[of(at)]).collect();
        in_pools(|| multiply(block.clone(), &x).into_values(), &products);
        let copies: Vec<f64> = (0..block.len()).map(|at| x.values()[of(at)]).collect();
        in_pools(|| repeat(&x, width).into_values(), &copies);
        let mut sums = vec![0.0; examples * length];
        block.values().iter().enumerate().for_each(|(at, v)| sums[of(at)] += v);
        in_pools(|| fold_rows(&block, width).into_values(), &sums);
        assert_eq!(fold_rows(&block, width).shape(), x.shape());
        let mut dots = vec![0.0; examples * width];
        products.iter().enumerate().for_each(|(at, v)| dots[at / length] += v);
        in_pools(|| row_dots(&block, &x), &dots);
        let doubled: Vec<f64> = block.values().iter().map(|v| 3.0 * v).collect();
        in_pools(|| add(scale(block.clone(), 2.0), &block).into_values(), &doubled);
    }
}

#[test]
fn sparse_maps_with_empty_rows_and_columns() {
    // Output 0 and input 2 take no part; output 3 gathers everything else; entries in no order.
    let entries =
        vec![(3, 4, -2.0), (1, 0, 1.0), (3, 0, 0.5), (4, 3, 1.0), (3, 1, 1.0), (2, 4, 3.0), (3, 3, 1.0)];
    let map = SparseMap::new(5, 5, entries.clone());
    for rows in [0, 1, 4000] {
        let (x, y) = (random(&[rows, 5], 1), random(&[rows, 5], 2));
        let (mut forward, mut backward) = (vec![0.0; rows * 5], vec![0.0; rows * 5]);
        for r in 0..rows {
            for &(o, i, w) in &entries {
                forward[r * 5 + o as usize] += w * x.row(r)[i as usize];
                backward[r * 5 + i as usize] += w * y.row(r)[o as usize];
            }
        }
        in_pools(|| map.apply(&x, 1, &[5], 0.0).into_values(), &forward);
        in_pools(|| map.apply_transposed(&y, 1, &[5]).into_values(), &backward);
    }
    // Rows of several parts, each mapped by itself.
    let x = random(&[7, 3, 5], 3);
    let parts = map.apply(&x.clone().reshaped(vec![21, 5]), 1, &[5], 0.0).into_values();
    assert_eq!(map.apply(&x, 3, &[3, 5], 0.0), Array::new(vec![7, 3, 5], parts));
    let parts = map.apply_transposed(&x.clone().reshaped(vec![21, 5]), 1, &[5]).into_values();
    assert_eq!(map.apply_transposed(&x, 3, &[3, 5]), Array::new(vec![7, 3, 5], parts));
    // Without weights, to another shape.
    let map = SparseMap::new(3, 4, vec![(0, 2, 1.0), (3, 0, 1.0)]);
    let out = map.apply(&Array::new(vec![1, 3], vec![5.0, 6.0, 7.0]), 1, &[2, 2], 0.0);
    assert_eq!(out, Array::new(vec![1, 2, 2], vec![7.0, 0.0, 0.0, 5.0]));
    let back = map.apply_transposed(&out, 1, &[3]);
    assert_eq!(back, Array::new(vec![1, 3], vec![5.0, 0.0, 7.0]));
    // Nothing at all.
    let map = SparseMap::new(2, 3, vec![]);
    assert_eq!(map.apply(&Array::new(vec![1, 2], vec![1.0, 2.0]), 1, &[3], 0.0).values(), [0.0; 3]);
}

#[test]
fn products_in_pieces() {
    for (count, m, k, n) in [(1, 90, 70, 80), (3, 4, 5, 6), (200, 3, 1, 2), (64, 20, 30, 10)] {
        let (a, b) = (random(&[count, m, k], 1), random(&[count, k, n], 2));
        let length = m * n;
        for gap in [0, 7] {
            let stride = length + gap;
            let mut expected = vec![0.5; (count - 1) * stride + length];
            for c in 0..count {
                for i in 0..m {
                    for j in 0..n {
                        expected[c * stride + i * n + j] +=
                            (0..k).map(|l| a.row(c)[i * k + l] * b.row(c)[l * n + j]).sum::<f64>();
                    }
                }
            }
            let factors = |c: usize| (Matrix::new(a.row(c), m, k), Matrix::new(b.row(c), k, n));
            let run = || {
                let mut out = vec![0.5; expected.len()];
                products_apart(&mut out, stride, length, true, factors);
                out
            };
            in_pools(run, &expected);
        }
        let product_of =
            |c: usize| (Matrix::new(b.row(c), k, n).transposed(), Matrix::new(a.row(c), m, k).transposed());
        let mut expected = vec![];
        for c in 0..count {
            for j in 0..n {
                for i in 0..m {
                    expected.push((0..k).map(|l| a.row(c)[i * k + l] * b.row(c)[l * n + j]).sum::<f64>());
                }
            }
        }
        let run = || {
            let mut out = vec![9.0; expected.len()];
            products(&mut out, count, false, product_of);
            out
        };
        in_pools(run, &expected);
    }
}

/// Large enough to be shared, with rows over, in both precisions of accumulation.
#[test]
fn large_products_and_grams() {
    for (m, k, n) in [(77, 90, 110), (1500, 40, 9), (9, 300, 300), (5003, 7, 11), (2100, 500, 1)] {
        let (a, b) = (random(&[m, k], 1), random(&[k, n], 2));
        let turned = Array::new(vec![k, m], (0..k * m).map(|at| a.row(at % m)[at / m]).collect());
        let entry = |i: usize, j: usize| (0..k).map(|l| a.row(i)[l] * b.row(l)[j]).sum::<f64>();
        let expected: Vec<f64> = (0..m * n).map(|at| 0.5 + entry(at / n, at % n)).collect();
        for left in [Matrix::new(a.values(), m, k), Matrix::new(turned.values(), k, m).transposed()] {
            let run = || {
                let mut out = vec![0.5; m * n];
                product(&mut out, true, left, Matrix::new(b.values(), k, n));
                out
            };
            in_pools(run, &expected);
        }
    }
    for (rows, columns) in [(9000, 20), (700, 33), (40, 90), (100, 530)] {
        let a = random(&[rows, columns], 3);
        let lower = |f: &dyn Fn(usize, usize) -> f64| -> Vec<f64> {
            (0..columns).flat_map(|j| (j..columns).map(move |i| (i, j))).map(|(i, j)| f(i, j)).collect()
        };
        let expected = lower(&|i, j| 1.0 + (0..rows).map(|r| a.row(r)[i] * a.row(r)[j]).sum::<f64>());
        let run = || {
            let mut sum = faer::Mat::from_fn(columns, columns, |_, _| 1.0);
            add_gram(&mut sum, a.values(), columns);
            lower(&|i, j| sum[(i, j)])
        };
        in_pools(run, &expected);
    }
}

#[test]
fn long_segments_and_many_of_them() {
    for (rows, per_row, length, width) in [(3, 2, 9000, 2), (400, 3, 17, 3)] {
        let x = random(&[rows, per_row, length], 1);
        let t = random(&[rows * width, per_row, length], 2);
        let (z, r) = normalise(&x, Segments { length, centred: true }, 1e-5);
        let (mut expected, mut soft) = (vec![], vec![]);
        let s = softmax(&x, length);
        for (segment, t) in t.values().chunks_exact(length).enumerate() {
            let at = segment / per_row / width * per_row + segment % per_row;
            let x = &x.values()[at * length..(at + 1) * length];
            let count = length as f64;
            let mean = x.iter().sum::<f64>() / count;
            let variance = x.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / count;
            let d = (variance + 1e-5).sqrt();
            assert!(
                (r[at] * d - 1.0).abs() < 1e-12
                    && (z.values()[at * length] - (x[0] - mean) / d).abs() < 1e-12
            );
            let average = t.iter().sum::<f64>() / count;
            // d variance = 2 mean((x - mean) t).
            let along = x.iter().zip(t).map(|(x, t)| (x - mean) * t).sum::<f64>() / count;
            expected.extend(x.iter().zip(t).map(|(x, t)| (t - average) / d - (x - mean) * along / d.powi(3)));
            let total: f64 = x.iter().map(|v| v.exp()).sum();
            let average: f64 = x.iter().zip(t).map(|(x, t)| x.exp() / total * t).sum();
            soft.extend(x.iter().zip(t).map(|(x, t)| x.exp() / total * (t - average)));
        }
        in_pools(
            || normalise_tangent(t.clone(), Segments { length, centred: true }, &z, &r).into_values(),
            &expected,
        );
        in_pools(|| softmax_tangent(t.clone(), length, &s).into_values(), &soft);
    }
}

#[test]
fn how_parameters_broadcast() {
    let of = |example: &[usize], parameter: &[usize]| {
        Channels::broadcast(example, parameter).map(|c| (c.channels, c.inner))
    };
    assert_eq!(of(&[2, 3, 4], &[3, 1]), Some((3, 4)));
    assert_eq!(of(&[2, 3, 4], &[1, 4]), Some((4, 1)));
    assert_eq!(of(&[2, 3, 4], &[2, 3, 1]), Some((6, 4)));
    assert_eq!(of(&[2, 1, 4], &[2, 1, 4]), Some((8, 1)));
    assert_eq!(of(&[2, 3, 4], &[]), Some((1, 24)));
    assert_eq!(of(&[2, 3, 4], &[2, 1, 4]), None);
    assert_eq!(of(&[2, 3, 4], &[2]), None);
    assert_eq!(of(&[3], &[2, 3]), None);
}

#[test]
fn arrays() {
    let x = Array::new(vec![2, 2, 3], (0..12).map(f64::from).collect());
    assert_eq!((x.rows(), x.row_len(), x.len(), x.is_empty()), (2, 6, 12, false));
    assert_eq!(x.row(1), [6.0, 7.0, 8.0, 9.0, 10.0, 11.0]);
    assert_eq!(x.slice_rows(1..2).shape(), [1, 2, 3]);
    assert_eq!(x.slice_rows(1..1).shape(), [0, 2, 3]);
    assert_eq!(transpose_rows(&x, 2, 3).values()[..6], [0.0, 3.0, 1.0, 4.0, 2.0, 5.0]);
    assert_eq!(x.cast::<f32>().cast::<f64>(), x);
    assert_eq!(Array::new(vec![2], vec![1.0, f64::INFINITY]).first_not_finite(), Some(1));
    assert!(std::panic::catch_unwind(|| Array::new(vec![2, 2], vec![0.0; 3])).is_err());
}
