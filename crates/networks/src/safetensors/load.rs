//! Reading weights into a network.

use super::{ARCHITECTURE_KEY, SafetensorsError};
use crate::PerNetworkPrecision;
use crate::architecture::Architecture;
use crate::array::{Array, Precision};
use crate::graph::{Graph, Network, NetworkError, ParameterSlot};
use crate::tensors_in_file::TensorsInFile;
use half::{bf16, f16};
use posterior_linalg::compiled_here;
use safetensors::Dtype;
use std::collections::{BTreeMap, HashSet};
use std::path::Path;

/// Lines of an error at most; a hostile file can hold millions of unknown names.
const MOST_PROBLEMS: usize = 200;

/// The weights of a file.
#[derive(Clone, Debug)]
pub struct Loaded<T> {
    /// The values, in the order of [`Graph::parameters`].
    pub parameters: Vec<Array<T>>,
    /// What was left out, widened or rounded.
    pub notes: Vec<String>,
    /// The text that stands beside the tensors.
    pub metadata: BTreeMap<String, String>,
}

/// Reads the weights of `graph` by name, in the precision of `T`, from a safetensors file or a state dictionary of PyTorch (known by what the file begins with). F16, BF16, F32 and F64 are taken; wider numbers than `T` are rounded once, with a
/// note. PyTorch's counters `num_batches_tracked` are left out, with a note.
///
/// Takes the memory of the parameters and of the largest tensor.
///
/// # Errors
/// [`SafetensorsError::Network`] with [`NetworkError::Tensors`], which lists every tensor that is missing, unknown, of another shape or type, or
/// that holds NaN or infinity (or a number beyond the range of `T`); [`SafetensorsError::Malformed`] and [`SafetensorsError::Read`].
pub fn load_safetensors<T: Precision>(path: &Path, graph: &Graph) -> Result<Loaded<T>, SafetensorsError> {
    load(TensorsInFile::open(path)?, graph)
}

/// The numbers of a tensor, widened.
fn values(dtype: Dtype, bytes: &[u8]) -> Option<Vec<f64>> {
    Some(match dtype {
        Dtype::F16 => bytes.as_chunks().0.iter().map(|&c| f16::from_le_bytes(c).to_f64()).collect(),
        Dtype::BF16 => bytes.as_chunks().0.iter().map(|&c| bf16::from_le_bytes(c).to_f64()).collect(),
        Dtype::F32 => bytes.as_chunks().0.iter().map(|&c| f64::from(f32::from_le_bytes(c))).collect(),
        Dtype::F64 => bytes.as_chunks().0.iter().map(|&c| f64::from_le_bytes(c)).collect(),
        _ => return None,
    })
}

/// What happened to the numbers of all tensors.
#[derive(Default)]
struct Tally {
    /// Tensors by type, where that is not the type of the network.
    widened: BTreeMap<String, usize>,
    rounded: usize,
    tensors_rounded: usize,
}

/// One tensor, or what is wrong with it.
fn tensor<T: Precision>(
    container: &mut TensorsInFile,
    slot: &ParameterSlot,
    tally: &mut Tally,
) -> Result<Result<Array<T>, String>, SafetensorsError> {
    let name = &slot.name;
    let Some((dtype, shape)) = container.info(name) else {
        return Ok(Err(format!("`{name}` of shape {:?} is missing", slot.shape)));
    };
    if !matches!(dtype, Dtype::F16 | Dtype::BF16 | Dtype::F32 | Dtype::F64) {
        return Ok(Err(format!("`{name}` has element type {dtype}; F16, BF16, F32 and F64 can be read")));
    }
    if shape != slot.shape {
        return Ok(Err(format!("`{name}` has shape {shape:?}, expected {:?}", slot.shape)));
    }
    let bytes = container.bytes(name)?;
    let wide = values(dtype, &bytes).unwrap_or_default();
    if let Some(position) = wide.iter().position(|v| !v.is_finite()) {
        return Ok(Err(format!("`{name}` holds {:?} at position {position}", wide[position])));
    }
    let narrow: Vec<T> = wide.iter().map(|&v| T::from_f64(v)).collect();
    if let Some(position) = narrow.iter().position(|v| !v.is_finite()) {
        let problem =
            format!("`{name}` holds {:?} at position {position}, beyond single precision", wide[position]);
        return Ok(Err(problem));
    }
    let rounded = wide.iter().zip(&narrow).filter(|(w, n)| **w != n.to_f64()).count();
    tally.rounded += rounded;
    tally.tensors_rounded += usize::from(rounded > 0);
    if dtype.bitsize() < 8 * size_of::<T>() {
        *tally.widened.entry(dtype.to_string()).or_default() += 1;
    }
    Ok(Ok(Array::new(slot.shape.clone(), narrow)))
}

fn load<T: Precision>(mut container: TensorsInFile, graph: &Graph) -> Result<Loaded<T>, SafetensorsError> {
    let mut problems = Vec::new();
    let mut parameters = Vec::new();
    let mut tally = Tally::default();
    for slot in graph.parameters() {
        match tensor(&mut container, slot, &mut tally)? {
            Ok(array) => parameters.push(array),
            Err(problem) => problems.push(problem),
        }
    }
    let known: HashSet<&str> = graph.parameters().iter().map(|p| p.name.as_str()).collect();
    let mut counters = 0;
    for name in container.names().iter().filter(|name| !known.contains(name.as_str())) {
        if name.rsplit('.').next() == Some("num_batches_tracked") {
            counters += 1;
        } else {
            let shape = container.info(name).map(|(_, shape)| shape.to_vec()).unwrap_or_default();
            problems.push(format!("`{name}` of shape {shape:?} is no parameter of the network"));
        }
    }
    if !problems.is_empty() {
        let more = problems.len().saturating_sub(MOST_PROBLEMS);
        problems.truncate(MOST_PROBLEMS);
        if more > 0 {
            problems.push(format!("... and {more} more"));
        }
        let source = NetworkError::Tensors { problems };
        return Err(SafetensorsError::Network { path: container.path().into(), source });
    }
    let mut notes = container.notes().to_vec();
    if counters > 0 {
        notes.push(format!(
            "{counters} counters `num_batches_tracked` were left out: inference does not use them"
        ));
    }
    let bits = 8 * size_of::<T>();
    for (dtype, count) in &tally.widened {
        notes.push(format!(
            "{count} tensors of type {dtype} were widened to F{bits}, which changes no number"
        ));
    }
    if tally.rounded > 0 {
        notes.push(format!(
            "{} numbers in {} tensors were rounded to F{bits}",
            tally.rounded, tally.tensors_rounded
        ));
    }
    Ok(Loaded { parameters, notes, metadata: container.metadata() })
}

/// A network read from a file.
#[derive(Clone, Debug)]
pub struct ReadNetwork<T> {
    /// The network, in evaluation mode.
    pub network: Network<T>,
    /// The architecture that it was built from.
    pub architecture: Architecture,
    /// `safetensors` or `pytorch`.
    pub format: &'static str,
    /// What was left out, widened or rounded.
    pub notes: Vec<String>,
    /// The text that stands beside the tensors.
    pub metadata: BTreeMap<String, String>,
}

/// Reads a network: its architecture from `architecture` or, where that is None, from the file's metadata, and its weights.
///
/// # Errors
/// [`SafetensorsError::NoArchitecture`] where neither gives one, [`SafetensorsError::Architecture`] and [`SafetensorsError::Graph`] where it is damaged, and
/// those of [`load_safetensors`].
pub fn read_network<T: Precision>(
    path: &Path,
    architecture: Option<&Architecture>,
) -> Result<ReadNetwork<T>, SafetensorsError> {
    compiled_here!(T: Precision, PerNetworkPrecision; ['a] read, (
        path: &'a Path = path,
        architecture: Option<&'a Architecture> = architecture,
    ) -> Result<ReadNetwork<T>, SafetensorsError>)
}

fn read<T: Precision>(
    path: &Path,
    architecture: Option<&Architecture>,
) -> Result<ReadNetwork<T>, SafetensorsError> {
    let container = TensorsInFile::open(path)?;
    let format = container.format();
    let stored = container.metadata().remove(ARCHITECTURE_KEY);
    let mut other = false;
    let architecture = match (architecture, stored) {
        (Some(given), stored) => {
            other = stored.is_some_and(|text| Architecture::from_toml(&text).ok().as_ref() != Some(given));
            given.clone()
        }
        (None, Some(text)) => Architecture::from_toml(&text)
            .map_err(|source| SafetensorsError::Architecture { path: path.into(), source })?,
        (None, None) => return Err(SafetensorsError::NoArchitecture { path: path.into() }),
    };
    let graph =
        architecture.graph().map_err(|source| SafetensorsError::Graph { path: path.into(), source })?;
    let Loaded { parameters, mut notes, metadata } = load(container, &graph)?;
    if other {
        notes.push("the file holds another architecture than the one given, which was used".into());
    }
    let network = Network::new(graph, parameters)
        .map_err(|source| SafetensorsError::Network { path: path.into(), source })?;
    Ok(ReadNetwork { network, architecture, format, notes, metadata })
}
