//! What the builder refuses, shares and drops.

use crate::operation::{
    Activation, BatchNorm, Bias, Convolution, Gain, Initial, Linear, Normalise, Operation, Over,
};
use crate::{GraphBuilder, GraphError, Value};

fn linear(outputs: usize) -> Operation {
    Operation::Linear(Linear { outputs, bias: true })
}

fn problem(result: Result<impl std::fmt::Debug, GraphError>) -> String {
    result.unwrap_err().to_string()
}

#[test]
fn inputs_of_no_size_or_beyond_reason() {
    assert!(problem(GraphBuilder::new(&[3, 0])).contains("length 0"));
    assert!(problem(GraphBuilder::new(&[usize::MAX, 2])).contains("more than"));
    assert!(GraphBuilder::new(&[]).is_ok(), "one number for each example");
}

#[test]
fn names_and_inputs_that_do_not_exist() {
    let mut b = GraphBuilder::new(&[4]).unwrap();
    let x = b.linear("one", 3, Value::INPUT).unwrap();
    let twice = problem(b.linear("one", 3, x));
    assert!(twice.contains("layer `one` (linear)") && twice.contains("unique"), "{twice}");
    assert!(problem(b.linear("", 3, x)).contains("empty"));
    assert!(problem(b.add("far", Operation::Softmax, &[Value(7)])).contains("input 7 does not exist"));
    assert!(problem(b.add("none", Operation::Add, &[x])).contains("does not take 1 inputs"));
    assert_eq!(
        b.clone().finish(Value(2)),
        Err(GraphError::Unknown { name: "value 2".into() }),
        "an output that does not exist"
    );
    let unknown = b.describe("one.width", false, None);
    assert_eq!(unknown, Err(GraphError::Unknown { name: "one.width".into() }));
}

#[test]
fn a_node_that_fails_leaves_nothing_behind() {
    let mut b = GraphBuilder::new(&[4]).unwrap();
    let x = b.linear("a", 3, Value::INPUT).unwrap();
    // The new weight `fresh` is made before the shared bias turns out not to fit.
    let error = problem(b.add_named("b", linear(5), &[x], &["fresh", "a.bias"]));
    assert!(error.contains("`a.bias` has shape [3], here [5] is needed"), "{error}");
    // Its name is still free for another shape.
    let x = b.add_named("b", linear(6), &[x], &["fresh"]).unwrap();
    let graph = b.finish(x).unwrap();
    let names: Vec<&str> = graph.parameters().iter().map(|p| p.name.as_str()).collect();
    assert_eq!(names, ["a.weight", "a.bias", "fresh", "b.bias"]);
    assert_eq!(graph.parameters()[2].shape, [6, 3]);
}

#[test]
fn parameters_larger_than_reason_and_names_without_parameter() {
    let mut b = GraphBuilder::new(&[1 << 20]).unwrap();
    assert!(problem(b.linear("wide", 1 << 20, Value::INPUT)).contains("more than"));
    let mut b = GraphBuilder::new(&[4]).unwrap();
    let error = problem(b.add_named("a", linear(2), &[Value::INPUT], &["w", "b", "c"]));
    assert!(error.contains("3 names are given for 2 parameters"), "{error}");
}

#[test]
fn statistics_are_never_trained() {
    let mut b = GraphBuilder::new(&[3, 2]).unwrap();
    let norm = || Operation::BatchNorm(BatchNorm::default());
    b.add("norm", norm(), &[Value::INPUT]).unwrap();
    let error = problem(b.describe("norm.running_var", true, None));
    assert!(error.contains("statistic"), "{error}");
    b.describe("norm.running_var", false, Some(Initial::Constant(2.0))).unwrap();
    b.describe("norm.weight", false, None).unwrap();
    b.describe("norm.weight", true, None).unwrap();
    b.add("shift", Operation::Bias(Bias { shape: vec![3, 1] }), &[Value::INPUT]).unwrap();
    b.add("gain", Operation::Gain(Gain { shape: vec![2] }), &[Value::INPUT]).unwrap();
    let mut c = GraphBuilder::new(&[3]).unwrap();
    c.add("shift", Operation::Bias(Bias { shape: vec![3] }), &[Value::INPUT]).unwrap();
    let error = problem(c.add_named("norm", norm(), &[Value::INPUT], &["w", "b", "shift.bias"]));
    assert!(error.contains("trained elsewhere"), "{error}");
    c.describe("shift.bias", false, None).unwrap();
    c.add_named("norm", norm(), &[Value::INPUT], &["w", "b", "shift.bias"]).unwrap();
    assert!(c.describe("shift.bias", true, None).is_err());
}

#[test]
fn norms_of_three_nodes() {
    let mut b = GraphBuilder::new(&[6, 4, 4]).unwrap();
    let x = b.group_norm("group", 3, 1e-5, Value::INPUT).unwrap();
    let x = b.layer_norm("layer", 2, 1e-5, x).unwrap();
    let graph = b.clone().finish(x).unwrap();
    let shapes: Vec<(&str, &[usize])> =
        graph.parameters().iter().map(|p| (p.name.as_str(), &p.shape[..])).collect();
    assert_eq!(
        shapes,
        [
            ("group.weight", &[6][..]),
            ("group.bias", &[6]),
            ("layer.weight", &[4, 4]),
            ("layer.bias", &[4, 4])
        ]
    );
    assert!(problem(b.layer_norm("none", 0, 1e-5, x)).contains("last 0 axes"));
    assert!(problem(b.layer_norm("all", 4, 1e-5, x)).contains("last 4 axes"));
    assert!(problem(b.group_norm("four", 4, 1e-5, x)).contains("divide"));
}

#[test]
fn unused_nodes_and_parameters_go_and_order_stays() {
    let mut b = GraphBuilder::new(&[4]).unwrap();
    let a = b.linear("a", 4, Value::INPUT).unwrap();
    let unused = b.linear("unused", 9, a).unwrap();
    b.activation("unused too", Activation::Tanh, unused).unwrap();
    let c = b.activation("c", Activation::Relu, a).unwrap();
    // Shares the weight of a node that goes.
    b.add_named("also unused", linear(4), &[c], &["shared", "a.bias"]).unwrap();
    let d = b.add_named("d", linear(4), &[c], &["shared"]).unwrap();
    let e = b.add("e", Operation::Add, &[d, Value::INPUT]).unwrap();
    b.linear("after", 2, e).unwrap();
    let graph = b.finish(e).unwrap();
    let nodes: Vec<(&str, Vec<usize>)> =
        graph.nodes().iter().map(|n| (n.name.as_str(), n.inputs.iter().map(|v| v.0).collect())).collect();
    assert_eq!(nodes, [("a", vec![0]), ("c", vec![1]), ("d", vec![2]), ("e", vec![3, 0])]);
    let parameters: Vec<&str> = graph.parameters().iter().map(|p| p.name.as_str()).collect();
    assert_eq!(parameters, ["a.weight", "a.bias", "shared", "d.bias"]);
    assert_eq!(graph.nodes()[2].parameters, [2, 3]);
    assert_eq!(graph.output(), Value(4));
    // The input itself may be the output.
    let mut b = GraphBuilder::new(&[4]).unwrap();
    b.linear("a", 4, Value::INPUT).unwrap();
    let graph = b.finish(Value::INPUT).unwrap();
    assert!(graph.nodes().is_empty() && graph.parameters().is_empty());
    assert_eq!((graph.output_shape(), graph.flops(), graph.activations()), (&[4][..], 0, 0));
}

#[test]
fn a_final_softmax_can_be_left_out() {
    let mut b = GraphBuilder::new(&[4]).unwrap();
    let logits = b.linear("logits", 3, Value::INPUT).unwrap();
    let s = b.add("softmax", Operation::Softmax, &[logits]).unwrap();
    let last = b.activation("identity", Activation::Identity, s).unwrap();
    let again = b.add("not last", Operation::Scale(2.0), &[last]).unwrap();
    for output in [s, last] {
        let graph = b.clone().finish(output).unwrap().without_final_softmax().unwrap();
        assert_eq!((graph.nodes().len(), graph.output()), (1, logits));
        assert_eq!(graph.parameters().len(), 2);
    }
    for output in [logits, again, Value::INPUT] {
        assert_eq!(b.clone().finish(output).unwrap().without_final_softmax(), None);
    }
}

#[test]
fn sizes_and_work_are_counted() {
    let mut b = GraphBuilder::new(&[3, 8, 8]).unwrap();
    let x = b.convolution("c", Convolution::square(16, 3, 1, 1, true), Value::INPUT).unwrap();
    let x =
        b.add("n", Operation::Normalise(Normalise { over: Over::Groups(4), epsilon: 1e-5 }), &[x]).unwrap();
    let x = b.add("f", Operation::Reshape(vec![1024]), &[x]).unwrap();
    let x = b.linear("l", 10, x).unwrap();
    let graph = b.finish(x).unwrap();
    assert_eq!(graph.trainable(), 16 * 27 + 16 + 10240 + 10);
    assert_eq!(graph.activations(), 3 * 1024 + 10);
    assert_eq!(graph.nodes()[0].flops, 2 * 16 * 27 * 64);
    assert_eq!(graph.flops(), graph.nodes().iter().map(|n| n.flops).sum::<u64>());
}
