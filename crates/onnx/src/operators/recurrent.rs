//! `LSTM`, `GRU` and `RNN`: unrolled, with weights taken apart by direction and gates in PyTorch's order.

use super::super::constant::{Constant, Origin, count};
use super::super::error::{Fault, short};
use super::super::importer::{Importer, Known, Parameter};
use super::super::layout::{Place, Tracked};
use super::super::node::Node;
use posterior_networks::Activation;
use posterior_networks::graph::{RecurrentCell, RecurrentPass, RecurrentStates, Value};
use posterior_networks::operation::{Operation, Slice};

/// What the node computes, checked.
struct Layer {
    cell: RecurrentCell,
    hidden: usize,
    /// Whether each direction begins at the end of the sequence.
    directions: Vec<bool>,
    /// Whether examples come first (layout 1) instead of steps.
    batch_first: bool,
    /// Which gate of the file each of ours is.
    gates: &'static [usize],
}

/// Weights and biases of one direction.
#[derive(Default)]
struct Weights {
    names: Vec<(String, bool)>,
}

pub(super) fn translate(importer: &mut Importer<'_>, node: &Node) -> Result<Vec<Known>, Fault> {
    let layer = Layer::read(node)?;
    let x = importer.tracked(node, 0)?;
    if x.rank() != 3 {
        return Err(Fault::Problem(format!(
            "it needs steps, examples and features, its input has {} axes",
            x.rank()
        )));
    }
    let batch = usize::from(!layer.batch_first);
    let place = Some(Place { axis: batch, outer: 1 });
    if x.dims[batch] != 1 || (importer.model.dynamic && x.place != place) {
        return Err(Fault::Batch(format!(
            "axis {batch} of its input must hold the batch (batch_first of the model does not fit its input, or several sequences are one example)"
        )));
    }
    let dims = x.dims.clone();
    let x = importer.view(node, &x, dims, place)?;
    let steps = x.dims[1 - batch];
    lengths(importer, node, steps)?;
    if importer.constant(node, 7)?.is_some_and(|c| !c.all(0.0)) {
        return Err(Fault::Unsupported(" with peepholes".into()));
    }
    let name = importer.unique(&node.name);
    let mut states = Vec::with_capacity(layer.directions.len());
    for d in 0..layer.directions.len() {
        let mut weights = Weights::default();
        let mut pass = layer.pass(importer, node, d, &mut weights)?;
        pass.initial_hidden = initial(importer, node, 5, d, &layer)?;
        if layer.cell == RecurrentCell::Lstm {
            pass.initial_cell = initial(importer, node, 6, d, &layer)?;
        }
        states.push(importer.builder.recurrent_pass(&name, 0, &pass, x.value)?);
        for (name, _) in weights.names.iter().filter(|(_, trainable)| !trainable) {
            // A weight that a single step from zero does not read is no parameter.
            if importer.builder.parameters().iter().any(|p| p.name == *name) {
                importer.builder.describe(name, false, None)?;
            }
        }
    }
    layer.outputs(importer, node, &name, &states, steps)
}

impl Layer {
    fn read(node: &Node) -> Result<Self, Fault> {
        let unsupported = |what: String| Err(Fault::Unsupported(what));
        let directions = match node.text("direction").as_deref() {
            None | Some("forward") => vec![false],
            Some("reverse") => vec![true],
            Some("bidirectional") => vec![false, true],
            Some(other) => return Err(Fault::Problem(format!("there is no direction `{}`", short(other)))),
        };
        if node.float("clip").is_some() {
            return unsupported(" with `clip`".into());
        }
        if node.int("input_forget").unwrap_or(0) != 0 {
            return unsupported(" with coupled gates (`input_forget`)".into());
        }
        let given: Vec<String> = node.texts("activations");
        let standard: &[&str] = match node.operator.as_str() {
            "LSTM" => &["Sigmoid", "Tanh", "Tanh"],
            "GRU" => &["Sigmoid", "Tanh"],
            _ => &["Tanh"],
        };
        let is = |expected: &[&str]| {
            given.len() == expected.len() * directions.len()
                && given
                    .chunks(expected.len())
                    .all(|c| c.iter().zip(expected).all(|(g, e)| g.eq_ignore_ascii_case(e)))
        };
        let relu = node.operator == "RNN" && is(&["Relu"]);
        if !(given.is_empty() || is(standard) || relu) {
            return unsupported(format!(" with the activations {}", short(&given.join(", "))));
        }
        let (cell, gates): (_, &[usize]) = match node.operator.as_str() {
            "LSTM" => (RecurrentCell::Lstm, &[0, 2, 3, 1]),
            "GRU" => {
                let reset_after = node.int("linear_before_reset").unwrap_or(0) != 0;
                (RecurrentCell::Gru { reset_after }, &[1, 0, 2])
            }
            _ => (
                RecurrentCell::Rnn { activation: if relu { Activation::Relu } else { Activation::Tanh } },
                &[0],
            ),
        };
        let hidden = node.int("hidden_size").and_then(|h| usize::try_from(h).ok()).filter(|h| *h > 0);
        let hidden = hidden.ok_or("`hidden_size` is missing or not positive")?;
        Ok(Self { cell, hidden, directions, batch_first: node.int("layout").unwrap_or(0) == 1, gates })
    }

    /// One direction, with its weights registered.
    fn pass(
        &self,
        importer: &mut Importer<'_>,
        node: &Node,
        d: usize,
        weights: &mut Weights,
    ) -> Result<RecurrentPass, Fault> {
        let (gates, hidden) = (self.gates.len(), self.hidden);
        let (w, r) = (importer.required(node, 1)?, importer.required(node, 2)?);
        let fits = |c: &Constant, columns: Option<usize>| {
            c.shape.len() == 3
                && c.shape[0] == self.directions.len()
                && c.shape[1] == gates * hidden
                && columns.is_none_or(|n| c.shape[2] == n)
        };
        if count(&[gates, hidden]).is_none() || !fits(&w, None) || !fits(&r, Some(hidden)) {
            return Err(Fault::Problem(format!(
                "weights of shapes {:?} and {:?} do not fit `hidden_size` {hidden} and {} directions",
                w.shape,
                r.shape,
                self.directions.len()
            )));
        }
        let end = if self.directions.len() == 1 { "" } else { ["", "_reverse"][d] };
        let before = self.cell == RecurrentCell::Gru { reset_after: false };
        let of_state = if before { &self.gates[..2] } else { self.gates };
        let mut weight = |importer: &mut Importer<'_>, c: &Constant, part: &str, gates: &[usize]| {
            let whole = self.directions.len() == 1 && gates.len() == self.gates.len();
            let named = if c.origin.has_made_up_name() || !whole {
                let base = if c.origin.has_made_up_name() { &node.name } else { &c.origin.name };
                format!("{base}.{part}{end}")
            } else {
                c.origin.name.clone()
            };
            let columns = c.shape[2];
            let values = self.taken(d * c.shape[1], gates, columns);
            let shape = vec![gates.len() * hidden, columns];
            weights.add(
                importer,
                &c.pick(shape.clone(), &values, Origin::made(named, c.origin.trainable)),
                shape,
            )
        };
        let weight_inputs = weight(importer, &w, "weight_ih", self.gates)?;
        let weight_hidden = weight(importer, &r, "weight_hh", of_state)?;
        let weight_candidate =
            if before { weight(importer, &r, "weight_hn", &self.gates[2..])? } else { String::new() };
        let (mut bias_inputs, mut bias_hidden, mut bias_candidate) = (None, None, None);
        if let Some(b) = importer.constant(node, 3)? {
            let half = gates * hidden;
            if b.shape != [self.directions.len(), 2 * half] {
                return Err(Fault::Problem(format!(
                    "biases of shape {:?} do not fit {gates} gates of {hidden}",
                    b.shape
                )));
            }
            let base = if b.origin.has_made_up_name() { node.name.clone() } else { b.origin.name.clone() };
            let mut bias = |importer: &mut Importer<'_>, part: &str, second: usize, gates: &[usize]| {
                let values = self.taken(d * 2 * half + second * half, gates, 1);
                let origin = Origin::made(format!("{base}.{part}{end}"), b.origin.trainable);
                let own = b.pick(vec![values.len()], &values, origin);
                // Formats with one bias write zeros for the other.
                if own.all(0.0) && second == 1 {
                    return Ok(None);
                }
                let shape = own.shape.clone();
                weights.add(importer, &own, shape).map(Some)
            };
            bias_inputs = bias(importer, "bias_ih", 0, self.gates)?;
            bias_hidden = bias(importer, "bias_hh", 1, of_state)?;
            bias_candidate = if before { bias(importer, "bias_hn", 1, &self.gates[2..])? } else { None };
        }
        Ok(RecurrentPass {
            cell: self.cell,
            hidden,
            reverse: self.directions[d],
            weight_inputs,
            bias_inputs,
            weight_hidden,
            bias_hidden,
            weight_candidate,
            bias_candidate,
            initial_hidden: None,
            initial_cell: None,
        })
    }

    /// Positions of the rows of some gates, `columns` values each, in a tensor whose gates begin at row (or value) `first`.
    fn taken(&self, first: usize, gates: &[usize], columns: usize) -> Vec<usize> {
        let each = self.hidden * columns;
        gates.iter().flat_map(|g| (0..each).map(move |i| first * columns + g * each + i)).collect()
    }

    /// `Y`, `Y_h` and `Y_c`.
    fn outputs(
        &self,
        importer: &mut Importer<'_>,
        node: &Node,
        name: &str,
        states: &[RecurrentStates],
        steps: usize,
    ) -> Result<Vec<Known>, Fault> {
        let (d, h) = (self.directions.len(), self.hidden);
        let end = |importer: &mut Importer<'_>, values: Vec<Value>| {
            let axis = usize::from(!self.batch_first);
            let dims = if self.batch_first { vec![1, d, h] } else { vec![d, 1, h] };
            let value = match values[..] {
                [one] => one,
                _ => importer.emit(node, Operation::Concatenate(0), &values)?,
            };
            raw(importer, node, value, dims, axis)
        };
        let mut out = Vec::with_capacity(3);
        let wanted = |i: usize| node.outputs.get(i).is_some_and(|o| !o.is_empty());
        if wanted(0) {
            let prefix = format!("{name}@{}0", self.cell.name());
            let all = importer.builder.recurrent_joined(&prefix, states)?;
            let (dims, axis) =
                if self.batch_first { (vec![1, steps, d, h], 0) } else { (vec![steps, d, 1, h], 2) };
            out.push(raw(importer, node, all, dims, axis)?);
        }
        for (i, values) in [
            (1, states.iter().map(|s| s.last).collect::<Vec<_>>()),
            (2, states.iter().filter_map(|s| s.cell).collect()),
        ] {
            if wanted(i) && !values.is_empty() {
                // What is left out before it takes a place that nothing reads.
                let value = end(importer, values)?;
                out.resize(i, value.clone());
                out.push(value);
            }
        }
        Ok(out)
    }
}

impl Weights {
    fn add(&mut self, importer: &mut Importer<'_>, c: &Constant, shape: Vec<usize>) -> Result<String, Fault> {
        let trainable = c.origin.trainable;
        let name = importer.register(Parameter::new(c, shape)?)?;
        self.names.push((name.clone(), trainable));
        Ok(name)
    }
}

/// A value of the graph whose numbers are those of one example, in this ONNX shape.
fn raw(
    importer: &mut Importer<'_>,
    node: &Node,
    value: Value,
    dims: Vec<usize>,
    axis: usize,
) -> Result<Known, Fault> {
    let flat = Tracked { value, dims: vec![], place: None, whole: false };
    importer.view(node, &flat, dims, Some(Place { axis, outer: 1 })).map(Known::Tracked)
}

/// Refuses sequences that end before the last step.
fn lengths(importer: &mut Importer<'_>, node: &Node, steps: usize) -> Result<(), Fault> {
    let all = match importer.get(node, 4).cloned() {
        None => true,
        Some(Known::Constant(c)) => c.all(steps as f64),
        Some(Known::Tracked(t)) => importer.repeated_number(t.value)? == Some(steps as f64),
    };
    if all {
        return Ok(());
    }
    Err(Fault::Unsupported(format!(
        " with `sequence_lens` that are not all {steps}: export it without packed sequences"
    )))
}

/// The state before the first step, `[hidden]`; None for zero.
fn initial(
    importer: &mut Importer<'_>,
    node: &Node,
    input: usize,
    d: usize,
    layer: &Layer,
) -> Result<Option<Value>, Fault> {
    let axis = usize::from(!layer.batch_first);
    let place = Some(Place { axis, outer: 1 });
    let (directions, hidden) = (layer.directions.len(), layer.hidden);
    let state = match importer.get(node, input).cloned() {
        None => return Ok(None),
        Some(Known::Constant(c)) if c.all(0.0) => return Ok(None),
        Some(Known::Constant(c)) => importer.learned(node, &c, place)?,
        Some(Known::Tracked(t)) if importer.repeated_number(t.value)? == Some(0.0) => return Ok(None),
        Some(Known::Tracked(t)) => t,
    };
    let expected = if layer.batch_first { [1, directions, hidden] } else { [directions, 1, hidden] };
    if state.dims != expected || (importer.model.dynamic && state.place != place) {
        return Err(Fault::Batch(format!(
            "an initial state of shape {:?} does not have one state of {hidden} for each direction and example",
            state.dims
        )));
    }
    let flat = importer.emit(node, Operation::Reshape(vec![directions * hidden]), &[state.value])?;
    if directions == 1 {
        return Ok(Some(flat));
    }
    let own = Slice { axis: 0, start: d * hidden, step: 1, length: hidden };
    importer.emit(node, Operation::Slice(own), &[flat]).map(Some)
}
