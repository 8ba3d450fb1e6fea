//! Recurrent layers, **unrolled**: each step of time becomes a few operations that share their weights by name, so that forward passes and every derivative are those of the operations.
//!
//! | cell | step (gates in this order in the weights, as PyTorch has them) | operations |
//! |---|---|---|
//! | LSTM | `i, f, g, o`; `c' = s(f) c + s(i) tanh(g)`, `h' = s(o) tanh(c')` | 14 |
//! | GRU | `r, z, n`; `h' = n + s(z) (h - n)`, `n = tanh(W x + s(r) (R h + b))` or `tanh(W x + R (s(r) h) + b)` | 16 |
//! | RNN | `h' = tanh(W x + R h)` or with ReLU | 4 |
//!
//! `W x + b` of all steps is one fully connected layer over `[time, features]`; only `R h` is computed step by step. A state that begins at zero is left out of the
//! first step instead of being multiplied.

use super::builder::GraphBuilder;
use super::error::GraphError;
use super::structure::{Node, Value};
use super::unrolling::Unrolling;
use crate::operation::{Activation, Initial, Linear, Operation};

/// Operations that one recurrent layer may become.
pub const MOST_UNROLLED: usize = 50_000;

/// Recurrent layers on top of each other at most.
const MOST_STACKED: usize = 64;

/// What a recurrent layer computes in each step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RecurrentCell {
    /// Long short-term memory, without peepholes.
    Lstm,
    /// Gated recurrent unit.
    Gru {
        /// Whether the reset gate multiplies what the hidden state's weights give (PyTorch, cuDNN) instead of the hidden state.
        reset_after: bool,
    },
    /// A fully connected layer of input and hidden state with an activation.
    Rnn {
        /// The activation; usually tanh, or ReLU.
        activation: Activation,
    },
}

impl RecurrentCell {
    /// Its name, as in architecture files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Lstm => "lstm",
            Self::Gru { .. } => "gru",
            Self::Rnn { .. } => "rnn",
        }
    }

    /// Rows of the weights for each value of the hidden state.
    pub fn gates(self) -> usize {
        match self {
            Self::Lstm => 4,
            Self::Gru { .. } => 3,
            Self::Rnn { .. } => 1,
        }
    }

    /// Those that the hidden state's weights make at once: the candidate of a GRU that resets before has weights of its own.
    pub(super) fn hidden_gates(self) -> usize {
        if self == (Self::Gru { reset_after: false }) { 2 } else { self.gates() }
    }

    /// Operations of one step at most.
    fn operations(self) -> usize {
        match self {
            Self::Lstm => 14,
            Self::Gru { .. } => 16,
            Self::Rnn { .. } => 4,
        }
    }
}

/// One or more recurrent layers on top of each other, as `torch.nn.LSTM`, `GRU` and `RNN` have them.
#[derive(Clone, Debug, PartialEq)]
pub struct Recurrent {
    /// What is computed in each step.
    pub cell: RecurrentCell,
    /// Length of the hidden state.
    pub hidden: usize,
    /// Layers on top of each other.
    pub layers: usize,
    /// Whether each layer also goes through the sequence from its end, with weights of its own.
    pub bidirectional: bool,
    /// Whether there are biases.
    pub bias: bool,
    /// Whether only the state at the end of each direction is returned, `[directions * hidden]`, instead of all, `[time, directions * hidden]`.
    pub last: bool,
}

/// One pass through a sequence, in one direction.
#[derive(Clone, Debug, PartialEq)]
pub struct RecurrentPass {
    /// What is computed in each step.
    pub cell: RecurrentCell,
    /// Length of the hidden state.
    pub hidden: usize,
    /// Whether it begins at the end of the sequence.
    pub reverse: bool,
    /// Full name of the inputs' weights, `[gates * hidden, features]`.
    pub weight_inputs: String,
    /// Full name of their bias, `[gates * hidden]`, where there is one.
    pub bias_inputs: Option<String>,
    /// Full name of the hidden state's weights, `[gates * hidden, hidden]`; without the candidate of a GRU that resets before.
    pub weight_hidden: String,
    /// Full name of their bias, where there is one.
    pub bias_hidden: Option<String>,
    /// Full name of the weights `[hidden, hidden]` of the candidate of a GRU that resets before.
    pub weight_candidate: String,
    /// Full name of their bias, where there is one.
    pub bias_candidate: Option<String>,
    /// The hidden state before the first step, `[hidden]`; None for zero.
    pub initial_hidden: Option<Value>,
    /// The cell of an LSTM before the first step, `[hidden]`; None for zero.
    pub initial_cell: Option<Value>,
}

/// What a pass leaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecurrentStates {
    /// The hidden states `[hidden]`, in the order of time.
    pub hidden: Vec<Value>,
    /// The one after the last step of the pass.
    pub last: Value,
    /// The cell of an LSTM then.
    pub cell: Option<Value>,
}

/// What stands between the name of a recurrent layer and those of its steps: `encoder@lstm0_reverse.12.sigmoid`.
const MARK: char = '@';

impl Node {
    /// The recurrent layer that this is a step of, by name, and what that is (`lstm`, `gru` or `rnn`).
    pub fn recurrent_layer(&self) -> Option<(&str, &'static str)> {
        let (layer, step) = self.name.rsplit_once(MARK)?;
        let cell = ["lstm", "gru", "rnn"].into_iter().find(|cell| {
            step.strip_prefix(cell).is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
        })?;
        Some((layer, cell))
    }

    /// The layer that it belongs to: itself, or the recurrent layer that it is a step of.
    pub fn layer(&self) -> &str {
        self.recurrent_layer().map_or(&self.name, |(layer, _)| layer)
    }
}

impl GraphBuilder {
    /// Recurrent layers over a sequence `[time, features]`, with PyTorch's names and order of gates: `name.weight_ih_l0`, `name.weight_hh_l0`, `name.bias_ih_l0`,
    /// `name.bias_hh_l0`, with `_reverse` for the other direction; the candidate of a GRU that resets before has `weight_hn_l0` and `bias_hn_l0`. States begin at zero.
    ///
    /// # Errors
    /// When the input is no sequence, a size is zero, or the sequence unrolls to more than [`MOST_UNROLLED`] operations; as [`Self::add`] otherwise.
    pub fn recurrent(&mut self, name: &str, layer: &Recurrent, x: Value) -> Result<Value, GraphError> {
        let operation = layer.cell.name();
        let wrong = |problem: String| GraphError::Node { node: name.into(), operation, problem };
        if layer.layers == 0 || layer.layers > MOST_STACKED {
            return Err(wrong(format!(
                "`layers` is {}: between 1 and {MOST_STACKED} are possible",
                layer.layers
            )));
        }
        let directions: &[bool] = if layer.bidirectional { &[false, true] } else { &[false] };
        let mut x = x;
        for l in 0..layer.layers {
            let mut states = Vec::with_capacity(directions.len());
            for &reverse in directions {
                let end = if reverse { "_reverse" } else { "" };
                let parameter = |part: &str| format!("{name}.{part}_l{l}{end}");
                let bias = |part: &str| layer.bias.then(|| parameter(part));
                let pass = RecurrentPass {
                    cell: layer.cell,
                    hidden: layer.hidden,
                    reverse,
                    weight_inputs: parameter("weight_ih"),
                    bias_inputs: bias("bias_ih"),
                    weight_hidden: parameter("weight_hh"),
                    bias_hidden: bias("bias_hh"),
                    weight_candidate: parameter("weight_hn"),
                    bias_candidate: bias("bias_hn"),
                    initial_hidden: None,
                    initial_cell: None,
                };
                states.push(self.recurrent_pass(name, l, &pass, x)?);
                // As PyTorch begins them.
                let initial = Some(Initial::Uniform(1.0 / (layer.hidden as f64).sqrt()));
                for own in ["weight_ih", "weight_hh", "weight_hn", "bias_ih", "bias_hh", "bias_hn"] {
                    let candidate = layer.cell == RecurrentCell::Gru { reset_after: false };
                    if (own.starts_with("weight") || layer.bias) && (candidate || !own.ends_with("hn")) {
                        self.describe(&parameter(own), true, initial)?;
                    }
                }
            }
            let prefix = format!("{name}{MARK}{operation}{l}");
            x = if layer.last && l + 1 == layer.layers {
                let ends: Vec<Value> = states.iter().map(|s| s.last).collect();
                self.joined(&format!("{prefix}.last"), &ends)?
            } else {
                self.recurrent_sequence(&prefix, &states)?
            };
        }
        Ok(x)
    }

    /// The hidden states of all passes over a sequence, `[time, passes * hidden]`.
    fn recurrent_sequence(&mut self, prefix: &str, states: &[RecurrentStates]) -> Result<Value, GraphError> {
        let steps = states.first().map_or(0, |s| s.hidden.len());
        let all = self.recurrent_joined(prefix, states)?;
        let width = self.shape(all)[0] / steps.max(1);
        self.add(&format!("{prefix}.sequence"), Operation::Reshape(vec![steps, width]), &[all])
    }

    /// The hidden states of all passes over a sequence one after another, step by step: `[time * passes * hidden]`. `prefix` begins the node's name.
    ///
    /// # Errors
    /// As [`Self::add`].
    pub fn recurrent_joined(
        &mut self,
        prefix: &str,
        states: &[RecurrentStates],
    ) -> Result<Value, GraphError> {
        let steps = states.first().map_or(0, |s| s.hidden.len());
        let in_order: Vec<Value> = (0..steps).flat_map(|t| states.iter().map(move |s| s.hidden[t])).collect();
        self.joined(&format!("{prefix}.joined"), &in_order)
    }

    fn joined(&mut self, name: &str, values: &[Value]) -> Result<Value, GraphError> {
        match values {
            [one] => Ok(*one),
            _ => self.add(name, Operation::Concatenate(0), values),
        }
    }

    /// One pass through a sequence `[time, features]`, in one direction; `level` tells the passes of one layer `name` apart, together with their direction.
    ///
    /// # Errors
    /// As [`Self::recurrent`].
    pub fn recurrent_pass(
        &mut self,
        name: &str,
        level: usize,
        pass: &RecurrentPass,
        x: Value,
    ) -> Result<RecurrentStates, GraphError> {
        let (cell, hidden) = (pass.cell, pass.hidden);
        let wrong = |problem: String| GraphError::Node { node: name.into(), operation: cell.name(), problem };
        let &[steps, _] = self.shape(x) else {
            let shape = self.shape(x);
            return Err(wrong(format!(
                "it reads a sequence `[time, features]`, not values of shape {shape:?}"
            )));
        };
        let outputs = hidden.checked_mul(cell.gates()).filter(|n| *n > 0);
        let outputs =
            outputs.ok_or_else(|| wrong(format!("a hidden state of length {hidden} is not possible")))?;
        let operations = steps.saturating_mul(cell.operations());
        if operations > MOST_UNROLLED {
            return Err(wrong(format!(
                "a sequence of {steps} steps becomes {operations} operations, more than {MOST_UNROLLED}: give it shorter sequences, or every k-th step"
            )));
        }
        for state in pass.initial_hidden.iter().chain(&pass.initial_cell) {
            if self.shape(*state) != [hidden] {
                return Err(wrong(format!(
                    "an initial state has shape {:?}, not [{hidden}]",
                    self.shape(*state)
                )));
            }
        }
        let end = if pass.reverse { "_reverse" } else { "" };
        let prefix = format!("{name}{MARK}{}{level}{end}", cell.name());
        let linear = Operation::Linear(Linear { outputs, bias: pass.bias_inputs.is_some() });
        let names: Vec<&str> = [Some(&pass.weight_inputs), pass.bias_inputs.as_ref()]
            .into_iter()
            .flatten()
            .map(String::as_str)
            .collect();
        let inputs = self.add_named(&format!("{prefix}.inputs"), linear, &[x], &names)?;
        let inputs =
            self.add(&format!("{prefix}.flat"), Operation::Reshape(vec![steps * outputs]), &[inputs])?;
        Unrolling { builder: self, pass, prefix: &prefix, steps, inputs }.run()
    }
}
