//! Interpolation of the spatial axes.
//!
//! ONNX has many ways to say where an output pixel is in the input. Each is worked out here for every pixel of every axis, and the operation of
//! the graph that takes the same pixels with the same weights is used; if none does, that is said.

use super::super::error::{Fault, short};
use super::super::importer::Importer;
use super::super::layout::Tracked;
use super::super::node::Node;
use posterior_networks::operation::{Interpolation, Operation, Resize};

/// Length of an axis at most.
const LONGEST: usize = 1 << 16;

pub(super) fn translate(importer: &mut Importer<'_>, node: &Node) -> Result<Tracked, Fault> {
    let x = importer.tracked(node, 0)?;
    let x = importer.batch_first(node, &x)?;
    let rank = x.rank();
    if rank < 3 {
        return Err("there are no spatial axes".into());
    }
    if node.int("antialias").unwrap_or(0) != 0 || node.ints("axes").is_some_and(|a| a.len() != rank) {
        return Err(Fault::Unsupported(" with `antialias` or `axes`".into()));
    }
    // The first `Resize` has the inputs of `Upsample`, and its way to place pixels.
    let upsample = node.operator == "Upsample" || importer.model.opset < 11;
    let numbers = |i: usize| -> Result<Option<Vec<f64>>, Fault> {
        Ok(importer.constant(node, i)?.map(|c| c.floats()).transpose()?.filter(|v| !v.is_empty()))
    };
    let scales = match node.floats("scales").filter(|_| upsample) {
        Some(scales) => Some(scales.iter().map(|&s| s.into()).collect()),
        None => numbers(if upsample { 1 } else { 2 })?,
    };
    let sizes = if upsample || scales.is_some() { None } else { sizes(importer, node)? };
    let source: Vec<f64> = x.dims.iter().map(|&l| l as f64).collect();
    // Output lengths, and output over input.
    let (target, ratio): (Vec<f64>, Vec<f64>) = match (scales, sizes) {
        (Some(scales), _) if scales.len() == rank => {
            (source.iter().zip(&scales).map(|(l, s)| (l * s + 1e-9).floor()).collect(), scales)
        }
        (None, Some(sizes)) if sizes.len() == rank => {
            let ratio = sizes.iter().zip(&source).map(|(to, from)| to / from).collect();
            (sizes, ratio)
        }
        _ => {
            return Err(Fault::Problem(format!(
                "`scales` or `sizes` must hold a number for each of {rank} axes"
            )));
        }
    };
    if (0..2).any(|i| ratio[i] != 1.0) {
        return Err(Fault::Unsupported(" for the axes of batch and channels".into()));
    }
    let lengths: Option<Vec<usize>> =
        target[2..].iter().map(|&l| (l >= 1.0 && l <= LONGEST as f64).then_some(l as usize)).collect();
    let lengths = lengths.filter(|_| x.dims[2..].iter().all(|&l| l <= LONGEST)).ok_or_else(|| {
        Fault::Limit(format!("an axis is resized from or to nothing or more than {LONGEST}"))
    })?;
    importer.charge(64 * lengths.iter().sum::<usize>())?;
    let operation = matching(node, &x.dims[2..], &lengths, &ratio[2..], upsample)?;
    let value = importer.emit(node, Operation::Resize(operation), &[x.value])?;
    Ok(Tracked { value, dims: [&x.dims[..2], &lengths].concat(), ..x })
}

/// The lengths in input 3; that of the batch axis is 1 for one example.
fn sizes(importer: &Importer<'_>, node: &Node) -> Result<Option<Vec<f64>>, Fault> {
    let Some(sizes) = importer.constant(node, 3)? else { return Ok(None) };
    let one = |d: &super::super::dimension::Dimension| match (d.known(), (d.fixed, d.batch)) {
        (Some(length), _) => Ok(length as f64),
        (None, (0, 1)) => Ok(1.0),
        _ => Err(Fault::Batch("a size depends on the number of examples".into())),
    };
    let mut lengths = sizes.dimensions()?.iter().map(one).collect::<Result<Vec<_>, _>>()?;
    let batch = importer.model.fixed.map(|batch| batch as f64);
    if let Some(length) = lengths.first_mut().filter(|l| Some(**l) == batch) {
        *length = 1.0;
    }
    Ok(Some(lengths))
}

/// Weights of source pixels for one output pixel.
type Pixel = Vec<(usize, f64)>;

/// The operation that does what the attributes say.
fn matching(
    node: &Node,
    from: &[usize],
    to: &[usize],
    ratio: &[f64],
    upsample: bool,
) -> Result<Resize, Fault> {
    let text = |name: &str, usual: &str| node.text(name).unwrap_or_else(|| usual.into());
    let mode = text("mode", "nearest");
    let usual = if upsample { "asymmetric" } else { "half_pixel" };
    let place = text("coordinate_transformation_mode", usual);
    let rounding = text("nearest_mode", if upsample { "floor" } else { "round_prefer_floor" });
    let described = format!(" in mode `{}` with `{}`, `{}`", short(&mode), short(&place), short(&rounding));
    let unsupported = || Fault::Unsupported(described.clone());
    let wanted: Option<Vec<Vec<Pixel>>> = (0..from.len())
        .map(|a| {
            (0..to[a])
                .map(|i| {
                    pixel(&mode, &rounding, position(&place, i as f64, from[a], to[a], ratio[a])?, from[a])
                })
                .collect()
        })
        .collect();
    let wanted = wanted.ok_or_else(unsupported)?;
    let kinds: &[Interpolation] = match mode.as_str() {
        "nearest" => &[Interpolation::Nearest],
        _ => &[Interpolation::Linear, Interpolation::LinearAligned],
    };
    let inverse: Vec<f64> = ratio.iter().map(|r| 1.0 / r).collect();
    for &interpolation in kinds {
        let given = Some(inverse.clone()).filter(|_| interpolation != Interpolation::LinearAligned);
        for scales in std::iter::once(None).chain(given.map(Some)) {
            let candidate = Resize { sizes: to.to_vec(), interpolation, scales };
            if (0..from.len()).all(|a| same(&candidate.axis(from[a], to[a], a), &wanted[a])) {
                return Ok(candidate);
            }
        }
    }
    Err(unsupported())
}

/// Where output pixel `i` is in the input.
fn position(place: &str, i: f64, from: usize, to: usize, ratio: f64) -> Option<f64> {
    Some(match place {
        "half_pixel" => (i + 0.5) / ratio - 0.5,
        "pytorch_half_pixel" if to == 1 => 0.0,
        "pytorch_half_pixel" => (i + 0.5) / ratio - 0.5,
        "align_corners" if to == 1 => 0.0,
        "align_corners" => i * (from - 1) as f64 / (to - 1) as f64,
        "asymmetric" => i / ratio,
        _ => return None,
    })
}

/// What is taken at a position.
fn pixel(mode: &str, rounding: &str, position: f64, from: usize) -> Option<Pixel> {
    let last = (from - 1) as f64;
    match mode {
        "nearest" => {
            // Positions on the grid are computed with a rounding error, which must not change the pixel.
            let near = position.round();
            let position = if (position - near).abs() < 1e-6 { near } else { position };
            let nearest = match rounding {
                "floor" => position.floor(),
                "ceil" => position.ceil(),
                "round_prefer_floor" => (position - 0.5).ceil(),
                "round_prefer_ceil" => (position + 0.5).floor(),
                _ => return None,
            };
            Some(vec![(nearest.clamp(0.0, last) as usize, 1.0)])
        }
        "linear" | "bilinear" => {
            let position = position.clamp(0.0, last);
            let low = position.floor();
            Some(vec![(low as usize, 1.0 - (position - low)), (low as usize + 1, position - low)])
        }
        _ => None,
    }
}

/// Whether two lists of pixels are the same up to rounding.
fn same(a: &[Pixel], b: &[Pixel]) -> bool {
    let at = |pixel: &Pixel| pixel.iter().map(|&(i, w)| i as f64 * w).sum::<f64>();
    // With weights that add up to 1 on neighbours, the mean position says it all.
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| (at(a) - at(b)).abs() < 1e-5)
}
