//! Columns of text that hold numbers in another form become columns of numbers; what their cells were is kept where it says more.

use super::csv::is_missing;
use super::dialect::{DecimalMark, TextOptions, with_point};
use super::marks::Marks;
use super::quantity::{Quantity, is_blank};
use crate::error::{first_items, short};
use crate::table::Written;
use crate::{Column, Table, Values};

/// What a column of text turned out to be.
struct Found {
    values: Vec<f64>,
    unit: String,
    /// The first cell with a unit, and the first that stands for a missing one.
    example: Option<(String, f64)>,
    blank: Option<(String, usize)>,
}

impl Found {
    /// None where a cell is no number, or has another unit than those before it.
    fn of(cells: &[Option<String>], decimal: DecimalMark) -> Option<Self> {
        let mut out = Self { values: Vec::new(), unit: String::new(), example: None, blank: None };
        let (mut plain, mut known, mut differ) = (false, true, false);
        let mut first: Option<f64> = None;
        for cell in cells {
            let Some(text) = cell else {
                out.values.push(f64::NAN);
                continue;
            };
            let Some(found) = Quantity::read(text, decimal) else {
                if !is_blank(text) {
                    return None;
                }
                out.values.push(f64::NAN);
                out.blank.get_or_insert_with(|| (text.clone(), 0)).1 += 1;
                continue;
            };
            if found.unit.is_empty() {
                // 0 is the same in all units.
                plain |= found.value != 0.0;
            } else if out.example.is_none() {
                known = found.is_known();
                out.example = Some((text.clone(), found.value));
                out.unit = found.unit;
            } else if out.unit != found.unit {
                return None;
            }
            differ |= *first.get_or_insert(found.value) != found.value;
            out.values.push(found.value);
        }
        first?;
        // A share beside numbers without a sign may be a hundred times as large; words behind numbers may be names.
        let name = !known && (plain || !differ || out.unit.chars().count() < 2);
        (!(name || plain && out.unit == "%")).then_some(out)
    }
}

/// Decides the decimal mark of a file of kinds of its own by the cells of its texts, where nobody said it.
pub(crate) fn texts_mark(table: &mut Table, text: &[String], options: &TextOptions) {
    table.mark = options.mark();
    if table.mark.is_some() {
        return;
    }
    let mut marks = Marks::default();
    for (j, column) in table.columns.iter().enumerate().filter(|(_, c)| !text.contains(&c.name)) {
        if let Values::Text(cells) = &column.values {
            cells.iter().flatten().for_each(|cell| marks.see(j, cell));
        }
    }
    let (mark, note) = marks.decide(options.trained, &table.names(), &table.source);
    table.mark = mark;
    table.notes.extend(note);
}

/// Reads the columns of a table whose cells are all numbers in any form, but for those that stand for a missing one, under the table's decimal mark. Columns in `text` stay as they are. What was read
/// otherwise than it is written comes into the table's notes.
pub(crate) fn read_numbers(table: &mut Table, text: &[String]) {
    let decimal = table.mark.map_or(DecimalMark::Point, |mark| mark.decimal);
    let (mut units, mut blanks) = (Vec::new(), Vec::new());
    for Column { name, values } in &mut table.columns {
        let Values::Text(cells) = values else { continue };
        let found = if text.contains(name) { None } else { Found::of(cells, decimal) };
        let Some(found) = found else {
            // Numbers among texts are written as those of columns of numbers are.
            if decimal == DecimalMark::Comma {
                let pointed = |cell: &String| with_point(cell).filter(|t| t.parse::<f64>().is_ok());
                cells.iter_mut().flatten().for_each(|cell| {
                    if let Some(pointed) = pointed(cell) {
                        *cell = pointed;
                    }
                });
            }
            continue;
        };
        if let Some((cell, value)) = found.example {
            units.push(format!("{} in {} (`{}` is {value})", short(name), found.unit, short(&cell)));
            let cells = std::mem::take(cells);
            table.written.insert(name.clone(), Written { unit: found.unit, cells });
        }
        if let Some((cell, count)) = found.blank {
            let plural = if count == 1 { "cell" } else { "cells" };
            blanks.push(format!("`{}` in column `{}` ({count} {plural})", short(&cell), short(name)));
        }
        *values = Values::Numeric(found.values);
    }
    let path = table.source.display();
    let sentence = |items: &[String], what: &str| {
        (!items.is_empty()).then(|| format!("{path}: {what}: {}", first_items(items)))
    };
    let notes = [sentence(&units, "read as numbers"), sentence(&blanks, "taken as missing")];
    table.notes.extend(notes.into_iter().flatten());
}

/// Whether a cell is missing, in a column of numbers or dates.
pub(crate) fn is_absent(text: &str) -> bool {
    is_missing(text) || is_blank(text)
}
