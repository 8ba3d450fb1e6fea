//! Every command as its users run it.

mod classes;
mod experiments;
mod from_disk;
mod gaussianised;
mod label;
mod laplace;
mod laplace_calibration;
mod laplace_defaults;
mod laplace_inputs;
mod laplace_interrupted;
mod laplace_search_flags;
mod laplace_search_outputs;
mod laplace_searches;
mod large_tables;
mod learned_labels;
mod networks;
mod networks_common;
mod optimize;
mod outputs;
mod several_files;
mod stream;
mod tables;
mod tables_and_reports;
mod threads;
mod tomography;
