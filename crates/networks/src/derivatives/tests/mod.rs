//! Every derivative against brute-force Jacobians in double precision, on networks that contain every operation.

mod networks;

use super::{Curvature, KernelAdjoints, Outputs, TangentFeatures, Tap};
use crate::{Array, Mode, Network, NetworkError, Selection};
use networks::{Case, cases, numbers};
use std::borrow::Cow;

/// The Jacobian `[examples * outputs, selection]` by central differences with one Richardson step.
fn differences(network: &Network<f64>, selection: &Selection, x: &Array<f64>) -> Vec<Vec<f64>> {
    let theta = selection.flatten(network.parameters());
    let outputs = |theta: &[f64]| {
        let mut moved = network.clone();
        selection.assign(theta, moved.parameters_mut());
        moved.forward(x).unwrap().into_values()
    };
    let columns: Vec<Vec<f64>> = (0..theta.len())
        .map(|p| {
            richardson(|step| {
                let mut moved = theta.clone();
                moved[p] += step;
                outputs(&moved)
            })
        })
        .collect();
    (0..columns[0].len()).map(|r| columns.iter().map(|c| c[r]).collect()).collect()
}

/// Derivative at 0 of a vector function of one number, error O(h^4).
fn richardson(f: impl Fn(f64) -> Vec<f64>) -> Vec<f64> {
    let central = |h: f64| -> Vec<f64> { f(h).iter().zip(f(-h)).map(|(a, b)| (a - b) / (2.0 * h)).collect() };
    let (wide, narrow) = (central(2e-4), central(1e-4));
    narrow.iter().zip(wide).map(|(n, w)| (4.0 * n - w) / 3.0).collect()
}

fn close(name: &str, found: &[f64], expected: &[f64], tolerance: f64) {
    assert_eq!(found.len(), expected.len(), "{name}: lengths");
    let scale = expected.iter().fold(1.0, |m: f64, v| m.max(v.abs()));
    for (i, (f, e)) in found.iter().zip(expected).enumerate() {
        assert!((f - e).abs() <= tolerance * scale, "{name}, entry {i}: {f} against {e}");
    }
}

fn jacobian(case: &Case, selection: &Selection, x: &Array<f64>) -> Array<f64> {
    case.network.jacobian(x, selection, &Outputs::All, 1 << 30).unwrap()
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// All parameters, the last layer, and every third entry of all.
fn selections(case: &Case) -> Vec<Selection> {
    let graph = case.network.graph();
    let all = Selection::all(graph);
    let mask: Vec<bool> = (0..all.len()).map(|i| i % 3 == 0).collect();
    vec![all.clone(), Selection::last_layer(graph).unwrap(), all.masked(graph, &mask)]
}

#[test]
fn jacobians_agree_with_differences() {
    for case in cases() {
        for selection in selections(&case) {
            let found = jacobian(&case, &selection, &case.x);
            let expected = differences(&case.network, &selection, &case.x).concat();
            close(case.name, found.values(), &expected, 1e-8);
        }
    }
}

#[test]
fn pieces_of_the_jacobian_make_up_the_whole() {
    for case in cases() {
        for selection in selections(&case) {
            let whole = jacobian(&case, &selection, &case.x);
            // Twice, so that the second time finds used buffers.
            for _ in 0..2 {
                let mut seen = Vec::new();
                case.network
                    .jacobian_pieces(&case.x, &selection, &Outputs::All, &mut |examples, rows| {
                        assert_eq!(
                            examples.start * whole.rows() / case.x.rows() * selection.len(),
                            seen.len()
                        );
                        seen.extend_from_slice(rows.values());
                    })
                    .unwrap();
                assert_eq!(seen, whole.values());
            }
        }
    }
}

#[test]
fn products_agree_with_the_jacobian() {
    for case in cases() {
        let outputs = case.network.graph().output_shape()[0];
        let n = case.x.rows();
        for selection in selections(&case) {
            let j = jacobian(&case, &selection, &case.x);
            let trace = case.network.trace(case.x.clone()).unwrap();
            let (v, u) = (numbers(&[2, selection.len()], 7), numbers(&[n * 2, outputs], 8));
            let jv = trace.jvp(&selection, &v).unwrap();
            for r in 0..n * 2 {
                for c in 0..outputs {
                    let expected = dot(j.row(r / 2 * outputs + c), v.row(r % 2));
                    assert!(
                        (jv.row(r)[c] - expected).abs() < 1e-12 * (1.0 + expected.abs()),
                        "{} jvp",
                        case.name
                    );
                }
            }
            let by_row = trace.vjp_by_example(&selection, &u).unwrap();
            let mut sums = vec![vec![0.0; selection.len()]; 2];
            for r in 0..n * 2 {
                let mut expected = vec![0.0; selection.len()];
                for c in 0..outputs {
                    expected
                        .iter_mut()
                        .zip(j.row(r / 2 * outputs + c))
                        .for_each(|(e, &j)| *e += u.row(r)[c] * j);
                }
                close(case.name, by_row.row(r), &expected, 1e-12);
                sums[r % 2].iter_mut().zip(&expected).for_each(|(s, e)| *s += e);
            }
            let summed = trace.vjp(&selection, &u).unwrap();
            close(case.name, summed.values(), &sums.concat(), 1e-12);
            // <u, J v> = <J^T u, v>, summed over the batch.
            for k in 0..2 {
                let left: f64 = (0..n).map(|e| dot(u.row(e * 2 + k), jv.row(e * 2 + k))).sum();
                let right = dot(summed.row(k), v.row(k));
                assert!((left - right).abs() < 1e-12 * (1.0 + left.abs()), "{} adjoint", case.name);
            }
        }
    }
}

#[test]
fn input_products_agree_with_differences() {
    for case in cases().into_iter().filter(|c| c.smooth_input) {
        let graph = case.network.graph();
        let n = case.x.rows();
        let t = numbers(&[&[n], graph.input_shape()].concat(), 4);
        let moved = |step: f64| {
            let mut x = case.x.clone();
            x.values_mut().iter_mut().zip(t.values()).for_each(|(x, t)| *x += step * t);
            case.network.forward(&x).unwrap().into_values()
        };
        let trace = case.network.trace(case.x.clone()).unwrap();
        let found = trace.jvp_input(&t).unwrap();
        close(case.name, found.values(), &richardson(moved), 1e-8);
        let u = numbers(&[&[n], graph.output_shape()].concat(), 5);
        let back = trace.vjp_input(&u).unwrap();
        let (left, right) = (dot(u.values(), found.values()), dot(back.values(), t.values()));
        assert!((left - right).abs() < 1e-12 * (1.0 + left.abs()), "{} adjoint: {left} {right}", case.name);
    }
}

/// Dense `L_n` of a curvature, by its definition.
fn dense(curvature: &Curvature<f64>, outputs: &[f64], n: usize) -> Vec<Vec<f64>> {
    let c = outputs.len();
    let p: Vec<f64> = {
        let e: Vec<f64> = outputs.iter().map(|v| v.exp()).collect();
        let total: f64 = e.iter().sum();
        e.iter().map(|v| v / total).collect()
    };
    (0..c)
        .map(|i| {
            (0..c)
                .map(|k| match curvature {
                    Curvature::Identity(factor) => {
                        if i == k {
                            *factor
                        } else {
                            0.0
                        }
                    }
                    Curvature::Softmax => {
                        if i == k {
                            p[i] - p[i] * p[k]
                        } else {
                            -p[i] * p[k]
                        }
                    }
                    Curvature::Roots(roots) => {
                        let s = roots.shape()[2];
                        (0..s).map(|s2| roots.row(n)[i * s + s2] * roots.row(n)[k * s + s2]).sum()
                    }
                })
                .collect()
        })
        .collect()
}

#[test]
fn gauss_newton_products_and_diagonals_agree_with_dense_matrices() {
    for case in cases() {
        let c = case.network.graph().output_shape()[0];
        let (n, outputs) = (case.x.rows(), case.network.forward(&case.x).unwrap());
        for curvature in
            [Curvature::Identity(2.5), Curvature::Softmax, Curvature::Roots(numbers(&[n, c, 2], 9))]
        {
            for selection in selections(&case) {
                let j = jacobian(&case, &selection, &case.x);
                let p = selection.len();
                let mut matrix = vec![vec![0.0; p]; p];
                for e in 0..n {
                    let l = dense(&curvature, outputs.row(e), e);
                    for (a, b) in (0..c).flat_map(|a| (0..c).map(move |b| (a, b))) {
                        let (ja, jb) = (j.row(e * c + a), j.row(e * c + b));
                        for i in 0..p {
                            for k in 0..p {
                                matrix[i][k] += l[a][b] * ja[i] * jb[k];
                            }
                        }
                    }
                }
                let v = numbers(&[2, p], 11);
                let found = case.network.gauss_newton_products(&case.x, &curvature, &selection, &v).unwrap();
                for k in 0..2 {
                    let expected: Vec<f64> = matrix.iter().map(|row| dot(row, v.row(k))).collect();
                    close(case.name, found.row(k), &expected, 1e-12);
                }
                let diagonal = case.network.gauss_newton_diagonal(&case.x, &curvature, &selection).unwrap();
                let expected: Vec<f64> = (0..p).map(|i| matrix[i][i]).collect();
                close(case.name, &diagonal, &expected, 1e-12);
            }
        }
    }
}

/// One, two and five vectors: by products of tangents or by features, as the outputs are more or fewer.
#[test]
fn products_through_a_map_of_the_outputs_agree_with_jacobians() {
    for case in cases() {
        let c = case.network.graph().output_shape()[0];
        let outputs = case.network.forward(&case.x).unwrap();
        for selection in selections(&case) {
            let (j, n, p) = (jacobian(&case, &selection, &case.x), case.x.rows(), selection.len());
            // Another one for each example, vector and output, and not linear.
            let change = |example: usize, k: usize, o: usize, f: f64, moved: f64| {
                (1.0 + example as f64 - 0.5 * k as f64) * (moved + f).tanh() + o as f64
            };
            for k in [1, 2, 5] {
                let v = numbers(&[k, p], 12);
                let mut seen = Vec::new();
                let mut map = |f: &Array<f64>, examples: std::ops::Range<usize>, mut moved: Array<f64>| {
                    seen.extend(examples.clone());
                    for (i, value) in moved.values_mut().iter_mut().enumerate() {
                        let (row, o) = (i / c, i % c);
                        *value = change(examples.start + row / k, row % k, o, f.row(row / k)[o], *value);
                    }
                    moved
                };
                let found = case.network.products_through(&case.x, &selection, &v, &mut map).unwrap();
                let trace = case.network.trace(case.x.clone()).unwrap();
                let traced = trace.products_through(&selection, &v, &mut map).unwrap();
                assert_eq!(found.values(), traced.values(), "{}", case.name);
                // An example at a time.
                let one = c * crate::derivatives::tangent_feature_size(case.network.graph(), &selection);
                let single = case.network.through(&case.x, None, &selection, &v, &mut map, one).unwrap();
                close(case.name, single.values(), found.values(), 1e-12);
                assert_eq!(seen, (0..3 * n).map(|i| i % n).collect::<Vec<_>>(), "{}", case.name);
                for vector in 0..k {
                    let mut expected = vec![0.0; p];
                    for r in 0..n * c {
                        let f = outputs.row(r / c)[r % c];
                        let back = change(r / c, vector, r % c, f, dot(j.row(r), v.row(vector)));
                        expected.iter_mut().zip(j.row(r)).for_each(|(e, j)| *e += back * j);
                    }
                    close(case.name, found.row(vector), &expected, 1e-12);
                }
            }
            let none = numbers(&[0, p], 1);
            let found = case.network.products_through(&case.x, &selection, &none, &mut |_, _, m| m).unwrap();
            assert_eq!(found.shape(), [0, p]);
            let wrong = numbers(&[1, p + 1], 1);
            assert!(case.network.products_through(&case.x, &selection, &wrong, &mut |_, _, m| m).is_err());
        }
    }
}

/// Numbers that lose digits a few layers on: products are those of vectors of another scale, to the bit, and what no sum can feel is left out.
#[test]
fn products_with_tiny_vectors_keep_their_digits() {
    let tiny = (-1005f64).exp2();
    let scaled =
        |x: &Array<f64>| Array::new(x.shape().to_vec(), x.values().iter().map(|v| v * tiny).collect());
    let grid = |shape: &[usize], seed| {
        let numbers = numbers(shape, seed);
        Array::new(shape.to_vec(), numbers.values().iter().map(|v| (v * 1024.0).round() / 1024.0).collect())
    };
    for case in cases() {
        let shape = case.network.graph().output_shape();
        let (selection, n) = (Selection::all(case.network.graph()), case.x.rows());
        let block = |rows: usize| [&[rows][..], shape].concat();
        let trace = case.network.trace(case.x.clone()).unwrap();
        for width in [1, 3] {
            let v = grid(&[width, selection.len()], 5);
            let moved = trace.jvp(&selection, &v).unwrap();
            assert_eq!(trace.jvp(&selection, &scaled(&v)).unwrap(), scaled(&moved), "{}", case.name);
            let mut u = grid(&block(n * width), 6);
            for all in [true, false] {
                let products = |u: &Array<f64>| match all {
                    true => trace.vjp(&selection, u).unwrap(),
                    false => trace.vjp_by_example(&selection, u).unwrap(),
                };
                assert_eq!(products(&scaled(&u)), scaled(&products(&u)), "{}", case.name);
            }
            // The last example's alone are tiny: by example they are there, in the sum they are not.
            let last = (n - 1) * width * u.row_len();
            let own: Vec<f64> = u.values()[last..].to_vec();
            u.values_mut()[last..].fill(0.0);
            let without = trace.vjp(&selection, &u).unwrap();
            u.values_mut()[last..].iter_mut().zip(&own).for_each(|(u, own)| *u = own * tiny);
            assert_eq!(trace.vjp(&selection, &u).unwrap(), without, "{}", case.name);
            let rows = trace.vjp_by_example(&selection, &u).unwrap();
            assert!(rows.row(n * width - 1).iter().any(|v| *v != 0.0), "{}", case.name);
            // The map's cotangents, by products and by features.
            let map = |cotangents: &Array<f64>| {
                let map = &mut |_: &Array<f64>, examples: std::ops::Range<usize>, moved: Array<f64>| {
                    let length = width * cotangents.row_len();
                    let own = &cotangents.values()[examples.start * length..examples.end * length];
                    Array::new(moved.shape().to_vec(), own.to_vec())
                };
                case.network.products_through(&case.x, &selection, &v, map).unwrap()
            };
            let mut nothing = u.clone();
            nothing.values_mut()[last..].fill(0.0);
            assert_eq!(map(&u), map(&nothing), "{}", case.name);
        }
    }
}

#[test]
fn taps_and_norms_rebuild_the_jacobian() {
    for case in cases() {
        let graph = case.network.graph();
        let (selection, c, n) = (Selection::all(graph), graph.output_shape()[0], case.x.rows());
        let j = jacobian(&case, &selection, &case.x);
        let trace = case.network.trace(case.x.clone()).unwrap();
        let eye = Outputs::All.cotangents(n, graph.output_shape()).unwrap();
        let mut rebuilt = vec![0.0; j.len()];
        for (_, parameter, tap) in trace.taps(&selection, &eye).unwrap() {
            let part = selection.part(parameter).unwrap();
            for r in 0..n * c {
                let place = &mut rebuilt[r * selection.len() + part.offset..][..part.length];
                match &tap {
                    Tap::Vector(rows) => place.iter_mut().zip(rows.row(r)).for_each(|(p, v)| *p += v),
                    Tap::Outer { inputs, sensitivities, transposed } => {
                        let (t, q, o) = (inputs.shape()[1], inputs.shape()[2], sensitivities.shape()[2]);
                        for (at, i, k) in
                            (0..t).flat_map(|t| (0..o).flat_map(move |i| (0..q).map(move |k| (t, i, k))))
                        {
                            let entry = if *transposed { k * o + i } else { i * q + k };
                            place[entry] += sensitivities.row(r)[at * o + i] * inputs.row(r / c)[at * q + k];
                        }
                    }
                }
            }
        }
        close(case.name, &rebuilt, j.values(), 1e-12);
        for selection in selections(&case) {
            let j = jacobian(&case, &selection, &case.x);
            let norms = case.network.squared_norms(&case.x, &selection).unwrap();
            let mut expected = vec![0.0; norms.len()];
            for (i, part) in selection.parts().iter().enumerate() {
                for r in 0..n * c {
                    let row = &j.row(r)[part.offset..part.offset + part.length];
                    expected[i * c + r % c] += dot(row, row);
                }
            }
            close(case.name, norms.values(), &expected, 1e-12);
        }
    }
}

#[test]
fn tangent_kernels_are_products_of_jacobians() {
    for case in cases() {
        let c = case.network.graph().output_shape()[0];
        for selection in selections(&case) {
            let (jx, jz) = (jacobian(&case, &selection, &case.x), jacobian(&case, &selection, &case.z));
            let kernel = |a, b| case.network.tangent_kernel(&selection, a, b, 1 << 30).unwrap();
            let all = Outputs::All;
            let found = kernel((&case.x, &all), (&case.z, &all));
            let expected: Vec<f64> = (0..jx.rows())
                .flat_map(|r| (0..jz.rows()).map(|s| dot(jx.row(r), jz.row(s))).collect::<Vec<_>>())
                .collect();
            close(case.name, found.values(), &expected, 1e-12);
            let each = Outputs::Each(vec![c - 1, 0]);
            let found = kernel((&case.x, &all), (&case.z, &each));
            let expected: Vec<f64> = (0..jx.rows())
                .flat_map(|r| [dot(jx.row(r), jz.row(c - 1)), dot(jx.row(r), jz.row(c))])
                .collect();
            close(case.name, found.values(), &expected, 1e-12);
            let blocks = case.network.tangent_kernel_diagonal(&selection, &case.x, &all).unwrap();
            let expected: Vec<f64> = (0..jx.rows())
                .flat_map(|r| (0..c).map(|b| dot(jx.row(r), jx.row(r / c * c + b))).collect::<Vec<_>>())
                .collect();
            close(case.name, blocks.values(), &expected, 1e-12);
        }
    }
}

#[test]
fn features_by_pieces_are_those_of_all_points() {
    for case in cases() {
        let c = case.network.graph().output_shape()[0];
        for selection in selections(&case) {
            for outputs in [Outputs::All, Outputs::Each(vec![c - 1, 0])] {
                let whole = case.network.tangent_features(&case.z, &selection, &outputs).unwrap();
                let pieces = case.network.features_by_pieces(&case.z, &selection, &outputs, 1).unwrap();
                let expected = whole.kernel(&whole);
                close(case.name, pieces.kernel(&whole).values(), expected.values(), 1e-13);
                close(case.name, pieces.kernel(&pieces).values(), expected.values(), 1e-13);
            }
        }
    }
}

#[test]
fn adjoints_that_do_not_fit_are_refused() {
    let case = &cases()[0];
    let selections = selections(case);
    let of = |selection| case.network.tangent_features(&case.x, selection, &Outputs::All).unwrap();
    let (all, last) = (of(&selections[0]), of(&selections[1]));
    let mut adjoints = KernelAdjoints::new(&selections[0], 3);
    assert!(adjoints.add(Cow::Borrowed(&all), &Array::zeros(vec![all.rows(), 2])).is_err());
    adjoints.add(Cow::Borrowed(&all), &Array::zeros(vec![all.rows(), 3])).unwrap();
    assert!(adjoints.add(Cow::Borrowed(&last), &Array::zeros(vec![last.rows(), 3])).is_err());
    // Fewer rows than the points have, and more.
    assert!(case.network.tangent_kernel_pullback((&case.z, &Outputs::All), &adjoints).is_err());
    assert!(case.network.tangent_kernel_pullback((&case.z, &Outputs::These(vec![0])), &adjoints).is_err());
}

#[test]
fn pullbacks_agree_with_differences() {
    for case in cases().into_iter().filter(|c| c.smooth_input) {
        let c = case.network.graph().output_shape()[0];
        for selection in selections(&case) {
            for outputs in [Outputs::All, Outputs::Each(vec![c - 1, 0]), Outputs::These(vec![1])] {
                let of = |z: &Array<f64>, x: &Array<f64>| {
                    case.network
                        .tangent_kernel(&selection, (x, &Outputs::All), (z, &outputs), 1 << 30)
                        .unwrap()
                };
                let adjoint = {
                    let k = of(&case.z, &case.x);
                    numbers(k.shape(), 21)
                };
                let features = case.network.tangent_features(&case.x, &selection, &Outputs::All).unwrap();
                let pull = |sets: &[(&TangentFeatures<f64>, &Array<f64>)]| {
                    let mut adjoints = KernelAdjoints::new(&selection, sets[0].1.row_len());
                    for (features, adjoint) in sets {
                        adjoints.add(Cow::Borrowed(features), adjoint).unwrap();
                    }
                    let whole = case.network.tangent_kernel_pullback((&case.z, &outputs), &adjoints).unwrap();
                    // Any number of points at one time.
                    let one = case.network.pullback_by_pieces((&case.z, &outputs), &adjoints, 1).unwrap();
                    close(case.name, one.values(), whole.values(), 1e-13);
                    whole
                };
                let found = pull(&[(&features, &adjoint)]);
                let (first, adjoint_of_x) = (found.clone(), adjoint.clone());
                // Any number of constant points at one time, which may be given away.
                let (half, width) = (case.x.rows() / 2, features.width());
                let mut parts = KernelAdjoints::new(&selection, adjoint.row_len());
                for part in [0..half, half..case.x.rows()] {
                    let own = case.x.slice_rows(part.clone());
                    let own = case.network.tangent_features(&own, &selection, &Outputs::All).unwrap();
                    let adjoint = adjoint.slice_rows(part.start * width..part.end * width);
                    parts.add(Cow::Owned(own), &adjoint).unwrap();
                }
                let parts = case.network.tangent_kernel_pullback((&case.z, &outputs), &parts).unwrap();
                close(case.name, parts.values(), found.values(), 1e-12);
                let loss = |i: usize, step: f64| {
                    let mut z = case.z.clone();
                    z.values_mut()[i] += step;
                    dot(of(&z, &case.x).values(), adjoint.values())
                };
                let expected: Vec<f64> =
                    (0..case.z.len()).map(|i| richardson(|step| vec![loss(i, step)])[0]).collect();
                close(case.name, found.values(), &expected, 1e-7);
                // The kernel of the points with themselves.
                let own = case.network.tangent_features(&case.z, &selection, &outputs).unwrap();
                let m = own.rows();
                let adjoint = numbers(&[m, m], 22);
                let mut symmetric = adjoint.clone();
                for (i, j) in (0..m).flat_map(|i| (0..m).map(move |j| (i, j))) {
                    symmetric.values_mut()[i * m + j] =
                        adjoint.values()[i * m + j] + adjoint.values()[j * m + i];
                }
                let found = pull(&[(&own, &symmetric)]);
                let both = pull(&[(&features, &adjoint_of_x), (&own, &symmetric)]);
                let sum: Vec<f64> = first.values().iter().zip(found.values()).map(|(a, b)| a + b).collect();
                close(case.name, both.values(), &sum, 1e-12);
                let loss = |i: usize, step: f64| {
                    let mut z = case.z.clone();
                    z.values_mut()[i] += step;
                    let k = case
                        .network
                        .tangent_kernel(&selection, (&z, &outputs), (&z, &outputs), 1 << 30)
                        .unwrap();
                    dot(k.values(), adjoint.values())
                };
                let expected: Vec<f64> =
                    (0..case.z.len()).map(|i| richardson(|step| vec![loss(i, step)])[0]).collect();
                close(case.name, found.values(), &expected, 1e-7);
            }
        }
    }
}

#[test]
fn single_precision_follows_double() {
    for case in cases() {
        let selection = Selection::all(case.network.graph());
        let exact = jacobian(&case, &selection, &case.x);
        let single = case.network.cast::<f32>().unwrap();
        let found = single.jacobian(&case.x.cast(), &selection, &Outputs::All, 1 << 30).unwrap();
        close(case.name, found.cast::<f64>().values(), exact.values(), 1e-4);
    }
}

#[test]
fn training_mode_and_large_results_are_refused() {
    let mut case = cases().remove(2);
    let selection = Selection::all(case.network.graph());
    let error = case.network.jacobian(&case.x, &selection, &Outputs::All, 1000).unwrap_err();
    assert!(matches!(error, NetworkError::Memory { .. }), "{error}");
    assert!(error.to_string().contains("fewer examples"), "{error}");
    case.network.set_mode(Mode::Training);
    let error = case.network.jacobian(&case.x, &selection, &Outputs::All, 1 << 30).unwrap_err();
    assert_eq!(error, NetworkError::TrainingMode { what: "Jacobians" });
    let vectors = numbers(&[1, selection.len()], 1);
    assert!(case.network.gauss_newton_products(&case.x, &Curvature::Softmax, &selection, &vectors).is_err());
    assert!(case.network.gauss_newton_diagonal(&case.x, &Curvature::Softmax, &selection).is_err());
    assert!(case.network.tangent_features(&case.x, &selection, &Outputs::All).is_err());
    assert!(case.network.squared_norms(&case.x, &selection).is_err());
    assert!(case.network.trace(case.x.clone()).unwrap().vjp(&selection, &numbers(&[3, 3], 1)).is_err());
}
