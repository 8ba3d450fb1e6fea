//! From nodes to a graph: what is known so far, and the parameters found on the way.

use super::constant::{Constant, MOST_AXES, Origin, count, countable};
use super::definitions::TensorProto;
use super::error::{Fault, OnnxError, short};
use super::external::is_external;
use super::inputs::Fed;
use super::layout::{Place, Tracked};
use super::model::Model;
use super::node::Node;
use super::{Imported, NetworkInput, folding, operators, tensor};
use posterior_networks::Array;
use posterior_networks::graph::{GraphBuilder, GraphError, OutputLink, Value};
use posterior_networks::operation::{Operation, Slice};
use std::collections::{HashMap, HashSet};

/// What is known about a value of the file.
#[derive(Clone, Debug)]
pub(super) enum Known {
    /// Its numbers.
    Constant(Constant),
    /// The value of the graph that it is.
    Tracked(Tracked),
}

/// A parameter for a new node of the graph.
pub(super) struct Parameter {
    pub(super) origin: Origin,
    pub(super) array: Array<f64>,
}

impl Parameter {
    /// The numbers of a constant in a shape that holds as many.
    pub(super) fn new(constant: &Constant, shape: Vec<usize>) -> Result<Self, String> {
        let values = constant.floats()?;
        if count(&shape) != Some(values.len()) {
            return Err(format!(
                "`{}` of shape {:?} is needed as {shape:?}",
                short(&constant.origin.name),
                constant.shape
            ));
        }
        Ok(Self { origin: constant.origin.clone(), array: Array::new(shape, values) })
    }
}

/// The state of an import.
pub(super) struct Importer<'a> {
    pub(super) model: &'a Model<'a>,
    pub(super) builder: GraphBuilder,
    pub(super) notes: Vec<String>,
    /// What was dropped at the end.
    pub(super) dropped: Option<OutputLink>,
    file: &'a str,
    known: HashMap<String, Known>,
    parameters: HashMap<String, Array<f64>>,
    names: HashMap<String, usize>,
    readers: HashMap<&'a str, Vec<usize>>,
    done: HashSet<usize>,
    work: u64,
    room: u64,
    /// Bytes of other files that the two above know of.
    credited: u64,
}

/// Imports a checked file of `size` bytes.
pub(super) fn run(model: &Model<'_>, file: &str, size: u64) -> Result<Imported, OnnxError> {
    let interface = |problem: String| OnnxError::Interface { file: file.into(), problem };
    let sizes: Option<Vec<usize>> = model.inputs.iter().map(|input| count(&input.shape)).collect();
    let total = sizes.as_ref().and_then(|sizes| sizes.iter().try_fold(0usize, |sum, n| sum.checked_add(*n)));
    let (Some(sizes), Some(total)) = (sizes, total) else {
        return Err(interface("its inputs are larger than memory can be".into()));
    };
    // Several inputs are parts of one row of numbers.
    let shape = match &model.inputs[..] {
        [only] => only.shape.clone(),
        _ => vec![total],
    };
    let builder = GraphBuilder::new(&shape).map_err(|e| interface(e.to_string()))?;
    let mut readers: HashMap<&str, Vec<usize>> = HashMap::new();
    for (i, node) in model.nodes.iter().enumerate() {
        node.inputs.iter().for_each(|input| readers.entry(input).or_default().push(i));
    }
    readers.entry(&model.output).or_default().push(usize::MAX);
    let mut importer = Importer {
        model,
        notes: model.notes.clone(),
        dropped: None,
        file,
        known: HashMap::new(),
        parameters: HashMap::new(),
        names: HashMap::new(),
        readers,
        done: HashSet::new(),
        work: 64 * size + (1 << 24),
        room: size + (1 << 22),
        credited: 0,
        builder,
    };
    let place = Some(Place { axis: 0, outer: 1 });
    let mut start = 0;
    for (input, size) in model.inputs.iter().zip(sizes) {
        if !importer.readers.contains_key(&input.name[..]) {
            start += size;
            continue;
        }
        let value = match &model.inputs[..] {
            [_] => Value::INPUT,
            _ => importer.part(input, start, size).map_err(|e| interface(e.to_string()))?,
        };
        start += size;
        let dims: Vec<usize> = std::iter::once(1).chain(input.shape.iter().copied()).collect();
        let tracked = Tracked { value, dims, place, whole: input.whole };
        importer.known.insert(input.name.clone(), Known::Tracked(tracked));
    }
    for (i, node) in model.nodes.iter().enumerate() {
        if !importer.done.contains(&i) {
            importer.node(node)?;
        }
    }
    importer.finish()
}

impl Importer<'_> {
    /// One of several inputs: so many numbers of the row that they are.
    fn part(&mut self, input: &Fed, start: usize, length: usize) -> Result<Value, GraphError> {
        let name = self.unique(&input.name);
        let slice = Operation::Slice(Slice { axis: 0, start, step: 1, length });
        let own = self.builder.add_named(&name, slice, &[Value::INPUT], &[])?;
        if input.shape.len() == 1 {
            return Ok(own);
        }
        let name = self.unique(&format!("{}.shape", input.name));
        self.builder.add_named(&name, Operation::Reshape(input.shape.clone()), &[own], &[])
    }

    /// Translates one node.
    fn node(&mut self, node: &Node) -> Result<(), OnnxError> {
        let file = self.file;
        for name in node.inputs.iter().filter(|n| !n.is_empty()) {
            self.load(name, node)?;
        }
        let known = match folding::fold(self, node) {
            Ok(Some(known)) => Ok(known),
            Ok(None) => operators::translate(self, node),
            Err(fault) => Err(fault),
        };
        let values = known.map_err(|fault| fault.at(file, &node.name, &node.operator))?;
        for (name, value) in node.outputs.iter().zip(values) {
            if let Known::Constant(c) = &value
                && !countable(&c.shape)
            {
                let problem = format!("a constant of shape {:?} is too large", c.shape);
                return Err(Fault::Problem(problem).at(file, &node.name, &node.operator));
            }
            self.known.insert(name.clone(), value);
        }
        Ok(())
    }

    /// Makes sure that an input of a node is known.
    fn load(&mut self, name: &str, node: &Node) -> Result<(), OnnxError> {
        if self.known.contains_key(name) {
            return Ok(());
        }
        let Some(tensor) = self.model.initialisers.get(name) else {
            let problem = format!(
                "it reads `{}`, which nothing before it makes: the graph has a cycle, is not in order, or needs an output that is not \
                 supported",
                short(name)
            );
            return Err(Fault::Problem(problem).at(self.file, &node.name, &node.operator));
        };
        let float = |kind: i32| matches!(kind, 1 | 10 | 11 | 16);
        // Single numbers without axes are constants of the model's code; what is learned has axes.
        let trainable = float(tensor.data_type.unwrap_or(0)) && !tensor.dims.is_empty();
        if is_external(tensor) {
            self.pay_external(tensor, name)?;
        }
        let origin = Origin::made(name, trainable);
        let mut constant = tensor::decode(tensor, origin, self.file, self.model.data)?;
        constant.origin.filler = constant.origin.has_made_up_name()
            && constant.float_slice().is_some_and(|v| v.windows(2).all(|pair| pair[0] == pair[1]));
        self.known.insert(name.into(), Known::Constant(constant));
        Ok(())
    }

    /// Pays for numbers in another file, before they are read: a file that is there allows work and memory as the model's own bytes do.
    fn pay_external(&mut self, tensor: &TensorProto, name: &str) -> Result<(), OnnxError> {
        let (file, data) = (self.file, self.model.data);
        let refused =
            |problem: String| OnnxError::ExternalData { file: short(file), tensor: short(name), problem };
        data.locate(tensor).map_err(refused)?;
        let found = data.total().saturating_sub(self.credited);
        self.credited = data.total();
        self.work = self.work.saturating_add(found.saturating_mul(64));
        self.room = self.room.saturating_add(found.saturating_mul(2));
        let shape: Vec<usize> =
            tensor.dims.iter().map(|&d| usize::try_from(d).unwrap_or(usize::MAX)).collect();
        self.keep(&shape).map(|_| ()).map_err(|fault| fault.at(file, name, "tensor"))
    }

    /// Decodes the tensor in an attribute of a node.
    pub(super) fn attribute_tensor(&self, tensor: &TensorProto, name: &str) -> Result<Constant, Fault> {
        if is_external(tensor) {
            return Err("its numbers are in another file: only those of initialisers may be".into());
        }
        tensor::decode(tensor, Origin::constant(name), self.file, self.model.data).map_err(|e| match e {
            OnnxError::Tensor { problem, .. } => Fault::Problem(problem),
            other => Fault::Problem(other.to_string()),
        })
    }

    /// Pays for work that could be out of proportion to the file.
    pub(super) fn charge(&mut self, amount: usize) -> Result<(), Fault> {
        self.work = self.work.saturating_sub(amount as u64);
        if self.work == 0 {
            return Err(Fault::Limit("its constants need work out of proportion to its size".into()));
        }
        Ok(())
    }

    /// Pays for numbers that stay in memory, before they are made.
    pub(super) fn keep(&mut self, shape: &[usize]) -> Result<usize, Fault> {
        let numbers = count(shape).unwrap_or(usize::MAX);
        self.room = self.room.saturating_sub(numbers as u64);
        if self.room == 0 || shape.len() > MOST_AXES || !countable(shape) {
            return Err(Fault::Limit(format!(
                "a constant of shape {:?} is out of proportion to the file",
                &shape[..shape.len().min(MOST_AXES)]
            )));
        }
        self.charge(numbers)?;
        Ok(numbers)
    }

    /// What input `i` is; None where it is left out.
    pub(super) fn get(&self, node: &Node, i: usize) -> Option<&Known> {
        self.known.get(node.input(i)?)
    }

    /// A constant input; None where it is left out.
    pub(super) fn constant(&self, node: &Node, i: usize) -> Result<Option<Constant>, Fault> {
        match self.get(node, i) {
            None => Ok(None),
            Some(Known::Constant(constant)) => Ok(Some(constant.clone())),
            Some(Known::Tracked(_)) => {
                Err(Fault::Unsupported(format!(" with an input {i} that is computed from the data")))
            }
        }
    }

    /// A constant input that must be there.
    pub(super) fn required(&self, node: &Node, i: usize) -> Result<Constant, Fault> {
        self.constant(node, i)?.ok_or_else(|| Fault::Problem(format!("input {i} is missing")))
    }

    /// An input computed from the data.
    pub(super) fn tracked(&self, node: &Node, i: usize) -> Result<Tracked, Fault> {
        match self.get(node, i) {
            Some(Known::Tracked(tracked)) => Ok(tracked.clone()),
            Some(Known::Constant(_)) => Err(Fault::Unsupported(format!(" with a constant input {i}"))),
            None => Err(Fault::Problem(format!("input {i} is missing"))),
        }
    }

    /// Whole numbers that older operator sets have as an attribute and newer ones as an input.
    pub(super) fn list(&self, node: &Node, attribute: &str, i: usize) -> Result<Option<Vec<i64>>, Fault> {
        if let Some(list) = node.ints(attribute) {
            return Ok(Some(list.to_vec()));
        }
        Ok(self.constant(node, i)?.map(|c| c.whole()).transpose()?)
    }

    /// A name that no node of the graph has yet.
    pub(super) fn unique(&mut self, base: &str) -> String {
        let base = if base.is_empty() { "node" } else { base };
        let mut name = base.to_string();
        while self.names.contains_key(&name) {
            let uses = self.names.entry(base.to_string()).or_default();
            *uses += 1;
            name = format!("{base}#{}", *uses + 1);
        }
        self.names.insert(name.clone(), 0);
        name
    }

    /// Adds an operation.
    pub(super) fn emit(
        &mut self,
        node: &Node,
        operation: Operation,
        inputs: &[Value],
    ) -> Result<Value, Fault> {
        self.emit_with(node, operation, inputs, vec![])
    }

    /// Adds an operation with its parameters, in the operation's order.
    pub(super) fn emit_with(
        &mut self,
        node: &Node,
        operation: Operation,
        inputs: &[Value],
        parameters: Vec<Parameter>,
    ) -> Result<Value, Fault> {
        let name = self.unique(&node.name);
        let mut names = Vec::with_capacity(parameters.len());
        for parameter in parameters {
            let trainable = parameter.origin.trainable;
            names.push((self.register(parameter)?, trainable));
        }
        let slots: Vec<&str> = names.iter().map(|(name, _)| name.as_str()).collect();
        let value = self.builder.add_named(&name, operation, inputs, &slots)?;
        for (name, trainable) in &names {
            if !trainable {
                self.builder.describe(name, false, None)?;
            }
        }
        Ok(value)
    }

    /// Remembers a parameter under its name; the same numbers under the same name are shared, others get a name of their own.
    pub(super) fn register(&mut self, parameter: Parameter) -> Result<String, Fault> {
        let Parameter { origin, array } = parameter;
        let base = if origin.name.is_empty() { "constant".to_string() } else { origin.name };
        if let Some(position) = array.first_not_finite() {
            return Err(Fault::Problem(format!(
                "`{}` is not finite at position {position}: inference needs finite numbers",
                short(&base)
            )));
        }
        let mut name = base.clone();
        let mut number = 2;
        while let Some(other) = self.parameters.get(&name) {
            let same = *other == array;
            self.charge(array.len() + 1)?;
            if same {
                return Ok(name);
            }
            if number == 2 {
                self.notes.push(format!(
                    "`{}` is used in several forms, which become parameters of their own",
                    short(&base)
                ));
            }
            name = format!("{base}#{number}");
            number += 1;
        }
        self.keep(array.shape())?;
        self.parameters.insert(name.clone(), array);
        Ok(name)
    }

    /// Notes that a weight is stored the other way round.
    pub(super) fn note_transposed(&mut self, name: &str) {
        self.notes.push(format!("`{}` is kept transposed, as [outputs, inputs]", short(name)));
    }

    /// The only node that reads `name`, with its position, if there is just one.
    pub(super) fn only_reader(&self, name: &str) -> Option<(usize, &Node)> {
        match self.readers.get(name)?[..] {
            [i] if i != usize::MAX => Some((i, &self.model.nodes[i])),
            _ => None,
        }
    }

    /// The number that every entry of a value is, where that follows from constants alone: zeros made for the number of examples, say.
    pub(super) fn repeated_number(&mut self, value: Value) -> Result<Option<f64>, Fault> {
        let (mut open, mut seen, mut number, mut work) = (vec![value], HashSet::new(), None, 1);
        while let Some(value) = open.pop() {
            let Some(node) = self.builder.node(value) else { return Ok(None) };
            if !seen.insert(value) {
                continue;
            }
            work += 1;
            match &node.operation {
                Operation::Learned(_) => {
                    let slot = node.parameters.first().map(|p| &self.builder.parameters()[*p]);
                    let values = slot.filter(|s| !s.trainable).and_then(|s| self.parameters.get(&s.name));
                    let Some(values) = values.map(Array::values) else { return Ok(None) };
                    work += values.len();
                    let first = *number.get_or_insert(values.first().copied().unwrap_or(0.0));
                    if values.iter().any(|v| *v != first) {
                        return Ok(None);
                    }
                }
                Operation::Reshape(_)
                | Operation::Transpose(_)
                | Operation::Broadcast(_)
                | Operation::Slice(_)
                | Operation::Concatenate(_) => open.extend(&node.inputs),
                _ => return Ok(None),
            }
        }
        self.charge(work)?;
        Ok(number)
    }

    /// Whether `name` is the output of the model, or becomes it unchanged.
    pub(super) fn leads_to_output(&self, name: &str) -> bool {
        let mut name = name;
        // Bounded, since a chain of identities may be a cycle in a damaged file.
        for _ in 0..self.model.nodes.len() {
            if name == self.model.output {
                return true;
            }
            match self.only_reader(name) {
                Some((_, node)) if node.operator == "Identity" => match node.outputs.first() {
                    Some(output) => name = output,
                    None => return false,
                },
                _ => return false,
            }
        }
        name == self.model.output
    }

    /// Takes a later node as translated, with this result.
    pub(super) fn settle_node(&mut self, position: usize, output: &str, value: Known) {
        self.done.insert(position);
        self.known.insert(output.to_string(), value);
    }

    /// What a name is: an output that is not the first of its node, or a value of a translation's own.
    pub(super) fn set(&mut self, output: &str, value: Known) {
        self.known.insert(output.to_string(), value);
    }

    /// What a name stands for, looking also among the initialisers.
    pub(super) fn peek(&mut self, name: &str, node: &Node) -> Option<Known> {
        if !self.known.contains_key(name) && self.model.initialisers.contains_key(name) {
            self.load(name, node).ok()?;
        }
        self.known.get(name).cloned()
    }

    fn finish(mut self) -> Result<Imported, OnnxError> {
        if let Some(Known::Tracked(output)) = self.known.remove(&self.model.output) {
            // Where the batch is fixed to 1, another axis of length 1 may be the one that is dropped.
            let node = Node::new(&Default::default());
            let first = Some(Place { axis: 0, outer: 1 });
            let output = match output.dims.first() {
                Some(1) if !self.model.dynamic => self
                    .view(&node, &output, output.dims.clone(), first)
                    .map_err(|f| f.at(self.file, &self.model.output, "output"))?,
                _ => output,
            };
            self.known.insert(self.model.output.clone(), Known::Tracked(output));
        }
        let Self { model, builder, mut notes, file, mut known, mut parameters, .. } = self;
        let interface = |problem: String| OnnxError::Interface { file: file.into(), problem };
        let shown = short(&model.output);
        let Some(Known::Tracked(output)) = known.remove(&model.output) else {
            return Err(interface(format!(
                "the output `{shown}` does not depend on the input, or nothing makes it"
            )));
        };
        let first = Some(Place { axis: 0, outer: 1 });
        if model.dynamic && (output.place != first || output.dims.first() != Some(&1)) {
            return Err(interface(format!(
                "the output `{shown}` does not have the batch as its first axis: every example must have an output of its own"
            )));
        }
        let graph = builder.finish(output.value).map_err(|e| interface(e.to_string()))?;
        if graph.nodes().is_empty() {
            notes.push("the output is the input".into());
        }
        let mut values = Vec::with_capacity(graph.parameters().len());
        for slot in graph.parameters() {
            let array = parameters.remove(&slot.name).unwrap_or_else(|| Array::zeros(vec![0]));
            if array.shape() != slot.shape {
                return Err(OnnxError::Tensor {
                    file: file.into(),
                    tensor: short(&slot.name),
                    problem: format!("it has shape {:?}, its layer needs {:?}", array.shape(), slot.shape),
                });
            }
            values.push(array);
        }
        let inputs = model.inputs.iter();
        let inputs = inputs.map(|own| NetworkInput { name: own.name.clone(), shape: own.shape.clone() });
        Ok(Imported {
            inputs: inputs.collect(),
            graph,
            parameters: values,
            notes,
            dropped: self.dropped,
            opset: model.opset,
            producer: model.producer.clone(),
        })
    }
}
