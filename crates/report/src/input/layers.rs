//! The layers of a network and what reads what.

use serde::{Deserialize, Serialize};

/// A network as a picture: its layers in the order they are computed, one below the other.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LayerGraph {
    /// Heading.
    pub title: String,
    /// What goes in: its shape.
    pub input: String,
    /// The layers.
    pub layers: Vec<LayerBox>,
    /// How to read it; may be empty.
    pub caption: String,
}

/// One layer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LayerBox {
    /// Its name.
    pub name: String,
    /// What it computes.
    pub operation: String,
    /// Shape of what it makes.
    pub shape: String,
    /// How many weights it has, as text; empty for none.
    pub weights: String,
    /// What becomes of these weights; may be empty.
    pub note: String,
    /// What it reads: 0 is the input of the network, i the output of layer i, counted from 1. Numbers that are not above it in the picture are left out.
    pub inputs: Vec<usize>,
}
