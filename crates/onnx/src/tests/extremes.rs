//! Whole numbers at the end of their range, and lengths beyond memory: refused with the numbers, or right.

use super::models::*;
use crate::definitions::{AttributeProto, ModelProto, NodeProto, TensorProto};
use std::time::{Duration, Instant};

const LEAST: i64 = i64::MIN;

/// A model that adds what the nodes make of constants, called `c`, to its input of this many numbers.
fn adds(length: usize, nodes: Vec<NodeProto>, tensors: Vec<TensorProto>) -> ModelProto {
    let after = vec![
        node("Cast", &["c"], "f", vec![int("to", 1)]),
        node("Reshape", &["f", "row"], "r", vec![]),
        node("Add", &["x", "r"], "y", vec![]),
    ];
    model(
        &[ANY, length as i64],
        [nodes, after].concat(),
        [tensors, vec![whole("row", &[2], &[1, -1])]].concat(),
    )
}

fn of_two(operator: &str, a: i64, b: i64, attributes: Vec<AttributeProto>) -> ModelProto {
    let made = node(operator, &["a", "b"], "c", attributes);
    adds(1, vec![made], vec![whole("a", &[1], &[a]), whole("b", &[1], &[b])])
}

#[track_caller]
fn refused(model: &ModelProto, node: &str, problem: &str) {
    let started = Instant::now();
    let found = refusal(model);
    assert!(found.contains(&format!("node `{node}")) && found.contains(problem), "{found}");
    assert!(started.elapsed() < Duration::from_secs(1));
}

#[test]
fn arithmetic_does_not_wrap_around() {
    for (operator, a, b, problem) in [
        ("Add", i64::MAX, 1, "9223372036854775807 + 1"),
        ("Sub", LEAST, 1, "-9223372036854775808 - 1"),
        ("Mul", LEAST, -1, "-9223372036854775808 * -1"),
        ("Div", LEAST, -1, "-9223372036854775808 / -1"),
        ("Pow", 3, 50, "3 to the power 50"),
        ("Pow", LEAST, 3, "-9223372036854775808 to the power 3"),
    ] {
        let problem = format!("({operator}): {problem} does not fit into 64 bits");
        refused(&of_two(operator, a, b, vec![]), &format!("{operator} of c`"), &problem);
    }
    refused(&of_two("Div", 7, 0, vec![]), "Div of c`", "7 / 0 is a division by zero");
    refused(&of_two("Mod", 7, 0, vec![]), "Mod of c`", "7 mod 0 is a division by zero");
    for fmod in [0, 1] {
        assert_eq!(outputs(&of_two("Mod", LEAST, -1, vec![int("fmod", fmod)]), 1, &[0.0]), [0.0]);
    }
    // Orders are known where differences are not.
    assert_eq!(outputs(&of_two("Greater", LEAST, i64::MAX, vec![]), 1, &[0.0]), [0.0]);
    assert_eq!(outputs(&of_two("Max", LEAST, i64::MAX, vec![]), 1, &[0.0]), [i64::MAX as f64]);
    for (operator, problem) in [
        ("Neg", "0 - -9223372036854775808"),
        ("Abs", "0 - -9223372036854775808"),
        ("ReduceSum", "-9223372036854775808 + -9223372036854775808"),
        ("ReduceProd", "-9223372036854775808 * -9223372036854775808"),
    ] {
        let model = adds(1, vec![node(operator, &["a"], "c", vec![])], vec![whole("a", &[2], &[LEAST; 2])]);
        refused(&model, &format!("{operator} of c`"), problem);
    }
    let sums = node("CumSum", &["a", "axis"], "c", vec![]);
    let model = adds(2, vec![sums], vec![whole("a", &[2], &[i64::MAX; 2]), whole("axis", &[], &[0])]);
    refused(&model, "CumSum of c`", "9223372036854775807 + 9223372036854775807");
}

/// The number of examples with the least number added or multiplied, over -1 (or over minus itself).
#[test]
fn quotients_with_the_number_of_examples() {
    let with = |nodes: Vec<NodeProto>| {
        let first = vec![
            node("Shape", &["x"], "shape", vec![]),
            node("Slice", &["shape", "zero", "one"], "batch", vec![]),
        ];
        let last = vec![
            node("Concat", &["d", "three"], "t", vec![int("axis", 0)]),
            node("Reshape", &["x", "t"], "y", vec![]),
        ];
        let number = |name: &str, v: i64| whole(name, &[1], &[v]);
        let tensors = [("zero", 0), ("one", 1), ("three", 3), ("least", LEAST), ("minus", -1)];
        model(&[ANY, 3], [first, nodes, last].concat(), tensors.map(|(name, v)| number(name, v)).to_vec())
    };
    let op = |operator: &str, a: &str, b: &str, to: &str| node(operator, &[a, b], to, vec![]);
    let added = with(vec![op("Add", "batch", "least", "c"), op("Div", "c", "minus", "d")]);
    refused(&added, "Div of d`", "(-9223372036854775808 + 1*batch) / -1 does not fit into 64 bits");
    let multiplied =
        vec![op("Mul", "batch", "least", "c"), op("Mul", "batch", "minus", "e"), op("Div", "c", "e", "d")];
    refused(
        &with(multiplied),
        "Div of d`",
        "-9223372036854775808*batch / -1*batch does not fit into 64 bits",
    );
    let even = with(vec![op("Mul", "batch", "minus", "c"), op("Div", "c", "minus", "d")]);
    assert_eq!(outputs(&even, 2, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
}

#[test]
fn lengths_beyond_memory() {
    let long = 1i64 << 40;
    let sum = || node("ReduceSum", &["e"], "c", vec![]);
    // An axis of length 0 hides the others: nothing is in memory, but loops over them would not end, and their product has no number.
    let empty = || floats("a", &[1, 0], &[]);
    for (operator, second) in [("Expand", [long, 0]), ("Tile", [long, 1])] {
        let made = vec![node(operator, &["a", "b"], "e", vec![]), sum()];
        let found = refusal(&adds(1, made, vec![empty(), whole("b", &[2], &second)]));
        assert!(found.contains("out of proportion"), "{operator}: {found}");
    }
    let filled = vec![node("ConstantOfShape", &["b"], "e", vec![]), sum()];
    let found = refusal(&adds(1, filled, vec![whole("b", &[3], &[0, long, long])]));
    assert!(
        found.contains("a constant of shape [0, 1099511627776, 1099511627776] is out of proportion"),
        "{found}"
    );
    let shaped = vec![node("Reshape", &["a", "b"], "e", vec![int("allowzero", 1)]), sum()];
    let tensors = || vec![floats("a", &[0], &[]), whole("b", &[3], &[0, long, long])];
    refused(
        &adds(1, shaped, tensors()),
        "Reshape of e`",
        "a constant of shape [0, 1099511627776, 1099511627776]",
    );
    let direct = vec![node("Transpose", &["a"], "e", vec![]), sum()];
    let found = refusal(&adds(1, direct, vec![floats("a", &[0, long, long], &[])]));
    assert!(
        found.contains("tensor `a`: the shape [0, 1099511627776, 1099511627776] cannot be counted"),
        "{found}"
    );
    let product = vec![node("Reshape", &["a", "b"], "c", vec![])];
    let tensors = vec![whole("a", &[1], &[1]), whole("b", &[2], &[long, long])];
    refused(&adds(1, product, tensors), "Reshape of c`", "1099511627776 * 1099511627776 does not fit");
    let range = |from: i64, to: i64, by: i64| {
        let number = |name: &str, v: i64| whole(name, &[], &[v]);
        let made = vec![node("Range", &["a", "b", "s"], "c", vec![])];
        refusal(&adds(1, made, vec![number("a", from), number("b", to), number("s", by)]))
    };
    assert!(range(0, i64::MAX, 1).contains("a range is too long"));
    assert!(range(i64::MAX, LEAST, -1).contains("a range is too long"));
    assert!(range(0, 1, 0).contains("a range is too long"));
}

#[test]
fn steps_and_windows_at_their_limits() {
    let slice = |name: &str| node("Slice", &[name, "from", "to", "axis", "step"], "c", vec![]);
    let bounds = |axis: i64| {
        let number = |name: &str, v: i64| whole(name, &[1], &[v]);
        vec![number("from", 2), number("to", LEAST), number("axis", axis), number("step", LEAST)]
    };
    // The largest step backwards takes one entry, of a constant and of a value.
    let constant = adds(1, vec![slice("a")], [bounds(0), vec![whole("a", &[4], &[5, 6, 7, 8])]].concat());
    assert_eq!(outputs(&constant, 1, &[0.0]), [7.0]);
    let value = model(&[ANY, 4], vec![slice("x"), node("Identity", &["c"], "y", vec![])], bounds(1));
    assert_eq!(outputs(&value, 2, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]), [3.0, 7.0]);
    let huge = vec![ints("kernel_shape", &[1 << 40, 1 << 40]), int("p", 2)];
    let pool = model(&[ANY, 1, 4, 4], vec![node("LpPool", &["x"], "y", huge)], vec![]);
    refused(&pool, "LpPool of y`", "does not fit");
    // Examples times numbers have no number where the file is for 2^62 examples.
    let nodes = vec![
        node("Reshape", &["x", "flat"], "f", vec![]),
        node("Slice", &["f", "zero", "end", "zero"], "s", vec![]),
        node("Reshape", &["s", "back"], "y", vec![]),
    ];
    let tensors = vec![
        whole("flat", &[1], &[-1]),
        whole("zero", &[1], &[0]),
        whole("end", &[1], &[i64::MAX]),
        whole("back", &[2], &[-1, 8]),
    ];
    let many = model(&[1 << 62, 8], nodes, tensors);
    assert_eq!(outputs(&many, 1, &[1.0; 8]), [1.0; 8]);
    let nodes =
        vec![node("Reshape", &["x", "flat"], "f", vec![]), node("Expand", &["f", "many"], "y", vec![])];
    let tensors = vec![whole("flat", &[1], &[-1]), whole("many", &[1], &[1 << 32])];
    refused(&model(&[1 << 62, 8], nodes, tensors), "Expand of y`", "it repeats examples");
}
