//! The state of a training as facts and arrays.

use crate::TomographyError;
use crate::image_prior::DeepImagePriorState;
use posterior_store::Tensors;
use serde::{Deserialize, Serialize};

/// The facts of a training; its vectors are tensors.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct SavedTraining {
    step: usize,
    best_loss: Option<f64>,
    best_step: usize,
    losses: Vec<(usize, f64)>,
    best_quality: Option<(f64, usize)>,
    clipped: usize,
    weights: usize,
}

impl SavedTraining {
    /// Takes a state apart.
    pub(crate) fn of(state: &DeepImagePriorState) -> (Self, Tensors) {
        let mut tensors = Tensors::default();
        for (name, block) in [
            ("weights", &state.weights),
            ("first", &state.first),
            ("second", &state.second),
            ("best", &state.best),
        ] {
            tensors.insert_vector(name, block);
        }
        let facts = Self {
            step: state.step,
            best_loss: state.best_loss.is_finite().then_some(state.best_loss),
            best_step: state.best_step,
            losses: state.losses.clone(),
            best_quality: state.best_quality.filter(|(quality, _)| quality.is_finite()),
            clipped: state.clipped,
            weights: state.weights.len(),
        };
        (facts, tensors)
    }

    /// Puts it together again.
    ///
    /// # Errors
    /// [`TomographyError::Store`] for arrays that are missing or of other sizes.
    pub(crate) fn restore(self, tensors: &mut Tensors) -> Result<DeepImagePriorState, TomographyError> {
        let mut block = |name: &str| tensors.take::<f32>(name, &[self.weights]);
        Ok(DeepImagePriorState {
            step: self.step,
            weights: block("weights")?,
            first: block("first")?,
            second: block("second")?,
            best: block("best")?,
            best_loss: self.best_loss.unwrap_or(f64::INFINITY),
            best_step: self.best_step,
            losses: self.losses,
            best_quality: self.best_quality,
            clipped: self.clipped,
        })
    }
}
