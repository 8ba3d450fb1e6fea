//! Which mark of a file is the decimal one: its cells decide, all columns together.

use super::dialect::DecimalMark;
use super::quantity::{Shape, is_blank, shape};
use crate::error::short;
use csv::ByteRecord;
use posterior_notes::fixes::{DECIMAL_COMMA, DECIMAL_POINT};
use std::path::Path;

/// The decimal mark of a file, and whether its cells decided it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NumberMark {
    /// The mark.
    pub decimal: DecimalMark,
    /// False where all numbers with a mark could be read in either way and nobody said how.
    pub decided: bool,
}

/// What the cells of a file say about its decimal mark.
#[derive(Clone, Debug, Default)]
pub(crate) struct Marks {
    columns: Vec<ColumnMarks>,
}

/// The cells of a column.
#[derive(Clone, Debug, Default)]
struct ColumnMarks {
    numbers: usize,
    others: usize,
    /// Cells that are numbers under a decimal point, or comma, only.
    only: [usize; 2],
    /// The first cell whose mark, a dot or a comma, may be either.
    either: [Option<String>; 2],
    /// Whether there are numbers without a mark below 1,000, and others.
    small: bool,
    large: bool,
    money: bool,
}

/// How sure the cells make it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Evidence {
    /// Some number can be read in one way only.
    Certain(DecimalMark),
    /// Numbers below 1,000 have no mark and all others have one before three digits, or they are money.
    Likely(DecimalMark),
    /// Every mark stands before three digits: that of this column (its number).
    None(usize),
    /// There are no marks.
    NoMarks,
}

fn place(mark: DecimalMark) -> usize {
    usize::from(mark == DecimalMark::Comma)
}

impl Marks {
    /// Takes a cell of a column into account, unless most of it is text.
    pub(crate) fn see(&mut self, column: usize, cell: &str) {
        if self.columns.len() <= column {
            self.columns.resize(column + 1, ColumnMarks::default());
        }
        let own = &mut self.columns[column];
        if own.others > 100 + own.numbers {
            return;
        }
        match shape(cell) {
            None if cell.trim().is_empty() || is_blank(cell) => {}
            None => own.others += 1,
            Some((shape, money)) => {
                own.numbers += 1;
                own.money |= money;
                match shape {
                    Shape::NoMark { small } => {
                        own.small |= small;
                        own.large |= !small;
                    }
                    Shape::Only(mark) => own.only[place(mark)] += 1,
                    Shape::Either(mark) => {
                        own.either[place(mark)].get_or_insert_with(|| cell.trim().into());
                    }
                }
            }
        }
    }

    /// Takes a record into account.
    pub(crate) fn see_all(&mut self, record: &ByteRecord) {
        let cells = record.iter().enumerate();
        cells.for_each(|(column, cell)| self.see(column, std::str::from_utf8(cell).unwrap_or("?!")));
    }

    /// Columns of numbers: a few cells may be something else.
    fn numeric(&self) -> impl Iterator<Item = (usize, &ColumnMarks)> {
        self.columns.iter().enumerate().filter(|(_, own)| own.numbers > 0 && 20 * own.others <= own.numbers)
    }

    pub(crate) fn evidence(&self) -> Evidence {
        use DecimalMark::{Comma, Point};
        let certain = |mark| self.numeric().any(|(_, own)| own.only[place(mark)] > 0);
        if let Some(mark) = [Point, Comma].into_iter().find(|mark| certain(*mark)) {
            return Evidence::Certain(mark);
        }
        let groups = |mark| {
            self.numeric()
                .any(|(_, own)| own.either[place(mark)].is_some() && (own.money || own.small && !own.large))
        };
        match (groups(Point), groups(Comma)) {
            (true, false) => return Evidence::Likely(Comma),
            (false, true) => return Evidence::Likely(Point),
            _ => {}
        }
        let open = |mark| self.numeric().find(|(_, own)| own.either[place(mark)].is_some());
        match open(Point).or_else(|| open(Comma)) {
            Some((column, _)) => Evidence::None(column),
            None => Evidence::NoMarks,
        }
    }

    /// The decimal mark where `before` is what a model's training has, with a note where nobody knows or a mark stands between thousands. `names` are those of the columns.
    pub(crate) fn decide(
        &self,
        before: Option<DecimalMark>,
        names: &[String],
        path: &Path,
    ) -> (Option<NumberMark>, Option<String>) {
        use DecimalMark::{Comma, Point};
        let (decimal, decided) = match self.evidence() {
            Evidence::Certain(mark) => (mark, true),
            Evidence::NoMarks => return (before.map(|decimal| NumberMark { decimal, decided: true }), None),
            Evidence::Likely(mark) => (before.unwrap_or(mark), true),
            Evidence::None(column) => {
                let first = if self.columns[column].either[place(Point)].is_some() { Point } else { Comma };
                (before.unwrap_or(first), before.is_some())
            }
        };
        let mark = NumberMark { decimal, decided };
        let of = |mark: DecimalMark| {
            let open = |(column, own): (usize, &ColumnMarks)| {
                own.either[place(mark)].clone().map(|cell| (names.get(column), cell))
            };
            self.numeric().find_map(open)
        };
        let (path, other) = (path.display(), if decimal == Point { Comma } else { Point });
        let other_fix = if decimal == Point { DECIMAL_COMMA } else { DECIMAL_POINT };
        let column = |name: Option<&String>| short(name.map_or("", String::as_str));
        let sign = |mark| if mark == Point { "." } else { "," };
        let note = if decided {
            of(other).map(|(name, cell)| {
                format!(
                    "{path}: `{}` groups thousands, as in `{}` of column `{}` ({other_fix} reads it as the decimal mark)",
                    sign(other),
                    short(&cell),
                    column(name)
                )
            })
        } else {
            of(decimal).map(|(name, cell)| {
                format!(
                    "{path}: `{}` in column `{}` could be read in two ways, and no cell decides: its `{}` is taken as the decimal mark ({other_fix} takes it as a mark between thousands)",
                    short(&cell),
                    column(name),
                    sign(decimal)
                )
            })
        };
        (Some(mark), note)
    }
}
