//! Reading, splitting and changing data, from outside.

mod arrays_images;
mod arrays_numpy;
mod arrays_real;
mod bad_inputs;
#[path = "../common/mod.rs"]
mod common;
mod corruptions;
mod feature_matrices;
mod reading_memory;
mod rotation;
