//! The whole of it, in a file and back; what is told.

use super::model::Learned;
use super::{Answer, LabelSettings, Pool, PoolSource, Question, Reason};
use crate::campaign::TellOutcome;
use crate::{DecisionError, SharedState};
use posterior_notes::fixes::REPLACE;
use serde::{Deserialize, Serialize};

/// Version of the file's layout.
const FORMAT: u32 = 1;

/// Rows asked for, and what was told of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Labelling {
    format: u32,
    pub(super) pool: PoolSource,
    pub(super) settings: LabelSettings,
    /// In the order in which they were given or came.
    pub(super) classes: Vec<String>,
    pub(super) rounds: usize,
    pub(super) learned: Option<Learned>,
    pub(super) questions: Vec<Question>,
}

/// Of which row something is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// By the number of the question.
    Id(usize),
    /// By its row in the pool's file, from 1; nobody need have asked for it.
    Row(usize),
}

impl Labelling {
    /// Nothing asked; labels that the pool holds are told.
    ///
    /// # Errors
    /// [`DecisionError::Ask`] for settings that cannot work, [`DecisionError::Kernel`] for a kernel of other columns, [`DecisionError::Tell`] for labels that are no class.
    pub fn new(
        pool: &Pool,
        source: PoolSource,
        settings: LabelSettings,
    ) -> Result<(Self, Vec<String>), DecisionError> {
        settings.check()?;
        super::model::prior_kernel(&settings.kernel, &source.schema.feature_names(), None)?;
        let classes = settings.classes.clone().unwrap_or_default();
        let labels = source.labels.clone();
        let mut out = Self {
            format: FORMAT,
            pool: source,
            settings,
            classes,
            rounds: 0,
            learned: None,
            questions: Vec::new(),
        };
        let mut notes = Vec::new();
        if let Some(name) = labels {
            let column = pool.table.column(&name)?;
            for row in 0..pool.table.rows() {
                let label = column.cell(row);
                if label.trim().is_empty() {
                    continue;
                }
                let place = format!("{}, row {}", pool.table.source.display(), row + 1);
                let noted = out.admit(&label).map_err(|e| DecisionError::Tell(format!("{place}: {e}")))?;
                notes.extend(noted);
                out.push(row + 1, Reason::Given, Answer::Labelled { label });
            }
        }
        Ok((out, notes))
    }

    fn push(&mut self, row: usize, reason: Reason, answer: Answer) -> usize {
        let id = self.questions.len() + 1;
        self.questions.push(Question { id, row, reason, round: 0, value: None, believed: None, answer });
        id
    }

    /// The pool as the state knows it.
    pub fn pool(&self) -> &PoolSource {
        &self.pool
    }

    /// What rows are asked for by.
    pub fn settings(&self) -> &LabelSettings {
        &self.settings
    }

    /// The classes that are known.
    pub fn classes(&self) -> &[String] {
        &self.classes
    }

    /// Every row that was asked for or labelled, in the order of their numbers.
    pub fn questions(&self) -> &[Question] {
        &self.questions
    }

    /// Rounds asked for.
    pub fn rounds(&self) -> usize {
        self.rounds
    }

    /// Hyperparameters of the last search, if there was one.
    pub fn learned(&self) -> Option<&Learned> {
        self.learned.as_ref()
    }

    /// Labels of each class, in the order of the classes.
    pub fn counts(&self) -> Vec<usize> {
        let mut out = vec![0; self.classes.len()];
        for class in self.questions.iter().filter_map(|q| self.class_of(q)) {
            out[class] += 1;
        }
        out
    }

    /// The class of a labelled row.
    pub fn class_of(&self, question: &Question) -> Option<usize> {
        let label = question.label()?;
        self.classes.iter().position(|name| name == label)
    }

    /// The class of a label, which is added where classes grow; with what is odd about it.
    fn admit(&mut self, label: &str) -> Result<Option<String>, DecisionError> {
        if label.trim().is_empty() {
            return Err(DecisionError::Tell("the label is empty; if the row has none, skip it".into()));
        }
        if self.classes.iter().any(|name| name == label) {
            return Ok(None);
        }
        let like = |name: &&String| name.trim().to_lowercase() == label.trim().to_lowercase();
        let alike = self.classes.iter().find(like).cloned();
        if self.settings.classes.is_some() {
            let hint = alike.map_or_else(String::new, |name| format!(" (did you mean `{name}`?)"));
            let shown: Vec<&str> = self.classes.iter().take(20).map(String::as_str).collect();
            let more = self.classes.len().saturating_sub(shown.len());
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            return Err(DecisionError::Tell(format!(
                "the label `{label}` is none of the classes that were given: {}{more}{hint}",
                shown.join(", ")
            )));
        }
        self.classes.push(label.into());
        Ok(alike.map(|name| {
            format!(
                "`{label}` is a new class, and differs from `{name}` in case or spaces only: labels are taken as they stand; if it was meant to be the same, tell it again with {REPLACE}"
            )
        }))
    }

    /// Records what is told of a row. Telling the same again changes nothing; telling something else needs `replace`. Says what is odd about the label.
    ///
    /// # Errors
    /// [`DecisionError::Tell`]: no such question or row, no such class, another label told before. Nothing changes.
    pub fn tell(
        &mut self,
        which: Which,
        answer: Answer,
        replace: bool,
    ) -> Result<(TellOutcome, Option<String>), DecisionError> {
        let refuse = |problem: String| Err(DecisionError::Tell(problem));
        let count = self.questions.len();
        let place = match which {
            Which::Id(id) if (1..=count).contains(&id) => Some(id - 1),
            Which::Id(_) if count == 0 => {
                return refuse("nothing was asked for yet: ask first, or tell the label of a row".into());
            }
            Which::Id(id) => {
                return refuse(format!("there is no question {id}; they are numbered from 1 to {count}"));
            }
            Which::Row(row) if (1..=self.pool.rows).contains(&row) => {
                self.questions.iter().position(|q| q.row == row)
            }
            Which::Row(row) => {
                return refuse(format!("there is no row {row}; the pool has rows 1 to {}", self.pool.rows));
            }
        };
        if answer == Answer::Pending {
            return refuse("a label or a reason to skip is needed".into());
        }
        if let Some(place) = place {
            let known = &self.questions[place];
            if known.answer == answer {
                return Ok((TellOutcome::Repeated, None));
            }
            if !known.is_pending() && !replace {
                return refuse(format!(
                    "row {} (id {}) has an answer already ({}); say that it should be replaced ({REPLACE})",
                    known.row,
                    known.id,
                    described(&known.answer)
                ));
            }
        }
        let noted = match &answer {
            Answer::Labelled { label } => self.admit(label)?,
            _ => None,
        };
        let replaced = place.is_some_and(|place| !self.questions[place].is_pending());
        match (place, which) {
            (Some(place), _) => self.questions[place].answer = answer,
            (None, Which::Row(row)) => {
                self.push(row, Reason::Given, answer);
            }
            (None, Which::Id(_)) => {}
        }
        if replaced {
            self.forget_unused_classes();
        }
        Ok((TellOutcome::Recorded, noted))
    }

    /// Classes that grew from labels which were replaced since. What was believed refers to classes by their place, so only the last can go.
    fn forget_unused_classes(&mut self) {
        if self.settings.classes.is_some() {
            return;
        }
        while let (Some(0), place @ 1..) = (self.counts().last().copied(), self.classes.len()) {
            let believed = |q: &Question| q.believed.as_ref().is_some_and(|p| p.len() >= place);
            if self.questions.iter().any(believed) {
                return;
            }
            self.classes.pop();
        }
    }
}

impl SharedState for Labelling {
    fn check(&self) -> Result<(), String> {
        if self.format != FORMAT {
            return Err(format!("it has layout {}, this release reads {FORMAT}", self.format));
        }
        self.settings.check().map_err(|e| e.to_string())?;
        let features = self.pool.schema.features.len();
        let units = &self.pool.standardisation;
        if features == 0 || units.feature_means.len() != features || units.feature_scales.len() != features {
            return Err("its features and their units do not fit".into());
        }
        let mut rows = std::collections::HashSet::new();
        for (i, question) in self.questions.iter().enumerate() {
            let known = question.label().is_none_or(|label| self.classes.iter().any(|name| name == label));
            let believed = question.believed.as_ref().is_none_or(|p| p.len() <= self.classes.len());
            if question.id != i + 1
                || question.round > self.rounds
                || !(1..=self.pool.rows).contains(&question.row)
                || !rows.insert(question.row)
                || !known
                || !believed
            {
                return Err(format!("question {} does not fit the others", question.id));
            }
        }
        Ok(())
    }
}

fn described(answer: &Answer) -> String {
    match answer {
        Answer::Pending => "pending".into(),
        Answer::Labelled { label } => format!("`{label}`"),
        Answer::Skipped { reason } => format!("skipped: {reason}"),
    }
}
