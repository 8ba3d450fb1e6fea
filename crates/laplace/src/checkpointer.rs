//! **What a long fit keeps on the way**: plain data from which the same fit goes on, after Ctrl-C or a crash, with the same numbers.

use crate::LaplaceError;
use posterior_store::{Tensors, numbers_from_tensors, numbers_to_tensors};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::time::{Duration, Instant};

/// Time between two writings, so that they cost nothing beside the work.
const EVERY: Duration = Duration::from_secs(20);

/// Where a fit stands: small facts, and arrays by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SavedState {
    /// Which method's it is; another's is refused.
    pub method: String,
    /// How far it is, for people, as `after example 100`; may be empty.
    pub progress: String,
    /// Steps, scalars, settings.
    pub facts: Value,
    /// Arrays.
    pub tensors: Tensors,
    /// Why no file can hold the facts, where that is so: a number that is not finite, with its place.
    pub problem: Option<String>,
}

impl SavedState {
    /// Of facts and arrays. Facts that no file can hold leave a `problem` for who writes them.
    pub fn new(method: &str, facts: &impl Serialize, tensors: Tensors) -> Self {
        let (facts, problem) = match posterior_store::to_value(facts) {
            Ok(facts) => (facts, None),
            Err(error) => (Value::Null, Some(error.to_string())),
        };
        Self { method: method.into(), progress: String::new(), facts, tensors, problem }
    }

    /// Of facts alone: their long lists of numbers become arrays.
    pub(crate) fn of(method: &str, facts: &impl Serialize) -> Self {
        let mut state = Self::new(method, facts, Tensors::default());
        numbers_to_tensors(&mut state.facts, method, &mut state.tensors);
        state
    }

    /// The same with how far it is.
    #[must_use]
    pub fn after(self, progress: String) -> Self {
        Self { progress, ..self }
    }

    /// The facts and arrays of one method.
    ///
    /// # Errors
    /// When the state is another method's, or damaged.
    pub fn open<F: DeserializeOwned>(mut self, method: &str) -> Result<(F, Tensors), LaplaceError> {
        if self.method != method {
            return Err(LaplaceError::Request(format!(
                "what was kept is of a fit by `{}`, not `{method}`: start again without it",
                self.method
            )));
        }
        numbers_from_tensors(&mut self.facts, method, &mut self.tensors);
        let facts = serde_json::from_value(self.facts)
            .map_err(|e| LaplaceError::Request(format!("what was kept of the fit is damaged: {e}")))?;
        Ok((facts, self.tensors))
    }
}

/// Writes a state down.
pub type Write<'a> = dyn FnMut(&SavedState) -> Result<(), LaplaceError> + 'a;

/// What an earlier run of the same fit left, and where this one writes from time to time.
#[derive(Default)]
pub struct Checkpointer<'a> {
    earlier: Option<SavedState>,
    write: Option<Box<Write<'a>>>,
    last: Option<Instant>,
}

impl<'a> Checkpointer<'a> {
    /// From an earlier state, if there is one, to a place for further ones, if there is one.
    pub fn new(earlier: Option<SavedState>, write: Option<&'a mut Write<'a>>) -> Self {
        Self { earlier, write: write.map(|write| Box::new(write) as Box<Write<'a>>), last: None }
    }

    /// What an earlier run left; once.
    pub fn earlier(&mut self) -> Option<SavedState> {
        self.earlier.take()
    }

    /// Offers the state after a step: it is made and written where the last writing is some time ago.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn offer(&mut self, state: impl FnOnce() -> SavedState) -> Result<(), LaplaceError> {
        let last = *self.last.get_or_insert_with(Instant::now);
        if self.write.is_none() || last.elapsed() < EVERY {
            return Ok(());
        }
        self.keep(state)
    }

    /// Writes the state now, as an interrupted fit does.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn keep(&mut self, state: impl FnOnce() -> SavedState) -> Result<(), LaplaceError> {
        let Some(write) = &mut self.write else { return Ok(()) };
        write(&state())?;
        self.last = Some(Instant::now());
        Ok(())
    }
}
