//! The whole of a campaign, in a file and back.

use super::{Candidates, Origin, Outcome, Settings, Trial};
use crate::{DecisionError, SharedState, Space};
use posterior_data::{DataError, FileLock};
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::time::Duration;

/// Version of the file's layout.
const FORMAT: u32 = 1;

/// Proposals made, and what was told of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Campaign {
    format: u32,
    pub(super) space: Space,
    pub(super) settings: Settings,
    pub(super) candidates: Option<Candidates>,
    pub(super) rounds: usize,
    pub(super) trials: Vec<Trial>,
}

/// What [`Campaign::tell`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TellOutcome {
    /// The outcome is new.
    Recorded,
    /// The same outcome had been told before: nothing changed.
    Repeated,
}

/// The best that came out so far.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Best {
    /// The trial's number.
    pub id: usize,
    /// Where.
    pub point: Vec<f64>,
    /// What came out.
    pub value: f64,
}

impl Campaign {
    /// Nothing asked, nothing told.
    ///
    /// # Errors
    /// [`DecisionError::Space`], or [`DecisionError::Ask`] for settings that cannot work.
    pub fn new(space: Space, settings: Settings) -> Result<Self, DecisionError> {
        space.check()?;
        settings.check()?;
        // A kernel for as many columns as there are axes, or an error that says why not.
        settings.kernel.build::<f64>(&space.axes.iter().map(|a| a.name.clone()).collect::<Vec<_>>())?;
        Ok(Self { format: FORMAT, space, settings, candidates: None, rounds: 0, trials: Vec::new() })
    }

    /// The same with a table whose rows are all that may be chosen.
    ///
    /// # Errors
    /// [`DecisionError::Space`] for an empty table, rows of another width, numbers outside the axes.
    pub fn among(mut self, candidates: Candidates) -> Result<Self, DecisionError> {
        self.candidates = Some(candidates);
        self.check_candidates().map_err(DecisionError::Space)?;
        Ok(self)
    }

    fn check_candidates(&self) -> Result<(), String> {
        let Some(candidates) = &self.candidates else { return Ok(()) };
        if candidates.rows.is_empty() {
            return Err(format!("{} has no candidates", candidates.source));
        }
        for (i, row) in candidates.rows.iter().enumerate() {
            if row.len() != self.space.dimension() {
                return Err(format!(
                    "{}, row {}: {} numbers for {} axes",
                    candidates.source,
                    i + 1,
                    row.len(),
                    self.space.dimension()
                ));
            }
            if let Some((axis, v)) = self.space.axes.iter().zip(row).find(|(axis, v)| !axis.contains(**v)) {
                return Err(format!(
                    "{}, row {}: {v} is not on the axis `{}`",
                    candidates.source,
                    i + 1,
                    axis.name
                ));
            }
        }
        Ok(())
    }

    /// What may be chosen.
    pub fn space(&self) -> &Space {
        &self.space
    }

    /// What proposals are made by.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Every trial, in the order of their numbers.
    pub fn trials(&self) -> &[Trial] {
        &self.trials
    }

    /// Trials of which nothing was told yet.
    pub fn pending(&self) -> impl Iterator<Item = &Trial> {
        self.trials.iter().filter(|t| t.is_pending())
    }

    /// Rounds asked for.
    pub fn rounds(&self) -> usize {
        self.rounds
    }

    /// The best outcome.
    pub fn best(&self) -> Option<Best> {
        let upward = |t: &Trial| t.value().map(|v| self.settings.direction.upward(v));
        let best = self.trials.iter().filter(|t| upward(t).is_some()).max_by(|a, b| {
            upward(a).partial_cmp(&upward(b)).unwrap_or(std::cmp::Ordering::Equal).then(b.id.cmp(&a.id))
        })?;
        Some(Best { id: best.id, point: best.point.clone(), value: best.value()? })
    }

    /// Records what became of a trial. Telling the same again changes nothing; telling something else needs `replace`.
    ///
    /// # Errors
    /// [`DecisionError::Tell`]: no such trial, a value that is no number, another outcome told before.
    pub fn tell(&mut self, id: usize, outcome: Outcome, replace: bool) -> Result<TellOutcome, DecisionError> {
        check_outcome(&outcome)?;
        let count = self.trials.len();
        let Some(trial) = id.checked_sub(1).and_then(|i| self.trials.get_mut(i)) else {
            return Err(DecisionError::Tell(match count {
                0 => "nothing was asked for yet: ask first, or tell a point of your own".into(),
                _ => format!("there is no trial {id}; they are numbered from 1 to {count}"),
            }));
        };
        if trial.outcome == outcome {
            return Ok(TellOutcome::Repeated);
        }
        if !trial.is_pending() && !replace {
            return Err(DecisionError::Tell(format!(
                "trial {id} has an outcome already ({}); say that it should be replaced",
                describe(&trial.outcome)
            )));
        }
        trial.outcome = outcome;
        Ok(TellOutcome::Recorded)
    }

    /// Records a point that nobody asked for, and gives its number.
    ///
    /// # Errors
    /// [`DecisionError::Tell`]: coordinates that are not on their axes, a value that is no number.
    pub fn tell_point(&mut self, point: &[f64], outcome: Outcome) -> Result<usize, DecisionError> {
        check_outcome(&outcome)?;
        if point.len() != self.space.dimension() {
            return Err(DecisionError::Tell(format!(
                "the point has {} coordinates, the space {} axes",
                point.len(),
                self.space.dimension()
            )));
        }
        if let Some((axis, v)) = self.space.axes.iter().zip(point).find(|(axis, v)| !axis.contains(**v)) {
            return Err(DecisionError::Tell(format!(
                "{} = {v} is not on its axis, {}..{}",
                axis.name, axis.lower, axis.upper
            )));
        }
        let row =
            self.candidates.as_ref().and_then(|c| c.rows.iter().position(|r| r == point)).map(|i| i + 1);
        let id = self.trials.len() + 1;
        self.trials.push(Trial { id, point: point.to_vec(), row, origin: Origin::Given, round: 0, outcome });
        Ok(id)
    }

    /// The lock of a process that tries the points of the state: one at a time, or two would try the same points. It does not keep others from telling and asking.
    ///
    /// # Errors
    /// [`DecisionError::Data`] with the lock's holder, at once.
    pub fn lock_trials(path: &Path) -> Result<FileLock, DecisionError> {
        Ok(FileLock::acquire(path, "run", Duration::ZERO, &mut |_, _| false).map_err(DataError::from)?)
    }
}

impl SharedState for Campaign {
    fn check(&self) -> Result<(), String> {
        if self.format != FORMAT {
            return Err(format!("it has layout {}, this release reads {FORMAT}", self.format));
        }
        self.space.check().map_err(|e| e.to_string())?;
        self.settings.check().map_err(|e| e.to_string())?;
        self.check_candidates()?;
        for (i, trial) in self.trials.iter().enumerate() {
            let rows = self.candidates.as_ref().map_or(0, |c| c.rows.len());
            if trial.id != i + 1
                || trial.point.len() != self.space.dimension()
                || trial.round > self.rounds
                || trial.row.is_some_and(|r| r == 0 || r > rows)
            {
                return Err(format!("trial {} does not fit the others", trial.id));
            }
            if trial.point.iter().any(|v| !v.is_finite()) || check_outcome(&trial.outcome).is_err() {
                return Err(format!("trial {} has numbers that are not finite", trial.id));
            }
        }
        Ok(())
    }
}

fn check_outcome(outcome: &Outcome) -> Result<(), DecisionError> {
    match outcome {
        Outcome::Done { value } if !value.is_finite() => Err(DecisionError::Tell(format!(
            "{value} is not a finite number; if the trial failed, tell that"
        ))),
        _ => Ok(()),
    }
}

fn describe(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Pending => "pending".into(),
        Outcome::Done { value } => value.to_string(),
        Outcome::Failed { reason } => format!("failed: {reason}"),
    }
}
