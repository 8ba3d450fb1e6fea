//! What a kind gets to work with.

use super::ExperimentError;
use posterior_optim::Signal;
use posterior_report::Note;
use std::path::Path;

/// Where a run stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event<'a> {
    /// Which seed is running.
    pub seed: u64,
    /// What is being done.
    pub stage: &'a str,
    /// Steps of it that are done.
    pub done: usize,
    /// Its steps; 0 where they are not known.
    pub total: usize,
}

/// Seed, place and audience of one run.
pub(crate) struct Context<'a> {
    /// The seed of everything random.
    pub(crate) seed: u64,
    /// The folder of the experiment's file, from which paths in it are counted.
    pub(crate) folder: &'a Path,
    /// Things to know, for the report.
    pub(crate) notes: Vec<Note>,
    observer: &'a mut dyn FnMut(&Event<'_>) -> Signal,
    stopped: bool,
}

impl<'a> Context<'a> {
    pub(crate) fn new(
        seed: u64,
        folder: &'a Path,
        observer: &'a mut dyn FnMut(&Event<'_>) -> Signal,
    ) -> Self {
        Self { seed, folder, notes: Vec::new(), observer, stopped: false }
    }

    /// Tells where the run stands and whether it should go on. Once stopped, it stays stopped: what is told after its last step may finish all the same.
    pub(crate) fn tell(&mut self, stage: &str, done: usize, total: usize) -> Signal {
        self.stopped |= (self.observer)(&Event { seed: self.seed, stage, done, total }) == Signal::Stop;
        if self.stopped { Signal::Stop } else { Signal::Continue }
    }

    /// Whether the run was stopped.
    pub(crate) fn stopped(&self) -> bool {
        self.stopped
    }

    /// As [`Self::tell`], an interruption as an error.
    ///
    /// # Errors
    /// [`ExperimentError::Interrupted`].
    pub(crate) fn step(&mut self, stage: &str, done: usize, total: usize) -> Result<(), ExperimentError> {
        match self.tell(stage, done, total) {
            Signal::Continue => Ok(()),
            Signal::Stop => Err(ExperimentError::Interrupted),
        }
    }
}
