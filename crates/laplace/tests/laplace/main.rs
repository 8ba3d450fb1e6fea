//! The crate from outside: curvatures, tuning and predictions against brute force.

mod auto;
mod common;
mod conjugate;
mod curvature;
mod ella;
mod fixed_mean;
mod fixed_mean_closed_form;
mod gwi;
mod mean_field;
mod online;
mod prediction;
mod sampled;
mod sampled_held_out;
mod shapes;
mod temperature;
