//! What watches a fit and may end it.

use posterior_models::ModelError;
use posterior_optim::{CancelToken, Signal};
use std::fmt;
use std::sync::Arc;

/// A callback and a token.
pub(crate) struct Control<F: ?Sized> {
    /// Is told of every step.
    pub(crate) progress: Option<Arc<F>>,
    pub(crate) cancel: CancelToken,
}

impl<F: ?Sized> Control<F> {
    /// An observer's answer, which is that of the callback unless the token is cancelled.
    pub(crate) fn signal(&self, tell: impl FnOnce(&F) -> Signal) -> Signal {
        match (self.cancel.signal(), &self.progress) {
            (Signal::Continue, Some(progress)) => tell(progress.as_ref()),
            (signal, _) => signal,
        }
    }

    /// A result that nobody cancelled.
    pub(crate) fn heed<T>(&self, result: Result<T, ModelError>) -> Result<T, ModelError> {
        if self.cancel.is_cancelled() { Err(ModelError::Interrupted) } else { result }
    }
}

impl<F: ?Sized> Default for Control<F> {
    fn default() -> Self {
        Self { progress: None, cancel: CancelToken::new() }
    }
}

impl<F: ?Sized> Clone for Control<F> {
    fn clone(&self) -> Self {
        Self { progress: self.progress.clone(), cancel: self.cancel.clone() }
    }
}

impl<F: ?Sized> fmt::Debug for Control<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let watched = self.progress.is_some();
        f.debug_struct("Control").field("progress", &watched).field("cancel", &self.cancel).finish()
    }
}
