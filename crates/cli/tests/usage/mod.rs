//! The binary as its documentation and its grammar say: every command line that is printed runs, no number that a flag may get makes it panic.

mod documents;
mod fixes;
mod help;
pub(crate) mod inputs;
mod links;
mod plans;
mod sweep;
mod terminal;
