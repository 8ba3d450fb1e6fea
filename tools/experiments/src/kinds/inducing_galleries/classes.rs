//! Grey images, class by class.

use crate::images::{SIDE, idx_files, spots};
use crate::kinds::prelude::*;
use crate::pictures::Pictures;
use std::path::{Path, PathBuf};

/// The table `[data]`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(crate) struct DataSettings {
    /// Folder with the IDX files of MNIST's training images or a sibling's, counted from the experiment's file; empty: images are made up.
    pub(crate) folder: PathBuf,
    /// Classes: the first so many.
    pub(crate) classes: usize,
    /// Images of each class: the first so many.
    pub(crate) images: usize,
    /// What bytes are multiplied by.
    #[serde(default = "to_one")]
    pub(crate) scale: f64,
}

fn to_one() -> f64 {
    1.0 / 255.0
}

/// Most images that are made up.
const MOST_MADE_UP: usize = 100_000;

impl DataSettings {
    /// Refuses numbers without a meaning.
    pub(crate) fn check(&self) -> Result<()> {
        if !(2..=256).contains(&self.classes) || self.images < 2 {
            return refused("[data]: `classes` are from 2 to 256, `images` of each at least 2");
        }
        if !positive(self.scale) {
            return refused(
                "[data]: `scale` is positive; 1 leaves bytes as they are, 1/255 makes them 0 to 1",
            );
        }
        let all = self.classes.checked_mul(self.images);
        if self.folder.as_os_str().is_empty() && all.is_none_or(|all| all > MOST_MADE_UP) {
            return refused(format!("[data]: at most {MOST_MADE_UP} images are made up"));
        }
        Ok(())
    }

    /// The images of each class, in the order in which they stand in the files.
    ///
    /// # Errors
    /// [`ExperimentError::MissingData`] where files are not there; damaged files, or of something else; a class of too few images.
    pub(crate) fn read(&self, base: &Path) -> Result<ClassImages> {
        let pictures = if self.folder.as_os_str().is_empty() {
            let (bytes, labels) = spots("train", self.classes * self.images, self.classes);
            Pictures { shape: [1, SIDE, SIDE], bytes, labels }
        } else {
            let [images, labels] = idx_files(&base.join(&self.folder), "train")?;
            Pictures::read(base, &[images], &[labels], None)?
        };
        let [channels, height, width] = pictures.shape;
        let pixels = height * width;
        if channels != 1 || pixels == 0 {
            return refused("[data]: the files hold no grey images");
        }
        let mut bytes = vec![Vec::new(); self.classes];
        for (image, &label) in pictures.bytes.chunks_exact(pixels).zip(&pictures.labels) {
            if let Some(own) = bytes.get_mut(label as usize).filter(|own| own.len() < self.images * pixels) {
                own.extend_from_slice(image);
            }
        }
        for (class, own) in bytes.iter().enumerate() {
            let found = own.len() / pixels;
            if found < self.images {
                let asked = self.images;
                return refused(format!(
                    "[data]: there are {found} images of class {class}, `images` asks for {asked} of each: lower it, or `classes`"
                ));
            }
        }
        Ok(ClassImages { sides: [height, width], bytes, scale: self.scale })
    }
}

/// Images of each class.
pub(crate) struct ClassImages {
    /// Height and width.
    pub(crate) sides: [usize; 2],
    /// Bytes of the images of each class, one image after the other.
    pub(crate) bytes: Vec<Vec<u8>>,
    /// What they are multiplied by.
    scale: f64,
}

impl ClassImages {
    /// Pixels of an image.
    pub(crate) fn pixels(&self) -> usize {
        self.sides.iter().product()
    }

    /// How many classes there are.
    pub(crate) fn classes(&self) -> usize {
        self.bytes.len()
    }

    /// The images of a class as rows of numbers.
    pub(crate) fn inputs(&self, class: usize) -> Mat<f64> {
        let (bytes, pixels) = (&self.bytes[class], self.pixels());
        Mat::from_fn(bytes.len() / pixels, pixels, |i, j| self.scale * f64::from(bytes[i * pixels + j]))
    }

    /// The bytes of one image.
    pub(crate) fn image(&self, class: usize, row: usize) -> &[u8] {
        let pixels = self.pixels();
        &self.bytes[class][row * pixels..(row + 1) * pixels]
    }
}
