//! Means, sums, norms, extremes and products over axes.

use super::super::error::Fault;
use super::super::importer::Importer;
use super::super::layout::{Tracked, axis};
use super::super::node::Node;
use super::elementwise::{activation, scaled};
use posterior_networks::Activation;
use posterior_networks::operation::{Extreme, Mean, Operation, Slice};

/// Factors of a product over axes at most.
const MOST_FACTORS: usize = 4096;

pub(super) fn translate(importer: &mut Importer<'_>, node: &Node) -> Result<Tracked, Fault> {
    let x = importer.tracked(node, 0)?;
    let rank = x.rank();
    let (axes, keep) = match node.operator.as_str() {
        "GlobalAveragePool" | "GlobalLpPool" => ((2..rank).collect(), true),
        operator => {
            let listed = importer.list(node, "axes", 1)?.unwrap_or_default();
            if listed.is_empty() && node.int("noop_with_empty_axes").unwrap_or(0) != 0 {
                return match operator {
                    "ReduceMean" | "ReduceSum" | "ReduceMax" | "ReduceMin" | "ReduceProd" => Ok(x),
                    _ => Err(Fault::Unsupported(" over no axes".into())),
                };
            }
            let axes = match listed.is_empty() {
                true => (0..rank).collect(),
                false => listed.iter().map(|&a| axis(a, rank)).collect::<Result<Vec<_>, _>>()?,
            };
            (axes, node.int("keepdims").unwrap_or(1) != 0)
        }
    };
    let x = Tracked { whole: false, ..x };
    let result = match node.operator.as_str() {
        "ReduceMax" => largest(importer, node, x, &axes)?,
        "ReduceMin" => {
            over(importer, node, x, &axes, |axes| Operation::Smallest(Extreme { axes, keep: true }))?
        }
        "ReduceProd" => product(importer, node, x, &axes)?,
        "ReduceSum" => sum(importer, node, x, &axes)?,
        "ReduceSumSquare" => {
            let squares = square(importer, node, &x)?;
            sum(importer, node, squares, &axes)?
        }
        "ReduceL1" => norm(importer, node, x, &axes, 1.0)?,
        "ReduceL2" => norm(importer, node, x, &axes, 2.0)?,
        "GlobalLpPool" => norm(importer, node, x, &axes, node.int("p").unwrap_or(2) as f64)?,
        "ReduceLogSum" => {
            let sum = sum(importer, node, x, &axes)?;
            activation(importer, node, sum, Activation::Log)?
        }
        "ReduceLogSumExp" => log_sum_exp(importer, node, x, &axes)?,
        _ => mean(importer, node, x, &axes)?,
    };
    if keep {
        return Ok(result);
    }
    super::shape::without(importer, node, &result, &axes)
}

/// What an operation over axes makes of `x`; the axes stay, with length 1.
fn over(
    importer: &mut Importer<'_>,
    node: &Node,
    x: Tracked,
    axes: &[usize],
    operation: impl Fn(Vec<usize>) -> Operation,
) -> Result<Tracked, Fault> {
    let mut x = x;
    for &a in axes {
        x = importer.release(node, x, a)?;
    }
    if x.place.is_some_and(|p| axes.contains(&p.axis)) {
        let dims = x.dims.clone();
        x = importer.view(node, &x, dims, None)?;
    }
    let mut over: Vec<usize> = axes.iter().filter_map(|&a| x.example_axis(a)).collect();
    over.sort_unstable();
    over.dedup();
    let dims: Vec<usize> =
        x.dims.iter().enumerate().map(|(a, &l)| if axes.contains(&a) { 1 } else { l }).collect();
    let value = match over.is_empty() {
        true => x.value,
        false => importer.emit(node, operation(over), &[x.value])?,
    };
    Ok(Tracked { value, dims, place: x.place, whole: false })
}

/// The mean over axes, which stay with length 1.
pub(super) fn mean(
    importer: &mut Importer<'_>,
    node: &Node,
    x: Tracked,
    axes: &[usize],
) -> Result<Tracked, Fault> {
    over(importer, node, x, axes, |axes| Operation::Mean(Mean { axes, keep: true }))
}

/// The sum over axes, which stay with length 1.
pub(super) fn sum(
    importer: &mut Importer<'_>,
    node: &Node,
    x: Tracked,
    axes: &[usize],
) -> Result<Tracked, Fault> {
    let number: usize = axes_once(axes).map(|a| x.dims[a]).product();
    let mean = mean(importer, node, x, axes)?;
    scaled(importer, node, mean, number as f64)
}

/// The largest value over axes, which stay with length 1.
pub(super) fn largest(
    importer: &mut Importer<'_>,
    node: &Node,
    x: Tracked,
    axes: &[usize],
) -> Result<Tracked, Fault> {
    over(importer, node, x, axes, |axes| Operation::Largest(Extreme { axes, keep: true }))
}

/// `x^2`.
pub(super) fn square(importer: &mut Importer<'_>, node: &Node, x: &Tracked) -> Result<Tracked, Fault> {
    let value = importer.emit(node, Operation::Multiply, &[x.value, x.value])?;
    Ok(Tracked { value, whole: false, ..x.clone() })
}

/// `|x|^p`.
pub(super) fn power_of_magnitude(
    importer: &mut Importer<'_>,
    node: &Node,
    x: &Tracked,
    p: f64,
) -> Result<Tracked, Fault> {
    if p == 2.0 {
        return square(importer, node, x);
    }
    if p < 1.0 {
        return Err(Fault::Unsupported(format!(" with p = {p}")));
    }
    let magnitude = activation(importer, node, x.clone(), Activation::Abs)?;
    match p {
        1.0 => Ok(magnitude),
        _ => activation(importer, node, magnitude, Activation::Power { exponent: p }),
    }
}

/// `x^(1 / p)`.
pub(super) fn root(importer: &mut Importer<'_>, node: &Node, x: Tracked, p: f64) -> Result<Tracked, Fault> {
    let kind = match p {
        1.0 => return Ok(x),
        2.0 => Activation::Sqrt,
        _ => Activation::Power { exponent: 1.0 / p },
    };
    activation(importer, node, x, kind)
}

/// The least sum of squares that a root is taken of: a normal number of single precision.
const LEAST_SQUARE: f64 = 1e-37;

/// `(sum of |x|^p)^(1 / p)` over axes, which stay with length 1.
pub(super) fn norm(
    importer: &mut Importer<'_>,
    node: &Node,
    x: Tracked,
    axes: &[usize],
    p: f64,
) -> Result<Tracked, Fault> {
    let powers = power_of_magnitude(importer, node, &x, p)?;
    let mut sum = sum(importer, node, powers, axes)?;
    if p == 2.0 {
        // The root has no derivative at 0, and the norm of zeros the derivative 0, as in PyTorch: nothing moves at the limit.
        let floor = Activation::Clip { low: LEAST_SQUARE, high: f64::MAX };
        sum = activation(importer, node, sum, floor)?;
    }
    root(importer, node, sum, p)
}

/// `ln sum exp x` over axes, which stay with length 1; the largest value is taken off before and added behind, so that nothing overflows.
pub(super) fn log_sum_exp(
    importer: &mut Importer<'_>,
    node: &Node,
    x: Tracked,
    axes: &[usize],
) -> Result<Tracked, Fault> {
    let top = largest(importer, node, x.clone(), axes)?;
    let moved = super::binary::tracked(importer, node, "Sub", x, top.clone())?;
    let exponentials = activation(importer, node, moved, Activation::Exp)?;
    let sum = sum(importer, node, exponentials, axes)?;
    let logarithm = activation(importer, node, sum, Activation::Log)?;
    super::binary::tracked(importer, node, "Add", logarithm, top)
}

/// The product over axes, which stay with length 1: halves of an axis are multiplied until one entry is left.
fn product(importer: &mut Importer<'_>, node: &Node, x: Tracked, axes: &[usize]) -> Result<Tracked, Fault> {
    let mut x = x;
    for a in axes_once(axes) {
        if x.dims[a] > MOST_FACTORS {
            return Err(Fault::Unsupported(format!(" of more than {MOST_FACTORS} values")));
        }
        x = importer.release(node, x, a)?;
        while x.dims[a] > 1 {
            let along = x.example_axis(a).ok_or("the axis holds the batch")?;
            let (length, half) = (x.dims[a], x.dims[a].div_ceil(2));
            let mut part = |start: usize, length: usize| {
                let slice = Slice { axis: along, start, step: 1, length };
                importer.emit(node, Operation::Slice(slice), &[x.value])
            };
            let pairs = length - half;
            let (first, second) = (part(0, pairs)?, part(half, pairs)?);
            let rest = if half > pairs { Some(part(pairs, 1)?) } else { None };
            let mut value = importer.emit(node, Operation::Multiply, &[first, second])?;
            if let Some(rest) = rest {
                value = importer.emit(node, Operation::Concatenate(along), &[value, rest])?;
            }
            x.value = value;
            x.dims[a] = half;
        }
    }
    Ok(x)
}

/// Each axis once.
fn axes_once(axes: &[usize]) -> impl Iterator<Item = usize> {
    axes.iter().enumerate().filter(|(i, a)| !axes[..*i].contains(a)).map(|(_, &a)| a)
}
