//! Checks of arguments that would otherwise fail late: sizes beyond memory, numbers that are none.

use crate::DataError;

/// Most bytes of one array that is made here: 8 GiB, as for arrays that are read.
pub(crate) const MEMORY_LIMIT: u64 = 8 << 30;

/// That an array of the shape stays within [`MEMORY_LIMIT`].
pub(crate) fn check_memory(what: &'static str, shape: &[usize], value_size: usize) -> Result<(), DataError> {
    let bytes = shape.iter().fold(value_size as u128, |n, d| n.saturating_mul(*d as u128));
    if bytes > u128::from(MEMORY_LIMIT) {
        return Err(DataError::Oversized { what, shape: shape.to_vec(), bytes, limit: MEMORY_LIMIT });
    }
    Ok(())
}

/// That the number is finite and no smaller than `least`, which is 0 or, for "positive", the smallest positive number.
pub(crate) fn finite_at_least(argument: &'static str, value: f64, least: f64) -> Result<(), DataError> {
    if value.is_finite() && value >= least {
        return Ok(());
    }
    let reason = if least > 0.0 {
        "it must be a positive finite number"
    } else {
        "it must be a finite number of at least 0"
    };
    Err(DataError::Argument { argument, value: value.to_string(), reason: reason.into() })
}
