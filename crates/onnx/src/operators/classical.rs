//! The domain `ai.onnx.ml`, as far as pipelines of scikit-learn need it: scaling of columns, linear models, and normalising what is normalised.

use super::super::constant::{Constant, Data, Origin};
use super::super::error::{Fault, short};
use super::super::importer::{Importer, Known};
use super::super::layout::Tracked;
use super::super::node::Node;
use super::binary::{plus, times};
use super::elementwise::activation;
use super::linear::layer;
use posterior_networks::Activation;
use posterior_networks::graph::OutputLink;
use posterior_networks::operation::Operation;

/// The name of the domain.
pub(super) const DOMAIN: &str = "ai.onnx.ml";

/// The outputs of a node of the domain; that of labels is left out.
pub(super) fn translate(importer: &mut Importer<'_>, node: &Node) -> Result<Vec<Known>, Fault> {
    let value = match node.operator.as_str() {
        "Scaler" => scaler(importer, node)?,
        "LinearRegressor" => regressor(importer, node)?,
        "LinearClassifier" => {
            let scores = classifier(importer, node)?;
            // The first output is the label, which is no function that can be differentiated: nothing here may read it.
            if let Some(name) = node.outputs.get(1) {
                importer.set(name, Known::Tracked(scores));
            }
            return Ok(vec![]);
        }
        "Normalizer" if sums_to_one(importer, node) => importer.tracked(node, 0)?,
        "Normalizer" => {
            return Err(Fault::Unsupported(" but for probabilities that add up to 1 already".into()));
        }
        _ => return Err(Fault::Unsupported(format!(" (of the domain `{DOMAIN}`)"))),
    };
    Ok(vec![Known::Tracked(value)])
}

/// Numbers of an attribute as a row that is no weight.
fn row(importer: &mut Importer<'_>, node: &Node, name: &str) -> Result<Option<Constant>, Fault> {
    let Some(values) = node.floats(name).filter(|v| !v.is_empty()) else { return Ok(None) };
    importer.charge(values.len())?;
    let values: Vec<f64> = values.iter().map(|&v| v.into()).collect();
    let origin = Origin::constant(format!("{}.{name}", node.name));
    let shape = if values.len() == 1 { vec![] } else { vec![values.len()] };
    Ok(Some(Constant::new(shape, Data::Float(values), origin)))
}

/// Columns of a matrix: its second axis.
fn columns(x: &Tracked) -> Result<usize, Fault> {
    match x.dims[..] {
        [_, columns] => Ok(columns),
        _ => Err(Fault::Problem(format!("it needs a matrix, its input has {} axes", x.rank()))),
    }
}

/// `(x - offset) * scale`.
fn scaler(importer: &mut Importer<'_>, node: &Node) -> Result<Tracked, Fault> {
    let mut x = importer.tracked(node, 0)?;
    let wanted = columns(&x)?;
    let (offset, scale) = (row(importer, node, "offset")?, row(importer, node, "scale")?);
    if [&offset, &scale].into_iter().flatten().any(|c| c.len() != 1 && c.len() != wanted) {
        return Err(Fault::Problem(format!("`offset` and `scale` must hold 1 or {wanted} numbers")));
    }
    if let Some(offset) = offset {
        let negative = offset.floats()?.into_iter().map(|v| -v).collect();
        x = plus(
            importer,
            node,
            x,
            &Constant::new(offset.shape.clone(), Data::Float(negative), offset.origin),
        )?;
    }
    match scale {
        Some(scale) => times(importer, node, x, &scale),
        None => Ok(x),
    }
}

/// `x W^T + b` with `outputs` rows of coefficients, which are weights.
fn linear(importer: &mut Importer<'_>, node: &Node, outputs: usize) -> Result<Tracked, Fault> {
    let x = importer.tracked(node, 0)?;
    let inputs = columns(&x)?;
    let weights =
        |importer: &mut Importer<'_>, name: &str, shape: Vec<usize>| -> Result<Option<Constant>, Fault> {
            let Some(numbers) = row(importer, node, name)? else { return Ok(None) };
            if Some(numbers.len()) != super::super::constant::count(&shape) {
                return Err(Fault::Problem(format!(
                    "`{name}` holds {} numbers, {shape:?} are needed",
                    numbers.len()
                )));
            }
            let origin = Origin::made(numbers.origin.name.clone(), true);
            Ok(Some(Constant { shape, origin, ..numbers }))
        };
    let weight =
        weights(importer, "coefficients", vec![outputs, inputs])?.ok_or("`coefficients` are missing")?;
    let bias = weights(importer, "intercepts", vec![outputs])?;
    layer(importer, node, x, &weight, bias.as_ref())
}

fn regressor(importer: &mut Importer<'_>, node: &Node) -> Result<Tracked, Fault> {
    let targets = usize::try_from(node.int("targets").unwrap_or(1)).map_err(|_| "`targets` is negative")?;
    match node.text("post_transform").as_deref() {
        None | Some("NONE") => linear(importer, node, targets),
        Some(other) => Err(Fault::Unsupported(format!(" with post_transform = `{}`", short(other)))),
    }
}

/// Number of classes.
fn labels(node: &Node) -> usize {
    ["classlabels_ints", "classlabels_strings"].iter().filter_map(|name| node.length(name)).sum()
}

/// Scores or probabilities of classes.
fn classifier(importer: &mut Importer<'_>, node: &Node) -> Result<Tracked, Fault> {
    let inputs = columns(&importer.tracked(node, 0)?)?.max(1);
    let classes = node.floats("coefficients").map_or(0, <[f32]>::len) / inputs;
    let labels = labels(node);
    if classes != labels {
        return Err(Fault::Unsupported(format!(" with {classes} rows of coefficients for {labels} classes")));
    }
    let scores = linear(importer, node, classes)?;
    match node.text("post_transform").as_deref() {
        None | Some("NONE") => Ok(scores),
        Some("LOGISTIC") => activation(importer, node, scores, Activation::Sigmoid),
        Some("SOFTMAX") if importer.model.options.strip_final_softmax && is_last(importer, node) => {
            importer.dropped = Some(OutputLink::Softmax);
            importer.notes.push("the final softmax was dropped: the outputs are logits".into());
            Ok(scores)
        }
        Some("SOFTMAX") => {
            let value = importer.emit(node, Operation::Softmax, &[scores.value])?;
            Ok(Tracked { value, ..scores })
        }
        Some(other) => Err(Fault::Unsupported(format!(" with post_transform = `{}`", short(other)))),
    }
}

/// Whether the scores become the output of the model, but for a normalisation that changes nothing.
fn is_last(importer: &Importer<'_>, node: &Node) -> bool {
    let Some(scores) = node.outputs.get(1) else { return false };
    let normalised = importer
        .only_reader(scores)
        .filter(|(_, reader)| reader.operator == "Normalizer" && reader.domain == DOMAIN)
        .and_then(|(_, reader)| reader.outputs.first());
    importer.leads_to_output(normalised.unwrap_or(scores))
}

/// Whether a `Normalizer` divides positive numbers by their sum, which is 1: after a softmax, or two opposite sigmoids.
fn sums_to_one(importer: &Importer<'_>, node: &Node) -> bool {
    let made =
        |n: &&Node| n.operator == "LinearClassifier" && n.outputs.get(1).map(String::as_str) == node.input(0);
    let Some(before) = importer.model.nodes.iter().find(made) else { return false };
    let opposite = |name: &str| {
        let values = before.floats(name).unwrap_or_default();
        let (a, b) = values.split_at(values.len() / 2);
        a.len() == b.len() && a.iter().zip(b).all(|(a, b)| *a == -b)
    };
    let one = match before.text("post_transform").as_deref() {
        Some("SOFTMAX") => true,
        Some("LOGISTIC") => labels(before) == 2 && opposite("coefficients") && opposite("intercepts"),
        _ => false,
    };
    one && node.text("norm").as_deref() == Some("L1")
}
