//! **All keys that settings do not know**, in one message: whoever misspells two keys of a long file would otherwise learn of them one run at a time.
//!
//! The keys that a table of settings knows are those of the structure that it becomes, which says them when it is asked to be read.

use crate::error::{ExperimentError, refused};
use serde::de::{DeserializeOwned, Deserializer, Visitor, value::Error};
use toml::{Table, Value};

/// Reads nothing, and writes down which fields were wanted.
struct FieldNames<'a>(&'a mut &'static [&'static str]);

impl<'de> Deserializer<'de> for FieldNames<'_> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Error> {
        Err(serde::de::Error::custom("there is nothing to read"))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        *self.0 = fields;
        self.deserialize_any(visitor)
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

/// The keys of a structure, as files have them; none of what is no structure.
fn fields<S: DeserializeOwned>() -> &'static [&'static str] {
    let mut fields: &'static [&'static str] = &[];
    // Always an error; what was asked for on the way is what is wanted.
    let _ = S::deserialize(FieldNames(&mut fields));
    fields
}

/// Unknown keys of some settings, gathered table by table.
#[derive(Debug, Default)]
pub(crate) struct UnknownKeys {
    found: Vec<String>,
}

impl UnknownKeys {
    /// Looks at a table that becomes an `S` and is called `name` in messages (nothing for the outermost).
    pub(crate) fn of<S: DeserializeOwned>(mut self, name: &str, table: &Table) -> Self {
        let known = fields::<S>();
        let unknown = table.keys().filter(|key| !known.contains(&key.as_str()));
        let place = |key: &String| if name.is_empty() { key.clone() } else { format!("{name}.{key}") };
        self.found.extend(unknown.map(place));
        self
    }

    /// The same of what stands under a key of a table, where that is a table or a list of them.
    pub(crate) fn under<S: DeserializeOwned>(mut self, name: &str, table: &Table) -> Self {
        match table.get(name) {
            Some(Value::Table(own)) => self.of::<S>(name, own),
            Some(Value::Array(list)) => {
                for own in list.iter().filter_map(Value::as_table) {
                    self = self.of::<S>(name, own);
                }
                self
            }
            _ => self,
        }
    }

    /// Refuses them, if there are any.
    ///
    /// # Errors
    /// [`ExperimentError::Setting`] with all of them.
    pub(crate) fn refuse(mut self) -> Result<(), ExperimentError> {
        self.found.dedup();
        let quoted = self.found.iter().map(|key| format!("`{key}`")).collect::<Vec<_>>().join(", ");
        match self.found.len() {
            0 => Ok(()),
            1 => refused(format!("there is no setting {quoted}: remove it, or correct its name")),
            _ => refused(format!("there are no settings {quoted}: remove them, or correct their names")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields, rename_all = "kebab-case")]
    #[allow(dead_code)]
    struct Outer {
        least_risk: f64,
        #[serde(default)]
        steps: usize,
        #[serde(rename = "part")]
        parts: Vec<Inner>,
    }

    #[derive(Deserialize)]
    #[allow(dead_code)]
    struct Inner {
        name: String,
    }

    #[test]
    fn all_of_them_are_named_at_once_whatever_else_is_wrong() {
        assert_eq!(fields::<Outer>(), ["least-risk", "steps", "part"]);
        assert_eq!(fields::<Vec<Outer>>(), [""; 0]);
        let text = "stepz = 1\nleast_risk = 2\npart = [{ name = 'a' }, { nam = 'b', size = 3 }]";
        let table: Table = toml::from_str(text).unwrap();
        let looked = UnknownKeys::default().of::<Outer>("", &table).under::<Inner>("part", &table);
        let error = looked.refuse().unwrap_err().to_string();
        for key in ["`stepz`", "`least_risk`", "`part.nam`", "`part.size`"] {
            assert!(error.contains(key), "{error}");
        }
        assert!(!error.contains("`part.name`"));
        assert!(UnknownKeys::default().under::<Inner>("nothing", &table).refuse().is_ok());
    }
}
