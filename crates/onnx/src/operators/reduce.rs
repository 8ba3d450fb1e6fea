//! Means and sums over axes.

use super::super::error::Fault;
use super::super::importer::Importer;
use super::super::layout::{Tracked, axis};
use super::super::node::Node;
use super::elementwise::scaled;
use posterior_networks::operation::{Mean, Operation};

pub(super) fn translate(importer: &mut Importer<'_>, node: &Node) -> Result<Tracked, Fault> {
    let x = importer.tracked(node, 0)?;
    let rank = x.rank();
    let (axes, keep) = match node.operator.as_str() {
        "GlobalAveragePool" => ((2..rank).collect(), true),
        _ => {
            let listed = importer.list(node, "axes", 1)?.unwrap_or_default();
            if listed.is_empty() && node.int("noop_with_empty_axes").unwrap_or(0) != 0 {
                return Ok(x);
            }
            let axes = match listed.is_empty() {
                true => (0..rank).collect(),
                false => listed.iter().map(|&a| axis(a, rank)).collect::<Result<Vec<_>, _>>()?,
            };
            (axes, node.int("keepdims").unwrap_or(1) != 0)
        }
    };
    let mut x = x;
    for &a in &axes {
        x = importer.release(node, x, a)?;
    }
    if x.place.is_some_and(|p| axes.contains(&p.axis)) {
        let dims = x.dims.clone();
        x = importer.view(node, &x, dims, None)?;
    }
    let mut over: Vec<usize> = axes.iter().filter_map(|&a| x.example_axis(a)).collect();
    over.sort_unstable();
    over.dedup();
    let number: usize = axes_once(&axes).map(|a| x.dims[a]).product();
    let dims: Vec<usize> =
        x.dims.iter().enumerate().map(|(a, &l)| if axes.contains(&a) { 1 } else { l }).collect();
    let value = match over.is_empty() {
        true => x.value,
        false => importer.emit(node, Operation::Mean(Mean { axes: over, keep: true }), &[x.value])?,
    };
    let mean = Tracked { value, dims, place: x.place, whole: false };
    let result = match node.operator.as_str() {
        "ReduceSum" => scaled(importer, node, mean, number as f64)?,
        _ => mean,
    };
    if keep {
        return Ok(result);
    }
    super::shape::without(importer, node, &result, &axes)
}

/// Each axis once.
fn axes_once(axes: &[usize]) -> impl Iterator<Item = usize> {
    axes.iter().enumerate().filter(|(i, a)| !axes[..*i].contains(a)).map(|(_, &a)| a)
}
