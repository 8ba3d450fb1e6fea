//! **Files for a network with several inputs**: an array for each, put side by side.

use super::reading::{alike, any_array, file_name, in_precision};
use super::{NetworkFileError, refuse};
use posterior_data::{ArrayValues, ImageSet, NumericArray, ReadOptions};
use posterior_onnx::NetworkInput;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// An input of a network that has several, as a model's header keeps it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputRecord {
    /// Its name.
    pub name: String,
    /// The shape of one example.
    pub shape: Vec<usize>,
}

impl InputRecord {
    /// Those of a network with several; none of a network with one, which needs no name.
    pub(super) fn of(inputs: Vec<NetworkInput>) -> Vec<Self> {
        let several = inputs.len() > 1;
        let own = |NetworkInput { name, shape }| Self { name, shape };
        inputs.into_iter().filter(|_| several).map(own).collect()
    }

    /// What they are; None of a network with one.
    pub(super) fn sentence(inputs: &[Self]) -> Option<String> {
        let each: Vec<String> =
            inputs.iter().take(20).map(|own| format!("`{}` {:?}", own.name, own.shape)).collect();
        let more = if inputs.len() > each.len() { ", ..." } else { "" };
        (!inputs.is_empty()).then(|| {
            format!(
                "{} inputs, in this order parts of one row of numbers: {}{more}",
                inputs.len(),
                each.join(", ")
            )
        })
    }
}

/// The file of one of several inputs, `NAME=FILE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputFile {
    /// The input.
    pub name: String,
    /// An array, examples first.
    pub path: PathBuf,
}

impl FromStr for InputFile {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            Some((name, path)) if !name.is_empty() && !path.is_empty() => {
                Ok(Self { name: name.into(), path: path.into() })
            }
            _ => Err("it must be NAME=FILE, as in `image=x.npy`".into()),
        }
    }
}

impl InputFile {
    /// Names and files, in their order.
    pub fn parts(files: &[Self]) -> (Vec<String>, Vec<PathBuf>) {
        files.iter().map(|file| (file.name.clone(), file.path.clone())).unzip()
    }
}

/// Examples of a network: arrays and images one after the other, with labels of their own or beside them; or, where `names` say which inputs the files are, side by side in the
/// network's order.
///
/// Memory: side by side, the files, each of which keeps to the limit of `reading`, and twice the row of all of them in double precision while they are joined.
///
/// # Errors
/// When a file cannot be read, an input has none, two or another shape, or files count different examples.
pub fn read_examples(
    inputs: &[InputRecord],
    (names, data): (&[String], &[PathBuf]),
    labels: &[PathBuf],
    reading: &ReadOptions,
) -> Result<ImageSet, NetworkFileError> {
    if names.is_empty() {
        return Ok(ImageSet::read(data, labels, reading)?);
    }
    let listed = || inputs.iter().map(|own| format!("`{}`", own.name)).collect::<Vec<_>>().join(", ");
    if names.len() != data.len() {
        return refuse(format!(
            "{} files for {} inputs ({}): give one for each, in the order of the --input flags",
            data.len(),
            names.len(),
            names.join(", ")
        ));
    }
    if inputs.is_empty() {
        return refuse("the network has one input: name the file of its examples, and leave --input out");
    }
    if let Some(other) = names.iter().find(|name| inputs.iter().all(|own| own.name != **name)) {
        return refuse(format!("the network has no input `{other}`: it has {}", listed()));
    }
    let mut ordered = Vec::with_capacity(inputs.len());
    for own in inputs {
        let mut given = names.iter().zip(data).filter(|(name, _)| **name == own.name);
        match (given.next(), given.next()) {
            (Some((_, path)), None) => ordered.push(path.clone()),
            (None, _) => {
                return refuse(format!(
                    "the input `{}` of shape {:?} has no file: give --input {}=FILE (inputs: {})",
                    own.name,
                    own.shape,
                    own.name,
                    listed()
                ));
            }
            _ => return refuse(format!("--input names `{}` twice", own.name)),
        }
    }
    let first = ImageSet::read(&ordered[..1], labels, reading)?;
    let mut arrays = vec![first.images];
    for path in &ordered[1..] {
        arrays.push(any_array(path, reading)?);
    }
    Ok(ImageSet { images: side_by_side(inputs, &ordered, arrays)?, labels: first.labels })
}

/// One row of numbers for each example.
fn side_by_side(
    inputs: &[InputRecord],
    paths: &[PathBuf],
    arrays: Vec<NumericArray>,
) -> Result<NumericArray, NetworkFileError> {
    let count = arrays[0].examples();
    for ((own, path), array) in inputs.iter().zip(paths).zip(&arrays) {
        if matches!(array.values(), ArrayValues::U8(_)) {
            return refuse(format!(
                "{}: bytes are scaled only where a network has one input: write the input `{}` as the numbers that the network takes",
                path.display(),
                own.name
            ));
        }
        if !alike(array.example_shape(), &own.shape) {
            return refuse(format!(
                "{}: the input `{}` takes examples of shape {:?}, these have shape {:?}",
                path.display(),
                own.name,
                own.shape,
                array.example_shape()
            ));
        }
        if array.examples() != count {
            return refuse(format!(
                "{} has {} examples, {} has {count}: every input needs a row for each",
                file_name(path),
                array.examples(),
                file_name(&paths[0])
            ));
        }
        array.require_finite(Path::new(path))?;
    }
    let widths: Vec<usize> = inputs.iter().map(|own| own.shape.iter().product()).collect();
    let single = arrays.iter().all(|array| matches!(array.values(), ArrayValues::F32(_)));
    let columns: Vec<Vec<f64>> = arrays.into_iter().map(|array| array.to_f64()).collect();
    let total: usize = widths.iter().sum();
    let mut values = Vec::with_capacity(count.saturating_mul(total));
    for example in 0..count {
        for (column, width) in columns.iter().zip(&widths) {
            values.extend_from_slice(&column[example * width..(example + 1) * width]);
        }
    }
    Ok(NumericArray::new(vec![count, total], in_precision(values, single))?)
}

/// The shape of what is predicted of an example, of so many numbers, by outputs of this shape: theirs; half of it along the first axis, where the other half tells the noise.
pub(crate) fn predicted_shape(outputs: &[usize], width: usize) -> Vec<usize> {
    let mut shape = outputs.to_vec();
    if let Some(first) = shape.first_mut()
        && outputs.iter().product::<usize>() == 2 * width
    {
        *first /= 2;
    }
    if shape.iter().product::<usize>() == width { shape } else { vec![width] }
}
