//! **Kernels of several functions at once**: `k(x, z)` is a block of C x C numbers, and points are whatever the kernel is defined on: rows of a matrix, images.
//!
//! Rows of such a matrix belong to points and, within a point, to its outputs, or to combinations of them along given directions. Preparing points (scaled rows, features of a network's tangent) is
//! what costs; tiles between prepared points are products.

use crate::{Adjoints, Kernel, Pair, Prepared, Request};
use faer::{Mat, MatMut, MatRef};
use posterior_linalg::Real;
use posterior_linalg::tiles::pieces;
use std::convert::Infallible;
use std::ops::Range;

/// A covariance of C functions, without white noise (that is the likelihood's).
pub trait BlockKernel<T: Real>: Send + Sync {
    /// A set of points.
    type Points: Send + Sync;
    /// Some of them, ready for any number of tiles.
    type Prepared: Send + Sync;
    /// Why points cannot be prepared.
    type Error: Send + Sync;

    /// Number of functions, C.
    fn outputs(&self) -> usize;

    /// How many points there are.
    fn count(&self, x: &Self::Points) -> usize;

    /// Points that are best prepared at one time with `width` rows each.
    fn points_at_once(&self, width: usize) -> usize;

    /// Prepares a range of the points; `along` are the directions of these (points * width x C), None each output.
    ///
    /// # Errors
    /// What the kernel refuses: points of another shape.
    fn prepare(
        &self,
        x: &Self::Points,
        points: Range<usize>,
        along: Option<MatRef<'_, T>>,
    ) -> Result<Self::Prepared, Self::Error>;

    /// The matrix between all rows of both.
    fn tile(&self, x: &Self::Prepared, z: &Self::Prepared) -> Mat<T>;

    /// The block of each point with itself, `[points, width, width]`.
    fn diagonal(&self, x: &Self::Prepared) -> Vec<T>;

    /// The gradient in the points `z` (one row for each, its numbers in order) of a loss whose gradient in the matrix between `x` and `z` is `adjoint`; `x` is held. For a kernel of `z` with itself give its own
    /// points and `adjoint + adjoint'`. One pass back for the whole set.
    ///
    /// # Errors
    /// As [`Self::prepare`].
    fn pullback(
        &self,
        x: &Self::Prepared,
        z: &Self::Points,
        along: Option<MatRef<'_, T>>,
        adjoint: MatRef<'_, T>,
    ) -> Result<Mat<T>, Self::Error>;

    /// Rows of each point along some directions.
    fn width(&self, x: &Self::Points, along: Option<MatRef<'_, T>>) -> usize {
        along.map_or(self.outputs(), |along| along.nrows() / self.count(x).max(1))
    }

    /// The block of each point of a set with itself, `[points, width, width]`. Memory: the blocks, and what is prepared of a piece.
    ///
    /// # Errors
    /// As [`Self::prepare`].
    fn blocks(&self, x: &Self::Points, along: Option<MatRef<'_, T>>) -> Result<Vec<T>, Self::Error> {
        let (width, mut out) = (self.width(x, along), Vec::new());
        for i in pieces(self.count(x), self.points_at_once(width)) {
            out.extend(self.diagonal(&self.prepare(x, i.clone(), own(along, &i, width))?));
        }
        Ok(out)
    }

    /// The matrix between all rows of two sets. Memory: the matrix, and what is prepared of two pieces.
    ///
    /// # Errors
    /// As [`Self::prepare`].
    fn cross(
        &self,
        (x, along_x): (&Self::Points, Option<MatRef<'_, T>>),
        (z, along_z): (&Self::Points, Option<MatRef<'_, T>>),
    ) -> Result<Mat<T>, Self::Error> {
        let (width_x, width_z) = (self.width(x, along_x), self.width(z, along_z));
        let (rows, columns) = (self.count(x) * width_x, self.count(z) * width_z);
        let mut out = Mat::zeros(rows, columns);
        for i in pieces(self.count(x), self.points_at_once(width_x)) {
            let left = self.prepare(x, i.clone(), own(along_x, &i, width_x))?;
            for j in pieces(self.count(z), self.points_at_once(width_z)) {
                let right = self.prepare(z, j.clone(), own(along_z, &j, width_z))?;
                place(out.as_mut(), (i.start * width_x, j.start * width_z), self.tile(&left, &right));
            }
        }
        Ok(out)
    }

    /// The matrix of a set with itself, symmetric to the last bit between pieces.
    ///
    /// # Errors
    /// As [`Self::prepare`].
    fn gram(&self, x: &Self::Points, along: Option<MatRef<'_, T>>) -> Result<Mat<T>, Self::Error> {
        let width = self.width(x, along);
        let mut out = Mat::zeros(self.count(x) * width, self.count(x) * width);
        for i in pieces(self.count(x), self.points_at_once(width)) {
            let left = self.prepare(x, i.clone(), own(along, &i, width))?;
            for j in pieces(i.start, self.points_at_once(width)) {
                let tile = self.tile(&left, &self.prepare(x, j.clone(), own(along, &j, width))?);
                let turned = tile.transpose().to_owned();
                place(out.as_mut(), (i.start * width, j.start * width), tile);
                place(out.as_mut(), (j.start * width, i.start * width), turned);
            }
            place(out.as_mut(), (i.start * width, i.start * width), self.tile(&left, &left));
        }
        Ok(out)
    }
}

/// The directions of a range of points.
fn own<'a, T>(along: Option<MatRef<'a, T>>, points: &Range<usize>, width: usize) -> Option<MatRef<'a, T>> {
    along.map(|along| along.subrows(points.start * width, points.len() * width))
}

/// Writes a tile into a larger matrix.
fn place<T: Real>(out: MatMut<'_, T>, (row, column): (usize, usize), tile: Mat<T>) {
    out.submatrix_mut(row, column, tile.nrows(), tile.ncols()).copy_from(tile);
}

/// Rows of a matrix as a kernel of one function wants them, with a factor for each direction.
#[derive(Clone, Debug)]
pub struct ScaledPoints<T> {
    x: Mat<T>,
    prepared: Prepared<T>,
    factors: Vec<T>,
}

impl<T> ScaledPoints<T> {
    fn width(&self) -> usize {
        self.factors.len() / self.x.nrows().max(1)
    }
}

/// A direction of one number is a factor.
fn factors<T: Real>(along: Option<MatRef<'_, T>>, points: usize) -> Vec<T> {
    along.map_or_else(|| vec![T::ONE; points], |along| along.col(0).iter().copied().collect())
}

/// Every kernel of one function.
impl<T: Real> BlockKernel<T> for dyn Kernel<T> {
    type Points = Mat<T>;
    type Prepared = ScaledPoints<T>;
    type Error = Infallible;

    fn outputs(&self) -> usize {
        1
    }

    fn count(&self, x: &Mat<T>) -> usize {
        x.nrows()
    }

    fn points_at_once(&self, width: usize) -> usize {
        (1024 / width.max(1)).max(1)
    }

    fn prepare(
        &self,
        x: &Mat<T>,
        points: Range<usize>,
        along: Option<MatRef<'_, T>>,
    ) -> Result<ScaledPoints<T>, Infallible> {
        let x = x.as_ref().subrows(points.start, points.len()).to_owned();
        Ok(ScaledPoints {
            prepared: Kernel::prepare(self, x.as_ref()),
            factors: factors(along, points.len()),
            x,
        })
    }

    fn tile(&self, x: &ScaledPoints<T>, z: &ScaledPoints<T>) -> Mat<T> {
        let mut k = Mat::zeros(x.x.nrows(), z.x.nrows());
        let (rows, columns) = (x.prepared.block(0..k.nrows()), z.prepared.block(0..k.ncols()));
        self.prepared_tile(rows, columns, None, k.as_mut());
        let (v, w) = (x.width().max(1), z.width().max(1));
        Mat::from_fn(x.factors.len(), z.factors.len(), |i, j| x.factors[i] * z.factors[j] * k[(i / v, j / w)])
    }

    fn diagonal(&self, x: &ScaledPoints<T>) -> Vec<T> {
        // Not `Kernel::diagonal`, which has the white noise.
        let mut own = vec![T::ZERO; x.x.nrows()];
        self.values_at(x.prepared.block(0..own.len()), &mut own);
        let width = x.width();
        let blocks = own.iter().zip(x.factors.chunks_exact(width.max(1)));
        blocks.flat_map(|(k, f)| f.iter().flat_map(move |a| f.iter().map(move |b| *a * *b * *k))).collect()
    }

    fn pullback(
        &self,
        x: &ScaledPoints<T>,
        z: &Mat<T>,
        along: Option<MatRef<'_, T>>,
        adjoint: MatRef<'_, T>,
    ) -> Result<Mat<T>, Infallible> {
        let (v, w) = (x.width().max(1), BlockKernel::width(self, z, along).max(1));
        let other = factors(along, z.nrows());
        let mut sum = Mat::<T>::zeros(x.x.nrows(), z.nrows());
        for (j, b) in other.iter().enumerate() {
            for (i, a) in x.factors.iter().enumerate() {
                sum[(i / v, j / w)] += *a * *b * adjoint[(i, j)];
            }
        }
        let request = Request { parameters: false, x: false, z: true };
        let mut adjoints = Adjoints::zeros(request, 0, x.x.nrows(), z.nrows(), z.ncols());
        let pair = Pair { x: x.x.as_ref(), z: z.as_ref(), same: None };
        self.pullback_tile(pair, sum.as_ref(), &mut adjoints);
        Ok(adjoints.z.unwrap_or_else(|| Mat::zeros(z.nrows(), z.ncols())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::KernelExpression;

    #[test]
    fn blocks_are_those_of_the_matrix_and_know_no_white_noise() {
        let expression: KernelExpression = "se(ard) + linear + white".parse().unwrap();
        let kernel = expression.build::<f64>(&["a".into(), "b".into()]).unwrap();
        let x = Mat::from_fn(5, 2, |i, j| (1.3 * i as f64 + j as f64).sin());
        let along = Mat::from_fn(10, 1, |i, _| 0.4 + 0.1 * i as f64);
        for (along, width) in [(None, 1), (Some(along.as_ref()), 2)] {
            let (Ok(blocks), Ok(gram)) = (kernel.blocks(&x, along), kernel.gram(&x, along));
            for (k, found) in blocks.iter().enumerate() {
                let (point, a, b) = (k / (width * width), k / width % width, k % width);
                let expected = gram[(point * width + a, point * width + b)];
                assert!((found - expected).abs() < 1e-14, "{found} {expected}");
            }
        }
    }
}
