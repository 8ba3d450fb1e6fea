//! `#[serde(with = "posterior_store::any_number")]`: a number that may be NaN or infinite, which are texts in JSON.

use crate::finite::name_of;
use serde::de::{Deserializer, Error, Unexpected, Visitor};
use serde::ser::Serializer;

/// The number, or its name.
///
/// # Errors
/// Those of the serialiser.
pub fn serialize<S: Serializer>(value: &f64, out: S) -> Result<S::Ok, S::Error> {
    match name_of(*value) {
        None => out.serialize_f64(*value),
        Some(name) => out.serialize_str(name),
    }
}

/// What [`serialize`] wrote.
///
/// # Errors
/// For anything else.
pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    from.deserialize_any(AnyNumber)
}

struct AnyNumber;

impl Visitor<'_> for AnyNumber {
    type Value = f64;

    fn expecting(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("a number, \"NaN\", \"Infinity\" or \"-Infinity\"")
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<f64, E> {
        Ok(value)
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<f64, E> {
        Ok(value as f64)
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<f64, E> {
        Ok(value as f64)
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<f64, E> {
        let all = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY];
        let found = all.into_iter().find(|value| name_of(*value) == Some(name));
        found.ok_or_else(|| E::invalid_value(Unexpected::Str(name), &self))
    }
}

/// The same of a number that may be absent, which is `null`.
pub mod optional {
    use serde::de::{Deserialize, Deserializer};
    use serde::ser::{Serialize, Serializer};

    struct One(f64);

    impl Serialize for One {
        fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
            super::serialize(&self.0, out)
        }
    }

    impl<'de> Deserialize<'de> for One {
        fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
            super::deserialize(from).map(Self)
        }
    }

    /// As [`super::serialize`].
    ///
    /// # Errors
    /// Those of the serialiser.
    pub fn serialize<S: Serializer>(value: &Option<f64>, out: S) -> Result<S::Ok, S::Error> {
        value.map(One).serialize(out)
    }

    /// As [`super::deserialize`].
    ///
    /// # Errors
    /// As [`super::deserialize`].
    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<f64>, D::Error> {
        Ok(Option::<One>::deserialize(from)?.map(|one| one.0))
    }
}
