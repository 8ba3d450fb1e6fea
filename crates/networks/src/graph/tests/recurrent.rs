//! Unrolled layers against recurrences written by hand, with PyTorch's order of gates.

use crate::graph::{MOST_UNROLLED, Recurrent, RecurrentCell, RecurrentPass};
use crate::operation::{Learned, Operation};
use crate::{Activation, Array, GraphBuilder, Network, Value, describe};
use posterior_linalg::random::Streams;

const AFTER: RecurrentCell = RecurrentCell::Gru { reset_after: true };
const BEFORE: RecurrentCell = RecurrentCell::Gru { reset_after: false };
const RELU: RecurrentCell = RecurrentCell::Rnn { activation: Activation::Relu };

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

/// `W x + b`, with zero for what is not there.
fn affine(network: &Network<f64>, weight: &str, bias: &str, x: &[f64]) -> Vec<f64> {
    let find = |name: &str| {
        let at = network.graph().parameters().iter().position(|p| p.name == name)?;
        Some(network.parameters()[at].clone())
    };
    let weight = find(weight).unwrap();
    let bias = find(bias).map_or(vec![0.0; weight.rows()], Array::into_values);
    (0..weight.rows())
        .map(|i| bias[i] + weight.row(i).iter().zip(x).map(|(w, x)| w * x).sum::<f64>())
        .collect()
}

/// The states of one pass over `x` by hand, in the order of time, and the last cell.
fn by_hand(
    network: &Network<f64>,
    cell: RecurrentCell,
    end: &str,
    [h, c]: [Vec<f64>; 2],
    x: &[Vec<f64>],
    reverse: bool,
) -> (Vec<Vec<f64>>, Vec<f64>) {
    let (mut h, mut c, n) = (h.clone(), c, h.len());
    let name = |part: &str| format!("r.{part}_{end}");
    let mut states = vec![vec![]; x.len()];
    for k in 0..x.len() {
        let t = if reverse { x.len() - 1 - k } else { k };
        let a = affine(network, &name("weight_ih"), &name("bias_ih"), &x[t]);
        let b = affine(network, &name("weight_hh"), &name("bias_hh"), &h);
        let both = |i: usize| a[i] + b[i];
        h = match cell {
            RecurrentCell::Lstm => {
                c = (0..n)
                    .map(|i| sigmoid(both(n + i)) * c[i] + sigmoid(both(i)) * both(2 * n + i).tanh())
                    .collect();
                (0..n).map(|i| sigmoid(both(3 * n + i)) * c[i].tanh()).collect()
            }
            RecurrentCell::Gru { reset_after } => {
                let r: Vec<f64> = (0..n).map(|i| sigmoid(both(i))).collect();
                let reset: Vec<f64> = r.iter().zip(&h).map(|(r, h)| r * h).collect();
                let before = || affine(network, &name("weight_hn"), &name("bias_hn"), &reset);
                let from_state =
                    if reset_after { (0..n).map(|i| r[i] * b[2 * n + i]).collect() } else { before() };
                let candidate = |i: usize| (a[2 * n + i] + from_state[i]).tanh();
                (0..n)
                    .map(|i| {
                        let z = sigmoid(both(n + i));
                        (1.0 - z) * candidate(i) + z * h[i]
                    })
                    .collect()
            }
            RecurrentCell::Rnn { activation: Activation::Relu } => (0..n).map(|i| both(i).max(0.0)).collect(),
            RecurrentCell::Rnn { .. } => (0..n).map(|i| both(i).tanh()).collect(),
        };
        states[t].clone_from(&h);
    }
    (states, c)
}

fn layer(cell: RecurrentCell) -> Recurrent {
    Recurrent { cell, hidden: 3, layers: 1, bidirectional: false, bias: true, last: false }
}

fn network(layer: &Recurrent, input: &[usize]) -> Network<f64> {
    let mut b = GraphBuilder::new(input).unwrap();
    let x = b.recurrent("r", layer, b.input()).unwrap();
    Network::initialised(b.finish(x).unwrap(), Streams::new(7)).unwrap()
}

fn sequence(steps: usize) -> Vec<Vec<f64>> {
    (0..steps).map(|t| (0..2).map(|i| ((3 * t + i) as f64 * 0.9 + 0.4).sin()).collect()).collect()
}

#[track_caller]
fn close(found: &[f64], expected: &[f64]) {
    assert_eq!(found.len(), expected.len());
    found.iter().zip(expected).for_each(|(f, e)| assert!((f - e).abs() < 1e-14, "{found:?} {expected:?}"));
}

#[test]
fn states_are_those_of_the_recurrence() {
    for cell in
        [RecurrentCell::Lstm, AFTER, BEFORE, RELU, RecurrentCell::Rnn { activation: Activation::Tanh }]
    {
        for (steps, bias) in [(1, true), (2, false), (5, true)] {
            let x = sequence(steps);
            let flat = Array::new(vec![1, steps, 2], x.concat());
            let own = Recurrent { bias, ..layer(cell) };
            let zero = || [vec![0.0; 3], vec![0.0; 3]];
            let single = network(&own, &[steps, 2]);
            let (states, _) = by_hand(&single, cell, "l0", zero(), &x, false);
            close(single.forward(&flat).unwrap().values(), &states.concat());

            // Two layers in both directions: all states, and the last of each direction.
            let both = Recurrent { layers: 2, bidirectional: true, ..own };
            let deep = network(&both, &[steps, 2]);
            let stack = |x: &[Vec<f64>], l: usize| {
                let (ahead, _) = by_hand(&deep, cell, &format!("l{l}"), zero(), x, false);
                let (back, _) = by_hand(&deep, cell, &format!("l{l}_reverse"), zero(), x, true);
                ahead.into_iter().zip(back).map(|(a, b)| [a, b].concat()).collect::<Vec<_>>()
            };
            let states = stack(&stack(&x, 0), 1);
            close(deep.forward(&flat).unwrap().values(), &states.concat());
            let last = network(&Recurrent { last: true, ..both }, &[steps, 2]);
            close(
                last.forward(&flat).unwrap().values(),
                &[&states[steps - 1][..3], &states[0][3..]].concat(),
            );
        }
    }
}

#[test]
fn states_may_begin_elsewhere() {
    for (cell, reverse) in [(RecurrentCell::Lstm, true), (AFTER, false), (BEFORE, true), (RELU, false)] {
        let mut b = GraphBuilder::new(&[3, 2]).unwrap();
        let learned = |b: &mut GraphBuilder, name: &str| {
            b.add(name, Operation::Learned(Learned { shape: vec![3] }), &[]).unwrap()
        };
        let pass = RecurrentPass {
            cell,
            hidden: 3,
            reverse,
            weight_inputs: "r.weight_ih_x".into(),
            bias_inputs: None,
            weight_hidden: "r.weight_hh_x".into(),
            bias_hidden: Some("r.bias_hh_x".into()),
            weight_candidate: "r.weight_hn_x".into(),
            bias_candidate: Some("r.bias_hn_x".into()),
            initial_hidden: Some(learned(&mut b, "h")),
            initial_cell: Some(learned(&mut b, "c")),
        };
        let input = b.input();
        let found = b.recurrent_pass("r", 0, &pass, input).unwrap();
        let states = b.recurrent_joined("all", std::slice::from_ref(&found)).unwrap();
        let mut all: Vec<Value> = vec![states, found.last];
        all.extend(found.cell);
        let output = b.add("output", Operation::Concatenate(0), &all).unwrap();
        let network = Network::<f64>::initialised(b.finish(output).unwrap(), Streams::new(3)).unwrap();
        let start = |name: &str| {
            let at = network.graph().parameters().iter().position(|p| p.name == name);
            at.map_or(vec![0.0; 3], |at| network.parameters()[at].values().to_vec())
        };
        let x = sequence(3);
        let (states, c) = by_hand(&network, cell, "x", [start("h.weight"), start("c.weight")], &x, reverse);
        let last = if reverse { &states[0] } else { &states[2] };
        let mut expected = [states.concat(), last.clone()].concat();
        if cell == RecurrentCell::Lstm {
            expected.extend(c);
        }
        close(network.forward(&Array::new(vec![1, 3, 2], x.concat())).unwrap().values(), &expected);
    }
}

#[test]
fn parameters_are_those_of_pytorch_and_steps_are_one_line() {
    let layer = Recurrent { layers: 2, bidirectional: true, ..layer(RecurrentCell::Lstm) };
    let mut b = GraphBuilder::new(&[6, 2]).unwrap();
    let x = b.recurrent("encoder", &layer, b.input()).unwrap();
    let x = b.add("flat", Operation::Reshape(vec![36]), &[x]).unwrap();
    let x = b.linear("head", 4, x).unwrap();
    let graph = b.finish(x).unwrap();
    let shape = |name: &str| graph.parameters().iter().find(|p| p.name == name).unwrap().shape.clone();
    for end in ["", "_reverse"] {
        assert_eq!(shape(&format!("encoder.weight_ih_l0{end}")), [12, 2]);
        assert_eq!(shape(&format!("encoder.weight_ih_l1{end}")), [12, 6]);
        assert_eq!(shape(&format!("encoder.weight_hh_l1{end}")), [12, 3]);
        assert_eq!(shape(&format!("encoder.bias_ih_l1{end}")), [12]);
        assert_eq!(shape(&format!("encoder.bias_hh_l0{end}")), [12]);
    }
    assert_eq!(graph.parameters().len(), 18);
    let table = describe(&graph);
    let rows: Vec<_> =
        table.rows.iter().map(|r| (r.name.as_str(), r.operation, &r.output_shape[..])).collect();
    let expected: [(&str, &str, &[usize]); 3] =
        [("encoder", "lstm", &[6, 6]), ("flat", "reshape", &[36]), ("head", "linear", &[4])];
    assert_eq!(rows, expected);
    assert_eq!(table.rows[0].parameters, 2 * (12 * 2 + 12 * 3 + 24) + 2 * (12 * 6 + 12 * 3 + 24));
    assert_eq!(table.rows.iter().map(|r| r.flops).sum::<u64>(), graph.flops());
    assert!(graph.nodes().iter().all(|n| n.recurrent_layer().is_none() || n.layer() == "encoder"));
}

#[test]
fn what_cannot_be_unrolled_is_refused() {
    let error = |input: &[usize], layer: &Recurrent| {
        let mut b = GraphBuilder::new(input).unwrap();
        b.recurrent("r", layer, b.input()).unwrap_err().to_string()
    };
    let own = layer(AFTER);
    assert!(error(&[4], &own).contains("it reads a sequence `[time, features]`"));
    assert!(error(&[4, 2], &Recurrent { hidden: 0, ..own.clone() }).contains("length 0"));
    assert!(error(&[4, 2], &Recurrent { layers: 0, ..own.clone() }).contains("`layers` is 0"));
    let long = error(&[MOST_UNROLLED / 16 + 1, 2], &own);
    assert!(long.starts_with("layer `r` (gru): a sequence of 3126 steps becomes 50016 operations"), "{long}");
    assert!(error(&[4, 2], &Recurrent { hidden: usize::MAX / 2, ..own }).contains("is not possible"));
}
