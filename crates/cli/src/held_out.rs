//! Which rows a fit leaves out, and `evaluate` scores: by chance, by class, by group, in time, by folds that are given.

use crate::args::SplitArgs;
use crate::output::Failure;
use posterior::data::{Split, Table, TimeForm, distinct_folds, folds_of_rows, groups_of_rows, times_of_rows};
use posterior::linalg::random::Streams;
use posterior::notes::fixes::STREAM_FALSE;
use std::path::{Path, PathBuf};

impl SplitArgs {
    /// Whether the flags go together.
    ///
    /// # Errors
    /// Wrong usage: groups or times beside folds that are given.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        if self.groups.is_none() && self.time.is_none() {
            return Ok(());
        }
        if self.given().is_some() {
            let problem = "--groups and --time are for folds that are drawn (--folds COUNT): yours are given";
            return Err(Failure::usage(problem.into()));
        }
        Ok(())
    }

    /// Whether each fold is to be left out in turn.
    pub(crate) fn crosses(&self) -> bool {
        self.folds.is_some() && self.fold.is_none()
    }

    /// Whether all rows train.
    pub(crate) fn is_nothing(&self) -> bool {
        self.fold.is_none() && self.test_fraction.is_none()
    }

    /// One fold of those that are left out in turn.
    pub(crate) fn of_fold(&self, fold: i64) -> Self {
        Self { fold: Some(fold), ..self.clone() }
    }

    /// How many folds are to be drawn, where `--folds` is a number and no file of that name is there.
    fn drawn(&self) -> Option<usize> {
        let named = self.folds.as_ref()?;
        let count = named.to_str()?.parse().ok()?;
        (!named.exists()).then_some(count)
    }

    /// The file or the column of folds, where they are given.
    fn given(&self) -> Option<&PathBuf> {
        self.folds.as_ref().filter(|_| self.drawn().is_none())
    }

    /// All folds that there are.
    ///
    /// # Errors
    /// Where there are none, or they are not whole numbers.
    pub(crate) fn all_folds(&self, table: &Table) -> Result<Vec<i64>, Failure> {
        let Some(named) = self.given() else { return Ok((0..self.drawn().unwrap_or(0) as i64).collect()) };
        let given = if named.is_file() {
            Split::read_folds(named, table.rows())?
        } else {
            fold_column(named, table)?
        };
        Ok(distinct_folds(&given))
    }

    /// The file of folds, if it is one.
    pub(crate) fn file(&self) -> Option<&PathBuf> {
        self.given().filter(|named| named.is_file())
    }

    /// The column of folds, which is no feature.
    pub(crate) fn columns(&self) -> impl Iterator<Item = String> + '_ {
        let folds = self.given().filter(|named| !named.is_file());
        let folds = folds.map(|named| named.to_string_lossy().into_owned());
        folds.into_iter()
    }

    /// For so many rows; a share, or a fold that is drawn, is one of every class, where the rows have `strata`. `table` is theirs, where it is in memory; `order` is that of dates such as 3/4/2021.
    pub(crate) fn split(
        &self,
        table: Option<&Table>,
        rows: usize,
        strata: Option<&[usize]>,
        (seed, order): (u64, Option<TimeForm>),
    ) -> Result<Split, Failure> {
        let whole = || {
            table.ok_or_else(|| {
                Failure::usage(
                    format!("--groups, --time and folds in a column are for tables in memory: {STREAM_FALSE} reads this one whole"),
                )
            })
        };
        if self.is_nothing() {
            return Ok(Split::all(rows));
        }
        if let (Some(named), Some(fold)) = (self.given(), self.fold) {
            if named.is_file() {
                return Ok(Split::from_folds(named, fold, rows)?);
            }
            let table = whole()?;
            return Ok(Split::of_folds(&fold_column(named, table)?, fold, &table.source)?);
        }
        let groups = match &self.groups {
            Some(column) => Some(groups_of_rows(whole()?, column)?),
            None => None,
        };
        let times = match &self.time {
            Some(column) => Some(times_of_rows(whole()?, column, order)?),
            None => None,
        };
        let (share, streams) = (self.test_fraction.unwrap_or(0.0), Streams::new(seed));
        let split = match (self.drawn().zip(self.fold), groups, times) {
            (Some(fold), Some(groups), _) => Split::grouped_fold(&groups, fold, streams),
            (Some(fold), _, Some(times)) => Split::forward_fold(&times, fold),
            (Some(fold), ..) => Split::fold(rows, fold, strata, streams),
            (None, Some(groups), _) => Split::grouped(&groups, share, streams),
            (None, _, Some(times)) => Split::newest(&times, share),
            (None, ..) => Ok(match strata {
                Some(strata) => Split::stratified(strata, share, streams),
                None => Split::random(rows, share, streams),
            }),
        };
        split.map_err(|problem| Failure::usage(format!("the rows cannot be parted: {problem}")))
    }
}

/// The folds in a column of the table.
fn fold_column(named: &Path, table: &Table) -> Result<Vec<i64>, Failure> {
    let column = table.column(&named.to_string_lossy()).map_err(|_| {
        Failure::usage(format!(
            "--folds {} is no number of folds, no file that is there, and no column of {}",
            named.display(),
            table.source.display()
        ))
    })?;
    Ok(folds_of_rows(column, &table.source)?)
}
