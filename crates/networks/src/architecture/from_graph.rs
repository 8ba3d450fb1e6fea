//! Any graph as `layers`, so that networks from elsewhere can be written down: the text reads back to the very same graph.

use super::building::wrong;
use super::layers::{INPUT, KIND, MOST_LAYERS};
use super::{Architecture, LayerEntry, LayerOperation, Layers, ParameterEntry};
use crate::graph::{Graph, GraphError, Value};
use crate::operation::Operation;

impl Architecture {
    /// A graph in the free form ([`Layers`]): names, shared parameters, constants, shapes in files and beginnings included, so that
    /// `Architecture::from_graph(&graph)?.graph()? == graph`. The graph is rebuilt to make sure of that.
    ///
    /// # Errors
    /// [`GraphError::Architecture`] for more layers than a file may have, or a graph that the free form cannot express.
    pub fn from_graph(graph: &Graph) -> Result<Self, GraphError> {
        if graph.nodes().len() > MOST_LAYERS {
            return Err(wrong(KIND, format!("the network has more than {MOST_LAYERS} layers")));
        }
        let mut layers = Layers {
            input: graph.input_shape().to_vec(),
            output: None,
            input_name: free_name(graph),
            layers: Vec::with_capacity(graph.nodes().len()),
            parameters: Vec::new(),
        };
        let input = layers.input_name.clone().unwrap_or_else(|| INPUT.into());
        let name =
            |value: Value| value.node().map_or(input.as_str(), |node| &graph.nodes()[node].name).to_string();
        for (position, node) in graph.nodes().iter().enumerate() {
            let shapes: Vec<&[usize]> = node.inputs.iter().map(|&v| graph.shape(v)).collect();
            let prepared = node.operation.prepare::<f64>(&shapes).map_err(|problem| GraphError::Node {
                node: node.name.clone(),
                operation: node.operation.name(),
                problem,
            })?;
            let names = || node.parameters.iter().map(|&p| graph.parameters()[p].name.clone());
            let usual = prepared.parameters.iter().map(|p| format!("{}.{}", node.name, p.name));
            let follows = node.inputs == [Value(position)];
            let silent = follows || matches!(node.operation, Operation::Learned(_));
            layers.layers.push(LayerEntry {
                name: node.name.clone(),
                operation: LayerOperation::Plain(node.operation.clone()),
                inputs: (!silent).then(|| node.inputs.iter().map(|&v| name(v)).collect()),
                parameters: if names().eq(usual) { Vec::new() } else { names().collect() },
            });
        }
        if graph.output() != Value(graph.nodes().len()) || graph.nodes().is_empty() {
            layers.output = Some(name(graph.output()));
        }
        if layers.graph()?.parameters() != graph.parameters() {
            let entry = |slot: &crate::graph::ParameterSlot| ParameterEntry {
                name: slot.name.clone(),
                shape: slot.shape.clone(),
                trainable: slot.trainable,
                initial: slot.initial,
            };
            layers.parameters = graph.parameters().iter().map(entry).collect();
        }
        if layers.graph()? != *graph {
            return Err(wrong(
                KIND,
                "this network cannot be written layer by layer: it shares parameters in a way that files cannot say",
            ));
        }
        Ok(Self::Layers(layers))
    }
}

/// A name for the input that no layer has; None for the usual one.
fn free_name(graph: &Graph) -> Option<String> {
    let taken = |name: &str| graph.nodes().iter().any(|node| node.name == name);
    if !taken(INPUT) {
        return None;
    }
    (0..).map(|k| format!("network_input_{k}")).find(|name| !taken(name))
}
