//! The steps of a recurrent layer as operations.

use super::builder::GraphBuilder;
use super::error::GraphError;
use super::recurrent::{RecurrentCell, RecurrentPass, RecurrentStates};
use super::structure::Value;
use crate::operation::{Activation, Learned, Linear, Operation, Slice};

/// Adds the operations of one pass.
pub(super) struct Unrolling<'a> {
    pub(super) builder: &'a mut GraphBuilder,
    pub(super) pass: &'a RecurrentPass,
    pub(super) prefix: &'a str,
    pub(super) steps: usize,
    /// `W x + b` of all steps, one after another.
    pub(super) inputs: Value,
}

impl Unrolling<'_> {
    /// All steps, in the order of the pass.
    pub(super) fn run(mut self) -> Result<RecurrentStates, GraphError> {
        let mut h = self.pass.initial_hidden;
        let mut c = self.pass.initial_cell.filter(|_| self.pass.cell == RecurrentCell::Lstm);
        if self.steps == 1 && h.is_none() {
            // The one step has the weights of the hidden state as parameters, whatever they do to zero.
            let part = self.part(0, "zero", self.inputs, 0, self.pass.hidden)?;
            h = Some(self.add(0, "zero_state", Operation::Scale(0.0), &[part])?);
        }
        let mut hidden = Vec::with_capacity(self.steps);
        for k in 0..self.steps {
            let t = if self.pass.reverse { self.steps - 1 - k } else { k };
            let next = match self.pass.cell {
                RecurrentCell::Lstm => {
                    let (next, cell) = self.lstm(t, h, c)?;
                    c = Some(cell);
                    next
                }
                RecurrentCell::Gru { reset_after } => self.gru(t, h, reset_after)?,
                RecurrentCell::Rnn { activation } => {
                    let gates = self.gates(t, h)?;
                    self.activation(t, "h", activation, gates)?
                }
            };
            h = Some(next);
            hidden.push(next);
        }
        if self.pass.reverse {
            hidden.reverse();
        }
        let last = if self.pass.reverse { hidden.first() } else { hidden.last() };
        let last = last.copied().ok_or_else(|| GraphError::Unknown { name: "step of a sequence".into() })?;
        Ok(RecurrentStates { hidden, last, cell: c })
    }

    fn add(
        &mut self,
        t: usize,
        part: &str,
        operation: Operation,
        inputs: &[Value],
    ) -> Result<Value, GraphError> {
        self.builder.add(&format!("{}.{t}.{part}", self.prefix), operation, inputs)
    }

    fn activation(&mut self, t: usize, part: &str, of: Activation, x: Value) -> Result<Value, GraphError> {
        self.add(t, part, Operation::Activation(of), &[x])
    }

    /// `length` values from `start` on; the value itself where that is all of it.
    fn part(
        &mut self,
        t: usize,
        part: &str,
        x: Value,
        start: usize,
        length: usize,
    ) -> Result<Value, GraphError> {
        if start == 0 && self.builder.shape(x) == [length] {
            return Ok(x);
        }
        self.add(t, part, Operation::Slice(Slice { axis: 0, start, step: 1, length }), &[x])
    }

    /// Gates `from..to` of `W x + b` at one step.
    fn of_inputs(&mut self, t: usize, part: &str, from: usize, to: usize) -> Result<Value, GraphError> {
        let hidden = self.pass.hidden;
        let start = (t * self.pass.cell.gates() + from) * hidden;
        self.part(t, part, self.inputs, start, (to - from) * hidden)
    }

    /// `R h + b`; at a zero state the bias alone, None where there is none.
    fn of_hidden(
        &mut self,
        t: usize,
        part: &str,
        gates: usize,
        [weight, bias]: [Option<&str>; 2],
        h: Option<Value>,
    ) -> Result<Option<Value>, GraphError> {
        let outputs = gates * self.pass.hidden;
        let name = format!("{}.{t}.{part}", self.prefix);
        match (h, bias) {
            (Some(h), bias) => {
                let names: Vec<&str> = weight.into_iter().chain(bias).collect();
                let linear = Operation::Linear(Linear { outputs, bias: bias.is_some() });
                self.builder.add_named(&name, linear, &[h], &names).map(Some)
            }
            (None, Some(bias)) => {
                let constant = Operation::Learned(Learned { shape: vec![outputs] });
                self.builder.add_named(&name, constant, &[], &[bias]).map(Some)
            }
            (None, None) => Ok(None),
        }
    }

    fn of_state(&mut self, t: usize, h: Option<Value>) -> Result<Option<Value>, GraphError> {
        let pass = self.pass;
        let names = [Some(pass.weight_hidden.as_str()), pass.bias_hidden.as_deref()];
        self.of_hidden(t, "hidden", pass.cell.hidden_gates(), names, h)
    }

    fn sum(&mut self, t: usize, part: &str, x: Value, y: Option<Value>) -> Result<Value, GraphError> {
        match y {
            Some(y) => self.add(t, part, Operation::Add, &[x, y]),
            None => Ok(x),
        }
    }

    /// All gates before their activations.
    fn gates(&mut self, t: usize, h: Option<Value>) -> Result<Value, GraphError> {
        let x = self.of_inputs(t, "x", 0, self.pass.cell.gates())?;
        let of_state = self.of_state(t, h)?;
        self.sum(t, "gates", x, of_state)
    }

    /// The next hidden state and the next cell.
    fn lstm(&mut self, t: usize, h: Option<Value>, c: Option<Value>) -> Result<(Value, Value), GraphError> {
        let n = self.pass.hidden;
        let gates = self.gates(t, h)?;
        // One pass over all gates costs less than three over parts; the candidate's is not read.
        let open = self.activation(t, "sigmoid", Activation::Sigmoid, gates)?;
        let input = self.part(t, "i", open, 0, n)?;
        let candidate = self.part(t, "g_in", gates, 2 * n, n)?;
        let candidate = self.activation(t, "g", Activation::Tanh, candidate)?;
        let mut cell = self.add(t, "new", Operation::Multiply, &[input, candidate])?;
        if let Some(c) = c {
            let forget = self.part(t, "f", open, n, n)?;
            let kept = self.add(t, "kept", Operation::Multiply, &[forget, c])?;
            cell = self.add(t, "c", Operation::Add, &[kept, cell])?;
        }
        let output = self.part(t, "o", open, 3 * n, n)?;
        let shown = self.activation(t, "tanh", Activation::Tanh, cell)?;
        Ok((self.add(t, "h", Operation::Multiply, &[output, shown])?, cell))
    }

    fn gru(&mut self, t: usize, h: Option<Value>, reset_after: bool) -> Result<Value, GraphError> {
        let n = self.pass.hidden;
        let x = self.of_inputs(t, "x", 0, 2)?;
        let of_state = self.of_state(t, h)?;
        let both = of_state.map(|s| self.part(t, "hidden_rz", s, 0, 2 * n)).transpose()?;
        let gates = self.sum(t, "gates", x, both)?;
        let open = self.activation(t, "sigmoid", Activation::Sigmoid, gates)?;
        let z = self.part(t, "z", open, n, n)?;
        let x = self.of_inputs(t, "n_x", 2, 3)?;
        let from_state = if reset_after {
            match of_state {
                Some(state) => {
                    let state = self.part(t, "hidden_n", state, 2 * n, n)?;
                    let r = self.part(t, "r", open, 0, n)?;
                    Some(self.add(t, "reset", Operation::Multiply, &[r, state])?)
                }
                None => None,
            }
        } else {
            let reset = match h {
                Some(h) => {
                    let r = self.part(t, "r", open, 0, n)?;
                    Some(self.add(t, "reset", Operation::Multiply, &[r, h])?)
                }
                None => None,
            };
            let pass = self.pass;
            let names = [Some(pass.weight_candidate.as_str()), pass.bias_candidate.as_deref()];
            self.of_hidden(t, "hidden_n", 1, names, reset)?
        };
        let sum = self.sum(t, "n_in", x, from_state)?;
        let candidate = self.activation(t, "n", Activation::Tanh, sum)?;
        let less = self.add(t, "less", Operation::Scale(-1.0), &[candidate])?;
        let change = self.sum(t, "change", less, h)?;
        let kept = self.add(t, "kept", Operation::Multiply, &[z, change])?;
        self.add(t, "h", Operation::Add, &[candidate, kept])
    }
}
