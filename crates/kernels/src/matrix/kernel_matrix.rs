//! `K = k(x, x)` as an operator.

use super::cross::CrossMatrix;
use super::tiled::{SymmetricTiles, TiledMatrix};
use crate::{Kernel, Prepared, gram};
use faer::{Mat, MatMut, MatRef};
use posterior_linalg::Real;
use posterior_linalg::operator::{LinearOperator, RowAccess};
use std::ops::Range;
use std::sync::Arc;

/// The kernel matrix `K = k(x, x)` of n points, which is never stored: an operator with access to rows.
///
/// It owns a copy of its kernel, as it is now, and of its points, prepared: about `8 n D` bytes (f64). Costs: the module's
/// documentation. White noise in the kernel belongs to the diagonal, as in [`crate::gram`]; a chosen row that is chosen twice is
/// one observation twice.
///
/// ```
/// use faer::Mat;
/// use posterior_kernels::{KernelExpression, matrix::KernelMatrix};
/// use posterior_linalg::operator::{LinearOperator, RowAccess};
/// let kernel = "matern32".parse::<KernelExpression>().unwrap().build::<f64>(&["x".into()]).unwrap();
/// let x = Mat::from_fn(1000, 1, |i, _| 0.01 * i as f64);
/// let matrix = KernelMatrix::new(&*kernel, x.as_ref());
/// let v = Mat::from_fn(1000, 2, |i, _| if i == 7 { 1.0 } else { 0.0 });
/// let product = matrix.multiply(v.as_ref());
/// let mut rows = Mat::zeros(3, 2);
/// matrix.apply_rows(&[7, 0, 7], v.as_ref(), rows.as_mut());
/// assert_eq!(rows[(0, 0)], 1.0);
/// assert!((rows[(1, 0)] - product[(0, 0)]).abs() < 1e-14);
/// ```
#[derive(Debug)]
pub struct KernelMatrix<T: Real> {
    matrix: TiledMatrix<KernelTiles<T>>,
}

#[derive(Debug)]
struct KernelTiles<T: Real> {
    kernel: Box<dyn Kernel<T>>,
    points: Arc<Prepared<T>>,
    diagonal: Vec<T>,
    stored: Option<Mat<T>>,
}

impl<T: Real> KernelMatrix<T> {
    /// The matrix of the points x (n x D). `O(nD)`: nothing is computed yet but the diagonal.
    #[inline(never)]
    pub fn new(kernel: &dyn Kernel<T>, x: MatRef<'_, T>) -> Self {
        let points = Arc::new(kernel.prepare(x));
        let diagonal = crate::diagonal(kernel, x);
        let tiles = KernelTiles { kernel: kernel.clone_box(), points, diagonal, stored: None };
        Self { matrix: TiledMatrix::new(tiles) }
    }

    /// The same, computed now and kept in memory if its n² entries fit into `bytes`; [`Self::is_stored`] tells. Products with few
    /// vectors are several times as fast then.
    pub fn with_budget(kernel: &dyn Kernel<T>, x: MatRef<'_, T>, bytes: usize) -> Self {
        let mut matrix = Self::new(kernel, x);
        if Self::bytes_stored(x.nrows()).is_some_and(|needed| needed <= bytes) {
            matrix.matrix =
                TiledMatrix::new(KernelTiles { stored: Some(gram(kernel, x)), ..matrix.matrix.into_tiles() });
        }
        matrix
    }

    /// Bytes that a stored matrix of n points takes; `None` when that is more than can be addressed.
    pub fn bytes_stored(n: usize) -> Option<usize> {
        n.checked_mul(n)?.checked_mul(size_of::<T>())
    }

    /// Whether the entries are in memory.
    pub fn is_stored(&self) -> bool {
        self.matrix.tiles().stored.is_some()
    }

    /// Bytes that it holds: points, diagonal, and entries if they are stored.
    pub fn bytes(&self) -> usize {
        let tiles = self.matrix.tiles();
        let stored = tiles.stored.as_ref().map_or(0, |k| k.nrows() * k.ncols());
        tiles.points.bytes() + (tiles.diagonal.len() + stored) * size_of::<T>()
    }

    /// The kernel, as it was when the matrix was made.
    pub fn kernel(&self) -> &dyn Kernel<T> {
        &*self.matrix.tiles().kernel
    }

    /// `k(x*, x)`, n* x n, for new points: none of them is one of the old ones, even with equal coordinates.
    pub fn cross(&self, new: MatRef<'_, T>) -> CrossMatrix<T> {
        let tiles = self.matrix.tiles();
        CrossMatrix::of_prepared(
            tiles.kernel.clone_box(),
            Arc::new(tiles.kernel.prepare(new)),
            tiles.points.clone(),
        )
    }
}

/// Chosen points with their numbers.
struct Chosen<T> {
    numbers: Vec<usize>,
    points: Prepared<T>,
}

impl<T: Real> SymmetricTiles<T> for KernelTiles<T> {
    type Selection = Chosen<T>;

    fn size(&self) -> usize {
        self.diagonal.len()
    }

    fn tile(&self, rows: Range<usize>, columns: Range<usize>, out: MatMut<'_, T>) {
        let same = Some((rows.start, columns.start));
        self.kernel.prepared_tile(self.points.block(rows), self.points.block(columns), same, out);
    }

    fn select(&self, rows: &[usize]) -> Chosen<T> {
        let points = if self.stored.is_some() {
            Prepared::parts(rows.len(), Vec::new())
        } else {
            self.points.gather(rows)
        };
        Chosen { numbers: rows.to_vec(), points }
    }

    fn selected_tile(
        &self,
        rows: Range<usize>,
        selection: &Chosen<T>,
        columns: Range<usize>,
        mut out: MatMut<'_, T>,
    ) {
        let numbers = &selection.numbers[columns.clone()];
        if let Some(stored) = &self.stored {
            for (j, &number) in numbers.iter().enumerate() {
                let source = &stored.col_as_slice(number)[rows.clone()];
                crate::kernel::column(&mut out, j).copy_from_slice(source);
            }
            return;
        }
        let chosen = selection.points.block(columns);
        self.kernel.prepared_tile(self.points.block(rows.clone()), chosen, None, out.as_mut());
        // An observation with itself: noise that belongs to it, and no rounding of distances.
        for (j, number) in numbers.iter().enumerate().filter(|(_, number)| rows.contains(number)) {
            out[(number - rows.start, j)] = self.diagonal[*number];
        }
    }

    fn chosen_tile(
        &self,
        selection: &Chosen<T>,
        rows: Range<usize>,
        columns: Range<usize>,
        mut out: MatMut<'_, T>,
    ) {
        if let Some(stored) = &self.stored {
            let own = &selection.numbers[rows];
            for (j, &number) in selection.numbers[columns].iter().enumerate() {
                let (source, target) = (stored.col_as_slice(number), crate::kernel::column(&mut out, j));
                target.iter_mut().zip(own).for_each(|(o, &i)| *o = source[i]);
            }
            return;
        }
        let same = Some((rows.start, columns.start));
        let (points, others) = (selection.points.block(rows), selection.points.block(columns));
        self.kernel.prepared_tile(points, others, same, out);
    }

    fn diagonal(&self) -> Vec<T> {
        self.diagonal.clone()
    }

    fn stored(&self, rows: Range<usize>, columns: Range<usize>) -> Option<MatRef<'_, T>> {
        let stored = self.stored.as_ref()?;
        Some(stored.submatrix(rows.start, columns.start, rows.len(), columns.len()))
    }
}

impl<T: Real> LinearOperator<T> for KernelMatrix<T> {
    fn shape(&self) -> (usize, usize) {
        self.matrix.shape()
    }
    fn apply(&self, input: MatRef<'_, T>, output: MatMut<'_, T>) {
        self.matrix.apply(input, output);
    }
    fn apply_transpose(&self, input: MatRef<'_, T>, output: MatMut<'_, T>) {
        self.matrix.apply(input, output);
    }
}

impl<T: Real> RowAccess<T> for KernelMatrix<T> {
    fn diagonal(&self) -> Vec<T> {
        RowAccess::diagonal(&self.matrix)
    }
    fn apply_rows(&self, rows: &[usize], input: MatRef<'_, T>, output: MatMut<'_, T>) {
        self.matrix.apply_rows(rows, input, output);
    }
    fn apply_columns(&self, columns: &[usize], input: MatRef<'_, T>, output: MatMut<'_, T>) {
        self.matrix.apply_columns(columns, input, output);
    }
    fn columns_into(&self, columns: &[usize], output: MatMut<'_, T>) {
        self.matrix.columns_into(columns, output);
    }
    fn principal_into(&self, rows: &[usize], output: MatMut<'_, T>) {
        self.matrix.principal_into(rows, output);
    }
}
