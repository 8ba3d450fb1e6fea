//! Writing weights.

use super::SafetensorsError;
use crate::array::Precision;
use crate::graph::Network;
use posterior_store::write_tensors;
use std::collections::BTreeMap;
use std::path::Path;

/// Writes all parameters of a network under their names, in its precision, with `metadata` beside them (put the architecture's TOML under
/// [`ARCHITECTURE_KEY`](super::ARCHITECTURE_KEY) and [`read_network`](super::read_network) needs no other file). The same network and metadata give the same bytes; the
/// file appears in one step.
///
/// # Errors
/// [`SafetensorsError::Write`], also for a parameter called `__metadata__`; an older file is untouched then.
pub fn save_safetensors<T: Precision>(
    path: &Path,
    network: &Network<T>,
    metadata: &BTreeMap<String, String>,
) -> Result<(), SafetensorsError> {
    let slots = network.graph().parameters().iter().zip(network.parameters());
    let mut tensors: Vec<_> =
        slots.map(|(slot, array)| (slot.name.as_str(), array.shape(), T::numbers(array.values()))).collect();
    tensors.sort_by_key(|tensor| tensor.0);
    Ok(write_tensors(path, metadata, &tensors)?)
}
