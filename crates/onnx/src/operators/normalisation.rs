//! Batch, layer, RMS, instance and group norm.

use super::super::constant::{Constant, Data};
use super::super::error::{Fault, short};
use super::super::importer::{Importer, Parameter};
use super::super::layout::{Tracked, axis};
use super::super::node::{Fused, Node};
use super::binary::{plus, times};
use posterior_networks::operation::{BatchNorm, Normalise, Operation, Over, RmsNormalise};

/// What patterns were put together to.
pub(super) fn fused(importer: &mut Importer<'_>, node: &Node, fused: Fused) -> Result<Tracked, Fault> {
    let x = importer.tracked(node, 0)?;
    match fused {
        Fused::Identity => Ok(x),
        Fused::GuardedSoftmax => super::softmax::guarded(importer, node, x),
        Fused::Activation(kind) => super::elementwise::activation(importer, node, x, kind),
        Fused::Normalise { epsilon } => {
            let axes = fused_axes(importer, node, &x)?;
            normalised(importer, node, x, &axes, |over| Operation::Normalise(Normalise { over, epsilon }))
        }
        Fused::RmsNormalise { epsilon } => {
            let axes = fused_axes(importer, node, &x)?;
            normalised(importer, node, x, &axes, |over| {
                Operation::RmsNormalise(RmsNormalise { over, epsilon })
            })
        }
    }
}

fn fused_axes(importer: &Importer<'_>, node: &Node, x: &Tracked) -> Result<Vec<usize>, Fault> {
    let axes = importer.list(node, "axes", 1)?.ok_or("the axes of the means are missing")?;
    Ok(axes.iter().map(|&a| axis(a, x.rank())).collect::<Result<_, _>>()?)
}

/// A normalisation over some axes, which are put behind the others for it.
pub(super) fn normalised(
    importer: &mut Importer<'_>,
    node: &Node,
    x: Tracked,
    axes: &[usize],
    operation: impl Fn(Over) -> Operation,
) -> Result<Tracked, Fault> {
    let rank = x.rank();
    let over: Vec<usize> = (0..rank).filter(|a| axes.contains(a)).collect();
    if over.is_empty() {
        return Err("the means are over no axes".into());
    }
    let first = rank - over.len();
    let order: Vec<usize> = (0..rank).filter(|a| !axes.contains(a)).chain(over).collect();
    let mut x = x;
    for &a in axes {
        x = importer.release(node, x, a)?;
    }
    let mut x = importer.transpose(node, &x, &order)?;
    // Released axes may have been dropped again further on; then none is.
    if x.place.is_some_and(|p| p.axis >= first) {
        let dims = x.dims.clone();
        x = importer.view(node, &x, dims, None)?;
    }
    let value = importer.emit(node, operation(Over::LastAxes(rank - first)), &[x.value])?;
    let back: Vec<usize> = (0..rank).filter_map(|a| order.iter().position(|&o| o == a)).collect();
    importer.transpose(node, &Tracked { value, whole: false, ..x }, &back)
}

/// The axes from one on.
fn axes_from(node: &Node, x: &Tracked) -> Result<Vec<usize>, Fault> {
    Ok((axis(node.int("axis").unwrap_or(-1), x.rank())?..x.rank()).collect())
}

/// RMS norm: a weight, and no mean is taken off.
pub(super) fn rms(importer: &mut Importer<'_>, node: &Node) -> Result<Tracked, Fault> {
    if node.operator == "RMSNormalization" && importer.model.opset < 23 {
        return Err(Fault::Unsupported(" before operator set 23".into()));
    }
    let x = importer.tracked(node, 0)?;
    let axes = axes_from(node, &x)?;
    let weight = importer.required(node, 1)?;
    let epsilon = usual_epsilon(node);
    let y =
        normalised(importer, node, x, &axes, |over| Operation::RmsNormalise(RmsNormalise { over, epsilon }))?;
    affine(importer, node, y, &weight, None)
}

fn usual_epsilon(node: &Node) -> f64 {
    node.float("epsilon").unwrap_or(1e-5)
}

pub(super) fn batch(importer: &mut Importer<'_>, node: &Node) -> Result<Tracked, Fault> {
    // Before operator set 14, the statistics of the batch as further outputs say that they are used.
    let more = importer.model.opset < 14 && node.outputs.iter().skip(1).any(|name| !name.is_empty());
    if more || node.int("training_mode").unwrap_or(0) != 0 {
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
    let axes = axes_from(node, &x)?;
    let weight = importer.required(node, 1)?;
    let bias = importer.constant(node, 2)?;
    let epsilon = usual_epsilon(node);
    let y = normalised(importer, node, x, &axes, |over| Operation::Normalise(Normalise { over, epsilon }))?;
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
