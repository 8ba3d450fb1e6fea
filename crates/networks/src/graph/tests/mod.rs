//! Building graphs, choosing parameters, computing with networks.

mod builder;
mod network;
mod selection;
