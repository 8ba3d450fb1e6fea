//! One picture per file. Each is a function from data to a [`crate::figure::Figure`].

mod calibration;
mod confusion;
mod curves;
mod distributions;
mod gallery;
mod histogram;
mod hues;
mod layers;
mod named;
mod picture;
mod plane;
mod posterior;
mod posterior_panels;
mod predictions;
mod relevance;
mod reliability;
mod residuals;
mod widths;

pub(crate) use calibration::calibration;
pub(crate) use confusion::confusion;
pub(crate) use curves::curves;
pub(crate) use distributions::distributions;
pub(crate) use gallery::gallery;
pub(crate) use layers::layers;
pub(crate) use named::named;
pub(crate) use picture::picture;
pub(crate) use plane::plane;
pub(crate) use posterior::posterior;
pub(crate) use posterior_panels::posterior_panels;
pub(crate) use predictions::predictions;
pub(crate) use relevance::relevance;
pub(crate) use reliability::reliability;
pub(crate) use residuals::{against_prediction, distribution};
pub(crate) use widths::widths;

/// Standard deviations on either side in a central 95 % interval.
pub(crate) const Z95: f64 = 1.959_963_984_540_054;

/// The name of a class, or its number if it has none.
pub(crate) fn class_name(names: &[String], class: usize) -> String {
    names.get(class).cloned().unwrap_or_else(|| class.to_string())
}
