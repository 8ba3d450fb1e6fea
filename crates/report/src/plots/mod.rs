//! One picture per file. Each is a function from data to a [`crate::figure::Figure`].

mod calibration;
mod histogram;
mod posterior;
mod predictions;
mod relevance;
mod residuals;
mod widths;

pub(crate) use calibration::calibration;
pub(crate) use posterior::posterior;
pub(crate) use predictions::predictions;
pub(crate) use relevance::relevance;
pub(crate) use residuals::{against_prediction, distribution};
pub(crate) use widths::widths;

/// Standard deviations on either side in a central 95 % interval.
pub(crate) const Z95: f64 = 1.959_963_984_540_054;
