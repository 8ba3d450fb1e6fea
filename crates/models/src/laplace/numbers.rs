//! Arrays of targets and classes, and numbers in a network's precision.

use crate::ModelError;
use posterior_data::{ArrayValues, ReadOptions, read_array};
use posterior_networks::train::Targets;
use posterior_networks::{Array, Precision};
use std::path::PathBuf;

fn request<T>(problem: impl Into<String>) -> Result<T, ModelError> {
    Err(ModelError::Request(problem.into()))
}

/// Numbers in a network's precision.
pub(super) fn converted<T: Precision>(values: ArrayValues) -> Vec<T> {
    match values {
        ArrayValues::F32(v) => v.into_iter().map(|v| T::from_f64(v.into())).collect(),
        ArrayValues::F64(v) => v.into_iter().map(T::from_f64).collect(),
        ArrayValues::I64(v) => v.into_iter().map(|v| T::from_f64(v as f64)).collect(),
        ArrayValues::U8(v) => v.into_iter().map(|v| T::from_f64(v.into())).collect(),
    }
}

/// Channels, height and width of one image.
pub(super) fn image_shape(shape: &[usize]) -> [usize; 3] {
    match shape[..] {
        [channels, height, width] => [channels, height, width],
        [height, width] => [1, height, width],
        _ => [1, 1, shape.iter().product()],
    }
}

/// Whole numbers from 0.
pub(super) fn class_numbers(values: &[f64], name: &str) -> Result<Vec<u32>, ModelError> {
    let class = |(row, v): (usize, &f64)| {
        let class = *v as u32;
        if f64::from(class) == *v {
            return Ok(class);
        }
        request(format!(
            "{name}, row {}: the label is {v}; classes are whole numbers, counted from 0",
            row + 1
        ))
    };
    values.iter().enumerate().map(class).collect()
}

/// Targets from files of numbers: `[examples]` or `[examples, outputs]`.
pub(super) fn numbers(
    labels: &[PathBuf],
    count: usize,
    reading: &ReadOptions,
) -> Result<(Vec<f64>, usize), ModelError> {
    let (mut all, mut width, mut rows) = (Vec::new(), None, 0);
    for path in labels {
        let array = match posterior_data::read_images(path, reading) {
            Ok(array) => array,
            Err(_) => read_array(path, reading)?,
        };
        array.require_finite(path)?;
        let own = match *array.shape() {
            [_] => 1,
            [_, width] => width,
            _ => {
                return request(format!(
                    "{}: targets of shape {:?}; they must be [examples] or [examples, outputs]",
                    path.display(),
                    array.shape()
                ));
            }
        };
        if width.is_some_and(|w| w != own) {
            return request(format!("{}: targets of another width than those before", path.display()));
        }
        width = Some(own);
        rows += array.examples();
        all.extend(array.to_f64());
    }
    let Some(width) = width else {
        return request(
            "targets are needed: give --labels FILE with a number (or a row of numbers) for each example",
        );
    };
    if rows != count {
        return request(format!("{count} inputs, but targets for {rows}"));
    }
    Ok((all, width))
}

pub(super) fn values<T: Precision>(
    labels: &[PathBuf],
    count: usize,
    reading: &ReadOptions,
) -> Result<Targets<T>, ModelError> {
    let (all, width) = numbers(labels, count, reading)?;
    Ok(Targets::Values(Array::new(vec![count, width], all.into_iter().map(T::from_f64).collect())))
}
