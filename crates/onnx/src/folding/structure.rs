//! Constants taken apart and put together: slices, gathers, reshapes. What only changes shape keeps the name of a weight.

use super::slicing::{parts, slices};
use super::{made, need};
use crate::constant::{
    Constant, Data, Origin, broadcast_positions, broadcast_shape, strided_positions, strides,
};
use crate::dimension::Dimension;
use crate::error::Fault;
use crate::importer::Importer;
use crate::layout::{axis, resolve};
use crate::node::Node;

/// The outputs of a node that rearranges constants; None for another operator.
pub(super) fn fold(
    importer: &mut Importer<'_>,
    node: &Node,
    inputs: &[Option<Constant>],
) -> Result<Option<Vec<Constant>>, Fault> {
    let one = |constant: Constant| Ok(Some(vec![constant]));
    match node.operator.as_str() {
        "Identity" | "Dropout" => one(need(inputs, 0)?.clone()),
        "Cast" => one(cast(need(inputs, 0)?, node.int("to").unwrap_or(1), importer)?),
        "CastLike" => {
            let like = if need(inputs, 1)?.float_slice().is_some() { 1 } else { 7 };
            one(cast(need(inputs, 0)?, like, importer)?)
        }
        "Reshape" => one(reshape(need(inputs, 0)?, need(inputs, 1)?, node)?),
        "Flatten" | "Squeeze" | "Unsqueeze" => {
            let x = need(inputs, 0)?;
            let listed = importer.list(node, "axes", 1)?;
            one(x.reshaped(new_axes(node, &x.shape, listed.as_deref())?))
        }
        "Transpose" => one(transpose(importer, need(inputs, 0)?, node)?),
        "Slice" => {
            let x = need(inputs, 0)?;
            let lengths: Vec<Dimension> = x.shape.iter().map(|&l| (l as i64).into()).collect();
            let mut out = x.clone();
            for slice in slices(importer, node, &lengths)? {
                let indices: Vec<usize> = slice.indices(out.shape[slice.axis])?;
                out = gather(importer, &out, slice.axis, &[indices.len()], &indices, made(node, inputs))?;
            }
            one(out)
        }
        "Split" => split(importer, node, inputs).map(Some),
        "Gather" => {
            let (x, indices) = (need(inputs, 0)?, need(inputs, 1)?);
            let along = axis(node.int("axis").unwrap_or(0), x.shape.len())?;
            let at = positions(&indices.whole()?, x.shape[along])?;
            one(gather(importer, x, along, &indices.shape, &at, made(node, inputs))?)
        }
        "Concat" => one(concat(importer, node, inputs)?),
        "Expand" => {
            let x = need(inputs, 0)?;
            let target = lengths(need(inputs, 1)?)?;
            one(broadcast(importer, x, &broadcast_shape(&x.shape, &target)?, made(node, inputs))?)
        }
        "Tile" => {
            let x = need(inputs, 0)?;
            let repeats = lengths(need(inputs, 1)?)?;
            if repeats.len() != x.shape.len() {
                return Err("`repeats` needs a number for each axis".into());
            }
            let mut out = x.clone();
            for (along, &times) in repeats.iter().enumerate() {
                let length = out.shape[along];
                let total =
                    length.checked_mul(times).ok_or_else(|| Fault::Limit("a tile is too large".into()))?;
                let rest: usize = out.len() / length.max(1);
                importer.keep(&[total, rest])?;
                let indices: Vec<usize> = (0..total).map(|i| i % length.max(1)).collect();
                out = gather(importer, &out, along, &[total], &indices, made(node, inputs))?;
            }
            one(out)
        }
        "ConstantOfShape" => {
            let value = fill(importer, node)?;
            let shape = lengths(need(inputs, 0)?)?;
            one(broadcast(importer, &value.reshaped(vec![]), &shape, made(node, &[]))?)
        }
        "Range" => one(range(importer, node, inputs)?),
        _ => Ok(None),
    }
}

/// The value that `ConstantOfShape` repeats.
pub(super) fn fill(importer: &Importer<'_>, node: &Node) -> Result<Constant, Fault> {
    let name = node.outputs.first().cloned().unwrap_or_default();
    let value = match node.tensor("value") {
        Some(tensor) => importer.attribute_tensor(tensor, &name)?,
        None => Constant::new(vec![1], Data::Float(vec![0.0]), Origin::constant(name)),
    };
    if value.len() != 1 {
        return Err("`value` must hold one number".into());
    }
    Ok(value.reshaped(vec![1]))
}

fn lengths(constant: &Constant) -> Result<Vec<usize>, String> {
    let length = |v: i64| usize::try_from(v).map_err(|_| format!("a length of {v} makes no sense"));
    constant.whole()?.into_iter().map(length).collect()
}

/// Indices counted from either end of an axis.
fn positions(indices: &[i64], length: usize) -> Result<Vec<usize>, String> {
    indices
        .iter()
        .map(|&i| axis(i, length).map_err(|_| format!("there is no index {i} of {length}")))
        .collect()
}

/// Entries `indices` along an axis, which becomes the axes `shape`.
fn gather(
    importer: &mut Importer<'_>,
    x: &Constant,
    along: usize,
    shape: &[usize],
    indices: &[usize],
    origin: Origin,
) -> Result<Constant, Fault> {
    let mut flat = x.shape.clone();
    flat[along] = indices.len();
    importer.keep(&flat)?;
    let inner: usize = x.shape[along + 1..].iter().product();
    let outer: usize = x.shape[..along].iter().product();
    let length = x.shape[along];
    let picked: Vec<usize> = (0..outer)
        .flat_map(|o| {
            indices.iter().flat_map(move |&i| (0..inner).map(move |k| (o * length + i) * inner + k))
        })
        .collect();
    let shape = [&x.shape[..along], shape, &x.shape[along + 1..]].concat();
    Ok(x.pick(shape, &picked, origin))
}

fn broadcast(
    importer: &mut Importer<'_>,
    x: &Constant,
    shape: &[usize],
    origin: Origin,
) -> Result<Constant, Fault> {
    importer.keep(shape)?;
    Ok(x.pick(shape.to_vec(), &broadcast_positions(&x.shape, shape), origin))
}

fn cast(x: &Constant, to: i64, importer: &mut Importer<'_>) -> Result<Constant, Fault> {
    importer.keep(&x.shape)?;
    let data = match (&*x.data, to) {
        (Data::Float(_), 1 | 10 | 11 | 16) => return Ok(x.clone()),
        (Data::Whole(_), 1 | 10 | 11 | 16) => Data::Float(x.floats()?),
        (Data::Float(values), 9) => Data::Whole(values.iter().map(|&v| i64::from(v != 0.0).into()).collect()),
        (Data::Whole(values), 9) => {
            Data::Whole(values.iter().map(|&v| i64::from(v != 0.into()).into()).collect())
        }
        (Data::Float(values), _) => Data::Whole(values.iter().map(|&v| (v.trunc() as i64).into()).collect()),
        (Data::Whole(_), _) => return Ok(x.clone()),
    };
    Ok(Constant::new(x.shape.clone(), data, x.origin.clone()))
}

fn reshape(x: &Constant, target: &Constant, node: &Node) -> Result<Constant, Fault> {
    let source: Vec<Dimension> = x.shape.iter().map(|&l| (l as i64).into()).collect();
    let target = resolve(&source, target.dimensions()?, node.int("allowzero").unwrap_or(0) != 0)?;
    let shape: Option<Vec<usize>> = target.iter().map(|d| usize::try_from(d.known()?).ok()).collect();
    Ok(x.reshaped(shape.ok_or("a constant cannot be reshaped to a shape with the batch in it")?))
}

/// The shape after `Flatten`, `Squeeze` or `Unsqueeze` of a constant.
fn new_axes(node: &Node, shape: &[usize], listed: Option<&[i64]>) -> Result<Vec<usize>, Fault> {
    let rank = shape.len();
    match node.operator.as_str() {
        "Flatten" => {
            let at = node.int("axis").unwrap_or(1);
            let at = if at == rank as i64 { rank } else { axis(at, rank)? };
            Ok(vec![shape[..at].iter().product(), shape[at..].iter().product()])
        }
        "Squeeze" => {
            let Some(listed) = listed else { return Ok(shape.iter().copied().filter(|&l| l != 1).collect()) };
            let drop = listed.iter().map(|&a| axis(a, rank)).collect::<Result<Vec<_>, _>>()?;
            if drop.iter().any(|&a| shape[a] != 1) {
                return Err("only axes of length 1 can be squeezed".into());
            }
            Ok((0..rank).filter(|a| !drop.contains(a)).map(|a| shape[a]).collect())
        }
        _ => {
            let listed = listed.unwrap_or_default();
            let new = rank + listed.len().min(crate::constant::MOST_AXES);
            let added = listed.iter().map(|&a| axis(a, new)).collect::<Result<Vec<_>, _>>()?;
            let mut rest = shape.iter().copied();
            let out: Vec<usize> =
                (0..new).map(|a| if added.contains(&a) { 1 } else { rest.next().unwrap_or(1) }).collect();
            if rest.next().is_some() || new > crate::constant::MOST_AXES {
                return Err("`axes` names an axis twice, or too many".into());
            }
            Ok(out)
        }
    }
}

fn transpose(importer: &mut Importer<'_>, x: &Constant, node: &Node) -> Result<Constant, Fault> {
    let order = order(node, x.shape.len())?;
    importer.keep(&x.shape)?;
    let steps = strides(&x.shape);
    let shape: Vec<usize> = order.iter().map(|&a| x.shape[a]).collect();
    let along: Vec<usize> = order.iter().map(|&a| steps[a]).collect();
    Ok(x.pick(shape.clone(), &strided_positions(&shape, &along, 0), x.origin.clone()))
}

/// The order of axes of a `Transpose`.
pub(crate) fn order(node: &Node, rank: usize) -> Result<Vec<usize>, Fault> {
    let Some(listed) = node.ints("perm") else { return Ok((0..rank).rev().collect()) };
    let order = listed.iter().map(|&a| axis(a, rank)).collect::<Result<Vec<_>, _>>()?;
    if order.len() != rank || (0..rank).any(|a| !order.contains(&a)) {
        return Err(Fault::Problem(format!("`perm` is not an order of {rank} axes")));
    }
    Ok(order)
}

fn split(
    importer: &mut Importer<'_>,
    node: &Node,
    inputs: &[Option<Constant>],
) -> Result<Vec<Constant>, Fault> {
    let x = need(inputs, 0)?;
    let along = axis(node.int("axis").unwrap_or(0), x.shape.len())?;
    let mut start = 0;
    let parts = parts(importer, node, x.shape[along])?;
    let mut out = Vec::with_capacity(node.outputs.len());
    for (name, length) in node.outputs.iter().zip(parts) {
        let indices: Vec<usize> = (start..start + length).collect();
        let origin = Origin::made(name.as_str(), x.origin.trainable);
        out.push(gather(importer, x, along, &[length], &indices, origin)?);
        start += length;
    }
    Ok(out)
}

fn concat(importer: &mut Importer<'_>, node: &Node, inputs: &[Option<Constant>]) -> Result<Constant, Fault> {
    let first = need(inputs, 0)?;
    let along = axis(node.int("axis").ok_or("`axis` is missing")?, first.shape.len())?;
    let mut shape = first.shape.clone();
    shape[along] = 0;
    for part in inputs.iter().flatten() {
        let mut rest = part.shape.clone();
        let same = rest.len() == shape.len();
        let length = rest.get_mut(along).map(|l| std::mem::replace(l, shape[along]));
        if !same || rest != shape {
            return Err("the parts have different shapes".into());
        }
        shape[along] += length.unwrap_or(0);
    }
    importer.keep(&shape)?;
    let outer: usize = shape[..along].iter().product();
    let origin = made(node, inputs);
    let parts: Vec<&Constant> = inputs.iter().flatten().collect();
    let data = if parts.iter().all(|p| p.float_slice().is_none()) {
        let rows = parts.iter().map(|p| p.dimensions()).collect::<Result<Vec<_>, _>>()?;
        Data::Whole(interleave(&rows, outer))
    } else {
        let rows = parts.iter().map(|p| p.floats()).collect::<Result<Vec<_>, _>>()?;
        Data::Float(interleave(&rows.iter().map(Vec::as_slice).collect::<Vec<_>>(), outer))
    };
    Ok(Constant::new(shape, data, origin))
}

/// `outer` blocks of each part, in turn.
fn interleave<V: Copy>(parts: &[&[V]], outer: usize) -> Vec<V> {
    let mut out = Vec::new();
    for block in 0..outer {
        for part in parts {
            let each = part.len() / outer;
            out.extend_from_slice(&part[block * each..(block + 1) * each]);
        }
    }
    out
}

fn range(importer: &mut Importer<'_>, node: &Node, inputs: &[Option<Constant>]) -> Result<Constant, Fault> {
    let (start, limit, step) = (need(inputs, 0)?, need(inputs, 1)?, need(inputs, 2)?);
    let scalar = |c: &Constant| {
        c.scalar()
            .filter(|v| v.is_finite())
            .ok_or("a range needs single numbers that do not depend on the batch: export with a fixed batch (without dynamic_shapes or dynamic_axes), which is read for any number of examples")
    };
    let (from, to, by) = (scalar(start)?, scalar(limit)?, scalar(step)?);
    let count = ((to - from) / by).ceil().max(0.0);
    if !count.is_finite() || count > 1e9 {
        return Err(Fault::Limit("a range is too long".into()));
    }
    let count = importer.keep(&[count as usize])?;
    let values = (0..count).map(|i| from + i as f64 * by);
    let data = if start.float_slice().is_some() {
        Data::Float(values.collect())
    } else {
        Data::Whole(values.map(|v| (v as i64).into()).collect())
    };
    Ok(Constant::new(vec![count], data, made(node, inputs)))
}
