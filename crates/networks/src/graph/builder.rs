//! Putting a graph together, node by node.

use super::error::GraphError;
use super::structure::{Graph, Node, ParameterSlot, Value};
use crate::operation::{
    Activation, Bias, Convolution, Gain, Linear, Normalise, Operation, Over, ParameterSpecification,
    RmsNormalise,
};
use std::collections::HashMap;

/// Nodes of one graph at most: beyond it a file is a mistake or an attack.
const MOST_NODES: usize = 100_000;

/// Values of all nodes for one example at most: 32 GiB in double precision.
const MOST_ACTIVATIONS: usize = 1 << 32;

/// Builds a [`Graph`]. Shapes are checked as nodes are added; a node can only read what exists, so there are no cycles.
///
/// ```
/// use posterior_networks::{Activation, GraphBuilder};
/// let mut builder = GraphBuilder::new(&[784])?;
/// let x = builder.linear("0", 200, builder.input())?;
/// let x = builder.activation("1", Activation::Tanh, x)?;
/// let x = builder.linear("2", 10, x)?;
/// let graph = builder.finish(x)?;
/// assert_eq!(graph.output_shape(), [10]);
/// assert_eq!(graph.parameters()[0].name, "0.weight");
/// # Ok::<(), posterior_networks::GraphError>(())
/// ```
#[derive(Clone, Debug)]
pub struct GraphBuilder {
    graph: Graph,
    names: HashMap<String, usize>,
    parameters: HashMap<String, usize>,
    activations: usize,
}

impl GraphBuilder {
    /// A graph whose input has the given shape (one example).
    ///
    /// # Errors
    /// When the shape holds a zero or too many values.
    pub fn new(input: &[usize]) -> Result<Self, GraphError> {
        let error = |problem: String| GraphError::Node { node: "input".into(), operation: "input", problem };
        crate::operation::check_size(input).map_err(error)?;
        if input.contains(&0) {
            return Err(error(format!("an axis of {input:?} has length 0")));
        }
        Ok(Self {
            graph: Graph { input: input.to_vec(), nodes: vec![], parameters: vec![], output: Value::INPUT },
            names: HashMap::new(),
            parameters: HashMap::new(),
            activations: 0,
        })
    }

    /// The network's input.
    pub fn input(&self) -> Value {
        Value::INPUT
    }

    /// Shape of one example of a value.
    pub fn shape(&self, value: Value) -> &[usize] {
        self.graph.shape(value)
    }

    /// The node that makes a value; None for the input.
    pub fn node(&self, value: Value) -> Option<&Node> {
        self.graph.nodes.get(value.node()?)
    }

    /// The parameters that there are so far.
    pub fn parameters(&self) -> &[ParameterSlot] {
        &self.graph.parameters
    }

    /// Adds a node whose parameters are called `name.weight`, `name.bias`, ...
    ///
    /// # Errors
    /// When the name is taken or the operation does not fit its inputs.
    pub fn add(&mut self, name: &str, operation: Operation, inputs: &[Value]) -> Result<Value, GraphError> {
        self.add_named(name, operation, inputs, &[])
    }

    /// Adds a node with full names for its parameters, in the operation's order (names left out are made as in [`Self::add`]). A name that
    /// exists shares that parameter, which must have the same shape.
    ///
    /// # Errors
    /// As [`Self::add`], and when a shared parameter has another shape.
    pub fn add_named(
        &mut self,
        name: &str,
        operation: Operation,
        inputs: &[Value],
        parameters: &[&str],
    ) -> Result<Value, GraphError> {
        let error =
            |problem: String| GraphError::Node { node: name.into(), operation: operation.name(), problem };
        if self.names.contains_key(name) || name.is_empty() {
            return Err(error("another node has this name (or it is empty): names must be unique".into()));
        }
        if self.graph.nodes.len() >= MOST_NODES {
            return Err(error(format!("more than {MOST_NODES} nodes")));
        }
        if let Some(value) = inputs.iter().find(|v| v.0 > self.graph.nodes.len()) {
            return Err(error(format!("input {} does not exist yet", value.0)));
        }
        let shapes: Vec<&[usize]> = inputs.iter().map(|&v| self.graph.shape(v)).collect();
        let prepared = operation.prepare::<f64>(&shapes).map_err(error)?;
        crate::operation::check_size(&prepared.shape).map_err(error)?;
        let activations = self.activations + prepared.shape.iter().product::<usize>();
        if activations > MOST_ACTIVATIONS {
            return Err(error(format!(
                "one example would have more than {MOST_ACTIVATIONS} values in all layers"
            )));
        }
        if parameters.len() > prepared.parameters.len() {
            let (given, known) = (parameters.len(), prepared.parameters.len());
            return Err(error(format!("{given} names are given for {known} parameters")));
        }
        let before = self.graph.parameters.len();
        let positions = self.slots(name, &prepared.parameters, parameters).map_err(|problem| {
            // A node that does not fit leaves nothing behind.
            self.parameters.retain(|_, &mut position| position < before);
            self.graph.parameters.truncate(before);
            error(problem)
        })?;
        self.activations = activations;
        self.graph.nodes.push(Node {
            name: name.into(),
            inputs: inputs.to_vec(),
            parameters: positions,
            shape: prepared.shape,
            flops: prepared.flops,
            operation,
        });
        self.names.insert(name.into(), self.graph.nodes.len());
        Ok(Value(self.graph.nodes.len()))
    }

    /// Finds or makes the parameters of a node.
    fn slots(
        &mut self,
        name: &str,
        specifications: &[ParameterSpecification],
        names: &[&str],
    ) -> Result<Vec<usize>, String> {
        let mut positions = Vec::new();
        for (slot, specification) in specifications.iter().enumerate() {
            let full =
                names.get(slot).map_or_else(|| format!("{name}.{}", specification.name), ToString::to_string);
            let needed = &specification.shape;
            crate::operation::check_size(needed)?;
            if let Some(&position) = self.parameters.get(&full) {
                let shared = &self.graph.parameters[position];
                if shared.shape != *needed {
                    let shape = &shared.shape;
                    return Err(format!(
                        "the shared parameter `{full}` has shape {shape:?}, here {needed:?} is needed"
                    ));
                }
                if shared.trainable && !specification.trainable {
                    return Err(format!(
                        "`{full}` is trained elsewhere and cannot be the constant `{}` here",
                        specification.name
                    ));
                }
                positions.push(position);
                continue;
            }
            positions.push(self.graph.parameters.len());
            self.parameters.insert(full.clone(), self.graph.parameters.len());
            self.graph.parameters.push(ParameterSlot {
                name: full,
                shape: needed.clone(),
                trainable: specification.trainable,
                initial: specification.initial,
            });
        }
        Ok(positions)
    }

    /// Sets whether a parameter is trainable (constants of imported graphs are not) and how it begins.
    ///
    /// # Errors
    /// When there is no such parameter, and when batch norm's statistics are to be trained, in which no derivative is taken.
    pub fn describe(
        &mut self,
        parameter: &str,
        trainable: bool,
        initial: Option<crate::operation::Initial>,
    ) -> Result<(), GraphError> {
        let &position =
            self.parameters.get(parameter).ok_or_else(|| GraphError::Unknown { name: parameter.into() })?;
        let statistics = |node: &Node| {
            matches!(node.operation, Operation::BatchNorm(_))
                && node.parameters.iter().skip(2).any(|&p| p == position)
        };
        if let Some(node) = self.graph.nodes.iter().find(|node| trainable && statistics(node)) {
            return Err(GraphError::Node {
                node: node.name.clone(),
                operation: node.operation.name(),
                problem: format!("`{parameter}` is a statistic and cannot be trained by gradients"),
            });
        }
        let slot = &mut self.graph.parameters[position];
        slot.trainable = trainable;
        slot.initial = initial.unwrap_or(slot.initial);
        Ok(())
    }

    /// A fully connected layer with bias.
    ///
    /// # Errors
    /// As [`Self::add`].
    pub fn linear(&mut self, name: &str, outputs: usize, x: Value) -> Result<Value, GraphError> {
        self.add(name, Operation::Linear(Linear { outputs, bias: true }), &[x])
    }

    /// A convolution.
    ///
    /// # Errors
    /// As [`Self::add`].
    pub fn convolution(
        &mut self,
        name: &str,
        convolution: Convolution,
        x: Value,
    ) -> Result<Value, GraphError> {
        self.add(name, Operation::Convolution(convolution), &[x])
    }

    /// An activation.
    ///
    /// # Errors
    /// As [`Self::add`].
    pub fn activation(&mut self, name: &str, activation: Activation, x: Value) -> Result<Value, GraphError> {
        self.add(name, Operation::Activation(activation), &[x])
    }

    /// Layer norm over the last `axes` axes with parameters `name.weight` and `name.bias` (nodes `name`, `name.gain`, `name.shift`).
    ///
    /// # Errors
    /// As [`Self::add`].
    pub fn layer_norm(
        &mut self,
        name: &str,
        axes: usize,
        epsilon: f64,
        x: Value,
    ) -> Result<Value, GraphError> {
        let shape = self.shape(x);
        let parameter = shape[shape.len().saturating_sub(axes)..].to_vec();
        self.norm(name, Normalise { over: Over::LastAxes(axes), epsilon }, parameter, x)
    }

    /// RMS norm over the last `axes` axes with parameter `name.weight` (nodes `name`, `name.gain`).
    ///
    /// # Errors
    /// As [`Self::add`].
    pub fn rms_norm(&mut self, name: &str, axes: usize, epsilon: f64, x: Value) -> Result<Value, GraphError> {
        let shape = self.shape(x);
        let shape = shape[shape.len().saturating_sub(axes)..].to_vec();
        let operation = Operation::RmsNormalise(RmsNormalise { over: Over::LastAxes(axes), epsilon });
        let z = self.add(name, operation, &[x])?;
        let gain = Operation::Gain(Gain { shape });
        self.add_named(&format!("{name}.gain"), gain, &[z], &[&format!("{name}.weight")])
    }

    /// Group norm of channels with parameters `name.weight` and `name.bias`, stored as `[channels]`.
    ///
    /// # Errors
    /// As [`Self::add`].
    pub fn group_norm(
        &mut self,
        name: &str,
        groups: usize,
        epsilon: f64,
        x: Value,
    ) -> Result<Value, GraphError> {
        let shape = self.shape(x);
        let mut parameter = vec![1; shape.len()];
        let channels = shape.first().copied().unwrap_or(1);
        if let Some(first) = parameter.first_mut() {
            *first = channels;
        }
        let y = self.norm(name, Normalise { over: Over::Groups(groups), epsilon }, parameter, x)?;
        // Broadcast along the channels, stored without the axes of length 1.
        for part in ["weight", "bias"] {
            if let Some(&position) = self.parameters.get(&format!("{name}.{part}")) {
                self.graph.parameters[position].shape = vec![channels];
            }
        }
        Ok(y)
    }

    fn norm(
        &mut self,
        name: &str,
        normalise: Normalise,
        shape: Vec<usize>,
        x: Value,
    ) -> Result<Value, GraphError> {
        let (weight, bias) = (format!("{name}.weight"), format!("{name}.bias"));
        let z = self.add(name, Operation::Normalise(normalise), &[x])?;
        let y = self.add_named(
            &format!("{name}.gain"),
            Operation::Gain(Gain { shape: shape.clone() }),
            &[z],
            &[&weight],
        )?;
        self.add_named(&format!("{name}.shift"), Operation::Bias(Bias { shape }), &[y], &[&bias])
    }

    /// The finished graph; nodes that `output` does not need are dropped.
    ///
    /// # Errors
    /// When `output` does not exist.
    pub fn finish(mut self, output: Value) -> Result<Graph, GraphError> {
        if output.0 > self.graph.nodes.len() {
            return Err(GraphError::Unknown { name: format!("value {}", output.0) });
        }
        self.graph.output = output;
        self.graph.remove_unused();
        Ok(self.graph)
    }
}
