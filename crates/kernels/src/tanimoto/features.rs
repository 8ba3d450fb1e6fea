//! Random features of sparse counts.

use super::{Hashes, SparseCounts};
use faer::linalg::matmul::matmul;
use faer::{Accum, Mat, MatRef, Par};
use posterior_linalg::Real;
use posterior_linalg::parallel;
use posterior_linalg::random::Streams;

/// Points whose features are kept at a time by one thread.
const BLOCK: usize = 64;

/// d random features of sparse counts with `E[φ(x)·φ(z)] = v k(x, z)`: `±√(v/d)`, the sign being that of a hash. A function
/// `φ(·)·w` with standard normal w is a draw from the prior.
#[derive(Clone, Debug)]
pub struct SparseFeatures {
    hashes: Hashes,
    variance: f64,
}

impl SparseFeatures {
    /// Draws `count` features for vectors of `dimension` counts.
    pub fn new(dimension: usize, count: usize, variance: f64, streams: Streams) -> Self {
        Self { hashes: Hashes::new(dimension, count, streams), variance }
    }

    /// d.
    pub fn count(&self) -> usize {
        self.hashes.count()
    }

    /// `φ(x) w`, n x s, for weights of d x s, in blocks of 64 points. A point costs `15 d` flops for each non-zero count, and `2 d s`.
    ///
    /// # Panics
    /// When the dimensions do not fit.
    pub fn multiply<T: Real>(&self, x: &SparseCounts<T>, w: MatRef<'_, T>) -> Mat<T> {
        assert_eq!(
            x.dimension(),
            self.hashes.dimension(),
            "vectors have the dimension that the features were made for"
        );
        assert_eq!(w.nrows(), self.count(), "one row of weights for each feature");
        let mut out = Mat::zeros(x.rows(), w.ncols());
        let blocks = crate::matrix::row_blocks(out.as_mut(), BLOCK);
        parallel::consume(blocks, |(rows, out)| {
            let features = self.block(x, rows);
            matmul(out, Accum::Replace, &features, w, T::ONE, Par::Seq);
        });
        out
    }

    /// `φ(x)`, n x d.
    ///
    /// # Panics
    /// When the dimensions do not fit.
    pub fn evaluate<T: Real>(&self, x: &SparseCounts<T>) -> Mat<T> {
        assert_eq!(
            x.dimension(),
            self.hashes.dimension(),
            "vectors have the dimension that the features were made for"
        );
        self.block(x, 0..x.rows())
    }

    fn block<T: Real>(&self, x: &SparseCounts<T>, rows: std::ops::Range<usize>) -> Mat<T> {
        let root = (self.variance / self.count() as f64).sqrt();
        let mut features = Mat::zeros(rows.len(), self.count());
        for (i, row) in rows.enumerate() {
            let (columns, values) = x.sparse_rows().row(row);
            let counts = columns.iter().zip(values).map(|(&c, v)| (c as usize, v.to_f64()));
            self.hashes.signs(counts, |l, sign| features[(i, l)] = T::from_f64(root * sign));
        }
        features
    }
}
