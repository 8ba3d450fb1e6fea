//! Values around others.

use super::super::constant::MASKED;
use super::super::error::{Fault, short};
use super::super::importer::Importer;
use super::super::layout::{Tracked, axis};
use super::super::node::Node;
use super::slicing::part;
use posterior_networks::operation::{Operation, Pad, PadMode};

pub(super) fn translate(importer: &mut Importer<'_>, node: &Node) -> Result<Tracked, Fault> {
    let mut x = importer.tracked(node, 0)?;
    let rank = x.rank();
    let mode = match node.text("mode").as_deref() {
        None | Some("constant") => PadMode::Constant,
        Some("reflect") => PadMode::Reflect,
        Some("edge") => PadMode::Edge,
        Some("wrap") => PadMode::Wrap,
        Some(other) => return Err(Fault::Unsupported(format!(" in mode `{}`", short(other)))),
    };
    let value = match (mode, importer.constant(node, 2)?) {
        (PadMode::Constant, Some(c)) if c.len() > 0 => c.scalar().ok_or("the value must be one number")?,
        (PadMode::Constant, _) => node.float("value").unwrap_or(0.0),
        _ => 0.0,
    };
    // Of minus infinity only maxima are taken.
    let value = value.clamp(-MASKED, MASKED);
    let pads = importer.list(node, "pads", 1)?.ok_or("`pads` is missing")?;
    let axes = match importer.constant(node, 3)? {
        Some(axes) => axes.whole()?.iter().map(|&a| axis(a, rank)).collect::<Result<Vec<_>, _>>()?,
        None => (0..rank).collect(),
    };
    if pads.len() != 2 * axes.len() {
        return Err(Fault::Problem(format!("`pads` has {} entries for {} axes", pads.len(), axes.len())));
    }
    let (mut before, mut after) = (vec![0usize; rank], vec![0usize; rank]);
    for (i, &a) in axes.iter().enumerate() {
        let (front, back) = (pads[i], pads[axes.len() + i]);
        // Negative padding takes away.
        if front < 0 || back < 0 {
            let cut = |pad: i64| usize::try_from(pad.min(0).unsigned_abs()).unwrap_or(usize::MAX);
            let left = x.dims[a].checked_sub(cut(front)).and_then(|l| l.checked_sub(cut(back)));
            let left = left.filter(|&l| l > 0).ok_or("the padding takes away all of an axis")?;
            x = part(importer, node, x, a, cut(front), 1, left)?;
        }
        before[a] = usize::try_from(front.max(0)).map_err(|_| "the padding is too large")?;
        after[a] = usize::try_from(back.max(0)).map_err(|_| "the padding is too large")?;
    }
    if before.iter().chain(&after).all(|&p| p == 0) {
        return Ok(x);
    }
    for a in 0..rank {
        if before[a] + after[a] > 0 {
            x = importer.release(node, x, a)?;
        }
    }
    if x.place.is_some_and(|p| before[p.axis] + after[p.axis] > 0) {
        let dims = x.dims.clone();
        x = importer.view(node, &x, dims, None)?;
    }
    let dims: Option<Vec<usize>> =
        (0..rank).map(|a| x.dims[a].checked_add(before[a])?.checked_add(after[a])).collect();
    let (front, back) = (keep(&x, &before), keep(&x, &after));
    let padded = Operation::Pad(Pad { mode, value, ..Pad::zeros(front, back) });
    let value = importer.emit(node, padded, &[x.value])?;
    Ok(Tracked { value, dims: dims.ok_or("the padding is too large")?, ..x })
}

/// The entries of axes that the value of the graph has.
fn keep(x: &Tracked, list: &[usize]) -> Vec<usize> {
    let gone = x.place.filter(|p| x.dims[p.axis] == 1).map(|p| p.axis);
    (0..list.len()).filter(|&a| Some(a) != gone).map(|a| list[a]).collect()
}
