//! **All keys that settings do not know**, in one message: whoever misspells two keys of a long file would otherwise learn of them one run at a time.
//!
//! The keys that a table of settings knows are those of the structure that it becomes, which says them when it is read. So settings are read from a [`Watched`] table, which leaves unknown keys out and writes them down. No structure has to refuse them by itself.

use crate::error::{ExperimentError, refused};
use serde::de::value::{MapAccessDeserializer, MapDeserializer, SeqDeserializer};
use serde::de::{DeserializeOwned, Deserializer, IntoDeserializer, Visitor};
use std::cell::RefCell;
use toml::de::Error;
use toml::{Table, Value};

/// Keys that no structure knows, each with those that there are in its place.
type Unknown = RefCell<Vec<(String, &'static [&'static str])>>;

/// A value of a file, and where the keys are written down that no structure knows.
struct Watched<'a> {
    value: Value,
    /// Keys on the way to it, with points behind them.
    prefix: String,
    unknown: &'a Unknown,
}

/// Entries of a table, as they are read.
type Entries<'a> = std::vec::IntoIter<(String, Watched<'a>)>;

impl<'a> Watched<'a> {
    fn entries<'de>(self, table: Table) -> MapDeserializer<'de, Entries<'a>, Error> {
        let Self { prefix, unknown, .. } = self;
        let entry = |(key, value)| {
            let prefix = format!("{prefix}{key}.");
            (key, Watched { value, prefix, unknown })
        };
        MapDeserializer::new(table.into_iter().map(entry).collect::<Vec<_>>().into_iter())
    }
}

impl<'de> IntoDeserializer<'de, Error> for Watched<'_> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

impl<'de> Deserializer<'de> for Watched<'_> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value, Error> {
        match std::mem::replace(&mut self.value, Value::Boolean(false)) {
            Value::Table(table) => {
                let mut entries = self.entries(table);
                let found = visitor.visit_map(&mut entries)?;
                entries.end().map(|()| found)
            }
            Value::Array(list) => {
                let Self { prefix, unknown, .. } = self;
                let each = |value| Self { value, prefix: prefix.clone(), unknown };
                let mut list = SeqDeserializer::new(list.into_iter().map(each));
                let found = visitor.visit_seq(&mut list)?;
                list.end().map(|()| found)
            }
            other => other.deserialize_any(visitor),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        mut self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        match std::mem::replace(&mut self.value, Value::Boolean(false)) {
            Value::Table(table) => visitor.visit_enum(MapAccessDeserializer::new(self.entries(table))),
            other => other.deserialize_enum(name, variants, visitor),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        mut self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        if let Value::Table(table) = &mut self.value {
            let (known, unknown): (Table, Table) =
                std::mem::take(table).into_iter().partition(|(key, _)| fields.contains(&key.as_str()));
            *table = known;
            let named = |key: &String| (format!("{}{key}", self.prefix), fields);
            self.unknown.borrow_mut().extend(unknown.keys().map(named));
        }
        self.deserialize_any(visitor)
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple tuple_struct map identifier ignored_any
    }
}

/// The value itself, and each table within it by itself on its way: what is wrong in one of them keeps no other from being looked at.
fn parts(value: &Value) -> Vec<Value> {
    let within: Vec<Value> = match value {
        Value::Table(table) => {
            let under = |(key, value): (&String, &Value)| -> Vec<Value> {
                let alone = |part| Value::Table(Table::from_iter([(key.clone(), part)]));
                parts(value).into_iter().map(alone).collect()
            };
            table.iter().filter(|(_, value)| value.is_table() || value.is_array()).flat_map(under).collect()
        }
        Value::Array(list) => list.iter().flat_map(parts).map(|part| Value::Array(vec![part])).collect(),
        _ => Vec::new(),
    };
    std::iter::once(value.clone()).chain(within).collect()
}

/// Settings of a table.
///
/// # Errors
/// [`ExperimentError::Setting`] with all keys that they do not know; with the first thing that is wrong where there are none.
pub(crate) fn read<S: DeserializeOwned>(table: &Table) -> Result<S, ExperimentError> {
    let unknown = Unknown::default();
    let watched = |value| Watched { value, prefix: String::new(), unknown: &unknown };
    let table = Value::Table(table.clone());
    // Most parts are no whole settings; what they are wanted for is written down all the same.
    parts(&table).into_iter().for_each(|part| drop(S::deserialize(watched(part))));
    let settings = S::deserialize(watched(table));
    let quoted = |key: &str| format!("`{key}`");
    let mut found: Vec<(String, &[&str])> = Vec::new();
    for (key, known) in unknown.take() {
        if !found.iter().any(|(own, _)| *own == key) {
            found.push((key, known));
        }
    }
    match &found[..] {
        [] => settings.map_err(|e| ExperimentError::Setting(e.message().to_string())),
        [(key, known)] => {
            let known = known.iter().copied().map(quoted).collect::<Vec<_>>().join(", ");
            let key = quoted(key);
            refused(format!(
                "there is no setting {key}, expected one of {known}: remove it, or correct its name"
            ))
        }
        all => {
            let keys = all.iter().map(|(key, _)| quoted(key)).collect::<Vec<_>>().join(", ");
            refused(format!("there are no settings {keys}: remove them, or correct their names"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    #[allow(dead_code)]
    struct Outer {
        least_risk: f64,
        #[serde(default)]
        steps: usize,
        #[serde(rename = "part")]
        parts: Vec<Inner>,
        way: Option<Way>,
    }

    #[derive(Debug, Deserialize)]
    #[allow(dead_code)]
    struct Inner {
        name: String,
    }

    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    #[allow(dead_code)]
    enum Way {
        Alone,
        With(Inner),
    }

    fn error(text: &str) -> String {
        read::<Outer>(&toml::from_str(text).unwrap()).unwrap_err().to_string()
    }

    #[test]
    fn all_of_them_are_named_at_once_whatever_else_is_wrong() {
        let found = error(
            "stepz = 1\nsteps = 'a'\nleast_risk = 2\npart = [{ name = 'a' }, { nam = 'b', size = 3 }, { name = 'c', last = 1 }]\nway = { with = { nam = 'd' } }",
        );
        for key in ["`stepz`", "`least_risk`", "`part.nam`", "`part.size`", "`part.last`", "`way.with.nam`"] {
            assert!(found.contains(key), "{found}");
        }
        assert!(!found.contains("`part.name`"));
        // One comes with those that there are; without any the error is what it is.
        let one = error("least-risk = 1.0\nstepz = 1\npart = []");
        assert!(one.contains("`stepz`, expected one of `least-risk`, `steps`, `part`"), "{one}");
        assert!(error("least-risk = 1.0").contains("missing field `part`"));
    }

    #[test]
    fn settings_are_read_as_without_being_watched() {
        let table = toml::from_str("least-risk = 1\npart = [{ name = 'a' }]\nway = 'alone'").unwrap();
        let found = read::<Outer>(&table).unwrap();
        assert_eq!((found.least_risk, found.steps, found.parts[0].name.as_str()), (1.0, 0, "a"));
        assert!(matches!(found.way, Some(Way::Alone)));
    }
}
