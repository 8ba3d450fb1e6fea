//! The progress of long work: a bar on a terminal, nothing elsewhere.

use crate::interrupt::Interrupt;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use posterior::linearised::Stage;
use posterior::models::FitStage;
use posterior::notes::shown_in_line;
use posterior::optim::{Progress, Signal};

/// Draws what was done and passes interruptions on.
pub struct Bar {
    bar: ProgressBar,
    interrupt: Interrupt,
    /// The stage that is drawn.
    stage: String,
    /// Running mean of the loss of a training run.
    loss: Option<f64>,
}

impl Bar {
    /// For [`Self::fit`].
    pub(crate) fn of_fit(silent: bool, interrupt: Interrupt) -> Self {
        let template = "{msg} {wide_bar} step {pos} of at most {len}, {elapsed}";
        Self::new(ProgressBar::new(0), template, silent, interrupt)
    }

    /// For [`Self::step`] and [`Self::between_epochs`].
    pub(crate) fn of_training(silent: bool, interrupt: Interrupt) -> Self {
        let template = "{msg} {wide_bar} step {pos} of {len}, {elapsed}, {eta} left";
        Self::new(ProgressBar::new(0), template, silent, interrupt)
    }

    /// For [`Self::rows`].
    pub(crate) fn of_rows(silent: bool, interrupt: Interrupt) -> Self {
        Self::new(ProgressBar::new_spinner(), "{spinner} {pos} rows, {elapsed}", silent, interrupt)
    }

    /// For [`Self::stage`].
    pub fn of_stages(silent: bool, interrupt: Interrupt) -> Self {
        let template = "{msg} {wide_bar} {pos} of {len}, {elapsed}, {eta} left";
        Self::new(ProgressBar::new(0), template, silent, interrupt)
    }

    fn new(bar: ProgressBar, template: &str, silent: bool, interrupt: Interrupt) -> Self {
        if silent {
            bar.set_draw_target(ProgressDrawTarget::hidden());
        }
        bar.set_style(
            ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()),
        );
        Self { bar, interrupt, stage: String::new(), loss: None }
    }

    /// A step of the fit of a process.
    pub(crate) fn fit(&mut self, progress: &Progress, stage: &FitStage) -> Signal {
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
            FitStage::Fold { number, of } => format!("without fold {number} of {of}, objective {value:.4}"),
            FitStage::Noise => format!("heteroscedastic noise, objective {value:.4}"),
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
        self.say(&message);
        self.interrupt.signal()
    }

    /// A step of a training run, and whether it finished an epoch.
    pub(crate) fn step(&mut self, progress: &Progress, epoch_finished: bool) -> Signal {
        if self.loss.is_none() {
            self.begin(progress.step, progress.steps_planned);
        }
        let now = progress.value.unwrap_or(f64::NAN);
        let loss = self.loss.map_or(now, |mean| mean + 0.05 * (now - mean));
        self.loss = Some(loss);
        self.bar.set_position(progress.step as u64);
        if progress.step.is_multiple_of(16) || epoch_finished {
            self.say(&format!("epoch {}, loss {loss:.4}", progress.part + 1));
        }
        self.interrupt.signal()
    }

    /// A pass between the epochs of a training run.
    pub(crate) fn between_epochs(&mut self, stage: Stage, done: usize, total: usize) -> Signal {
        let share = 100.0 * done as f64 / total.max(1) as f64;
        self.say(&format!("learning the prior: {}, {share:.0} %", stage.describe()));
        self.bar.tick();
        self.interrupt.signal()
    }

    /// Further rows of something that does not know how many there are.
    pub(crate) fn rows(&self, more: usize) -> Signal {
        self.bar.inc(more as u64);
        self.interrupt.signal()
    }

    /// So much of a stage is done, with a loss or residual where there is one.
    pub fn stage(&mut self, stage: &str, done: usize, total: usize, value: Option<f64>) -> Signal {
        if self.stage != stage || self.bar.length() != Some(total as u64) {
            self.stage = stage.into();
            self.begin(done, total);
        }
        self.bar.set_position(done as u64);
        let value = value.map_or_else(String::new, |v| format!(", {v:.3e}"));
        self.say(&format!("{stage}{value}"));
        self.interrupt.signal()
    }

    /// Sets the text before the bar, which writes to the terminal itself.
    fn say(&self, message: &str) {
        self.bar.set_message(shown_in_line(message).into_owned());
    }

    /// What was done before tells nothing of how fast the rest goes.
    fn begin(&self, done: usize, total: usize) {
        self.bar.set_length(total as u64);
        self.bar.set_position(done as u64);
        self.bar.reset_eta();
    }

    /// Removes the bar.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}
