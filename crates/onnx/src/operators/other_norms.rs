//! Norms without weights: of unit length, of a mean and a variance, of neighbouring channels.

use super::super::error::Fault;
use super::super::importer::Importer;
use super::super::layout::{Tracked, axis};
use super::super::node::Node;
use super::binary::{add_number, tracked};
use super::elementwise::{activation, scaled};
use super::normalisation::normalised;
use super::reduce::{norm, square};
use posterior_networks::Activation;
use posterior_networks::operation::{Normalise, Operation, Pool};

/// `x` divided by its norm along an axis.
pub(super) fn unit(importer: &mut Importer<'_>, node: &Node) -> Result<Tracked, Fault> {
    let x = importer.tracked(node, 0)?;
    let along = axis(node.int("axis").unwrap_or(-1), x.rank())?;
    let length = norm(importer, node, x.clone(), &[along], node.int("p").unwrap_or(2) as f64)?;
    tracked(importer, node, "Div", x, length)
}

/// Mean 0 and variance 1 over axes.
pub(super) fn mean_variance(importer: &mut Importer<'_>, node: &Node) -> Result<Tracked, Fault> {
    let x = importer.tracked(node, 0)?;
    let axes = node.ints("axes").unwrap_or(&[0, 2, 3]);
    let axes = axes.iter().map(|&a| axis(a, x.rank())).collect::<Result<Vec<_>, _>>()?;
    // What programs add to the deviation, 1e-9, is below what its square adds to the variance only where that is 0.
    normalised(importer, node, x, &axes, |over| Operation::Normalise(Normalise { over, epsilon: 1e-18 }))
}

/// `x / (bias + alpha mean(x^2 over size channels))^beta`.
pub(super) fn local_response(importer: &mut Importer<'_>, node: &Node) -> Result<Tracked, Fault> {
    let x = importer.tracked(node, 0)?;
    let x = Tracked { whole: false, ..importer.batch_first(node, &x)? };
    let size = node.int("size").and_then(|s| usize::try_from(s).ok()).filter(|&s| s > 0);
    let size = size.ok_or("`size` must be at least 1")?;
    let &[_, channels, ref rest @ ..] = &x.dims[..] else {
        return Err("there is no axis of channels".into());
    };
    let number = |name: &str, usual: f64| node.float(name).unwrap_or(usual);
    let squares = square(importer, node, &x)?;
    let image = vec![1, 1, channels, rest.iter().product()];
    let image = importer.view(node, &squares, image, x.place)?;
    let pool = Pool {
        padding: vec![(size - 1) / 2, 0],
        padding_after: Some(vec![size / 2, 0]),
        ..Pool::new(vec![size, 1], vec![1, 1])
    };
    let value = importer.emit(node, Operation::AveragePool(pool), &[image.value])?;
    let means = importer.view(node, &Tracked { value, ..image }, x.dims.clone(), x.place)?;
    let scaled = scaled(importer, node, means, number("alpha", 1e-4))?;
    let base = add_number(importer, node, scaled, number("bias", 1.0))?;
    let exponent = -number("beta", 0.75);
    let factor = activation(importer, node, base, Activation::Power { exponent })?;
    tracked(importer, node, "Mul", x, factor)
}
