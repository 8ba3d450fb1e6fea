//! Images with their labels, from one file or several.

use super::array::{ArrayValues, NumericArray};
use super::cifar::{CifarLabels, read_cifar};
use super::images::{Content, read_content};
use crate::{DataError, ReadOptions};
use std::path::{Path, PathBuf};

/// Images, and the class of each where it is known.
#[derive(Clone, Debug, PartialEq)]
pub struct ImageSet {
    /// The images; the first dimension counts them.
    pub images: NumericArray,
    /// One class for each image, from 0.
    pub labels: Option<Vec<u32>>,
}

impl ImageSet {
    /// Reads the images of the given files, put together in their order, and their labels: from the label files, if there are
    /// any (IDX, NPY or NPZ vectors of whole numbers), else from the CIFAR files themselves. The formats are those of
    /// [`crate::read_images`]; CIFAR-100 files give their fine labels (see [`ImageSet::read_cifar`] for the coarse ones). The limit
    /// holds for all the files together; putting several together may take twice the memory while it lasts.
    ///
    /// # Errors
    /// As [`crate::read_images`]; [`DataError::DoNotMatch`] for images of different shapes or types, labels that are no vector of
    /// whole numbers, counts of images and labels that differ, or labels given twice; [`DataError::Label`] for a negative label;
    /// [`DataError::NothingLeft`] if there are no images.
    pub fn read(images: &[PathBuf], labels: &[PathBuf], options: &ReadOptions) -> Result<Self, DataError> {
        let mut budget = *options;
        let mut set = Self::put_together(images, &mut budget, |path, options| {
            let Content { images, labels: own } = read_content(path, options)?;
            if own.is_some()
                && let Some(first) = labels.first()
            {
                return Err(DataError::DoNotMatch {
                    path: first.clone(),
                    reason: format!("{} holds labels already; leave this file out", path.display()),
                });
            }
            Ok((images, own))
        })?;
        let Some(last) = labels.last() else {
            return Ok(set);
        };
        let mut all = Vec::new();
        for path in labels {
            all.append(&mut read_labels(path, &mut budget)?);
        }
        let (found, expected) = (all.len(), set.images.examples());
        if found != expected {
            let reason = format!(
                "there are {found} labels up to this file, but {expected} images; give the labels that belong to the images"
            );
            return Err(DataError::DoNotMatch { path: last.clone(), reason });
        }
        set.labels = Some(all);
        Ok(set)
    }

    /// As [`ImageSet::read`] for CIFAR files of which it is known which they are, and which labels are wanted.
    ///
    /// # Errors
    /// As [`crate::read_cifar`], and [`DataError::NothingLeft`] without files.
    pub fn read_cifar(
        paths: &[PathBuf],
        labels: CifarLabels,
        options: &ReadOptions,
    ) -> Result<Self, DataError> {
        Self::put_together(paths, &mut options.clone(), |path, options| {
            let cifar = read_cifar(path, labels, options)?;
            Ok((cifar.images, Some(cifar.labels)))
        })
    }

    /// Each file's images after those of the files before it.
    fn put_together(
        paths: &[PathBuf],
        budget: &mut ReadOptions,
        mut read: impl FnMut(&Path, &ReadOptions) -> Result<(NumericArray, Option<Vec<u8>>), DataError>,
    ) -> Result<Self, DataError> {
        let nothing = |path: &Path, why: &str| DataError::NothingLeft { path: path.into(), why: why.into() };
        let mut set: Option<Self> = None;
        for path in paths {
            let (images, labels) = read(path, budget)?;
            if images.is_empty() || images.shape().is_empty() {
                return Err(nothing(path, &format!("reading an array of shape {:?}", images.shape())));
            }
            budget.memory_limit = budget.memory_limit.saturating_sub(images.values().memory());
            let labels = labels.map(|l| l.into_iter().map(u32::from).collect::<Vec<_>>());
            let Some(set) = &mut set else {
                set = Some(Self { images, labels });
                continue;
            };
            let differs = |reason| DataError::DoNotMatch { path: path.clone(), reason };
            match (&mut set.labels, labels) {
                (Some(all), Some(mut more)) => all.append(&mut more),
                (None, None) => {}
                _ => {
                    return Err(differs(
                        "CIFAR files, which carry labels, and other files cannot be mixed".into(),
                    ));
                }
            }
            set.images.append(images).map_err(differs)?;
        }
        set.ok_or_else(|| nothing(Path::new("images"), "reading no files; name at least one"))
    }
}

/// A vector of classes.
fn read_labels(path: &Path, budget: &mut ReadOptions) -> Result<Vec<u32>, DataError> {
    let wrong = |reason| DataError::DoNotMatch { path: path.into(), reason };
    let Content { images: array, labels: None } = read_content(path, budget)? else {
        return Err(wrong("a CIFAR file is no file of labels; give it as images".into()));
    };
    budget.memory_limit = budget.memory_limit.saturating_sub(array.values().memory());
    if !matches!(array.shape(), [_] | [_, 1]) {
        return Err(wrong(format!(
            "labels are a vector of whole numbers, but this has shape {:?}",
            array.shape()
        )));
    }
    match array.values() {
        ArrayValues::U8(values) => Ok(values.iter().map(|v| u32::from(*v)).collect()),
        ArrayValues::I64(values) => {
            let class = |(i, value): (usize, &i64)| {
                u32::try_from(*value).map_err(|_| DataError::Label {
                    path: path.into(),
                    record: i + 1,
                    reason: format!("the label is {value}; classes are counted from 0"),
                })
            };
            values.iter().enumerate().map(class).collect()
        }
        other => Err(wrong(format!("labels are whole numbers, but these are {}", other.type_name()))),
    }
}
