//! What files of both exporters cannot show: refusals, types of tensors, hostile files.

mod attention;
mod batch;
mod choices;
mod classical;
mod external;
mod extremes;
mod folding;
mod functions;
mod hostile;
mod interface;
mod models;
mod numbers;
mod operator_sets;
mod operators;
mod patterns;
mod products;
mod recurrent;
