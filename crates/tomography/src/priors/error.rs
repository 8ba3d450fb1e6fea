//! Why a prior could not be built or fitted.

use posterior_optim::OptimError;

/// What went wrong, and what to do about it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PriorError {
    /// A setting outside its range.
    #[error("{what} is {value}, but must be {needed}")]
    Setting {
        /// Which setting.
        what: &'static str,
        /// Its value.
        value: f64,
        /// The range it must be in.
        needed: &'static str,
    },
    /// Two sizes that must agree do not.
    #[error("{what}: expected {expected}, got {actual}")]
    Shape {
        /// Which sizes.
        what: &'static str,
        /// What was needed.
        expected: usize,
        /// What was given.
        actual: usize,
    },
    /// The evidence could not be maximised.
    #[error("maximising the evidence of the pilot scan: {0}")]
    Fit(#[from] OptimError),
}

/// [`PriorError::Setting`] unless the value is positive and finite.
pub(super) fn positive(what: &'static str, value: f64) -> Result<(), PriorError> {
    let needed = "positive and finite";
    if value > 0.0 && value.is_finite() { Ok(()) } else { Err(PriorError::Setting { what, value, needed }) }
}
