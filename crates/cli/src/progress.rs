//! The progress of a fit: a bar on a terminal, nothing elsewhere.

use crate::interrupt::Interrupt;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use posterior::optim::{Event, Signal};

/// Draws events and passes interruptions on.
pub(crate) struct FitProgress {
    bar: ProgressBar,
    restarts: usize,
    interrupt: Interrupt,
}

impl FitProgress {
    pub(crate) fn new(steps: usize, restarts: usize, silent: bool, interrupt: Interrupt) -> Self {
        let bar = ProgressBar::new(steps as u64);
        if silent {
            bar.set_draw_target(ProgressDrawTarget::hidden());
        }
        let template = "{msg} {wide_bar} step {pos} of at most {len}, {elapsed}";
        bar.set_style(
            ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()),
        );
        Self { bar, restarts, interrupt }
    }

    pub(crate) fn observe(&mut self, start: usize, event: &Event) -> Signal {
        self.bar.set_position(event.step as u64);
        let which = if self.restarts > 1 {
            format!("start {} of {}, ", start + 1, self.restarts)
        } else {
            String::new()
        };
        self.bar.set_message(format!("{which}objective {:.4}", event.value));
        if self.interrupt.requested() { Signal::Stop } else { Signal::Continue }
    }

    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}
