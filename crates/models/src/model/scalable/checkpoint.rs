//! Where an interrupted fit stands: one file, written in one step, read only by the same fit.

use super::{EvidenceSearchSummary, SolverPrecision};
use crate::model::{Container, Hyperparameter, ModelError, ModelFileError, Tensor, TensorValues};
use faer::Mat;
use posterior_gp::iterative::{
    BlockFit, NeighbourhoodFit, SearchHeader, SearchState, SolverState, StateHeader,
};
use posterior_optim::Signal;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

const METHOD: &str = "process checkpoint";

/// What was found so far.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Found {
    /// Hyperparameters; none while they are still searched for.
    pub(super) hyperparameters: Vec<Hyperparameter>,
    /// The stages of a search on blocks that are finished, and the parameters that each found.
    #[serde(default)]
    pub(super) blocks: Vec<(BlockFit, Vec<f64>)>,
    /// What the evidence wanted the noise to be, where it was raised.
    #[serde(default)]
    pub(super) noise_raised_from: Option<f64>,
    /// The neighbourhoods that are finished.
    pub(super) neighbourhoods: Vec<NeighbourhoodFit>,
    /// Seconds they took.
    pub(super) seconds: f64,
    /// What was noted on the way.
    pub(super) largest_jitter: f64,
    /// What a search on all rows did.
    pub(super) search: Option<EvidenceSearchSummary>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Header {
    method: String,
    identity: Identity,
    found: Found,
    /// The solver's small part; its blocks are tensors.
    solver: Option<StateHeader>,
    /// Names of the blocks, in order.
    blocks: Vec<String>,
    /// The small part of a search over all rows; its solutions are a tensor.
    search: Option<Value>,
    /// The state of a bound's optimiser.
    bound: Option<Value>,
}

/// Everything that a result depends on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Identity {
    /// Settings by name, nested.
    pub(super) settings: Value,
    /// A digest of roles and numbers.
    pub(super) data: String,
}

impl Identity {
    /// In what the other differs: names of settings, and the data.
    fn differences(&self, other: &Self) -> Vec<String> {
        let mut out = Vec::new();
        differences(&self.settings, &other.settings, "", &mut out);
        if self.data != other.data {
            out.push("the data".into());
        }
        out
    }
}

/// Names of what differs, with a point between levels.
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
        _ if a != b => out.push(name.into()),
        _ => {}
    }
}

/// A digest of roles (as text) and numbers.
pub(super) fn digest(text: &str, numbers: &[&[f64]]) -> String {
    let mut hash = Sha256::new();
    hash.update((text.len() as u64).to_le_bytes());
    hash.update(text.as_bytes());
    for values in numbers {
        hash.update((values.len() as u64).to_le_bytes());
        values.iter().for_each(|v| hash.update(v.to_bits().to_le_bytes()));
    }
    hash.finalize().iter().map(|b| format!("{b:02x}")).collect()
}

/// What is under way beside what was found.
pub(super) enum Stage<T: SolverPrecision> {
    /// Nothing.
    Between,
    /// A search over all rows.
    Search(SearchState<T>),
    /// A solve.
    Solver(SolverState<T>),
    /// A bound's optimiser, as text.
    Bound(Value),
}

/// Saves states now and then; does nothing where there is no place for them.
pub(super) struct CheckpointWriter {
    place: Option<(PathBuf, Identity)>,
    every: f64,
    last: Instant,
    failed: Option<ModelError>,
}

impl CheckpointWriter {
    /// Keeps states of the fit with this identity at a path, at most every so many seconds.
    pub(super) fn new(place: Option<(PathBuf, Identity)>, every: f64) -> Self {
        Self { place, every, last: Instant::now(), failed: None }
    }

    /// What an earlier run of the same fit left; None where there is nothing.
    pub(super) fn load(&self) -> Result<Option<Saved>, ModelError> {
        match &self.place {
            Some((path, identity)) if path.exists() => load(path, identity).map(Some),
            _ => Ok(None),
        }
    }

    /// Saves at once.
    pub(super) fn save<T: SolverPrecision>(
        &mut self,
        found: &Found,
        stage: Stage<T>,
    ) -> Result<(), ModelError> {
        self.last = Instant::now();
        match &self.place {
            Some((path, identity)) => save(path, identity, found, stage),
            None => Ok(()),
        }
    }

    /// Saves where it is due or the last chance, and passes the signal on; a failure to save is a reason to stop, told by [`Self::finish`].
    pub(super) fn observe<T: SolverPrecision>(
        &mut self,
        signal: Signal,
        found: &Found,
        stage: impl FnOnce() -> Result<Stage<T>, serde_json::Error>,
    ) -> Signal {
        let due = self.last.elapsed().as_secs_f64() >= self.every;
        if self.place.is_none() || !(due || signal == Signal::Stop) {
            return signal;
        }
        let saved = stage()
            .map_err(|e| ModelError::Checkpoint { problem: e.to_string() })
            .and_then(|stage| self.save(found, stage));
        match saved {
            Ok(()) => signal,
            Err(error) => {
                self.failed = Some(error);
                Signal::Stop
            }
        }
    }

    /// The failure of a save, if there was one.
    pub(super) fn finish(&mut self) -> Result<(), ModelError> {
        self.failed.take().map_or(Ok(()), Err)
    }

    /// Removes what a finished fit does not need; a file that cannot be removed does no harm.
    pub(super) fn clear(&self) {
        if let Some((path, _)) = &self.place {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// A state that was read.
pub(super) struct Saved {
    pub(super) found: Found,
    solver: Option<StateHeader>,
    blocks: Vec<String>,
    search: Option<Value>,
    bound: Option<Value>,
    container: Container<Header>,
    path: PathBuf,
}

/// Name of the tensor of a search's solutions.
const SOLUTIONS: &str = "search_solutions";

fn save<T: SolverPrecision>(
    path: &Path,
    identity: &Identity,
    found: &Found,
    stage: Stage<T>,
) -> Result<(), ModelError> {
    let mut tensors = BTreeMap::<String, Tensor>::new();
    let mut header = Header {
        method: METHOD.into(),
        identity: identity.clone(),
        found: found.clone(),
        solver: None,
        blocks: Vec::new(),
        search: None,
        bound: None,
    };
    match stage {
        Stage::Between => {}
        Stage::Search(SearchState { header: small, weights }) => {
            if let Some(weights) = weights {
                tensors.insert(SOLUTIONS.into(), T::tensor(weights.as_ref()));
            }
            // A state that is not written whole must not pass for one.
            let mut value =
                serde_json::to_value(small).map_err(|e| ModelError::Checkpoint { problem: e.to_string() })?;
            numbers_to_tensors(&mut value, SEARCH, &mut tensors);
            header.search = Some(value);
        }
        Stage::Solver(state) => {
            for (name, block) in &state.blocks {
                tensors.insert(name.clone(), T::tensor(block.as_ref()));
                header.blocks.push(name.clone());
            }
            header.solver = Some(state.header);
        }
        Stage::Bound(mut value) => {
            numbers_to_tensors(&mut value, BOUND, &mut tensors);
            header.bound = Some(value);
        }
    }
    Ok(Container { header, tensors }.write(path)?)
}

fn load(path: &Path, identity: &Identity) -> Result<Saved, ModelError> {
    let mut container = Container::<Header>::read(path)?;
    let header = container.header.clone();
    if header.method != METHOD || header.identity != *identity {
        let mut differs = header.identity.differences(identity);
        if header.method != METHOD {
            differs.push("what it is a checkpoint of".into());
        }
        return Err(ModelError::OtherCheckpoint { path: path.into(), differs });
    }
    let Header { found, solver, blocks, mut search, mut bound, .. } = header;
    for (value, name) in [(&mut search, SEARCH), (&mut bound, BOUND)] {
        if let Some(value) = value {
            numbers_from_tensors(value, name, &mut container.tensors);
        }
    }
    Ok(Saved { found, solver, blocks, search, bound, container, path: path.into() })
}

/// First part of the names of tensors that belong to the state of a search.
const SEARCH: &str = "search";

/// First part of the names of tensors that belong to a bound's state.
const BOUND: &str = "bound";

/// Lists of so many numbers become tensors: a header is text, of limited length.
const LONG: usize = 256;

/// Moves long lists of numbers out of a state.
fn numbers_to_tensors(value: &mut Value, name: &str, tensors: &mut BTreeMap<String, Tensor>) {
    match value {
        Value::Object(map) => {
            map.iter_mut()
                .for_each(|(key, value)| numbers_to_tensors(value, &format!("{name}/{key}"), tensors));
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
                numbers_to_tensors(value, &format!("{name}/{i}"), tensors);
            }
        }
        _ => {}
    }
}

/// Puts them back; a list that is not there stays null, which no state can be read from.
fn numbers_from_tensors(value: &mut Value, name: &str, tensors: &mut BTreeMap<String, Tensor>) {
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
            if let Some(Tensor { values: TensorValues::F64(numbers), .. }) = tensors.remove(name) {
                *value = Value::from(numbers);
            }
        }
        _ => {}
    }
}

impl Saved {
    /// Seconds that earlier runs took for hyperparameters, and for the search or solve under way.
    pub(super) fn seconds(&self) -> f64 {
        let search = self.search.as_ref().and_then(|v| v.get("seconds")).and_then(Value::as_f64);
        self.found.seconds + self.solver.as_ref().map_or(0.0, |s| s.seconds) + search.unwrap_or(0.0)
    }

    /// Whether a solve was under way.
    pub(super) fn has_solver(&self) -> bool {
        self.solver.is_some()
    }

    fn corrupt(&self, reason: String) -> ModelError {
        ModelFileError::Corrupt { path: self.path.clone(), reason }.into()
    }

    fn block<T: SolverPrecision>(&mut self, name: &str) -> Result<Mat<T>, ModelError> {
        let shape = match self.container.tensors.get(name).map(|t| t.shape.clone()) {
            Some(shape) if shape.len() == 2 => shape,
            _ => return Err(self.corrupt(format!("tensor `{name}` is missing or no matrix"))),
        };
        let values = self.container.take_any(name, &shape, &self.path)?;
        T::matrix(values, shape[1], shape[0])
            .ok_or_else(|| self.corrupt(format!("tensor `{name}` is in another precision")))
    }

    /// The solver's state, if it had begun.
    pub(super) fn solver<T: SolverPrecision>(&mut self) -> Result<Option<SolverState<T>>, ModelError> {
        let Some(header) = self.solver.take() else { return Ok(None) };
        let mut blocks = Vec::new();
        for name in std::mem::take(&mut self.blocks) {
            let block = self.block(&name)?;
            blocks.push((name, block));
        }
        Ok(Some(SolverState { header, blocks }))
    }

    /// The state of a search over all rows, if it had begun.
    pub(super) fn search<T: SolverPrecision>(&mut self) -> Result<Option<SearchState<T>>, ModelError> {
        let Some(value) = self.search.take() else { return Ok(None) };
        let header: SearchHeader =
            serde_json::from_value(value).map_err(|e| self.corrupt(format!("its search: {e}")))?;
        let kept = self.container.tensors.contains_key(SOLUTIONS);
        let weights = kept.then(|| self.block(SOLUTIONS)).transpose()?;
        Ok(Some(SearchState { header, weights }))
    }

    /// The state of a bound's optimiser, if it had begun.
    pub(super) fn bound<S: serde::de::DeserializeOwned>(&mut self) -> Result<Option<S>, ModelError> {
        let Some(value) = self.bound.take() else { return Ok(None) };
        serde_json::from_value(value).map(Some).map_err(|e| self.corrupt(format!("its bound: {e}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_differs_has_names() {
        let identity = |batch: usize, seed: usize, data: &str| Identity {
            settings: json!({"kernel": "se", "scalable": {"batch": batch, "momentum": 0.9}, "options": {"seed": seed}}),
            data: data.into(),
        };
        let one = identity(1, 2, "a");
        assert_eq!(one.differences(&identity(3, 4, "b")), ["options.seed", "scalable.batch", "the data"]);
        assert!(one.differences(&one).is_empty());
    }

    #[test]
    fn long_lists_of_a_state_are_tensors_and_come_back() {
        let long: Vec<f64> = (0..1000).map(|i| (i as f64).sin()).collect();
        let whole = json!({"step": 3, "adam": {"first": long, "second": null}, "roots": [long, [1.5]], "words": vec!["a"; 300]});
        let (mut value, mut tensors) = (whole.clone(), BTreeMap::new());
        numbers_to_tensors(&mut value, BOUND, &mut tensors);
        assert_eq!(tensors.keys().collect::<Vec<_>>(), ["bound/adam/first", "bound/roots/0"]);
        assert!(value.to_string().len() < 3000);
        numbers_from_tensors(&mut value, BOUND, &mut tensors);
        assert_eq!(value, whole);
    }
}
