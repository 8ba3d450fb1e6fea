//! Matrices cut into **tiles** that fit the cache, visited in parallel.
//!
//! Columns are cut first: with column-major storage each strip of columns is one piece of memory. A matrix with fewer strips than
//! would keep the threads busy has its strips cut into tiles for different threads, too.

use crate::{Real, parallel};
use faer::MatMut;
use std::ops::Range;

/// Which tiles of a matrix are visited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cover {
    /// All of them.
    Full,
    /// Those that touch the lower triangle of a square matrix; tiles on the diagonal are visited whole.
    Lower,
}

/// The pieces of `0..length`, `tile` long (the last may be shorter).
pub fn pieces(length: usize, tile: usize) -> impl DoubleEndedIterator<Item = Range<usize>> + Clone {
    (0..length.div_ceil(tile)).map(move |i| i * tile..((i + 1) * tile).min(length))
}

/// Calls `work(rows, columns, tile)` for every tile of `out`, in parallel.
///
/// # Panics
/// When `tile` is 0.
pub fn for_each_tile<T: Real>(
    out: MatMut<'_, T>,
    tile: usize,
    cover: Cover,
    work: impl Fn(Range<usize>, Range<usize>, MatMut<'_, T>) + Sync,
) {
    let rows = out.nrows();
    let mut strips = Vec::new();
    let mut rest = out;
    for columns in pieces(rest.ncols(), tile) {
        let (strip, tail) = rest.split_at_col_mut(columns.len());
        strips.push((columns, strip));
        rest = tail;
    }
    let few = strips.len() < 4 * rayon::current_num_threads();
    let visit = |(columns, strip): (Range<usize>, MatMut<'_, T>)| {
        let tiles = cut_rows(strip, covered(rows, &columns, tile, cover));
        if few && tiles.len() > 1 {
            parallel::consume(tiles, |(rows, target)| work(rows, columns.clone(), target));
        } else {
            tiles.into_iter().for_each(|(rows, target)| work(rows, columns.clone(), target));
        }
    };
    // One strip is visited on this thread: small matrices need not wake another.
    if strips.len() == 1 {
        strips.into_iter().for_each(visit);
    } else {
        parallel::consume(strips, visit);
    }
}

/// The tiles of `strip` at `pieces`, which are ascending and disjoint.
fn cut_rows<'a, T>(
    strip: MatMut<'a, T>,
    pieces: impl Iterator<Item = Range<usize>>,
) -> Vec<(Range<usize>, MatMut<'a, T>)> {
    let (mut rest, mut start) = (strip, 0);
    pieces
        .map(|rows| {
            let whole = std::mem::replace(&mut rest, MatMut::from_column_major_slice_mut(&mut [], 0, 0));
            let (_, below) = whole.split_at_row_mut(rows.start - start);
            let (target, tail) = below.split_at_row_mut(rows.len());
            (rest, start) = (tail, rows.end);
            (rows, target)
        })
        .collect()
}

fn covered(
    rows: usize,
    columns: &Range<usize>,
    tile: usize,
    cover: Cover,
) -> impl Iterator<Item = Range<usize>> {
    let first = if cover == Cover::Lower { columns.start } else { 0 };
    pieces(rows, tile).filter(move |r| r.end > first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use faer::Mat;

    #[test]
    fn every_entry_is_visited_once_and_the_lower_cover_touches_the_triangle() {
        for (n, m, tile) in [(10, 7, 3), (1, 1, 4), (8, 8, 4), (0, 3, 2), (5, 0, 2)] {
            let mut counts = Mat::<f64>::zeros(n, m);
            for_each_tile(counts.as_mut(), tile, Cover::Full, |rows, columns, mut out| {
                assert_eq!((out.nrows(), out.ncols()), (rows.len(), columns.len()));
                for j in 0..out.ncols() {
                    for i in 0..out.nrows() {
                        out[(i, j)] += 1.0 + (rows.start + i) as f64 + 100.0 * (columns.start + j) as f64;
                    }
                }
            });
            for j in 0..m {
                for i in 0..n {
                    assert_eq!(counts[(i, j)], 1.0 + i as f64 + 100.0 * j as f64);
                }
            }
        }
        let mut seen = Mat::<f64>::zeros(10, 10);
        for_each_tile(seen.as_mut(), 4, Cover::Lower, |_, _, mut out| out.fill(1.0));
        for j in 0..10 {
            for i in 0..10 {
                assert_eq!(seen[(i, j)] == 1.0, i / 4 >= j / 4);
            }
        }
    }

    #[test]
    fn tall_and_thin_matrices_are_shared_among_threads() {
        // Each of the two tiles waits, for a while, until the other has begun, which only different threads can do.
        let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
        let mut column = Mat::<f64>::zeros(64, 1);
        let begun = std::sync::atomic::AtomicUsize::new(0);
        pool.install(|| {
            for_each_tile(column.as_mut(), 32, Cover::Full, |rows, _, mut out| {
                begun.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
                while begun.load(std::sync::atomic::Ordering::SeqCst) < 2 {
                    assert!(std::time::Instant::now() < deadline, "the second tile waits for the first");
                    std::thread::yield_now();
                }
                out.fill(rows.start as f64);
            });
        });
        assert!((0..64).all(|i| column[(i, 0)] == (i / 32 * 32) as f64));
    }
}
