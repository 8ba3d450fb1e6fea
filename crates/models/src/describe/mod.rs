//! **Models in words**: facts, tables and notes of processes, networks and ensembles.
//!
//! | file | what |
//! |---|---|
//! | `network` | a network with error bars in words; facts, prior, comparison, notes |
//! | `ensemble` | an ensemble in words |
//! | `network_search` | posteriors that were found by a search of their own, in words |
//! | `process` | a process in words |
//! | `hyperparameters` | hyperparameters in words |
//! | `likelihood` | processes under other likelihoods than Gaussian noise in words |
//! | `standing` | scores beside a baseline, and what is never left out |
//! | `report` | a process for programs |

pub(crate) mod ensemble;
mod hyperparameters;
mod likelihood;
pub(crate) mod network;
mod network_search;
mod process;
mod report;
mod standing;

pub(crate) use hyperparameters::{hyperparameters, lengthscales};
pub(crate) use network::evidence;
pub(crate) use process::FEW_STEPS;
pub(crate) use process::{FUNNEL, funnel_in_words, funnel_remedy, table_of};
pub(crate) use report::report;
pub(crate) use standing::{NO_BETTER, Standing, grouped};
