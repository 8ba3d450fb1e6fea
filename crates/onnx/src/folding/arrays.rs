//! Constants made by position: sums along an axis, entries that are not zero, entries that are replaced, diagonals, and products of matrices.

use super::{made, need};
use crate::constant::{Constant, Data, broadcast_positions, broadcast_shape, count, strides};
use crate::dimension::Dimension;
use crate::error::Fault;
use crate::importer::Importer;
use crate::layout::axis;
use crate::node::Node;

/// The result of a node; None for another operator.
pub(super) fn fold(
    importer: &mut Importer<'_>,
    node: &Node,
    inputs: &[Option<Constant>],
) -> Result<Option<Constant>, Fault> {
    let (shape, data) = match node.operator.as_str() {
        "CumSum" => cumulative(importer, node, inputs)?,
        "NonZero" => not_zero(importer, need(inputs, 0)?)?,
        "OneHot" => one_hot(importer, node, inputs)?,
        "EyeLike" => diagonal(importer, node, need(inputs, 0)?)?,
        "ScatterND" => scatter_blocks(importer, node, inputs)?,
        "ScatterElements" => scatter_entries(importer, node, inputs)?,
        "GatherND" => gather_blocks(importer, node, inputs)?,
        "GatherElements" => gather_entries(importer, node, inputs)?,
        "MatMul" => matrices(importer, inputs)?,
        _ => return Ok(None),
    };
    let result = Constant::new(shape, data, made(node, inputs));
    super::tell_computed(importer, node, &result);
    Ok(Some(result))
}

/// A shape with its numbers.
type Made = (Vec<usize>, Data);

/// Lengths before, along and behind an axis.
fn blocks(shape: &[usize], along: usize) -> [usize; 3] {
    [shape[..along].iter().product(), shape[along], shape[along + 1..].iter().product()]
}

/// An index counted from either end.
fn index(at: i64, length: usize) -> Result<usize, String> {
    axis(at, length).map_err(|_| format!("there is no index {at} of {length}"))
}

fn cumulative(importer: &mut Importer<'_>, node: &Node, inputs: &[Option<Constant>]) -> Result<Made, Fault> {
    let x = need(inputs, 0)?;
    let along = need(inputs, 1)?.whole()?.first().copied().ok_or("the axis is missing")?;
    let [outer, length, inner] = blocks(&x.shape, axis(along, x.shape.len())?);
    importer.keep(&x.shape)?;
    let set = |name: &str| node.int(name).unwrap_or(0) != 0;
    let (exclusive, reverse) = (set("exclusive"), set("reverse"));
    // Positions of each sum's terms, in order.
    let position =
        |o: usize, k: usize, i: usize| (o * length + if reverse { length - 1 - k } else { k }) * inner + i;
    let mut order = Vec::with_capacity(x.len());
    for o in 0..outer {
        for i in 0..inner {
            order.extend((0..length).map(|k| position(o, k, i)));
        }
    }
    let data = match &*x.data {
        Data::Float(values) => {
            let mut out = vec![0.0; values.len()];
            for row in order.chunks(length.max(1)) {
                let mut sum = 0.0;
                for &at in row {
                    out[at] = if exclusive { sum } else { sum + values[at] };
                    sum += values[at];
                }
            }
            Data::Float(out)
        }
        Data::Whole(values) => {
            let mut out = vec![Dimension::from(0); values.len()];
            for row in order.chunks(length.max(1)) {
                let mut sum = Dimension::from(0);
                for &at in row {
                    let next = sum.add(values[at])?;
                    out[at] = if exclusive { sum } else { next };
                    sum = next;
                }
            }
            Data::Whole(out)
        }
    };
    Ok((x.shape.clone(), data))
}

/// Coordinates of the entries that are not zero, an axis a row.
fn not_zero(importer: &mut Importer<'_>, x: &Constant) -> Result<Made, Fault> {
    let found: Vec<usize> = match &*x.data {
        Data::Float(values) => (0..values.len()).filter(|&i| values[i] != 0.0).collect(),
        Data::Whole(_) => {
            let values = x.whole()?;
            (0..values.len()).filter(|&i| values[i] != 0).collect()
        }
    };
    let shape = vec![x.shape.len(), found.len()];
    importer.keep(&shape)?;
    let steps = strides(&x.shape);
    let coordinate = |axis: usize, at: usize| (at / steps[axis] % x.shape[axis].max(1)) as i64;
    let row = |axis: usize| found.iter().map(move |&at| Dimension::from(coordinate(axis, at)));
    Ok((shape, Data::Whole((0..x.shape.len()).flat_map(row).collect())))
}

fn one_hot(importer: &mut Importer<'_>, node: &Node, inputs: &[Option<Constant>]) -> Result<Made, Fault> {
    let (indices, values) = (need(inputs, 0)?, need(inputs, 2)?);
    let depth =
        need(inputs, 1)?.scalar().filter(|d| (1.0..1e9).contains(d)).ok_or("the depth is no length")?;
    let depth = depth as usize;
    let rank = indices.shape.len();
    let along = axis(node.int("axis").unwrap_or(-1), rank + 1)?;
    let mut shape = indices.shape.clone();
    shape.insert(along, depth);
    importer.keep(&shape)?;
    if values.len() != 2 {
        return Err("there must be two values".into());
    }
    let [outer, _, inner] = blocks(&shape, along);
    let at: Vec<i64> = indices.floats()?.into_iter().map(|v| v as i64).collect();
    let on = |o: usize, k: usize, i: usize| {
        let wanted = at[o * inner + i];
        usize::from((if wanted < 0 { wanted + depth as i64 } else { wanted }) == k as i64)
    };
    let mut chosen = Vec::with_capacity(outer * depth * inner);
    for o in 0..outer {
        for k in 0..depth {
            chosen.extend((0..inner).map(|i| on(o, k, i)));
        }
    }
    let picked = values.pick(shape.clone(), &chosen, values.origin.clone());
    Ok((shape, (*picked.data).clone()))
}

fn diagonal(importer: &mut Importer<'_>, node: &Node, like: &Constant) -> Result<Made, Fault> {
    let &[rows, columns] = &like.shape[..] else { return Err("it needs a matrix".into()) };
    importer.keep(&[rows, columns])?;
    let shift = node.int("k").unwrap_or(0);
    let one = |at: usize| i128::from(shift) == (at % columns) as i128 - (at / columns) as i128;
    let float = match node.int("dtype") {
        Some(kind) => matches!(kind, 1 | 10 | 11 | 16),
        None => like.float_slice().is_some(),
    };
    let entries = (0..rows * columns).map(one);
    let data = match float {
        true => Data::Float(entries.map(|e| f64::from(u8::from(e))).collect()),
        false => Data::Whole(entries.map(|e| Dimension::from(i64::from(e))).collect()),
    };
    Ok((vec![rows, columns], data))
}

/// The numbers of `x` with those of `updates` at `targets`.
fn replaced(x: &Constant, updates: &Constant, targets: &[usize]) -> Result<Data, Fault> {
    Ok(match (&*x.data, &*updates.data) {
        (Data::Whole(values), Data::Whole(new)) => {
            let mut out = values.clone();
            targets.iter().zip(new).for_each(|(&at, &v)| out[at] = v);
            Data::Whole(out)
        }
        _ => {
            let mut out = x.floats()?;
            targets.iter().zip(updates.floats()?).for_each(|(&at, v)| out[at] = v);
            Data::Float(out)
        }
    })
}

fn plain(node: &Node) -> Result<(), Fault> {
    match node.text("reduction").as_deref() {
        None | Some("none") => Ok(()),
        Some(other) => Err(Fault::Unsupported(format!(" with reduction = `{}`", crate::error::short(other)))),
    }
}

/// Where the blocks that the last axis of `indices` names begin in a tensor of this shape, and how long each is.
fn starts(shape: &[usize], indices: &Constant) -> Result<(Vec<usize>, Vec<usize>), Fault> {
    let (depth, leading) = indices.shape.split_last().ok_or("the indices are a single number")?;
    if *depth > shape.len() || *depth == 0 {
        return Err("the indices have more axes than the data".into());
    }
    let steps = strides(shape);
    let mut begin = Vec::with_capacity(indices.len() / depth);
    for row in indices.whole()?.chunks(*depth) {
        let mut at = 0;
        for (axis, &i) in row.iter().enumerate() {
            at += index(i, shape[axis])? * steps[axis];
        }
        begin.push(at);
    }
    Ok((begin, [leading, &shape[*depth..]].concat()))
}

fn scatter_blocks(
    importer: &mut Importer<'_>,
    node: &Node,
    inputs: &[Option<Constant>],
) -> Result<Made, Fault> {
    plain(node)?;
    let (x, indices, updates) = (need(inputs, 0)?, need(inputs, 1)?, need(inputs, 2)?);
    importer.keep(&x.shape)?;
    let (begin, shape) = starts(&x.shape, indices)?;
    if updates.shape != shape {
        return Err(Fault::Problem(format!(
            "the updates have shape {:?}, {shape:?} is needed",
            updates.shape
        )));
    }
    let each = updates.len() / begin.len().max(1);
    let targets: Vec<usize> = begin.into_iter().flat_map(|at| at..at + each).collect();
    Ok((x.shape.clone(), replaced(x, updates, &targets)?))
}

fn gather_blocks(
    importer: &mut Importer<'_>,
    node: &Node,
    inputs: &[Option<Constant>],
) -> Result<Made, Fault> {
    if node.int("batch_dims").unwrap_or(0) != 0 {
        return Err(Fault::Unsupported(" with `batch_dims`".into()));
    }
    let (x, indices) = (need(inputs, 0)?, need(inputs, 1)?);
    let (begin, shape) = starts(&x.shape, indices)?;
    let total = importer.keep(&shape)?;
    let each = total / begin.len().max(1);
    let positions: Vec<usize> = begin.into_iter().flat_map(|at| at..at + each).collect();
    Ok((shape.clone(), (*x.pick(shape, &positions, x.origin.clone()).data).clone()))
}

/// Positions in a tensor of shape `shape` of the entries that `indices` name along an axis.
fn entries(shape: &[usize], indices: &Constant, along: usize) -> Result<Vec<usize>, Fault> {
    let fits = indices.shape.len() == shape.len()
        && (0..shape.len()).all(|a| a == along || indices.shape[a] <= shape[a]);
    if !fits {
        return Err("the indices have another shape than the data".into());
    }
    let (to, from) = (strides(shape), strides(&indices.shape));
    let mut out = Vec::with_capacity(indices.len());
    for (number, &i) in indices.whole()?.iter().enumerate() {
        let mut at = index(i, shape[along])? * to[along];
        for a in (0..shape.len()).filter(|&a| a != along) {
            at += number / from[a] % indices.shape[a] * to[a];
        }
        out.push(at);
    }
    Ok(out)
}

fn scatter_entries(
    importer: &mut Importer<'_>,
    node: &Node,
    inputs: &[Option<Constant>],
) -> Result<Made, Fault> {
    plain(node)?;
    let (x, indices, updates) = (need(inputs, 0)?, need(inputs, 1)?, need(inputs, 2)?);
    importer.keep(&x.shape)?;
    if updates.shape != indices.shape {
        return Err("the updates have another shape than the indices".into());
    }
    let targets = entries(&x.shape, indices, axis(node.int("axis").unwrap_or(0), x.shape.len())?)?;
    Ok((x.shape.clone(), replaced(x, updates, &targets)?))
}

fn gather_entries(
    importer: &mut Importer<'_>,
    node: &Node,
    inputs: &[Option<Constant>],
) -> Result<Made, Fault> {
    let (x, indices) = (need(inputs, 0)?, need(inputs, 1)?);
    importer.keep(&indices.shape)?;
    let positions = entries(&x.shape, indices, axis(node.int("axis").unwrap_or(0), x.shape.len())?)?;
    let shape = indices.shape.clone();
    Ok((shape.clone(), (*x.pick(shape, &positions, x.origin.clone()).data).clone()))
}

/// Products of two stacks of matrices, as a low-rank change of a weight has them.
fn matrices(importer: &mut Importer<'_>, inputs: &[Option<Constant>]) -> Result<Made, Fault> {
    let (a, b) = (need(inputs, 0)?, need(inputs, 1)?);
    let ([stack_a @ .., rows, middle], [stack_b @ .., again, columns]) = (&a.shape[..], &b.shape[..]) else {
        return Err(Fault::Unsupported(" of constants that are no matrices".into()));
    };
    let (rows, middle, columns) = (*rows, *middle, *columns);
    if middle != *again {
        return Err(Fault::Problem(format!("shapes {:?} and {:?} have no product", a.shape, b.shape)));
    }
    let stack = broadcast_shape(stack_a, stack_b)?;
    let shape = [&stack[..], &[rows, columns]].concat();
    let total = importer.keep(&shape)?;
    importer.charge(total.saturating_mul(middle))?;
    let (x, y) = (a.floats()?, b.floats()?);
    let (at_x, at_y) = (broadcast_positions(stack_a, &stack), broadcast_positions(stack_b, &stack));
    let mut out = vec![0.0; count(&shape).unwrap_or(0)];
    for (i, block) in out.chunks_mut((rows * columns).max(1)).enumerate() {
        let (x, y) = (&x[at_x[i] * rows * middle..], &y[at_y[i] * middle * columns..]);
        for r in 0..rows {
            for k in 0..middle {
                let factor = x[r * middle + k];
                for c in 0..columns {
                    block[r * columns + c] += factor * y[k * columns + c];
                }
            }
        }
    }
    Ok((shape, Data::Float(out)))
}
