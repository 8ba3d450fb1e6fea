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

/// What `--folds` names.
#[derive(Clone, Copy, PartialEq)]
enum Folds<'a> {
    /// So many that are drawn: a number, where no file of that name is there.
    Drawn(usize),
    /// Those of a file.
    File(&'a Path),
    /// Those of a column of the table.
    Column(&'a Path),
}

#[derive(Clone, Copy, PartialEq)]
enum Which<'a> {
    Nothing,
    Fold(Folds<'a>, i64),
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
    fn named(&self) -> Option<Folds<'_>> {
        let named = self.folds.as_deref()?;
        let count = named.to_str().and_then(|text| text.parse::<usize>().ok()).filter(|_| !named.exists());
        Some(match count {
            Some(count) => Folds::Drawn(count),
            None if named.is_file() => Folds::File(named),
            None => Folds::Column(named),
        })
    }

    /// As the flags have it.
    ///
    /// # Errors
    /// Wrong usage: groups or times without anything to be left out, or beside folds that are given.
    pub(crate) fn held_out(&self) -> Result<HeldOut<'_>, Failure> {
        self.held_out_fold(self.fold)
    }

    /// Another fold than the flags name, if one.
    ///
    /// # Errors
    /// As [`Self::held_out`].
    pub(crate) fn held_out_fold(&self, fold: Option<i64>) -> Result<HeldOut<'_>, Failure> {
        let by = match (&self.groups, &self.time) {
            (Some(column), _) => By::Groups(column),
            (_, Some(column)) => By::Time(column),
            _ => By::Chance,
        };
        let folds = self.named();
        let problem = match folds {
            _ if by == By::Chance => None,
            None if self.test_fraction.is_none() => {
                Some("--groups and --time say how rows are parted: give --folds COUNT or --test-fraction")
            }
            Some(Folds::File(_) | Folds::Column(_)) => {
                Some("--groups and --time are for folds that are drawn (--folds COUNT): yours are given")
            }
            _ => None,
        };
        if let Some(problem) = problem {
            return Err(Failure::usage(problem.into()));
        }
        let which = match (folds, fold, self.test_fraction) {
            (Some(folds), Some(fold), _) => Which::Fold(folds, fold),
            (_, _, Some(fraction)) => Which::Fraction(fraction),
            _ => Which::Nothing,
        };
        Ok(HeldOut { which, by })
    }

    /// Whether each fold is to be left out in turn.
    pub(crate) fn crosses(&self) -> bool {
        self.folds.is_some() && self.fold.is_none()
    }

    /// All folds that there are.
    ///
    /// # Errors
    /// Where there are none, or they are not whole numbers.
    pub(crate) fn all_folds(&self, table: &Table) -> Result<Vec<i64>, Failure> {
        Ok(match self.named() {
            None => Vec::new(),
            Some(Folds::Drawn(count)) => (0..count as i64).collect(),
            Some(Folds::File(path)) => distinct_folds(&Split::read_folds(path, table.rows())?),
            Some(Folds::Column(name)) => distinct_folds(&fold_column(name, table)?),
        })
    }

    /// The file of folds, if it is one.
    pub(crate) fn file(&self) -> Option<&PathBuf> {
        self.folds.as_ref().filter(|_| matches!(self.named(), Some(Folds::File(_))))
    }

    /// Columns that say which rows go together, and are no features.
    pub(crate) fn columns(&self) -> impl Iterator<Item = String> + '_ {
        let folds = match self.named() {
            Some(Folds::Column(name)) => Some(name.to_string_lossy().into_owned()),
            _ => None,
        };
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
            (Which::Fold(Folds::File(path), fold), _) => Ok(Split::from_folds(path, fold, rows)?),
            (Which::Fold(Folds::Column(name), fold), _) => {
                let table = whole()?;
                Ok(Split::of_folds(&fold_column(name, table)?, fold, &table.source)?)
            }
            (Which::Fold(Folds::Drawn(count), fold), By::Chance) => {
                Split::fold(rows, (count, fold), strata, streams).map_err(problem)
            }
            (Which::Fold(Folds::Drawn(count), fold), By::Groups(column)) => {
                Split::grouped_fold(&groups_of_rows(whole()?, column)?, (count, fold), streams)
                    .map_err(problem)
            }
            (Which::Fold(Folds::Drawn(count), fold), By::Time(column)) => {
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
