//! The crate from outside: curvatures, tuning and predictions against brute force.

mod auto;
mod common;
mod conjugate;
mod curvature;
mod ella;
mod online;
mod prediction;
mod sampled;
