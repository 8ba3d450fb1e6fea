//! The `posterior` binary.
fn main() {}
