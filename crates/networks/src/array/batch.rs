//! The array itself: numbers with a shape, examples first.

use super::Precision;
use super::pool::Buffer;

/// Zeros beyond this many values are asked of the system.
pub(crate) const LARGE: usize = 1 << 24;

/// Numbers in row-major order with a shape; in a batch the first axis counts examples.
///
/// Images are `[examples, channels, height, width]`, sequences `[examples, positions, features]`, tables
/// `[examples, columns]`: the conventions of PyTorch and ONNX.
#[derive(Clone)]
pub struct Array<T> {
    shape: Vec<usize>,
    values: Buffer<T>,
}

impl<T: Precision> Array<T> {
    /// From values in row-major order.
    ///
    /// # Panics
    /// When the number of values is not the product of the shape.
    pub fn new(shape: impl Into<Vec<usize>>, values: Vec<T>) -> Self {
        let shape = shape.into();
        assert_eq!(shape.iter().product::<usize>(), values.len(), "values fill the shape {shape:?}");
        Self { shape, values: buffer(values) }
    }

    /// All zero.
    #[inline(never)]
    pub fn zeros(shape: impl Into<Vec<usize>>) -> Self {
        let shape = shape.into();
        let length = shape.iter().product();
        // Fresh pages are zero already, and large arrays are better off with them than with a buffer to clear.
        let values = if length > LARGE { buffer(vec![T::ZERO; length]) } else { zeros(length) };
        Self { shape, values }
    }

    /// With any finite numbers in it, for those who write every value.
    #[inline(never)]
    pub(crate) fn any(shape: impl Into<Vec<usize>>) -> Self {
        let shape = shape.into();
        let length = shape.iter().product();
        Self { shape, values: buffer(T::pool().any(length, T::ZERO)) }
    }

    /// The shape, examples first.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Number of values.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether there are no values.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Length of the first axis (the number of examples of a batch); 1 for a scalar.
    pub fn rows(&self) -> usize {
        self.shape.first().copied().unwrap_or(1)
    }

    /// Values in one row: the product of all axes but the first.
    pub fn row_len(&self) -> usize {
        self.shape.iter().skip(1).product()
    }

    /// All values in row-major order.
    pub fn values(&self) -> &[T] {
        &self.values
    }

    /// All values, to change.
    pub fn values_mut(&mut self) -> &mut [T] {
        &mut self.values
    }

    /// The values without the shape.
    pub fn into_values(self) -> Vec<T> {
        self.values.into_values()
    }

    /// The values of one example.
    ///
    /// # Panics
    /// When there is no such row.
    pub fn row(&self, row: usize) -> &[T] {
        let length = self.row_len();
        &self.values[row * length..(row + 1) * length]
    }

    /// The same values in another shape; nothing moves.
    ///
    /// # Panics
    /// When the new shape holds another number of values.
    pub fn reshaped(self, shape: impl Into<Vec<usize>>) -> Self {
        let shape = shape.into();
        assert_eq!(shape.iter().product::<usize>(), self.values.len(), "values fill the shape {shape:?}");
        Self { shape, values: self.values }
    }

    /// Rows `rows` as an array of their own (copied).
    ///
    /// # Panics
    /// When the range leaves the array.
    #[inline(never)]
    pub fn slice_rows(&self, rows: std::ops::Range<usize>) -> Self {
        let length = self.row_len();
        let mut shape = self.shape.clone();
        shape[0] = rows.len();
        Self::new(shape, T::pool().copy(&self.values[rows.start * length..rows.end * length]))
    }

    /// In the other precision (or the same), rounded once.
    #[inline(never)]
    pub fn cast<U: Precision>(&self) -> Array<U> {
        Array::new(self.shape.clone(), self.values.iter().map(|v| U::from_f64(v.to_f64())).collect())
    }

    /// The first value that is NaN or infinite, by its position in row-major order.
    #[inline(never)]
    pub fn first_not_finite(&self) -> Option<usize> {
        if super::all_finite(&self.values) { None } else { self.values.iter().position(|v| !v.is_finite()) }
    }
}

/// So many zeros, in a buffer that comes back.
#[inline(never)]
pub(super) fn zeros<T: Precision>(length: usize) -> Buffer<T> {
    let mut values = buffer(T::pool().any(length, T::ZERO));
    values.fill(T::ZERO);
    values
}

fn buffer<T: Precision>(values: Vec<T>) -> Buffer<T> {
    Buffer::new(values, |buffer| T::pool().give(buffer), |values| T::pool().copy(values))
}

impl<T: PartialEq> PartialEq for Array<T> {
    fn eq(&self, other: &Self) -> bool {
        self.shape == other.shape && *self.values == *other.values
    }
}

impl<T: std::fmt::Debug> std::fmt::Debug for Array<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Array").field("shape", &self.shape).field("values", &&*self.values).finish()
    }
}

/// The shape of a batch: `rows` before the shape of one example.
pub(crate) fn batch_shape(rows: usize, example: &[usize]) -> Vec<usize> {
    std::iter::once(rows).chain(example.iter().copied()).collect()
}
