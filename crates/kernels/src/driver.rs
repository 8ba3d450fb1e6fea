//! Whole kernel matrices out of tiles: parallel, and with the same bits however many threads there are.
//!
//! **Bound.** A matrix n x m of elements of b bytes costs `b n m` bytes of writing and about `2D + 20` flops an entry. For
//! Matérn-3/2, D = 8, f32, 8,000 x 8,000 that is 256 MB and 2.3 GFLOP: at 16 lanes, two cores and one
//! vector operation a cycle the arithmetic takes about 20 ms, so writing (10 to 20 GB/s) and arithmetic are level.
//! Measured figures: the book, chapter on speed; `benches/cross.rs`.

use crate::{Adjoints, Kernel, Pair, Request};
use faer::{Mat, MatMut, MatRef};
use posterior_linalg::Real;
use posterior_linalg::parallel;
use posterior_linalg::symmetric::mirror_lower;
use posterior_linalg::tiles::{Cover, for_each_tile, pieces};
use std::ops::Range;

/// Rows and columns of a tile, unless a kernel wants smaller ones ([`Kernel::tile`]): 256 x 256 doubles are 512 KiB, half of a second-level cache.
pub const TILE: usize = 256;

/// Rows and columns of a tile of [`pullback`], whose loops take several passes over buffers of one column; small enough that 512 inducing
/// points make work for many threads.
const PULL_TILE: usize = 128;

/// Tiles whose adjoints (256 points of D coordinates each) are kept at a time.
const PARTS: usize = 1024;

/// Points of one parallel piece of [`pullback_diagonal`].
const CHUNK: usize = 1024;

/// `k(x, z)`, n x m, for x of n x D and z of m x D.
pub fn cross<T: Real>(kernel: &dyn Kernel<T>, x: MatRef<'_, T>, z: MatRef<'_, T>) -> Mat<T> {
    let mut out = Mat::zeros(x.nrows(), z.nrows());
    cross_into(kernel, x, z, out.as_mut());
    out
}

/// `out = k(x, z)`.
///
/// # Panics
/// When the shape of `out` is not n x m or it is not column-major.
pub fn cross_into<T: Real>(kernel: &dyn Kernel<T>, x: MatRef<'_, T>, z: MatRef<'_, T>, out: MatMut<'_, T>) {
    assert_eq!((out.nrows(), out.ncols()), (x.nrows(), z.nrows()), "the output is rows of x by rows of z");
    for_each_tile(out, kernel.tile(), Cover::Full, |rows, columns, tile| {
        kernel.cross_tile(Pair { x: block(x, &rows), z: block(z, &columns), same: None }, tile);
    });
}

/// `k(x, x)`, n x n, both triangles.
#[inline(never)]
pub fn gram<T: Real>(kernel: &dyn Kernel<T>, x: MatRef<'_, T>) -> Mat<T> {
    let n = x.nrows();
    let mut out = Mat::zeros(n, n);
    gram_lower_into(kernel, x, out.as_mut());
    mirror_lower(out.as_mut());
    out
}

/// The lower triangle of `k(x, x)`, diagonal included; what stands above it is unspecified. Half the work of [`gram`].
///
/// # Panics
/// When `out` is not n x n and column-major.
pub fn gram_lower_into<T: Real>(kernel: &dyn Kernel<T>, x: MatRef<'_, T>, out: MatMut<'_, T>) {
    assert_eq!((out.nrows(), out.ncols()), (x.nrows(), x.nrows()), "the output is square");
    for_each_tile(out, kernel.tile(), Cover::Lower, |rows, columns, tile| {
        kernel.cross_tile(same_pair(x, &rows, &columns), tile);
    });
}

/// `k(x_i, x_i)` (n).
pub fn diagonal<T: Real>(kernel: &dyn Kernel<T>, x: MatRef<'_, T>) -> Vec<T> {
    let mut out = vec![T::ZERO; x.nrows()];
    kernel.diagonal(x, &mut out);
    out
}

/// What an `adjoint` (n x m) of `k(x, z)` contributes to parameters, x and z.
pub fn pullback<T: Real>(
    kernel: &dyn Kernel<T>,
    x: MatRef<'_, T>,
    z: MatRef<'_, T>,
    adjoint: MatRef<'_, T>,
    request: Request,
) -> Adjoints<T> {
    assert_eq!(
        (adjoint.nrows(), adjoint.ncols()),
        (x.nrows(), z.nrows()),
        "the adjoint has the matrix's shape"
    );
    pull_tiles(kernel, (x, z), Cover::Full, request, |rows, columns, mut tile| {
        tile.copy_from(adjoint.submatrix(rows.start, columns.start, rows.len(), columns.len()));
    })
}

/// Writes one tile of a symmetric adjoint: its rows, its columns, where to.
pub type FillAdjoint<'a, T> = dyn Fn(Range<usize>, Range<usize>, MatMut<'_, T>) + Sync + 'a;

/// What a symmetric adjoint of `k(x, x)` contributes to the parameters and, through both arguments together, to x.
///
/// `fill(rows, columns, tile)` writes tiles of the adjoint's lower triangle (tiles on the diagonal whole), so that the adjoint need
/// not be stored; tiles below the diagonal count twice.
pub fn pullback_gram<T: Real>(
    kernel: &dyn Kernel<T>,
    x: MatRef<'_, T>,
    fill: &FillAdjoint<'_, T>,
    request: Request,
) -> Adjoints<T> {
    let both = Request { x: request.x, z: request.x, ..request };
    let two = T::ONE + T::ONE;
    let adjoints = pull_tiles(kernel, (x, x), Cover::Lower, both, |rows, columns, mut tile| {
        fill(rows.clone(), columns.clone(), tile.as_mut());
        if rows != columns {
            for j in 0..tile.ncols() {
                tile.as_mut().col_mut(j).iter_mut().for_each(|v| *v *= two);
            }
        }
    });
    adjoints.both_arguments()
}

/// What adjoints (n) of the diagonal contribute. Cost `O(nD)`; with white noise each point with itself is a tile of one entry, which takes ten times as long and more.
pub fn pullback_diagonal<T: Real>(
    kernel: &dyn Kernel<T>,
    x: MatRef<'_, T>,
    adjoint: &[T],
    request: Request,
) -> Adjoints<T> {
    assert_eq!(adjoint.len(), x.nrows(), "one adjoint for each point");
    let (count, d) = (kernel.parameter_count(), x.ncols());
    let chunks: Vec<Range<usize>> = pieces(x.nrows(), CHUNK).collect();
    if !kernel.is_noisy() {
        let own = Request { z: false, ..request };
        let parts: Vec<Adjoints<T>> = parallel::map(chunks.len(), 1, |chunk| {
            let rows = &chunks[chunk];
            let mut part = Adjoints::zeros(own, count, rows.len(), 0, d);
            let (x, adjoint) = (block(x, rows), &adjoint[rows.clone()]);
            if request.parameters {
                kernel.pullback_values_at(x, adjoint, &mut part.parameters);
            }
            if let Some(of_x) = &mut part.x {
                kernel.pullback_values_to_points(x, adjoint, of_x);
            }
            part
        });
        let mut total = Adjoints::zeros(own, count, x.nrows(), 0, d);
        for (part, rows) in parts.iter().zip(&chunks) {
            total.add(part, rows, &(0..0));
        }
        return total;
    }
    let both = Request { x: request.x, z: request.x, ..request };
    let parts: Vec<Adjoints<T>> = parallel::map(chunks.len(), 1, |chunk| {
        let rows = &chunks[chunk];
        let mut part = Adjoints::zeros(both, count, rows.len(), rows.len(), d);
        for (k, i) in rows.clone().enumerate() {
            let point = x.subrows(i, 1);
            let pair = Pair { x: point, z: point, same: Some((i, i)) };
            let weight = MatRef::from_column_major_slice(&adjoint[i..=i], 1, 1);
            let mut one = Adjoints::zeros(both, count, 1, 1, d);
            kernel.pullback_tile(pair, weight, &mut one);
            part.add(&one, &(k..k + 1), &(k..k + 1));
        }
        part
    });
    let mut total = Adjoints::zeros(both, count, x.nrows(), x.nrows(), d);
    for (part, rows) in parts.iter().zip(&chunks) {
        total.add(part, rows, rows);
    }
    total.both_arguments()
}

pub(crate) fn pull_tiles<T: Real>(
    kernel: &dyn Kernel<T>,
    (x, z): (MatRef<'_, T>, MatRef<'_, T>),
    cover: Cover,
    request: Request,
    fill: impl Fn(Range<usize>, Range<usize>, MatMut<'_, T>) + Sync,
) -> Adjoints<T> {
    let (n, m, d) = (x.nrows(), z.nrows(), x.ncols());
    let count = kernel.parameter_count();
    let tile = |(rows, columns): &(Range<usize>, Range<usize>)| {
        let mut adjoint = Mat::zeros(rows.len(), columns.len());
        fill(rows.clone(), columns.clone(), adjoint.as_mut());
        let pair = match cover {
            Cover::Full => Pair { x: block(x, rows), z: block(z, columns), same: None },
            Cover::Lower => same_pair(x, rows, columns),
        };
        let mut part = Adjoints::zeros(request, count, rows.len(), columns.len(), d);
        kernel.pullback_tile(pair, adjoint.as_ref(), &mut part);
        part
    };
    let side = PULL_TILE.min(kernel.tile());
    let tiles: Vec<(Range<usize>, Range<usize>)> = pieces(m, side)
        .flat_map(|columns| {
            let first = if cover == Cover::Lower { columns.start } else { 0 };
            let rows = pieces(n, side).filter(move |rows| rows.end > first);
            rows.map(move |rows| (rows, columns.clone()))
        })
        .collect();
    // No more than some parts are kept at a time. Their number does not depend on that of the threads, nor does the order in which they are
    // added up.
    let mut total = Adjoints::zeros(request, count, n, m, d);
    for group in tiles.chunks(PARTS) {
        let parts: Vec<Adjoints<T>> = parallel::map(group.len(), 1, |i| tile(&group[i]));
        for (part, (rows, columns)) in parts.iter().zip(group) {
            total.add(part, rows, columns);
        }
    }
    total
}

impl<T: Real> Adjoints<T> {
    /// Adjoints of x when it is both arguments.
    fn both_arguments(mut self) -> Self {
        if let (Some(first), Some(second)) = (&mut self.x, self.z.take()) {
            *first += second;
        }
        self
    }

    /// Adds the adjoints of a part: its points are `rows` and `columns` of the whole.
    #[inline(never)]
    fn add(&mut self, part: &Self, rows: &Range<usize>, columns: &Range<usize>) {
        self.parameters.iter_mut().zip(&part.parameters).for_each(|(t, p)| *t += p);
        for (whole, piece, range) in [(&mut self.x, &part.x, rows), (&mut self.z, &part.z, columns)] {
            if let (Some(whole), Some(piece)) = (whole, piece) {
                let mut target = whole.as_mut().subrows_mut(range.start, range.len());
                target += piece;
            }
        }
    }
}

fn block<'a, T>(points: MatRef<'a, T>, rows: &Range<usize>) -> MatRef<'a, T> {
    points.subrows(rows.start, rows.len())
}

fn same_pair<'a, T>(x: MatRef<'a, T>, rows: &Range<usize>, columns: &Range<usize>) -> Pair<'a, T> {
    Pair { x: block(x, rows), z: block(x, columns), same: Some((rows.start, columns.start)) }
}
