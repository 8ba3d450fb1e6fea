//! Tanimoto kernel matrices of sparse rows, never stored.

use super::SparseCounts;
use crate::matrix::{SymmetricTiles, TileSource, TiledMatrix, multiply, multiply_transpose};
use faer::{MatMut, MatRef};
use posterior_linalg::Real;
use posterior_linalg::operator::{LinearOperator, check_apply, check_apply_transpose};
use std::ops::Range;
use std::sync::Arc;

/// Tiles of the kernel matrix of count vectors.
#[derive(Clone, Debug)]
pub struct TanimotoTiles<T: Real> {
    rows: Arc<SparseCounts<T>>,
    variance: T,
}

/// `v k(x, x)`, n x n, for count vectors: an operator with access to rows.
pub type TanimotoMatrix<T> = TiledMatrix<TanimotoTiles<T>>;

impl<T: Real> TanimotoMatrix<T> {
    /// The matrix of these vectors with a variance in front.
    pub fn of_rows(rows: Arc<SparseCounts<T>>, variance: f64) -> Self {
        Self::new(TanimotoTiles { rows, variance: T::from_f64(variance) })
    }

    /// `v k(x*, x)` for new vectors of the same dimension.
    ///
    /// # Panics
    /// When the dimensions differ.
    pub fn cross(&self, new: Arc<SparseCounts<T>>) -> TanimotoCross<T> {
        TanimotoCross::new(new, self.tiles().rows.clone(), self.tiles().variance.to_f64())
    }
}

impl<T: Real> SymmetricTiles<T> for TanimotoTiles<T> {
    type Selection = SparseCounts<T>;

    fn size(&self) -> usize {
        self.rows.rows()
    }

    fn tile(&self, rows: Range<usize>, columns: Range<usize>, mut out: MatMut<'_, T>) {
        self.rows.tile(rows, &self.rows, columns, out.as_mut());
        scale(self.variance, out);
    }

    fn select(&self, rows: &[usize]) -> SparseCounts<T> {
        self.rows.select(rows)
    }

    fn selected_tile(
        &self,
        rows: Range<usize>,
        selection: &SparseCounts<T>,
        columns: Range<usize>,
        mut out: MatMut<'_, T>,
    ) {
        self.rows.tile(rows, selection, columns, out.as_mut());
        scale(self.variance, out);
    }

    fn chosen_tile(
        &self,
        selection: &SparseCounts<T>,
        rows: Range<usize>,
        columns: Range<usize>,
        mut out: MatMut<'_, T>,
    ) {
        selection.tile(rows, selection, columns, out.as_mut());
        scale(self.variance, out);
    }

    fn diagonal(&self) -> Vec<T> {
        vec![self.variance; self.rows.rows()]
    }
}

fn scale<T: Real>(variance: T, mut out: MatMut<'_, T>) {
    if variance != T::ONE {
        for j in 0..out.ncols() {
            crate::kernel::column(&mut out, j).iter_mut().for_each(|v| *v *= variance);
        }
    }
}

/// `v k(x, z)`, n x m, for two sets of count vectors.
#[derive(Clone, Debug)]
pub struct TanimotoCross<T: Real> {
    x: Arc<SparseCounts<T>>,
    z: Arc<SparseCounts<T>>,
    variance: T,
}

impl<T: Real> TanimotoCross<T> {
    /// The matrix with rows for x and columns for z.
    ///
    /// # Panics
    /// When the dimensions differ.
    pub fn new(x: Arc<SparseCounts<T>>, z: Arc<SparseCounts<T>>, variance: f64) -> Self {
        assert_eq!(x.dimension(), z.dimension(), "both sets of vectors have the same dimension");
        Self { x, z, variance: T::from_f64(variance) }
    }
}

impl<T: Real> TileSource<T> for TanimotoCross<T> {
    fn shape(&self) -> (usize, usize) {
        (self.x.rows(), self.z.rows())
    }
    fn tile(&self, rows: Range<usize>, columns: Range<usize>, mut out: MatMut<'_, T>) {
        self.x.tile(rows, &self.z, columns, out.as_mut());
        scale(self.variance, out);
    }
}

impl<T: Real> LinearOperator<T> for TanimotoCross<T> {
    fn shape(&self) -> (usize, usize) {
        TileSource::shape(self)
    }

    fn apply(&self, input: MatRef<'_, T>, output: MatMut<'_, T>) {
        check_apply(TileSource::shape(self), input, &output);
        multiply(self, input, output);
    }

    fn apply_transpose(&self, input: MatRef<'_, T>, output: MatMut<'_, T>) {
        check_apply_transpose(TileSource::shape(self), input, &output);
        multiply_transpose(self, input, output);
    }
}
