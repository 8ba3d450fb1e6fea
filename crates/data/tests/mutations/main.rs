//! Valid files of every format, damaged in many ways: no panic escapes, nothing hangs, memory stays bounded.
//!
//! `POSTERIOR_FUZZ_ITERATIONS=1000000 cargo test --release -p posterior-data --test mutations` runs a million of each.

mod arrays;
#[path = "../common/mod.rs"]
mod common;
mod tables;

use std::time::{Duration, Instant};

/// Most bytes that a case may read.
const READ_LIMIT: u64 = 64 << 20;

/// Most that the process may ever have held.
const PEAK_LIMIT_KB: u64 = 1 << 20;

/// Says how so many damaged files of a kind were taken: none for long, none with more memory than allowed.
fn judge(name: &str, count: u64, accepted: usize, started: Instant, slowest: Duration) {
    let peak = common::peak_kb();
    println!(
        "{name}: {count} damaged files, {accepted} still readable, {:.1?}, slowest {slowest:.1?}, peak {peak} kB",
        started.elapsed()
    );
    assert!(slowest < Duration::from_secs(2), "{name}: a damaged file took {slowest:?}");
    assert!(peak < PEAK_LIMIT_KB, "{name}: {peak} kB");
}
