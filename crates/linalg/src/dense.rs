//! **Dense products and factorisations** on all threads, whose bits do not depend on how many threads there are.
//!
//! Sums over data may be cut by sizes, never by threads, so that the same seed gives the same file on any number of them. `faer` keeps that
//! promise wherever it multiplies two columns or more: its threads share out entries of the result, and the sum behind an entry always runs along the inner dimension
//! in the same pieces. So products, Cholesky factors, inverses and solves for several columns take [`parallelism`]. It breaks the promise in three places, which
//! therefore have their home here:
//!
//! | function | `faer` cuts by threads | here | cost |
//! |---|---|---|---|
//! | [`multiply_into`], [`product`] with one column | the inner dimension | pieces of 2¹⁷ entries of the matrix, added in order | `2mk` flops, limited by reading the matrix once |
//! | [`solve_lower`], [`solve_upper`] with one column | the products inside | blocks of 256 rows, with products as above | `n²` flops, limited by reading the triangle once |
//! | [`eigen`], [`eigenvalues`], [`qr`] | the sums of the reduction | always as for four threads | `9n³`, `4n³/3`, `4mn²` flops, half of them limited by memory |
//! | [`svd`], [`eigen_unsymmetric`] | the same | the same | `20n³`, `30n³` flops |

use crate::tiles::pieces;
use crate::{Real, parallel};
use faer::diag::DiagMut;
use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::evd::{ComputeEigenvectors, self_adjoint_evd, self_adjoint_evd_scratch};
use faer::linalg::householder::{
    apply_block_householder_sequence_on_the_left_in_place_scratch as apply_scratch,
    apply_block_householder_sequence_on_the_left_in_place_with_conj as apply_householder,
};
use faer::linalg::matmul::matmul;
use faer::linalg::qr::no_pivoting::factor::{qr_in_place, qr_in_place_scratch, recommended_block_size};
pub use faer::linalg::solvers::EvdError;
use faer::linalg::triangular_solve::{solve_lower_triangular_in_place, solve_upper_triangular_in_place};
use faer::prelude::ReborrowMut;
use faer::{Accum, Conj, Mat, MatMut, MatRef, Par};

mod unsymmetric;
pub use faer::linalg::svd::SvdError;
pub use unsymmetric::{SingularValues, UnsymmetricEigen, eigen_unsymmetric, svd};

/// Multiplications below which waking other threads costs more than they save.
const SMALL: usize = 1 << 20;

/// Entries of a matrix that one thread multiplies with a vector at a time: a mebibyte.
const PIECE: usize = 1 << 17;

/// Rows of a band of a matrix that is stored by columns.
const BAND: usize = 4096;

/// Rows of a block of a triangle that is solved for one column.
const BLOCK: usize = 256;

/// In how many parts eigendecompositions are summed, whatever the number of threads.
const PARTS: usize = 4;

/// How many threads a factorisation, a triangular product or a solve of dimension `n` with that many columns should use: waking a pool costs more than
/// a small matrix is worth, and small problems must be instant; the sums of a single column would be cut by threads.
pub fn parallelism(n: usize, columns: usize) -> Par {
    if n < 192 || columns == 1 { Par::Seq } else { Par::rayon(0) }
}

/// Does one thing on another thread while this one does the other: for chains of products of `n x n` matrices that are too small to be shared out themselves but take a tenth of a millisecond together.
pub fn beside<A: Send, B>(n: usize, there: impl FnOnce() -> A + Send, here: impl FnOnce() -> B) -> (A, B) {
    if n < 64 || rayon::current_num_threads() == 1 {
        return (there(), here());
    }
    let mut of_there = None;
    let of_here = rayon::in_place_scope(|scope| {
        scope.spawn(|_| of_there = Some(there()));
        here()
    });
    (of_there.expect("the scope waits for it"), of_here)
}

/// `out <- alpha a b`, or `out <- out + alpha a b`: m x n from m x k and k x n. Cost `2mnk` flops.
///
/// # Panics
/// When the shapes do not fit together.
pub fn multiply_into<T: Real>(
    out: MatMut<'_, T>,
    accumulate: Accum,
    a: MatRef<'_, T>,
    b: MatRef<'_, T>,
    alpha: T,
) {
    let (rows, columns) = out.shape();
    if rows.saturating_mul(columns).saturating_mul(a.ncols()) < SMALL {
        matmul(out, accumulate, a, b, alpha, Par::Seq);
    } else if columns == 1 {
        multiply_vector(out, accumulate, a, b, alpha);
    } else if rows == 1 {
        multiply_vector(out.transpose_mut(), accumulate, b.transpose(), a.transpose(), alpha);
    } else {
        matmul(out, accumulate, a, b, alpha, Par::rayon(0));
    }
}

/// `a b`, m x n from m x k and k x n, as [`multiply_into`].
///
/// # Panics
/// When the shapes do not fit together.
pub fn product<T: Real>(a: MatRef<'_, T>, b: MatRef<'_, T>) -> Mat<T> {
    let mut out = Mat::zeros(a.nrows(), b.ncols());
    multiply_into(out.as_mut(), Accum::Replace, a, b, T::ONE);
    out
}

/// A product with one column. Few long rows that are stored by columns are cut into groups of columns, everything else into bands of rows.
#[inline(never)]
fn multiply_vector<T: Real>(
    mut out: MatMut<'_, T>,
    accumulate: Accum,
    a: MatRef<'_, T>,
    b: MatRef<'_, T>,
    alpha: T,
) {
    let (rows, inner) = a.shape();
    let by_columns = a.row_stride() == 1;
    if by_columns && rows < 2 * BAND {
        let each = (PIECE / rows).max(1);
        let parts: Vec<Mat<T>> = parallel::map(inner.div_ceil(each), 1, |group| {
            let (start, length) = (group * each, each.min(inner - group * each));
            let mut part = Mat::zeros(rows, 1);
            let (a, b) = (a.subcols(start, length), b.subrows(start, length));
            matmul(part.as_mut(), Accum::Replace, a, b, alpha, Par::Seq);
            part
        });
        if accumulate == Accum::Replace {
            out.fill(T::ZERO);
        }
        parts.iter().for_each(|part| out += part);
    } else {
        let band = if by_columns { BAND } else { (PIECE / inner).max(1) };
        parallel::column_chunks(out.transpose_mut(), band, |index, out| {
            let out = out.transpose_mut();
            let a = a.subrows(index * band, out.nrows());
            matmul(out, accumulate, a, b, alpha, Par::Seq);
        });
    }
}

/// `B <- L⁻¹ B` for a lower-triangular L (n x n, what stands above is not read) and B of n x k. Cost `n²k` flops.
pub fn solve_lower(lower: MatRef<'_, f64>, mut right: MatMut<'_, f64>) {
    let n = lower.nrows();
    if right.ncols() != 1 || n <= BLOCK {
        let par = parallelism(n, right.ncols());
        return solve_lower_triangular_in_place(lower, right, par);
    }
    for rows in pieces(n, BLOCK) {
        let (start, end, length) = (rows.start, rows.end, rows.len());
        let (done, rest) = right.rb_mut().split_at_row_mut(end);
        let mut solved = done.subrows_mut(start, length);
        let block = lower.submatrix(start, start, length, length);
        solve_lower_triangular_in_place(block, solved.rb_mut(), Par::Seq);
        let below = lower.submatrix(end, start, n - end, length);
        multiply_into(rest, Accum::Add, below, solved.as_ref(), -1.0);
    }
}

/// `B <- U⁻¹ B` for an upper-triangular U (n x n, what stands below is not read) and B of n x k. Cost `n²k` flops.
pub fn solve_upper(upper: MatRef<'_, f64>, mut right: MatMut<'_, f64>) {
    let n = upper.nrows();
    if right.ncols() != 1 || n <= BLOCK {
        let par = parallelism(n, right.ncols());
        return solve_upper_triangular_in_place(upper, right, par);
    }
    for rows in pieces(n, BLOCK).rev() {
        let (start, length) = (rows.start, rows.len());
        let (rest, done) = right.rb_mut().split_at_row_mut(start);
        let mut solved = done.subrows_mut(0, length);
        let block = upper.submatrix(start, start, length, length);
        solve_upper_triangular_in_place(block, solved.rb_mut(), Par::Seq);
        let above = upper.submatrix(0, start, start, length);
        multiply_into(rest, Accum::Add, above, solved.as_ref(), -1.0);
    }
}

/// `A = U diag(values) Uᵀ`.
#[derive(Clone, Debug)]
pub struct Eigen {
    /// The eigenvalues, ascending (n).
    pub values: Vec<f64>,
    /// Orthonormal eigenvectors, one a column (n x n).
    pub vectors: Mat<f64>,
}

/// The eigendecomposition of a symmetric matrix (n x n, the lower triangle is read). Cost about `9n³` flops and `3n²` numbers.
///
/// # Errors
/// When the iteration does not converge: an entry is not finite.
///
/// # Panics
/// When the matrix is not square.
pub fn eigen(matrix: MatRef<'_, f64>) -> Result<Eigen, EvdError> {
    let mut vectors = Mat::zeros(matrix.nrows(), matrix.nrows());
    let values = decompose(matrix, Some(vectors.as_mut()))?;
    Ok(Eigen { values, vectors })
}

/// The eigenvalues of a symmetric matrix, ascending (n x n, the lower triangle is read). Cost about `4n³/3` flops and `n²` numbers.
///
/// # Errors
/// As [`eigen`].
///
/// # Panics
/// As [`eigen`].
pub fn eigenvalues(matrix: MatRef<'_, f64>) -> Result<Vec<f64>, EvdError> {
    decompose(matrix, None)
}

fn decompose(matrix: MatRef<'_, f64>, vectors: Option<MatMut<'_, f64>>) -> Result<Vec<f64>, EvdError> {
    let (n, par) = (matrix.nrows(), Par::rayon(PARTS));
    if n == 0 {
        return Ok(Vec::new());
    }
    let wanted = if vectors.is_some() { ComputeEigenvectors::Yes } else { ComputeEigenvectors::No };
    let mut memory = MemBuffer::new(self_adjoint_evd_scratch::<f64>(n, wanted, par, Default::default()));
    let mut values = vec![0.0; n];
    let diagonal = DiagMut::from_slice_mut(&mut values);
    self_adjoint_evd(matrix, diagonal, vectors, par, MemStack::new(&mut memory), Default::default())?;
    Ok(values)
}

/// `A = Q R` by Householder reflections: Q of m x min(m, n) with orthonormal columns, R of min(m, n) x n upper triangular. Cost about `4mn²` flops for tall A.
pub fn qr(matrix: MatRef<'_, f64>) -> (Mat<f64>, Mat<f64>) {
    let ((rows, columns), par) = (matrix.shape(), Par::rayon(PARTS));
    let size = rows.min(columns);
    let block = recommended_block_size::<f64>(rows, columns);
    let mut factors = matrix.to_owned();
    let mut scales = Mat::zeros(block, size);
    let scratch = qr_in_place_scratch::<f64>(rows, columns, block, par, Default::default());
    let mut memory = MemBuffer::new(scratch.or(apply_scratch::<f64>(rows, block, size)));
    let stack = MemStack::new(&mut memory);
    qr_in_place(factors.as_mut(), scales.as_mut(), par, stack, Default::default());
    let triangle = Mat::from_fn(size, columns, |i, j| if i <= j { factors[(i, j)] } else { 0.0 });
    let mut basis = Mat::identity(rows, size);
    let reflections = factors.as_ref().subcols(0, size);
    apply_householder(reflections, scales.as_ref(), Conj::No, basis.as_mut(), par, stack);
    (basis, triangle)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Streams;
    use rand_distr::{Distribution, StandardNormal};
    use std::hash::{DefaultHasher, Hash, Hasher};

    pub(super) fn normal(rows: usize, columns: usize) -> Mat<f64> {
        let mut rng = Streams::new((rows * 31 + columns) as u64).stream("test");
        Mat::from_fn(rows, columns, |_, _| StandardNormal.sample(&mut rng))
    }

    /// The same on 1 to 4 threads, bit for bit.
    pub(super) fn on_any_threads(name: &str, work: impl Fn() -> Mat<f64> + Sync) -> Mat<f64> {
        let digest = |matrix: &Mat<f64>| {
            let mut hasher = DefaultHasher::new();
            matrix.col_iter().for_each(|c| c.iter().for_each(|v| v.to_bits().hash(&mut hasher)));
            hasher.finish()
        };
        let mut found: Vec<Mat<f64>> = (1..=4)
            .map(|n| rayon::ThreadPoolBuilder::new().num_threads(n).build().unwrap().install(&work))
            .collect();
        assert!(
            found.iter().all(|other| digest(other) == digest(&found[0])),
            "{name} depends on the number of threads"
        );
        found.swap_remove(0)
    }

    /// Entry by entry.
    pub(super) fn plain(a: MatRef<'_, f64>, b: MatRef<'_, f64>) -> Mat<f64> {
        Mat::from_fn(a.nrows(), b.ncols(), |i, j| (0..a.ncols()).map(|k| a[(i, k)] * b[(k, j)]).sum())
    }

    pub(super) fn close(name: &str, found: &Mat<f64>, expected: &Mat<f64>, tolerance: f64) {
        let error = (found - expected).norm_max();
        assert!(error <= tolerance * expected.norm_max(), "{name}: {error:e}");
    }

    #[test]
    fn products_are_right_on_any_number_of_threads() {
        let shapes = [
            (3, 400_000, 1),
            (1_100, 1_000, 1),
            (9_000, 130, 1),
            (1, 1_200, 900),
            (1, 1_100_000, 1),
            (257, 300, 2),
            (120, 90, 110),
        ];
        for (m, k, n) in shapes {
            for orientation in 0..4 {
                let (a, b) = (normal(m, k), normal(k, n));
                let (turned_a, turned_b) = (a.transpose().to_owned(), b.transpose().to_owned());
                let left = if orientation & 1 == 0 { a.as_ref() } else { turned_a.transpose() };
                let right = if orientation & 2 == 0 { b.as_ref() } else { turned_b.transpose() };
                let name = format!("the product {m} x {k} x {n}, orientation {orientation}");
                let expected = plain(left, right);
                let found = on_any_threads(&name, || product(left, right));
                close(&name, &found, &expected, 1e-12);
                let added = on_any_threads(&name, || {
                    let mut out = expected.clone();
                    multiply_into(out.as_mut(), Accum::Add, left, right, -0.5);
                    out
                });
                close(&name, &(2.0 * added), &expected, 1e-12);
            }
        }
    }

    #[test]
    fn single_precision_is_as_independent() {
        let a = Mat::<f32>::from_fn(700, 1_600, |i, j| ((i * 7 + j * 13) % 101) as f32 - 50.3);
        let b = Mat::<f32>::from_fn(1_600, 33, |i, j| ((i * 3 + j * 17) % 97) as f32 - 48.7);
        for columns in [1, 2, 33] {
            on_any_threads(&format!("the product with {columns} columns"), || {
                let out = product(a.as_ref(), b.get(.., ..columns));
                Mat::from_fn(700, columns, |i, j| f64::from(out[(i, j)]))
            });
        }
    }

    #[test]
    fn solves_are_right_on_any_number_of_threads() {
        for n in [100, 193, 257, 700] {
            let lower = Mat::from_fn(n, n, |i, j| match i.cmp(&j) {
                std::cmp::Ordering::Less => 0.0,
                std::cmp::Ordering::Equal => 2.0,
                std::cmp::Ordering::Greater => ((i * 5 + j * 3) as f64).sin() / n as f64,
            });
            for columns in [1, 2, 70] {
                let x = normal(n, columns);
                let name = format!("the solve of {n} rows and {columns} columns");
                let (down, up) = (plain(lower.as_ref(), x.as_ref()), plain(lower.transpose(), x.as_ref()));
                let found = on_any_threads(&name, || {
                    let mut right = down.clone();
                    solve_lower(lower.as_ref(), right.as_mut());
                    right
                });
                close(&name, &found, &x, 1e-12);
                let found = on_any_threads(&name, || {
                    let mut right = up.clone();
                    solve_upper(lower.transpose(), right.as_mut());
                    right
                });
                close(&name, &found, &x, 1e-12);
            }
        }
    }

    #[test]
    fn eigendecompositions_are_right_on_any_number_of_threads() {
        for n in [0, 1, 2, 30, 100, 250, 400] {
            let root = normal(n, n);
            let matrix = plain(root.as_ref(), root.transpose());
            let name = format!("the eigendecomposition of {n} rows");
            let vectors = on_any_threads(&name, || eigen(matrix.as_ref()).unwrap().vectors);
            let values = on_any_threads(&name, || {
                let values = eigenvalues(matrix.as_ref()).unwrap();
                Mat::from_fn(n, 1, |i, _| values[i])
            });
            assert!((1..n).all(|i| values[(i, 0)] >= values[(i - 1, 0)]));
            let scaled = Mat::from_fn(n, n, |i, j| vectors[(i, j)] * values[(j, 0)]);
            close(&name, &plain(scaled.as_ref(), vectors.transpose()), &matrix, 1e-12);
        }
    }

    #[test]
    fn orthonormal_bases_are_right_on_any_number_of_threads() {
        for (rows, columns) in [(5, 5), (40, 3), (3, 7), (600, 150), (2_000, 65)] {
            let matrix = normal(rows, columns);
            let size = rows.min(columns);
            let name = format!("the factors of {rows} x {columns}");
            let basis = on_any_threads(&name, || qr(matrix.as_ref()).0);
            let triangle = on_any_threads(&name, || qr(matrix.as_ref()).1);
            assert!((0..size).all(|j| (j + 1..size).all(|i| triangle[(i, j)] == 0.0)));
            close(&name, &plain(basis.transpose(), basis.as_ref()), &Mat::identity(size, size), 1e-12);
            close(&name, &plain(basis.as_ref(), triangle.as_ref()), &matrix, 1e-12);
        }
    }

    /// What rests on `faer` alone: factors, inverses and triangular products, at sizes that leave blocks of one row over.
    #[test]
    fn cholesky_factors_do_not_depend_on_threads() {
        use crate::cholesky::{Cholesky, JitterPolicy};
        for n in [193, 257, 386, 450, 641] {
            let matrix = Mat::from_fn(n, n, |i, j| {
                (-0.05 * i.abs_diff(j) as f64).exp() + if i == j { 0.3 } else { 0.0 }
            });
            let right = normal(n, 300);
            let factored = || Cholesky::of(matrix.as_ref(), JitterPolicy::NONE).unwrap();
            let lower = |matrix: MatRef<'_, f64>| {
                Mat::from_fn(n, n, |i, j| if i >= j { matrix[(i, j)] } else { 0.0 })
            };
            on_any_threads("the factor", || lower(factored().factor()));
            on_any_threads("the inverse", || lower(factored().into_inverse().as_ref()));
            on_any_threads("the inverse's diagonal", || {
                let diagonal = factored().inverse_diagonal();
                Mat::from_fn(n, 1, |i, _| diagonal[i])
            });
            for columns in [1, 2, 300] {
                let right = right.get(.., ..columns);
                on_any_threads("the solution", || factored().solve(right));
                on_any_threads("the draws", || factored().multiply_factor(right));
            }
        }
    }
}
