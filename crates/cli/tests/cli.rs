//! The binary from outside, in one binary of tests, so that the last long test of one half has the other half beside it.

mod commands;
mod usage;
