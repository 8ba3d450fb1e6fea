//! Labelled images from files, or made up.

use super::error::{ExperimentError, Result, refused};
use super::pictures::Pictures;
use posterior_linalg::random::Streams;
use posterior_networks::train::Examples;
use rand_distr::{Distribution, StandardNormal};
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The table `[data]` of experiments on images.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(crate) struct ImageSettings {
    /// Folder with the four IDX files of MNIST or a sibling, counted from the experiment's file; empty: images are made up.
    pub(crate) folder: PathBuf,
    /// Training images: the first so many.
    pub(crate) train: usize,
    /// Test images: the first so many.
    pub(crate) test: usize,
    /// Mean of a pixel, 0 to 1.
    pub(crate) mean: f64,
    /// Standard deviation of a pixel.
    pub(crate) deviation: f64,
    /// Classes.
    pub(crate) classes: usize,
}

/// Examples that can be shared.
pub(crate) type Shared = Arc<dyn Examples<f32> + Send>;

/// Sides of made-up images.
pub(crate) const SIDE: usize = 12;

impl ImageSettings {
    /// Training and test images.
    ///
    /// # Errors
    /// [`ExperimentError::MissingData`] where the files are not there; damaged files; settings out of range.
    pub(crate) fn read(&self, base: &Path) -> Result<(Shared, Shared)> {
        let positive = self.deviation > 0.0 && self.deviation.is_finite() && self.mean.is_finite();
        if self.train == 0 || self.test == 0 || self.classes < 2 || self.classes > 1000 || !positive {
            return refused(
                "[data]: `train` and `test` must be at least 1, `classes` between 2 and 1000, `deviation` positive",
            );
        }
        let made_up = self.folder.as_os_str().is_empty();
        if made_up && self.train.saturating_add(self.test) > 100_000 {
            return refused("[data]: at most 100000 images are made up");
        }
        let part = |name: &str, stored: &str, count: usize| -> Result<Shared> {
            let pictures = if made_up {
                let (bytes, labels) = spots(name, count, self.classes);
                Pictures { shape: [1, SIDE, SIDE], bytes, labels }
            } else {
                let [images, labels] = idx_files(&base.join(&self.folder), stored)?;
                Pictures::read(Path::new(""), &[images], &[labels], Some(count))?
            };
            pictures.check_labels(self.classes)?;
            let input = pictures.shape;
            Ok(Arc::new(pictures.standardised((&[self.mean], &[self.deviation]), &input)?))
        };
        Ok((part("train", "train", self.train)?, part("test", "t10k", self.test)?))
    }
}

/// The IDX files of the images and labels of a part (`train` or `t10k`) in a folder.
///
/// # Errors
/// [`ExperimentError::MissingData`].
pub(crate) fn idx_files(folder: &Path, part: &str) -> Result<[PathBuf; 2]> {
    let file = |kind: &str| {
        let plain = folder.join(format!("{part}-{kind}-ubyte"));
        let packed = folder.join(format!("{part}-{kind}-ubyte.gz"));
        [packed, plain.clone()].into_iter().find(|p| p.exists()).ok_or(ExperimentError::MissingData {
            path: plain,
            remedy:
                "put the IDX files of the data set there (also .gz), or change `folder` in the experiment"
                    .into(),
        })
    };
    Ok([file("images-idx3")?, file("labels-idx1")?])
}

/// One blurred spot at a place of its own for each class, shifted at random and with noise: for runs without files. Bytes of [`SIDE`] x [`SIDE`] pixels, and classes, which take turns.
pub(crate) fn spots(part: &str, count: usize, classes: usize) -> (Vec<u8>, Vec<u32>) {
    let mut rng = Streams::new(0).stream(&format!("experiment/images/{part}"));
    let (mut bytes, mut labels) = (Vec::with_capacity(count * SIDE * SIDE), Vec::with_capacity(count));
    for i in 0..count {
        let class = i % classes;
        let mut normal = || -> f64 { StandardNormal.sample(&mut rng) };
        let angle = std::f64::consts::TAU * class as f64 / classes as f64;
        let middle = 0.5 * (SIDE as f64 - 1.0);
        let (y, x) = (middle + 3.0 * angle.sin() + normal(), middle + 3.0 * angle.cos() + normal());
        for pixel in 0..SIDE * SIDE {
            let (dy, dx) = ((pixel / SIDE) as f64 - y, (pixel % SIDE) as f64 - x);
            let value = 200.0 * (-0.5 * (dy * dy + dx * dx)).exp() + 20.0 * normal().abs();
            bytes.push(value.clamp(0.0, 255.0) as u8);
        }
        labels.push(class as u32);
    }
    (bytes, labels)
}
