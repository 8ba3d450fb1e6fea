//! Every command as its users run it.

mod laplace;
mod laplace_defaults;
mod large_tables;
mod networks;
mod optimize;
mod outputs;
mod tables;
mod tables_and_reports;
