//! Products of one tile with pieces of vectors.

use faer::linalg::matmul::matmul;
use faer::{Accum, MatMut, MatRef, Par};
use posterior_linalg::Real;
use posterior_linalg::vectorised::{dispatch, dot};

/// Vectors up to which a tile's product is a pass of its own over the tile; beyond, it is a matrix product.
const FEW: usize = 3;

/// `out += tile v`
#[inline(never)]
pub(super) fn add_product<T: Real>(tile: MatRef<'_, T>, v: MatRef<'_, T>, mut out: MatMut<'_, T>) {
    if v.ncols() > FEW || !contiguous(out.as_ref()) {
        return matmul(out, Accum::Add, tile, v, T::ONE, Par::Seq);
    }
    for c in 0..v.ncols() {
        let target = slice_mut(&mut out, c);
        dispatch(
            #[inline(always)]
            || {
                four_columns(tile, |j| v[(j, c)], target);
            },
        );
    }
}

/// `out += tileᵀ v`
#[inline(never)]
pub(super) fn add_transposed_product<T: Real>(tile: MatRef<'_, T>, v: MatRef<'_, T>, mut out: MatMut<'_, T>) {
    if v.ncols() > FEW || !contiguous(v) {
        return matmul(out, Accum::Add, tile.transpose(), v, T::ONE, Par::Seq);
    }
    for c in 0..v.ncols() {
        let values = slice(v, c);
        dispatch(
            #[inline(always)]
            || {
                for j in 0..tile.ncols() {
                    out[(j, c)] += dot(slice(tile, j), values);
                }
            },
        );
    }
}

/// `out += tile right` and `mirror += tileᵀ left`: two passes, which are faster than one that does both.
pub(super) fn add_both_products<T: Real>(
    tile: MatRef<'_, T>,
    right: MatRef<'_, T>,
    out: MatMut<'_, T>,
    left: MatRef<'_, T>,
    mirror: MatMut<'_, T>,
) {
    add_product(tile, right, out);
    add_transposed_product(tile, left, mirror);
}

/// `target[i] += Σ_j tile[i, j] v(j)`, four columns a pass over the target.
#[inline(always)]
fn four_columns<T: Real>(tile: MatRef<'_, T>, v: impl Fn(usize) -> T, target: &mut [T]) {
    let (n, m) = (target.len(), tile.ncols());
    let mut j = 0;
    while j + 4 <= m {
        let columns: [&[T]; 4] = std::array::from_fn(|k| &slice(tile, j + k)[..n]);
        let factors: [T; 4] = std::array::from_fn(|k| v(j + k));
        for i in 0..n {
            let mut sum = target[i];
            for k in 0..4 {
                sum = columns[k][i].mul_add(factors[k], sum);
            }
            target[i] = sum;
        }
        j += 4;
    }
    while j < m {
        let (column, factor) = (&slice(tile, j)[..n], v(j));
        for i in 0..n {
            target[i] = column[i].mul_add(factor, target[i]);
        }
        j += 1;
    }
}

fn contiguous<T>(matrix: MatRef<'_, T>) -> bool {
    matrix.nrows() <= 1 || matrix.row_stride() == 1
}

#[inline(always)]
fn slice<T>(matrix: MatRef<'_, T>, j: usize) -> &[T] {
    crate::kernel::entries(matrix, j)
}

#[inline(always)]
fn slice_mut<'a, T>(matrix: &'a mut MatMut<'_, T>, j: usize) -> &'a mut [T] {
    crate::kernel::column(matrix, j)
}
