//! Batch, layer, instance and group norm, and softmax.

use super::super::constant::{Constant, Data};
use super::super::error::{Fault, short};
use super::super::importer::{Importer, Parameter};
use super::super::layout::{Tracked, axis};
use super::super::node::{Fused, Node};
use super::binary::{plus, times};
use posterior_networks::graph::OutputLink;
use posterior_networks::operation::{BatchNorm, Normalise, Operation, Over};

/// What patterns were put together to.
pub(super) fn fused(importer: &mut Importer<'_>, node: &Node, fused: Fused) -> Result<Tracked, Fault> {
    let x = importer.tracked(node, 0)?;
    match fused {
        Fused::Identity => Ok(x),
        Fused::Activation(kind) => super::elementwise::activation(importer, node, x, kind),
        Fused::Normalise { epsilon } => {
            let axes = importer.list(node, "axes", 1)?.ok_or("the axes of the means are missing")?;
            let axes = axes.iter().map(|&a| axis(a, x.rank())).collect::<Result<Vec<_>, _>>()?;
            let first = axes.iter().copied().min().ok_or("the means are over no axes")?;
            if (first..x.rank()).any(|a| !axes.contains(&a)) {
                return Err(Fault::Unsupported(
                    " of a normalisation over axes that are not the last ones".into(),
                ));
            }
            standardised(importer, node, x, first, epsilon)
        }
    }
}

/// Mean 0 and variance 1 over the axes from `first` on.
fn standardised(
    importer: &mut Importer<'_>,
    node: &Node,
    x: Tracked,
    first: usize,
    epsilon: f64,
) -> Result<Tracked, Fault> {
    let mut x = x;
    for axis in first..x.rank() {
        x = importer.release(node, x, axis)?;
    }
    // Released axes may have been dropped again further on; then none is.
    if x.place.is_some_and(|p| p.axis >= first) {
        let dims = x.dims.clone();
        x = importer.view(node, &x, dims, None)?;
    }
    let over = Over::LastAxes(x.rank() - first);
    let value = importer.emit(node, Operation::Normalise(Normalise { over, epsilon }), &[x.value])?;
    Ok(Tracked { value, whole: false, ..x })
}

fn usual_epsilon(node: &Node) -> f64 {
    node.float("epsilon").unwrap_or(1e-5)
}

pub(super) fn batch(importer: &mut Importer<'_>, node: &Node) -> Result<Tracked, Fault> {
    if node.int("training_mode").unwrap_or(0) != 0 {
        return Err(Fault::Batch(
            "it normalises by the statistics of the batch: call model.eval() and export with training=TrainingMode.EVAL or PRESERVE"
                .into(),
        ));
    }
    let x = importer.tracked(node, 0)?;
    let x = importer.batch_first(node, &x)?;
    let &channels = x.dims.get(1).ok_or("there is no axis of channels")?;
    let mut parameters = Vec::with_capacity(4);
    for i in 1..5 {
        let constant = importer.required(node, i)?;
        importer.charge(constant.len())?;
        let mut parameter = Parameter::new(&constant, vec![channels])?;
        parameter.origin.trainable &= i < 3;
        if i == 4 && parameter.array.values().iter().any(|&v| v + usual_epsilon(node) <= 0.0) {
            return Err("a variance is not positive".into());
        }
        parameters.push(parameter);
    }
    let operation = Operation::BatchNorm(BatchNorm { epsilon: usual_epsilon(node) });
    let value = importer.emit_with(node, operation, &[x.value], parameters)?;
    Ok(Tracked { value, whole: false, ..x })
}

pub(super) fn layer(importer: &mut Importer<'_>, node: &Node) -> Result<Tracked, Fault> {
    let x = importer.tracked(node, 0)?;
    let first = axis(node.int("axis").unwrap_or(-1), x.rank())?;
    let weight = importer.required(node, 1)?;
    let bias = importer.constant(node, 2)?;
    let y = standardised(importer, node, x, first, usual_epsilon(node))?;
    affine(importer, node, y, &weight, bias.as_ref())
}

/// `y * weight + bias`, where a weight of ones and a bias of zeros that are no parameters are left out.
fn affine(
    importer: &mut Importer<'_>,
    node: &Node,
    y: Tracked,
    weight: &Constant,
    bias: Option<&Constant>,
) -> Result<Tracked, Fault> {
    let y = times(importer, node, y, weight)?;
    match bias {
        Some(bias) => plus(importer, node, y, bias),
        None => Ok(y),
    }
}

/// Instance norm is group norm with a group for each channel.
pub(super) fn groups(importer: &mut Importer<'_>, node: &Node) -> Result<Tracked, Fault> {
    let x = importer.tracked(node, 0)?;
    let x = importer.batch_first(node, &x)?;
    let &channels = x.dims.get(1).ok_or("there is no axis of channels")?;
    let groups = match node.operator.as_str() {
        "InstanceNormalization" => channels,
        _ => node.int("num_groups").and_then(|g| usize::try_from(g).ok()).ok_or("`num_groups` is missing")?,
    };
    let (weight, bias) = (importer.required(node, 1)?, importer.required(node, 2)?);
    let operation =
        Operation::Normalise(Normalise { over: Over::Groups(groups), epsilon: usual_epsilon(node) });
    let value = importer.emit(node, operation, &[x.value])?;
    let y = Tracked { value, whole: false, ..x };
    // Exporters write a group norm as an instance norm of groups with a weight of ones and a bias of zeros, and the real ones after it.
    let constant = |c: &Constant| !c.as_operand().origin.trainable;
    if weight.all(1.0) && bias.all(0.0) && constant(&weight) && constant(&bias) {
        return Ok(y);
    }
    let weight = by_channel(importer, &weight, channels, groups, y.rank())?;
    let bias = by_channel(importer, &bias, channels, groups, y.rank())?;
    affine(importer, node, y, &weight, Some(&bias))
}

/// A number for each channel as `[channels, 1, 1]`; operator set 18 has one for each group.
fn by_channel(
    importer: &mut Importer<'_>,
    c: &Constant,
    channels: usize,
    groups: usize,
    rank: usize,
) -> Result<Constant, Fault> {
    importer.charge(c.len() + channels)?;
    let mut values = c.floats()?;
    if values.len() == groups && groups != channels {
        importer.notes.push(format!("`{}` was repeated from groups to channels", short(&c.origin.name)));
        values = values.iter().flat_map(|&v| std::iter::repeat_n(v, channels / groups)).collect();
    }
    if values.len() != channels {
        return Err(Fault::Problem(format!(
            "`{}` must hold a number for each of {channels} channels",
            short(&c.origin.name)
        )));
    }
    let shape = std::iter::once(channels).chain(std::iter::repeat_n(1, rank - 2)).collect();
    Ok(Constant::new(shape, Data::Float(values), c.origin.clone()))
}

pub(super) fn softmax(importer: &mut Importer<'_>, node: &Node) -> Result<Tracked, Fault> {
    let x = importer.tracked(node, 0)?;
    let is_final = node.outputs.first().is_some_and(|name| importer.leads_to_output(name));
    if is_final && importer.model.options.strip_final_softmax {
        let log = node.operator == "LogSoftmax";
        importer.dropped = Some(if log { OutputLink::LogSoftmax } else { OutputLink::Softmax });
        importer.notes.push(format!("the final {} was dropped: the outputs are logits", node.operator));
        return Ok(x);
    }
    if node.operator == "LogSoftmax" {
        return Err(Fault::Unsupported(
            " inside a network; where it is the last layer, inference wants the logits before it: read the file with \
             strip_final_softmax, or export the model without it"
                .into(),
        ));
    }
    let since_13 = importer.model.opset >= 13;
    let along = axis(node.int("axis").unwrap_or(if since_13 { -1 } else { 1 }), x.rank())?;
    let rank = x.rank();
    let dims = x.dims.clone();
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
