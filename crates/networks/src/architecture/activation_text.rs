//! Activations in files: `"tanh"`, `"leaky_relu"` with the usual constants, or `{ leaky_relu = { slope = 0.2 } }`.

use crate::operation::Activation;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

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
