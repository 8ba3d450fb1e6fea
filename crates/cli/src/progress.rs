//! The progress of a fit: a bar on a terminal, nothing elsewhere.

use crate::interrupt::Interrupt;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use posterior::FitEvent;
use posterior::linearised::Stage;
use posterior::networks::train::Progress;
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

    /// Any event of a fit.
    pub(crate) fn observe_fit(&mut self, event: &FitEvent<'_>) -> Signal {
        match event {
            FitEvent::Search { start, event } => return self.observe(*start, event),
            FitEvent::Blocks { stage, start, event } => {
                self.bar.set_length(event.steps_planned as u64);
                self.bar.set_position(event.step as u64);
                self.bar.set_message(format!(
                    "hyperparameters, stage {}, start {}, objective {:.4}",
                    stage + 1,
                    start + 1,
                    event.value
                ));
            }
            FitEvent::Neighbourhood { done, all, event } => {
                self.bar.set_length(*all as u64);
                self.bar.set_position(*done as u64);
                self.bar.set_message(format!("hyperparameters, objective {:.4}, neighbourhood", event.value));
            }
            FitEvent::EvidenceSearch { step, planned, solver, gradient_norm } => {
                self.bar.set_length(*planned as u64);
                self.bar.set_position(*step as u64);
                self.bar.set_message(match gradient_norm {
                    Some(norm) => format!("hyperparameters, gradient {norm:.1e}"),
                    None => format!("hyperparameters, iteration {} of a solve", solver.step),
                });
            }
            FitEvent::Solve { progress } => {
                self.bar.set_length(progress.steps_planned as u64);
                self.bar.set_position(progress.step as u64);
                self.bar.set_message(match progress.residual.is_finite() {
                    true => format!("solving, residual {:.1e}", progress.residual),
                    false => "solving".into(),
                });
            }
            FitEvent::Bound { step, planned, bound, .. } => {
                self.bar.set_length(*planned as u64);
                self.bar.set_position(*step as u64);
                self.bar.set_message(format!("bound {bound:.1}"));
            }
        }
        if self.interrupt.requested() { Signal::Stop } else { Signal::Continue }
    }

    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

/// Draws the progress of a training run and passes interruptions on.
pub(crate) struct TrainProgress {
    bar: ProgressBar,
    interrupt: Interrupt,
    /// Running mean of the loss.
    loss: Option<f64>,
}

impl TrainProgress {
    pub(crate) fn new(silent: bool, interrupt: Interrupt) -> Self {
        let bar = ProgressBar::new(0);
        if silent {
            bar.set_draw_target(ProgressDrawTarget::hidden());
        }
        let template = "{msg} {wide_bar} step {pos} of {len}, {elapsed}, {eta} left";
        bar.set_style(
            ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()),
        );
        Self { bar, interrupt, loss: None }
    }

    pub(crate) fn observe(&mut self, progress: &Progress) -> Signal {
        if self.loss.is_none() {
            self.bar.set_length(progress.steps as u64);
            // A resumed run has done part of the work: only the rest tells how fast it goes.
            self.bar.set_position(progress.step as u64);
            self.bar.reset_eta();
        }
        let loss = self.loss.map_or(progress.loss, |mean| mean + 0.05 * (progress.loss - mean));
        self.loss = Some(loss);
        self.bar.set_position(progress.step as u64);
        if progress.step.is_multiple_of(16) || progress.finished_epoch.is_some() {
            self.bar.set_message(format!("epoch {}, loss {loss:.4}", progress.epoch));
        }
        if self.interrupt.requested() { Signal::Stop } else { Signal::Continue }
    }

    /// A pass between epochs.
    pub(crate) fn observe_stage(&mut self, stage: Stage, done: usize, total: usize) -> Signal {
        let share = 100.0 * done as f64 / total.max(1) as f64;
        self.bar.set_message(format!("learning the prior: {}, {share:.0} %", stage.describe()));
        self.bar.tick();
        if self.interrupt.requested() { Signal::Stop } else { Signal::Continue }
    }

    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

/// Counts rows of something that does not know how many there are, and passes interruptions on.
pub(crate) struct RowProgress {
    bar: ProgressBar,
    interrupt: Interrupt,
}

impl RowProgress {
    pub(crate) fn new(silent: bool, interrupt: Interrupt) -> Self {
        let bar = ProgressBar::new_spinner();
        if silent {
            bar.set_draw_target(ProgressDrawTarget::hidden());
        }
        let template = "{spinner} {pos} rows, {elapsed}";
        bar.set_style(
            ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_spinner()),
        );
        Self { bar, interrupt }
    }

    pub(crate) fn observe(&self, more: usize) -> Signal {
        self.bar.inc(more as u64);
        if self.interrupt.requested() { Signal::Stop } else { Signal::Continue }
    }

    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

/// Draws the stages of something long and passes interruptions on.
pub(crate) struct StageProgress {
    bar: ProgressBar,
    interrupt: Interrupt,
    stage: Option<&'static str>,
}

impl StageProgress {
    pub(crate) fn new(silent: bool, interrupt: Interrupt) -> Self {
        let bar = ProgressBar::new(0);
        if silent {
            bar.set_draw_target(ProgressDrawTarget::hidden());
        }
        let template = "{msg} {wide_bar} {pos} of {len}, {elapsed}, {eta} left";
        bar.set_style(
            ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()),
        );
        Self { bar, interrupt, stage: None }
    }

    /// A stage of a Laplace fit.
    pub(crate) fn observe(&mut self, stage: Stage, done: usize, total: usize) -> Signal {
        self.observe_named(stage.describe(), done, total)
    }

    /// A stage with any name.
    pub(crate) fn observe_named(&mut self, stage: &'static str, done: usize, total: usize) -> Signal {
        if self.stage != Some(stage) || self.bar.length() != Some(total as u64) {
            self.stage = Some(stage);
            self.bar.set_length(total as u64);
            self.bar.set_message(stage);
            self.bar.reset_eta();
        }
        self.bar.set_position(done as u64);
        if self.interrupt.requested() { Signal::Stop } else { Signal::Continue }
    }

    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

/// Draws the steps of an experiment and passes interruptions on.
pub(crate) struct ExperimentProgress {
    bar: ProgressBar,
    interrupt: Interrupt,
}

impl ExperimentProgress {
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

    pub(crate) fn observe(&mut self, event: &posterior::experiments::Event<'_>) -> Signal {
        self.bar.set_length(event.total as u64);
        self.bar.set_position(event.done as u64);
        self.bar.set_message(format!("seed {}, {}", event.seed, event.stage));
        if self.interrupt.requested() { Signal::Stop } else { Signal::Continue }
    }

    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}
