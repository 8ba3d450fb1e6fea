//! Where an interrupted fit stands: one file, written in one step, read only by the same fit.

use super::Kept;
use crate::model::{Container, Hyperparameter, ModelError, ModelFileError, Tensor};
use posterior_gp::iterative::{SolverState, StateHeader};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::path::Path;

const METHOD: &str = "process checkpoint";

/// What was found so far.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Found {
    /// Hyperparameters.
    pub(super) hyperparameters: Vec<Hyperparameter>,
    /// Log evidence of each neighbourhood.
    pub(super) evidences: Vec<f64>,
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
    bound: Option<serde_json::Value>,
}

/// A state that was read.
pub(super) struct Saved {
    pub(super) found: Found,
    solver: Option<StateHeader>,
    blocks: Vec<String>,
    pub(super) bound: Option<serde_json::Value>,
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
    bound: Option<serde_json::Value>,
) -> Result<(), ModelFileError> {
    let mut tensors = BTreeMap::<String, Tensor>::new();
    let mut blocks = Vec::new();
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
    let container = Container::<Header>::read(path)?;
    let header = container.header.clone();
    if header.method != METHOD || header.identity != identity {
        return Err(ModelError::OtherCheckpoint { path: path.into() });
    }
    let Header { found, solver, blocks, bound, .. } = header;
    Ok(Some(Saved { found, solver, blocks, bound, container }))
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
