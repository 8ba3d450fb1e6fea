//! Chosen columns of a symmetric matrix.

use super::tiled::SymmetricTiles;
use super::tiles::TileSource;
use faer::MatMut;
use posterior_linalg::Real;
use std::ops::Range;

/// `A[:, chosen]`, n x r.
pub(super) struct Gathered<'a, T: Real, S: SymmetricTiles<T>> {
    tiles: &'a S,
    selection: S::Selection,
    count: usize,
}

impl<'a, T: Real, S: SymmetricTiles<T>> Gathered<'a, T, S> {
    pub(super) fn new(tiles: &'a S, chosen: &[usize]) -> Self {
        let n = tiles.size();
        assert!(chosen.iter().all(|&i| i < n), "rows of a matrix of {n} are counted from 0");
        Self { tiles, selection: tiles.select(chosen), count: chosen.len() }
    }
}

impl<T: Real, S: SymmetricTiles<T>> TileSource<T> for Gathered<'_, T, S> {
    fn shape(&self) -> (usize, usize) {
        (self.tiles.size(), self.count)
    }
    fn tile(&self, rows: Range<usize>, columns: Range<usize>, out: MatMut<'_, T>) {
        self.tiles.selected_tile(rows, &self.selection, columns, out);
    }
}
