//! Points as a kernel's arithmetic wants them, made once and used for many tiles.

use faer::{Mat, MatRef};
use posterior_linalg::Real;
use std::ops::Range;

/// n points as one kernel wants them: chosen columns divided by lengthscales, say, and for composite kernels the same for each part.
/// Only the kernel that made it understands it, and only while its parameters stay as they were.
#[derive(Clone, Debug)]
pub struct Prepared<T> {
    rows: usize,
    own: Mat<T>,
    parts: Vec<Self>,
}

impl<T: Real> Prepared<T> {
    /// The points as they are.
    pub fn plain(x: MatRef<'_, T>) -> Self {
        Self::own(x.to_owned())
    }

    /// A matrix with one row for each point.
    pub fn own(matrix: Mat<T>) -> Self {
        Self { rows: matrix.nrows(), own: matrix, parts: Vec::new() }
    }

    /// The points as each part of a composite kernel wants them; `rows` is their number.
    ///
    /// # Panics
    /// When a part has another number of points.
    pub fn parts(rows: usize, parts: Vec<Self>) -> Self {
        assert!(parts.iter().all(|p| p.rows == rows), "all parts are of the same points");
        Self { rows, own: Mat::new(), parts }
    }

    /// How many points.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Bytes that it holds.
    pub fn bytes(&self) -> usize {
        let parts: usize = self.parts.iter().map(Self::bytes).sum();
        self.own.nrows() * self.own.ncols() * size_of::<T>() + parts
    }

    /// Some of the points, in the order named; a number may occur more than once.
    ///
    /// # Panics
    /// When a number is n or more.
    pub fn gather(&self, rows: &[usize]) -> Self {
        let own =
            Mat::from_fn(if self.own.nrows() == 0 { 0 } else { rows.len() }, self.own.ncols(), |i, j| {
                self.own[(rows[i], j)]
            });
        assert!(rows.iter().all(|&i| i < self.rows), "rows are counted from 0 to {}", self.rows);
        Self { rows: rows.len(), own, parts: self.parts.iter().map(|p| p.gather(rows)).collect() }
    }

    /// Some consecutive points.
    ///
    /// # Panics
    /// When they do not exist.
    pub fn block(&self, rows: Range<usize>) -> PreparedBlock<'_, T> {
        assert!(rows.start <= rows.end && rows.end <= self.rows, "rows are counted from 0 to {}", self.rows);
        PreparedBlock { points: self, start: rows.start, len: rows.len() }
    }
}

/// Consecutive points of a [`Prepared`] set.
#[derive(Clone, Copy, Debug)]
pub struct PreparedBlock<'a, T> {
    points: &'a Prepared<T>,
    start: usize,
    len: usize,
}

impl<'a, T: Real> PreparedBlock<'a, T> {
    /// How many points.
    pub fn rows(&self) -> usize {
        self.len
    }

    /// One of the points.
    ///
    /// # Panics
    /// When it does not exist.
    pub fn point(&self, i: usize) -> Self {
        assert!(i < self.len, "points are counted from 0 to {}", self.len);
        Self { start: self.start + i, len: 1, ..*self }
    }

    /// The kernel's own matrix, with one row for each point.
    pub fn matrix(&self) -> MatRef<'a, T> {
        self.points.own.as_ref().subrows(self.start, self.len)
    }

    /// How many columns the kernel's own matrix has.
    pub(crate) fn columns(&self) -> usize {
        self.points.own.ncols()
    }

    /// Column `d` of the kernel's own matrix.
    #[inline(always)]
    pub(crate) fn column(&self, d: usize) -> &'a [T] {
        &self.points.own.col_as_slice(d)[self.start..self.start + self.len]
    }

    /// The same points as part `i` of a composite kernel wants them.
    pub fn part(&self, i: usize) -> Self {
        Self { points: &self.points.parts[i], ..*self }
    }
}
