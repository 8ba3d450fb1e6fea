//! The state of a run as facts and arrays, and as a file: safetensors with the facts in its metadata.

use super::error::TrainError;
use super::hook::HookState;
use super::trainer::{Best, EpochRecord, TrainOptions, TrainState};
use crate::PerNetworkPrecision;
use crate::array::{Array, Precision};
use crate::graph::Graph;
use posterior_linalg::compiled_here;
use posterior_store::{
    Identity, Links, StoreError, TensorFile, Tensors, from_text, to_value, write_tensors_checked,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// Version of the layout; raised when it changes.
const VERSION: u32 = 1;

/// What is not a tensor, in a file.
#[derive(Serialize, Deserialize)]
struct Header {
    version: u32,
    options: TrainOptions,
    /// What the run learns from, in the words of who started it.
    data: String,
    #[serde(flatten)]
    facts: TrainFacts,
}

/// The part of a [`TrainState`] that is not tensors.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TrainFacts {
    step: usize,
    clipped: usize,
    #[serde(with = "posterior_store::any_number")]
    loss_sum: f64,
    history: Vec<EpochRecord>,
    best: Option<BestFacts>,
    hook: Option<HookState>,
}

/// Which weights were the best so far.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct BestFacts {
    epoch: usize,
    #[serde(with = "posterior_store::any_number")]
    score: f64,
}

impl<T: Precision> TrainState<T> {
    /// The state as facts and arrays, for who keeps it among other things.
    pub fn to_tensors(&self, graph: &Graph) -> (TrainFacts, Tensors) {
        let mut tensors = Tensors::default();
        for (name, array) in named(self, graph) {
            tensors.insert(name, array.shape().to_vec(), array.values());
        }
        (facts(self), tensors)
    }

    /// The state again, of the same graph.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] for arrays that are missing, of another precision or of another network.
    pub fn from_tensors(facts: TrainFacts, tensors: &mut Tensors, graph: &Graph) -> Result<Self, StoreError> {
        let path = tensors.path().to_owned();
        let mut vector = |name: &str| {
            let shape = tensors.shape(name).unwrap_or_default();
            tensors.take::<T>(name, &shape)
        };
        assembled(facts, graph, &mut vector, &|reason| StoreError::Corrupt { path: path.clone(), reason })
    }

    /// Writes the state atomically: a run that dies while writing leaves the last checkpoint in place. `data` describes the examples; a run
    /// resumes only with the same description, options and graph.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn save(
        &self,
        path: &Path,
        graph: &Graph,
        options: &TrainOptions,
        data: &str,
    ) -> Result<(), TrainError> {
        compiled_here!(T: Precision, PerNetworkPrecision; ['a] save, (
            state: &'a TrainState<T> = self,
            path: &'a Path = path,
            graph: &'a Graph = graph,
            options: &'a TrainOptions = options,
            data: &'a str = data,
        ) -> Result<(), TrainError>)
    }

    /// Reads a state back.
    ///
    /// # Errors
    /// When the file is damaged, or belongs to another network, other data or other options.
    pub fn load(path: &Path, graph: &Graph, options: &TrainOptions, data: &str) -> Result<Self, TrainError> {
        compiled_here!(T: Precision, PerNetworkPrecision; ['a] load, (
            path: &'a Path = path,
            graph: &'a Graph = graph,
            options: &'a TrainOptions = options,
            data: &'a str = data,
        ) -> Result<TrainState<T>, TrainError>)
    }
}

fn facts<T: Precision>(state: &TrainState<T>) -> TrainFacts {
    TrainFacts {
        step: state.step,
        clipped: state.clipped,
        loss_sum: state.loss_sum,
        history: state.history.clone(),
        best: state.best.as_ref().map(|b| BestFacts { epoch: b.epoch, score: b.score }),
        hook: state.hook.clone(),
    }
}

/// All arrays under their names.
fn named<T: Precision>(state: &TrainState<T>, graph: &Graph) -> Vec<(String, Array<T>)> {
    let arrays = |prefix: &str, values: &[Array<T>]| -> Vec<_> {
        let slots = graph.parameters().iter().zip(values);
        slots.map(|(slot, values)| (format!("{prefix}/{}", slot.name), values.clone())).collect()
    };
    let mut named = arrays("parameter", &state.parameters);
    let vector = |values: &[T]| Array::new(vec![values.len()], values.to_vec());
    if let Some(best) = &state.best {
        named.extend(arrays("best", &best.parameters));
        named.push(("best_log_variance".into(), vector(&best.log_variance)));
    }
    named.push(("log_variance".into(), vector(&state.log_variance)));
    named.push(("first_moment".into(), vector(&state.first)));
    named.push(("second_moment".into(), vector(&state.second)));
    named
}

/// The state of facts and the arrays that `vector` finds by name; `error` says that something does not fit.
fn assembled<T: Precision, E>(
    facts: TrainFacts,
    graph: &Graph,
    vector: &mut dyn FnMut(&str) -> Result<Vec<T>, E>,
    error: &dyn Fn(String) -> E,
) -> Result<TrainState<T>, E> {
    let parameters = |prefix: &str, vector: &mut dyn FnMut(&str) -> Result<Vec<T>, E>| {
        let slots = graph.parameters().iter().map(|slot| {
            let values = vector(&format!("{prefix}/{}", slot.name))?;
            if values.len() != slot.len() {
                return Err(error(format!(
                    "`{}` has another size: it belongs to another network",
                    slot.name
                )));
            }
            Ok(Array::new(slot.shape.clone(), values))
        });
        slots.collect::<Result<Vec<Array<T>>, E>>()
    };
    let best = match facts.best {
        None => None,
        Some(BestFacts { epoch, score }) => Some(Best {
            epoch,
            score,
            parameters: parameters("best", vector)?,
            log_variance: vector("best_log_variance")?,
        }),
    };
    let state = TrainState::<T> {
        step: facts.step,
        history: facts.history,
        clipped: facts.clipped,
        log_variance: vector("log_variance")?,
        hook: facts.hook,
        parameters: parameters("parameter", vector)?,
        first: vector("first_moment")?,
        second: vector("second_moment")?,
        loss_sum: facts.loss_sum,
        best,
    };
    let expected = graph.trainable() + state.log_variance.len();
    if state.first.len() != expected || !(state.second.is_empty() || state.second.len() == expected) {
        return Err(error("its moments have another size: it belongs to another network".into()));
    }
    let parts = crate::graph::Selection::all(graph).parts().len();
    if state.hook.as_ref().is_some_and(|h| h.weight_decay.len() != parts) {
        return Err(error("its weight decays have another number: it belongs to another network".into()));
    }
    Ok(state)
}

/// See [`TrainState::save`].
fn save<T: Precision>(
    state: &TrainState<T>,
    path: &Path,
    graph: &Graph,
    options: &TrainOptions,
    data: &str,
) -> Result<(), TrainError> {
    let error = |problem: String| TrainError::Checkpoint { path: path.display().to_string(), problem };
    let header = Header { version: VERSION, options: *options, data: data.into(), facts: facts(state) };
    let text = to_value(&header).map_err(|e| error(e.to_string()))?.to_string();
    let mut named = named(state, graph);
    named.sort_by(|a, b| a.0.cmp(&b.0));
    let tensors: Vec<_> =
        named.iter().map(|(name, a)| (name.as_str(), a.shape(), T::numbers(a.values()))).collect();
    let metadata = BTreeMap::from([(KEY.to_string(), text)]);
    // A state that nobody can read must not replace one that goes on.
    let read_again = |metadata| match header_in(metadata) {
        Ok(_) => Ok(()),
        Err(reason) => Err(StoreError::Corrupt { path: path.into(), reason }),
    };
    write_tensors_checked(path, Links::Replace, &metadata, &tensors, &read_again)
        .map_err(|e| error(e.to_string()))
}

/// Where a file keeps its facts.
const KEY: &str = "posterior.training";

fn header_in(mut metadata: BTreeMap<String, String>) -> Result<Header, String> {
    let text = metadata.remove(KEY).ok_or("it has no training state")?;
    from_text(&text).map_err(|e| e.to_string())
}

/// See [`TrainState::load`].
fn load<T: Precision>(
    path: &Path,
    graph: &Graph,
    options: &TrainOptions,
    data: &str,
) -> Result<TrainState<T>, TrainError> {
    let error = |problem: String| TrainError::Checkpoint { path: path.display().to_string(), problem };
    let damaged =
        |e: &dyn std::fmt::Display| error(format!("not a whole checkpoint ({e}): start without --resume"));
    let mut file = TensorFile::open(path).map_err(|e| match e {
        // Nothing is wrong with the state.
        StoreError::Read { source, .. } => error(format!("it cannot be read: {source}")),
        e => damaged(&e),
    })?;
    let header = header_in(file.metadata()).map_err(|e| damaged(&e))?;
    if header.version != VERSION {
        return Err(error(format!("layout {} is not the layout {VERSION} of this program", header.version)));
    }
    let identity = |options: &TrainOptions, data: &str| -> Result<Identity, TrainError> {
        let settings = to_value(options).map_err(|e| error(e.to_string()))?;
        Ok(Identity { settings, data: data.into() })
    };
    let differs = identity(&header.options, &header.data)?.differences(&identity(options, data)?);
    if header.data != data {
        return Err(error(format!("it was made with other data: {} there, {data} here", header.data)));
    }
    if !differs.is_empty() {
        let differs = differs.join(", ");
        return Err(error(format!(
            "it was made with other settings, which differ in {differs}: start without --resume"
        )));
    }
    let mut vector = |name: &str| -> Result<Vec<T>, TrainError> {
        T::of(file.values(name).map_err(|e| damaged(&e))?)
            .ok_or_else(|| error("it was made in another precision: use the same --precision".into()))
    };
    assembled(header.facts, graph, &mut vector, &error)
}
