//! **What a process learns from**: rows of a table, standardised, in memory or in a file, and the map that its target goes through.
//!
//! | file | what |
//! |---|---|
//! | `feature_maps` | maps of skewed features that may be tried |
//! | `file_rows` | rows to learn from that stand in a file |
//! | `prepared` | rows of a table as a process learns from them |
//! | `row_weights` | what rows count |
//! | `target_transform` | which map the target goes through |
//! | `densest` | the densest place of rows of two columns |

mod densest;
mod feature_maps;
mod file_rows;
mod prepared;
mod row_weights;
mod target_transform;

pub(crate) use densest::densest_place;
pub(crate) use feature_maps::{FeatureMaps, maps_in_words, maps_of};
pub use file_rows::FileRows;
pub(crate) use file_rows::{CANDIDATES, TableRows, candidates, in_blocks, some_of};
pub use prepared::{FitStage, Prepared};
pub(crate) use prepared::{OriginalRows, exact_plan, parting, saved_plan, targets, unscaled};
pub(crate) use row_weights::row_weights;
pub(crate) use target_transform::{ComparedRows, at_the_fit, choose, compared, no_image, of_a_model};
pub use target_transform::{TransformChoice, TriedTransform};
