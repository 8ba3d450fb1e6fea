//! Labelled images from files, or made up.

use super::error::{ExperimentError, refused};
use posterior_data::{ArrayValues, ImageSet, ReadOptions};
use posterior_linalg::random::Streams;
use posterior_networks::train::{Augmentation, Examples, Images, Subset, Targets};
use rand_distr::{Distribution, StandardNormal};
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The table `[data]` of experiments on images.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
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
    pub(crate) fn read(&self, base: &Path) -> Result<(Shared, Shared), ExperimentError> {
        let positive = self.deviation > 0.0 && self.deviation.is_finite() && self.mean.is_finite();
        if self.train == 0 || self.test == 0 || self.classes < 2 || self.classes > 1000 || !positive {
            return refused(
                "[data]: `train` and `test` must be at least 1, `classes` between 2 and 1000, `deviation` positive",
            );
        }
        if self.folder.as_os_str().is_empty() {
            if self.train.saturating_add(self.test) > 100_000 {
                return refused("[data]: at most 100000 images are made up");
            }
            return Ok((self.made_up("train", self.train)?, self.made_up("test", self.test)?));
        }
        let folder = base.join(&self.folder);
        Ok((self.in_folder(&folder, "train", self.train)?, self.in_folder(&folder, "t10k", self.test)?))
    }

    fn in_folder(&self, folder: &Path, part: &str, count: usize) -> Result<Shared, ExperimentError> {
        let [images, labels] = idx_files(folder, part)?;
        let set = ImageSet::read(&[images], &[labels], &ReadOptions::for_arrays())?;
        let shape = set.images.example_shape().to_vec();
        let (_, values) = set.images.into_parts();
        let (ArrayValues::U8(bytes), Some(labels), [height, width]) = (values, set.labels, &shape[..]) else {
            return refused("[data]: the files hold no labelled grey images of bytes");
        };
        self.images([1, *height, *width], bytes, labels, count)
    }

    fn images(
        &self,
        shape: [usize; 3],
        bytes: Vec<u8>,
        labels: Vec<u32>,
        count: usize,
    ) -> Result<Shared, ExperimentError> {
        if let Some(label) = labels.iter().find(|l| **l as usize >= self.classes) {
            return refused(format!("[data]: there is a label {label}, but `classes` is {}", self.classes));
        }
        let available = labels.len();
        let whole: Shared = Arc::new(Images::<f32>::new(
            shape,
            bytes,
            Targets::Classes(labels),
            &[self.mean],
            &[self.deviation],
            Augmentation::default(),
            shape.to_vec(),
        ));
        Ok(if count < available { Arc::new(Subset::new(whole, (0..count).collect())) } else { whole })
    }

    fn made_up(&self, part: &str, count: usize) -> Result<Shared, ExperimentError> {
        let (bytes, labels) = spots(part, count, self.classes);
        self.images([1, SIDE, SIDE], bytes, labels, count)
    }
}

/// The IDX files of the images and labels of a part (`train` or `t10k`) in a folder.
///
/// # Errors
/// [`ExperimentError::MissingData`].
pub(crate) fn idx_files(folder: &Path, part: &str) -> Result<[PathBuf; 2], ExperimentError> {
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
