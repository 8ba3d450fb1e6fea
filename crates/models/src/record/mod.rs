//! **Records of fits**: how a model came about, what was searched, tried and compared. No prediction reads them.
//!
//! | file | what |
//! |---|---|
//! | `network` | networks |
//! | `inputs` | kind and range of a network's inputs, and how far others leave them |
//! | `check` | how good it is on rows that had no part in it |
//! | `deep` | learned features |
//! | `likelihood` | fits under other likelihoods than Gaussian noise |
//! | `gvi` | generalised variational inference |
//! | `process` | processes |
//! | `large` | fits to large tables |
//! | `streamed` | what a model has learned from a stream after its fit |

mod check;
mod deep;
mod gvi;
mod inputs;
mod large;
mod likelihood;
mod network;
mod process;
mod streamed;

pub(crate) use check::{CONVERGED, NOT_COMPARED, OUTLIERS, unsolved_in_words};
pub use check::{CheckScores, FitCheck, TriedMethod};
pub use deep::{DeepSummary, TriedSetting};
pub use gvi::{GviSummary, KernelNetwork, MeanKind, PriorSummary, TriedCandidate};
pub use inputs::{Departure, ElementKind, InputRecord};
pub(crate) use large::TrainingSummary;
pub use large::{EvidenceSearchSummary, ScalableSummary};
pub(crate) use likelihood::PSEUDO_COUNTS;
pub use likelihood::{
    BoundSummary, BoundedPseudoCount, FeatureSummary, GaussianLabelSummary, GeneralisedSummary, LabelCheck,
    LabelScores, ModeSummary, PlainProcess, TriedInference, TriedPseudoCount, VariationSummary,
};
pub use network::{DataRecord, HeldOutRecord, InputKind, NetworkHeader, NetworkRecord};
pub use process::{ContinuedRows, FitRecord, FitSummary, ProcessRecord, TableSource};
pub use streamed::StreamedRows;
