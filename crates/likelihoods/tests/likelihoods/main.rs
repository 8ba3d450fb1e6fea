//! The crate from outside: likelihoods and predictive rules against references.

mod custom;
mod derivatives;
mod input;
mod predictive;
