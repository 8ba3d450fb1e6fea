//! The progress of a fit: a bar on a terminal, nothing elsewhere.

use crate::interrupt::Interrupt;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use posterior::FitStage;
use posterior::linearised::Stage;
use posterior::optim::{Progress, Signal};

/// Draws events and passes interruptions on.
pub(crate) struct FitProgress {
    bar: ProgressBar,
    interrupt: Interrupt,
}

impl FitProgress {
    pub(crate) fn new(silent: bool, interrupt: Interrupt) -> Self {
        let bar = ProgressBar::new(0);
        if silent {
            bar.set_draw_target(ProgressDrawTarget::hidden());
        }
        let template = "{msg} {wide_bar} step {pos} of at most {len}, {elapsed}";
        bar.set_style(
            ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()),
        );
        Self { bar, interrupt }
    }

    pub(crate) fn observe(&mut self, progress: &Progress, stage: &FitStage) -> Signal {
        let Progress { step, part, parts, .. } = *progress;
        let value = progress.value.unwrap_or(f64::NAN);
        let (mut position, mut length) = (step, progress.steps_planned);
        let message = match stage {
            FitStage::Search if parts > 1 => format!("start {} of {parts}, objective {value:.4}", part + 1),
            FitStage::Search => format!("objective {value:.4}"),
            FitStage::Blocks { stage } => {
                format!("hyperparameters, stage {}, start {}, objective {value:.4}", stage + 1, part + 1)
            }
            FitStage::Neighbourhoods => {
                (position, length) = (part, parts);
                format!("hyperparameters, objective {value:.4}, neighbourhood")
            }
            FitStage::Noise => format!("the noise of places, objective {value:.4}"),
            FitStage::EvidenceSearch { solve: Some(solve) } => {
                format!("hyperparameters, iteration {} of a solve", solve.step)
            }
            FitStage::EvidenceSearch { solve: None } => {
                format!("hyperparameters, gradient {:.1e}", progress.gradient_norm.unwrap_or(f64::NAN))
            }
            FitStage::Forecast => format!("which solver, on few rows: {} of {parts}", part + 1),
            FitStage::Solve => match progress.residual {
                Some(residual) => format!("solving, residual {residual:.1e}"),
                None => "solving".into(),
            },
            FitStage::Bound => format!("bound {value:.1}"),
            FitStage::Closing => "inducing values, rows".into(),
            FitStage::Variation => format!("variation, way {} of {parts}, objective {value:.4}", part + 1),
            FitStage::Features => format!("features, way {} of {parts}, objective {value:.4}", part + 1),
        };
        self.bar.set_length(length as u64);
        self.bar.set_position(position as u64);
        self.bar.set_message(message);
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

    /// A step, and whether it finished an epoch.
    pub(crate) fn observe(&mut self, progress: &Progress, epoch_finished: bool) -> Signal {
        if self.loss.is_none() {
            self.bar.set_length(progress.steps_planned as u64);
            // A resumed run has done part of the work: only the rest tells how fast it goes.
            self.bar.set_position(progress.step as u64);
            self.bar.reset_eta();
        }
        let now = progress.value.unwrap_or(f64::NAN);
        let loss = self.loss.map_or(now, |mean| mean + 0.05 * (now - mean));
        self.loss = Some(loss);
        self.bar.set_position(progress.step as u64);
        if progress.step.is_multiple_of(16) || epoch_finished {
            self.bar.set_message(format!("epoch {}, loss {loss:.4}", progress.part + 1));
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

/// Draws the stages of work on scans and passes interruptions on.
pub(crate) struct ScanProgress {
    bar: ProgressBar,
    interrupt: Interrupt,
    stage: Option<posterior::tomography::running::Stage>,
}

impl ScanProgress {
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

    /// So many of so many done, with a loss or residual where there is one.
    pub(crate) fn observe(
        &mut self,
        stage: posterior::tomography::running::Stage,
        done: usize,
        all: usize,
        value: Option<f64>,
    ) -> Signal {
        if self.stage != Some(stage) {
            self.stage = Some(stage);
            self.bar.set_length(all as u64);
            self.bar.set_position(done as u64);
            self.bar.reset_eta();
        }
        self.bar.set_position(done as u64);
        let value = value.map_or_else(String::new, |v| format!(", {v:.3e}"));
        self.bar.set_message(format!("{stage}{value}"));
        if self.interrupt.requested() { Signal::Stop } else { Signal::Continue }
    }

    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}
