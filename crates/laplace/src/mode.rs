//! Which weights the evidence charges for.

use serde::{Deserialize, Serialize};

/// Whose norm the evidence charges for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum Mode {
    /// Linearised for networks with normalisation, and for Gaussian noise where the optimum of all weights has a closed form; else trained
    ///
    /// Linearised where normalisation makes weights scale-invariant, and where the optimum has a closed form (Gaussian noise with one factor to learn, one precision of all weights chosen by the evidence, a curvature
    /// with all entries or in function space, all weights uncertain, at most 3,000 of them or of numbers observed); else trained. Where the linear model could fit nearly all numbers, the default's
    /// hyperparameters are those of the largest evidence that leaves half of them to the noise.
    #[default]
    Auto,
    /// The trained weights
    Trained,
    /// The optimum of the linearised model; under Gaussian noise its distance from the network counts as variance
    ///
    /// Under Gaussian noise predictions count its distance from the network as variance, because they stay the network's own
    /// ([`ModeSummary::displacement`](crate::fit::ModeSummary)).
    Linearised,
    /// The same without its offset
    ///
    /// `h = J w` (thesis eq. 5.10).
    LinearisedSimple,
}
