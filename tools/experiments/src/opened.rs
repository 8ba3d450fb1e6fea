//! A network that came with its weights, and images that it was trained on.

use crate::error::{Result, refused};
use crate::images::Shared;
use crate::pictures::{self, Pictures};
use posterior_likelihoods::{Categorical, OutputLikelihood};
use posterior_networks::{Network, Selection};
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The table `[images]`: a network, and images that it was trained on.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(crate) struct ImageSettings {
    /// The network's file.
    pub(crate) network: PathBuf,
    /// Files of images (IDX with `labels`, or CIFAR).
    data: Vec<PathBuf>,
    #[serde(default)]
    labels: Vec<PathBuf>,
    /// The first so many.
    pub(crate) examples: usize,
    pub(crate) classes: usize,
    mean: Vec<f64>,
    deviation: Vec<f64>,
}

/// The network, its images and what its outputs mean.
pub(crate) struct Opened {
    pub(crate) network: Network<f32>,
    pub(crate) selection: Selection,
    pub(crate) examples: Shared,
    pub(crate) likelihood: OutputLikelihood,
}

impl ImageSettings {
    /// The same network with other images: the first so many of these files.
    pub(crate) fn with_images(&self, data: &[PathBuf], labels: &[PathBuf], examples: usize) -> Self {
        Self { data: data.to_vec(), labels: labels.to_vec(), examples, ..self.clone() }
    }

    /// Reads both.
    pub(crate) fn open(&self, base: &Path) -> Result<Opened> {
        let network = pictures::network::<f32>(base, &self.network)?;
        let images = Pictures::read(base, &self.data, &self.labels, Some(self.examples))?;
        if images.labels.len() < self.examples {
            return refused("[images]: there are fewer images than `examples`");
        }
        images.check_labels(self.classes)?;
        let examples = images.standardised((&self.mean, &self.deviation), network.graph().input_shape())?;
        Ok(Opened {
            selection: Selection::all(network.graph()),
            network,
            examples: Arc::new(examples),
            likelihood: OutputLikelihood::Categorical(Categorical::new(self.classes)?),
        })
    }
}
