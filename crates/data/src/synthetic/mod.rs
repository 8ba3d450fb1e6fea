//! Seeded problems with known truth, for demonstrations and tests.
//!
//! Every generator draws from named streams of a seed ([`posterior_linalg::random::Streams`]): the same seed gives the same
//! numbers on every machine, and two generators never share numbers. What is known of the truth is handed out next to the data:
//! the noiseless function, the noise, the centres.
//!
//! | function | problem |
//! |---|---|
//! | [`curve_with_gap`] | a smooth curve, unobserved in the middle |
//! | [`friedman`] | ten inputs of which five matter |
//! | [`smooth_classes`], [`smooth_counts`] | classes and counts whose probabilities are smooth functions, and known |
//! | [`two_moons`] | two interleaved half circles |

mod classic;
mod points;
mod smooth;

pub use classic::{CURVE_NOISE, curve, curve_with_gap, friedman};
pub use points::{LabelledPoints, clouds, two_moons};
pub use smooth::{SmoothTargets, smooth_classes, smooth_counts};
