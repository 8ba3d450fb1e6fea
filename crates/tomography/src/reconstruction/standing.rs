//! Where a reconstruction stands: what the stages behind found, and the one under way.

use super::held_back::HeldBack;
use crate::TomographyError;
use crate::running::Checkpointer;
use posterior_optim::Signal;
use posterior_store::{Tensors, numbers_from_tensors, numbers_to_tensors, to_value};
use serde::de::DeserializeOwned;
use serde::ser::{Error, Serializer};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What the stages behind found.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Behind {
    /// How the weight of total variation was chosen, where it was not given.
    pub(super) held_back: Option<HeldBack>,
    /// The epoch that pretraining kept, where there was any.
    pub(super) pretrained_epoch: Option<usize>,
}

/// The stage under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Under {
    Weight,
    Smoothing,
    Pretraining,
    Training,
}

#[derive(Deserialize)]
struct Saved {
    #[serde(flatten)]
    behind: Behind,
    under: Under,
    state: Value,
}

/// What [`Saved`] is read from.
#[derive(Serialize)]
struct Offered<F> {
    #[serde(flatten)]
    behind: Behind,
    under: Under,
    state: F,
}

/// A checkpoint, opened.
pub(super) struct Standing<'a> {
    checkpointer: &'a mut Checkpointer,
    pub(super) behind: Behind,
    under: Option<(Under, Value, Tensors)>,
}

impl<'a> Standing<'a> {
    /// What an earlier run left, or the beginning.
    pub(super) fn open(checkpointer: &'a mut Checkpointer) -> Result<Self, TomographyError> {
        let (behind, under) = match checkpointer.earlier::<Saved>()? {
            Some((saved, tensors)) => (saved.behind, Some((saved.under, saved.state, tensors))),
            None => (Behind::default(), None),
        };
        Ok(Self { checkpointer, behind, under })
    }

    /// Whether this stage was under way.
    pub(super) fn is(&self, stage: Under) -> bool {
        self.under.as_ref().is_some_and(|(under, ..)| *under == stage)
    }

    /// What was kept of a stage, where it was under way: facts and arrays.
    pub(super) fn take<F: DeserializeOwned>(
        &mut self,
        stage: Under,
    ) -> Result<Option<(F, Tensors)>, TomographyError> {
        let Some((_, facts, tensors)) = self.under.take_if(|(under, ..)| *under == stage) else {
            return Ok(None);
        };
        let facts = serde_json::from_value(facts).map_err(|e| tensors.corrupt(e))?;
        Ok(Some((facts, tensors)))
    }

    /// The same of a state that was kept by [`Self::offer_plain`].
    pub(super) fn take_plain<S: DeserializeOwned>(
        &mut self,
        stage: Under,
    ) -> Result<Option<S>, TomographyError> {
        let Some((mut facts, mut tensors)) = self.take::<Value>(stage)? else { return Ok(None) };
        numbers_from_tensors(&mut facts, "state", &mut tensors);
        Ok(Some(serde_json::from_value(facts).map_err(|e| tensors.corrupt(e))?))
    }

    /// Offers the state of a stage; see [`Checkpointer::offer_or_keep`].
    pub(super) fn offer<F: Serialize>(
        &mut self,
        signal: Signal,
        under: Under,
        state: impl FnOnce() -> (F, Tensors),
        failed: &mut Option<TomographyError>,
    ) -> Signal {
        let whole = || {
            let (facts, tensors) = state();
            (Offered { behind: self.behind.clone(), under, state: facts }, tensors)
        };
        self.checkpointer.offer_or_keep(signal, whole, failed)
    }

    /// Offers a state that is all numbers: long lists of them become arrays.
    pub(super) fn offer_plain<S: Serialize>(
        &mut self,
        signal: Signal,
        under: Under,
        state: &S,
        failed: &mut Option<TomographyError>,
    ) -> Signal {
        let parts = || {
            let (mut facts, mut tensors) = (to_value(state), Tensors::default());
            if let Ok(facts) = &mut facts {
                numbers_to_tensors(facts, "state", &mut tensors);
            }
            (Plain(facts), tensors)
        };
        self.offer(signal, under, parts, failed)
    }
}

/// What is offered of a state that is all numbers, or why no file can hold it.
struct Plain(Result<Value, serde_json::Error>);

impl Serialize for Plain {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            Ok(value) => value.serialize(out),
            Err(error) => Err(S::Error::custom(error)),
        }
    }
}
