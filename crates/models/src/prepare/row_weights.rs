//! What rows count, by a column of the table.

use crate::ModelError;
use posterior_data::{MissingTarget, Schema, Table};

/// The weights of the given rows: positive numbers of a column.
///
/// # Errors
/// [`ModelError::Data`] for cells that are no numbers; [`ModelError::Request`] naming a row whose weight is not positive.
pub(crate) fn row_weights(table: &Table, column: &str, rows: &[usize]) -> Result<Vec<f64>, ModelError> {
    let own = Schema {
        missing_target: MissingTarget::Error,
        ..Schema::of(table.column(column)?.name.clone(), Vec::new())
    };
    let read = own.extract(table, rows, true)?.y.unwrap_or_default();
    match read.iter().position(|w| *w <= 0.0) {
        None => Ok(read),
        Some(place) => {
            let (file, row) = table.place(rows[place]);
            Err(ModelError::Request(format!(
                "{}, row {}: the weight in `{column}` is {}; weights are positive: leave out rows that count for nothing",
                file.display(),
                row + 1,
                read[place]
            )))
        }
    }
}
