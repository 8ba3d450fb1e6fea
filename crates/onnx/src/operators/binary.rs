//! Sums, products, quotients and extremes, of two computed values or of one with a constant.

use super::super::constant::{Constant, Data, Origin, broadcast_shape};
use super::super::error::{Fault, short};
use super::super::importer::{Importer, Known, Parameter};
use super::super::layout::{Place, Tracked, example_shape};
use super::super::node::Node;
use super::elementwise::{activation, clipped, scaled};
use posterior_networks::Activation;
use posterior_networks::graph::Value;
use posterior_networks::operation::{Bias, Broadcast, Gain, Learned, Operation};

pub(super) fn translate(importer: &mut Importer<'_>, node: &Node) -> Result<Tracked, Fault> {
    let mut inputs = Vec::with_capacity(node.inputs.len());
    for i in 0..node.inputs.len() {
        inputs.push(
            importer.get(node, i).cloned().ok_or_else(|| Fault::Problem(format!("input {i} is missing")))?,
        );
    }
    let operator = node.operator.as_str();
    let many = matches!(operator, "Sum" | "Mean" | "Max" | "Min");
    let number = inputs.len() as f64;
    if !many && inputs.len() != 2 {
        return Err("two inputs are needed".into());
    }
    let mut inputs = inputs.into_iter();
    let Some(mut sum) = inputs.next() else { return Err("inputs are missing".into()) };
    let pairwise = if matches!(operator, "Sum" | "Mean") { "Add" } else { operator };
    for next in inputs {
        sum = Known::Tracked(pair(importer, node, pairwise, sum, next)?);
    }
    match sum {
        Known::Tracked(tracked) if operator == "Mean" => scaled(importer, node, tracked, 1.0 / number),
        Known::Tracked(tracked) => Ok(tracked),
        Known::Constant(_) => Err(Fault::Unsupported(" of one constant".into())),
    }
}

/// Two inputs joined as by another operator, with constants that are not trained.
pub(super) fn fixed(importer: &mut Importer<'_>, node: &Node, operator: &str) -> Result<Tracked, Fault> {
    let input = |i: usize| match importer.get(node, i).cloned() {
        Some(Known::Constant(mut c)) => {
            c.origin.trainable = false;
            Ok(Known::Constant(c))
        }
        Some(known) => Ok(known),
        None => Err(Fault::Problem(format!("input {i} is missing"))),
    };
    let (a, b) = (input(0)?, input(1)?);
    pair(importer, node, operator, a, b)
}

/// Whether a value holds whole numbers.
fn is_whole(known: &Known) -> bool {
    match known {
        Known::Constant(c) => c.float_slice().is_none(),
        Known::Tracked(x) => x.whole,
    }
}

/// Two values joined; what is made of whole numbers is whole.
fn pair(
    importer: &mut Importer<'_>,
    node: &Node,
    operator: &str,
    a: Known,
    b: Known,
) -> Result<Tracked, Fault> {
    let whole = is_whole(&a) && is_whole(&b);
    if whole && operator == "Div" {
        return Err(Fault::Unsupported(
            " of whole numbers that depend on the data, whose rest is dropped: divide floats, and take `Floor`".into(),
        ));
    }
    Ok(Tracked { whole, ..joined(importer, node, operator, a, b)? })
}

fn joined(
    importer: &mut Importer<'_>,
    node: &Node,
    operator: &str,
    a: Known,
    b: Known,
) -> Result<Tracked, Fault> {
    match (a, b) {
        (Known::Tracked(a), Known::Tracked(b)) => tracked(importer, node, operator, a, b),
        (Known::Tracked(x), Known::Constant(c)) | (Known::Constant(c), Known::Tracked(x))
            if matches!(operator, "Max" | "Min") =>
        {
            extreme(importer, node, x, &c, operator == "Max")
        }
        (Known::Tracked(x), Known::Constant(c)) => match operator {
            "Add" => plus(importer, node, x, &c),
            "Sub" => {
                let c = changed(importer, c, "its negative", |v| -v)?;
                plus(importer, node, x, &c)
            }
            "Mul" => times(importer, node, x, &c),
            _ => {
                let c = changed(importer, c, "its reciprocal", f64::recip)?;
                times(importer, node, x, &c)
            }
        },
        (Known::Constant(c), Known::Tracked(x)) => match operator {
            "Add" => plus(importer, node, x, &c),
            "Sub" => {
                let x = scaled(importer, node, x, -1.0)?;
                plus(importer, node, x, &c)
            }
            "Mul" => times(importer, node, x, &c),
            _ => {
                let inverse = activation(importer, node, x, Activation::Reciprocal)?;
                times(importer, node, inverse, &c)
            }
        },
        (Known::Constant(_), Known::Constant(_)) => Err(Fault::Unsupported(" of two constants".into())),
    }
}

/// The constant with a function applied; a weight becomes a parameter that stands for it.
fn changed(
    importer: &mut Importer<'_>,
    c: Constant,
    what: &str,
    function: impl Fn(f64) -> f64,
) -> Result<Constant, Fault> {
    importer.charge(c.len())?;
    let values = c.floats()?.into_iter().map(function).collect();
    if c.origin.trainable {
        importer.notes.push(format!("`{}` is kept as {what}", short(&c.origin.name)));
    }
    Ok(Constant::new(c.shape, Data::Float(values), c.origin))
}

pub(super) fn tracked(
    importer: &mut Importer<'_>,
    node: &Node,
    operator: &str,
    a: Tracked,
    b: Tracked,
) -> Result<Tracked, Fault> {
    let (a, b) = together(importer, node, a, b)?;
    let dims = broadcast_shape(&a.dims, &b.dims)?;
    let (a, b) = (importer.broadcast(node, a, &dims)?, importer.broadcast(node, b, &dims)?);
    let value = match operator {
        "Add" => importer.emit(node, Operation::Add, &[a.value, b.value])?,
        "Sub" => {
            let less = scaled(importer, node, b, -1.0)?;
            importer.emit(node, Operation::Add, &[a.value, less.value])?
        }
        "Mul" => importer.emit(node, Operation::Multiply, &[a.value, b.value])?,
        "Max" => importer.emit(node, Operation::Maximum, &[a.value, b.value])?,
        "Min" => importer.emit(node, Operation::Minimum, &[a.value, b.value])?,
        _ => importer.emit(node, Operation::Divide, &[a.value, b.value])?,
    };
    Ok(Tracked { value, whole: false, ..a })
}

/// Two values with as many axes and the batch axis at the same place.
pub(super) fn together(
    importer: &mut Importer<'_>,
    node: &Node,
    a: Tracked,
    b: Tracked,
) -> Result<(Tracked, Tracked), Fault> {
    let rank = a.rank().max(b.rank());
    let (a, b) = (importer.pad_rank(node, a, rank)?, importer.pad_rank(node, b, rank)?);
    if a.place == b.place {
        return Ok((a, b));
    }
    if importer.model.dynamic {
        return Err(Fault::Batch("the batch is at different axes of its inputs".into()));
    }
    let common = (0..rank).find(|&i| a.dims[i] == 1 && b.dims[i] == 1);
    let place = common.map(|axis| Place { axis, outer: 1 });
    let (a_dims, b_dims) = (a.dims.clone(), b.dims.clone());
    Ok((importer.view(node, &a, a_dims, place)?, importer.view(node, &b, b_dims, place)?))
}

/// A value and the shape, for one example, of a constant that meets it.
pub(super) struct Aligned {
    pub(super) x: Tracked,
    pub(super) shape: Vec<usize>,
}

/// Broadcasts `x` to what it and the constant make together.
pub(super) fn align(
    importer: &mut Importer<'_>,
    node: &Node,
    x: Tracked,
    c: &Constant,
) -> Result<Aligned, Fault> {
    let mut x = importer.pad_rank(node, x, c.shape.len())?;
    let more = x.rank() - c.shape.len();
    let shape: Vec<usize> = std::iter::repeat_n(1, more).chain(c.shape.iter().copied()).collect();
    if let Some(place) = x.place
        && shape[place.axis] != 1
    {
        if importer.model.dynamic {
            return Err(Fault::Batch("a constant has an entry for each example".into()));
        }
        x = importer.release(node, x, place.axis)?;
        if x.place.is_some_and(|p| shape[p.axis] != 1) {
            let dims = x.dims.clone();
            x = importer.view(node, &x, dims, None)?;
        }
    }
    let dims = broadcast_shape(&x.dims, &shape)?;
    let x = importer.broadcast(node, x, &dims)?;
    // Of the constant, the axis that the value of the graph does not have; then axes of length 1 in front.
    let gone = x.place.filter(|p| x.dims[p.axis] == 1).map(|p| p.axis);
    let shape: Vec<usize> = (0..shape.len()).filter(|&a| Some(a) != gone).map(|a| shape[a]).collect();
    let ones = shape.iter().take_while(|&&l| l == 1).count().min(shape.len().saturating_sub(1));
    Ok(Aligned { x, shape: shape[ones..].to_vec() })
}

/// `x + c`.
pub(super) fn plus(
    importer: &mut Importer<'_>,
    node: &Node,
    x: Tracked,
    c: &Constant,
) -> Result<Tracked, Fault> {
    with_constant(importer, node, x, c, false)
}

/// `x * c`.
pub(super) fn times(
    importer: &mut Importer<'_>,
    node: &Node,
    x: Tracked,
    c: &Constant,
) -> Result<Tracked, Fault> {
    with_constant(importer, node, x, c, true)
}

/// `x + by`.
pub(super) fn add_number(
    importer: &mut Importer<'_>,
    node: &Node,
    x: Tracked,
    by: f64,
) -> Result<Tracked, Fault> {
    let origin = Origin::constant(format!("{}.{by}", node.name));
    with_constant(importer, node, x, &Constant::new(vec![], Data::Float(vec![by]), origin), false)
}

/// The larger (or the smaller) of `x` and a constant.
fn extreme(
    importer: &mut Importer<'_>,
    node: &Node,
    x: Tracked,
    c: &Constant,
    largest: bool,
) -> Result<Tracked, Fault> {
    let c = &c.as_operand();
    let Aligned { x, shape } = align(importer, node, x, c)?;
    let x = Tracked { whole: false, ..x };
    if let (Some(limit), false) = (c.scalar(), c.origin.trainable) {
        let (low, high) = if largest { (limit, f64::MAX) } else { (-f64::MAX, limit) };
        return clipped(importer, node, x, low, high);
    }
    importer.charge(c.len())?;
    let parameter = Parameter::new(c, shape)?;
    let example = example_shape(&x.dims, x.place);
    let other = repeated(importer, node, parameter, example)?;
    let operation = if largest { Operation::Maximum } else { Operation::Minimum };
    let value = importer.emit(node, operation, &[x.value, other])?;
    Ok(Tracked { value, ..x })
}

/// A constant as a value of its own, repeated to a shape.
pub(super) fn repeated(
    importer: &mut Importer<'_>,
    node: &Node,
    parameter: Parameter,
    shape: Vec<usize>,
) -> Result<Value, Fault> {
    let learned = Operation::Learned(Learned { shape: parameter.array.shape().to_vec() });
    let learned = importer.emit_with(node, learned, &[], vec![parameter])?;
    importer.emit(node, Operation::Broadcast(Broadcast { shape }), &[learned])
}

/// `x + c` or `x * c`.
fn with_constant(
    importer: &mut Importer<'_>,
    node: &Node,
    x: Tracked,
    c: &Constant,
    product: bool,
) -> Result<Tracked, Fault> {
    let along = x.place.and_then(|p| (p.axis + c.shape.len()).checked_sub(x.rank()));
    let c = &along.and_then(|a| importer.one_example(c, a)).unwrap_or_else(|| c.clone()).as_operand();
    let Aligned { x, shape } = align(importer, node, x, c)?;
    let x = Tracked { whole: false, ..x };
    if !c.origin.trainable {
        if c.all(if product { 1.0 } else { 0.0 }) && c.len() > 0 {
            if c.origin.filler {
                importer.notes.push(format!("`{}` changes nothing and was left out", short(&c.origin.name)));
            }
            return Ok(x);
        }
        if let (true, Some(factor)) = (product, c.scalar()) {
            return scaled(importer, node, x, factor);
        }
    }
    importer.charge(c.len())?;
    let parameter = Parameter::new(c, shape.clone())?;
    let example = example_shape(&x.dims, x.place);
    let bias = Bias { shape };
    let value = if bias.broadcasts_over(&example) {
        let operation =
            if product { Operation::Gain(Gain { shape: bias.shape }) } else { Operation::Bias(bias) };
        importer.emit_with(node, operation, &[x.value], vec![parameter])?
    } else {
        // Axes that are not next to each other.
        let repeated = repeated(importer, node, parameter, example)?;
        let operation = if product { Operation::Multiply } else { Operation::Add };
        importer.emit(node, operation, &[x.value, repeated])?
    };
    Ok(Tracked { value, ..x })
}
