//! Kronecker factors of weights that all steps of a sequence share, against recurrences written by hand.

use super::add_kronecker;
use faer::Mat;
use posterior_linalg::random::Streams;
use posterior_linear::Prior;
use posterior_linear::curvature::{BlockSum, SumMatrix};
use posterior_linear::latent::{Posteriors, Wanted};
use posterior_linear::structure::{Block, BlockMatrix, Diagonal, Kronecker, Structure};
use posterior_networks::{Architecture, Array, Network, Outputs, Selection};

/// What the network by hand shows of one example: outputs, and for each step the input and the hidden state before it.
struct Run {
    outputs: Vec<f64>,
    inputs: Vec<Vec<f64>>,
    states: Vec<Vec<f64>>,
}

fn affine(network: &Network<f64>, weight: &str, bias: &str, x: &[f64]) -> Vec<f64> {
    let find = |name: &str| {
        let at = network.graph().parameters().iter().position(|p| p.name == name).unwrap();
        &network.parameters()[at]
    };
    let row = |i: usize| find(weight).row(i).iter().zip(x).map(|(w, x)| w * x).sum::<f64>();
    (0..find(weight).rows()).map(|i| find(bias).values()[i] + row(i)).collect()
}

/// `moved` is added to what the weights of inputs (first) and states make, step by step.
fn by_hand(network: &Network<f64>, x: &[f64], lstm: bool, moved: [&[Vec<f64>]; 2]) -> Run {
    let (mut h, mut c) = (vec![0.0; 2], vec![0.0; 2]);
    let mut run = Run { outputs: vec![], inputs: vec![], states: vec![] };
    let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
    for (t, x) in x.chunks(2).enumerate() {
        run.inputs.push(x.to_vec());
        run.states.push(h.clone());
        let [a, b] = [("ih", x, moved[0]), ("hh", &h[..], moved[1])].map(|(part, x, moved)| {
            let (weight, bias) = (format!("r.weight_{part}_l0"), format!("r.bias_{part}_l0"));
            let made = affine(network, &weight, &bias, x);
            made.iter().zip(&moved[t]).map(|(a, m)| a + m).collect::<Vec<f64>>()
        });
        let s = |i: usize| sigmoid(a[i] + b[i]);
        if lstm {
            c = (0..2).map(|i| s(2 + i) * c[i] + s(i) * (a[4 + i] + b[4 + i]).tanh()).collect();
            h = (0..2).map(|i| s(6 + i) * c[i].tanh()).collect();
        } else {
            let candidate = |i: usize| (a[4 + i] + s(i) * b[4 + i]).tanh();
            h = (0..2).map(|i| (1.0 - s(2 + i)) * candidate(i) + s(2 + i) * h[i]).collect();
        }
    }
    run.outputs = affine(network, "o.weight", "o.bias", &h);
    run
}

/// Sensitivities `[outputs, gates]` of step `t`, by differences.
fn sensitivities(
    run: impl Fn(&[Vec<f64>]) -> Vec<f64>,
    (steps, gates): (usize, usize),
    t: usize,
) -> Mat<f64> {
    let at = |k: usize, h: f64| {
        let mut change = vec![vec![0.0; gates]; steps];
        change[t][k] = h;
        run(&change)
    };
    let slopes: Vec<Vec<f64>> = (0..gates)
        .map(|k| {
            let central = |h: f64| {
                at(k, h).iter().zip(at(k, -h)).map(|(a, b)| (a - b) / (2.0 * h)).collect::<Vec<f64>>()
            };
            central(1e-3).iter().zip(central(2e-3)).map(|(n, w)| (4.0 * n - w) / 3.0).collect()
        })
        .collect();
    Mat::from_fn(slopes[0].len(), gates, |o, k| slopes[k][o])
}

#[test]
fn steps_are_positions_of_one_layer() {
    for (cell, lstm, gates, steps) in [("lstm", true, 8, 4), ("gru", false, 6, 3)] {
        let text = format!(
            "kind = 'layers'\ninput = [{steps}, 2]\n[[layer]]\nname = 'r'\noperation = '{cell}'\nhidden = 2\nreturns = 'last'\n\
             [[layer]]\nname = 'o'\noperation = 'linear'\noutputs = 3"
        );
        let graph = Architecture::from_toml(&text).unwrap().graph().unwrap();
        let network = Network::<f64>::initialised(graph, Streams::new(5)).unwrap();
        let selection = Selection::all(network.graph());
        let examples = 5;
        let x = Array::new(
            vec![examples, steps, 2],
            (0..examples * steps * 2).map(|i| (i as f64 * 0.7).sin()).collect::<Vec<f64>>(),
        );
        let mut blocks: Vec<BlockSum> = selection
            .parts()
            .iter()
            .map(|part| {
                let square = |n: usize| Mat::zeros(n, n);
                let matrix = match part.shape[..] {
                    [outputs, inputs] => SumMatrix::Kronecker {
                        outputs: square(outputs),
                        inputs: square(inputs),
                        transposed: false,
                    },
                    _ => SumMatrix::Dense(square(part.length)),
                };
                BlockSum { name: part.name.clone(), range: part.offset..part.offset + part.length, matrix }
            })
            .collect();
        let trace = network.trace(x.clone()).unwrap();
        let identity =
            (0..examples * 9).map(|i| f64::from(u8::from(i / 3 % 3 == i % 3))).collect::<Vec<f64>>();
        let rows = Array::new(vec![examples * 3, 3], identity);
        add_kronecker(&trace, &selection, &rows, &mut blocks).unwrap();
        let jacobian = network.jacobian(&x, &selection, &Outputs::All, 1 << 30).unwrap();
        let none = vec![vec![0.0; gates]; steps];
        for block in &blocks {
            let (found, expected) = match (&block.matrix, block.name.as_str()) {
                (SumMatrix::Kronecker { outputs, inputs, .. }, "r.weight_ih_l0" | "r.weight_hh_l0") => {
                    let of_inputs = block.name == "r.weight_ih_l0";
                    // Nothing is multiplied in the first step, whose state is zero.
                    let used = if of_inputs { 0..steps } else { 1..steps };
                    let (mut g, mut q) = (Mat::<f64>::zeros(gates, gates), Mat::<f64>::zeros(2, 2));
                    for n in 0..examples {
                        let own = by_hand(&network, x.row(n), lstm, [&none, &none]);
                        let outputs = own.outputs.iter().zip(trace.output().row(n));
                        outputs.for_each(|(a, b)| assert!((a - b).abs() < 1e-14));
                        for t in used.clone() {
                            let run = |change: &[Vec<f64>]| {
                                let moved = if of_inputs { [change, &none[..]] } else { [&none[..], change] };
                                by_hand(&network, x.row(n), lstm, moved).outputs
                            };
                            let delta = sensitivities(run, (steps, gates), t);
                            g += delta.transpose() * &delta * faer::Scale(1.0 / used.len() as f64);
                            let a = if of_inputs { &own.inputs[t] } else { &own.states[t] };
                            let a = Mat::from_fn(2, 1, |k, _| a[k]);
                            q += &a * a.transpose();
                        }
                    }
                    ([outputs, inputs], [g, q])
                }
                // Exact blocks of biases are those of the whole Jacobian.
                (SumMatrix::Dense(found), _) => {
                    let own = |r: usize| &jacobian.row(r)[block.range.clone()];
                    let entry = |i, k| (0..jacobian.rows()).map(|r| own(r)[i] * own(r)[k]).sum::<f64>();
                    let size = block.range.len();
                    ([found, found], [Mat::from_fn(size, size, entry), Mat::from_fn(size, size, entry)])
                }
                _ => continue,
            };
            for (found, expected) in found.into_iter().zip(expected) {
                let scale = expected.norm_max();
                for (i, k) in (0..found.nrows()).flat_map(|i| (0..=i).map(move |k| (i, k))) {
                    let error = (found[(i, k)] - expected[(i, k)]).abs();
                    assert!(error < 1e-9 * scale, "{cell} {} {i} {k}: {error} of {scale}", block.name);
                }
            }
        }
    }
}

/// Covariances of predictions under Kronecker and diagonal posteriors are those of the Jacobian, with all steps' gradients summed.
#[test]
fn predictions_see_the_sum_over_steps() {
    let text = "kind = 'layers'\ninput = [3, 2]\n[[layer]]\nname = 'r'\noperation = 'gru'\nhidden = 2\nbidirectional = true\n\
                [[layer]]\nname = 'f'\noperation = 'flatten'\n[[layer]]\nname = 'o'\noperation = 'linear'\noutputs = 2";
    let graph = Architecture::from_toml(text).unwrap().graph().unwrap();
    let network = Network::<f64>::initialised(graph, Streams::new(2)).unwrap();
    let selection = Selection::all(network.graph());
    let x = Array::new(vec![4, 3, 2], (0..24).map(|i| (i as f64 * 0.7).sin()).collect::<Vec<f64>>());
    let jacobian = network.jacobian(&x, &selection, &Outputs::All, 1 << 30).unwrap();
    let wave = |i: usize| 0.3 + (i as f64 * 1.3).sin().abs();
    let positive =
        |n: usize| Mat::from_fn(n, n, |i, k| if i == k { 2.0 + wave(i) } else { 0.4 / (1 + i + k) as f64 });
    for kronecker in [true, false] {
        let blocks = selection.parts().iter().map(|part| {
            let matrix = match part.shape[..] {
                [rows, columns] if kronecker => BlockMatrix::Kronecker(
                    Kronecker::new(positive(rows), positive(columns), &part.name).unwrap(),
                ),
                _ => BlockMatrix::Diagonal(Diagonal::new((0..part.length).map(wave).collect())),
            };
            Block { name: part.name.clone(), range: part.offset..part.offset + part.length, matrix }
        });
        let structure = Structure::new(blocks.collect()).unwrap();
        let posterior = structure.condition(&Prior::scalar(selection.len(), 0.8).unwrap(), 1.0).unwrap();
        let expected = Mat::from_fn(8, selection.len(), |r, i| jacobian.row(r)[i]);
        let expected = &expected * posterior.solve_columns(expected.transpose().to_owned().as_ref());
        let posteriors =
            Posteriors::new(&crate::segments(network.graph(), &selection), vec![posterior]).unwrap();
        let mut found = vec![vec![0.0; 4 * 2 * 2]];
        let trace = network.trace(x.clone()).unwrap();
        crate::covariances::add_tapped(&trace, &selection, &posteriors, Wanted::Full, &mut found).unwrap();
        for (i, found) in found[0].iter().enumerate() {
            let (n, o, k) = (i / 4, i / 2 % 2, i % 2);
            let error = (found - expected[(2 * n + o, 2 * n + k)]).abs();
            assert!(error < 1e-12 * expected.norm_max(), "{kronecker} {n} {o} {k}: {error}");
        }
    }
}
