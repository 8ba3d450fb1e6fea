//! What can be wrong with graphs and with their use.

use thiserror::Error;

/// A graph that cannot be built.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum GraphError {
    /// A node does not fit.
    #[error("layer `{node}` ({operation}): {problem}")]
    Node {
        /// The node.
        node: String,
        /// Its operation.
        operation: &'static str,
        /// What is wrong.
        problem: String,
    },
    /// Settings that describe no network.
    #[error("architecture `{kind}`: {problem}")]
    Architecture {
        /// The kind of architecture.
        kind: &'static str,
        /// What is wrong.
        problem: String,
    },
    /// A name that does not exist.
    #[error("there is no layer, value or parameter `{name}`")]
    Unknown {
        /// The name.
        name: String,
    },
}

/// A network that cannot do what is asked.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum NetworkError {
    /// The graph cannot be built.
    #[error(transparent)]
    Graph(#[from] GraphError),
    /// Examples of another shape.
    #[error("the network takes examples of shape {expected:?}, these have shape {found:?}")]
    InputShape {
        /// Shape of the network's input.
        expected: Vec<usize>,
        /// Shape of the examples.
        found: Vec<usize>,
    },
    /// Tangents, cotangents or outputs that do not fit.
    #[error("{what}: expected shape {expected:?}, found {found:?}")]
    Shape {
        /// Which argument.
        what: &'static str,
        /// What was expected.
        expected: Vec<usize>,
        /// What was given.
        found: Vec<usize>,
    },
    /// A value that is NaN or infinite.
    #[error("{what} is not finite at position {position}: inference needs finite numbers")]
    NotFinite {
        /// Where: the input, a parameter, the output of a layer.
        what: String,
        /// Position in row-major order.
        position: usize,
    },
    /// A derivative for inference while batch statistics are in use.
    #[error(
        "the network is in training mode, where every output depends on the whole batch: set it to evaluation mode before {what}"
    )]
    TrainingMode {
        /// What was asked.
        what: &'static str,
    },
    /// Names that select nothing, or do not exist.
    #[error("no trainable parameter matches `{pattern}`; there are: {available}")]
    NoSuchParameter {
        /// What was asked for.
        pattern: String,
        /// The names.
        available: String,
    },
    /// Tensors that do not fit the architecture, all of them.
    #[error("the tensors do not fit the architecture:\n{}", problems.join("\n"))]
    Tensors {
        /// One line for each missing, unknown or mis-shaped tensor.
        problems: Vec<String>,
    },
    /// A whole number that a table does not hold.
    #[error("layer `{layer}` looks up entry {value} (position {position}) of a table with {entries} entries")]
    NoSuchEntry {
        /// The embedding.
        layer: String,
        /// The value.
        value: f64,
        /// Its position in the batch.
        position: usize,
        /// Rows of the table.
        entries: usize,
    },
    /// More memory than allowed.
    #[error("{what} needs {} of memory, above the limit of {}: {remedy}", bytes(*needed), bytes(*allowed))]
    Memory {
        /// What.
        what: &'static str,
        /// Bytes needed.
        needed: u64,
        /// Bytes allowed.
        allowed: u64,
        /// What to do instead.
        remedy: &'static str,
    },
}

/// Bytes for people.
pub(crate) fn bytes(count: u64) -> String {
    match count {
        0..1_000_000 => format!("{:.1} kB", count as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} MB", count as f64 / 1e6),
        _ => format!("{:.1} GB", count as f64 / 1e9),
    }
}
