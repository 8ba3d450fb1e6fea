//! The binary format of CIFAR-10 and CIFAR-100: records of one label byte (two for CIFAR-100: coarse, fine) and 3072 pixel bytes,
//! red, green and blue planes of 32 rows by 32 columns.
//!
//! Source: A. Krizhevsky, "The CIFAR-10 dataset" and "The CIFAR-100 dataset", section "Binary version".

use super::array::{ArrayValues, NumericArray};
use super::source::Source;
use crate::{DataError, ReadOptions};
use std::path::Path;

const FORMAT: &str = "CIFAR";
const IMAGE_SHAPE: [usize; 3] = [3, 32, 32];
const PIXELS: usize = 3 * 32 * 32;

/// Which of the two data sets a file belongs to, and which labels are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CifarLabels {
    /// CIFAR-10: classes 0 to 9.
    Ten,
    /// CIFAR-100, its classes 0 to 99.
    HundredFine,
    /// CIFAR-100, its superclasses 0 to 19.
    HundredCoarse,
}

impl CifarLabels {
    /// How many classes there are: 10, 100 or 20.
    pub fn classes(self) -> usize {
        match self {
            Self::Ten => 10,
            Self::HundredFine => 100,
            Self::HundredCoarse => 20,
        }
    }

    /// Bytes of a record: 3073 or 3074.
    pub fn record_size(self) -> usize {
        self.label_classes().len() + PIXELS
    }

    /// For each label byte of a record, in the order of the file, its name and how many classes it has.
    fn label_classes(self) -> &'static [(&'static str, u8)] {
        match self {
            Self::Ten => &[("label", 10)],
            Self::HundredFine | Self::HundredCoarse => &[("coarse label", 20), ("fine label", 100)],
        }
    }

    /// Which label byte is wanted.
    fn wanted(self) -> usize {
        usize::from(self == Self::HundredFine)
    }
}

/// Images of a CIFAR file with the labels that were asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct CifarImages {
    /// One class for each image (N).
    pub labels: Vec<u8>,
    /// N x 3 x 32 x 32 bytes: image, colour plane (red, green, blue), row, column.
    pub images: NumericArray,
}

/// Reads a CIFAR binary file, gzipped or not. Takes the memory of the file.
///
/// # Errors
/// [`DataError::Read`]; [`DataError::Malformed`] for a file that is empty, is not whole records or is broken gzip;
/// [`DataError::Label`] with the first record whose label is out of range; [`DataError::TooLarge`] beyond the limit (8 GiB in
/// [`ReadOptions::for_arrays`]).
pub fn read_cifar(path: &Path, labels: CifarLabels, options: &ReadOptions) -> Result<CifarImages, DataError> {
    parse(Source::open(path, options)?.all()?, path, labels)
}

/// As [`read_cifar`], with CIFAR-10 and CIFAR-100 (its fine labels) told apart by length and labels.
pub(super) fn read_either(source: Source<'_>) -> Result<CifarImages, DataError> {
    let path = source.path.clone();
    let bytes = source.all()?;
    let whole = |kind: CifarLabels| !bytes.is_empty() && bytes.len().is_multiple_of(kind.record_size());
    let kind = match (whole(CifarLabels::Ten), whole(CifarLabels::HundredFine)) {
        (true, false) => CifarLabels::Ten,
        (false, true) => CifarLabels::HundredFine,
        (true, true) => {
            let ten = check_labels(&bytes, &path, CifarLabels::Ten).is_ok();
            if ten && check_labels(&bytes, &path, CifarLabels::HundredFine).is_ok() {
                let reason = "it can be CIFAR-10 as well as CIFAR-100; say which".into();
                return Err(DataError::Malformed { path, format: FORMAT, reason });
            }
            if ten { CifarLabels::Ten } else { CifarLabels::HundredFine }
        }
        (false, false) => {
            let reason = format!(
                "its {} bytes begin as none of NPY, NPZ and IDX do, and are no whole number of CIFAR records of 3073 \
                 (CIFAR-10) or 3074 bytes (CIFAR-100)",
                bytes.len()
            );
            return Err(DataError::UnknownArrayFormat { path, reason });
        }
    };
    parse(bytes, &path, kind)
}

fn parse(mut bytes: Vec<u8>, path: &Path, kind: CifarLabels) -> Result<CifarImages, DataError> {
    let malformed = |reason| DataError::Malformed { path: path.into(), format: FORMAT, reason };
    let size = kind.record_size();
    if bytes.is_empty() {
        return Err(malformed("it is empty".into()));
    }
    if !bytes.len().is_multiple_of(size) {
        let (records, left) = (bytes.len() / size, bytes.len() % size);
        return Err(malformed(format!(
            "it holds {records} records of {size} bytes and {left} bytes more; it is cut off or has another format"
        )));
    }
    check_labels(&bytes, path, kind)?;
    let count = bytes.len() / size;
    let label_bytes = size - PIXELS;
    let labels = (0..count).map(|i| bytes[i * size + kind.wanted()]).collect();
    // The pixels move together within the memory that they are in.
    for i in 0..count {
        let start = i * size + label_bytes;
        bytes.copy_within(start..start + PIXELS, i * PIXELS);
    }
    bytes.truncate(count * PIXELS);
    let shape = [&[count], &IMAGE_SHAPE[..]].concat();
    Ok(CifarImages { labels, images: NumericArray::new(shape, ArrayValues::U8(bytes))? })
}

/// That each label byte of each record is a class.
fn check_labels(bytes: &[u8], path: &Path, kind: CifarLabels) -> Result<(), DataError> {
    for (i, record) in bytes.chunks_exact(kind.record_size()).enumerate() {
        for (label, (name, classes)) in record.iter().zip(kind.label_classes()) {
            if label >= classes {
                let reason = format!(
                    "the {name} is {label}, but classes run from 0 to {}; the file is damaged or of the other CIFAR",
                    classes - 1
                );
                return Err(DataError::Label { path: path.into(), record: i + 1, reason });
            }
        }
    }
    Ok(())
}
