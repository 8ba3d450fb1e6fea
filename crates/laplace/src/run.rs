//! **One run of a fit or a search**: its observer, and the states that are kept on the way.

use crate::LaplaceError;
use crate::checkpointer::{Checkpointer, SavedState};
use posterior_optim::Signal;
use serde::{Deserialize, Serialize};

/// What a long computation is doing, for progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// Choosing the weights of a sub-network.
    Subnetwork,
    /// Summing the curvature.
    Curvature,
    /// Making the kernel between examples.
    Kernel,
    /// Looking for the optimum of the linearised model.
    Mode,
    /// Learning the prior of a process.
    Prior,
    /// Learning a sparse process.
    Process,
    /// Estimating correlated noise.
    Noise,
    /// Scoring hyperparameters on held-out data.
    Validation,
    /// Fine-tuning weights with their deviations.
    FineTuning,
    /// Decomposing landmarks.
    Landmarks,
    /// Solving for posterior samples.
    Samples,
    /// Predicting.
    Prediction,
}

impl Stage {
    /// For people.
    pub fn describe(self) -> &'static str {
        match self {
            Self::Subnetwork => "choosing weights",
            Self::Curvature => "summing the curvature",
            Self::Kernel => "making the tangent kernel",
            Self::Mode => "fitting the linearised model",
            Self::Prior => "learning the prior",
            Self::Process => "learning the process",
            Self::Noise => "estimating noise",
            Self::Validation => "scoring on held-out data",
            Self::FineTuning => "fine-tuning",
            Self::Landmarks => "decomposing landmarks",
            Self::Samples => "solving for posterior samples",
            Self::Prediction => "predicting",
        }
    }
}

/// Called with a stage, how much of it is done and how much there is; may stop the run.
pub type Observer<'a> = Box<dyn FnMut(Stage, usize, usize) -> Signal + 'a>;

/// One run: its observer and its checkpoint. By default it has neither.
#[derive(Default)]
pub struct Run<'a> {
    /// Called after every step.
    pub observer: Option<Observer<'a>>,
    /// Holds the state of an earlier, interrupted run, and keeps those of this one.
    pub checkpointer: Checkpointer<'a>,
    /// Why a state could not be written, until the method has ended.
    failed: Option<LaplaceError>,
}

impl<'a> Run<'a> {
    /// A run with an observer.
    pub fn new(observer: impl FnMut(Stage, usize, usize) -> Signal + 'a) -> Self {
        Self { observer: Some(Box::new(observer)), ..Self::default() }
    }

    /// The same with a checkpoint.
    #[must_use]
    pub fn keeping(self, checkpointer: Checkpointer<'a>) -> Self {
        Self { checkpointer, ..self }
    }

    /// The same observer without the checkpoint, for a part of the run that begins anew.
    pub(crate) fn unkept(&mut self) -> Run<'_> {
        Run::new(move |stage, done, total| self.tell(stage, done, total))
    }

    /// Tells the observer what is done of a stage.
    pub fn tell(&mut self, stage: Stage, done: usize, total: usize) -> Signal {
        self.observer.as_mut().map_or(Signal::Continue, |observer| observer(stage, done, total))
    }

    /// The same, where nothing has to be kept before the run ends.
    ///
    /// # Errors
    /// [`LaplaceError::Interrupted`] where the observer stops the run.
    pub fn step(&mut self, stage: Stage, done: usize, total: usize) -> Result<(), LaplaceError> {
        match self.tell(stage, done, total) {
            Signal::Continue => Ok(()),
            Signal::Stop => Err(LaplaceError::Interrupted),
        }
    }

    /// The observer of one stage.
    pub(crate) fn stage(&mut self, stage: Stage) -> impl FnMut(usize, usize) -> Signal {
        move |done, total| self.tell(stage, done, total)
    }

    /// Offers a state, then tells the observer.
    pub(crate) fn offer(
        &mut self,
        (stage, done, total): (Stage, usize, usize),
        state: impl FnOnce() -> SavedState,
    ) -> Signal {
        match self.checkpointer.offer(state) {
            Ok(()) => self.tell(stage, done, total),
            Err(error) => self.fail(error),
        }
    }

    /// Tells the observer, then offers a state, which is written in any case where the observer stops the run.
    pub(crate) fn save(
        &mut self,
        (stage, done, total): (Stage, usize, usize),
        state: impl FnOnce() -> SavedState,
    ) -> Signal {
        let signal = self.tell(stage, done, total);
        let kept = match signal {
            Signal::Stop => self.checkpointer.keep(state),
            Signal::Continue => self.checkpointer.offer(state),
        };
        kept.map_or_else(|error| self.fail(error), |()| signal)
    }

    /// Remembers what failed while a method can only be stopped.
    fn fail(&mut self, error: LaplaceError) -> Signal {
        self.failed = Some(error);
        Signal::Stop
    }

    /// What a method returned, or why its state could not be written.
    pub(crate) fn ended<R, E: Into<LaplaceError>>(
        &mut self,
        result: Result<R, E>,
    ) -> Result<R, LaplaceError> {
        match self.failed.take() {
            Some(error) => Err(error),
            None => result.map_err(Into::into),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use posterior_store::Tensors;

    #[test]
    fn a_state_that_cannot_be_written_ends_a_method_with_that_error() {
        let mut told = Vec::new();
        let mut write = |_: &SavedState| Err(LaplaceError::Request("no space is left".into()));
        let mut run = Run::new(|stage, done, _| {
            told.push((stage, done));
            if done == 2 { Signal::Stop } else { Signal::Continue }
        })
        .keeping(Checkpointer::new(None, Some(&mut write)));
        let state = || SavedState::new("method", &0, Tensors::default());
        assert_eq!(run.save((Stage::Samples, 1, 3), state), Signal::Continue);
        assert_eq!(run.save((Stage::Samples, 2, 3), state), Signal::Stop);
        let error = run.ended(Ok::<(), LaplaceError>(())).unwrap_err();
        assert!(error.to_string().contains("no space is left"), "{error}");
        assert!(run.ended(Ok::<(), LaplaceError>(())).is_ok());
        // A part of the run writes nothing.
        assert_eq!(run.unkept().save((Stage::Samples, 2, 3), state), Signal::Stop);
        assert!(run.ended(Ok::<(), LaplaceError>(())).is_ok());
        assert!(matches!(run.step(Stage::Mode, 2, 3), Err(LaplaceError::Interrupted)));
        drop(run);
        assert_eq!(told, [(Stage::Samples, 1), (Stage::Samples, 2), (Stage::Samples, 2), (Stage::Mode, 2)]);
    }

    #[test]
    fn a_run_without_observer_and_checkpoint_goes_on() {
        let mut run = Run::default();
        let state = || SavedState::new("method", &0, Tensors::default());
        assert_eq!(run.offer((Stage::Samples, 1, 1), state), Signal::Continue);
        assert!(run.step(Stage::Samples, 1, 1).is_ok() && run.checkpointer.earlier().is_none());
    }
}
