//! A network's weights among the tensors of a model's file.

use posterior_networks::{Array, Graph, Network, Precision};
use posterior_store::{Element, StoreError, TensorValues, Tensors};

/// Prefix of the network's tensors.
const NETWORK: &str = "network.";

/// The weights of a network, by name.
pub(crate) fn add_network<T: Precision + Element>(network: &Network<T>, tensors: &mut Tensors) {
    add_network_as(NETWORK, network, tensors);
}

/// The same behind another prefix, where a file has more than one.
pub(crate) fn add_network_as<T: Precision + Element>(
    prefix: &str,
    network: &Network<T>,
    tensors: &mut Tensors,
) {
    for (slot, array) in network.graph().parameters().iter().zip(network.parameters()) {
        tensors.insert(format!("{prefix}{}", slot.name), slot.shape.clone(), array.values());
    }
}

/// Whether the network's weights are in single precision.
pub(crate) fn is_single(tensors: &Tensors) -> bool {
    tensors.iter().any(|(name, t)| name.starts_with(NETWORK) && matches!(t.values, TensorValues::F32(_)))
}

/// The network of a graph.
pub(crate) fn take_network<T: Precision + Element>(
    graph: Graph,
    tensors: &mut Tensors,
) -> Result<Network<T>, StoreError> {
    take_network_as(NETWORK, graph, tensors)
}

/// The same behind another prefix.
pub(crate) fn take_network_as<T: Precision + Element>(
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
