//! The crate from outside: likelihoods and predictive rules against references.

mod predictive;
mod scalar;
mod vector_input;
mod vector_likelihoods;
