//! Reading, splitting and changing data, from outside.

mod arrays_images;
mod arrays_numpy;
mod arrays_real;
mod bad_inputs;
mod columns;
#[path = "../common/mod.rs"]
mod common;
mod corruptions;
mod feature_matrices;
mod formats;
mod formats_together;
mod piped;
mod reading_memory;
mod rotation;
mod texts;
mod workbooks;
