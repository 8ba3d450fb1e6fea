//! Valid files of every format, damaged in many ways: no panic escapes, nothing hangs, memory stays bounded.
//!
//! `POSTERIOR_FUZZ_ITERATIONS=1000000 cargo test --release -p posterior-data --test mutations` runs a million of each.

mod arrays;
#[path = "../common/mod.rs"]
mod common;
mod tables;
