//! Activations in files: `"tanh"`, `"leaky_relu"` with the usual constants, or `{ leaky_relu = { slope = 0.2 } }`.

use crate::operation::Activation;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use toml::{Table, Value};

/// The names that files may use.
pub(super) const NAMES: &[&str] = &[
    "identity",
    "relu",
    "leaky_relu",
    "tanh",
    "sigmoid",
    "gelu",
    "gelu_tanh",
    "silu",
    "softplus",
    "elu",
    "erf",
    "sin",
    "cos",
    "exp",
    "log",
    "sqrt",
    "reciprocal",
    "power",
    "abs",
    "sign",
    "floor",
    "round",
    "clip",
    "hard_sigmoid",
    "hard_swish",
    "mish",
    "softsign",
    "celu",
    "thresholded_relu",
    "shrink",
];

/// As a name where its constants are the usual ones.
pub(super) fn serialize<S: Serializer>(activation: &Activation, serializer: S) -> Result<S::Ok, S::Error> {
    if Activation::named(activation.name()) == Some(*activation) {
        serializer.serialize_str(activation.name())
    } else {
        activation.serialize(serializer)
    }
}

/// From a name or a table.
pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Activation, D::Error> {
    deserializer.deserialize_any(Text)
}

struct Text;

impl<'de> Visitor<'de> for Text {
    type Value = Activation;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "an activation: one of {}, or a table as {{ leaky_relu = {{ slope = 0.2 }} }}",
            NAMES.join(", ")
        )
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Activation, E> {
        Activation::named(name).ok_or_else(|| E::unknown_variant(name, NAMES))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Activation, A::Error> {
        Activation::deserialize(MapAccessDeserializer::new(map))
    }
}

/// The activation of a name with constants of its own; the usual ones where they are left out.
pub(super) fn with_constants(activation: Activation, own: Table) -> Result<Activation, String> {
    let mut value = Value::try_from(activation).map_err(|e| e.to_string())?;
    match value.as_table_mut().and_then(|table| table.iter_mut().next()) {
        Some((_, Value::Table(constants))) => constants.extend(own),
        _ => {
            if let Some(key) = own.keys().next() {
                return Err(format!("unknown field `{key}`, there are no settings"));
            }
        }
    }
    Activation::deserialize(value).map_err(|e| e.message().to_string())
}

/// Its constants by name.
pub(super) fn constants(activation: Activation) -> Result<Table, String> {
    match Value::try_from(activation).map_err(|e| e.to_string())? {
        Value::Table(table) => match table.into_iter().next() {
            Some((_, Value::Table(constants))) => Ok(constants),
            _ => Err(format!("`{}` has no text form", activation.name())),
        },
        _ => Ok(Table::new()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_all_activations() {
        assert_eq!(Activation::USUAL.map(Activation::name), *NAMES);
    }

    #[test]
    fn constants_that_are_left_out_are_the_usual_ones() {
        let read = |text: &str| {
            let mut table: Table = toml::from_str(text).unwrap();
            let name = table.remove("operation").unwrap();
            with_constants(Activation::named(name.as_str().unwrap()).unwrap(), table)
        };
        assert_eq!(read("operation = 'elu'").unwrap(), Activation::Elu { alpha: 1.0 });
        assert_eq!(read("operation = 'elu'\nalpha = 2").unwrap(), Activation::Elu { alpha: 2.0 });
        let beta = Activation::HardSigmoid { alpha: 1.0 / 6.0, beta: 0.25 };
        assert_eq!(read("operation = 'hard_sigmoid'\nbeta = 0.25").unwrap(), beta);
        let above = Activation::Clip { low: -1.0, high: f64::MAX };
        assert_eq!(read("operation = 'clip'\nlow = -1.0").unwrap(), above);
        assert_eq!(constants(above).unwrap().len(), 1);
        assert!(read("operation = 'elu'\nslope = 2").unwrap_err().contains("unknown field `slope`"));
        assert!(read("operation = 'relu'\nslope = 2").unwrap_err().contains("unknown field `slope`"));
    }
}
