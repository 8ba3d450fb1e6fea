//! The state of a run as a file: safetensors with counters in its metadata.

use super::error::TrainError;
use super::hook::HookState;
use super::trainer::{Best, EpochRecord, TrainOptions, TrainState};
use crate::PerNetworkPrecision;
use crate::array::{Array, Precision};
use crate::graph::Graph;
use posterior_linalg::compiled_here;
use posterior_store::{Identity, StoreError, TensorFile, write_tensors};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// Version of the layout; raised when it changes.
const VERSION: u32 = 1;

/// What is not a tensor.
#[derive(Serialize, Deserialize)]
struct Counters {
    version: u32,
    options: TrainOptions,
    /// What the run learns from, in the words of who started it.
    data: String,
    step: usize,
    clipped: usize,
    loss_sum: f64,
    history: Vec<EpochRecord>,
    best: Option<(usize, f64)>,
    #[serde(default)]
    hook: Option<HookState>,
}

impl<T: Precision> TrainState<T> {
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

/// See [`TrainState::save`].
fn save<T: Precision>(
    state: &TrainState<T>,
    path: &Path,
    graph: &Graph,
    options: &TrainOptions,
    data: &str,
) -> Result<(), TrainError> {
    let error = |problem: String| TrainError::Checkpoint { path: path.display().to_string(), problem };
    let counters = Counters {
        version: VERSION,
        options: *options,
        data: data.into(),
        step: state.step,
        clipped: state.clipped,
        loss_sum: state.loss_sum,
        history: state.history.clone(),
        best: state.best.as_ref().map(|b| (b.epoch, b.score)),
        hook: state.hook.clone(),
    };
    let text = serde_json::to_string(&counters).map_err(|e| error(e.to_string()))?;
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
    named.sort_by(|a, b| a.0.cmp(&b.0));
    let tensors: Vec<_> =
        named.iter().map(|(name, a)| (name.as_str(), a.shape(), T::numbers(a.values()))).collect();
    let metadata = BTreeMap::from([("posterior.training".to_string(), text)]);
    write_tensors(path, &metadata, &tensors).map_err(|e| error(e.to_string()))
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
    let counters = file.metadata().remove("posterior.training");
    let counters = counters.ok_or_else(|| damaged(&"it has no training state"))?;
    let counters: Counters = serde_json::from_str(&counters).map_err(|e| damaged(&e))?;
    if counters.version != VERSION {
        return Err(error(format!(
            "layout {} is not the layout {VERSION} of this program",
            counters.version
        )));
    }
    let identity = |options: &TrainOptions, data: &str| -> Result<Identity, TrainError> {
        let settings = serde_json::to_value(options).map_err(|e| error(e.to_string()))?;
        Ok(Identity { settings, data: data.into() })
    };
    let differs = identity(&counters.options, &counters.data)?.differences(&identity(options, data)?);
    if counters.data != data {
        return Err(error(format!("it was made with other data: {} there, {data} here", counters.data)));
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
    type Vectors<'a, T> = &'a mut dyn FnMut(&str) -> Result<Vec<T>, TrainError>;
    let parameters = |prefix: &str, vector: Vectors<'_, T>| -> Result<Vec<Array<T>>, TrainError> {
        graph
            .parameters()
            .iter()
            .map(|slot| {
                let values = vector(&format!("{prefix}/{}", slot.name))?;
                if values.len() != slot.len() {
                    return Err(error(format!(
                        "`{}` has another size: it belongs to another network",
                        slot.name
                    )));
                }
                Ok(Array::new(slot.shape.clone(), values))
            })
            .collect()
    };
    let best = match counters.best {
        None => None,
        Some((epoch, score)) => Some(Best {
            epoch,
            score,
            parameters: parameters("best", &mut vector)?,
            log_variance: vector("best_log_variance")?,
        }),
    };
    let state = TrainState::<T> {
        step: counters.step,
        history: counters.history,
        clipped: counters.clipped,
        log_variance: vector("log_variance")?,
        hook: counters.hook,
        parameters: parameters("parameter", &mut vector)?,
        first: vector("first_moment")?,
        second: vector("second_moment")?,
        loss_sum: counters.loss_sum,
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
