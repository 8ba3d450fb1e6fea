//! Nodes whose result is known without data: constants, and the shape arithmetic that exporters write around reshapes.

mod arithmetic;
mod arrays;
mod slicing;
mod structure;

use super::constant::{Constant, Data, Origin, count};
use super::dimension::Dimension;
use super::error::Fault;
use super::importer::{Importer, Known};
use super::layout::{Place, show};
use super::node::Node;
pub(super) use slicing::{parts, slices};
pub(super) use structure::order;

/// The outputs of a node that can be computed now; None where it has to become part of the graph.
pub(super) fn fold(importer: &mut Importer<'_>, node: &Node) -> Result<Option<Vec<Known>>, Fault> {
    if node.fused.is_some() || !node.domain.is_empty() {
        return Ok(None);
    }
    let one = |constant: Constant| Ok(Some(vec![Known::Constant(constant)]));
    match node.operator.as_str() {
        "Constant" => return one(constant(importer, node)?),
        "Shape" => return one(shape(importer, node)?),
        "Size" => {
            let lengths = lengths(importer, node)?;
            let size = lengths.into_iter().try_fold(Dimension::from(1), Dimension::multiply)?;
            return one(Constant::row(vec![size]).reshaped(vec![]));
        }
        _ => {}
    }
    let mut inputs = Vec::with_capacity(node.inputs.len());
    for i in 0..node.inputs.len() {
        match importer.get(node, i) {
            Some(Known::Constant(constant)) => inputs.push(Some(constant.clone())),
            Some(Known::Tracked(_)) => return Ok(None),
            None => inputs.push(None),
        }
    }
    if inputs.iter().flatten().next().is_none() {
        return Ok(None);
    }
    let work: usize = inputs.iter().flatten().map(Constant::len).sum();
    importer.charge(work + 1)?;
    if let Some(repeated) = repeated(importer, node, &inputs)? {
        return Ok(Some(vec![repeated]));
    }
    if let Some(values) = structure::fold(importer, node, &inputs)? {
        return Ok(Some(values.into_iter().map(Known::Constant).collect()));
    }
    if let Some(value) = arithmetic::fold(importer, node, &inputs)? {
        return one(value);
    }
    match arrays::fold(importer, node, &inputs)? {
        Some(value) => one(value),
        None => Ok(None),
    }
}

/// Where the result of a computation comes from.
fn made(node: &Node, inputs: &[Option<Constant>]) -> Origin {
    let trainable = inputs.iter().flatten().any(|c| c.origin.trainable);
    Origin::made(node.outputs.first().cloned().unwrap_or_default(), trainable)
}

/// An input that must be there.
fn need(inputs: &[Option<Constant>], i: usize) -> Result<&Constant, Fault> {
    inputs.get(i).and_then(Option::as_ref).ok_or_else(|| Fault::Problem(format!("input {i} is missing")))
}

fn constant(importer: &mut Importer<'_>, node: &Node) -> Result<Constant, Fault> {
    let name = node.outputs.first().cloned().unwrap_or_default();
    let origin = Origin::constant(name.as_str());
    if let Some(tensor) = node.tensor("value") {
        return importer.attribute_tensor(tensor, &name);
    }
    let whole = |values: &[i64]| Data::Whole(values.iter().map(|&v| v.into()).collect());
    let (shape, data) = if let Some(value) = node.float("value_float") {
        (vec![], Data::Float(vec![value]))
    } else if let Some(value) = node.int("value_int") {
        (vec![], whole(&[value]))
    } else if let Some(values) = node.floats("value_floats") {
        (vec![values.len()], Data::Float(values.iter().map(|&v| v.into()).collect()))
    } else if let Some(values) = node.ints("value_ints") {
        (vec![values.len()], whole(values))
    } else {
        return Err(Fault::Unsupported(" with anything but numbers".into()));
    };
    Ok(Constant::new(shape, data, origin))
}

fn lengths(importer: &Importer<'_>, node: &Node) -> Result<Vec<Dimension>, Fault> {
    match importer.get(node, 0) {
        Some(Known::Tracked(tracked)) => Ok(tracked.shape(importer.model.dynamic)),
        Some(Known::Constant(constant)) => Ok(constant.shape.iter().map(|&l| (l as i64).into()).collect()),
        None => Err("input 0 is missing".into()),
    }
}

fn shape(importer: &Importer<'_>, node: &Node) -> Result<Constant, Fault> {
    let lengths = lengths(importer, node)?;
    let rank = lengths.len() as i64;
    let bound = |at: i64| (if at < 0 { at.saturating_add(rank) } else { at }).clamp(0, rank) as usize;
    let (start, end) = (bound(node.int("start").unwrap_or(0)), bound(node.int("end").unwrap_or(rank)));
    Ok(Constant::row(lengths.get(start..end).unwrap_or_default().to_vec()))
}

/// `Expand` and `ConstantOfShape` to a shape with the number of examples in it: the same values for every example.
fn repeated(
    importer: &mut Importer<'_>,
    node: &Node,
    inputs: &[Option<Constant>],
) -> Result<Option<Known>, Fault> {
    let position = match node.operator.as_str() {
        "Expand" => 1,
        "ConstantOfShape" => 0,
        _ => return Ok(None),
    };
    let target = need(inputs, position)?.dimensions()?.to_vec();
    let with: Vec<usize> = (0..target.len()).filter(|&i| target[i].batch != 0).collect();
    let &[axis] = &with[..] else {
        return if with.is_empty() {
            Ok(None)
        } else {
            Err(Fault::Batch(format!("the shape {} has several batch axes", show(&target))))
        };
    };
    if target[axis] != (Dimension { fixed: 0, batch: 1 }) {
        return Err(Fault::Batch(format!("the shape {} merges the batch with another axis", show(&target))));
    }
    let value = match position {
        1 => need(inputs, 0)?.clone(),
        _ => structure::fill(importer, node)?,
    };
    let dims: Option<Vec<usize>> = (0..target.len())
        .map(|i| if i == axis { Some(1) } else { usize::try_from(target[i].fixed).ok().filter(|&l| l > 0) })
        .collect();
    let dims = dims.ok_or_else(|| Fault::Problem(format!("{} has an empty axis", show(&target))))?;
    let dims = super::constant::broadcast_shape(&dims, &value.shape)?;
    if count(&dims).is_none_or(|n| n > posterior_networks::operation::LARGEST_EXAMPLE) {
        return Err(Fault::Limit(format!("a value of shape {dims:?} is too large")));
    }
    let more = dims.len() - target.len();
    let place = Some(Place { axis: axis + more, outer: 1 });
    let padded = std::iter::repeat_n(1, dims.len() - value.shape.len()).chain(value.shape.iter().copied());
    let learned = importer.learned(node, &value.reshaped(padded.collect()), place)?;
    Ok(Some(Known::Tracked(importer.broadcast(node, learned, &dims)?)))
}

/// Says so where a parameter is not the file's own, but computed from it.
fn tell_computed(importer: &mut Importer<'_>, node: &Node, result: &Constant) {
    if result.origin.trainable {
        let name = super::error::short(&result.origin.name);
        importer
            .notes
            .push(format!("the parameter `{name}` was computed from weights by `{}`", node.operator));
    }
}
