//! Arithmetic on constants: whole numbers exactly (possibly with the number of examples in them), others in double precision.

use super::{made, need};
use crate::constant::{Constant, Data, broadcast_positions, broadcast_shape, count};
use crate::dimension::Dimension;
use crate::error::Fault;
use crate::importer::Importer;
use crate::layout::axis;
use crate::node::Node;
use crate::operators::in_triangle;

/// The result of a node that computes with constants; None for another operator.
pub(super) fn fold(
    importer: &mut Importer<'_>,
    node: &Node,
    inputs: &[Option<Constant>],
) -> Result<Option<Constant>, Fault> {
    let result = match node.operator.as_str() {
        "Add" | "Sub" | "Mul" | "Div" | "Mod" | "Pow" | "Equal" | "Greater" | "GreaterOrEqual" | "Less"
        | "LessOrEqual" | "And" | "Or" | "Xor" => {
            binary(importer, node, need(inputs, 0)?, need(inputs, 1)?, inputs)?
        }
        "Min" | "Max" | "Sum" => {
            let mut value = need(inputs, 0)?.clone();
            for other in inputs.iter().flatten().skip(1) {
                value = binary(importer, node, &value, other, inputs)?;
            }
            value
        }
        "Clip" => clip(importer, node, inputs)?,
        "Where" => choose(importer, node, inputs)?,
        "Trilu" => triangle(importer, node, inputs)?,
        "IsNaN" | "IsInf" => {
            let x = need(inputs, 0)?;
            importer.keep(&x.shape)?;
            let test = if node.operator == "IsNaN" { f64::is_nan } else { f64::is_infinite };
            let values = x.floats()?.into_iter().map(|v| truth(test(v))).collect();
            Constant::new(x.shape.clone(), Data::Whole(values), made(node, inputs))
        }
        "ReduceProd" | "ReduceSum" | "ReduceMax" | "ReduceMin" | "ReduceMean" | "ReduceL1" | "ReduceL2"
        | "ReduceSumSquare" => reduce(importer, node, inputs)?,
        _ => match unary(importer, node, inputs)? {
            Some(value) => value,
            None => return Ok(None),
        },
    };
    super::tell_computed(importer, node, &result);
    Ok(Some(result))
}

fn truth(value: bool) -> Dimension {
    Dimension::from(i64::from(value))
}

fn whole(operator: &str, c_like: bool, a: Dimension, b: Dimension) -> Result<Dimension, String> {
    Ok(match operator {
        "Add" | "Sum" => a.add(b)?,
        "Sub" => a.subtract(b)?,
        "Mul" => a.multiply(b)?,
        "Div" => a.divide(b)?,
        "Mod" => a.remainder(b, c_like)?,
        "Min" => {
            if a.compare(b)? <= 0 {
                a
            } else {
                b
            }
        }
        "Max" => {
            if a.compare(b)? >= 0 {
                a
            } else {
                b
            }
        }
        "Equal" => truth(a == b || a.compare(b)? == 0),
        "Greater" => truth(a.compare(b)? > 0),
        "GreaterOrEqual" => truth(a.compare(b)? >= 0),
        "Less" => truth(a.compare(b)? < 0),
        "LessOrEqual" => truth(a.compare(b)? <= 0),
        "And" => truth(a != 0.into() && b != 0.into()),
        "Or" => truth(a != 0.into() || b != 0.into()),
        "Xor" => truth((a != 0.into()) != (b != 0.into())),
        "Pow" => {
            let (Some(a), Some(b)) = (a.known(), b.known().and_then(|b| u32::try_from(b).ok())) else {
                return Err("a power with this exponent cannot be computed".into());
            };
            a.checked_pow(b).ok_or_else(|| format!("{a} to the power {b} does not fit into 64 bits"))?.into()
        }
        other => return Err(format!("`{other}` of whole numbers cannot be computed")),
    })
}

fn binary(
    importer: &mut Importer<'_>,
    node: &Node,
    a: &Constant,
    b: &Constant,
    inputs: &[Option<Constant>],
) -> Result<Constant, Fault> {
    let shape = broadcast_shape(&a.shape, &b.shape)?;
    importer.keep(&shape)?;
    let (left, right) = (broadcast_positions(&a.shape, &shape), broadcast_positions(&b.shape, &shape));
    let operator = node.operator.as_str();
    let data = if let (Data::Whole(a), Data::Whole(b)) = (&*a.data, &*b.data) {
        let c_like = node.int("fmod").unwrap_or(0) == 1;
        let values = left.iter().zip(&right).map(|(&i, &j)| whole(operator, c_like, a[i], b[j]));
        Data::Whole(values.collect::<Result<_, _>>()?)
    } else {
        let (a, b) = (a.floats()?, b.floats()?);
        let pairs = left.iter().zip(&right).map(|(&i, &j)| (a[i], b[j]));
        let compare: Option<fn(f64, f64) -> bool> = match operator {
            "Equal" => Some(|a, b| a == b),
            "Greater" => Some(|a, b| a > b),
            "GreaterOrEqual" => Some(|a, b| a >= b),
            "Less" => Some(|a, b| a < b),
            "LessOrEqual" => Some(|a, b| a <= b),
            _ => None,
        };
        let compute: fn(f64, f64) -> f64 = match operator {
            "Add" | "Sum" => |a, b| a + b,
            "Sub" => |a, b| a - b,
            "Mul" => |a, b| a * b,
            "Div" => |a, b| a / b,
            "Mod" => |a, b| a % b,
            "Pow" => f64::powf,
            "Min" => f64::min,
            _ => f64::max,
        };
        match compare {
            Some(compare) => Data::Whole(pairs.map(|(a, b)| truth(compare(a, b))).collect()),
            None => Data::Float(pairs.map(|(a, b)| compute(a, b)).collect()),
        }
    };
    Ok(Constant::new(shape, data, made(node, inputs)))
}

fn unary(
    importer: &mut Importer<'_>,
    node: &Node,
    inputs: &[Option<Constant>],
) -> Result<Option<Constant>, Fault> {
    let function: fn(f64) -> f64 = match node.operator.as_str() {
        "Sqrt" => f64::sqrt,
        "Exp" => f64::exp,
        "Log" => f64::ln,
        "Floor" => f64::floor,
        "Ceil" => f64::ceil,
        "Round" => f64::round_ties_even,
        "Reciprocal" => f64::recip,
        "Neg" => |v| -v,
        "Abs" => f64::abs,
        "Sin" => f64::sin,
        "Cos" => f64::cos,
        "Tan" => f64::tan,
        "Tanh" => f64::tanh,
        "Sigmoid" => |v| 1.0 / (1.0 + (-v).exp()),
        "Softplus" => |v| v.max(0.0) + (-v.abs()).exp().ln_1p(),
        "Relu" => |v| v.max(0.0),
        "Sign" => |v| if v == 0.0 { v } else { v.signum() },
        "Not" => |v| f64::from(u8::from(v == 0.0)),
        _ => return Ok(None),
    };
    let x = need(inputs, 0)?;
    importer.keep(&x.shape)?;
    let operator = node.operator.as_str();
    let data = match &*x.data {
        Data::Float(values) => Data::Float(values.iter().map(|&v| function(v)).collect()),
        Data::Whole(values) => {
            let each = |&v: &Dimension| match operator {
                "Neg" => Dimension::from(0).subtract(v),
                "Abs" => {
                    if v.compare(0.into())? < 0 {
                        Dimension::from(0).subtract(v)
                    } else {
                        Ok(v)
                    }
                }
                "Not" => Ok(truth(v == 0.into())),
                _ => Err(format!("`{operator}` of whole numbers cannot be computed")),
            };
            Data::Whole(values.iter().map(each).collect::<Result<_, String>>()?)
        }
    };
    Ok(Some(Constant::new(x.shape.clone(), data, made(node, inputs))))
}

/// Numbers between two limits, which are attributes before operator set 11.
fn clip(importer: &mut Importer<'_>, node: &Node, inputs: &[Option<Constant>]) -> Result<Constant, Fault> {
    let x = need(inputs, 0)?;
    importer.keep(&x.shape)?;
    let limit = |i: usize, attribute: &str| -> Result<Option<f64>, Fault> {
        match inputs.get(i) {
            Some(Some(c)) => Ok(Some(c.scalar().ok_or("a limit must be one number")?)),
            _ => Ok(node.float(attribute)),
        }
    };
    let (low, high) = (limit(1, "min")?, limit(2, "max")?);
    let within = |v: f64| v.max(low.unwrap_or(f64::NEG_INFINITY)).min(high.unwrap_or(f64::INFINITY));
    let data = match &*x.data {
        Data::Float(values) => Data::Float(values.iter().map(|&v| within(v)).collect()),
        Data::Whole(_) => Data::Whole(x.floats()?.into_iter().map(|v| (within(v) as i64).into()).collect()),
    };
    Ok(Constant::new(x.shape.clone(), data, made(node, inputs)))
}

fn choose(importer: &mut Importer<'_>, node: &Node, inputs: &[Option<Constant>]) -> Result<Constant, Fault> {
    let (condition, yes, no) = (need(inputs, 0)?, need(inputs, 1)?, need(inputs, 2)?);
    let shape = broadcast_shape(&broadcast_shape(&condition.shape, &yes.shape)?, &no.shape)?;
    importer.keep(&shape)?;
    let at = |c: &Constant| broadcast_positions(&c.shape, &shape);
    let (c, y, n) = (at(condition), at(yes), at(no));
    let test = condition.dimensions()?;
    let chosen = |i: usize| test[c[i]] != 0.into();
    let total = c.len();
    let data = match (&*yes.data, &*no.data) {
        (Data::Whole(a), Data::Whole(b)) => {
            Data::Whole((0..total).map(|i| if chosen(i) { a[y[i]] } else { b[n[i]] }).collect())
        }
        _ => {
            let (a, b) = (yes.floats()?, no.floats()?);
            Data::Float((0..total).map(|i| if chosen(i) { a[y[i]] } else { b[n[i]] }).collect())
        }
    };
    Ok(Constant::new(shape, data, made(node, inputs)))
}

/// The upper or lower triangle of matrices.
fn triangle(
    importer: &mut Importer<'_>,
    node: &Node,
    inputs: &[Option<Constant>],
) -> Result<Constant, Fault> {
    let x = need(inputs, 0)?;
    let diagonal = match inputs.get(1) {
        Some(Some(k)) => k.whole()?.first().copied().unwrap_or(0),
        _ => 0,
    };
    let [.., rows, columns] = x.shape[..] else { return Err("it needs matrices".into()) };
    importer.keep(&x.shape)?;
    let inside = in_triangle(node, diagonal);
    let kept = |i: usize| inside(i / columns % rows, i % columns);
    let data = match &*x.data {
        Data::Float(v) => Data::Float((0..v.len()).map(|i| if kept(i) { v[i] } else { 0.0 }).collect()),
        Data::Whole(v) => Data::Whole((0..v.len()).map(|i| if kept(i) { v[i] } else { 0.into() }).collect()),
    };
    Ok(Constant::new(x.shape.clone(), data, made(node, inputs)))
}

fn reduce(importer: &mut Importer<'_>, node: &Node, inputs: &[Option<Constant>]) -> Result<Constant, Fault> {
    let x = need(inputs, 0)?;
    let listed = importer.list(node, "axes", 1)?.unwrap_or_default();
    let mut over = listed.iter().map(|&a| axis(a, x.shape.len())).collect::<Result<Vec<_>, _>>()?;
    if over.is_empty() && node.int("noop_with_empty_axes").unwrap_or(0) == 0 {
        over = (0..x.shape.len()).collect();
    }
    let kept: Vec<usize> =
        x.shape.iter().enumerate().map(|(a, &l)| if over.contains(&a) { 1 } else { l }).collect();
    let size = importer.keep(&kept)?;
    let into = broadcast_positions(&kept, &x.shape);
    let operator = node.operator.as_str();
    let each = x.len() as f64 / size.max(1) as f64;
    let data = match &*x.data {
        Data::Whole(values)
            if !matches!(operator, "ReduceMean" | "ReduceL1" | "ReduceL2" | "ReduceSumSquare") =>
        {
            let pair = match operator {
                "ReduceProd" => "Mul",
                "ReduceSum" => "Add",
                "ReduceMax" => "Max",
                _ => "Min",
            };
            let mut out: Vec<Option<Dimension>> = vec![None; size];
            for (&to, &v) in into.iter().zip(values) {
                out[to] = Some(match out[to] {
                    Some(sum) => whole(pair, false, sum, v)?,
                    None => v,
                });
            }
            Data::Whole(out.into_iter().map(|v| v.ok_or("nothing to reduce")).collect::<Result<_, _>>()?)
        }
        _ => {
            let mut out: Vec<Option<f64>> = vec![None; size];
            for (&to, v) in into.iter().zip(x.floats()?) {
                let v = match operator {
                    "ReduceL1" => v.abs(),
                    "ReduceL2" | "ReduceSumSquare" => v * v,
                    _ => v,
                };
                out[to] = Some(match (out[to], operator) {
                    (None, _) => v,
                    (Some(sum), "ReduceProd") => sum * v,
                    (Some(sum), "ReduceMax") => sum.max(v),
                    (Some(sum), "ReduceMin") => sum.min(v),
                    (Some(sum), _) => sum + v,
                });
            }
            let finish = |v: f64| match operator {
                "ReduceMean" => v / each,
                "ReduceL2" => v.sqrt(),
                _ => v,
            };
            Data::Float(
                out.into_iter()
                    .map(|v| Ok(finish(v.ok_or("nothing to reduce")?)))
                    .collect::<Result<_, Fault>>()?,
            )
        }
    };
    let dropped = node.int("keepdims").unwrap_or(1) == 0;
    let shape: Vec<usize> =
        (0..kept.len()).filter(|a| !(dropped && over.contains(a))).map(|a| kept[a]).collect();
    debug_assert_eq!(count(&shape), Some(size));
    Ok(Constant::new(shape, data, made(node, inputs)))
}
