//! The two ends of a network: inputs that come in other units or another order, and a last layer that is taken off.
//!
//! Both make a network of a network, whose graph has an architecture as any other has and whose own weights are as trainable as before; what is added is constant.

use super::error::{GraphError, NetworkError};
use super::network::Network;
use super::structure::{Graph, Node, ParameterSlot, Value};
use crate::array::{Array, Precision};
use crate::operation::{Activation, Bias, Gain, Initial, Learned, Linear, Operation};

/// What a network is given in place of its inputs: input k is `gains[k] x[order[k]] + shifts[k]` of the numbers x that are given.
#[derive(Clone, Debug, PartialEq)]
pub struct InputScaling {
    /// Which of the numbers given each input is.
    pub order: Vec<usize>,
    /// What it is multiplied with.
    pub gains: Vec<f64>,
    /// What is added then.
    pub shifts: Vec<f64>,
}

/// The fully connected layer of a vector that a network ends in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LastLayer {
    /// What it reads.
    pub input: Value,
    /// Whether it adds something to its products.
    pub bias: bool,
}

impl InputScaling {
    /// Whether it gives what it is given.
    pub fn is_identity(&self) -> bool {
        self.in_order() && self.gains.iter().all(|g| *g == 1.0) && self.shifts.iter().all(|s| *s == 0.0)
    }

    fn in_order(&self) -> bool {
        self.order.iter().enumerate().all(|(k, from)| k == *from)
    }

    /// Numbers of a network's inputs that it is for, if its parts agree on that.
    fn width(&self) -> Option<usize> {
        let width = self.order.len();
        let fits = self.gains.len() == width && self.shifts.len() == width;
        let finite = self.gains.iter().chain(&self.shifts).all(|v| v.is_finite());
        (fits && finite && self.order.iter().all(|from| *from < width)).then_some(width)
    }
}

impl Graph {
    /// The fully connected layer that the graph ends in, up to a bias added apart and views that change nothing.
    ///
    /// # Errors
    /// [`GraphError::Node`] with the operation that it ends in instead.
    pub fn last_layer(&self) -> Result<LastLayer, GraphError> {
        let (mut output, mut bias) = (self.output, false);
        while let Some(node) = output.node().map(|n| &self.nodes[n]) {
            let refuse = |problem: &str| {
                let (node, operation) = (node.name.clone(), node.operation.name());
                Err(GraphError::Node { node, operation, problem: problem.into() })
            };
            match &node.operation {
                Operation::Activation(Activation::Identity) | Operation::Reshape(_) => {}
                Operation::Bias(_) => bias = true,
                Operation::Linear(_) if self.shape(node.inputs[0]).len() != 1 => {
                    return refuse(
                        "the network ends in it, and it is a layer of many places, not of a vector",
                    );
                }
                Operation::Linear(linear) => {
                    return Ok(LastLayer { input: node.inputs[0], bias: bias || linear.bias });
                }
                _ => return refuse("the network ends in it, and not in a fully connected layer"),
            }
            output = node.inputs[0];
        }
        Err(GraphError::Unknown { name: "last fully connected layer".into() })
    }

    /// A name that no node has and no parameter begins with.
    fn free_name(&self, wanted: &str) -> String {
        let taken = |name: &str| {
            let prefix = format!("{name}.");
            self.nodes.iter().any(|node| node.name == name)
                || self.parameters.iter().any(|slot| slot.name.starts_with(&prefix))
        };
        let numbered = (1..).map(|k| format!("{wanted}_{k}"));
        std::iter::once(wanted.to_string()).chain(numbered).find(|name| !taken(name)).unwrap_or_default()
    }

    /// Adds a node with constant parameters of its own.
    fn append(
        &mut self,
        name: &str,
        operation: Operation,
        inputs: &[Value],
        initial: Initial,
    ) -> Result<Value, GraphError> {
        let shapes: Vec<&[usize]> = inputs.iter().map(|&v| self.shape(v)).collect();
        let prepared = operation.prepare::<f64>(&shapes).map_err(|problem| GraphError::Node {
            node: name.into(),
            operation: operation.name(),
            problem,
        })?;
        let first = self.parameters.len();
        self.parameters.extend(prepared.parameters.iter().map(|p| ParameterSlot {
            name: format!("{name}.{}", p.name),
            shape: p.shape.clone(),
            trainable: false,
            initial,
        }));
        self.nodes.push(Node {
            name: name.into(),
            inputs: inputs.to_vec(),
            parameters: (first..self.parameters.len()).collect(),
            shape: prepared.shape,
            flops: prepared.flops,
            operation,
        });
        Ok(Value(self.nodes.len()))
    }
}

impl<T: Precision> Network<T> {
    /// The same network of inputs that it does not take itself, as a vector: what stands in front of it scales them and puts them in order, and is not trained. Cost for each example: two operations for each
    /// input, and two for each pair of inputs where their order changes.
    ///
    /// # Errors
    /// [`NetworkError::InputShape`] where the scaling is for another number of inputs, or is none of finite numbers.
    pub fn with_inputs(&self, scaling: &InputScaling) -> Result<Self, NetworkError> {
        let own = &self.graph;
        let width: usize = own.input.iter().product();
        if scaling.width() != Some(width) {
            return Err(NetworkError::InputShape {
                expected: own.input.clone(),
                found: vec![scaling.order.len()],
            });
        }
        let numbers = |values: &[f64]| values.iter().map(|v| T::from_f64(*v)).collect::<Vec<T>>();
        let mut graph = Graph { input: vec![width], nodes: vec![], parameters: vec![], output: Value::INPUT };
        let mut parameters = Vec::new();
        let (fixed, shape) = (Initial::Constant(0.0), vec![width]);
        let mut x = if scaling.in_order() {
            let gain = Operation::Gain(Gain { shape: shape.clone() });
            let x = graph.append(&own.free_name("inputs_scale"), gain, &[Value::INPUT], fixed)?;
            parameters.push(Array::new(shape.clone(), numbers(&scaling.gains)));
            graph.append(
                &own.free_name("inputs_shift"),
                Operation::Bias(Bias { shape: shape.clone() }),
                &[x],
                fixed,
            )?
        } else {
            let mut weights = vec![0.0; width * width];
            for (k, (&from, gain)) in scaling.order.iter().zip(&scaling.gains).enumerate() {
                weights[k * width + from] = *gain;
            }
            parameters.push(Array::new(vec![width, width], numbers(&weights)));
            let linear = Operation::Linear(Linear { outputs: width, bias: true });
            graph.append(&own.free_name("inputs_order"), linear, &[Value::INPUT], fixed)?
        };
        parameters.push(Array::new(shape, numbers(&scaling.shifts)));
        if own.input != [width] {
            let reshape = Operation::Reshape(own.input.clone());
            x = graph.append(&own.free_name("inputs_shape"), reshape, &[x], fixed)?;
        }
        // The network itself behind that, node by node.
        let (nodes, slots) = (graph.nodes.len(), graph.parameters.len());
        let moved = |value: Value| if value == Value::INPUT { x } else { Value(value.0 + nodes) };
        graph.nodes.extend(own.nodes.iter().map(|node| Node {
            inputs: node.inputs.iter().map(|&v| moved(v)).collect(),
            parameters: node.parameters.iter().map(|p| p + slots).collect(),
            ..node.clone()
        }));
        graph.parameters.extend(own.parameters.iter().cloned());
        graph.output = moved(own.output);
        parameters.extend(self.parameters.iter().cloned());
        Self::new(graph, parameters)
    }

    /// The network without its last fully connected layer ([`Graph::last_layer`]): its outputs are what that layer reads, and with `one` a constant 1 behind them, whose weight is that layer's bias.
    ///
    /// # Errors
    /// [`GraphError::Node`] where it ends in something else.
    pub fn without_last_layer(&self, one: bool) -> Result<Self, NetworkError> {
        let own = &self.graph;
        let mut graph = Graph { output: own.last_layer()?.input, ..(**own).clone() };
        graph.remove_unused();
        let value = |slot: &ParameterSlot| {
            let at = own.parameters.iter().position(|p| p.name == slot.name)?;
            Some(self.parameters[at].clone())
        };
        let mut parameters: Vec<Array<T>> = graph.parameters.iter().filter_map(value).collect();
        if one {
            let constant = Operation::Learned(Learned { shape: vec![1] });
            let (last, fixed) = (graph.output, Initial::Constant(1.0));
            let one = graph.append(&own.free_name("one"), constant, &[], fixed)?;
            parameters.push(Array::new(vec![1], vec![T::from_f64(1.0)]));
            graph.output =
                graph.append(&own.free_name("features"), Operation::Concatenate(0), &[last, one], fixed)?;
        }
        Self::new(graph, parameters)
    }
}
