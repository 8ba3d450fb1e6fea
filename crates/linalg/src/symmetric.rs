//! **Symmetric matrices** of which one triangle was computed, or whose triangles differ by rounding.
//!
//! Both functions cut the square by halves: the two triangles on the diagonal beside one another in parallel, then the block between them in
//! small squares that fit the first-level cache. They read and write `n²` numbers once.

use crate::Real;
use crate::tiles::pieces;
use faer::MatMut;

/// Side of a square that stays in the first-level cache, with its mirror image.
const SMALL: usize = 32;

/// Side up to which a triangle is not worth another thread.
const ALONE: usize = 128;

/// Copies the lower triangle to the upper one.
///
/// # Panics
/// When the matrix is not square.
pub fn mirror_lower<T: Real>(matrix: MatMut<'_, T>) {
    for_each_pair(
        matrix,
        &|below, above| {
            above.copy_from(below.as_ref().transpose());
        },
        &|below, _| below,
    );
}

/// Replaces the matrix by `(A + Aᵀ) / 2`, exactly symmetric.
///
/// # Panics
/// When the matrix is not square.
pub fn average_with_transpose<T: Real>(matrix: MatMut<'_, T>) {
    let half = T::from_f64(0.5);
    let mean = move |a: T, b: T| half * (a + b);
    for_each_pair(
        matrix,
        &move |below, above| {
            for j in 0..below.ncols() {
                for i in 0..below.nrows() {
                    let value = mean(below[(i, j)], above[(j, i)]);
                    (below[(i, j)], above[(j, i)]) = (value, value);
                }
            }
        },
        &mean,
    );
}

/// What is done to a square below the diagonal and its mirror image above.
type Squares<'a, T> = &'a (dyn Fn(&mut MatMut<'_, T>, &mut MatMut<'_, T>) + Sync);

/// What both entries of a pair become, from the lower and the upper.
type Entries<'a, T> = &'a (dyn Fn(T, T) -> T + Sync);

#[inline(never)]
fn for_each_pair<T: Real>(matrix: MatMut<'_, T>, squares: Squares<'_, T>, entries: Entries<'_, T>) {
    let mut matrix = matrix;
    let n = matrix.nrows();
    assert_eq!(n, matrix.ncols(), "only square matrices are symmetric");
    if n <= SMALL {
        for j in 0..n {
            for i in j + 1..n {
                let value = entries(matrix[(i, j)], matrix[(j, i)]);
                (matrix[(i, j)], matrix[(j, i)]) = (value, value);
            }
        }
        return;
    }
    let (first, mut above, mut below, second) = matrix.split_at_mut(n / 2, n / 2);
    let between = || {
        for columns in pieces(below.ncols(), SMALL) {
            for rows in pieces(below.nrows(), SMALL) {
                let (i, j, height, width) = (rows.start, columns.start, rows.len(), columns.len());
                let mut lower = below.as_mut().submatrix_mut(i, j, height, width);
                let mut upper = above.as_mut().submatrix_mut(j, i, width, height);
                squares(&mut lower, &mut upper);
            }
        }
    };
    let triangles = |first, second| {
        for_each_pair(first, squares, entries);
        for_each_pair(second, squares, entries);
    };
    if n <= ALONE {
        let mut between = between;
        between();
        triangles(first, second);
    } else {
        rayon::join(between, || triangles(first, second));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use faer::Mat;

    #[test]
    fn both_triangles_become_what_they_should() {
        for n in [0, 1, 2, 31, 33, 64, 127, 300] {
            let a = Mat::<f64>::from_fn(n, n, |i, j| (3 * i + 7 * j) as f64);
            let (mut mirrored, mut averaged) = (a.clone(), a.clone());
            mirror_lower(mirrored.as_mut());
            average_with_transpose(averaged.as_mut());
            for j in 0..n {
                for i in 0..n {
                    assert_eq!(mirrored[(i, j)], a[(i.max(j), i.min(j))]);
                    assert_eq!(averaged[(i, j)], 5.0 * (i + j) as f64);
                }
            }
        }
    }
}
