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
//! | [`matern_toy`] | a Matérn-3/2 process observed on two intervals: the toy problem of linearised Laplace |
//! | [`clustered_toy`] | a random network's function on three intervals |
//! | [`sine_toy`] | a sine with training, validation and test rows |
//! | [`count_fingerprints`] | sparse counts with a target drawn from a Tanimoto process |
//! | [`smooth_classes`], [`smooth_counts`] | classes and counts whose probabilities are smooth functions, and known |
//! | [`two_moons`] | two interleaved half circles |

mod classic;
mod fingerprints;
mod matern;
mod network_toys;
mod points;
mod smooth;
mod toy;

pub use classic::{CURVE_NOISE, curve, curve_with_gap, friedman};
pub use fingerprints::{
    CountFingerprints, FingerprintError, FingerprintSettings, MOST_FINGERPRINTS, count_fingerprints,
};
pub use matern::{MATERN_LENGTHSCALE, MATERN_NOISE, matern_toy};
pub use network_toys::{CLUSTERED_NOISE, CLUSTERS, SINE_NOISE, SineToy, clustered_toy, sine_toy};
pub use points::{LabelledPoints, clouds, two_moons};
pub use smooth::{SmoothTargets, smooth_classes, smooth_counts};
pub use toy::ToyRegression;
