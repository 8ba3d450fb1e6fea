//! JSON lines: an object a line, whose keys are columns. Numbers are parsed in one pass; only columns that turn out to hold text are visited again.

use super::ReadOptions;
use super::csv::is_missing;
use super::encoding::decoded;
use super::header::{UNNAMED, counted_index, index_note};
use super::plan::{NUMBER, ReadPlan, room, text_cell};
use crate::error::short;
use crate::{Column, DataError, Table, Values};
use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::collections::HashMap;
use std::fmt;
use std::path::Path;

/// Columns in the order in which their keys first appear. Keys that a line lacks are missing cells, as null is; truth values are the texts `true` and `false`.
///
/// # Errors
/// [`DataError::Malformed`] naming row and key.
pub(super) fn parse(
    bytes: Vec<u8>,
    path: &Path,
    options: &ReadOptions,
    text_columns: &[String],
) -> Result<Table, DataError> {
    let malformed = |reason: String| DataError::Malformed { path: path.into(), format: "JSON lines", reason };
    let decoded = decoded(bytes, path, options)?;
    let text = &decoded.text[..];
    let plan = ReadPlan::new(path, options, text.len() as u64);
    if text.trim_ascii_start().first() == Some(&b'[') {
        let reason = "it is one array; write an object on a line of its own for each row (pandas: to_json(orient=\"records\", lines=True); jq: -c '.[]')";
        return Err(malformed(reason.into()));
    }
    let expected = rows_of(text).count();
    let mut columns: Vec<Growing> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    for (row, line) in rows_of(text).enumerate() {
        for (key, cell) in object(line, row).map_err(malformed)? {
            let place = match places.get(&key) {
                Some(place) => *place,
                None => {
                    let cells =
                        NUMBER.saturating_mul(expected as u64).saturating_mul(columns.len() as u64 + 1);
                    plan.check(expected, columns.len() + 1, cells)?;
                    let mut numbers = room(expected, path)?;
                    numbers.resize(row, f64::NAN);
                    let is_text = text_columns.contains(&key);
                    columns.push(Growing { name: key.clone(), numbers, is_text, texts: 0, rows: row });
                    places.insert(key, columns.len() - 1);
                    columns.len() - 1
                }
            };
            let column = &mut columns[place];
            if column.rows > row {
                return Err(malformed(format!(
                    "row {}: the key `{}` stands there twice",
                    row + 1,
                    short(&column.name)
                )));
            }
            column.take(cell).ok_or_else(|| {
                let key = short(&column.name);
                malformed(format!(
                    "row {}: `{key}` holds a list or an object, which is no cell; write its parts as keys of their own",
                    row + 1
                ))
            })?;
        }
        // Keys that the line lacks.
        columns.iter_mut().filter(|c| c.rows == row).for_each(Growing::lack);
    }
    let kept: u64 =
        columns.iter().map(|c| NUMBER * c.numbers.capacity() as u64 * u64::from(!c.is_text)).sum();
    let texts: u64 = columns.iter().filter(|c| c.is_text).map(|c| c.texts).sum();
    plan.check(expected, columns.len(), kept.saturating_add(texts))?;
    let mut texts: Vec<Option<Vec<Option<String>>>> = Vec::with_capacity(columns.len());
    for column in &mut columns {
        if column.is_text {
            column.numbers = Vec::new();
        }
        texts.push(column.is_text.then(|| room(expected, path)).transpose()?);
    }
    if texts.iter().any(Option::is_some) {
        for (row, line) in rows_of(text).enumerate() {
            for (key, cell) in object(line, row).map_err(malformed)? {
                if let Some(column) = places.get(&key).and_then(|place| texts[*place].as_mut()) {
                    column.resize(row, None);
                    column.push(cell.text());
                }
            }
        }
    }
    let columns: Vec<Column> = columns
        .into_iter()
        .zip(texts)
        .map(|(column, texts)| {
            let values = match texts {
                Some(mut texts) => {
                    texts.resize(expected, None);
                    Values::Text(texts)
                }
                None => Values::Numeric(column.numbers),
            };
            Column { name: column.name, values }
        })
        .collect();
    let index = counted_index(columns.first());
    let notes = decoded.note.into_iter().chain(index.as_ref().map(|_| index_note(path, UNNAMED))).collect();
    Ok(Table { notes, index, ..Table::new(path, columns) })
}

/// Lines that are not blank.
fn rows_of(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|b| matches!(b, b'\n' | b'\r')).filter(|line| !line.trim_ascii().is_empty())
}

/// A column while lines are read.
struct Growing {
    name: String,
    /// Its cells as long as all of them are numbers.
    numbers: Vec<f64>,
    is_text: bool,
    /// Bytes that its cells take as text.
    texts: u64,
    rows: usize,
}

impl Growing {
    /// None for what is no cell.
    fn take(&mut self, cell: Cell) -> Option<()> {
        let length = match &cell {
            Cell::Nested => return None,
            Cell::Text(text) if !is_missing(text) => Some(text.len()),
            Cell::Missing | Cell::Text(_) => None,
            other => other.text().map(|t| t.len()),
        };
        self.texts = self.texts.saturating_add(text_cell(length));
        self.rows += 1;
        match cell.number() {
            _ if self.is_text => {}
            Some(value) => self.numbers.push(value),
            None => {
                self.is_text = true;
                self.numbers = Vec::new();
            }
        }
        Some(())
    }

    fn lack(&mut self) {
        self.texts = self.texts.saturating_add(text_cell(None));
        self.rows += 1;
        if !self.is_text {
            self.numbers.push(f64::NAN);
        }
    }
}

/// A value of an object.
#[derive(Clone, Debug, PartialEq)]
enum Cell {
    Missing,
    Truth(bool),
    Whole(i64),
    Large(u64),
    Number(f64),
    Text(String),
    /// A list or an object.
    Nested,
}

impl Cell {
    /// NaN where it is missing, None where it is text.
    fn number(&self) -> Option<f64> {
        match self {
            Self::Missing => Some(f64::NAN),
            Self::Whole(value) => Some(*value as f64),
            Self::Large(value) => Some(*value as f64),
            Self::Number(value) => Some(*value),
            Self::Text(text) if is_missing(text) => Some(f64::NAN),
            Self::Truth(_) | Self::Text(_) | Self::Nested => None,
        }
    }

    /// As it stands in a column of text.
    fn text(&self) -> Option<String> {
        match self {
            Self::Missing | Self::Nested => None,
            Self::Truth(value) => Some(value.to_string()),
            Self::Whole(value) => Some(value.to_string()),
            Self::Large(value) => Some(value.to_string()),
            Self::Number(value) => Some(value.to_string()),
            Self::Text(text) => (!is_missing(text)).then(|| text.clone()),
        }
    }
}

/// Keys and cells of a line in their order.
fn object(line: &[u8], row: usize) -> Result<Vec<(String, Cell)>, String> {
    let found: serde_json::Result<Object> = serde_json::from_slice(line);
    found.map(|object| object.0).map_err(|error| {
        let place = error.column();
        let what = error.to_string();
        let what = what.split(" at line ").next().unwrap_or_default();
        format!("row {}, character {place}: {}; a row is an object on one line", row + 1, short(what))
    })
}

struct Object(Vec<(String, Cell)>);

impl<'de> Deserialize<'de> for Object {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Keys;
        impl<'de> Visitor<'de> for Keys {
            type Value = Object;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Object, A::Error> {
                let mut out = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    out.push(pair);
                }
                Ok(Object(out))
            }
        }
        deserializer.deserialize_map(Keys)
    }
}

impl<'de> Deserialize<'de> for Cell {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;
        impl<'de> Visitor<'de> for Any {
            type Value = Cell;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number, a text, a truth value or null")
            }
            fn visit_unit<E: Error>(self) -> Result<Cell, E> {
                Ok(Cell::Missing)
            }
            fn visit_bool<E: Error>(self, value: bool) -> Result<Cell, E> {
                Ok(Cell::Truth(value))
            }
            fn visit_i64<E: Error>(self, value: i64) -> Result<Cell, E> {
                Ok(Cell::Whole(value))
            }
            fn visit_u64<E: Error>(self, value: u64) -> Result<Cell, E> {
                Ok(Cell::Large(value))
            }
            fn visit_f64<E: Error>(self, value: f64) -> Result<Cell, E> {
                Ok(Cell::Number(value))
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Cell, E> {
                Ok(Cell::Text(text.trim().to_string()))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Cell, A::Error> {
                while list.next_element::<IgnoredAny>()?.is_some() {}
                Ok(Cell::Nested)
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Cell, A::Error> {
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(Cell::Nested)
            }
        }
        deserializer.deserialize_any(Any)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Table, DataError> {
        parse(text.as_bytes().to_vec(), Path::new("t.jsonl"), &ReadOptions::default(), &[])
    }

    fn cells(table: &Table, name: &str) -> Vec<String> {
        let column = table.column(name).unwrap();
        (0..table.rows()).map(|row| column.cell(row)).collect()
    }

    #[test]
    fn objects_are_rows_whatever_keys_they_have() {
        let text = "{\"b\": 1, \"a\": \"x\"}\n\n{\"a\": null, \"c\": true}\r\n{\"c\": false, \"b\": -2.5e-3, \"d\": 7}\n";
        let table = read(text).unwrap();
        assert_eq!((table.names(), table.rows()), (["b", "a", "c", "d"].map(String::from).to_vec(), 3));
        assert_eq!(cells(&table, "b"), ["1", "", "-0.0025"]);
        assert_eq!(cells(&table, "a"), ["x", "", ""]);
        assert_eq!(cells(&table, "c"), ["", "true", "false"]);
        assert_eq!(cells(&table, "d"), ["", "", "7"]);
        assert!(matches!(table.column("b").unwrap().values, Values::Numeric(_)));
        // Doubles are read to the last bit, and a number beside text is text.
        let table =
            read("{\"x\": 0.1, \"y\": 18446744073709551615}\n{\"x\": 1e308, \"y\": \"é\\n\"}").unwrap();
        assert_eq!(table.columns[0].values, Values::Numeric(vec![0.1, 1e308]));
        assert_eq!(cells(&table, "y"), ["18446744073709551615", "é"]);
        let forced =
            parse(b"{\"x\": 1}".to_vec(), Path::new("t"), &ReadOptions::default(), &["x".into()]).unwrap();
        assert_eq!(forced.columns[0].values, Values::Text(vec![Some("1".into())]));
        let index = read("{\"Unnamed: 0\":3,\"a\":1}\n{\"Unnamed: 0\":4,\"a\":2}").unwrap();
        assert_eq!(index.index.as_deref(), Some("Unnamed: 0"));
    }

    #[test]
    fn what_is_no_table_is_an_error_with_its_row() {
        for (text, expected) in [
            ("{\"a\":1}\n{\"a\":[1,2]}", "row 2: `a` holds a list or an object"),
            ("{\"a\":{\"b\":1}}", "row 1: `a` holds a list or an object"),
            ("{\"a\":1,\"a\":2}", "row 1: the key `a` stands there twice"),
            ("[{\"a\":1}]", "it is one array"),
            ("{\"a\":1}\n{\"a\":NaN}", "row 2, character 6: expected value"),
            ("{\"a\":1e999}", "row 1, character"),
            ("{\n\"a\": 1\n}", "row 1, character 1: EOF while parsing an object"),
            ("1", "row 1, character"),
        ] {
            let message = read(text).unwrap_err().to_string();
            assert!(message.contains(expected) && message.len() < 300, "{text}: {message}");
        }
        // As deep as it likes.
        let deep = format!("{{\"a\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000));
        assert!(read(&deep).is_err());
        // A key of its own for each of many rows.
        let wide: String = (0..2000).map(|i| format!("{{\"k{i}\":1}}\n")).collect();
        let limited = ReadOptions::limited(1 << 20);
        let failed = parse(wide.into_bytes(), Path::new("t"), &limited, &[]);
        assert!(matches!(failed, Err(DataError::TableTooLarge { .. })), "{failed:?}");
    }
}
