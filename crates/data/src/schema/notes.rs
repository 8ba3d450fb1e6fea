//! What was found in the rows and done about it.

use faer::MatRef;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::hash::{BuildHasher, Hasher, RandomState};

/// What was found in the data and done about it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Notes {
    /// Rows left out because of missing or infinite cells, those without a target among them.
    pub dropped_rows: usize,
    /// Rows left out because they have no target.
    pub rows_without_target: usize,
    /// Cells filled in.
    pub filled_cells: usize,
    /// Cells of categories that training had not, taken as none of those that it had.
    pub unseen_categories: usize,
    /// What the columns were taken for, where nobody had said it, in sentences.
    pub columns: Vec<String>,
    /// What columns look like that nobody has said, in sentences.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hints: Vec<String>,
    /// Features that do not vary.
    pub constant_features: Vec<String>,
    /// Rows whose inputs repeat those of an earlier row.
    pub duplicate_rows: usize,
    /// They are half of the rows at least, so that rows that are left out at random have inputs that were learned from.
    pub mostly_duplicates: bool,
    /// The target does not vary.
    pub constant_target: bool,
    /// Fewer rows than features.
    pub fewer_rows_than_features: bool,
}

impl Notes {
    /// As sentences, for people; empty when there is nothing to say.
    pub fn sentences(&self) -> Vec<String> {
        let plural = |n: usize, one: &str| format!("{n} {one}{}", if n == 1 { "" } else { "s" });
        let mut out = self.columns.clone();
        if self.rows_without_target > 0 {
            out.push(format!("{} without a target left out", plural(self.rows_without_target, "row")));
        }
        let others = self.dropped_rows - self.rows_without_target.min(self.dropped_rows);
        if others > 0 {
            out.push(format!("{} with missing or infinite cells left out", plural(others, "row")));
        }
        if self.filled_cells > 0 {
            out.push(format!(
                "{} filled with the training mean (categories: taken as none of those that there are)",
                plural(self.filled_cells, "missing cell")
            ));
        }
        if self.unseen_categories > 0 {
            out.push(format!(
                "{} of categories that training had not, taken as none of those that it had",
                plural(self.unseen_categories, "cell")
            ));
        }
        out.extend(self.hints.iter().cloned());
        if !self.constant_features.is_empty() {
            out.push(format!(
                "constant, hence without influence: {}",
                crate::error::listed(&self.constant_features)
            ));
        }
        if self.duplicate_rows > 0 {
            let others = match self.mostly_duplicates {
                true => {
                    ", half of all at least: rows that are left out at random have inputs that were learned from, and rows with new inputs may be predicted worse than such a check says \
                     (to know, leave all rows of a place or a person out together)"
                }
                false => "",
            };
            let repeat = plural(self.duplicate_rows, "row");
            out.push(format!("{repeat} repeat the inputs of an earlier row{others}"));
        }
        if self.constant_target {
            out.push("the target does not vary".into());
        }
        if self.fewer_rows_than_features {
            out.push("fewer rows than features: expect wide intervals".into());
        }
        out
    }

    /// What was done to rows and cells, without what they are like.
    pub fn of_cells(&self) -> Self {
        let mut out = Self::default();
        out.count(self);
        out
    }

    /// The same with what all rows (n x D, n targets) are like, in any units, in the place of what those before were like.
    pub fn of_all(mut self, x: MatRef<'_, f64>, y: &[f64], names: &[String]) -> Self {
        describe(&mut self, x, Some(y), names);
        self
    }

    /// Takes what was done to cells and rows of another part of the same table into account.
    pub fn count(&mut self, part: &Self) {
        self.dropped_rows += part.dropped_rows;
        self.rows_without_target += part.rows_without_target;
        self.filled_cells += part.filled_cells;
        self.unseen_categories += part.unseen_categories;
    }
}

pub(crate) fn describe(notes: &mut Notes, x: MatRef<'_, f64>, y: Option<&[f64]>, names: &[String]) {
    let mut seen = Described::new(x.nrows(), x.ncols());
    let mut row = vec![0.0; x.ncols()];
    for i in 0..x.nrows() {
        row.iter_mut().zip(x.row(i).iter()).for_each(|(v, x)| *v = *x);
        seen.see(&row, y.map(|y| y[i]));
    }
    seen.note(notes, names);
}

/// What is odd about rows, one after the other.
pub(crate) struct Described {
    rows: usize,
    /// The first row, and whether each column has been like it.
    first: Vec<f64>,
    constant: Vec<bool>,
    target: Option<f64>,
    constant_target: bool,
    hashers: [RandomState; 2],
    /// 128 bits of each row instead of the row: a million rows collide by chance with a probability of 1e-27.
    seen: HashSet<[u64; 2]>,
    repeated: usize,
}

impl Described {
    /// For so many rows and inputs.
    pub(crate) fn new(rows: usize, inputs: usize) -> Self {
        Self {
            rows: 0,
            first: Vec::new(),
            constant: vec![true; inputs],
            target: None,
            constant_target: true,
            hashers: [RandomState::new(), RandomState::new()],
            seen: HashSet::with_capacity(rows),
            repeated: 0,
        }
    }

    /// Takes a row of inputs with its target into account.
    pub(crate) fn see(&mut self, inputs: &[f64], target: Option<f64>) {
        if self.rows == 0 {
            self.first = inputs.to_vec();
            self.target = target;
        }
        self.rows += 1;
        for ((constant, v), first) in self.constant.iter_mut().zip(inputs).zip(&self.first) {
            *constant &= v == first;
        }
        self.constant_target &= target == self.target;
        let key = self.hashers.each_ref().map(|state| {
            let mut hasher = state.build_hasher();
            // Adding 0 makes -0 and 0 one key.
            inputs.iter().for_each(|v| hasher.write_u64((v + 0.0).to_bits()));
            hasher.finish()
        });
        self.repeated += usize::from(!self.seen.insert(key));
    }

    pub(crate) fn note(self, notes: &mut Notes, names: &[String]) {
        let constant = self.constant.iter().zip(names).filter(|(constant, _)| **constant);
        notes.constant_features = constant.map(|(_, name)| name.clone()).collect();
        notes.constant_target = self.target.is_some() && self.constant_target;
        notes.fewer_rows_than_features = self.rows < self.constant.len();
        notes.duplicate_rows = self.repeated;
        notes.mostly_duplicates = self.repeated > 0 && 2 * self.repeated >= self.rows;
    }
}
