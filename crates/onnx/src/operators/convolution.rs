//! Convolutions and their transposes.

use super::super::error::{Fault, short};
use super::super::importer::{Importer, Parameter};
use super::super::layout::Tracked;
use super::super::node::Node;
use posterior_networks::operation::{Convolution, Operation};

/// Lengths in an attribute, one for each of `axes`, or the usual value.
pub(super) fn lengths(node: &Node, name: &str, axes: usize, usual: usize) -> Result<Vec<usize>, Fault> {
    let Some(list) = node.ints(name).filter(|l| !l.is_empty()) else { return Ok(vec![usual; axes]) };
    let lengths: Option<Vec<usize>> = list.iter().map(|&v| usize::try_from(v).ok()).collect();
    lengths.filter(|l| l.len() == axes).ok_or_else(|| {
        Fault::Problem(format!("`{name}` must hold a number of at least 0 for each of {axes} spatial axes"))
    })
}

/// Padding before and behind each spatial axis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Padding {
    pub(super) before: Vec<usize>,
    pub(super) after: Vec<usize>,
}

impl Padding {
    /// The same on both sides of each axis: `total` zeros, one more behind (or in front).
    fn split(total: &[usize], more_behind: bool) -> Self {
        let (small, large) =
            (total.iter().map(|t| t / 2).collect(), total.iter().map(|t| t.div_ceil(2)).collect());
        if more_behind { Self { before: small, after: large } } else { Self { before: large, after: small } }
    }

    /// What `pads` and `auto_pad` say of windows on axes of length `size`.
    pub(super) fn of(
        node: &Node,
        size: &[usize],
        kernel: &[usize],
        stride: &[usize],
        dilation: &[usize],
    ) -> Result<Self, Fault> {
        let axes = size.len();
        let mode = node.text("auto_pad").unwrap_or_else(|| "NOTSET".into());
        match mode.as_str() {
            "NOTSET" => {
                let pads = lengths(node, "pads", 2 * axes, 0)?;
                Ok(Self { before: pads[..axes].to_vec(), after: pads[axes..].to_vec() })
            }
            "VALID" => Ok(Self { before: vec![0; axes], after: vec![0; axes] }),
            "SAME_UPPER" | "SAME_LOWER" => {
                // What the windows need, and what there is.
                let needed: Option<Vec<usize>> = (0..axes)
                    .map(|i| {
                        let reach = kernel[i].checked_sub(1)?.checked_mul(dilation[i])?.checked_add(1)?;
                        let steps = size[i].div_ceil(stride[i].max(1)).checked_sub(1)?;
                        steps.checked_mul(stride[i])?.checked_add(reach)
                    })
                    .collect();
                let needed = needed.ok_or("the window is empty or too large")?;
                if needed.iter().zip(size).any(|(n, s)| n + 1 < *s) {
                    return Err(Fault::Unsupported(
                        " with auto_pad and windows that leave more than one value out: programs differ in where they begin".into(),
                    ));
                }
                let total: Vec<usize> = needed.iter().zip(size).map(|(n, s)| n.saturating_sub(*s)).collect();
                Ok(Self::split(&total, mode == "SAME_UPPER"))
            }
            other => Err(Fault::Unsupported(format!(" with auto_pad = `{}`", short(other)))),
        }
    }
}

pub(super) fn translate(importer: &mut Importer<'_>, node: &Node) -> Result<Tracked, Fault> {
    let x = importer.tracked(node, 0)?;
    let x = importer.batch_first(node, &x)?;
    let weight = importer.required(node, 1)?;
    let bias = importer.constant(node, 2)?;
    let transposed = node.operator == "ConvTranspose";
    let axes = x.rank().saturating_sub(2);
    if axes == 0 || weight.shape.len() != axes + 2 {
        return Err(Fault::Problem(format!(
            "an input with {} axes does not fit a weight of shape {:?}",
            x.rank(),
            weight.shape
        )));
    }
    let kernel = weight.shape[2..].to_vec();
    if lengths(node, "kernel_shape", axes, 0)?.iter().zip(&kernel).any(|(&k, &w)| k != 0 && k != w) {
        return Err(Fault::Problem(format!(
            "`kernel_shape` differs from the weight's shape {:?}",
            weight.shape
        )));
    }
    let stride = lengths(node, "strides", axes, 1)?;
    let dilation = lengths(node, "dilations", axes, 1)?;
    let groups = node.int("group").unwrap_or(1);
    let groups = usize::try_from(groups).map_err(|_| format!("`group` is {groups}"))?;
    let (padding, output_padding) = match transposed {
        false => (Padding::of(node, &x.dims[2..], &kernel, &stride, &dilation)?, vec![]),
        true => transposed_padding(node, &x.dims[2..], &kernel, &stride, &dilation)?,
    };
    let outputs = if transposed {
        weight.shape[1].checked_mul(groups).ok_or("there are too many channels")?
    } else {
        weight.shape[0]
    };
    importer.charge(weight.len())?;
    let mut parameters = vec![Parameter::new(&weight, weight.shape.clone())?];
    if let Some(bias) = &bias {
        parameters.push(Parameter::new(bias, vec![outputs])?);
    }
    let operation = Operation::Convolution(Convolution {
        outputs,
        kernel,
        stride,
        padding_after: if padding.after == padding.before { vec![] } else { padding.after },
        padding: padding.before,
        dilation,
        groups,
        bias: bias.is_some(),
        transposed,
        output_padding,
    });
    let value = importer.emit_with(node, operation, &[x.value], parameters)?;
    let dims = std::iter::once(1).chain(importer.builder.shape(value).iter().copied()).collect();
    Ok(Tracked { value, dims, place: x.place, whole: false })
}

/// Padding and additional output of a transposed convolution; `output_shape` and `auto_pad` choose the padding that gives the wanted size.
fn transposed_padding(
    node: &Node,
    size: &[usize],
    kernel: &[usize],
    stride: &[usize],
    dilation: &[usize],
) -> Result<(Padding, Vec<usize>), Fault> {
    let axes = size.len();
    let extra = lengths(node, "output_padding", axes, 0)?;
    let mode = node.text("auto_pad").unwrap_or_else(|| "NOTSET".into());
    let wanted = match node.ints("output_shape").filter(|l| !l.is_empty()) {
        Some(_) => Some(lengths(node, "output_shape", axes, 0)?),
        None if mode.starts_with("SAME") => {
            Some((0..axes).map(|i| size[i].saturating_mul(stride[i])).collect())
        }
        None => None,
    };
    let Some(wanted) = wanted else {
        return Ok((Padding::of(node, size, kernel, stride, dilation)?, extra));
    };
    let total: Option<Vec<usize>> = (0..axes)
        .map(|i| {
            let reach = kernel[i].checked_sub(1)?.checked_mul(dilation[i])?.checked_add(1)?;
            let full = size[i].checked_sub(1)?.checked_mul(stride[i])?.checked_add(reach)?;
            full.checked_add(extra[i])?.checked_sub(wanted[i])
        })
        .collect();
    let total = total.ok_or("the wanted output is larger than what the kernel reaches")?;
    Ok((Padding::split(&total, mode == "SAME_UPPER"), extra))
}
