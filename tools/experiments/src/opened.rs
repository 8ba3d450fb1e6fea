//! A network that came with its weights, and images that it was trained on.

use crate::error::{ExperimentError, refused};
use crate::images::Shared;
use posterior_data::{ArrayValues, ImageSet, ReadOptions};
use posterior_likelihoods::{Categorical, OutputLikelihood};
use posterior_models::network::{NetworkFile, Strip, open_network};
use posterior_networks::train::{Augmentation, Images, Subset, Targets};
use posterior_networks::{Network, Selection};
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The table `[images]`: a network, and images that it was trained on.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
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
    pub(crate) fn open(&self, base: &Path) -> Result<Opened, ExperimentError> {
        let found = |path: &PathBuf| -> Result<PathBuf, ExperimentError> {
            let path = base.join(path);
            let remedy = || "put the file there, or change the path in the experiment".to_string();
            if path.exists() {
                Ok(path)
            } else {
                Err(ExperimentError::MissingData { path, remedy: remedy() })
            }
        };
        let all = |paths: &[PathBuf]| paths.iter().map(found).collect::<Result<Vec<_>, _>>();
        let network = open_network::<f32>(&NetworkFile {
            strip: Strip::SoftmaxIfThere,
            ..NetworkFile::new(&found(&self.network)?)
        })?
        .network;
        let set = ImageSet::read(&all(&self.data)?, &all(&self.labels)?, &ReadOptions::for_arrays())?;
        let shape = match *set.images.example_shape() {
            [height, width] => [1, height, width],
            [channels, height, width] => [channels, height, width],
            _ => return refused("[images]: images have two or three dimensions"),
        };
        let (_, values) = set.images.into_parts();
        let (ArrayValues::U8(bytes), Some(labels)) = (values, set.labels) else {
            return refused("[images]: the files hold no labelled images of bytes");
        };
        let input = network.graph().input_shape().to_vec();
        if [self.mean.len(), self.deviation.len()] != [shape[0]; 2]
            || !self.deviation.iter().all(|d| *d > 0.0)
        {
            return refused(
                "[images]: `mean` and `deviation` have a number for each channel, positive deviations",
            );
        }
        if input.iter().product::<usize>() != shape.iter().product::<usize>() {
            return refused(format!("[images]: the network takes {input:?}, images are {shape:?}"));
        }
        if labels.len() < self.examples || labels.iter().any(|l| *l as usize >= self.classes) {
            return refused("[images]: there are fewer images than `examples`, or a label beyond `classes`");
        }
        let whole: Shared = Arc::new(Images::<f32>::new(
            shape,
            bytes,
            Targets::Classes(labels),
            &self.mean,
            &self.deviation,
            Augmentation::default(),
            input,
        ));
        Ok(Opened {
            selection: Selection::all(network.graph()),
            network,
            examples: Arc::new(Subset::new(whole, (0..self.examples).collect())),
            likelihood: OutputLikelihood::Categorical(Categorical::new(self.classes)?),
        })
    }
}
