//! Models and experiments from outside.

mod automatic;
mod class_recalibration;
mod compression;
mod count_intervals;
mod counts;
mod cox;
mod deep;
mod deep_basis;
mod deep_experiments;
mod deep_labels;
mod experiment_files;
mod experiments;
mod face;
mod kernel_parts;
mod labelled;
mod laplace;
mod laplace_files;
mod large_tables;
mod likelihoods;
mod maps;
mod model_file;
mod network_recalibration;
mod options;
mod recalibration;
mod skewed_targets;
mod variation;
