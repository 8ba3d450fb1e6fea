//! Recurrent layers as a layer of a file has them.

use super::layer_text::settings;
use crate::graph::{Recurrent, RecurrentCell};
use crate::operation::Activation;
use serde::Deserialize;
use toml::{Table, Value};

/// What a file says; each cell has some of it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Text {
    hidden: usize,
    #[serde(default = "one")]
    layers: usize,
    #[serde(default)]
    bidirectional: bool,
    #[serde(default = "yes")]
    bias: bool,
    #[serde(default)]
    returns: Returns,
    reset_after: Option<bool>,
    activation: Option<Nonlinearity>,
}

#[derive(Clone, Copy, Default, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Returns {
    #[default]
    Sequence,
    Last,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Nonlinearity {
    Tanh,
    Relu,
}

fn one() -> usize {
    1
}

fn yes() -> bool {
    true
}

/// The layer of a name (`lstm`, `gru`, `rnn`) and its settings.
pub(super) fn gather(name: &str, table: Table) -> Result<Recurrent, String> {
    let text: Text = settings(table)?;
    let cell = match name {
        "gru" => RecurrentCell::Gru { reset_after: text.reset_after.unwrap_or(true) },
        "rnn" => RecurrentCell::Rnn {
            activation: match text.activation {
                None | Some(Nonlinearity::Tanh) => Activation::Tanh,
                Some(Nonlinearity::Relu) => Activation::Relu,
            },
        },
        _ => RecurrentCell::Lstm,
    };
    if text.reset_after.is_some() && name != "gru" {
        return Err("`reset_after` is a setting of \"gru\"".into());
    }
    if text.activation.is_some() && name != "rnn" {
        return Err("`activation` is a setting of \"rnn\"".into());
    }
    Ok(Recurrent {
        cell,
        hidden: text.hidden,
        layers: text.layers,
        bidirectional: text.bidirectional,
        bias: text.bias,
        last: text.returns == Returns::Last,
    })
}

/// The name and settings of a layer; the inverse of [`gather`].
pub(super) fn split(layer: &Recurrent) -> Result<(String, Table), String> {
    let number = |n: usize| i64::try_from(n).map(Value::Integer).map_err(|e| e.to_string());
    let mut table = Table::from_iter([
        ("hidden".to_string(), number(layer.hidden)?),
        ("layers".to_string(), number(layer.layers)?),
        ("bidirectional".to_string(), Value::Boolean(layer.bidirectional)),
        ("bias".to_string(), Value::Boolean(layer.bias)),
        ("returns".to_string(), Value::String(if layer.last { "last" } else { "sequence" }.into())),
    ]);
    match layer.cell {
        RecurrentCell::Lstm => {}
        RecurrentCell::Gru { reset_after } => {
            table.insert("reset_after".into(), Value::Boolean(reset_after));
        }
        RecurrentCell::Rnn { activation } => {
            if !matches!(activation, Activation::Tanh | Activation::Relu) {
                return Err(format!("a recurrent layer with `{}` has no text form", activation.name()));
            }
            table.insert("activation".into(), Value::String(activation.name().into()));
        }
    }
    Ok((layer.cell.name().into(), table))
}
