//! Ctrl-C: the first asks the fit to stop after its step, so that nothing is half-written; the second ends the program.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether an interruption was asked for.
#[derive(Clone, Default)]
pub(crate) struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Listens from now on. Where no handler can be installed, Ctrl-C ends the program at once, which is safe as well.
    pub(crate) fn listen() -> Self {
        let interrupt = Self::default();
        let flag = interrupt.0.clone();
        let _ = ctrlc::set_handler(move || {
            if flag.swap(true, Ordering::SeqCst) {
                std::process::exit(1);
            }
        });
        interrupt
    }

    pub(crate) fn requested(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}
