//! What a kind gets to work with.

use super::error::{ExperimentError, Result};
use super::journal::Journal;
use posterior_optim::Signal;
use posterior_report::Note;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt::Debug;
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
    journal: &'a mut Journal,
}

impl<'a> Context<'a> {
    pub(crate) fn new(
        seed: u64,
        folder: &'a Path,
        observer: &'a mut dyn FnMut(&Event<'_>) -> Signal,
        journal: &'a mut Journal,
    ) -> Self {
        Self { seed, folder, notes: Vec::new(), observer, stopped: false, journal }
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

    /// The result of a part of the run: from the journal, if an earlier run finished it, and computed and kept otherwise. `depends` is everything that the
    /// result depends on besides the seed and the program's version.
    ///
    /// # Errors
    /// Those of `work`, and a journal that cannot be written.
    pub(crate) fn once<V: Serialize + DeserializeOwned>(
        &mut self,
        stage: &str,
        depends: &dyn Debug,
        work: impl FnOnce(&mut Self) -> Result<V>,
    ) -> Result<V> {
        if let Some(found) = self.known(stage, depends) {
            return Ok(found);
        }
        let value = work(self)?;
        self.keep(stage, depends, &value)?;
        Ok(value)
    }

    /// What the journal has of a part that other threads would compute.
    pub(crate) fn known<V: DeserializeOwned>(&mut self, stage: &str, depends: &dyn Debug) -> Option<V> {
        self.journal.find(&self.key(stage, depends))
    }

    /// Keeps a part that another thread has finished.
    ///
    /// # Errors
    /// A journal that cannot be written.
    pub(crate) fn keep<V: Serialize>(&mut self, stage: &str, depends: &dyn Debug, value: &V) -> Result<()> {
        self.journal.keep(self.key(stage, depends), value)
    }

    /// How many parts of a stage the journal has of this seed and version, whatever they depend on.
    pub(crate) fn kept(&self, stage: &str) -> usize {
        self.journal.count(&self.prefix(stage))
    }

    fn prefix(&self, stage: &str) -> String {
        format!("{}; {stage}; seed {}; ", env!("CARGO_PKG_VERSION"), self.seed)
    }

    fn key(&self, stage: &str, depends: &dyn Debug) -> String {
        format!("{}{depends:?}", self.prefix(stage))
    }

    /// As [`Self::tell`], an interruption as an error.
    ///
    /// # Errors
    /// [`ExperimentError::Interrupted`].
    pub(crate) fn step(&mut self, stage: &str, done: usize, total: usize) -> Result<()> {
        match self.tell(stage, done, total) {
            Signal::Continue => Ok(()),
            Signal::Stop => Err(ExperimentError::Interrupted),
        }
    }
}
