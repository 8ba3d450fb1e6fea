//! Arrays and images in any format that is read, told apart by content.

use super::array::NumericArray;
use super::npz::{file_name, looks_like_npy, looks_like_npz, read_array};
use super::source::Source;
use super::{cifar, idx, npy};
use crate::read::split_array_name;
use crate::{DataError, ReadOptions};
use std::path::Path;

/// What a file of images holds.
pub(super) struct Content {
    pub(super) images: NumericArray,
    /// The labels that CIFAR files carry with their images.
    pub(super) labels: Option<Vec<u8>>,
}

/// Reads the numbers of any of the formats: NPY and NPZ (`FILE.npz:NAME` where it has several arrays), IDX and CIFAR binary, all
/// but NPZ also gzipped; CIFAR labels are left out ([`crate::ImageSet`] keeps them).
///
/// The content decides: NPY, NPZ and IDX have a mark at their beginning; what has none is CIFAR if its length is that of whole
/// records. Since a CIFAR record can begin as IDX does, files called `.bin` (or `.bin.gz`) are never taken for IDX.
///
/// # Errors
/// As [`read_array`], [`crate::read_idx`] and [`crate::read_cifar`]; [`DataError::UnknownArrayFormat`] for anything else.
pub fn read_images(path: &Path, options: &ReadOptions) -> Result<NumericArray, DataError> {
    Ok(read_content(path, options)?.images)
}

pub(super) fn read_content(path: &Path, options: &ReadOptions) -> Result<Content, DataError> {
    let without_labels = |images| Content { images, labels: None };
    if split_array_name(path).1.is_some() {
        return read_array(path, options).map(without_labels);
    }
    let mut source = Source::open(path, options)?;
    if looks_like_npz(&source) {
        return read_array(path, options).map(without_labels);
    }
    if looks_like_npy(&source) {
        return npy::read(&mut source).map(without_labels);
    }
    let name = file_name(path);
    let binary = name.ends_with(".bin") || name.ends_with(".bin.gz");
    if !binary && idx::looks_like_idx(&source.head) {
        return idx::read(&mut source).map(without_labels);
    }
    let cifar = cifar::read_either(source)?;
    Ok(Content { images: cifar.images, labels: Some(cifar.labels) })
}
