//! What files of both exporters cannot show: refusals, types of tensors, hostile files.

mod batch;
mod external;
mod hostile;
mod interface;
mod models;
mod numbers;
