//! The state of a run as a file: safetensors with counters in its metadata.

use super::error::TrainError;
use super::hook::HookState;
use super::trainer::{Best, EpochRecord, TrainOptions, TrainState};
use crate::array::{Array, Precision};
use crate::graph::Graph;
use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
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
        let error = |problem: String| TrainError::Checkpoint { path: path.display().to_string(), problem };
        let counters = Counters {
            version: VERSION,
            options: *options,
            data: data.into(),
            step: self.step,
            clipped: self.clipped,
            loss_sum: self.loss_sum,
            history: self.history.clone(),
            best: self.best.as_ref().map(|b| (b.epoch, b.loss)),
            hook: self.hook.clone(),
        };
        let counters = serde_json::to_string(&counters).map_err(|e| error(e.to_string()))?;
        let mut tensors: Vec<(String, Vec<usize>, Vec<u8>)> = Vec::new();
        let mut add =
            |name: String, shape: Vec<usize>, values: &[T]| tensors.push((name, shape, to_bytes(values)));
        for (slot, values) in graph.parameters().iter().zip(&self.parameters) {
            add(format!("parameter/{}", slot.name), slot.shape.clone(), values.values());
        }
        if let Some(best) = &self.best {
            for (slot, values) in graph.parameters().iter().zip(&best.parameters) {
                add(format!("best/{}", slot.name), slot.shape.clone(), values.values());
            }
            add("best_log_variance".into(), vec![best.log_variance.len()], &best.log_variance);
        }
        for (name, values) in [
            ("log_variance", &self.log_variance),
            ("first_moment", &self.first),
            ("second_moment", &self.second),
        ] {
            add(name.into(), vec![values.len()], values);
        }
        let views: Vec<(&str, TensorView<'_>)> = tensors
            .iter()
            .map(|(name, shape, bytes)| {
                Ok((name.as_str(), TensorView::new(dtype::<T>(), shape.clone(), bytes)?))
            })
            .collect::<Result<_, safetensors::SafeTensorError>>()
            .map_err(|e| error(e.to_string()))?;
        let metadata = HashMap::from([("posterior.training".to_string(), counters)]);
        let bytes = safetensors::serialize(views, Some(metadata)).map_err(|e| error(e.to_string()))?;
        posterior_data::create_atomically(path, |file| std::io::Write::write_all(file, &bytes))
            .map_err(|e| error(e.to_string()))
    }

    /// Reads a state back.
    ///
    /// # Errors
    /// When the file is damaged, or belongs to another network, other data or other options.
    pub fn load(path: &Path, graph: &Graph, options: &TrainOptions, data: &str) -> Result<Self, TrainError> {
        let error = |problem: String| TrainError::Checkpoint { path: path.display().to_string(), problem };
        let bytes = std::fs::read(path).map_err(|e| error(e.to_string()))?;
        let damaged = |e: &dyn std::fmt::Display| {
            error(format!("not a whole checkpoint ({e}): start without --resume"))
        };
        let (_, header) = SafeTensors::read_metadata(&bytes).map_err(|e| damaged(&e))?;
        let counters = header.metadata().as_ref().and_then(|m| m.get("posterior.training"));
        let counters = counters.ok_or_else(|| damaged(&"it has no training state"))?;
        let counters: Counters = serde_json::from_str(counters).map_err(|e| damaged(&e))?;
        if counters.version != VERSION {
            return Err(error(format!(
                "layout {} is not the layout {VERSION} of this program",
                counters.version
            )));
        }
        if counters.options != *options {
            let problem =
                format!("it was made with other settings: {:?} there, {options:?} here", counters.options);
            return Err(error(problem));
        }
        if counters.data != data {
            return Err(error(format!("it was made with other data: {} there, {data} here", counters.data)));
        }
        let tensors = SafeTensors::deserialize(&bytes).map_err(|e| damaged(&e))?;
        let vector = |name: &str| -> Result<Vec<T>, TrainError> {
            let view = tensors.tensor(name).map_err(|e| damaged(&e))?;
            if view.dtype() != dtype::<T>() {
                return Err(error("it was made in another precision: use the same --precision".into()));
            }
            Ok(from_bytes(view.data()))
        };
        let parameters = |prefix: &str| -> Result<Vec<Array<T>>, TrainError> {
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
            Some((epoch, loss)) => Some(Best {
                epoch,
                loss,
                parameters: parameters("best")?,
                log_variance: vector("best_log_variance")?,
            }),
        };
        let state = Self {
            step: counters.step,
            history: counters.history,
            clipped: counters.clipped,
            log_variance: vector("log_variance")?,
            hook: counters.hook,
            parameters: parameters("parameter")?,
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
}

fn dtype<T>() -> Dtype {
    if size_of::<T>() == 4 { Dtype::F32 } else { Dtype::F64 }
}

/// Little-endian bytes in the precision's own width.
fn to_bytes<T: Precision>(values: &[T]) -> Vec<u8> {
    if size_of::<T>() == 4 {
        values.iter().flat_map(|v| (v.to_f64() as f32).to_le_bytes()).collect()
    } else {
        values.iter().flat_map(|v| v.to_f64().to_le_bytes()).collect()
    }
}

fn from_bytes<T: Precision>(bytes: &[u8]) -> Vec<T> {
    if size_of::<T>() == 4 {
        bytes
            .chunks_exact(4)
            .map(|b| T::from_f64(f64::from(f32::from_le_bytes([b[0], b[1], b[2], b[3]]))))
            .collect()
    } else {
        bytes
            .chunks_exact(8)
            .map(|b| T::from_f64(f64::from_le_bytes([b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7]])))
            .collect()
    }
}
