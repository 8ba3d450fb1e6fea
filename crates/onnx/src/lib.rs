//! **ONNX import**: a model file becomes a [`Graph`] with its weights.
//!
//! Opsets 9 to 25, as `torch.onnx.export` writes them with either of its exporters. The protobuf layer is the `prost` crate: every length is
//! checked against the bytes that are there, and the few messages that are needed ([`definitions`]) do not nest, so a file cannot make the
//! parser recurse. Numbers in a file beside the model ([`external data`](https://onnx.ai/onnx/repo-docs/ExternalData.html)) are read from there.
//!
//! ```no_run
//! let imported = posterior_onnx::read_onnx("net.onnx")?;
//! imported.notes.iter().for_each(|note| println!("note: {note}"));
//! let network = imported.network::<f32>()?;
//! println!("{} weights", network.graph().parameters().iter().map(|p| p.len()).sum::<usize>());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | file | does |
//! |---|---|
//! | [`definitions`] | the protobuf messages |
//! | `model`, `node`, `tensor` | checks of the file: operator sets, inputs, outputs, order of nodes, declared sizes |
//! | `functions` | calls as the nodes that they stand for |
//! | `external` | numbers in files beside the model |
//! | `inputs` | what the model is fed |
//! | `patterns` | norms and activations put together again from their parts |
//! | `dimension`, `constant`, `folding` | what is known without running: weights, and shape arithmetic with a symbolic number of examples |
//! | `layout` | where the batch axis of every value is: it may move and merge, as attention does, but never mix |
//! | `importer`, `moves`, `operators` | nodes to operations |
//!
//! **Several inputs** are parts of one row of numbers, each cut out and shaped at the beginning of the graph ([`Imported::inputs`]).
//!
//! **Batch.** The first axis of every input counts examples and is dropped. It may be dynamic or fixed; a file
//! for several examples at a time is read for any number. A graph in which an example
//! depends on others is refused.
//!
//! **Names.** Weights keep their ONNX names as parameter names and are trainable; single numbers and `Constant` nodes are constants. What
//! is changed on the way (a transposed weight, a negated bias) is in [`Imported::notes`].

mod constant;
pub mod definitions;
mod dimension;
mod error;
mod external;
mod folding;
mod functions;
mod importer;
mod inputs;
mod layout;
mod model;
mod moves;
mod node;
mod operators;
mod patterns;
mod tensor;
#[cfg(test)]
mod tests;

pub use error::OnnxError;
pub use operators::SUPPORTED;

use posterior_networks::graph::NetworkError;
use posterior_networks::{Array, Graph, Network, OutputLink, Precision};
use std::path::Path;

/// Oldest and newest operator set that is read.
pub const OPSETS: std::ops::RangeInclusive<i64> = 9..=25;

/// How a model is read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OnnxOptions {
    /// The output to take, by name; needed where a model has several.
    pub output: Option<String>,
    /// Drops a softmax or log-softmax at the end: inference wants logits. Without this a final softmax stays and a log-softmax is refused.
    pub strip_final_softmax: bool,
}

/// An input of a network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetworkInput {
    /// Its name.
    pub name: String,
    /// The shape of one example.
    pub shape: Vec<usize>,
}

/// A network from an ONNX file.
#[derive(Clone, Debug)]
pub struct Imported {
    /// What the model is fed, in its order. Where that is more than one, [`Imported::graph`] takes one row of numbers: those of each, one after the other.
    pub inputs: Vec<NetworkInput>,
    /// Its structure; shapes do not count the batch axis.
    pub graph: Graph,
    /// Values of [`Graph::parameters`], in that order: the file's numbers widened exactly, unless a note says otherwise.
    pub parameters: Vec<Array<f64>>,
    /// What was chosen, put together, changed or left out.
    pub notes: Vec<String>,
    /// What was dropped at the end, where [`OnnxOptions::strip_final_softmax`] found something.
    pub dropped: Option<OutputLink>,
    /// Version of the operator set.
    pub opset: i64,
    /// Name and version of the program that wrote the file.
    pub producer: String,
}

impl Imported {
    /// The network in one precision.
    ///
    /// # Errors
    /// When a weight leaves the range of the precision.
    pub fn network<T: Precision>(&self) -> Result<Network<T>, NetworkError> {
        Network::new(self.graph.clone(), self.parameters.iter().map(Array::cast).collect())
    }

    /// The same without a softmax at the end; None if there is none.
    pub fn without_final_softmax(&self) -> Option<Self> {
        let graph = self.graph.without_final_softmax()?;
        let value = |name: &str| self.graph.parameters().iter().position(|p| p.name == name);
        let parameters = graph
            .parameters()
            .iter()
            .filter_map(|slot| Some(self.parameters[value(&slot.name)?].clone()))
            .collect();
        let mut notes = self.notes.clone();
        notes.push("the final softmax was dropped: the outputs are logits".into());
        let dropped = Some(OutputLink::Softmax);
        let inputs = self.inputs.clone();
        Some(Self {
            inputs,
            graph,
            parameters,
            notes,
            dropped,
            opset: self.opset,
            producer: self.producer.clone(),
        })
    }
}

/// Reads a model, with the numbers that are in files beside it.
///
/// Memory: the bytes of the model, and eight bytes for each number of the weights (twice while they become parameters).
///
/// # Errors
/// See [`OnnxError`]; nothing is guessed.
pub fn read_onnx(path: impl AsRef<Path>) -> Result<Imported, OnnxError> {
    read_onnx_with(path, &OnnxOptions::default())
}

/// As [`read_onnx`], with choices.
///
/// # Errors
/// As [`read_onnx`].
pub fn read_onnx_with(path: impl AsRef<Path>, options: &OnnxOptions) -> Result<Imported, OnnxError> {
    let path = path.as_ref();
    let origin = path.display().to_string();
    let bytes = std::fs::read(path)
        .map_err(|source| OnnxError::Io { file: origin.clone(), problem: source.to_string() })?;
    parse(bytes, &origin, options, &external::DataFiles::beside(path))
}

/// A model from bytes; `origin` names them in errors.
///
/// Memory: about three times the bytes (the bytes themselves and the weights as `f64`). A model whose numbers are in other files needs
/// [`read_onnx`].
///
/// # Errors
/// As [`read_onnx`].
pub fn parse_onnx(bytes: Vec<u8>, origin: &str) -> Result<Imported, OnnxError> {
    parse_onnx_with(bytes, origin, &OnnxOptions::default())
}

/// As [`parse_onnx`], with choices.
///
/// # Errors
/// As [`read_onnx`].
pub fn parse_onnx_with(bytes: Vec<u8>, origin: &str, options: &OnnxOptions) -> Result<Imported, OnnxError> {
    parse(bytes, origin, options, &external::DataFiles::default())
}

/// A model from bytes and the files beside it.
fn parse(
    bytes: Vec<u8>,
    origin: &str,
    options: &OnnxOptions,
    data: &external::DataFiles,
) -> Result<Imported, OnnxError> {
    let size = bytes.len() as u64;
    let mut file = model::decode(bytes, origin)?;
    functions::inline(&mut file, origin, size)?;
    let model = model::Model::check(&file, origin, options, data)?;
    importer::run(&model, origin, size)
}
