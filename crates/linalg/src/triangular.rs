//! **Triangles**: products of which only one triangle is wanted, inverses of lower triangles, and triangles as lists of numbers.

use crate::cholesky::{Cholesky, CholeskyError, JitterPolicy};
use crate::dense::{multiply_into, parallelism};
use crate::symmetric::mirror_lower;
use faer::linalg::matmul::triangular::{BlockStructure, matmul};
use faer::linalg::triangular_inverse::invert_lower_triangular;
use faer::{Accum, Mat, MatRef};

/// The lower-triangular root R of an inverse, `R Rᵀ = precision⁻¹`, with zeros above the diagonal: reversing rows and columns turns
/// the lower factor of one into the upper factor of the other. Cost `2m³/3` flops. The lower triangle of `precision` is read.
///
/// # Errors
/// When the precision is not positive definite.
pub fn root_of_inverse(precision: MatRef<'_, f64>) -> Result<Mat<f64>, CholeskyError> {
    let m = precision.nrows();
    let policy = JitterPolicy { initial: 1e-14, growth: 10.0, largest: 1e-8 };
    let reversed = Cholesky::factor_with(Mat::zeros(m, m), policy, |mut out| {
        for j in 0..m {
            for i in j..m {
                out[(i, j)] = precision[(m - 1 - j, m - 1 - i)];
            }
        }
    })?;
    let inverse = inverse_of_lower(reversed.factor());
    Ok(Mat::from_fn(m, m, |i, j| if i >= j { inverse[(m - 1 - j, m - 1 - i)] } else { 0.0 }))
}

/// The inverse of a lower-triangular matrix, with zeros above the diagonal. Cost `m³/3` flops.
pub fn inverse_of_lower(lower: MatRef<'_, f64>) -> Mat<f64> {
    let m = lower.nrows();
    let mut inverse = Mat::zeros(m, m);
    invert_lower_triangular(inverse.as_mut(), lower, parallelism(m, m));
    inverse
}

/// The lower triangle of `A B` for structured factors, written to a new matrix; what stands above is zero.
pub fn lower_product(
    a: (MatRef<'_, f64>, BlockStructure),
    b: (MatRef<'_, f64>, BlockStructure),
    scale: f64,
) -> Mat<f64> {
    let mut out = Mat::zeros(a.0.nrows(), b.0.ncols());
    add_lower_product(&mut out, a, b, scale);
    out
}

/// `scale · A B` where it is known to be symmetric, both triangles: one of them and its mirror image, but of small matrices the whole product, for which there are faster kernels. Structured factors have zeros
/// where they say so.
pub fn symmetric_product(
    a: (MatRef<'_, f64>, BlockStructure),
    b: (MatRef<'_, f64>, BlockStructure),
    scale: f64,
) -> Mat<f64> {
    const SMALL: usize = 192;
    let n = a.0.nrows();
    if n < SMALL {
        let mut out = Mat::zeros(n, n);
        multiply_into(out.as_mut(), Accum::Replace, a.0, b.0, scale);
        return out;
    }
    let mut out = lower_product(a, b, scale);
    mirror_lower(out.as_mut());
    out
}

/// Adds the lower triangle of `scale · A B`.
pub fn add_lower_product(
    out: &mut Mat<f64>,
    a: (MatRef<'_, f64>, BlockStructure),
    b: (MatRef<'_, f64>, BlockStructure),
    scale: f64,
) {
    let par = parallelism(out.nrows(), out.ncols());
    matmul(out.as_mut(), BlockStructure::TriangularLower, Accum::Add, a.0, a.1, b.0, b.1, scale, par);
}

/// Appends the lower triangle by columns.
pub fn pack_lower(matrix: MatRef<'_, f64>, out: &mut Vec<f64>) {
    for j in 0..matrix.ncols() {
        out.extend(matrix.col(j).iter().skip(j));
    }
}

/// The matrix of a lower triangle that [`pack_lower`] has packed, with zeros above the diagonal.
///
/// # Panics
/// For fewer than `m (m + 1) / 2` numbers.
pub fn unpack_lower(packed: &[f64], m: usize) -> Mat<f64> {
    let mut out = Mat::zeros(m, m);
    let mut start = 0;
    for j in 0..m {
        out.col_as_slice_mut(j)[j..].copy_from_slice(&packed[start..start + m - j]);
        start += m - j;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_root_of_an_inverse_is_lower_and_squares_to_it() {
        for m in [1, 4, 37, 250] {
            let a = Mat::<f64>::from_fn(m, m, |i, j| {
                (-0.1 * i.abs_diff(j) as f64).exp() + if i == j { 0.5 + i as f64 * 0.01 } else { 0.0 }
            });
            let root = root_of_inverse(a.as_ref()).unwrap();
            assert!((0..m).all(|j| (0..j).all(|i| root[(i, j)] == 0.0) && root[(j, j)] > 0.0));
            let product = &a * &root * root.transpose();
            assert!((product - Mat::<f64>::identity(m, m)).norm_max() < 1e-11);
        }
    }

    #[test]
    fn triangles_are_packed_and_unpacked() {
        let root = Mat::<f64>::from_fn(3, 3, |i, j| if i >= j { (1 + i + 3 * j) as f64 } else { 0.0 });
        let mut packed = Vec::new();
        pack_lower(root.as_ref(), &mut packed);
        assert_eq!(packed, [1.0, 2.0, 3.0, 5.0, 6.0, 9.0]);
        assert_eq!(unpack_lower(&packed, 3), root);
    }
}
