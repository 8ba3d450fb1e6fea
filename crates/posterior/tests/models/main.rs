//! Models from outside.

mod automatic;
mod class_recalibration;
mod compression;
mod continued;
mod count_intervals;
mod counts;
mod cox;
mod deep;
mod deep_basis;
mod deep_labels;
mod effects;
mod face;
mod kernel_parts;
mod labelled;
mod laplace;
mod laplace_files;
mod large_tables;
mod likelihoods;
mod maps;
mod model_file;
mod network_outputs;
mod network_recalibration;
mod options;
mod recalibration;
mod skewed_targets;
mod variation;
