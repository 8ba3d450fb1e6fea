//! Functions of single values, and what inference takes as no function at all.

use super::super::error::Fault;
use super::super::importer::{Importer, Parameter};
use super::super::layout::Tracked;
use super::super::node::Node;
use posterior_networks::Activation;
use posterior_networks::operation::{Gain, Operation};

const SELU_ALPHA: f64 = 1.673_263_242_354_377_2;
const SELU_SCALE: f64 = 1.050_700_987_355_480_5;

pub(super) fn translate(importer: &mut Importer<'_>, node: &Node) -> Result<Tracked, Fault> {
    let x = importer.tracked(node, 0)?;
    let number = |name: &str, usual: f64| node.float(name).unwrap_or(usual);
    let kind = match node.operator.as_str() {
        "Identity" => return Ok(x),
        "Dropout" => return dropout(importer, node, x),
        "Cast" | "CastLike" => return cast(importer, node, x),
        "Pow" => return power(importer, node, &x),
        "Neg" => return scaled(importer, node, x, -1.0),
        "PRelu" => return prelu(importer, node, &x),
        "Clip" => return clip(importer, node, x),
        "Selu" => {
            let alpha = number("alpha", SELU_ALPHA);
            let elu = activation(importer, node, x, Activation::Elu { alpha })?;
            return scaled(importer, node, elu, number("gamma", SELU_SCALE));
        }
        "Relu" => Activation::Relu,
        "LeakyRelu" => Activation::LeakyRelu { slope: number("alpha", 0.01) },
        "Tanh" => Activation::Tanh,
        "Sigmoid" => Activation::Sigmoid,
        "Softplus" => Activation::Softplus,
        "Elu" => Activation::Elu { alpha: number("alpha", 1.0) },
        "Erf" => Activation::Erf,
        "Gelu" => match node.text("approximate").as_deref() {
            None | Some("none") => Activation::Gelu,
            Some("tanh") => Activation::GeluTanh,
            Some(other) => {
                return Err(Fault::Unsupported(format!(
                    " with approximate = `{}`",
                    super::super::error::short(other)
                )));
            }
        },
        // Constant, Shape and the like never get here.
        _ => return Err(Fault::Unsupported(" on values computed from the data".into())),
    };
    activation(importer, node, x, kind)
}

/// `kind(x)`.
pub(super) fn activation(
    importer: &mut Importer<'_>,
    node: &Node,
    x: Tracked,
    kind: Activation,
) -> Result<Tracked, Fault> {
    let value = importer.emit(node, Operation::Activation(kind), &[x.value])?;
    Ok(Tracked { value, ..x })
}

/// `factor * x`.
pub(super) fn scaled(
    importer: &mut Importer<'_>,
    node: &Node,
    x: Tracked,
    factor: f64,
) -> Result<Tracked, Fault> {
    if factor == 1.0 {
        return Ok(x);
    }
    let value = importer.emit(node, Operation::Scale(factor), &[x.value])?;
    Ok(Tracked { value, ..x })
}

fn dropout(importer: &mut Importer<'_>, node: &Node, x: Tracked) -> Result<Tracked, Fault> {
    let training = importer.constant(node, 2)?.and_then(|c| c.scalar()).is_some_and(|v| v != 0.0);
    if training {
        importer.notes.push(format!(
            "`{}`: dropout is left out, as in evaluation",
            super::super::error::short(&node.name)
        ));
    }
    Ok(x)
}

fn cast(importer: &mut Importer<'_>, node: &Node, x: Tracked) -> Result<Tracked, Fault> {
    let float = match node.operator.as_str() {
        // Both inputs of CastLike are of types that this reader computes with alike.
        "CastLike" => true,
        _ => matches!(node.int("to"), Some(1 | 10 | 11 | 16)),
    };
    let whole = matches!(node.int("to"), Some(6 | 7));
    if !(float || (x.whole && whole)) {
        return Err(Fault::Unsupported(
            " from numbers that are computed to a type that is not floating-point".into(),
        ));
    }
    let note = "casts between floating-point types are left out: everything is computed in one precision";
    if !importer.notes.iter().any(|n| n == note) {
        importer.notes.push(note.into());
    }
    Ok(x)
}

/// `x^1`, `x^2` and `x^3` as products.
fn power(importer: &mut Importer<'_>, node: &Node, x: &Tracked) -> Result<Tracked, Fault> {
    let exponent = importer.required(node, 1)?.scalar();
    let times = match exponent {
        Some(1.0) => 0,
        Some(2.0) => 1,
        Some(3.0) => 2,
        _ => {
            return Err(Fault::Unsupported(
                " with exponents other than 1, 2 and 3 (a root is read as part of a normalisation)".into(),
            ));
        }
    };
    let mut value = x.value;
    for _ in 0..times {
        value = importer.emit(node, Operation::Multiply, &[value, x.value])?;
    }
    Ok(Tracked { value, ..x.clone() })
}

/// `max(x, 0) - slope * max(-x, 0)`, or a leaky ReLU where the slope is a constant number.
fn prelu(importer: &mut Importer<'_>, node: &Node, x: &Tracked) -> Result<Tracked, Fault> {
    let slope = importer.required(node, 1)?;
    if let (Some(slope), false) = (slope.scalar(), slope.origin.trainable) {
        return activation(importer, node, x.clone(), Activation::LeakyRelu { slope });
    }
    let aligned = super::binary::align(importer, node, x.clone(), &slope)?;
    if aligned.x.dims != x.dims {
        return Err("the slope has more axes than its input".into());
    }
    let positive = importer.emit(node, Operation::Activation(Activation::Relu), &[x.value])?;
    let flipped = importer.emit(node, Operation::Scale(-1.0), &[x.value])?;
    let negative = importer.emit(node, Operation::Activation(Activation::Relu), &[flipped])?;
    let flipped = importer.emit(node, Operation::Scale(-1.0), &[negative])?;
    let parameter = Parameter::new(&slope, aligned.shape.clone())?;
    let gain = Operation::Gain(Gain { shape: aligned.shape });
    let negative = importer.emit_with(node, gain, &[flipped], vec![parameter])?;
    let value = importer.emit(node, Operation::Add, &[positive, negative])?;
    Ok(Tracked { value, ..x.clone() })
}

/// `max(x, 0)`; between two limits, `low + max(x - low, 0) - max(x - high, 0)`.
fn clip(importer: &mut Importer<'_>, node: &Node, x: Tracked) -> Result<Tracked, Fault> {
    let limit = |i: usize| -> Result<Option<f64>, Fault> {
        match importer.constant(node, i)? {
            None => Ok(None),
            Some(c) => Ok(Some(c.scalar().ok_or("a limit must be one number")?).filter(|v| v.abs() < 1e30)),
        }
    };
    let (low, high) = (limit(1)?, limit(2)?);
    let shifted =
        |importer: &mut Importer<'_>, x: Tracked, by: f64| super::binary::add_number(importer, node, x, by);
    let above = |importer: &mut Importer<'_>, x: Tracked, limit: f64| {
        let x = shifted(importer, x, -limit)?;
        activation(importer, node, x, Activation::Relu)
    };
    match (low, high) {
        (None, None) => Ok(x),
        (Some(low), None) => {
            let over = above(importer, x, low)?;
            shifted(importer, over, low)
        }
        (None, Some(high)) => {
            let over = above(importer, x.clone(), high)?;
            let less = scaled(importer, node, over, -1.0)?;
            let value = importer.emit(node, Operation::Add, &[x.value, less.value])?;
            Ok(Tracked { value, ..x })
        }
        (Some(low), Some(high)) if low <= high => {
            let first = above(importer, x.clone(), low)?;
            let second = above(importer, x, high)?;
            let less = scaled(importer, node, second, -1.0)?;
            let value = importer.emit(node, Operation::Add, &[first.value, less.value])?;
            shifted(importer, Tracked { value, ..first }, low)
        }
        _ => Err("the lower limit is above the upper one".into()),
    }
}
