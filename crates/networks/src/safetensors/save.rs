//! Writing weights.

use super::SafetensorsError;
use crate::array::{Array, Precision};
use crate::graph::Network;
use posterior_data::{DataError, create_atomically};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

/// Key of the header that cannot be the name of a tensor.
const METADATA: &str = "__metadata__";

/// Little-endian bytes of one array.
fn write<T: Precision>(out: &mut impl Write, array: &Array<T>) -> std::io::Result<()> {
    let mut bytes = Vec::with_capacity(array.len().min(1 << 16) * size_of::<T>());
    for values in array.values().chunks(1 << 16) {
        bytes.clear();
        for value in values {
            // Exact in both precisions: an f32 goes through f64 and back.
            match size_of::<T>() {
                4 => bytes.extend((value.to_f64() as f32).to_le_bytes()),
                _ => bytes.extend(value.to_f64().to_le_bytes()),
            }
        }
        out.write_all(&bytes)?;
    }
    Ok(())
}

/// Writes all parameters of a network under their names, in its precision, with `metadata` beside them (put the architecture's TOML under
/// [`ARCHITECTURE_KEY`](super::ARCHITECTURE_KEY) and [`read_network`](super::read_network) needs no other file). The same network and metadata give the same bytes; the
/// file appears in one step.
///
/// # Errors
/// [`SafetensorsError::Write`]; an older file is untouched then. [`SafetensorsError::Malformed`] for a parameter called `__metadata__`.
pub fn save_safetensors<T: Precision>(
    path: &Path,
    network: &Network<T>,
    metadata: &BTreeMap<String, String>,
) -> Result<(), SafetensorsError> {
    let mut tensors: Vec<(&str, &Array<T>)> =
        network.graph().parameters().iter().map(|p| p.name.as_str()).zip(network.parameters()).collect();
    tensors.sort_by_key(|&(name, _)| name);
    let dtype = if size_of::<T>() == 4 { "F32" } else { "F64" };
    let mut header = Map::new();
    if !metadata.is_empty() {
        header.insert(METADATA.into(), json!(metadata));
    }
    let mut end = 0;
    for (name, array) in &tensors {
        if *name == METADATA {
            let problem = format!("no tensor of the format can be called `{METADATA}`");
            return Err(SafetensorsError::Malformed { path: path.into(), problem });
        }
        let start = end;
        end += array.len() * size_of::<T>();
        let entry = json!({ "dtype": dtype, "shape": array.shape(), "data_offsets": [start, end] });
        header.insert((*name).into(), entry);
    }
    let mut header = Value::Object(header).to_string().into_bytes();
    // Numbers begin at a multiple of eight bytes.
    header.resize(header.len().next_multiple_of(8), b' ');
    let result = create_atomically(path, |out| {
        out.write_all(&(header.len() as u64).to_le_bytes())?;
        out.write_all(&header)?;
        tensors.iter().try_for_each(|(_, array)| write(out, array))
    });
    result.map_err(|error| {
        let source = match error {
            DataError::Write { source, .. } => source,
            other => std::io::Error::other(other),
        };
        SafetensorsError::Write { path: path.into(), source }
    })
}
