//! Other shapes and other orders of axes.

use super::super::dimension::Dimension;
use super::super::error::Fault;
use super::super::folding::order;
use super::super::importer::Importer;
use super::super::layout::{Place, Tracked, axis, product, replace, resolve, settle};
use super::super::node::Node;

pub(super) fn translate(importer: &mut Importer<'_>, node: &Node) -> Result<Tracked, Fault> {
    let x = importer.tracked(node, 0)?;
    let rank = x.rank();
    match node.operator.as_str() {
        "Transpose" => {
            let order = order(node, rank)?;
            importer.transpose(node, &x, &order)
        }
        "Reshape" => {
            let target = importer.required(node, 1)?;
            let allow_zero = node.int("allowzero").unwrap_or(0) != 0;
            let source = x.shape(importer.model.dynamic);
            if let Some(y) = for_any_batch(importer, node, &x, target.dimensions()?, allow_zero) {
                return Ok(y);
            }
            let target = resolve(&source, target.dimensions()?, allow_zero).map_err(|problem| {
                let hint = match importer.model.dynamic {
                    true => " (if the model was exported with a fixed batch inside, export it with a batch of 1 or with -1 in reshapes)",
                    false => "",
                };
                Fault::Problem(format!("{problem}{hint}"))
            })?;
            reshape(importer, node, &x, &target)
        }
        "Flatten" => {
            let at = node.int("axis").unwrap_or(1);
            let at = if at == rank as i64 { rank } else { axis(at, rank)? };
            let source = x.shape(importer.model.dynamic);
            reshape(importer, node, &x, &[product(&source[..at])?, product(&source[at..])?])
        }
        "Unsqueeze" => {
            let axes = importer.list(node, "axes", 1)?.unwrap_or_default();
            let new = rank + axes.len().min(super::super::constant::MOST_AXES);
            let added = axes.iter().map(|&a| axis(a, new)).collect::<Result<Vec<_>, _>>()?;
            let mut rest = (0..rank).peekable();
            // Which old axis stands where.
            let places: Vec<Option<usize>> =
                (0..new).map(|a| if added.contains(&a) { None } else { rest.next() }).collect();
            if rest.peek().is_some() || places.iter().flatten().count() + axes.len() != new {
                return Err("`axes` names an axis twice".into());
            }
            let dims: Vec<usize> = places.iter().map(|p| p.map_or(1, |a| x.dims[a])).collect();
            let place = x.place.and_then(|p| {
                let axis = places.iter().position(|&a| a == Some(p.axis))?;
                Some(Place { axis, ..p })
            });
            importer.view(node, &x, dims, place)
        }
        "Squeeze" => {
            let source = x.shape(importer.model.dynamic);
            let axes = match importer.list(node, "axes", 1)? {
                Some(axes) => axes.iter().map(|&a| axis(a, rank)).collect::<Result<Vec<_>, _>>()?,
                None => (0..rank).filter(|&a| source[a] == 1.into()).collect(),
            };
            if axes.iter().any(|&a| source[a] != 1.into()) {
                return Err("only axes of length 1 can be squeezed".into());
            }
            without(importer, node, &x, &axes)
        }
        _ => depth_to_space(importer, node, &x),
    }
}

/// A reshape in a file for a fixed number of examples: one of the lengths stands for it, or for a multiple. Which one does not matter, since
/// examples must stay together; None where it is none of them.
fn for_any_batch(
    importer: &mut Importer<'_>,
    node: &Node,
    x: &Tracked,
    target: &[Dimension],
    allow_zero: bool,
) -> Option<Tracked> {
    let batch = importer.model.fixed? as i64;
    let source = x.shape(true);
    let as_it_is =
        resolve(&source, target, allow_zero).ok().filter(|t| replace(&x.dims, x.place, t, true).is_ok());
    if as_it_is.is_some() {
        return None;
    }
    for (i, length) in target.iter().enumerate() {
        let Some(length) = length.known().filter(|&l| l > 0 && l % batch == 0) else { continue };
        let mut free = target.to_vec();
        free[i] = Dimension { fixed: 0, batch: length / batch };
        if let Ok(resolved) = resolve(&source, &free, allow_zero)
            && let Ok(y) = reshape(importer, node, x, &resolved)
        {
            return Some(y);
        }
    }
    None
}

/// The same numbers with these lengths.
pub(super) fn reshape(
    importer: &mut Importer<'_>,
    node: &Node,
    x: &Tracked,
    target: &[Dimension],
) -> Result<Tracked, Fault> {
    let (dims, place) = replace(&x.dims, x.place, target, importer.model.dynamic)?;
    importer.view(node, x, dims, place)
}

/// The value without axes of length 1.
pub(super) fn without(
    importer: &mut Importer<'_>,
    node: &Node,
    x: &Tracked,
    axes: &[usize],
) -> Result<Tracked, Fault> {
    let kept: Vec<usize> = (0..x.rank()).filter(|a| !axes.contains(a)).collect();
    let dims: Vec<usize> = kept.iter().map(|&a| x.dims[a]).collect();
    let place = x.place.and_then(|p| {
        let axis = kept.iter().position(|&a| a == p.axis)?;
        Some(Place { axis, ..p })
    });
    if place.is_none() && x.place.is_some() {
        if importer.model.dynamic {
            return Err(Fault::Batch("it removes the batch axis".into()));
        }
        let place = settle(&dims, 0);
        return importer.view(node, x, dims, place);
    }
    importer.view(node, x, dims, place)
}

/// Channels to blocks of pixels (pixel shuffle).
fn depth_to_space(importer: &mut Importer<'_>, node: &Node, x: &Tracked) -> Result<Tracked, Fault> {
    let x = importer.batch_first(node, x)?;
    let &[_, channels, height, width] = &x.dims[..] else {
        return Err(Fault::Problem(format!("it needs four axes, there are {}", x.rank())));
    };
    let block =
        node.int("blocksize").and_then(|b| usize::try_from(b).ok()).filter(|&b| b > 0 && b <= channels);
    let block =
        block.filter(|b| channels.is_multiple_of(b * b)).ok_or("`blocksize` does not divide the channels")?;
    let depth = channels / (block * block);
    // The block's two axes are before or behind the remaining channels.
    let (dims, order) = match node.text("mode").as_deref() {
        None | Some("DCR") => (vec![1, block, block, depth, height, width], [0, 3, 4, 1, 5, 2]),
        _ => (vec![1, depth, block, block, height, width], [0, 1, 4, 2, 5, 3]),
    };
    let place = x.place;
    let apart = importer.view(node, &x, dims, place)?;
    let turned = importer.transpose(node, &apart, &order)?;
    importer.view(node, &turned, vec![1, depth, height * block, width * block], place)
}
