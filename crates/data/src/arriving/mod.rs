//! **Rows that arrive one after the other**, on standard input or at the end of a file that grows, as CSV or as lines of JSON.
//!
//! A line is a row: a cell of CSV holds no end of line, so that a row that is damaged (a quotation mark that is not closed, a line that is too long) is one bad row and not the end of all that follow. What is in memory is a batch,
//! whatever arrives.
//!
//! A file may be read while it is written. The newline at the end of a line says that all of it is there; [`SourceEnd`] says what a last line without one is.
//!
//! | file | idea |
//! |---|---|
//! | `lines` | [`ArrivingLines`]: lines with the place where each ends, a batch at a time |
//! | `rows` | [`RowFormat`]: lines as rows of a table |

mod lines;
mod rows;
#[cfg(test)]
mod tests;

/// The cells of a row, as bytes.
pub use csv::ByteRecord as Cells;
pub use lines::{ArrivingLines, Line, SourceEnd};
pub use rows::{RowFormat, RowKind};
