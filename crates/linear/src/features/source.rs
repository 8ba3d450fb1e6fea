//! Where batches come from.

use crate::LinearError;
use faer::{Mat, MatRef};

/// A data set that hands out batches of its examples, in pieces small enough for memory.
pub trait BatchSource<B: ?Sized>: Send + Sync {
    /// Number of examples.
    fn examples(&self) -> usize;

    /// Calls `visit` with the batch of the given examples, in the given order.
    ///
    /// # Errors
    /// Those of `visit`, and of reading the data.
    fn with_batch(
        &self,
        indices: &[usize],
        visit: &mut dyn FnMut(&B) -> Result<(), LinearError>,
    ) -> Result<(), LinearError>;
}

/// The examples `0..n` by number, for [`DenseFeatures`](super::DenseFeatures).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Indices(pub usize);

impl BatchSource<[usize]> for Indices {
    fn examples(&self) -> usize {
        self.0
    }

    fn with_batch(
        &self,
        indices: &[usize],
        visit: &mut dyn FnMut(&[usize]) -> Result<(), LinearError>,
    ) -> Result<(), LinearError> {
        visit(indices)
    }
}

/// Inputs stored as the rows of a matrix (n x D).
#[derive(Clone, Copy, Debug)]
pub struct Rows<'a>(pub MatRef<'a, f64>);

impl BatchSource<Mat<f64>> for Rows<'_> {
    fn examples(&self) -> usize {
        self.0.nrows()
    }

    fn with_batch(
        &self,
        indices: &[usize],
        visit: &mut dyn FnMut(&Mat<f64>) -> Result<(), LinearError>,
    ) -> Result<(), LinearError> {
        if let Some(&i) = indices.iter().find(|&&i| i >= self.0.nrows()) {
            return Err(LinearError::Shape {
                what: "rows of the inputs",
                expected: self.0.nrows(),
                found: i + 1,
            });
        }
        visit(&Mat::from_fn(indices.len(), self.0.ncols(), |r, j| self.0[(indices[r], j)]))
    }
}

/// The numbers `0..examples` in pieces of at most `chunk`.
pub(crate) fn chunks(examples: usize, chunk: usize) -> impl Iterator<Item = Vec<usize>> {
    let chunk = chunk.max(1);
    (0..examples.div_ceil(chunk)).map(move |k| (k * chunk..examples.min((k + 1) * chunk)).collect())
}
