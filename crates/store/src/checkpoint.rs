//! **Checkpoints**: the state of work under way beside the identity of what it belongs to, so that the same request goes on and another is told what differs.

use crate::{Container, StoreError, Tensors};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::Path;

/// Everything that a result depends on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Identity {
    /// Settings by name, nested.
    pub settings: Value,
    /// The data: a digest, or what they are called.
    pub data: String,
}

impl Identity {
    /// In what another that is wanted now differs: names of settings with a point between levels and both values where these are short, and the data.
    pub fn differences(&self, other: &Self) -> Vec<String> {
        let mut out = Vec::new();
        differences(&self.settings, &other.settings, "", &mut out);
        if self.data != other.data {
            out.push("the data".into());
        }
        out
    }
}

fn differences(a: &Value, b: &Value, name: &str, out: &mut Vec<String>) {
    match (a, b) {
        (Value::Object(a), Value::Object(b)) => {
            let mut keys: Vec<&String> = a.keys().chain(b.keys()).collect();
            keys.sort_unstable();
            keys.dedup();
            for key in keys {
                let name = if name.is_empty() { key.clone() } else { format!("{name}.{key}") };
                let of = |map: &serde_json::Map<String, Value>| map.get(key).cloned().unwrap_or_default();
                differences(&of(a), &of(b), &name, out);
            }
        }
        _ if a == b => {}
        _ => {
            let (there, now) = (a.to_string(), b.to_string());
            let short = there.len().max(now.len()) <= LONGEST;
            out.push(if short { format!("{name} ({there} there, {now} now)") } else { name.into() });
        }
    }
}

/// Letters of a value that is shown.
const LONGEST: usize = 40;

/// The header of a checkpoint's container, with the small part of the state; blocks of numbers are its tensors.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Checkpoint<S> {
    /// What is under way: `process checkpoint`, `laplace checkpoint`.
    pub method: String,
    /// What it belongs to.
    pub identity: Identity,
    /// Where it stands.
    #[serde(flatten)]
    pub state: S,
}

impl<S: Serialize + DeserializeOwned> Checkpoint<S> {
    /// Writes the file in one atomic step, in the place of a symbolic link that it finds there.
    ///
    /// # Errors
    /// [`StoreError::Write`]; an older file is untouched then.
    pub fn write(self, tensors: Tensors, path: &Path) -> Result<(), StoreError> {
        Container { header: self, tensors }.replace(path)
    }

    /// Reads what the same work left; `remedy` tells others what to do.
    ///
    /// # Errors
    /// [`StoreError::OtherCheckpoint`] with what differs; damaged files.
    pub fn read(
        path: &Path,
        method: &str,
        identity: &Identity,
        remedy: &str,
    ) -> Result<(S, Tensors), StoreError> {
        let other =
            |differs| StoreError::OtherCheckpoint { path: path.into(), differs, remedy: remedy.into() };
        let raw = Container::<Value>::read(path)?;
        if raw.header.get("method").and_then(Value::as_str) != Some(method) {
            return Err(other(vec!["what it is a checkpoint of".into()]));
        }
        let Container { header, tensors } = raw.typed::<Self>()?;
        let differs = header.identity.differences(identity);
        if differs.is_empty() { Ok((header.state, tensors)) } else { Err(other(differs)) }
    }
}

/// Lists of so many numbers become tensors: a header is text, of limited length.
const LONG: usize = 256;

/// Moves long lists of numbers out of a state, under names that begin with `name`.
pub fn numbers_to_tensors(value: &mut Value, name: &str, tensors: &mut Tensors) {
    match value {
        Value::Object(map) => {
            map.iter_mut()
                .for_each(|(key, value)| numbers_to_tensors(value, &format!("{name}/{key}"), tensors));
        }
        Value::Array(values) => {
            let number = |v: &Value| v.as_f64().filter(|_| v.is_f64());
            let numbers: Option<Vec<f64>> = values.iter().map(number).collect();
            if let Some(numbers) = numbers.filter(|numbers| numbers.len() >= LONG) {
                tensors.insert_vector(name, &numbers);
                *value = Value::Null;
                return;
            }
            for (i, value) in values.iter_mut().enumerate() {
                numbers_to_tensors(value, &format!("{name}/{i}"), tensors);
            }
        }
        _ => {}
    }
}

/// Puts them back; a list that is not there stays null, which no state can be read from.
pub fn numbers_from_tensors(value: &mut Value, name: &str, tensors: &mut Tensors) {
    match value {
        Value::Object(map) => {
            map.iter_mut()
                .for_each(|(key, value)| numbers_from_tensors(value, &format!("{name}/{key}"), tensors));
        }
        Value::Array(values) => {
            for (i, value) in values.iter_mut().enumerate() {
                numbers_from_tensors(value, &format!("{name}/{i}"), tensors);
            }
        }
        Value::Null => {
            let length = tensors.shape(name).map_or(0, |shape| shape.iter().product());
            if let Ok(Some(numbers)) = tensors.optional_vector(name, length) {
                *value = Value::from(numbers);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn identity(batch: usize, seed: usize, data: &str) -> Identity {
        let settings =
            json!({"kernel": "se", "scalable": {"batch": batch, "momentum": 0.9}, "options": {"seed": seed}});
        Identity { settings, data: data.into() }
    }

    #[test]
    fn what_differs_has_names() {
        let one = identity(1, 2, "a");
        assert_eq!(
            one.differences(&identity(3, 4, "b")),
            ["options.seed (2 there, 4 now)", "scalable.batch (1 there, 3 now)", "the data"]
        );
        let long = Identity { settings: json!({"kernel": "k".repeat(50)}), ..one.clone() };
        let whole = Identity { settings: json!({"kernel": {"name": "se"}}), ..one.clone() };
        assert_eq!(one.differences(&long)[0], "kernel");
        assert_eq!(whole.differences(&one)[0], r#"kernel ({"name":"se"} there, "se" now)"#);
        assert!(one.differences(&one).is_empty());
    }

    #[test]
    fn only_the_same_work_goes_on() {
        #[derive(Debug, PartialEq, Serialize, Deserialize)]
        struct State {
            step: usize,
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("c");
        let write = |method: &str| {
            let mut tensors = Tensors::default();
            tensors.insert_vector("w", &[1.5f32]);
            let (method, identity) = (method.into(), identity(1, 2, "a"));
            Checkpoint { method, identity, state: State { step: 7 } }.write(tensors, &path).unwrap();
        };
        let read = |identity: &Identity| Checkpoint::<State>::read(&path, "fit", identity, "begin anew");
        write("fit");
        let (state, mut tensors) = read(&identity(1, 2, "a")).unwrap();
        assert_eq!((state, tensors.take::<f32>("w", &[1]).unwrap()), (State { step: 7 }, vec![1.5]));
        let text = read(&identity(2, 2, "a")).unwrap_err().to_string();
        assert!(text.ends_with("differs in scalable.batch (1 there, 2 now): begin anew"), "{text}");
        write("another fit");
        assert!(read(&identity(1, 2, "a")).unwrap_err().to_string().contains("what it is a checkpoint of"));
    }

    #[test]
    fn long_lists_of_a_state_are_tensors_and_come_back() {
        let long: Vec<f64> = (0..1000).map(|i| (i as f64).sin()).collect();
        let whole = json!({"step": 3, "adam": {"first": long, "second": null}, "roots": [long, [1.5]], "words": vec!["a"; 300]});
        let (mut value, mut tensors) = (whole.clone(), Tensors::default());
        numbers_to_tensors(&mut value, "bound", &mut tensors);
        assert_eq!(tensors.iter().map(|(k, _)| k).collect::<Vec<_>>(), ["bound/adam/first", "bound/roots/0"]);
        assert!(value.to_string().len() < 3000);
        numbers_from_tensors(&mut value, "bound", &mut tensors);
        assert_eq!(value, whole);
    }
}
