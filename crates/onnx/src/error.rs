//! What can be wrong with an ONNX file.

use super::OPSETS;
use posterior_networks::graph::GraphError;
use thiserror::Error;

/// A model that cannot be imported. Every case names the file.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum OnnxError {
    /// The file cannot be read.
    #[error("cannot read {file}: {problem}")]
    Io {
        /// The file.
        file: String,
        /// What the system says.
        problem: String,
    },
    /// Bytes that are no ONNX model.
    #[error("{file} is not a valid ONNX model: {problem}")]
    Malformed {
        /// The file.
        file: String,
        /// What is wrong.
        problem: String,
    },
    /// An operator set that is not read.
    #[error("{file}: {problem}; export it with an opset_version from {} to {}", OPSETS.start(), OPSETS.end())]
    Opset {
        /// The file.
        file: String,
        /// Which operator set there is.
        problem: String,
    },
    /// Inputs or outputs that a network here cannot have.
    #[error("{file}: {problem}")]
    Interface {
        /// The file.
        file: String,
        /// What is wrong and what to do.
        problem: String,
    },
    /// A tensor that does not hold what it declares.
    #[error("{file}, tensor `{tensor}`: {problem}")]
    Tensor {
        /// The file.
        file: String,
        /// The initialiser or constant.
        tensor: String,
        /// What is wrong.
        problem: String,
    },
    /// Weights in another file that cannot be had.
    #[error("{file}: the numbers of tensor `{tensor}` are in another file: {problem}")]
    ExternalData {
        /// The file of the model.
        file: String,
        /// The initialiser.
        tensor: String,
        /// What is wrong, and which file is expected where.
        problem: String,
    },
    /// An operator that is not read; [`SUPPORTED`](crate::SUPPORTED) lists those that are.
    #[error(
        "{file}, node `{node}`: the operator `{operator}` is not supported{detail}. Simplify the model before it is exported, or write \
         its layers in an architecture file for its safetensors (docs: Networks)"
    )]
    Unsupported {
        /// The file.
        file: String,
        /// The node.
        node: String,
        /// The operator.
        operator: String,
        /// Why, where the operator is known in other uses.
        detail: String,
    },
    /// A node that does not fit.
    #[error("{file}, node `{node}` ({operator}): {problem}")]
    Node {
        /// The file.
        file: String,
        /// The node.
        node: String,
        /// Its operator.
        operator: String,
        /// What is wrong.
        problem: String,
    },
    /// Examples that are not independent.
    #[error(
        "{file}, node `{node}` ({operator}): {problem}; every example must be computed on its own, with the batch as the first axis of \
         input and output"
    )]
    Batch {
        /// The file.
        file: String,
        /// The node.
        node: String,
        /// Its operator.
        operator: String,
        /// What happens to the batch axis.
        problem: String,
    },
    /// More than a sane file holds.
    #[error("{file}: {problem}")]
    Limit {
        /// The file.
        file: String,
        /// What there is too much of.
        problem: String,
    },
}

/// What is wrong with one node, before its name is known.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Fault {
    /// It does not fit.
    Problem(String),
    /// It mixes examples.
    Batch(String),
    /// Its operator is not supported (in this use).
    Unsupported(String),
    /// It asks for too much.
    Limit(String),
}

impl From<String> for Fault {
    fn from(problem: String) -> Self {
        Self::Problem(problem)
    }
}

impl From<&str> for Fault {
    fn from(problem: &str) -> Self {
        Self::Problem(problem.into())
    }
}

impl From<GraphError> for Fault {
    fn from(error: GraphError) -> Self {
        match error {
            GraphError::Node { problem, .. } => Self::Problem(problem),
            other => Self::Problem(other.to_string()),
        }
    }
}

impl Fault {
    /// With its place.
    pub(super) fn at(self, file: &str, node: &str, operator: &str) -> OnnxError {
        let (file, node, operator) = (file.to_string(), short(node), short(operator));
        match self {
            Self::Problem(problem) => OnnxError::Node { file, node, operator, problem },
            Self::Batch(problem) => OnnxError::Batch { file, node, operator, problem },
            Self::Unsupported(detail) => OnnxError::Unsupported { file, node, operator, detail },
            Self::Limit(problem) => OnnxError::Limit { file, problem },
        }
    }
}

/// A name from the file, cut where it is too long for a message.
pub(super) fn short(name: &str) -> String {
    match name.char_indices().nth(80) {
        Some((at, _)) => format!("{}...", &name[..at]),
        None => name.to_string(),
    }
}
