//! The **Lanczos process**: an orthonormal basis in which a symmetric matrix is tridiagonal.
//!
//! ```text
//! A Q = Q T + (what is left after the last step),     QᵀQ = I,     T tridiagonal
//! ```
//!
//! From T follow quadratic forms of functions of the matrix ([`SpectralMeasure`](super::SpectralMeasure)) and, by its factor, solves within the span of Q. Source: Golub and Van Loan (2013),
//! section 10.1; Gauss rules: Golub and Meurant (2010).

use super::SolveError;
use super::error::same_size;
use super::vectors::{add_scaled, check_finite, column_dots, column_norms};
use crate::Real;
use crate::dense::eigen;
use crate::operator::LinearOperator;
use faer::Mat;

/// A symmetric tridiagonal matrix.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tridiagonal {
    /// Its diagonal.
    pub diagonal: Vec<f64>,
    /// What stands beside the diagonal; at least one number fewer, and what is beyond is not looked at.
    pub off: Vec<f64>,
}

impl Tridiagonal {
    /// Nodes and weights of the Gauss rule of the measure that its first unit vector sees: eigenvalues, and squares of the first entries of the eigenvectors. Cost `O(size³)`.
    ///
    /// # Errors
    /// [`SolveError::Eigenvalues`] when an entry is not finite.
    pub fn gauss_rule(&self) -> Result<Vec<(f64, f64)>, SolveError> {
        let size = self.diagonal.len();
        let matrix = Mat::<f64>::from_fn(size, size, |i, j| match i.abs_diff(j) {
            0 => self.diagonal[i],
            1 => self.off[i.min(j)],
            _ => 0.0,
        });
        let eigen = eigen(matrix.as_ref())
            .map_err(|_| SolveError::Eigenvalues { dimension: size, what: "Lanczos quadrature" })?;
        Ok((0..size).map(|k| (eigen.values[k], eigen.vectors[(0, k)].powi(2))).collect())
    }
}

/// The process from several vectors at once, which share products with the matrix and are otherwise each by itself; fully reorthogonalised.
///
/// Cost of step p: one product with k vectors, `8 n p` flops a vector; memory `n k` numbers a step.
pub struct Lanczos<'a, T: Real> {
    matrix: &'a dyn LinearOperator<T>,
    /// Of each step, the vectors of all starts (n x k); the last one is the next to be multiplied.
    basis: Vec<Mat<T>>,
    coefficients: Vec<Tridiagonal>,
    running: Vec<bool>,
}

impl<'a, T: Real> Lanczos<'a, T> {
    /// Begins from the columns of `starts` (n x k), whatever their lengths; a zero column goes nowhere.
    ///
    /// # Errors
    /// [`SolveError::Shape`] when sizes differ, [`SolveError::NotFinite`] for starts.
    #[inline(never)]
    pub fn new(matrix: &'a dyn LinearOperator<T>, starts: Mat<T>) -> Result<Self, SolveError> {
        let (rows, columns) = matrix.shape();
        same_size("columns of a symmetric matrix", rows, columns)?;
        same_size("rows of the starting vectors", rows, starts.nrows())?;
        check_finite("a starting vector", starts.as_ref())?;
        let count = starts.ncols();
        let mut this = Self {
            matrix,
            basis: Vec::new(),
            coefficients: vec![Tridiagonal::default(); count],
            running: vec![false; count],
        };
        let norms = column_norms(&starts);
        this.running.iter_mut().zip(&norms).for_each(|(running, norm)| *running = *norm > 0.0);
        this.push(starts, &norms);
        Ok(this)
    }

    /// Takes `vectors` as the next of the basis: normalised, or zero where a process has ended.
    #[inline(never)]
    fn push(&mut self, mut vectors: Mat<T>, norms: &[f64]) {
        for (j, norm) in norms.iter().enumerate() {
            let scale = T::from_f64(if self.running[j] { 1.0 / norm } else { 0.0 });
            vectors.col_as_slice_mut(j).iter_mut().for_each(|v| *v *= scale);
        }
        self.basis.push(vectors);
    }

    /// Takes what lies in the span of the basis out of `vectors`. Twice, because once loses orthogonality to rounding when the projection is large.
    fn orthogonalise(&self, vectors: &mut Mat<T>) {
        for _ in 0..2 {
            for q in &self.basis {
                let overlap: Vec<f64> = column_dots(vectors, q).iter().map(|d| -d).collect();
                add_scaled(vectors, &overlap, q);
            }
        }
    }

    /// Takes a step with all processes that have not ended; whether one of them can go on.
    #[inline(never)]
    pub fn step(&mut self) -> bool {
        let Some(last) = self.basis.last().filter(|_| self.running.contains(&true)) else { return false };
        let mut next = self.matrix.multiply(last.as_ref());
        let along = column_dots(&next, last);
        self.orthogonalise(&mut next);
        let norms = column_norms(&next);
        for (j, own) in self.coefficients.iter_mut().enumerate() {
            if !self.running[j] {
                continue;
            }
            own.diagonal.push(along[j]);
            own.off.push(norms[j]);
            // An invariant subspace was found: T is exact.
            let size = along[j].abs().max(own.off.iter().fold(0.0, |a: f64, b| a.max(*b)));
            self.running[j] = norms[j] > size * T::EPSILON.to_f64() * 4.0;
        }
        self.push(next, &norms);
        self.running.contains(&true)
    }

    /// Goes on with a process that has ended in an invariant subspace, from what of `start` (n) lies outside of it, of which T sees nothing. False where nothing does.
    ///
    /// # Panics
    /// When the length of `start` is not n.
    pub fn restart(&mut self, column: usize, start: &[T]) -> bool {
        let Some(last) = self.basis.pop() else { return false };
        let mut fresh = Mat::zeros(last.nrows(), last.ncols());
        fresh.col_as_slice_mut(column).copy_from_slice(start);
        let before = column_norms(&fresh)[column];
        self.orthogonalise(&mut fresh);
        let norm = column_norms(&fresh)[column];
        self.running[column] = norm > before * T::EPSILON.to_f64() * 64.0;
        let mut next = last;
        let scale = T::from_f64(if self.running[column] { 1.0 / norm } else { 0.0 });
        let target = next.col_as_slice_mut(column).iter_mut();
        target.zip(fresh.col_as_slice(column)).for_each(|(v, f)| *v = *f * scale);
        self.basis.push(next);
        if let Some(off) = self.coefficients[column].off.last_mut() {
            *off = 0.0;
        }
        self.running[column]
    }

    /// T of each start.
    pub fn coefficients(&self) -> &[Tridiagonal] {
        &self.coefficients
    }

    /// T of each start, and the basis: as many blocks (n x k) as there were steps.
    pub fn into_parts(mut self) -> (Vec<Tridiagonal>, Vec<Mat<T>>) {
        self.basis.pop();
        (self.coefficients, self.basis)
    }
}
