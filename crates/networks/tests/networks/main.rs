//! The crate from outside: architectures, files of other tools, reference outputs.

mod architecture_counts;
mod architecture_files;
mod architecture_from_graph;
mod architecture_initialisation;
mod architecture_outputs;
mod architecture_page;
mod common;
mod recurrent_files;
mod reference_networks;
