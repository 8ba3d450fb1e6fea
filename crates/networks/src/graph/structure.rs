//! What a network is made of, without its numbers.

use crate::operation::{Activation, Initial, Operation};

/// What turns a network's last values into probabilities, where the graph itself does so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputLink {
    /// Probabilities of classes.
    Softmax,
    /// Logarithms of them; ONNX files only.
    LogSoftmax,
    /// Probabilities of events.
    Sigmoid,
}

impl OutputLink {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Softmax => "softmax",
            Self::LogSoftmax => "log-softmax",
            Self::Sigmoid => "sigmoid",
        }
    }
}

/// The output of a node, or the network's input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Value(pub(crate) usize);

impl Value {
    /// The network's input.
    pub const INPUT: Self = Self(0);

    /// The node that computes it; None for the input.
    pub fn node(self) -> Option<usize> {
        self.0.checked_sub(1)
    }
}

/// One operation with its place in the network.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// Unique name, `layer1.0.conv1`.
    pub name: String,
    /// What it computes.
    pub operation: Operation,
    /// What it reads: values computed before.
    pub inputs: Vec<Value>,
    /// Its parameters, as positions in [`Graph::parameters`].
    pub parameters: Vec<usize>,
    /// Shape of its output for one example.
    pub shape: Vec<usize>,
    /// Multiplications and additions for one example.
    pub flops: u64,
}

/// A named parameter.
#[derive(Clone, Debug, PartialEq)]
pub struct ParameterSlot {
    /// Full name, `layer1.0.conv1.weight`.
    pub name: String,
    /// Shape.
    pub shape: Vec<usize>,
    /// False for batch-norm statistics and constants.
    pub trainable: bool,
    /// How it begins before training.
    pub initial: Initial,
}

impl ParameterSlot {
    /// Number of values.
    pub fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Whether it holds no values.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A directed acyclic graph of operations with one input and one output.
#[derive(Clone, Debug, PartialEq)]
pub struct Graph {
    pub(crate) input: Vec<usize>,
    pub(crate) nodes: Vec<Node>,
    pub(crate) parameters: Vec<ParameterSlot>,
    pub(crate) output: Value,
}

impl Graph {
    /// Shape of one example of the input.
    pub fn input_shape(&self) -> &[usize] {
        &self.input
    }

    /// Shape of one example of the output.
    pub fn output_shape(&self) -> &[usize] {
        self.shape(self.output)
    }

    /// Shape of one example of a value.
    pub fn shape(&self, value: Value) -> &[usize] {
        value.node().map_or(&self.input, |node| &self.nodes[node].shape)
    }

    /// The nodes in the order they are computed.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// All parameters in the order their nodes appear.
    pub fn parameters(&self) -> &[ParameterSlot] {
        &self.parameters
    }

    /// What the network returns.
    pub fn output(&self) -> Value {
        self.output
    }

    /// Number of trainable values.
    pub fn trainable(&self) -> usize {
        self.parameters.iter().filter(|p| p.trainable).map(ParameterSlot::len).sum()
    }

    /// Multiplications and additions of one forward pass for one example.
    pub fn flops(&self) -> u64 {
        self.nodes.iter().fold(0, |sum, node| sum.saturating_add(node.flops))
    }

    /// Values of all nodes for one example: what a pass that keeps everything stores.
    pub fn activations(&self) -> usize {
        self.nodes.iter().map(|node| node.shape.iter().product::<usize>()).sum()
    }

    /// For each value (the input is the first) the last node that reads it; `usize::MAX` for the output, and for what nothing reads the node that makes it.
    pub(crate) fn last_readers(&self) -> Vec<usize> {
        let mut last: Vec<usize> = (0..=self.nodes.len()).map(|value| value.saturating_sub(1)).collect();
        for (i, node) in self.nodes.iter().enumerate() {
            node.inputs.iter().for_each(|value| last[value.0] = i);
        }
        last[self.output.0] = usize::MAX;
        last
    }

    /// Most values alive at one time for one example where each is given back after its last reader: what a pass that keeps nothing stores.
    pub fn live_values(&self) -> usize {
        let last = self.last_readers();
        let size = |value: usize| self.shape(Value(value)).iter().product::<usize>();
        let mut over = vec![0; self.nodes.len()];
        for (value, &reader) in last.iter().enumerate().filter(|(_, reader)| **reader < self.nodes.len()) {
            over[reader] += size(value);
        }
        let (mut live, mut most) = (size(0), 0);
        for (i, over) in over.into_iter().enumerate() {
            live += size(i + 1);
            most = most.max(live);
            live -= over;
        }
        most
    }

    /// The same graph returning what the output node reads, if the output node is a softmax; None if it is not.
    ///
    /// Inference wants logits: probabilities have lost a direction, and their Jacobian is singular.
    pub fn without_final_softmax(&self) -> Option<Self> {
        self.without_output_link().filter(|found| found.1 == OutputLink::Softmax).map(|found| found.0)
    }

    /// The same graph returning what its last operation reads, if that makes probabilities of it: a softmax or a sigmoid, up to views that change nothing. None for every other graph.
    pub fn without_output_link(&self) -> Option<(Self, OutputLink)> {
        let mut output = self.output;
        while let Some(node) = output.node().map(|n| &self.nodes[n]) {
            let link = match node.operation {
                Operation::Softmax => OutputLink::Softmax,
                Operation::Activation(Activation::Sigmoid) => OutputLink::Sigmoid,
                Operation::Activation(Activation::Identity) => {
                    output = node.inputs[0];
                    continue;
                }
                // Another shape, but the same values in the same order.
                Operation::Reshape(_) => {
                    output = node.inputs[0];
                    continue;
                }
                _ => return None,
            };
            let mut graph = self.clone();
            graph.output = node.inputs[0];
            graph.remove_unused();
            return Some((graph, link));
        }
        None
    }

    /// Drops nodes that the output does not need and parameters that no node uses.
    pub(crate) fn remove_unused(&mut self) {
        let mut needed = vec![false; self.nodes.len() + 1];
        needed[self.output.0] = true;
        for i in (0..self.nodes.len()).rev() {
            if needed[i + 1] {
                self.nodes[i].inputs.iter().for_each(|v| needed[v.0] = true);
            }
        }
        let mut new_value = vec![0; self.nodes.len() + 1];
        let mut kept = 0;
        for i in 0..self.nodes.len() {
            if needed[i + 1] {
                kept += 1;
                new_value[i + 1] = kept;
            }
        }
        let mut position = 0;
        self.nodes.retain(|_| {
            position += 1;
            needed[position]
        });
        let mut used = vec![false; self.parameters.len()];
        self.nodes.iter().flat_map(|n| &n.parameters).for_each(|&p| used[p] = true);
        let mut new_parameter = vec![0; self.parameters.len()];
        let mut count = 0;
        for (p, &used) in used.iter().enumerate() {
            new_parameter[p] = count;
            count += usize::from(used);
        }
        let mut position = 0;
        self.parameters.retain(|_| {
            position += 1;
            used[position - 1]
        });
        for node in &mut self.nodes {
            node.inputs.iter_mut().for_each(|v| v.0 = new_value[v.0]);
            node.parameters.iter_mut().for_each(|p| *p = new_parameter[*p]);
        }
        self.output.0 = new_value[self.output.0];
    }
}
