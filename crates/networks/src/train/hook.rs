//! **Between epochs**: weight decay by parameter, noise that is set instead of learned, and which weights are kept, decided by an [`EpochHook`].
//!
//! A hook has no state of its own that matters: what it must remember is a text in [`HookState`], saved and resumed with everything else. A run that was stopped, even inside the
//! hook, and resumed is the same bit for bit.

use super::error::TrainError;
use super::trainer::TrainState;
use crate::array::Precision;
use crate::graph::{Network, Selection};
use serde::{Deserialize, Serialize};

/// Which weights a training run returns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Keep {
    /// Those of the epoch with the lowest [`Evaluation::score`](super::Evaluation::score) on the validation examples; the last where there are none.
    #[default]
    Validation,
    /// Those of the epoch with the lowest score of the hook.
    Score,
    /// The last.
    Last,
}

/// What a hook changes.
#[derive(Clone, Debug, PartialEq)]
pub struct Adjustment<T> {
    /// Weight decay of each trainable parameter, in the order of [`Selection::all`]'s parts: multiples of the weight that join the gradient of the mean loss.
    pub weight_decay: Vec<f64>,
    /// Log noise variances of the Gaussian loss from now on; None leaves them to the optimiser.
    pub log_variance: Option<Vec<T>>,
    /// How good the current weights are (lower is better), for [`Keep::Score`].
    pub score: Option<f64>,
}

/// What hooks have decided so far, part of the state of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HookState {
    /// Weight decay of each trainable parameter.
    pub weight_decay: Vec<f64>,
    /// Whether the noise is set by the hook instead of learned.
    pub noise_held: bool,
    /// Whether the last epoch's hook is still to run.
    pub due: bool,
    /// What the hook remembers, in its own words.
    pub memory: String,
}

/// Something that may change weight decay and noise before the first step and after epochs.
pub trait EpochHook<T: Precision> {
    /// Which weights the run returns.
    fn keep(&self) -> Keep;

    /// Before the first step of a run that is not resumed. `memory` is empty and may be filled.
    ///
    /// # Errors
    /// What cannot be done, as [`TrainError::Hook`].
    fn start(&mut self, network: &Network<T>, memory: &mut String) -> Result<Adjustment<T>, TrainError>;

    /// Whether it runs after this epoch (from 1).
    fn due(&self, epoch: usize) -> bool;

    /// After an epoch (from 1), with the network in evaluation mode and the noise of the Gaussian loss; None when it was interrupted, and then `memory` is as it was.
    ///
    /// # Errors
    /// What cannot be done, as [`TrainError::Hook`].
    fn run(
        &mut self,
        network: &Network<T>,
        epoch: usize,
        log_variance: &[T],
        memory: &mut String,
    ) -> Result<Option<Adjustment<T>>, TrainError>;
}

impl<T: Precision> TrainState<T> {
    /// Takes up what a hook decided; returns its score.
    pub(super) fn adjust(
        &mut self,
        adjustment: Adjustment<T>,
        memory: String,
        selection: &Selection,
    ) -> Result<Option<f64>, TrainError> {
        let fine = |v: &f64| v.is_finite() && *v >= 0.0;
        if adjustment.weight_decay.len() != selection.parts().len()
            || !adjustment.weight_decay.iter().all(fine)
        {
            let problem = format!(
                "weight decay by parameter needs {} finite values of at least 0, one for each trainable parameter",
                selection.parts().len()
            );
            return Err(TrainError::Setting(problem));
        }
        let mut noise_held = self.hook.as_ref().is_some_and(|h| h.noise_held);
        if let Some(log_variance) = adjustment.log_variance {
            if log_variance.len() != self.log_variance.len() || log_variance.iter().any(|v| !v.is_finite()) {
                let problem = format!("{} finite log noise variances are needed", self.log_variance.len());
                return Err(TrainError::Setting(problem));
            }
            self.log_variance = log_variance;
            noise_held = true;
        }
        self.hook = Some(HookState { weight_decay: adjustment.weight_decay, noise_held, due: false, memory });
        Ok(adjustment.score)
    }
}
