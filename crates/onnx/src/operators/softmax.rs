//! Softmax and its logarithm.

use super::super::error::{Fault, short};
use super::super::importer::{Importer, Known};
use super::super::layout::{Tracked, axis};
use super::super::node::Node;
use super::attention::{added, seen};
use super::binary::times;
use super::reduce::log_sum_exp;
use posterior_networks::graph::OutputLink;
use posterior_networks::operation::Operation;

pub(super) fn translate(importer: &mut Importer<'_>, node: &Node) -> Result<Tracked, Fault> {
    let x = importer.tracked(node, 0)?;
    let is_final = node.outputs.first().is_some_and(|name| importer.leads_to_output(name));
    if is_final && importer.model.options.strip_final_softmax {
        let log = node.operator == "LogSoftmax";
        importer.dropped = Some(if log { OutputLink::LogSoftmax } else { OutputLink::Softmax });
        importer.notes.push(format!("the final {} was dropped: the outputs are logits", node.operator));
        return Ok(x);
    }
    if is_final && node.operator == "LogSoftmax" {
        return Err(Fault::Unsupported(
            " as the last layer: inference wants the logits before it, so read the file with strip_final_softmax".into(),
        ));
    }
    let since_13 = importer.model.opset >= 13;
    let along = axis(node.int("axis").unwrap_or(if since_13 { -1 } else { 1 }), x.rank())?;
    let rank = x.rank();
    let dims = x.dims.clone();
    if node.operator == "LogSoftmax" {
        let axes: Vec<usize> = if since_13 { vec![along] } else { (along..rank).collect() };
        let total = log_sum_exp(importer, node, x.clone(), &axes)?;
        return super::binary::tracked(importer, node, "Sub", x, total);
    }
    if !since_13 {
        // Over all axes from this one on, as one.
        let mut x = x;
        for a in along..rank {
            x = importer.release(node, x, a)?;
        }
        if x.place.is_some_and(|p| p.axis >= along) {
            x = importer.view(node, &x, dims.clone(), None)?;
        }
        let (place, joined) = (x.place, [&dims[..along], &[dims[along..].iter().product()]].concat());
        let flat = importer.view(node, &x, joined, place)?;
        let value = importer.emit(node, Operation::Softmax, &[flat.value])?;
        return importer.view(node, &Tracked { value, ..flat }, dims, place);
    }
    let x = importer.release(node, x, along)?;
    let mut order: Vec<usize> = (0..rank).collect();
    order.swap(along, rank - 1);
    let mut turned = importer.transpose(node, &x, &order)?;
    if turned.place.is_some_and(|p| p.axis == rank - 1) {
        let dims = turned.dims.clone();
        turned = importer.view(node, &turned, dims, None)?;
    }
    let value = importer.emit(node, Operation::Softmax, &[turned.value])?;
    importer.transpose(node, &Tracked { value, whole: false, ..turned }, &order)
}

/// A softmax whose NaN, in rows that are masked as a whole, the model replaces by 0. Inputs 1 and 2 are the terms of its argument.
pub(super) fn guarded(importer: &mut Importer<'_>, node: &Node, x: Tracked) -> Result<Tracked, Fault> {
    for i in 1..node.inputs.len() {
        if let Some(Known::Constant(mask)) = importer.get(node, i).cloned() {
            let mask = added(importer, &mask, 0)?;
            let sees = seen(importer, node, &mask, None)?;
            return times(importer, node, x, &sees);
        }
    }
    let name = short(&node.name);
    importer.notes.push(format!(
        "`{name}`: a row that is masked as a whole becomes uniform, where the model has zeros: its mask is not a constant that is added"
    ));
    Ok(x)
}
