//! Made-up problems with known truth that experiments alone need; the others are in [`posterior_data::synthetic`].
//!
//! | function | problem |
//! |---|---|
//! | [`matern_toy`] | a Matérn-3/2 process observed on two intervals: the toy problem of linearised Laplace |
//! | [`clustered_toy`] | a random network's function on three intervals |
//! | [`sine_toy`] | a sine with training, validation and test rows |
//! | [`count_fingerprints`] | sparse counts with a target drawn from a Tanimoto process |

mod fingerprints;
mod matern;
mod network_toys;
mod toy;

pub(crate) use fingerprints::{CountFingerprints, count_fingerprints};
pub use fingerprints::{FingerprintError, FingerprintSettings};
pub(crate) use matern::matern_toy;
pub(crate) use network_toys::{clustered_toy, sine_toy};
pub(crate) use toy::ToyRegression;
