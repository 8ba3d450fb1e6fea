//! Windows on one to three spatial axes.

use super::super::error::Fault;
use super::super::importer::Importer;
use super::super::layout::Tracked;
use super::super::node::Node;
use super::convolution::{Padding, lengths};
use super::elementwise::scaled;
use super::reduce::{power_of_magnitude, root};
use posterior_networks::operation::{Operation, Pool};

pub(super) fn translate(importer: &mut Importer<'_>, node: &Node) -> Result<Tracked, Fault> {
    let x = importer.tracked(node, 0)?;
    let x = Tracked { whole: false, ..importer.batch_first(node, &x)? };
    let axes = x.rank().saturating_sub(2);
    if !(1..=3).contains(&axes) {
        return Err(Fault::Unsupported(format!(" on {axes} spatial axes (1 to 3 are)")));
    }
    let size = x.dims[2..].to_vec();
    importer.charge(64 * size.iter().sum::<usize>())?;
    match node.operator.as_str() {
        "GlobalMaxPool" => {
            let pool = Pool::new(size, vec![1; axes]);
            pooled(importer, node, &x, Operation::MaxPool(pool))
        }
        "MaxPool" => {
            let pool = pool(node, &size)?;
            pooled(importer, node, &x, Operation::MaxPool(pool))
        }
        "AveragePool" => {
            let pool = pool(node, &size)?;
            pooled(importer, node, &x, Operation::AveragePool(pool))
        }
        _ => {
            let pool = Pool { count_padding: true, ..pool(node, &size)? };
            if pool.ceil {
                return Err(Fault::Unsupported(" with `ceil_mode`".into()));
            }
            let p = node.int("p").unwrap_or(2) as f64;
            let values: f64 = pool.kernel.iter().map(|&length| length as f64).product();
            let powers = power_of_magnitude(importer, node, &x, p)?;
            let mean = pooled(importer, node, &powers, Operation::AveragePool(pool))?;
            let sum = scaled(importer, node, mean, values)?;
            root(importer, node, sum, p)
        }
    }
}

/// The windows that the attributes describe.
fn pool(node: &Node, size: &[usize]) -> Result<Pool, Fault> {
    let axes = size.len();
    let kernel = lengths(node, "kernel_shape", axes, 0)?;
    let (stride, dilation) = (lengths(node, "strides", axes, 1)?, lengths(node, "dilations", axes, 1)?);
    let padding = Padding::of(node, size, &kernel, &stride, &dilation)?;
    // As many windows as `auto_pad` asks for, no more.
    let same = node.text("auto_pad").is_some_and(|mode| mode.starts_with("SAME"));
    if same && dilation.iter().zip(&kernel).any(|(&d, &k)| d > 1 && k > 1) {
        return Err(Fault::Unsupported(
            " with auto_pad and dilations: programs differ in how many there are".into(),
        ));
    }
    Ok(Pool {
        padding_after: Some(padding.after).filter(|after| *after != padding.before),
        padding: padding.before,
        dilation,
        ceil: !same && node.int("ceil_mode").unwrap_or(0) != 0,
        count_padding: node.int("count_include_pad").unwrap_or(0) != 0,
        ..Pool::new(kernel, stride)
    })
}

fn pooled(
    importer: &mut Importer<'_>,
    node: &Node,
    x: &Tracked,
    operation: Operation,
) -> Result<Tracked, Fault> {
    let value = importer.emit(node, operation, &[x.value])?;
    let dims = std::iter::once(1).chain(importer.builder.shape(value).iter().copied()).collect();
    Ok(Tracked { value, dims, ..x.clone() })
}
