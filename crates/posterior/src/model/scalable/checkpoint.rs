//! Where an interrupted fit stands: one file, written in one step, read only by the same fit.

use super::Kept;
use crate::model::{Container, Hyperparameter, ModelError, ModelFileError, Tensor, TensorValues};
use posterior_gp::iterative::{NeighbourhoodFit, SolverState, StateHeader};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::path::Path;

const METHOD: &str = "process checkpoint";

/// What was found so far.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Found {
    /// Hyperparameters; none while they are still searched for.
    pub(super) hyperparameters: Vec<Hyperparameter>,
    /// The neighbourhoods that are finished.
    pub(super) neighbourhoods: Vec<NeighbourhoodFit>,
    /// Seconds they took.
    pub(super) seconds: f64,
    /// What was noted on the way.
    pub(super) largest_jitter: f64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Header {
    method: String,
    identity: String,
    found: Found,
    /// The solver's small part; its blocks are tensors.
    solver: Option<StateHeader>,
    /// Names of the blocks, in order.
    blocks: Vec<String>,
    /// The state of a bound's optimiser.
    bound: Option<Value>,
}

/// A state that was read.
pub(super) struct Saved {
    pub(super) found: Found,
    solver: Option<StateHeader>,
    blocks: Vec<String>,
    pub(super) bound: Option<Value>,
    container: Container<Header>,
}

/// A digest of everything that the result depends on.
pub(super) fn identity(parts: &[&str], numbers: &[&[f64]]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part.as_bytes());
    }
    for values in numbers {
        hash.update((values.len() as u64).to_le_bytes());
        values.iter().for_each(|v| hash.update(v.to_bits().to_le_bytes()));
    }
    hash.finalize().iter().map(|b| format!("{b:02x}")).collect()
}

/// Writes what there is.
pub(super) fn save<T: Kept>(
    path: &Path,
    identity: &str,
    found: &Found,
    solver: Option<SolverState<T>>,
    bound: Option<Value>,
) -> Result<(), ModelFileError> {
    let mut tensors = BTreeMap::<String, Tensor>::new();
    let mut blocks = Vec::new();
    let bound = bound.map(|mut value| {
        lift(&mut value, BOUND, &mut tensors);
        value
    });
    let header = solver.map(|state| {
        for (name, block) in &state.blocks {
            tensors.insert(name.clone(), T::tensor(block.as_ref()));
            blocks.push(name.clone());
        }
        state.header
    });
    let header = Header {
        method: METHOD.into(),
        identity: identity.into(),
        found: found.clone(),
        solver: header,
        blocks,
        bound,
    };
    Container { header, tensors }.write(path)
}

/// Reads what an earlier run of the same fit left; None where there is nothing.
pub(super) fn load(path: &Path, identity: &str) -> Result<Option<Saved>, ModelError> {
    if !path.exists() {
        return Ok(None);
    }
    let mut container = Container::<Header>::read(path)?;
    let header = container.header.clone();
    if header.method != METHOD || header.identity != identity {
        return Err(ModelError::OtherCheckpoint { path: path.into() });
    }
    let Header { found, solver, blocks, mut bound, .. } = header;
    if let Some(value) = &mut bound {
        lower(value, BOUND, &mut container.tensors);
    }
    Ok(Some(Saved { found, solver, blocks, bound, container }))
}

/// First part of the names of tensors that belong to a bound's state.
const BOUND: &str = "bound";

/// Lists of so many numbers become tensors: a header is text, of limited length.
const LONG: usize = 256;

/// Moves long lists of numbers out of a state.
fn lift(value: &mut Value, name: &str, tensors: &mut BTreeMap<String, Tensor>) {
    match value {
        Value::Object(map) => {
            map.iter_mut().for_each(|(key, value)| lift(value, &format!("{name}/{key}"), tensors));
        }
        Value::Array(values) if values.len() >= LONG => {
            let number = |v: &Value| v.as_f64().filter(|_| v.is_f64());
            let numbers: Option<Vec<f64>> = values.iter().map(number).collect();
            if let Some(numbers) = numbers {
                tensors.insert(name.into(), Tensor::new(vec![numbers.len()], numbers));
                *value = Value::Null;
            }
        }
        Value::Array(values) => {
            for (i, value) in values.iter_mut().enumerate() {
                lift(value, &format!("{name}/{i}"), tensors);
            }
        }
        _ => {}
    }
}

/// Puts them back; a list that is not there stays null, which no state can be read from.
fn lower(value: &mut Value, name: &str, tensors: &mut BTreeMap<String, Tensor>) {
    match value {
        Value::Object(map) => {
            map.iter_mut().for_each(|(key, value)| lower(value, &format!("{name}/{key}"), tensors));
        }
        Value::Array(values) => {
            for (i, value) in values.iter_mut().enumerate() {
                lower(value, &format!("{name}/{i}"), tensors);
            }
        }
        Value::Null => {
            if let Some(Tensor { values: TensorValues::F64(numbers), .. }) = tensors.remove(name) {
                *value = Value::from(numbers);
            }
        }
        _ => {}
    }
}

impl Saved {
    /// The solver's state, if it had begun.
    pub(super) fn solver<T: Kept>(&mut self, path: &Path) -> Result<Option<SolverState<T>>, ModelFileError> {
        let Some(header) = self.solver.take() else { return Ok(None) };
        let corrupt = |reason: String| ModelFileError::Corrupt { path: path.into(), reason };
        let mut blocks = Vec::new();
        for name in std::mem::take(&mut self.blocks) {
            let shape = match self.container.tensors.get(&name).map(|t| t.shape.clone()) {
                Some(shape) if shape.len() == 2 => shape,
                _ => return Err(corrupt(format!("tensor `{name}` is missing or no matrix"))),
            };
            let values = self.container.take_any(&name, &shape, path)?;
            let block = T::matrix(values, shape[1], shape[0])
                .ok_or_else(|| corrupt(format!("tensor `{name}` is in another precision")))?;
            blocks.push((name, block));
        }
        Ok(Some(SolverState { header, blocks }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn long_lists_of_a_state_are_tensors_and_come_back() {
        let long: Vec<f64> = (0..1000).map(|i| (i as f64).sin()).collect();
        let whole = json!({"step": 3, "adam": {"first": long, "second": null}, "roots": [long, [1.5]], "words": vec!["a"; 300]});
        let (mut value, mut tensors) = (whole.clone(), BTreeMap::new());
        lift(&mut value, BOUND, &mut tensors);
        assert_eq!(tensors.keys().collect::<Vec<_>>(), ["bound/adam/first", "bound/roots/0"]);
        assert!(value.to_string().len() < 3000);
        lower(&mut value, BOUND, &mut tensors);
        assert_eq!(value, whole);
    }
}
