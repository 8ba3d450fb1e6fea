//! What a kind gets to work with.

use super::ExperimentError;
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
        work: impl FnOnce(&mut Self) -> Result<V, ExperimentError>,
    ) -> Result<V, ExperimentError> {
        let version = env!("CARGO_PKG_VERSION");
        let key = format!("{version}; {stage}; seed {}; {depends:?}", self.seed);
        if let Some(found) = self.journal.find(&key) {
            return Ok(found);
        }
        let value = work(self)?;
        self.journal.keep(key, &value)?;
        Ok(value)
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
