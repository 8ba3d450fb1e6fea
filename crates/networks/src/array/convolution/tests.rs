//! Against loops, over strides, paddings, dilations and groups.

use super::*;
use crate::array::Sets;
use proptest::prelude::*;

/// The definition, one term at a time: calls `visit(source, target, weight)`.
fn terms(g: &Geometry, mut visit: impl FnMut(usize, usize, usize)) {
    let (cin, cout) = (g.channels_in / g.groups, g.channels_out / g.groups);
    let at = super::geometry::coordinates;
    let (plane, positions) = (g.source.iter().product::<usize>(), g.positions());
    for o in 0..g.channels_out {
        for c in 0..cin {
            for t in 0..positions {
                for k in 0..g.taps() {
                    let (t3, k3) = (at(t, g.target), at(k, g.kernel));
                    let u: Vec<isize> = (0..3)
                        .map(|i| {
                            (t3[i] * g.stride[i] + k3[i] * g.dilation[i]) as isize - g.padding[i] as isize
                        })
                        .collect();
                    if (0..3).all(|i| u[i] >= 0 && (u[i] as usize) < g.source[i]) {
                        let s = (u[0] as usize * g.source[1] + u[1] as usize) * g.source[2] + u[2] as usize;
                        visit(
                            (o / cout * cin + c) * plane + s,
                            o * positions + t,
                            (o * cin + c) * g.taps() + k,
                        );
                    }
                }
            }
        }
    }
}

fn numbers(count: usize, seed: u64) -> Vec<f64> {
    use rand::RngExt;
    let mut rng = posterior_linalg::random::Streams::new(seed).stream("networks/test");
    (0..count).map(|_| rng.random::<f64>() - 0.5).collect()
}

fn close(a: &[f64], b: &[f64]) {
    assert_eq!(a.len(), b.len());
    for (i, (a, b)) in a.iter().zip(b).enumerate() {
        assert!((a - b).abs() < 1e-12 * (1.0 + b.abs()), "{i}: {a} {b}");
    }
}

fn check(g: &Geometry, rows: usize) {
    let (s, t, w) = (g.source_len(), g.target_len(), g.weights());
    let (x, y, weights) = (numbers(rows * s, 1), numbers(rows * t, 2), numbers(rows * w, 3));
    for sets in [crate::array::Sets::One, crate::array::Sets::Rows] {
        let (mut forward, mut backward) = (vec![0.0; rows * t], vec![0.0; rows * s]);
        let mut gradient = vec![0.0; sets.count(rows) * w];
        for r in 0..rows {
            let set = sets.of(r) * w;
            terms(g, |i, o, k| {
                forward[r * t + o] += weights[set + k] * x[r * s + i];
                backward[r * s + i] += weights[set + k] * y[r * t + o];
                gradient[set + k] += y[r * t + o] * x[r * s + i];
            });
        }
        let weighted = Weights { values: &weights, sets };
        let mut out = vec![0.0; rows * t];
        correlate(g, &x, weighted, None, &mut out);
        close(&out, &forward);
        let mut out = vec![0.0; rows * s];
        correlate_transposed(g, &y, weighted, None, &mut out);
        close(&out, &backward);
        let mut out = vec![0.0; gradient.len()];
        weight_gradient(g, &x, &y, sets, w, &mut out);
        close(&out, &gradient);
        // f32 runs the same code with twice the lanes.
        let single = |v: &[f64]| v.iter().map(|&v| v as f32).collect::<Vec<f32>>();
        let (xs, ws) = (single(&x), single(&weights));
        let mut out = vec![0.0f32; rows * t];
        correlate(g, &xs, Weights { values: &ws, sets }, None, &mut out);
        for (a, b) in out.iter().zip(&forward) {
            assert!((f64::from(*a) - b).abs() < 1e-4, "{a} {b}");
        }
    }
    let mut forward = vec![0.0; t];
    terms(g, |i, o, k| forward[o] += weights[k] * x[i]);
    for group in 0..g.groups {
        let q = g.channels_in / g.groups * g.taps();
        let mut unfolded = vec![0.0; rows * g.positions() * q];
        unfold(g, &x, group, &mut unfolded);
        let outs = g.channels_out / g.groups;
        for o in group * outs..(group + 1) * outs {
            for p in 0..g.positions() {
                let sum: f64 = (0..q).map(|i| unfolded[p * q + i] * weights[o * q + i]).sum();
                assert!((sum - forward[o * g.positions() + p]).abs() < 1e-12);
            }
        }
    }
}

fn size(
    source: usize,
    kernel: usize,
    stride: usize,
    dilation: usize,
    before: usize,
    after: usize,
) -> Option<usize> {
    let room = (source + before + after).checked_sub((kernel - 1) * dilation + 1)?;
    Some(room / stride + 1)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn all_three_maps_agree_with_their_definition(
        source in [1usize..4, 1usize..9, 1usize..20],
        kernel in [1usize..3, 1usize..4, 1usize..5],
        stride in [1usize..3, 1usize..4, 1usize..4],
        dilation in [1usize..2, 1usize..3, 1usize..3],
        padding in [0usize..2, 0usize..4, 0usize..4],
        after in [0usize..2, 0usize..4, 0usize..4],
        (groups, cin, cout) in (1usize..3, 1usize..4, 1usize..10),
        rows in 1usize..4,
    ) {
        let target: Option<Vec<usize>> =
            (0..3).map(|i| size(source[i], kernel[i], stride[i], dilation[i], padding[i], after[i])).collect();
        if let Some(target) = target {
            check(&Geometry {
                channels_in: groups * cin, channels_out: groups * cout, groups, source, kernel, stride, dilation, padding,
                target: [target[0], target[1], target[2]],
            }, rows);
        }
    }
}

#[test]
fn the_layers_of_a_residual_network() {
    for (channels, width, stride) in [(16, 32, 1), (16, 32, 2), (32, 16, 1), (64, 8, 1)] {
        let target = [1, width / stride, width / stride];
        check(
            &Geometry {
                channels_in: channels / stride,
                channels_out: channels,
                groups: 1,
                source: [1, width, width],
                kernel: [1, 3, 3],
                stride: [1, stride, stride],
                dilation: [1; 3],
                padding: [0, 1, 1],
                target,
            },
            2,
        );
    }
}

/// Tangents with weights of their own against the definition, of examples that several of them meet.
fn check_tangents(g: &Geometry, examples: usize, width: usize) {
    let (s, t, w, rows) = (g.source_len(), g.target_len(), g.weights(), examples * width);
    let (x, y, weights) = (numbers(examples * s, 1), numbers(rows * t, 2), numbers(width * w, 3));
    let (mut forward, mut gradient) = (vec![0.0; rows * t], vec![0.0; width * w]);
    for r in 0..rows {
        let (from, set) = (r / width * s, r % width * w);
        terms(g, |i, o, k| {
            forward[r * t + o] += weights[set + k] * x[from + i];
            gradient[set + k] += y[r * t + o] * x[from + i];
        });
    }
    let sets = Sets::Tangents(width);
    let mut out = vec![0.0; rows * t];
    correlate(g, &x, Weights { values: &weights, sets }, None, &mut out);
    close(&out, &forward);
    let mut out = vec![0.0; width * w];
    weight_gradient(g, &x, &y, sets, w, &mut out);
    close(&out, &gradient);
}

/// Pictures of more positions than a band has, in slices whose borders bands cross, with and without a stride; blocks of several tangents of one picture.
#[test]
fn large_pictures_go_through_in_bands() {
    let geometry = |source: [usize; 3], channels: (usize, usize), stride: usize| Geometry {
        channels_in: channels.0,
        channels_out: channels.1,
        groups: 1,
        source,
        kernel: [1, 3, 3],
        stride: [1, stride, stride],
        dilation: [1; 3],
        padding: [0, 1, 1],
        target: [source[0], source[1].div_ceil(stride), source[2].div_ceil(stride)],
    };
    for (source, stride) in [([1, 83, 71], 1), ([3, 41, 53], 1), ([1, 141, 143], 2)] {
        check(&geometry(source, (2, 5), stride), 1);
        check_tangents(&geometry(source, (2, 5), stride), 2, 3);
    }
    // Patches of many channels: few positions at a time. Shares of some tangents each.
    check_tangents(&geometry([1, 29, 17], (40, 24), 1), 1, 7);
    check(&geometry([2, 13, 17], (40, 24), 1), 3);
}

/// The sum over examples is cut by their number alone.
#[test]
fn gradients_of_weights_do_not_depend_on_threads() {
    let (channels, width) = (3, 9);
    let g = Geometry {
        channels_in: channels,
        // Three rows of an example make one product where examples are few.
        channels_out: 80,
        groups: 1,
        source: [1, width, width],
        kernel: [1, 3, 3],
        stride: [1, 1, 1],
        dilation: [1, 1, 1],
        padding: [0, 1, 1],
        target: [1, width, width],
    };
    for rows in [3, 21, 64] {
        let (x, y) = (numbers(rows * g.source_len(), 1), numbers(rows * g.target_len(), 2));
        for (sets, examples) in [
            (Sets::One, rows),
            (Sets::Rows, rows),
            (Sets::Rows, rows / 7),
            (Sets::Rows, rows / 8),
            (Sets::Tangents(7), rows / 7),
            (Sets::Tangents(8), rows / 8),
        ] {
            let x = &x[..examples * g.source_len()];
            // Rows that do not share out among the examples, or examples that are none.
            if examples == 0 || rows % examples != 0 {
                continue;
            }
            let on = |threads: usize| -> Vec<u64> {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                let mut out = vec![0.0; sets.count(rows) * g.weights()];
                pool.install(|| weight_gradient(&g, x, &y, sets, g.weights(), &mut out));
                out.iter().map(|v: &f64| v.to_bits()).collect()
            };
            let first = on(1);
            assert!([2, 4, 5].into_iter().all(|threads| on(threads) == first), "{rows} rows");
            // The rows of a set one after another.
            let width = rows / examples;
            let mut sum = vec![0.0; first.len()];
            for r in 0..rows {
                let mut own = vec![0.0; g.weights()];
                let x = &x[r / width * g.source_len()..][..g.source_len()];
                let y = &y[r * g.target_len()..][..g.target_len()];
                weight_gradient(&g, x, y, Sets::One, g.weights(), &mut own);
                let start = sets.of(r) * g.weights();
                sum[start..start + own.len()].iter_mut().zip(own).for_each(|(s, o)| *s += o);
            }
            let found = first.iter().map(|bits| f64::from_bits(*bits));
            let error = found.zip(&sum).map(|(f, s)| (f - s).abs()).fold(0.0, f64::max);
            assert!(error < 1e-11, "{rows} rows, {sets:?}: {error}");
            // Stacks of weights, likewise.
            if let Sets::Tangents(k) = sets {
                let stack = numbers(k * g.weights(), 3);
                let mut all = vec![0.0; rows * g.target_len()];
                correlate(&g, x, Weights { values: &stack, sets }, None, &mut all);
                for r in 0..rows {
                    let mut own = vec![0.0; g.target_len()];
                    let weights =
                        Weights { values: &stack[r % k * g.weights()..][..g.weights()], sets: Sets::One };
                    correlate(&g, &x[r / k * g.source_len()..][..g.source_len()], weights, None, &mut own);
                    let all = &all[r * g.target_len()..][..g.target_len()];
                    assert!(own.iter().zip(all).all(|(a, b): (&f64, &f64)| (a - b).abs() < 1e-12));
                }
            }
        }
    }
}
