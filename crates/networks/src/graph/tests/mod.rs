//! Building graphs, choosing parameters, computing with networks.

mod builder;
mod ends;
mod network;
mod recurrent;
mod selection;
