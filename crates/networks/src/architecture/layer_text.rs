//! Operations as a layer of a file has them: a name and flat settings, `operation = "linear"`, `outputs = 10`.

use super::activation_text;
use super::layers::LayerOperation;
use super::recurrent_text;
use crate::operation::{Activation, Operation};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use toml::{Table, Value};

/// Operations with settings of their own, as in [`Operation`].
const WITH_SETTINGS: &[&str] = &[
    "linear",
    "convolution",
    "batch_norm",
    "bias",
    "gain",
    "learned",
    "normalise",
    "rms_normalise",
    "matrix_product",
    "transpose",
    "slice",
    "pad",
    "mean",
    "largest",
    "smallest",
    "broadcast",
    "max_pool",
    "average_pool",
    "resize",
    "embedding",
];

/// Operations whose settings are written differently, or that are made of several.
const OTHERS: &[&str] = &[
    "softmax",
    "multiply",
    "add",
    "divide",
    "maximum",
    "minimum",
    "choose",
    "scale",
    "concatenate",
    "reshape",
    "flatten",
    "layer_norm",
    "rms_norm",
    "group_norm",
    "lstm",
    "gru",
    "rnn",
];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Nothing {}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Scale {
    factor: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Concatenate {
    #[serde(default)]
    axis: usize,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Reshape {
    shape: Vec<usize>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LayerNorm {
    axes: Option<usize>,
    epsilon: Option<f64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GroupNorm {
    groups: usize,
    epsilon: Option<f64>,
}

pub(super) fn settings<T: DeserializeOwned>(table: Table) -> Result<T, String> {
    T::deserialize(Value::Table(table)).map_err(|e| e.message().to_string())
}

/// The names of all operations.
pub(super) fn names() -> Vec<&'static str> {
    [WITH_SETTINGS, OTHERS, activation_text::NAMES].concat()
}

/// The operations whose names are most like this one.
fn closest(name: &str) -> String {
    let mut names = names();
    names.sort_by(|a, b| strsim::jaro_winkler(b, name).total_cmp(&strsim::jaro_winkler(a, name)));
    names.truncate(5);
    names.join(", ")
}

/// Repeats single numbers for all axes: two, or as many as another setting has entries.
fn spread(table: &mut Table, keys: &[&str]) {
    let length = keys.iter().find_map(|&key| table.get(key)?.as_array().map(Vec::len)).unwrap_or(2);
    for &key in keys {
        if let Some(value) = table.get_mut(key).filter(|v| v.is_integer()) {
            *value = Value::Array(vec![value.clone(); length]);
        }
    }
}

/// The operation of a name and its settings.
pub(super) fn gather(name: &str, mut table: Table) -> Result<LayerOperation, String> {
    let plain = LayerOperation::Plain;
    Ok(match name {
        "softmax" => settings::<Nothing>(table).map(|_| plain(Operation::Softmax))?,
        "multiply" => settings::<Nothing>(table).map(|_| plain(Operation::Multiply))?,
        "add" => settings::<Nothing>(table).map(|_| plain(Operation::Add))?,
        "divide" => settings::<Nothing>(table).map(|_| plain(Operation::Divide))?,
        "maximum" => settings::<Nothing>(table).map(|_| plain(Operation::Maximum))?,
        "minimum" => settings::<Nothing>(table).map(|_| plain(Operation::Minimum))?,
        "choose" => settings::<Nothing>(table).map(|_| plain(Operation::Choose))?,
        "scale" => plain(Operation::Scale(settings::<Scale>(table)?.factor)),
        "concatenate" => plain(Operation::Concatenate(settings::<Concatenate>(table)?.axis)),
        "reshape" => plain(Operation::Reshape(settings::<Reshape>(table)?.shape)),
        "flatten" => settings::<Nothing>(table).map(|_| LayerOperation::Flatten)?,
        "layer_norm" => {
            let LayerNorm { axes, epsilon } = settings(table)?;
            LayerOperation::LayerNorm { axes: axes.unwrap_or(1), epsilon: epsilon.unwrap_or(1e-5) }
        }
        "rms_norm" => {
            let LayerNorm { axes, epsilon } = settings(table)?;
            LayerOperation::RmsNorm { axes: axes.unwrap_or(1), epsilon: epsilon.unwrap_or(1e-5) }
        }
        "group_norm" => {
            let GroupNorm { groups, epsilon } = settings(table)?;
            LayerOperation::GroupNorm { groups, epsilon: epsilon.unwrap_or(1e-5) }
        }
        "lstm" | "gru" | "rnn" => LayerOperation::Recurrent(recurrent_text::gather(name, table)?),
        _ => match Activation::named(name) {
            Some(activation) => {
                plain(Operation::Activation(activation_text::with_constants(activation, table)?))
            }
            None if WITH_SETTINGS.contains(&name) => {
                match name {
                    "convolution" => spread(
                        &mut table,
                        &["kernel", "stride", "padding", "padding_after", "dilation", "output_padding"],
                    ),
                    "max_pool" | "average_pool" => {
                        spread(&mut table, &["kernel", "stride", "padding", "padding_after", "dilation"]);
                    }
                    _ => {}
                }
                plain(settings(Table::from_iter([(name.to_string(), Value::Table(table))]))?)
            }
            None => {
                let close = closest(name);
                return Err(format!(
                    "there is no operation \"{name}\"; similar ones are {close}, and the page `networks` of the book lists all"
                ));
            }
        },
    })
}

/// The name and settings of an operation; the inverse of [`gather`].
pub(super) fn split(operation: &LayerOperation) -> Result<(String, Table), String> {
    let number = |n: usize| i64::try_from(n).map(Value::Integer).map_err(|e| e.to_string());
    let with = |name: &str, entries: Vec<(&str, Value)>| {
        (name.to_string(), entries.into_iter().map(|(key, value)| (key.to_string(), value)).collect())
    };
    Ok(match operation {
        LayerOperation::Flatten => with("flatten", vec![]),
        LayerOperation::LayerNorm { axes, epsilon } => {
            with("layer_norm", vec![("axes", number(*axes)?), ("epsilon", Value::Float(*epsilon))])
        }
        LayerOperation::RmsNorm { axes, epsilon } => {
            with("rms_norm", vec![("axes", number(*axes)?), ("epsilon", Value::Float(*epsilon))])
        }
        LayerOperation::GroupNorm { groups, epsilon } => {
            with("group_norm", vec![("groups", number(*groups)?), ("epsilon", Value::Float(*epsilon))])
        }
        LayerOperation::Recurrent(recurrent) => recurrent_text::split(recurrent)?,
        LayerOperation::Plain(operation) => match operation {
            Operation::Softmax => with("softmax", vec![]),
            Operation::Multiply => with("multiply", vec![]),
            Operation::Add => with("add", vec![]),
            Operation::Divide => with("divide", vec![]),
            Operation::Maximum => with("maximum", vec![]),
            Operation::Minimum => with("minimum", vec![]),
            Operation::Choose => with("choose", vec![]),
            Operation::Scale(factor) => with("scale", vec![("factor", Value::Float(*factor))]),
            Operation::Concatenate(axis) => with("concatenate", vec![("axis", number(*axis)?)]),
            Operation::Reshape(shape) => {
                let shape = shape.iter().map(|&n| number(n)).collect::<Result<_, _>>()?;
                with("reshape", vec![("shape", Value::Array(shape))])
            }
            &Operation::Activation(activation) => {
                (activation.name().to_string(), activation_text::constants(activation)?)
            }
            other => {
                let value = Value::try_from(other).map_err(|e| e.to_string())?;
                match value {
                    Value::Table(table) => match table.into_iter().next() {
                        Some((name, Value::Table(settings))) => (name, settings),
                        _ => return Err(format!("`{}` has no text form", other.name())),
                    },
                    _ => return Err(format!("`{}` has no text form", other.name())),
                }
            }
        },
    })
}
