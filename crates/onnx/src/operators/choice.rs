//! Choices: `Where` with a condition that is known (what is chosen is multiplied by 1, the rest by 0) or depends on the data, and triangles of matrices.

use super::super::constant::{Constant, Data, Origin, broadcast_positions, broadcast_shape};
use super::super::error::{Fault, short};
use super::super::importer::{Importer, Known, Parameter};
use super::super::layout::{Tracked, example_shape};
use super::super::node::Node;
use super::binary::{self, Aligned, add_number, align, plus, repeated, times, together, tracked};
use super::elementwise::{activation, scaled};
use posterior_networks::Activation;
use posterior_networks::operation::Operation;

/// `Where`: values of the second input where the condition holds, else of the third.
pub(super) fn choose(importer: &mut Importer<'_>, node: &Node) -> Result<Tracked, Fault> {
    let missing = || Fault::Problem("an input is missing".into());
    let yes = importer.get(node, 1).cloned().ok_or_else(missing)?;
    let no = importer.get(node, 2).cloned().ok_or_else(missing)?;
    let condition = match importer.get(node, 0).cloned().ok_or_else(missing)? {
        Known::Constant(condition) => condition,
        Known::Tracked(condition) => return by_data(importer, node, condition, [yes, no]),
    };
    importer.keep(&condition.shape)?;
    let holds: Vec<bool> = condition.dimensions()?.iter().map(|&d| d != 0.into()).collect();
    let mask = |wanted: bool| {
        let values = holds.iter().map(|&h| f64::from(u8::from(h == wanted))).collect();
        let origin = Origin::constant(format!("{}.mask", node.name));
        Constant::new(condition.shape.clone(), Data::Float(values), origin)
    };
    match (yes, no) {
        (Known::Tracked(yes), Known::Tracked(no)) => {
            let (yes, no) =
                (times(importer, node, yes, &mask(true))?, times(importer, node, no, &mask(false))?);
            tracked(importer, node, "Add", yes, no)
        }
        (Known::Tracked(x), Known::Constant(c)) => filled(importer, node, x, &c, &mask(true)),
        (Known::Constant(c), Known::Tracked(x)) => filled(importer, node, x, &c, &mask(false)),
        (Known::Constant(_), Known::Constant(_)) => Err(Fault::Unsupported(" of two constants".into())),
    }
}

/// A choice by numbers that are 1 or 0.
fn by_data(
    importer: &mut Importer<'_>,
    node: &Node,
    condition: Tracked,
    branches: [Known; 2],
) -> Result<Tracked, Fault> {
    // Everything with as many axes, the batch at one place, and as long as the longest.
    let mut condition = Tracked { whole: false, ..condition };
    let mut constants = [None, None];
    let mut values = [None, None];
    for (i, branch) in branches.into_iter().enumerate() {
        match branch {
            Known::Constant(c) => {
                let c = c.as_operand();
                condition = align(importer, node, condition, &c)?.x;
                constants[i] = Some(c);
            }
            Known::Tracked(x) => {
                let dims = broadcast_shape(&condition.dims, &x.dims)?;
                let (c, x) = together(importer, node, condition, x)?;
                condition = importer.broadcast(node, c, &dims)?;
                values[i] = Some(x);
            }
        }
    }
    let mut chosen = Vec::with_capacity(3);
    for i in 0..2 {
        let value = match (constants[i].take(), values[i].take()) {
            (Some(c), _) => {
                let Aligned { x, shape } = align(importer, node, condition.clone(), &c)?;
                importer.charge(c.len())?;
                let example = example_shape(&x.dims, x.place);
                repeated(importer, node, Parameter::new(&c, shape)?, example)?
            }
            (None, Some(x)) => {
                let (c, x) = together(importer, node, condition, x)?;
                let dims = c.dims.clone();
                condition = c;
                importer.broadcast(node, x, &dims)?.value
            }
            (None, None) => return Err("an input is missing".into()),
        };
        chosen.push(value);
    }
    chosen.insert(0, condition.value);
    let value = importer.emit(node, Operation::Choose, &chosen)?;
    Ok(Tracked { value, ..condition })
}

/// Comparisons and their combinations, as numbers that are 1 or 0.
pub(super) fn condition(importer: &mut Importer<'_>, node: &Node) -> Result<Tracked, Fault> {
    let operator = node.operator.as_str();
    let truth = match operator {
        "Not" => {
            let x = importer.tracked(node, 0)?;
            negated(importer, node, x)?
        }
        "And" => binary::fixed(importer, node, "Mul")?,
        "Or" => binary::fixed(importer, node, "Max")?,
        _ => {
            let difference = binary::fixed(importer, node, "Sub")?;
            let sign = activation(importer, node, difference, Activation::Sign)?;
            match operator {
                "Greater" => activation(importer, node, sign, Activation::Relu)?,
                "LessOrEqual" => {
                    let greater = activation(importer, node, sign, Activation::Relu)?;
                    negated(importer, node, greater)?
                }
                "Less" | "GreaterOrEqual" => {
                    let less = scaled(importer, node, sign, -1.0)?;
                    let less = activation(importer, node, less, Activation::Relu)?;
                    if operator == "Less" { less } else { negated(importer, node, less)? }
                }
                "Xor" => activation(importer, node, sign, Activation::Abs)?,
                _ => {
                    let unequal = activation(importer, node, sign, Activation::Abs)?;
                    negated(importer, node, unequal)?
                }
            }
        }
    };
    Ok(Tracked { whole: true, ..truth })
}

/// `1 - x`.
fn negated(importer: &mut Importer<'_>, node: &Node, x: Tracked) -> Result<Tracked, Fault> {
    let less = scaled(importer, node, x, -1.0)?;
    add_number(importer, node, less, 1.0)
}

/// `x` where the mask is 1, else a constant.
fn filled(
    importer: &mut Importer<'_>,
    node: &Node,
    x: Tracked,
    fill: &Constant,
    mask: &Constant,
) -> Result<Tracked, Fault> {
    let shape = broadcast_shape(&mask.shape, &fill.shape)?;
    importer.keep(&shape)?;
    if fill.origin.trainable && !fill.origin.filler {
        importer
            .notes
            .push(format!("`{}` fills what a mask hides, and stays as it is", short(&fill.origin.name)));
    }
    let (values, kept) = (fill.floats()?, mask.floats()?);
    let (from, at) = (broadcast_positions(&fill.shape, &shape), broadcast_positions(&mask.shape, &shape));
    let chosen = from.iter().zip(&at).map(|(&i, &m)| if kept[m] == 0.0 { values[i] } else { 0.0 });
    let origin = Origin::constant(format!("{}.fill", node.name));
    let chosen = Constant::new(shape, Data::Float(chosen.collect()), origin);
    let x = times(importer, node, x, mask)?;
    plus(importer, node, x, &chosen)
}

/// The upper or lower triangle of matrices.
pub(super) fn triangle(importer: &mut Importer<'_>, node: &Node) -> Result<Tracked, Fault> {
    let x = importer.tracked(node, 0)?;
    let diagonal = importer.constant(node, 1)?.and_then(|c| c.whole().ok()?.first().copied()).unwrap_or(0);
    let [.., rows, columns] = x.dims[..] else { return Err("it needs matrices".into()) };
    let rank = x.rank();
    let x = importer.release(node, x, rank - 1)?;
    let x = importer.release(node, x, rank - 2)?;
    importer.keep(&[rows, columns])?;
    let inside = in_triangle(node, diagonal);
    let values = (0..rows * columns).map(|i| f64::from(u8::from(inside(i / columns, i % columns)))).collect();
    let origin = Origin::constant(format!("{}.mask", node.name));
    times(importer, node, x, &Constant::new(vec![rows, columns], Data::Float(values), origin))
}

/// Whether an entry belongs to the triangle that `Trilu` keeps.
pub(in super::super) fn in_triangle(node: &Node, diagonal: i64) -> impl Fn(usize, usize) -> bool + use<> {
    let upper = node.int("upper").unwrap_or(1) != 0;
    move |row, column| {
        let distance = (column as i64).saturating_sub(row as i64);
        if upper { distance >= diagonal } else { distance <= diagonal }
    }
}
