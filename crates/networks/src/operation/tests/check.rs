//! What holds for every operation.

use super::case::{Case, Fill, Point};
use super::numbers::{by_row, close, derivative, members, moved, random, repeated};
use crate::array::{Array, Sets, batch_shape};
use crate::operation::{Mode, ParameterSpecification};

/// Against differences.
const DIFFERENCES: f64 = 1e-8;
/// Between a map and its transpose.
const EXACT: f64 = 1e-12;

/// Everything about one case.
pub(super) fn check(case: &Case) {
    let point = case.point(Mode::Evaluation);
    let specifications = case.prepare::<f64>().parameters;
    values(case, &point);
    for width in [1, 3] {
        if !matches!(case.fill, Fill::Whole(_)) {
            inputs(case, &point, width);
        }
        for (slot, specification) in specifications.iter().enumerate().filter(|(_, s)| s.trainable) {
            parameter(case, &point, slot, specification, width);
        }
    }
    single(case, &point, &specifications);
    nothing(case, &point, &specifications);
}

/// Forward against the definition, example by example, and the same again bit for bit.
fn values(case: &Case, point: &Point<f64>) {
    let shape = case.prepare::<f64>().shape;
    assert_eq!(point.output.shape(), batch_shape(case.examples, &shape), "{}", case.name);
    for r in 0..case.examples {
        let own = |x: &Array<f64>| Array::new(x.shape()[1..].to_vec(), x.row(r).to_vec());
        let inputs: Vec<Array<f64>> = point.inputs.iter().map(own).collect();
        let expected = (case.definition)(&inputs, &point.parameters);
        assert_eq!(expected.shape(), shape, "{}: the shape", case.name);
        close(&format!("{}: example {r}", case.name), point.output.row(r), expected.values(), EXACT);
    }
    let again = point.with(point.inputs.clone(), point.parameters.clone(), point.rows);
    assert_eq!(again.output, point.output, "{}: bit for bit", case.name);
}

/// First and second derivatives in the inputs, `width` directions for each example.
fn inputs(case: &Case, point: &Point<f64>, width: usize) {
    let rows = point.rows * width;
    let wide: Vec<Array<f64>> = point.inputs.iter().map(|x| repeated(x, width)).collect();
    let shifted = |input: usize, h: f64, t: &Array<f64>| {
        let mut inputs = wide.clone();
        inputs[input] = moved(&inputs[input], h, t);
        point.with(inputs, point.parameters.clone(), rows)
    };
    let directions = |seed: u64| -> Vec<Array<f64>> {
        wide.iter().enumerate().map(|(i, x)| random(x.shape().to_vec(), seed + i as u64)).collect()
    };
    let cotangent = random(batch_shape(rows, &point.output.shape()[1..]), 400);
    let tangents = directions(300);
    for (input, tangent) in tangents.iter().enumerate() {
        let what = format!("{}: input {input}, width {width}", case.name);
        let pushed = point.at(|layer, at| layer.jvp_input(at, input, tangent));
        assert_eq!(pushed.shape(), cotangent.shape(), "{what}");
        let expected = derivative(|h| shifted(input, h, tangent).output.into_values());
        close(&format!("{what}, jvp"), pushed.values(), &expected, DIFFERENCES);
        let pulled = point.at(|layer, at| layer.vjp_input(at, input, &cotangent));
        assert_eq!(pulled.shape(), tangent.shape(), "{what}");
        close(&format!("{what}, vjp"), &by_row(&pulled, tangent), &by_row(&pushed, &cotangent), EXACT);
        let again = point.at(|layer, at| layer.vjp_input(at, input, &cotangent));
        assert_eq!(again, pulled, "{what}: bit for bit");
    }
    // All inputs move, or only one of them.
    let some = tangents.iter().map(|t| Some(t.clone())).collect::<Vec<_>>();
    let mut choices = vec![some.clone()];
    if some.len() > 1 {
        for kept in 0..some.len() {
            choices.push(some.iter().enumerate().map(|(i, t)| t.clone().filter(|_| i == kept)).collect());
        }
    }
    for tangents in choices {
        let slope = |moved: &Point<f64>| -> Vec<f64> {
            let mut sum = vec![0.0; rows];
            for (i, t) in tangents.iter().enumerate() {
                if let Some(t) = t {
                    let pushed = moved.at(|layer, at| layer.jvp_input(at, i, t));
                    sum.iter_mut().zip(by_row(&pushed, &cotangent)).for_each(|(s, v)| *s += v);
                }
            }
            sum
        };
        for (input, direction) in directions(500).iter().enumerate() {
            let what = format!("{}: second, input {input}, width {width}", case.name);
            let expected = derivative(|h| slope(&shifted(input, h, direction)));
            let found = point.at(|layer, at| layer.second_input(at, input, &tangents, &cotangent));
            against(&what, found, direction, &expected);
        }
    }
}

/// A second derivative (None: zero) along `direction` for each row.
fn against(what: &str, found: Option<Array<f64>>, direction: &Array<f64>, expected: &[f64]) {
    let along = found.map_or(vec![0.0; expected.len()], |g| {
        assert_eq!(g.shape(), direction.shape(), "{what}");
        by_row(&g, direction)
    });
    close(what, &along, expected, DIFFERENCES);
}

/// Derivatives in one parameter, for all ways in which rows share sets.
fn parameter(
    case: &Case,
    point: &Point<f64>,
    slot: usize,
    specification: &ParameterSpecification,
    width: usize,
) {
    let rows = point.rows * width;
    let length: usize = specification.shape.iter().product();
    let wide: Vec<Array<f64>> = point.inputs.iter().map(|x| repeated(x, width)).collect();
    let cotangent = random(batch_shape(rows, &point.output.shape()[1..]), 600);
    for sets in [Sets::One, Sets::Tangents(width), Sets::Rows] {
        let what = format!("{}: {}, width {width}, {sets:?}", case.name, specification.name);
        let count = members(sets, 0, rows).len();
        let count = rows / count;
        let tangent = random(batch_shape(count, &specification.shape), 700);
        let of: Vec<usize> = (0..rows)
            .map(|r| (0..count).position(|s| members(sets, s, rows).contains(&r)).unwrap())
            .collect();
        // Each row by itself: its example, its set of the tangent.
        let alone = |r: usize, h: f64, inputs: &[Array<f64>]| {
            let mut parameters = point.parameters.clone();
            let t = Array::new(specification.shape.clone(), tangent.row(of[r]).to_vec());
            parameters[slot] = moved(&parameters[slot], h, &t);
            point.with(inputs.iter().map(|x| x.slice_rows(r..r + 1)).collect(), parameters, 1).output
        };
        let pushed = point.at(|layer, at| layer.jvp_parameter(at, slot, &tangent, sets, rows));
        assert_eq!(pushed.shape(), cotangent.shape(), "{what}");
        for r in 0..rows {
            let expected = derivative(|h| alone(r, h, &wide).into_values());
            close(&format!("{what}, jvp, row {r}"), pushed.row(r), &expected, DIFFERENCES);
        }
        let products = by_row(&pushed, &cotangent);
        for (stride, exact) in [(length, true), (length + 5, true), (length + 5, false)] {
            let end = if exact { (count - 1) * stride + length } else { count * stride };
            // Sums are added to what is there; rows of their own begin at zero. What lies between is left alone.
            let before = if sets == Sets::Rows { 0.0 } else { 0.5 };
            let mut out: Vec<f64> =
                (0..end).map(|i| if i % stride < length { before } else { 7.0 }).collect();
            point.at(|layer, at| layer.vjp_parameter(at, slot, &cotangent, sets, stride, &mut out));
            let found: Vec<f64> = (0..count)
                .map(|s| {
                    let pulled = &out[s * stride..s * stride + length];
                    pulled.iter().zip(tangent.row(s)).map(|(g, t)| (g - before) * t).sum()
                })
                .collect();
            let expected: Vec<f64> =
                (0..count).map(|s| members(sets, s, rows).iter().map(|&r| products[r]).sum()).collect();
            close(&format!("{what}, vjp, stride {stride}"), &found, &expected, EXACT);
            assert!(out.iter().enumerate().all(|(i, &v)| i % stride < length || v == 7.0), "{what}: between");
        }
        if sets == Sets::Rows && !matches!(case.fill, Fill::Whole(_)) {
            for input in 0..wide.len() {
                let direction = random(wide[input].shape().to_vec(), 800);
                let expected = derivative(|h| {
                    let mut inputs = wide.clone();
                    inputs[input] = moved(&inputs[input], h, &direction);
                    let there = point.with(inputs, point.parameters.clone(), rows);
                    by_row(
                        &there.at(|l, at| l.jvp_parameter(at, slot, &tangent, Sets::Rows, rows)),
                        &cotangent,
                    )
                });
                let found =
                    point.at(|layer, at| layer.second_parameter(at, slot, &tangent, input, &cotangent));
                against(&format!("{what}, second, input {input}"), found, &direction, &expected);
            }
        }
    }
}

/// Single precision does the same, rounded.
fn single(case: &Case, point: &Point<f64>, specifications: &[ParameterSpecification]) {
    let single = Point::new(
        case.prepare::<f32>().layer,
        point.inputs.iter().map(Array::cast).collect(),
        point.parameters.iter().map(Array::cast).collect(),
        point.rows,
        point.mode,
    );
    let near = |what: &str, found: &[f32], expected: &[f64]| {
        let found: Vec<f64> = found.iter().map(|&v| f64::from(v)).collect();
        close(&format!("{}: single precision, {what}", case.name), &found, expected, 1e-5);
    };
    near("value", single.output.values(), point.output.values());
    let cotangent = random(point.output.shape().to_vec(), 900);
    for (input, x) in point.inputs.iter().enumerate() {
        let tangent = random(x.shape().to_vec(), 901);
        let pushed = point.at(|layer, at| layer.jvp_input(at, input, &tangent));
        near("jvp", single.at(|l, at| l.jvp_input(at, input, &tangent.cast())).values(), pushed.values());
        let pulled = point.at(|layer, at| layer.vjp_input(at, input, &cotangent));
        near("vjp", single.at(|l, at| l.vjp_input(at, input, &cotangent.cast())).values(), pulled.values());
    }
    for (slot, specification) in specifications.iter().enumerate().filter(|(_, s)| s.trainable) {
        let length: usize = specification.shape.iter().product();
        let (mut expected, mut found) = (vec![0.0f64; length], vec![0.0f32; length]);
        point.at(|l, at| l.vjp_parameter(at, slot, &cotangent, Sets::One, length, &mut expected));
        single.at(|l, at| l.vjp_parameter(at, slot, &cotangent.cast(), Sets::One, length, &mut found));
        near(specification.name, &found, &expected);
    }
}

/// No example at all: empty blocks, gradients of zero.
fn nothing(case: &Case, point: &Point<f64>, specifications: &[ParameterSpecification]) {
    let empty = point.with(case.draw(0), point.parameters.clone(), 0);
    assert_eq!(empty.output.shape(), batch_shape(0, &point.output.shape()[1..]), "{}", case.name);
    let cotangent = empty.output.clone();
    for (input, x) in empty.inputs.iter().enumerate() {
        assert!(empty.at(|layer, at| layer.jvp_input(at, input, x)).is_empty(), "{}", case.name);
        assert!(empty.at(|layer, at| layer.vjp_input(at, input, &cotangent)).is_empty(), "{}", case.name);
    }
    for (slot, specification) in specifications.iter().enumerate().filter(|(_, s)| s.trainable) {
        let length: usize = specification.shape.iter().product();
        let mut out = vec![0.0; length];
        empty.at(|layer, at| layer.vjp_parameter(at, slot, &cotangent, Sets::One, length, &mut out));
        assert!(out.iter().all(|&v| v == 0.0), "{}", case.name);
        let tangent = random(batch_shape(1, &specification.shape), 1);
        assert!(
            empty.at(|l, at| l.jvp_parameter(at, slot, &tangent, Sets::One, 0)).is_empty(),
            "{}",
            case.name
        );
    }
}
