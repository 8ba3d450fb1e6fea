//! Products with matrices that are known by their tiles.
//!
//! A tile is written into a buffer that stays in the second-level cache, multiplied at once with its piece of the block of vectors, and
//! forgotten. Who adds to which part of the result, and in which order, depends on the sizes alone, so results have the
//! same bits for any number of threads.

use super::product::{add_both_products, add_product, add_transposed_product};
use faer::{Mat, MatMut, MatRef};
use posterior_linalg::Real;
use posterior_linalg::parallel;
use posterior_linalg::tiles::pieces;
use std::ops::Range;
use std::sync::Mutex;

/// Bytes of one tile's entries: a quarter of a second-level cache of 1 MiB.
const TILE_BYTES: usize = 256 << 10;

/// Columns of a tile.
const TILE_COLUMNS: usize = 128;

/// Rows of a tile, at most: for tiles of few columns.
const TILE_ROWS: usize = 2048;

/// Groups of rows whose sums are kept apart in a transposed product.
const GROUPS: usize = 16;

/// Columns up to which a transposed product is cut by rows.
const NARROW: usize = 2048;

/// A matrix that can write any of its tiles.
pub(crate) trait TileSource<T: Real>: Sync {
    /// Rows, columns.
    fn shape(&self) -> (usize, usize);

    /// Writes one tile (column-major).
    fn tile(&self, rows: Range<usize>, columns: Range<usize>, out: MatMut<'_, T>);

    /// The tile, where it lies in memory already.
    fn stored(&self, _rows: Range<usize>, _columns: Range<usize>) -> Option<MatRef<'_, T>> {
        None
    }
}

/// Room for one tile of a matrix.
struct Buffer<T> {
    matrix: Mat<T>,
}

impl<T: Real> Buffer<T> {
    /// `(rows, columns)` of tiles that cover at most `columns` columns.
    fn sizes(columns: usize) -> (usize, usize) {
        let wide = columns.clamp(1, TILE_COLUMNS);
        ((TILE_BYTES / size_of::<T>() / wide).clamp(64, TILE_ROWS), wide)
    }

    fn new(rows: usize, columns: usize) -> Self {
        Self { matrix: Mat::zeros(rows, columns) }
    }

    fn with<R>(
        &mut self,
        source: &dyn TileSource<T>,
        rows: Range<usize>,
        columns: Range<usize>,
        work: impl FnOnce(MatRef<'_, T>) -> R,
    ) -> R {
        if let Some(tile) = source.stored(rows.clone(), columns.clone()) {
            return work(tile);
        }
        let mut tile = self.matrix.as_mut().submatrix_mut(0, 0, rows.len(), columns.len());
        source.tile(rows, columns, tile.as_mut());
        work(tile.as_ref())
    }
}

/// `out <- A v`, each block of rows by one thread.
#[inline(never)]
pub(crate) fn multiply<T: Real>(source: &dyn TileSource<T>, v: MatRef<'_, T>, out: MatMut<'_, T>) {
    let (n, m) = source.shape();
    let (mut rows, columns) = Buffer::<T>::sizes(m);
    // Enough blocks for many threads.
    rows = rows.min(n.div_ceil(64).max(256)).max(1);
    let blocks: Vec<_> = row_blocks(out, rows);
    let room = || Buffer::new(rows, columns.min(m));
    parallel::consume_with(blocks, room, |buffer, (rows, mut out)| {
        out.fill(T::ZERO);
        for columns in pieces(m, columns) {
            let piece = v.subrows(columns.start, columns.len());
            buffer.with(source, rows.clone(), columns, |tile| add_product(tile, piece, out.as_mut()));
        }
    });
}

/// `out <- Aᵀ v`. With few columns, sums over fixed groups of rows are added up in the end; with many, each block of columns
/// belongs to one thread.
#[inline(never)]
pub(crate) fn multiply_transpose<T: Real>(
    source: &dyn TileSource<T>,
    v: MatRef<'_, T>,
    mut out: MatMut<'_, T>,
) {
    let (n, m) = source.shape();
    let (rows, columns) = Buffer::<T>::sizes(m);
    let sum = |range: Range<usize>, across: Range<usize>, mut out: MatMut<'_, T>| {
        out.fill(T::ZERO);
        let mut buffer = Buffer::new(rows.min(range.len()), columns.min(across.len()));
        for down in pieces(range.len(), rows) {
            let down = range.start + down.start..range.start + down.end;
            let piece = v.subrows(down.start, down.len());
            for strip in pieces(across.len(), columns) {
                let part = out.as_mut().subrows_mut(strip.start, strip.len());
                let strip = across.start + strip.start..across.start + strip.end;
                buffer.with(source, down.clone(), strip, |tile| add_transposed_product(tile, piece, part));
            }
        }
    };
    if m > NARROW {
        let blocks = row_blocks(out, columns * 4);
        parallel::consume(blocks, |(across, out)| sum(0..n, across, out));
        return;
    }
    let length = n.div_ceil(GROUPS).max(512);
    let parts: Vec<Mat<T>> = parallel::map(n.div_ceil(length), 1, |i| {
        let mut part = Mat::zeros(m, v.ncols());
        sum(i * length..n.min((i + 1) * length), 0..m, part.as_mut());
        part
    });
    out.fill(T::ZERO);
    for part in &parts {
        out += part;
    }
}

/// `out <- A v` for a symmetric A, each tile off the diagonal used for itself and its mirror image.
///
/// Rows are cut into blocks. A pair of blocks is one piece of work and adds to both blocks of the result; pairs come in rounds in
/// which every block occurs once (a round-robin tournament), so no two threads meet at a block and no partial results are stored.
#[inline(never)]
pub(crate) fn multiply_symmetric<T: Real>(
    source: &dyn TileSource<T>,
    v: MatRef<'_, T>,
    mut out: MatMut<'_, T>,
) {
    let n = source.shape().0;
    out.fill(T::ZERO);
    let length = (n / 32).next_multiple_of(64).clamp(512, 1024);
    let (tall, wide) = Buffer::<T>::sizes(length);
    let blocks: Vec<(Range<usize>, Mutex<MatMut<'_, T>>)> =
        row_blocks(out, length).into_iter().map(|(rows, out)| (rows, Mutex::new(out))).collect();
    let lock = |i: usize| blocks[i].1.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let (tall, wide) = (tall.min(length), wide.min(length));
    let room = || Buffer::new(tall, wide);
    parallel::consume_with((0..blocks.len()).collect(), room, |buffer, i: usize| {
        let (range, mut out) = (&blocks[i].0, lock(i));
        for_tiles(range, range, (tall, wide), |rows, columns| {
            let part = out.as_mut().subrows_mut(rows.start - range.start, rows.len());
            let piece = v.subrows(columns.start, columns.len());
            buffer.with(source, rows, columns, |tile| add_product(tile, piece, part));
        });
    });
    for round in rounds(blocks.len()) {
        parallel::consume_with(round, room, |buffer, (i, j)| {
            let ((down, mut first), (across, mut second)) =
                ((&blocks[i].0, lock(i)), (&blocks[j].0, lock(j)));
            for_tiles(down, across, (tall, wide), |rows, columns| {
                let part = first.as_mut().subrows_mut(rows.start - down.start, rows.len());
                let mirror = second.as_mut().subrows_mut(columns.start - across.start, columns.len());
                let (left, right) =
                    (v.subrows(rows.start, rows.len()), v.subrows(columns.start, columns.len()));
                buffer.with(source, rows, columns, |tile| add_both_products(tile, right, part, left, mirror));
            });
        });
    }
}

/// Tiles of one block.
fn for_tiles(
    down: &Range<usize>,
    across: &Range<usize>,
    (tall, wide): (usize, usize),
    mut work: impl FnMut(Range<usize>, Range<usize>),
) {
    for rows in pieces(down.len(), tall) {
        for columns in pieces(across.len(), wide) {
            work(
                down.start + rows.start..down.start + rows.end,
                across.start + columns.start..across.start + columns.end,
            );
        }
    }
}

/// All pairs `(i, j)`, i > j, of `count` things in rounds in which each occurs at most once: the circle method.
fn rounds(count: usize) -> impl Iterator<Item = Vec<(usize, usize)>> {
    let even = count.next_multiple_of(2);
    let circle = even.saturating_sub(1);
    (0..circle).map(move |round| {
        let pair = |k: usize| match k {
            0 => (circle, round),
            _ => ((round + k) % circle, (round + circle - k) % circle),
        };
        (0..even / 2)
            .map(pair)
            .map(|(a, b)| (a.max(b), a.min(b)))
            .filter(|&(larger, _)| larger < count)
            .collect()
    })
}

/// The matrix's blocks of `length` rows.
pub(crate) fn row_blocks<T>(out: MatMut<'_, T>, length: usize) -> Vec<(Range<usize>, MatMut<'_, T>)> {
    let mut rest = Some(out);
    let total = rest.as_ref().map_or(0, |r| r.nrows());
    pieces(total, length)
        .filter_map(|rows| {
            let (head, tail) = rest.take()?.split_at_row_mut(rows.len());
            rest = Some(tail);
            Some((rows, head))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tournaments_meet_every_pair_once_and_nobody_twice_in_a_round() {
        for count in 0..12 {
            let mut met = vec![0; count * count];
            for round in rounds(count) {
                let mut seen = vec![false; count];
                for (i, j) in round {
                    assert!(i > j && !seen[i] && !seen[j]);
                    (seen[i], seen[j]) = (true, true);
                    met[i * count + j] += 1;
                }
            }
            assert!((0..count).all(|i| (0..i).all(|j| met[i * count + j] == 1)), "{count}");
        }
    }
}
