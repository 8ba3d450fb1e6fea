//! Windows on one or two spatial axes.

use super::super::error::Fault;
use super::super::importer::Importer;
use super::super::layout::Tracked;
use super::super::node::Node;
use super::convolution::{Padding, lengths};
use posterior_networks::operation::{Operation, Pool};

pub(super) fn translate(importer: &mut Importer<'_>, node: &Node) -> Result<Tracked, Fault> {
    let x = importer.tracked(node, 0)?;
    let x = importer.batch_first(node, &x)?;
    let axes = x.rank().saturating_sub(2);
    if !(1..=2).contains(&axes) {
        return Err(Fault::Unsupported(format!(" on {axes} spatial axes (1 and 2 are)")));
    }
    let size = x.dims[2..].to_vec();
    let global = node.operator == "GlobalMaxPool";
    let kernel = if global { size.clone() } else { lengths(node, "kernel_shape", axes, 0)? };
    let ones = vec![1; axes];
    let (stride, dilation) = match global {
        true => (ones.clone(), ones),
        false => (lengths(node, "strides", axes, 1)?, lengths(node, "dilations", axes, 1)?),
    };
    let padding = match global {
        true => Padding { before: vec![0; axes], after: vec![0; axes] },
        false => Padding::of(node, &size, &kernel, &stride, &dilation)?,
    };
    // One spatial axis is an image of height 1.
    let two = |list: &[usize], usual: usize| match *list {
        [width] => [usual, width],
        _ => [list[0], list[1]],
    };
    importer.charge(64 * size.iter().sum::<usize>())?;
    let image = Tracked { dims: [&[1, x.dims[1]][..], &two(&size, 1)].concat(), ..x.clone() };
    let image = importer.view(node, &Tracked { value: x.value, ..image.clone() }, image.dims, x.place)?;
    let after = two(&padding.after, 0);
    let pool = Pool {
        kernel: two(&kernel, 1),
        stride: Some(two(&stride, 1)),
        padding: two(&padding.before, 0),
        padding_after: Some(after).filter(|a| *a != two(&padding.before, 0)),
        dilation: two(&dilation, 1),
        ceil: node.int("ceil_mode").unwrap_or(0) != 0,
        count_padding: node.int("count_include_pad").unwrap_or(0) != 0,
    };
    let operation =
        if node.operator == "AveragePool" { Operation::AveragePool(pool) } else { Operation::MaxPool(pool) };
    let value = importer.emit(node, operation, &[image.value])?;
    let shape = importer.builder.shape(value).to_vec();
    let pooled = Tracked { value, dims: [&[1][..], &shape].concat(), ..image };
    let dims = match axes {
        1 => vec![1, shape[0], shape[2]],
        _ => pooled.dims.clone(),
    };
    importer.view(node, &pooled, dims, x.place)
}
