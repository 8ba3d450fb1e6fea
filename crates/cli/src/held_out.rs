//! Which rows a fit leaves out, and `evaluate` scores: by chance, by class, by group, in time, by folds that are given.

use crate::args::SplitArgs;
use crate::output::Failure;
use posterior::data::{Split, Table, TimeForm, distinct_folds, folds_of_rows, groups_of_rows, times_of_rows};
use posterior::linalg::random::Streams;
use std::path::{Path, PathBuf};

/// Which rows do not train.
pub(crate) struct HeldOut<'a> {
    which: Which<'a>,
    by: By<'a>,
}

#[derive(Clone, Copy, PartialEq)]
enum Which<'a> {
    Nothing,
    /// A fold of those that a file has, or a column of the table.
    Given {
        named: &'a Path,
        fold: i64,
    },
    /// A fold of so many that are drawn.
    Drawn {
        count: usize,
        fold: i64,
    },
    Fraction(f64),
}

/// What decides which rows go together.
#[derive(Clone, Copy, PartialEq)]
enum By<'a> {
    Chance,
    Groups(&'a str),
    Time(&'a str),
}

impl SplitArgs {
    /// As the flags have it.
    ///
    /// # Errors
    /// Wrong usage: groups or times without anything to be left out, or beside folds that are given.
    pub(crate) fn held_out(&self) -> Result<HeldOut<'_>, Failure> {
        let by = match (&self.groups, &self.time) {
            (Some(column), _) => By::Groups(column),
            (_, Some(column)) => By::Time(column),
            _ => By::Chance,
        };
        let which = match (&self.folds, self.fold, self.test_fraction) {
            (Some(named), Some(fold), _) => match number_of_folds(named) {
                Some(count) => Which::Drawn { count, fold },
                None => Which::Given { named, fold },
            },
            (_, _, Some(fraction)) => Which::Fraction(fraction),
            _ => Which::Nothing,
        };
        if by != By::Chance && self.folds.is_none() && self.test_fraction.is_none() {
            let problem =
                "--groups and --time say how rows are parted: give --folds COUNT or --test-fraction";
            return Err(Failure::usage(problem.into()));
        }
        let given = self.folds.as_ref().is_some_and(|named| number_of_folds(named).is_none());
        if by != By::Chance && given {
            let problem = "--groups and --time are for folds that are drawn (--folds COUNT): yours are given";
            return Err(Failure::usage(problem.into()));
        }
        Ok(HeldOut { which, by })
    }

    /// Whether each fold is to be left out in turn.
    pub(crate) fn crosses(&self) -> bool {
        self.folds.is_some() && self.fold.is_none()
    }

    /// One fold of those that are left out in turn.
    ///
    /// # Errors
    /// As [`Self::held_out`].
    pub(crate) fn held_out_fold(&self, fold: i64) -> Result<HeldOut<'_>, Failure> {
        let own = self.held_out()?;
        let which = match self.folds.as_deref().map(|named| (named, number_of_folds(named))) {
            Some((_, Some(count))) => Which::Drawn { count, fold },
            Some((named, None)) => Which::Given { named, fold },
            None => own.which,
        };
        Ok(HeldOut { which, ..own })
    }

    /// All folds that there are.
    ///
    /// # Errors
    /// Where there are none, or they are not whole numbers.
    pub(crate) fn all_folds(&self, table: &Table) -> Result<Vec<i64>, Failure> {
        let Some(named) = self.folds.as_deref() else { return Ok(Vec::new()) };
        if let Some(count) = number_of_folds(named) {
            return Ok((0..count as i64).collect());
        }
        let given = if named.is_file() {
            Split::read_folds(named, table.rows())?
        } else {
            fold_column(named, table)?
        };
        Ok(distinct_folds(&given))
    }

    /// The file of folds, if it is one.
    pub(crate) fn file(&self) -> Option<&PathBuf> {
        self.folds.as_ref().filter(|named| number_of_folds(named).is_none() && named.is_file())
    }

    /// Columns that say which rows go together, and are no features.
    pub(crate) fn columns(&self) -> impl Iterator<Item = String> + '_ {
        let folds = self.folds.as_ref().filter(|named| number_of_folds(named).is_none() && !named.is_file());
        let folds = folds.map(|named| named.to_string_lossy().into_owned());
        folds.into_iter().chain(self.groups.clone())
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

impl HeldOut<'_> {
    /// Whether all rows train.
    pub(crate) fn is_nothing(&self) -> bool {
        self.which == Which::Nothing
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
                    "--groups, --time and folds in a column are for tables in memory: --stream false reads this one whole".into(),
                )
            })
        };
        let problem = |problem: String| Failure::usage(format!("the rows cannot be parted: {problem}"));
        let streams = Streams::new(seed);
        match (self.which, self.by) {
            (Which::Nothing, _) => Ok(Split::all(rows)),
            (Which::Given { named, fold }, _) if named.is_file() => Ok(Split::from_folds(named, fold, rows)?),
            (Which::Given { named, fold }, _) => {
                let table = whole()?;
                Ok(Split::of_folds(&fold_column(named, table)?, fold, &table.source)?)
            }
            (Which::Drawn { count, fold }, By::Chance) => {
                Split::fold(rows, (count, fold), strata, streams).map_err(problem)
            }
            (Which::Drawn { count, fold }, By::Groups(column)) => {
                Split::grouped_fold(&groups_of_rows(whole()?, column)?, (count, fold), streams)
                    .map_err(problem)
            }
            (Which::Drawn { count, fold }, By::Time(column)) => {
                Split::forward_fold(&times_of_rows(whole()?, column, order)?, (count, fold)).map_err(problem)
            }
            (Which::Fraction(f), By::Chance) => Ok(match strata {
                Some(strata) => Split::stratified(strata, f, streams),
                None => Split::random(rows, f, streams),
            }),
            (Which::Fraction(f), By::Groups(column)) => {
                Split::grouped(&groups_of_rows(whole()?, column)?, f, streams).map_err(problem)
            }
            (Which::Fraction(f), By::Time(column)) => {
                Split::newest(&times_of_rows(whole()?, column, order)?, f).map_err(problem)
            }
        }
    }
}

/// How many folds are to be drawn, where `--folds` is a number and no file of that name is there.
fn number_of_folds(named: &Path) -> Option<usize> {
    let count = named.to_str()?.parse().ok()?;
    (!named.exists()).then_some(count)
}
