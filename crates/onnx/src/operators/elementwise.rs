//! Functions of single values, and what inference takes as no function at all.

use super::super::constant::MASKED;
use super::super::error::Fault;
use super::super::importer::{Importer, Known, Parameter};
use super::super::layout::Tracked;
use super::super::node::Node;
use posterior_networks::Activation;
use posterior_networks::operation::{Gain, Operation};

const SELU_ALPHA: f64 = 1.673_263_242_354_377_2;
const SELU_SCALE: f64 = 1.050_700_987_355_480_5;

pub(super) fn translate(importer: &mut Importer<'_>, node: &Node) -> Result<Tracked, Fault> {
    let x = importer.tracked(node, 0)?;
    let number = |name: &str, usual: f64| node.float(name).unwrap_or(usual);
    let found = match node.operator.as_str() {
        "Identity" => return Ok(x),
        "Dropout" => return dropout(importer, node, x),
        "Cast" | "CastLike" => return cast(importer, node, x),
        "Neg" => return scaled(importer, node, x, -1.0),
        "PRelu" => return prelu(importer, node, &x),
        "Clip" => return clip(importer, node, x),
        "Selu" => {
            let alpha = number("alpha", SELU_ALPHA);
            let elu = activation(importer, node, x, Activation::Elu { alpha })?;
            return scaled(importer, node, elu, number("gamma", SELU_SCALE));
        }
        "Ceil" => {
            let less = scaled(importer, node, x, -1.0)?;
            let floor = activation(importer, node, less, Activation::Floor)?;
            return scaled(importer, node, floor, -1.0);
        }
        "Tan" => {
            let sine = activation(importer, node, x.clone(), Activation::Sin)?;
            let cosine = activation(importer, node, x, Activation::Cos)?;
            let value = importer.emit(node, Operation::Divide, &[sine.value, cosine.value])?;
            return Ok(Tracked { value, ..sine });
        }
        "Swish" if importer.model.opset < 24 => {
            return Err(Fault::Unsupported(" before operator set 24".into()));
        }
        "Swish" => {
            let alpha = number("alpha", 1.0);
            if alpha == 0.0 {
                return scaled(importer, node, x, 0.5);
            }
            let wide = scaled(importer, node, x, alpha)?;
            let silu = activation(importer, node, wide, Activation::Silu)?;
            return scaled(importer, node, silu, 1.0 / alpha);
        }
        _ => kind(node)?,
    };
    activation(importer, node, x, found)
}

/// The activation that an operator is.
fn kind(node: &Node) -> Result<Activation, Fault> {
    let number = |name: &str, usual: f64| node.float(name).unwrap_or(usual);
    Ok(match node.operator.as_str() {
        "Relu" => Activation::Relu,
        "LeakyRelu" => Activation::LeakyRelu { slope: number("alpha", 0.01) },
        "ThresholdedRelu" => Activation::ThresholdedRelu { threshold: number("alpha", 1.0) },
        "Tanh" => Activation::Tanh,
        "Sigmoid" => Activation::Sigmoid,
        "HardSigmoid" => Activation::HardSigmoid { alpha: number("alpha", 0.2), beta: number("beta", 0.5) },
        "HardSwish" => Activation::HardSwish,
        "Mish" => Activation::Mish,
        "Softplus" => Activation::Softplus,
        "Softsign" => Activation::Softsign,
        "Elu" => Activation::Elu { alpha: number("alpha", 1.0) },
        "Celu" => Activation::Celu { alpha: number("alpha", 1.0) },
        "Shrink" => Activation::Shrink { threshold: number("lambd", 0.5), bias: number("bias", 0.0) },
        "Erf" => Activation::Erf,
        "Sin" => Activation::Sin,
        "Cos" => Activation::Cos,
        "Exp" => Activation::Exp,
        "Log" => Activation::Log,
        "Sqrt" => Activation::Sqrt,
        "Reciprocal" => Activation::Reciprocal,
        "Abs" => Activation::Abs,
        "Sign" => Activation::Sign,
        "Floor" => Activation::Floor,
        "Round" => Activation::Round,
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
    })
}

/// `kind(x)`.
pub(super) fn activation(
    importer: &mut Importer<'_>,
    node: &Node,
    x: Tracked,
    kind: Activation,
) -> Result<Tracked, Fault> {
    let value = importer.emit(node, Operation::Activation(kind), &[x.value])?;
    Ok(Tracked { value, whole: false, ..x })
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
    if node.operator == "Cast" && node.int("to") == Some(9) {
        // To truth values: whether a number is not 0.
        let sign = activation(importer, node, x, Activation::Sign)?;
        let truth = activation(importer, node, sign, Activation::Abs)?;
        return Ok(Tracked { whole: true, ..truth });
    }
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

/// `x` to a constant power (2 and 3 as products), or a positive constant to the power `x`.
pub(super) fn power(importer: &mut Importer<'_>, node: &Node) -> Result<Tracked, Fault> {
    if let (Some(Known::Constant(base)), Some(Known::Tracked(x))) =
        (importer.get(node, 0).cloned(), importer.get(node, 1).cloned())
    {
        let base = base.scalar().filter(|b| *b > 0.0 && b.is_finite());
        let base =
            base.ok_or_else(|| Fault::Unsupported(" of a base that is not one positive number".into()))?;
        let exponent = scaled(importer, node, x, base.ln())?;
        return activation(importer, node, exponent, Activation::Exp);
    }
    let x = importer.tracked(node, 0)?;
    let exponents = importer.required(node, 1)?;
    let exponent = exponents.floats()?.first().copied().filter(|&e| exponents.all(e));
    let exponent = exponent.ok_or_else(|| Fault::Unsupported(" with exponents that differ".into()))?;
    let kind = match exponent {
        1.0 => return Ok(Tracked { whole: false, ..x }),
        0.5 => Activation::Sqrt,
        -1.0 => Activation::Reciprocal,
        2.0 | 3.0 => {
            let mut value = importer.emit(node, Operation::Multiply, &[x.value, x.value])?;
            if exponent > 2.0 {
                value = importer.emit(node, Operation::Multiply, &[value, x.value])?;
            }
            return Ok(Tracked { value, whole: false, ..x });
        }
        _ => Activation::Power { exponent },
    };
    activation(importer, node, x, kind)
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

/// `x` between two limits, where there are some.
fn clip(importer: &mut Importer<'_>, node: &Node, x: Tracked) -> Result<Tracked, Fault> {
    let limit = |i: usize, attribute: &str, none: f64| -> Result<f64, Fault> {
        let given = match importer.constant(node, i)? {
            Some(c) => Some(c.scalar().ok_or("a limit must be one number")?),
            None => node.float(attribute),
        };
        // The largest numbers of single precision are how exporters write that there is no limit.
        Ok(given.filter(|v| v.abs() < MASKED).unwrap_or(none))
    };
    let (low, high) = (limit(1, "min", -f64::MAX)?, limit(2, "max", f64::MAX)?);
    clipped(importer, node, x, low, high)
}

/// `x` between two limits.
pub(super) fn clipped(
    importer: &mut Importer<'_>,
    node: &Node,
    x: Tracked,
    low: f64,
    high: f64,
) -> Result<Tracked, Fault> {
    if low > high {
        return Err("the lower limit is above the upper one".into());
    }
    if (low, high) == (-f64::MAX, f64::MAX) {
        return Ok(x);
    }
    if (low, high) == (0.0, f64::MAX) {
        return activation(importer, node, x, Activation::Relu);
    }
    activation(importer, node, x, Activation::Clip { low, high })
}
