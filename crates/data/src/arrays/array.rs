//! Numbers of any rank, in row-major order.

use crate::DataError;
use std::path::Path;

/// The values of an array in the type in which they are kept.
#[derive(Clone, Debug, PartialEq)]
pub enum ArrayValues {
    /// Single precision; half precision is widened to it.
    F32(Vec<f32>),
    /// Double precision.
    F64(Vec<f64>),
    /// Whole numbers: every integer type but unsigned bytes.
    I64(Vec<i64>),
    /// Unsigned bytes: pixels, and truth values as 0 and 1.
    U8(Vec<u8>),
}

/// Runs the same expression on the vector of whichever type.
macro_rules! each_type {
    ($values:expr, $vector:ident => $result:expr) => {
        match $values {
            $crate::ArrayValues::F32($vector) => $result,
            $crate::ArrayValues::F64($vector) => $result,
            $crate::ArrayValues::I64($vector) => $result,
            $crate::ArrayValues::U8($vector) => $result,
        }
    };
}
pub(crate) use each_type;

/// As [`each_type`] for an expression that gives a vector of the same type, which becomes [`ArrayValues`] again.
macro_rules! same_type {
    ($values:expr, $vector:ident => $result:expr) => {
        match $values {
            $crate::ArrayValues::F32($vector) => $crate::ArrayValues::F32($result),
            $crate::ArrayValues::F64($vector) => $crate::ArrayValues::F64($result),
            $crate::ArrayValues::I64($vector) => $crate::ArrayValues::I64($result),
            $crate::ArrayValues::U8($vector) => $crate::ArrayValues::U8($result),
        }
    };
}
pub(crate) use same_type;

impl ArrayValues {
    /// How many values there are.
    pub fn len(&self) -> usize {
        each_type!(self, values => values.len())
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes that the values take in memory.
    pub fn memory(&self) -> u64 {
        each_type!(self, values => size_of_val(values.as_slice()) as u64)
    }

    /// The first value, with its row-major index, for which the condition on index and value holds.
    pub(crate) fn find(&self, condition: impl Fn(usize, f64) -> bool) -> Option<(usize, f64)> {
        (0..self.len()).map(|index| (index, self.at(index))).find(|(index, value)| condition(*index, *value))
    }

    /// The value with a row-major index, as [`NumericArray::to_f64`] gives it.
    ///
    /// # Panics
    /// When there is none.
    pub(crate) fn at(&self, index: usize) -> f64 {
        match self {
            Self::F32(values) => f64::from(values[index]),
            Self::F64(values) => values[index],
            Self::I64(values) => values[index] as f64,
            Self::U8(values) => f64::from(values[index]),
        }
    }

    /// `f32`, `f64`, `i64` or `u8`.
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::F32(_) => "f32",
            Self::F64(_) => "f64",
            Self::I64(_) => "i64",
            Self::U8(_) => "u8",
        }
    }
}

/// A value that is infinite or not a number, and where it stands.
#[derive(Clone, Debug, PartialEq)]
pub struct NonFinite {
    /// One index for each dimension, from 0.
    pub position: Vec<usize>,
    /// NaN or an infinity.
    pub value: f64,
}

/// An array of numbers: its dimensions and its values in row-major order, the last index running fastest. The first dimension
/// counts examples.
#[derive(Clone, Debug, PartialEq)]
pub struct NumericArray {
    shape: Vec<usize>,
    values: ArrayValues,
}

impl NumericArray {
    /// An array of the given shape. A shape without dimensions is that of a single number.
    ///
    /// # Errors
    /// [`DataError::Shape`] unless the product of the dimensions is the number of values.
    pub fn new(shape: Vec<usize>, values: ArrayValues) -> Result<Self, DataError> {
        if value_count(&shape) != Some(values.len()) {
            return Err(DataError::Shape { shape, values: values.len() });
        }
        Ok(Self { shape, values })
    }

    /// The dimensions, the slowest first.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The values, row-major.
    pub fn values(&self) -> &ArrayValues {
        &self.values
    }

    /// Shape and values, without a copy.
    pub fn into_parts(self) -> (Vec<usize>, ArrayValues) {
        (self.shape, self.values)
    }

    /// How many values there are: the product of the dimensions.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether there are no values: some dimension is 0.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// The first dimension; 1 for a single number without dimensions.
    pub fn examples(&self) -> usize {
        self.shape.first().copied().unwrap_or(1)
    }

    /// The shape of one example: all dimensions but the first.
    pub fn example_shape(&self) -> &[usize] {
        self.shape.get(1..).unwrap_or_default()
    }

    /// A copy of the first `count` examples; of all, where there are no more.
    pub fn first(&self, count: usize) -> Self {
        let Some((examples, rest)) = self.shape.split_first().filter(|(n, _)| **n > count) else {
            return self.clone();
        };
        let kept = self.len() / examples * count;
        let values = match &self.values {
            ArrayValues::F32(values) => ArrayValues::F32(values[..kept].to_vec()),
            ArrayValues::F64(values) => ArrayValues::F64(values[..kept].to_vec()),
            ArrayValues::I64(values) => ArrayValues::I64(values[..kept].to_vec()),
            ArrayValues::U8(values) => ArrayValues::U8(values[..kept].to_vec()),
        };
        Self { shape: [&[count], rest].concat(), values }
    }

    /// The values as double precision, row-major (a copy). Exact, but for whole numbers beyond 2^53, which are rounded.
    pub fn to_f64(&self) -> Vec<f64> {
        match &self.values {
            ArrayValues::F32(values) => values.iter().map(|v| f64::from(*v)).collect(),
            ArrayValues::F64(values) => values.clone(),
            ArrayValues::I64(values) => values.iter().map(|v| *v as f64).collect(),
            ArrayValues::U8(values) => values.iter().map(|v| f64::from(*v)).collect(),
        }
    }

    /// The values rounded to single precision, row-major (a copy). Double precision beyond the range of single becomes infinite:
    /// [`NumericArray::first_non_finite`] looks at the values as they were read, not at this copy.
    pub fn to_f32(&self) -> Vec<f32> {
        match &self.values {
            ArrayValues::F32(values) => values.clone(),
            ArrayValues::F64(values) => values.iter().map(|v| *v as f32).collect(),
            ArrayValues::I64(values) => values.iter().map(|v| *v as f32).collect(),
            ArrayValues::U8(values) => values.iter().map(|v| f32::from(*v)).collect(),
        }
    }

    /// The first value, in row-major order, that is infinite or not a number. One pass; none for whole numbers.
    pub fn first_non_finite(&self) -> Option<NonFinite> {
        if matches!(self.values, ArrayValues::I64(_) | ArrayValues::U8(_)) {
            return None;
        }
        let (index, value) = self.values.find(|_, value| !value.is_finite())?;
        Some(NonFinite { position: self.position(index), value })
    }

    /// That every value is a finite number; `path` is the file to name if not.
    ///
    /// # Errors
    /// [`DataError::NotFinite`] with the position of the first that is not.
    pub fn require_finite(&self, path: &Path) -> Result<(), DataError> {
        match self.first_non_finite() {
            Some(NonFinite { position, value }) => {
                Err(DataError::NotFinite { path: path.into(), position, value })
            }
            None => Ok(()),
        }
    }

    /// Adds the examples of `other` after these.
    ///
    /// # Errors
    /// What differs, if type or shape of the examples do.
    pub(super) fn append(&mut self, other: NumericArray) -> Result<(), String> {
        if self.shape.is_empty() || other.shape.is_empty() {
            return Err("a single number has no examples to put together".into());
        }
        if self.example_shape() != other.example_shape() {
            let (a, b) = (other.example_shape(), self.example_shape());
            return Err(format!("its examples have shape {a:?}, those before it {b:?}"));
        }
        let examples = other.examples();
        match (&mut self.values, other.values) {
            (ArrayValues::F32(all), ArrayValues::F32(mut more)) => all.append(&mut more),
            (ArrayValues::F64(all), ArrayValues::F64(mut more)) => all.append(&mut more),
            (ArrayValues::I64(all), ArrayValues::I64(mut more)) => all.append(&mut more),
            (ArrayValues::U8(all), ArrayValues::U8(mut more)) => all.append(&mut more),
            (all, more) => {
                return Err(format!(
                    "its values are {}, those before it {}",
                    more.type_name(),
                    all.type_name()
                ));
            }
        }
        self.shape[0] += examples;
        Ok(())
    }

    /// The index in each dimension of the value with the given row-major index.
    pub(crate) fn position(&self, mut index: usize) -> Vec<usize> {
        let mut position = vec![0; self.shape.len()];
        for (at, size) in position.iter_mut().zip(&self.shape).rev() {
            *at = index % size;
            index /= size;
        }
        position
    }
}

/// The product of the dimensions, if it and the product of those that are not 0 can be counted.
pub(super) fn value_count(shape: &[usize]) -> Option<usize> {
    let nonzero = shape.iter().filter(|d| **d > 0).try_fold(1usize, |product, d| product.checked_mul(*d))?;
    Some(if shape.contains(&0) { 0 } else { nonzero })
}
