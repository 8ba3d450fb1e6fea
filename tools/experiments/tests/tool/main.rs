//! Experiments from outside.

mod commands;
mod deep_kernels;
mod documents;
mod files;
mod memory;
mod quick_runs;
