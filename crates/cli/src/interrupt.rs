//! Ctrl-C: the first asks the fit to stop after its step, so that nothing is half-written; the second ends the program.

use posterior::optim::Signal;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

/// Whether an interruption was asked for.
#[derive(Clone, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Listens from the first call on; a command with several fits has one interruption for all of them. Where no handler can be installed, Ctrl-C ends the program at once, which is safe as well.
    pub fn listen() -> Self {
        static LISTENING: OnceLock<Interrupt> = OnceLock::new();
        let listening = LISTENING.get_or_init(|| {
            let interrupt = Self::default();
            let flag = interrupt.0.clone();
            let _ = ctrlc::set_handler(move || {
                if flag.swap(true, Ordering::SeqCst) {
                    std::process::exit(1);
                }
            });
            interrupt
        });
        listening.clone()
    }

    /// Whether Ctrl-C was pressed.
    pub fn requested(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }

    /// Whether work is to go on, for those who watch it.
    pub fn signal(&self) -> Signal {
        if self.requested() { Signal::Stop } else { Signal::Continue }
    }
}
