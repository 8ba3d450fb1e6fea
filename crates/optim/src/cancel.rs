//! Ending a run from elsewhere.

use crate::Signal;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Ends runs from another thread. All clones are one token; a token that was cancelled stays so.
#[derive(Clone, Debug, Default)]
pub struct CancelToken(Arc<AtomicBool>);

impl CancelToken {
    /// One that is not cancelled.
    pub fn new() -> Self {
        Self::default()
    }

    /// Ends the runs that it was given to, after their next step.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// Whether it was cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }

    /// An observer's answer.
    pub fn signal(&self) -> Signal {
        if self.is_cancelled() { Signal::Stop } else { Signal::Continue }
    }
}
