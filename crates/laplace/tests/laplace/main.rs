//! The crate from outside: curvatures, tuning and predictions against brute force.

mod auto;
mod common;
mod conjugate;
mod curvature;
mod fixed_mean;
mod mean_field;
mod online;
mod prediction;
mod temperature;
mod ella;
mod sampled;
