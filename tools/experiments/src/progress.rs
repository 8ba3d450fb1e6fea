//! A bar on a terminal, nothing elsewhere.

use super::Event;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use posterior_cli::interrupt::Interrupt;
use posterior_optim::Signal;

/// Draws the steps of an experiment and passes interruptions on.
pub(crate) struct Progress {
    bar: ProgressBar,
    interrupt: Interrupt,
}

impl Progress {
    pub(crate) fn new(silent: bool, interrupt: Interrupt) -> Self {
        let bar = ProgressBar::new(0);
        if silent {
            bar.set_draw_target(ProgressDrawTarget::hidden());
        }
        let template = "{msg} {wide_bar} {pos} of {len}, {elapsed}";
        bar.set_style(
            ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()),
        );
        Self { bar, interrupt }
    }

    pub(crate) fn observe(&mut self, event: &Event<'_>) -> Signal {
        self.bar.set_length(event.total as u64);
        self.bar.set_position(event.done as u64);
        self.bar.set_message(format!("seed {}, {}", event.seed, event.stage));
        if self.interrupt.requested() { Signal::Stop } else { Signal::Continue }
    }

    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}
