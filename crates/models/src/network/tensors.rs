//! A network among the tensors of a model's file.

use posterior_networks::{Architecture, Array, Graph, Network, Precision};
use posterior_store::{Element, StoreError, TensorValues, Tensors};
use serde::ser::Error;

/// Prefix of the tensors of a network, unless a file has more than one.
pub(crate) const NETWORK: &str = "network.";

/// The weights of a network, by name.
pub(crate) fn add_network<T: Precision + Element>(prefix: &str, network: &Network<T>, tensors: &mut Tensors) {
    for (slot, array) in network.graph().parameters().iter().zip(network.parameters()) {
        tensors.insert(format!("{prefix}{}", slot.name), slot.shape.clone(), array.values());
    }
}

/// The same, and its architecture as text.
pub(crate) fn write_network<T: Precision + Element>(
    prefix: &str,
    network: &Network<T>,
    tensors: &mut Tensors,
) -> Result<String, StoreError> {
    add_network(prefix, network, tensors);
    let architecture = Architecture::from_graph(network.graph()).map_err(serde_json::Error::custom)?;
    Ok(architecture.to_toml().map_err(serde_json::Error::custom)?)
}

/// Whether the network's weights are in single precision.
pub(crate) fn is_single(tensors: &Tensors) -> bool {
    tensors.iter().any(|(name, t)| name.starts_with(NETWORK) && matches!(t.values, TensorValues::F32(_)))
}

/// The graph of an architecture.
pub(crate) fn graph_of(architecture: &str, tensors: &Tensors) -> Result<Graph, StoreError> {
    let architecture = Architecture::from_toml(architecture).map_err(|e| tensors.corrupt(e))?;
    architecture.graph().map_err(|e| tensors.corrupt(e))
}

/// The network of a graph.
pub(crate) fn take_network<T: Precision + Element>(
    prefix: &str,
    graph: Graph,
    tensors: &mut Tensors,
) -> Result<Network<T>, StoreError> {
    let slots = graph.parameters().iter();
    let parameters = slots
        .map(|slot| {
            let values = tensors.take(&format!("{prefix}{}", slot.name), &slot.shape)?;
            Ok(Array::new(slot.shape.clone(), values))
        })
        .collect::<Result<_, StoreError>>()?;
    Network::new(graph, parameters).map_err(|e| tensors.corrupt(e))
}

/// The network of an architecture.
pub(crate) fn read_network<T: Precision + Element>(
    prefix: &str,
    architecture: &str,
    tensors: &mut Tensors,
) -> Result<Network<T>, StoreError> {
    take_network(prefix, graph_of(architecture, tensors)?, tensors)
}
