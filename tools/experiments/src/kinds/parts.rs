//! Small parts of many kinds: what settings have to be, what is made when it is first asked for, lines of pictures.

use super::prelude::*;

/// Whether a number is above 0 and finite.
pub(super) fn positive(value: f64) -> bool {
    value > 0.0 && value.is_finite()
}

/// Whether there is at least one of some values, each once.
pub(super) fn each_once<T: PartialEq>(values: &[T]) -> bool {
    !values.is_empty() && !values.iter().enumerate().any(|(i, value)| values[..i].contains(value))
}

/// What stands in a place, made when it is first asked for: a run whose parts an earlier one has finished makes none of it.
pub(super) fn made<V>(place: &mut Option<V>, make: impl FnOnce() -> Result<V>) -> Result<&mut V> {
    Ok(match place {
        Some(value) => value,
        None => place.insert(make()?),
    })
}

/// The root mean square of each row.
pub(super) fn root_mean_squares(rows: &Mat<f64>) -> Vec<f64> {
    let count = rows.ncols().max(1) as f64;
    rows.row_iter().map(|row| (row.squared_norm_l2() / count).sqrt()).collect()
}

/// A line through points.
pub(super) fn through(name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>) -> Line {
    let (x, y) = points.into_iter().unzip();
    Line::new(name, x, y)
}

/// A line of values by their number, from 0.
pub(super) fn by_step(name: impl Into<String>, values: impl IntoIterator<Item = f64>) -> Line {
    through(name, values.into_iter().enumerate().map(|(i, value)| (i as f64, value)))
}
