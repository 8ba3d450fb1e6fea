//! Inputs and targets of networks.

use crate::rows::{Ragged, Rows};
use posterior_data::{ArrayValues, DataError, NumericArray};
use posterior_networks::{Array, Precision};

/// Examples: whatever has [`Rows`], arrays of any shape whose first axis counts them (images, as [`posterior_data::read_array`] reads them), and arrays of networks.
pub trait Inputs {
    /// The numbers, `[examples, ...]`.
    ///
    /// # Errors
    /// [`Ragged`] where rows have different lengths.
    fn to_array(&self) -> Result<NumericArray, ArraysError>;
}

/// Targets of examples: classes as whole numbers from 0, or [`Inputs`] of one number or one row for each example.
pub trait Labels {
    /// The numbers, `[examples]` or `[examples, width]`.
    ///
    /// # Errors
    /// [`Ragged`] where rows have different lengths.
    fn to_numbers(&self) -> Result<NumericArray, ArraysError>;
}

/// Numbers that are no array.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArraysError {
    /// Rows of different lengths.
    #[error(transparent)]
    Ragged(#[from] Ragged),
    /// A shape that does not fit its numbers.
    #[error(transparent)]
    Data(#[from] DataError),
}

impl<R: Rows + ?Sized> Inputs for R {
    fn to_array(&self) -> Result<NumericArray, ArraysError> {
        let (rows, columns) = self.size()?;
        let values = (0..rows * columns).map(|k| self.number(k / columns, k % columns)).collect();
        Ok(NumericArray::new(vec![rows, columns], ArrayValues::F64(values))?)
    }
}

impl Inputs for NumericArray {
    fn to_array(&self) -> Result<NumericArray, ArraysError> {
        Ok(self.clone())
    }
}

impl<T: Precision> Inputs for Array<T> {
    fn to_array(&self) -> Result<NumericArray, ArraysError> {
        let values = self.values().iter().map(|v| v.to_f64()).collect();
        Ok(NumericArray::new(self.shape().to_vec(), ArrayValues::F64(values))?)
    }
}

impl<I: Inputs + ?Sized> Labels for I {
    fn to_numbers(&self) -> Result<NumericArray, ArraysError> {
        self.to_array()
    }
}

/// Whole numbers, as slices, vectors and arrays.
macro_rules! whole_numbers {
    ($($number:ty),*) => {$(
        impl Labels for [$number] {
            fn to_numbers(&self) -> Result<NumericArray, ArraysError> {
                let values = self.iter().map(|v| *v as f64).collect();
                Ok(NumericArray::new(vec![self.len()], ArrayValues::F64(values))?)
            }
        }

        impl Labels for Vec<$number> {
            fn to_numbers(&self) -> Result<NumericArray, ArraysError> {
                self.as_slice().to_numbers()
            }
        }

        impl<const N: usize> Labels for [$number; N] {
            fn to_numbers(&self) -> Result<NumericArray, ArraysError> {
                self.as_slice().to_numbers()
            }
        }
    )*};
}

whole_numbers!(u8, u32, u64, usize, i32, i64);
