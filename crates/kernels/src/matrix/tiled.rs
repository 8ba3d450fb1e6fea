//! Symmetric matrices of which single tiles can be computed, as operators with access to rows.

use super::gathered::Gathered;
use super::tiles::{TileSource, multiply, multiply_symmetric, multiply_transpose};
use faer::{MatMut, MatRef};
use posterior_linalg::Real;
use posterior_linalg::operator::{
    LinearOperator, RowAccess, check_apply, check_apply_transpose, check_principal,
};
use posterior_linalg::symmetric::mirror_lower;
use posterior_linalg::tiles::{Cover, for_each_tile};
use std::ops::Range;

/// A symmetric positive semi-definite n x n matrix that can write any of its tiles; [`TiledMatrix`] makes an operator of it.
pub trait SymmetricTiles<T: Real>: Send + Sync {
    /// A set of rows of the matrix, as [`Self::selected_tile`] wants them.
    type Selection: Sync;

    /// n.
    fn size(&self) -> usize;

    /// Writes `A[rows, columns]` (column-major).
    fn tile(&self, rows: Range<usize>, columns: Range<usize>, out: MatMut<'_, T>);

    /// Prepares rows for [`Self::selected_tile`]; they are smaller than n.
    fn select(&self, rows: &[usize]) -> Self::Selection;

    /// Writes `A[rows, chosen[columns]]` (column-major), where `chosen` are the numbers that `selection` was made of.
    fn selected_tile(
        &self,
        rows: Range<usize>,
        selection: &Self::Selection,
        columns: Range<usize>,
        out: MatMut<'_, T>,
    );

    /// Writes `A[chosen[rows], chosen[columns]]` (column-major), where `chosen` are all different.
    fn chosen_tile(
        &self,
        selection: &Self::Selection,
        rows: Range<usize>,
        columns: Range<usize>,
        out: MatMut<'_, T>,
    );

    /// Entries on the diagonal (n).
    fn diagonal(&self) -> Vec<T>;

    /// The tile, where it lies in memory already.
    fn stored(&self, _rows: Range<usize>, _columns: Range<usize>) -> Option<MatRef<'_, T>> {
        None
    }
}

/// A symmetric matrix known by its tiles, never stored whole: an operator with [`RowAccess`].
///
/// Products with a block of k vectors compute every tile below the diagonal once and use it twice. Memory: one tile (256 KiB)
/// for each thread.
#[derive(Clone, Debug)]
pub struct TiledMatrix<S> {
    tiles: S,
}

impl<S> TiledMatrix<S> {
    /// The matrix of these tiles.
    pub fn new(tiles: S) -> Self {
        Self { tiles }
    }

    /// The tiles, given back.
    pub fn into_tiles(self) -> S {
        self.tiles
    }

    /// The tiles.
    pub fn tiles(&self) -> &S {
        &self.tiles
    }
}

/// The square matrix of all tiles.
struct Whole<'a, S>(&'a S);

impl<T: Real, S: SymmetricTiles<T>> TileSource<T> for Whole<'_, S> {
    fn shape(&self) -> (usize, usize) {
        (self.0.size(), self.0.size())
    }
    fn tile(&self, rows: Range<usize>, columns: Range<usize>, out: MatMut<'_, T>) {
        self.0.tile(rows, columns, out);
    }
    fn stored(&self, rows: Range<usize>, columns: Range<usize>) -> Option<MatRef<'_, T>> {
        self.0.stored(rows, columns)
    }
}

impl<T: Real, S: SymmetricTiles<T>> LinearOperator<T> for TiledMatrix<S> {
    fn shape(&self) -> (usize, usize) {
        (self.tiles.size(), self.tiles.size())
    }

    fn apply(&self, input: MatRef<'_, T>, output: MatMut<'_, T>) {
        check_apply(self.shape(), input, &output);
        multiply_symmetric(&Whole(&self.tiles), input, output);
    }

    fn apply_transpose(&self, input: MatRef<'_, T>, output: MatMut<'_, T>) {
        self.apply(input, output);
    }
}

impl<T: Real, S: SymmetricTiles<T>> RowAccess<T> for TiledMatrix<S> {
    fn diagonal(&self) -> Vec<T> {
        self.tiles.diagonal()
    }

    fn apply_rows(&self, rows: &[usize], input: MatRef<'_, T>, output: MatMut<'_, T>) {
        check_apply((rows.len(), self.tiles.size()), input, &output);
        multiply_transpose(&Gathered::new(&self.tiles, rows), input, output);
    }

    fn apply_columns(&self, columns: &[usize], input: MatRef<'_, T>, output: MatMut<'_, T>) {
        check_apply_transpose((columns.len(), self.tiles.size()), input, &output);
        multiply(&Gathered::new(&self.tiles, columns), input, output);
    }

    fn columns_into(&self, columns: &[usize], output: MatMut<'_, T>) {
        assert_eq!(
            (output.nrows(), output.ncols()),
            (self.tiles.size(), columns.len()),
            "n rows and one column for each chosen"
        );
        let source = Gathered::new(&self.tiles, columns);
        for_each_tile(output, crate::TILE, Cover::Full, |rows, columns, tile| {
            source.tile(rows, columns, tile);
        });
    }

    fn principal_into(&self, rows: &[usize], mut output: MatMut<'_, T>) {
        check_principal(self.tiles.size(), rows, &output);
        let selection = self.tiles.select(rows);
        for_each_tile(output.as_mut(), crate::TILE, Cover::Lower, |rows, columns, tile| {
            self.tiles.chosen_tile(&selection, rows, columns, tile);
        });
        mirror_lower(output);
    }
}
