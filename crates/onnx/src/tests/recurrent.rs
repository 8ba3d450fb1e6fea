//! `LSTM`, `GRU` and `RNN` against recurrences written by hand, with the gates of the file's order.

use super::models::*;
use crate::definitions::*;

const HIDDEN: usize = 2;

fn numbers(count: usize, seed: f32) -> Vec<f32> {
    (0..count).map(|i| ((i as f32 * 1.7 + seed).sin() * 64.0).round() / 80.0).collect()
}

fn text(name: &str, value: &str) -> AttributeProto {
    AttributeProto { name: Some(name.into()), s: Some(value.to_string().into()), ..Default::default() }
}

fn texts(name: &str, values: &[&str]) -> AttributeProto {
    let strings = values.iter().map(|v| v.to_string().into()).collect();
    AttributeProto { name: Some(name.into()), strings, ..Default::default() }
}

/// A model of one recurrent node between `before` and `after`, with opset 17; steps first.
struct Case {
    operator: &'static str,
    gates: usize,
    directions: usize,
    attributes: Vec<AttributeProto>,
}

impl Case {
    fn weights(&self) -> [Vec<f32>; 3] {
        let rows = self.directions * self.gates * HIDDEN;
        [numbers(rows * 3, 0.3), numbers(rows * HIDDEN, 1.1), numbers(2 * rows, 2.2)]
    }

    fn model(&self, outputs: &[&str], mut after: Vec<NodeProto>, extra: &[&str]) -> ModelProto {
        let (d, rows) = (self.directions as i64, (self.gates * HIDDEN) as i64);
        let [w, r, b] = self.weights();
        let mut attributes = vec![int("hidden_size", HIDDEN as i64)];
        attributes.extend(self.attributes.iter().cloned());
        let inputs = [&["steps", "w", "r", "b"], extra].concat();
        let mut recurrent = node(self.operator, &inputs, "", attributes);
        recurrent.output = outputs.iter().map(ToString::to_string).collect();
        let mut nodes = vec![node("Transpose", &["x"], "steps", vec![ints("perm", &[1, 0, 2])]), recurrent];
        nodes.append(&mut after);
        let tensors = vec![
            floats("w", &[d, rows, 3], &w),
            floats("r", &[d, rows, HIDDEN as i64], &r),
            floats("b", &[d, 2 * rows], &b),
            whole("lengths", &[1], &[4]),
            whole("two", &[1], &[2]),
            floats("zeros", &[d, 1, HIDDEN as i64], &vec![0.0; self.directions * HIDDEN]),
            floats("start", &[d, 1, HIDDEN as i64], &numbers(self.directions * HIDDEN, 4.0)),
            whole("axis1", &[1], &[1]),
        ];
        model(&[ANY, 4, 3], nodes, tensors)
    }

    /// States of one direction in the order of time, and the last cell.
    fn by_hand(
        &self,
        d: usize,
        x: &[f64],
        reverse: bool,
        start: [f64; HIDDEN],
        after: bool,
    ) -> (Vec<f64>, Vec<f64>) {
        let rows = self.gates * HIDDEN;
        let [w, r, b] = self.weights();
        let dot = |m: &[f32], row: usize, x: &[f64]| -> f64 {
            m[row * x.len()..][..x.len()].iter().zip(x).map(|(m, x)| f64::from(*m) * x).sum()
        };
        let from = |row: usize, x: &[f64]| dot(&w, d * rows + row, x) + f64::from(b[d * 2 * rows + row]);
        let bias = |row: usize| f64::from(b[d * 2 * rows + rows + row]);
        let sigmoid = |v: f64| 1.0 / (1.0 + (-v).exp());
        let (mut h, mut c) = (start.to_vec(), start.to_vec());
        let mut states = vec![0.0; 4 * HIDDEN];
        for k in 0..4 {
            let t = if reverse { 3 - k } else { k };
            let x = &x[3 * t..3 * t + 3];
            let gate = |g: usize, i: usize| {
                from(g * HIDDEN + i, x) + dot(&r, d * rows + g * HIDDEN + i, &h) + bias(g * HIDDEN + i)
            };
            h = match self.operator {
                // i o f c
                "LSTM" => {
                    c = (0..HIDDEN)
                        .map(|i| sigmoid(gate(2, i)) * c[i] + sigmoid(gate(0, i)) * gate(3, i).tanh())
                        .collect();
                    (0..HIDDEN).map(|i| sigmoid(gate(1, i)) * c[i].tanh()).collect()
                }
                // z r h
                "GRU" => {
                    let reset: Vec<f64> = (0..HIDDEN).map(|i| sigmoid(gate(1, i)) * h[i]).collect();
                    (0..HIDDEN)
                        .map(|i| {
                            let row = 2 * HIDDEN + i;
                            let state = match after {
                                true => sigmoid(gate(1, i)) * (dot(&r, d * rows + row, &h) + bias(row)),
                                false => dot(&r, d * rows + row, &reset) + bias(row),
                            };
                            let z = sigmoid(gate(0, i));
                            (1.0 - z) * (from(row, x) + state).tanh() + z * h[i]
                        })
                        .collect()
                }
                _ if self.attributes.iter().any(|a| !a.strings.is_empty()) => {
                    (0..HIDDEN).map(|i| gate(0, i).max(0.0)).collect()
                }
                _ => (0..HIDDEN).map(|i| gate(0, i).tanh()).collect(),
            };
            states[t * HIDDEN..(t + 1) * HIDDEN].copy_from_slice(&h);
        }
        (states, c)
    }
}

fn case(operator: &'static str, directions: usize, attributes: Vec<AttributeProto>) -> Case {
    let gates = match operator {
        "LSTM" => 4,
        "GRU" => 3,
        _ => 1,
    };
    Case { operator, gates, directions, attributes }
}

fn x() -> Vec<f64> {
    (0..24).map(|i| (f64::from(i) * 0.7).cos()).collect()
}

#[track_caller]
fn close(found: &[f64], expected: &[f64]) {
    assert_eq!(found.len(), expected.len());
    found.iter().zip(expected).for_each(|(f, e)| assert!((f - e).abs() < 1e-13, "{found:?} {expected:?}"));
}

/// All states, examples first.
fn all_states() -> Vec<NodeProto> {
    vec![
        node("Transpose", &["all"], "turned", vec![ints("perm", &[2, 0, 1, 3])]),
        node("Reshape", &["turned", "flat"], "y", vec![]),
    ]
}

fn with_flat(mut model: ModelProto, width: usize) -> ModelProto {
    graph(&mut model).initializer.push(whole("flat", &[3], &[0, 4, width as i64]));
    model
}

#[test]
fn one_direction_is_the_recurrence() {
    let cases = [
        (case("LSTM", 1, vec![]), false, true),
        (case("LSTM", 1, vec![text("direction", "reverse")]), true, true),
        (case("GRU", 1, vec![]), false, false),
        (case("GRU", 1, vec![int("linear_before_reset", 1)]), false, true),
        (case("RNN", 1, vec![texts("activations", &["Relu"])]), false, true),
        (case("RNN", 1, vec![]), false, true),
    ];
    for (case, reverse, after) in cases {
        let x = x();
        for (extra, start) in [
            (&[][..], [0.0; HIDDEN]),
            (&["lengths", "zeros"][..], [0.0; HIDDEN]),
            (&["", "start", "start"][..], [f64::from(numbers(2, 4.0)[0]), f64::from(numbers(2, 4.0)[1])]),
        ] {
            let extra = if case.operator == "LSTM" { extra } else { &extra[..extra.len().min(2)] };
            let model = with_flat(case.model(&["all"], all_states(), extra), HIDDEN);
            let expected: Vec<f64> =
                x.chunks(12).flat_map(|x| case.by_hand(0, x, reverse, start, after).0).collect();
            close(&outputs(&model, 2, &x), &expected);
            // The last state alone.
            let squeeze = vec![node("Squeeze", &["last", "axis0"], "y", vec![])];
            let mut model = case.model(&["", "last"], squeeze, extra);
            graph(&mut model).initializer.push(whole("axis0", &[1], &[0]));
            let at = if reverse { 0 } else { 3 * HIDDEN };
            let ends: Vec<f64> =
                expected.chunks(4 * HIDDEN).flat_map(|s| s[at..at + HIDDEN].to_vec()).collect();
            close(&outputs(&model, 2, &x), &ends);
        }
    }
}

#[test]
fn both_directions_have_weights_of_their_own() {
    for (operator, attributes) in [
        ("LSTM", vec![text("direction", "bidirectional")]),
        ("GRU", vec![text("direction", "bidirectional"), int("linear_before_reset", 1)]),
        ("RNN", vec![text("direction", "bidirectional")]),
    ] {
        let case = case(operator, 2, attributes);
        let x = x();
        let model = with_flat(case.model(&["all"], all_states(), &[]), 2 * HIDDEN);
        let expected: Vec<f64> = x
            .chunks(12)
            .flat_map(|x| {
                let (ahead, _) = case.by_hand(0, x, false, [0.0; HIDDEN], true);
                let (back, _) = case.by_hand(1, x, true, [0.0; HIDDEN], true);
                (0..4 * 2 * HIDDEN)
                    .map(|i| {
                        let (t, d, k) = (i / (2 * HIDDEN), i / HIDDEN % 2, i % HIDDEN);
                        [&ahead, &back][d][t * HIDDEN + k]
                    })
                    .collect::<Vec<_>>()
            })
            .collect();
        close(&outputs(&model, 2, &x), &expected);
        let imported = import(&model).unwrap();
        let names: Vec<&str> = imported.graph.parameters().iter().map(|p| p.name.as_str()).collect();
        for name in ["w.weight_ih", "w.weight_ih_reverse", "r.weight_hh", "b.bias_ih_reverse", "b.bias_hh"] {
            assert!(names.contains(&name), "{name} of {names:?}");
        }
        assert!(imported.graph.parameters().iter().all(|p| p.trainable));
    }
}

#[test]
fn the_last_cell_is_an_output() {
    let case = case("LSTM", 1, vec![]);
    let squeeze = vec![node("Squeeze", &["cell", "axis0"], "y", vec![])];
    let mut model = case.model(&["", "", "cell"], squeeze, &[]);
    graph(&mut model).initializer.push(whole("axis0", &[1], &[0]));
    let x = x();
    let expected: Vec<f64> =
        x.chunks(12).flat_map(|x| case.by_hand(0, x, false, [0.0; HIDDEN], true).1).collect();
    close(&outputs(&model, 2, &x), &expected);
}

/// Zeros for the number of examples, as exporters make them from the shape of the input, are no parameters.
#[test]
fn zeros_for_the_number_of_examples_are_nothing() {
    let case = case("GRU", 1, vec![int("linear_before_reset", 1)]);
    let mut model = with_flat(case.model(&["all"], all_states(), &["", "state"]), HIDDEN);
    let nodes = &mut graph(&mut model).node;
    let before = [
        node("Shape", &["x"], "shape", vec![]),
        node("Gather", &["shape", "first"], "count", vec![]),
        node("Concat", &["axis1", "count", "two"], "full", vec![int("axis", 0)]),
        node("ConstantOfShape", &["full"], "state", vec![]),
    ];
    nodes.splice(0..0, before);
    graph(&mut model).initializer.push(whole("first", &[1], &[0]));
    let x = x();
    let expected: Vec<f64> =
        x.chunks(12).flat_map(|x| case.by_hand(0, x, false, [0.0; HIDDEN], true).0).collect();
    close(&outputs(&model, 2, &x), &expected);
    let imported = import(&model).unwrap();
    assert_eq!(imported.graph.parameters().len(), 4);
    // What its state begins with may depend on the example.
    let nodes = &mut graph(&mut model).node;
    nodes.insert(4, node("ReduceSum", &["x", "axis1"], "mean", vec![int("keepdims", 0)]));
    nodes.insert(5, node("Slice", &["mean", "first", "two", "axis1"], "pair", vec![]));
    nodes.insert(6, node("Unsqueeze", &["pair", "first"], "given", vec![]));
    nodes.iter_mut().find(|n| n.op_type.as_deref() == Some("GRU")).unwrap().input[5] = "given".into();
    let expected: Vec<f64> = x
        .chunks(12)
        .flat_map(|x| {
            let sum = |i: usize| (0..4).map(|t| x[3 * t + i]).sum::<f64>();
            case.by_hand(0, x, false, [sum(0), sum(1)], true).0
        })
        .collect();
    close(&outputs(&model, 2, &x), &expected);
}

#[test]
fn what_is_not_read_is_named() {
    let refused = |attribute: AttributeProto, extra: &[&str]| {
        let case = case("LSTM", 1, vec![attribute]);
        refusal(&with_flat(case.model(&["all"], all_states(), extra), HIDDEN))
    };
    let clip = AttributeProto { name: Some("clip".into()), f: Some(1.0), ..Default::default() };
    assert!(refused(clip, &[]).contains("`LSTM` is not supported with `clip`"));
    assert!(refused(int("input_forget", 1), &[]).contains("coupled gates"));
    let activations = texts("activations", &["Sigmoid", "Softsign", "Tanh"]);
    assert!(refused(activations, &[]).contains("with the activations Sigmoid, Softsign, Tanh"));
    assert!(refused(text("direction", "sideways"), &[]).contains("no direction `sideways`"));
    let none = || int("input_forget", 0);
    assert!(refused(none(), &["two"]).contains("that are not all 4"));
    assert!(refused(none(), &["", "zeros", "zeros", "start"]).contains("with peepholes"));
    assert!(refused(int("layout", 1), &[]).contains("must hold the batch"));
    let case = case("LSTM", 1, vec![int("hidden_size", 0)]);
    let mut model = case.model(&["all"], all_states(), &[]);
    graph(&mut model).node[1].attribute.remove(0);
    assert!(refusal(&with_flat(model, HIDDEN)).contains("`hidden_size`"));
    let case = Case { attributes: vec![], ..case };
    let mut model = with_flat(case.model(&["all"], all_states(), &[]), HIDDEN);
    graph(&mut model).initializer[1].dims = vec![1, 16, 1];
    assert!(refusal(&model).contains("do not fit `hidden_size` 2"));
}
