//! A graph with numbers.

use super::error::NetworkError;
use super::structure::{Graph, Value};
use super::trace::Trace;
use crate::PerNetworkPrecision;
use crate::array::{Array, Precision, batch_shape};
use crate::operation::{At, Initial, Layer, Mode, Operation, Saved};
use posterior_linalg::compiled_here;
use posterior_linalg::random::Streams;
use rand_distr::{Distribution, Normal, Uniform};
use std::sync::Arc;

/// Activations of one piece of a large batch stay below this many values, so that memory does not grow with the batch.
const PIECE: usize = 1 << 25;

/// A network: a [`Graph`] with the values of its parameters in one precision.
///
/// It is in [`Mode::Evaluation`] unless told otherwise, and every derivative for inference insists on that.
#[derive(Clone, Debug)]
pub struct Network<T> {
    pub(super) graph: Arc<Graph>,
    layers: Vec<Arc<dyn Layer<T>>>,
    pub(super) parameters: Vec<Array<T>>,
    mode: Mode,
}

impl<T: Precision> Network<T> {
    /// With given values, in the order of [`Graph::parameters`].
    ///
    /// # Errors
    /// When a value's shape is not its parameter's, or a value is NaN or infinite.
    #[inline(never)]
    pub fn new(graph: impl Into<Arc<Graph>>, parameters: Vec<Array<T>>) -> Result<Self, NetworkError> {
        compiled_here!(T: Precision, PerNetworkPrecision; [] Network::checked, (
            graph: Arc<Graph> = graph.into(),
            parameters: Vec<Array<T>> = parameters,
        ) -> Result<Network<T>, NetworkError>)
    }

    fn checked(graph: Arc<Graph>, parameters: Vec<Array<T>>) -> Result<Self, NetworkError> {
        let shapes = || graph.parameters.iter().map(|p| &p.shape);
        if parameters.len() != graph.parameters.len()
            || shapes().zip(&parameters).any(|(s, v)| s != v.shape())
        {
            let mut problems: Vec<String> = shapes()
                .zip(&parameters)
                .zip(&graph.parameters)
                .filter(|((s, v), _)| *s != v.shape())
                .map(|((s, v), p)| format!("`{}` has shape {:?}, expected {s:?}", p.name, v.shape()))
                .collect();
            if parameters.len() != graph.parameters.len() {
                let (given, needed) = (parameters.len(), graph.parameters.len());
                problems
                    .push(format!("{given} tensors for {needed} parameters: give one for each, in order"));
            }
            return Err(NetworkError::Tensors { problems });
        }
        for (slot, values) in graph.parameters.iter().zip(&parameters) {
            if let Some(position) = values.first_not_finite() {
                return Err(NetworkError::NotFinite { what: format!("parameter `{}`", slot.name), position });
            }
        }
        for node in &graph.nodes {
            // A variance that is not positive would turn every output into NaN without a word.
            if let Operation::BatchNorm(norm) = &node.operation
                && let Some(channel) = parameters[node.parameters[3]]
                    .values()
                    .iter()
                    .position(|v| v.to_f64() + norm.epsilon <= 0.0)
            {
                let name = &graph.parameters[node.parameters[3]].name;
                let problem =
                    format!("`{name}` is not positive for channel {channel}, even with epsilon added");
                let (node, operation) = (node.name.clone(), node.operation.name());
                return Err(super::GraphError::Node { node, operation, problem }.into());
            }
        }
        let layers = graph
            .nodes
            .iter()
            .map(|node| {
                let shapes: Vec<&[usize]> = node.inputs.iter().map(|&v| graph.shape(v)).collect();
                let prepared =
                    node.operation.prepare::<T>(&shapes).map_err(|problem| super::GraphError::Node {
                        node: node.name.clone(),
                        operation: node.operation.name(),
                        problem,
                    })?;
                Ok(prepared.layer)
            })
            .collect::<Result<_, NetworkError>>()?;
        Ok(Self { graph, layers, parameters, mode: Mode::Evaluation })
    }

    /// With parameters as they begin before training, drawn from streams `networks/initial/NAME`, one for each parameter: adding a layer does
    /// not change the others' numbers.
    ///
    /// # Errors
    /// As [`Self::new`].
    #[inline(never)]
    pub fn initialised(graph: impl Into<Arc<Graph>>, streams: Streams) -> Result<Self, NetworkError> {
        let graph = graph.into();
        let parameters = graph
            .parameters
            .iter()
            .map(|slot| {
                let mut rng = streams.stream(&format!("networks/initial/{}", slot.name));
                let mut draw: Box<dyn FnMut() -> f64> = match slot.initial {
                    Initial::Constant(value) => Box::new(move || value),
                    Initial::Uniform(bound) if bound > 0.0 => {
                        let uniform = Uniform::new(-bound, bound).ok();
                        Box::new(move || uniform.map_or(0.0, |u| u.sample(&mut rng)))
                    }
                    Initial::Normal(deviation) if deviation > 0.0 => {
                        let normal = Normal::new(0.0, deviation).ok();
                        Box::new(move || normal.map_or(0.0, |n| n.sample(&mut rng)))
                    }
                    Initial::Uniform(_) | Initial::Normal(_) => Box::new(|| 0.0),
                };
                Array::new(slot.shape.clone(), (0..slot.len()).map(|_| T::from_f64(draw())).collect())
            })
            .collect();
        Self::new(graph, parameters)
    }

    /// Its structure.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// The values of the parameters, in the order of [`Graph::parameters`].
    pub fn parameters(&self) -> &[Array<T>] {
        &self.parameters
    }

    /// The values of the parameters, to change; shapes must stay.
    pub fn parameters_mut(&mut self) -> &mut [Array<T>] {
        &mut self.parameters
    }

    /// Exchanges all values with others of the same shapes.
    pub(crate) fn swap_parameters(&mut self, other: &mut Vec<Array<T>>) {
        std::mem::swap(&mut self.parameters, other);
    }

    /// Whether batch norm uses the statistics of the batch.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Chooses [`Mode`].
    pub fn set_mode(&mut self, mode: Mode) {
        self.mode = mode;
    }

    /// The same network in another precision.
    ///
    /// # Errors
    /// When a value leaves the range of the new precision.
    #[inline(never)]
    pub fn cast<U: Precision>(&self) -> Result<Network<U>, NetworkError> {
        let mut network =
            Network::new(self.graph.clone(), self.parameters.iter().map(Array::cast).collect())?;
        network.mode = self.mode;
        Ok(network)
    }

    /// Refuses what only makes sense with constant statistics.
    pub(crate) fn require_evaluation(&self, what: &'static str) -> Result<(), NetworkError> {
        if self.mode == Mode::Training { Err(NetworkError::TrainingMode { what }) } else { Ok(()) }
    }

    #[inline(never)]
    fn check(&self, x: &Array<T>) -> Result<(), NetworkError> {
        if x.shape().get(1..) != Some(&self.graph.input) {
            let found = x.shape().get(1..).unwrap_or_default().to_vec();
            return Err(NetworkError::InputShape { expected: self.graph.input.clone(), found });
        }
        if let Some(position) = x.first_not_finite() {
            return Err(NetworkError::NotFinite { what: "the input".into(), position });
        }
        Ok(())
    }

    /// Refuses numbers that an embedding's table does not hold.
    #[inline(never)]
    fn check_entries(&self, node: usize, inputs: &[&Array<T>]) -> Result<(), NetworkError> {
        let Operation::Embedding(embedding) = &self.graph.nodes[node].operation else {
            return Ok(());
        };
        let bad = |v: &T| {
            let v = v.to_f64();
            !(v >= 0.0 && v.fract() == 0.0 && v < embedding.entries as f64)
        };
        match inputs[0].values().iter().position(bad) {
            None => Ok(()),
            Some(position) => Err(NetworkError::NoSuchEntry {
                layer: self.graph.nodes[node].name.clone(),
                value: inputs[0].values()[position].to_f64(),
                position,
                entries: embedding.entries,
            }),
        }
    }

    /// The outputs `[examples, ...]` of inputs `[examples, ...]`.
    ///
    /// Large batches are taken in pieces (in evaluation mode), and values are dropped as soon as no later layer reads them.
    ///
    /// # Errors
    /// When the examples have another shape, hold NaN or infinity, or ask an embedding for what it does not hold.
    #[inline(never)]
    pub fn forward(&self, x: &Array<T>) -> Result<Array<T>, NetworkError> {
        Ok(self.forward_keeping(x, None)?.0)
    }

    /// The outputs, bit for bit as [`Self::forward`] gives them, and the value of one node on the way (by position), `[examples, ...]`: features, say. No more memory than that and `forward` need.
    ///
    /// # Errors
    /// As [`Self::forward`].
    pub fn forward_with(&self, x: &Array<T>, node: usize) -> Result<(Array<T>, Array<T>), NetworkError> {
        self.forward_keeping(x, Some(node))
    }

    /// The outputs and, where one is asked for, the value of a node (else nothing).
    #[inline(never)]
    fn forward_keeping(
        &self,
        x: &Array<T>,
        node: Option<usize>,
    ) -> Result<(Array<T>, Array<T>), NetworkError> {
        compiled_here!(T: Precision, PerNetworkPrecision; ['a] Network::forward_here, (
            network: &'a Network<T> = self,
            x: &'a Array<T> = x,
            node: Option<usize> = node,
        ) -> Result<(Array<T>, Array<T>), NetworkError>)
    }

    fn forward_here(&self, x: &Array<T>, node: Option<usize>) -> Result<(Array<T>, Array<T>), NetworkError> {
        self.check(x)?;
        let each = self.examples_at_once();
        if self.mode == Mode::Training || x.rows() <= each {
            return self.forward_piece(x, node);
        }
        let (mut outputs, mut kept) = (Vec::new(), Vec::new());
        for rows in posterior_linalg::tiles::pieces(x.rows(), each) {
            let (output, own) = self.forward_piece(&x.slice_rows(rows), node)?;
            outputs.extend(output.into_values());
            kept.extend(own.into_values());
        }
        let shape = node.map_or(&[0][..], |node| &self.graph.nodes[node].shape);
        let outputs = Array::new(batch_shape(x.rows(), self.graph.output_shape()), outputs);
        Ok((outputs, Array::new(batch_shape(x.rows(), shape), kept)))
    }

    /// Examples whose activations are kept at one time.
    pub fn examples_at_once(&self) -> usize {
        (PIECE / self.graph.activations().max(1)).max(1)
    }

    #[inline(never)]
    fn forward_piece(&self, x: &Array<T>, node: Option<usize>) -> Result<(Array<T>, Array<T>), NetworkError> {
        let mut readers = vec![0usize; self.graph.nodes.len() + 1];
        self.graph.nodes.iter().flat_map(|n| &n.inputs).for_each(|v| readers[v.0] += 1);
        readers[self.graph.output.0] += 1;
        if let Some(node) = node {
            readers[node + 1] += 1;
        }
        let mut values: Vec<Option<Array<T>>> = vec![None; self.graph.nodes.len() + 1];
        values[0] = Some(x.clone());
        for (i, node) in self.graph.nodes.iter().enumerate() {
            let (output, _) = self.run(i, |v| values[v.0].as_ref(), x.rows())?;
            values[i + 1] = Some(output);
            for input in &node.inputs {
                readers[input.0] -= 1;
                if readers[input.0] == 0 {
                    values[input.0] = None;
                }
            }
        }
        let kept = node.and_then(|node| values[node + 1].clone());
        let output = values[self.graph.output.0].take().unwrap_or_else(|| x.clone());
        Ok((output, kept.unwrap_or_else(|| Array::zeros(vec![x.rows(), 0]))))
    }

    /// One node.
    #[inline(never)]
    fn run<'a>(
        &self,
        node: usize,
        value: impl Fn(Value) -> Option<&'a Array<T>>,
        rows: usize,
    ) -> Result<(Array<T>, Saved<T>), NetworkError>
    where
        T: 'a,
    {
        let inputs: Vec<&Array<T>> = self.graph.nodes[node].inputs.iter().filter_map(|&v| value(v)).collect();
        self.check_entries(node, &inputs)?;
        Ok(self.layers[node].forward(&inputs, &self.parameters_of(node), rows, self.mode))
    }

    pub(crate) fn parameters_of(&self, node: usize) -> Vec<&Array<T>> {
        self.graph.nodes[node].parameters.iter().map(|&p| &self.parameters[p]).collect()
    }

    pub(crate) fn layer(&self, node: usize) -> &dyn Layer<T> {
        &*self.layers[node]
    }

    /// A forward pass that keeps the value of every node, to differentiate at.
    ///
    /// Memory: all activations, [`Graph::activations`] values for each example.
    ///
    /// # Errors
    /// As [`Self::forward`].
    #[inline(never)]
    pub fn trace(&self, x: Array<T>) -> Result<Trace<'_, T>, NetworkError> {
        compiled_here!(T: Precision, PerNetworkPrecision; ['a] Network::trace_here, (
            network: &'a Network<T> = self,
            x: Array<T> = x,
        ) -> Result<Trace<'a, T>, NetworkError>)
    }

    fn trace_here(&self, x: Array<T>) -> Result<Trace<'_, T>, NetworkError> {
        self.check(&x)?;
        let rows = x.rows();
        let mut values = vec![x];
        let mut saved = Vec::with_capacity(self.graph.nodes.len());
        for i in 0..self.graph.nodes.len() {
            let (output, kept) = self.run(i, |v| Some(&values[v.0]), rows)?;
            values.push(output);
            saved.push(kept);
        }
        Ok(Trace::new(self, values, saved))
    }

    /// Calls `f` with the point at which node `node` is differentiated.
    pub(crate) fn at<R>(
        &self,
        node: usize,
        values: &[Array<T>],
        saved: &[Saved<T>],
        f: impl FnOnce(&At<'_, T>) -> R,
    ) -> R {
        let inputs: Vec<&Array<T>> = self.graph.nodes[node].inputs.iter().map(|v| &values[v.0]).collect();
        let parameters = self.parameters_of(node);
        f(&At { inputs: &inputs, parameters: &parameters, output: &values[node + 1], saved: &saved[node] })
    }
}
