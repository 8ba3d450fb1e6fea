//! Fully connected layers.

use super::case::{Case, Point};
use super::check::check;
use super::numbers::{build, close, get, random};
use crate::array::{Sets, batch_shape};
use crate::operation::{Factors, Linear, Mode, Operation};

fn case(shape: &[usize], outputs: usize, bias: bool) -> Case {
    Case::new(Operation::Linear(Linear { outputs, bias }), &[shape], move |x, p| {
        let (x, columns) = (&x[0], *x[0].shape().last().unwrap());
        let shape = [&x.shape()[..x.shape().len() - 1], &[outputs]].concat();
        build(&shape, |at| {
            let (o, leading) = at.split_last().unwrap();
            let sum: f64 =
                (0..columns).map(|i| get(&p[0], &[*o, i]) * get(x, &[leading, &[i]].concat())).sum();
            sum + if bias { get(&p[1], &[*o]) } else { 0.0 }
        })
    })
}

#[test]
fn with_and_without_bias_and_leading_axes() {
    for bias in [true, false] {
        check(&case(&[5], 3, bias));
        check(&case(&[1], 1, bias).examples(5));
        check(&case(&[4, 5], 3, bias));
        check(&case(&[2, 3, 4], 6, bias));
        check(&case(&[1, 7], 2, bias).examples(1));
    }
}

#[test]
fn large_enough_for_threads() {
    check(&case(&[90], 40, true).examples(3));
}

/// The factors give the gradient of each row: `G[r] = sum over positions of sensitivity input^T`.
#[test]
fn factors_make_the_gradient() {
    for (shape, width) in [(vec![5], 1), (vec![5], 3), (vec![2, 3, 5], 1), (vec![2, 3, 5], 2)] {
        let point = case(&shape, 4, true).point(Mode::Evaluation);
        same_gradients(&point, width, &[4, 5]);
    }
}

/// Holds the factors of parameter 0 (of this shape, rows first) against its gradients by row.
pub(super) fn same_gradients(point: &Point<f64>, width: usize, shape: &[usize]) {
    let rows = point.rows * width;
    let (height, length) = (shape[0], shape.iter().product::<usize>());
    let cotangent = random(batch_shape(rows, &point.output.shape()[1..]), 3);
    let mut expected = vec![0.0; rows * length];
    point.at(|layer, at| layer.vjp_parameter(at, 0, &cotangent, Sets::Rows, length, &mut expected));
    let mut found = vec![0.0; expected.len()];
    point.at(|layer, at| {
        let Some(Factors::Outer { inputs, sensitivities, positions, transposed }) =
            layer.factors(at, 0, &cotangent)
        else {
            panic!("factors expected");
        };
        let (each, rows_in) = (inputs.len() / inputs.rows(), inputs.rows());
        // Stored as its transpose: the inputs make the rows of the parameter.
        let (columns, outputs) =
            if transposed { (height, length / height) } else { (length / height, height) };
        for r in 0..rows {
            let input = &inputs.values()[r / (rows / rows_in) * each..][..each];
            let sensitivity = sensitivities.row(r);
            for t in 0..positions {
                for o in 0..outputs {
                    for i in 0..columns {
                        let entry = if transposed { i * outputs + o } else { o * columns + i };
                        found[r * length + entry] += sensitivity[t * outputs + o] * input[t * columns + i];
                    }
                }
            }
        }
    });
    close("factors", &found, &expected, 1e-12);
}
