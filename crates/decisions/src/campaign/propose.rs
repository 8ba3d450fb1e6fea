//! From what is known to the next points.

use super::model::{Model, draw};
use super::{Campaign, Direction, Origin, Outcome, Strategy, Trial};
use crate::{DecisionError, Functions, Known, maximise};
use faer::Mat;
use posterior_linalg::random::Streams;
use posterior_optim::Signal;
use rand::RngExt;
use rand::seq::SliceRandom;
use serde::Serialize;
use std::collections::HashSet;

/// A point, its row if it is one of a table, and where it came from.
type Proposed = (Vec<f64>, Option<usize>, Origin);

/// Candidates of a table evaluated at a time.
const BLOCK: usize = 4096;

/// Most points of one round: each is a draw with weights of its own, and among candidates each draw keeps as many rows as there are draws.
pub const MOST_ASKED: usize = 2_000;

/// What is being done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Hyperparameters.
    Evidence,
    /// Draws from the posterior.
    Draws,
    /// Their maxima.
    Maxima,
}

/// What a round proposed, and by what.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Proposal {
    /// Numbers of the new trials.
    pub ids: Vec<usize>,
    /// Names and values of the hyperparameters, in units of the cube and of standardised values; empty without a model.
    pub hyperparameters: Vec<(String, Vec<f64>)>,
    /// Log evidence of the points that chose them.
    pub log_evidence: Option<f64>,
    /// What was chosen, added or left out.
    pub notes: Vec<String>,
}

impl Campaign {
    /// Proposes `count` points (1 to [`MOST_ASKED`]), pending until something is told of them. They are functions of the seed, the round and what was told: a crash between two calls changes
    /// nothing.
    ///
    /// Cost: one exact fit to at most `evidence_rows` points, one factorisation of all points, and the search for maxima ([`maximise`]).
    ///
    /// # Errors
    /// [`DecisionError::Ask`] for too many points or when candidates run out, [`DecisionError::Gp`], [`DecisionError::Interrupted`].
    pub fn ask(
        &mut self,
        count: usize,
        observer: &mut dyn FnMut(Stage, usize, usize) -> Signal,
    ) -> Result<Proposal, DecisionError> {
        if count == 0 || count > MOST_ASKED {
            return Err(DecisionError::Ask(format!(
                "{count} points were asked for; ask for 1 to {MOST_ASKED} at a time"
            )));
        }
        let streams = Streams::new(self.settings.seed).child("decisions/round", self.rounds as u64);
        let mut taken = self.taken_rows();
        if let Some(c) = &self.candidates
            && c.rows.len() - taken.len() < count
        {
            return Err(DecisionError::Ask(format!(
                "{count} candidates were asked for, but only {} of {} in {} are left",
                c.rows.len() - taken.len(),
                c.rows.len(),
                c.source
            )));
        }
        let mut proposal =
            Proposal { ids: Vec::new(), hyperparameters: Vec::new(), log_evidence: None, notes: Vec::new() };
        let told = self.trials.iter().any(|t| t.value().is_some());
        let spread = self.trials.iter().filter(|t| t.origin == Origin::Initial).count();
        let first =
            if told { self.settings.initial.saturating_sub(self.trials.len()).min(count) } else { count };
        let mut points: Vec<Proposed> = self
            .spread(spread, first, streams, &mut taken)
            .into_iter()
            .map(|(p, r)| (p, r, Origin::Initial))
            .collect();
        let rest = count - first;
        if rest > 0 {
            match self.settings.strategy {
                Strategy::Random => {
                    let mut rng = streams.stream("decisions/random");
                    for _ in 0..rest {
                        points.push(match self.random_row(&mut rng, &mut taken) {
                            Some((point, row)) => (point, Some(row), Origin::Random),
                            None => (self.anywhere(&mut rng), None, Origin::Random),
                        });
                    }
                }
                Strategy::Thompson => {
                    points.extend(self.thompson(rest, streams, &mut taken, &mut proposal, observer)?);
                }
            }
        }
        self.rounds += 1;
        for (point, row, origin) in points {
            let id = self.trials.len() + 1;
            proposal.ids.push(id);
            self.trials.push(Trial { id, point, row, origin, round: self.rounds, outcome: Outcome::Pending });
        }
        Ok(proposal)
    }

    /// Rows of the table that were asked for or told.
    fn taken_rows(&self) -> HashSet<usize> {
        self.trials.iter().filter_map(|t| t.row).collect()
    }

    /// Evenly spread points: a Latin hypercube of all initial points, of which these are the next. Rows at random for tables.
    fn spread(
        &self,
        from: usize,
        count: usize,
        streams: Streams,
        taken: &mut HashSet<usize>,
    ) -> Vec<(Vec<f64>, Option<usize>)> {
        if self.candidates.is_some() {
            let mut rng = streams.stream("decisions/rows");
            return (0..count)
                .filter_map(|_| self.random_row(&mut rng, taken))
                .map(|(p, r)| (p, Some(r)))
                .collect();
        }
        let (d, size) = (self.space.dimension(), self.settings.initial.max(1));
        // For each axis the places of all points of a design.
        let design = |k: usize| -> Vec<Vec<f64>> {
            let mut rng = Streams::new(self.settings.seed)
                .child("decisions/design", k as u64)
                .stream("decisions/cells");
            let mut axis = || {
                let mut cells: Vec<usize> = (0..size).collect();
                cells.shuffle(&mut rng);
                cells.into_iter().map(|cell| (cell as f64 + rng.random::<f64>()) / size as f64).collect()
            };
            (0..d).map(|_| axis()).collect()
        };
        // Beyond the design there is another one.
        let first = from / size;
        let designs: Vec<_> = (first..(from + count).div_ceil(size)).map(design).collect();
        let each = |i: usize| -> Vec<f64> {
            designs[i / size - first].iter().map(|places| places[i % size]).collect()
        };
        (from..from + count).map(|i| (self.space.from_unit(&each(i)), None)).collect()
    }

    fn anywhere(&self, rng: &mut impl RngExt) -> Vec<f64> {
        let unit: Vec<f64> = (0..self.space.dimension()).map(|_| rng.random()).collect();
        self.space.from_unit(&unit)
    }

    /// A row that nobody took, and that is taken now.
    fn random_row(&self, rng: &mut impl RngExt, taken: &mut HashSet<usize>) -> Option<(Vec<f64>, usize)> {
        let candidates = self.candidates.as_ref()?;
        let free: Vec<usize> = (1..=candidates.rows.len()).filter(|r| !taken.contains(r)).collect();
        let row = *free.get(rng.random_range(0..free.len().max(1)))?;
        taken.insert(row);
        Some((candidates.rows[row - 1].clone(), row))
    }

    fn thompson(
        &self,
        count: usize,
        streams: Streams,
        taken: &mut HashSet<usize>,
        proposal: &mut Proposal,
        observer: &mut dyn FnMut(Stage, usize, usize) -> Signal,
    ) -> Result<Vec<Proposed>, DecisionError> {
        let (points, values) = self.known(proposal);
        let Model { functions, lengthscales, hyperparameters, log_evidence, notes } =
            draw(&self.space, &self.settings, &points, &values, count, streams, observer)?;
        proposal.hyperparameters = hyperparameters;
        proposal.log_evidence = Some(log_evidence);
        proposal.notes.extend(notes);
        if self.candidates.is_some() {
            let rows = self.best_rows(&*functions, taken)?;
            let candidates = self.candidates.as_ref().map(|c| &c.rows);
            return Ok(rows
                .into_iter()
                .filter_map(|r| Some((candidates?.get(r - 1)?.clone(), Some(r), Origin::Thompson)))
                .collect());
        }
        let known = Known { points: points.as_ref(), values: &values, lengthscales: &lengthscales };
        let mut watch = |done, total| observer(Stage::Maxima, done, total);
        let maxima = maximise(&*functions, known, &self.settings.multistart, streams, &mut watch)?;
        if maxima.interrupted {
            return Err(DecisionError::Interrupted);
        }
        let unit = |i: usize| -> Vec<f64> { maxima.points.row(i).iter().copied().collect() };
        Ok((0..count).map(|i| (self.space.from_unit(&unit(i)), None, Origin::Thompson)).collect())
    }

    /// Points in the cube and what came out, large being good. Failures count as the worst that was seen.
    fn known(&self, proposal: &mut Proposal) -> (Mat<f64>, Vec<f64>) {
        let upward = |v: f64| Direction::upward(self.settings.direction, v);
        let worst = self.trials.iter().filter_map(|t| t.value().map(upward)).fold(f64::INFINITY, f64::min);
        let used: Vec<(&Trial, f64)> = self
            .trials
            .iter()
            .filter_map(|t| match &t.outcome {
                Outcome::Pending => None,
                Outcome::Done { value } => Some((t, upward(*value))),
                Outcome::Failed { .. } => Some((t, worst)),
            })
            .collect();
        let failures = used.iter().filter(|(t, _)| t.value().is_none()).count();
        if failures > 0 {
            proposal.notes.push(format!(
                "{failures} failed trials were taken for as bad as the worst value that was told"
            ));
        }
        let units: Vec<Vec<f64>> = used.iter().map(|(t, _)| self.space.to_unit(&t.point)).collect();
        let points = Mat::from_fn(units.len(), self.space.dimension(), |i, j| units[i][j]);
        (points, used.into_iter().map(|(_, v)| v).collect())
    }

    /// For each function the best row that is still free.
    fn best_rows(
        &self,
        functions: &dyn Functions,
        taken: &mut HashSet<usize>,
    ) -> Result<Vec<usize>, DecisionError> {
        let Some(candidates) = &self.candidates else { return Ok(Vec::new()) };
        let free: Vec<usize> = (1..=candidates.rows.len()).filter(|r| !taken.contains(r)).collect();
        let s = functions.count();
        // The best s rows of each function: other functions may take up to s - 1 of them first.
        let mut best: Vec<Vec<(f64, usize)>> = vec![Vec::new(); s];
        for rows in free.chunks(BLOCK) {
            let units: Vec<Vec<f64>> =
                rows.iter().map(|r| self.space.to_unit(&candidates.rows[r - 1])).collect();
            let x = Mat::from_fn(rows.len(), self.space.dimension(), |i, j| units[i][j]);
            let values = functions.values(x.as_ref())?;
            for (f, list) in best.iter_mut().enumerate() {
                list.extend(values.col(f).iter().copied().zip(rows.iter().copied()));
                list.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
                list.truncate(s);
            }
        }
        let mut chosen = Vec::with_capacity(s);
        for list in best {
            if let Some((_, row)) = list.into_iter().find(|(_, row)| !taken.contains(row)) {
                taken.insert(row);
                chosen.push(row);
            }
        }
        Ok(chosen)
    }
}
