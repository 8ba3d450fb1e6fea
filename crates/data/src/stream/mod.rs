//! **Large tables, part by part**: CSV (also gzipped) and Parquet files of which only a few thousand rows are in memory at a time; several files of the same columns are one table.
//!
//! Three passes: one counts the rows, so that a split can be drawn; one learns the schema, merging what each part teaches ([`learn_schema`]); one collects the
//! numbers that the model sees ([`extract`]). What stays in memory at the end is what a model needs anyway, n x D numbers; text, other columns and other rows
//! never are there together. The result is the same, bit for bit, as from the whole table at once.
//!
//! | file | idea |
//! |---|---|
//! | `table_parts` | [`TableParts`]: an iterator over parts of one file or several |
//! | `csv`, `parquet` | one for each format |
//! | `learn` | schema and numbers from parts |

mod csv;
mod learn;
mod parquet;
mod table_parts;

#[cfg(test)]
mod tests;

pub use crate::read::source_of;
pub use learn::{extract, extract_to_file, learn_schema};
pub(crate) use parquet::column_names;
pub use table_parts::{Part, StreamOptions, TableParts, count_rows, is_streamable, locate};
