//! **Graphs** of operations over named parameters, and **networks**: graphs with numbers in them.
//!
//! A [`Graph`] is plain structure: one input, nodes in the order they are computed, parameters by name (several nodes may share one), one
//! output. A [`Network`] adds the values of the parameters in one precision and computes.

mod builder;
mod ends;
mod error;
mod network;
mod recurrent;
mod selection;
mod structure;
mod table;
#[cfg(test)]
mod tests;
pub(crate) mod trace;
mod unrolling;

pub use builder::GraphBuilder;
pub use ends::{InputScaling, LastLayer};
pub use error::{GraphError, NetworkError};
pub use network::Network;
pub use recurrent::{MOST_UNROLLED, Recurrent, RecurrentCell, RecurrentPass, RecurrentStates};
pub use selection::{SelectedParameter, Selection};
pub use structure::{Graph, Node, OutputLink, ParameterSlot, Value};
pub use table::{LayerRow, LayerTable, describe, layer_lines};
pub use trace::Trace;
