//! A block with all its entries.

use super::{LocalPrior, StructureError, Terms, scales_of};
use faer::linalg::matmul::matmul;
use faer::{Accum, Mat, MatRef, Par};
use posterior_linalg::cholesky::{Cholesky, JitterPolicy};
use std::sync::OnceLock;

/// Up to this size the eigenvalues are found once; above, tridiagonalisation costs more than the few factorisations of a search.
const SPECTRUM_LIMIT: usize = 4096;

/// A dense symmetric block, positive semidefinite.
#[derive(Clone, Debug)]
pub struct Dense {
    matrix: Mat<f64>,
    scales: Option<Vec<f64>>,
    /// Eigenvalues with negative ones set to zero, and the least before that.
    spectrum: OnceLock<(Vec<f64>, usize, f64)>,
}

/// Its posterior.
#[derive(Clone, Debug)]
pub struct ConditionedDense {
    /// The factor of `H` (in scaled coordinates).
    pub cholesky: Cholesky,
    /// The scales of the weights, if any.
    pub scales: Option<Vec<f64>>,
}

impl Dense {
    /// A symmetric matrix, of which only the lower triangle is read.
    ///
    /// # Panics
    /// When it is not square.
    pub fn new(mut matrix: Mat<f64>) -> Self {
        assert_eq!(matrix.nrows(), matrix.ncols(), "a curvature is square");
        for j in 0..matrix.ncols() {
            for i in j + 1..matrix.nrows() {
                matrix[(j, i)] = matrix[(i, j)];
            }
        }
        Self { matrix, scales: None, spectrum: OnceLock::new() }
    }

    /// The matrix.
    pub fn matrix(&self) -> MatRef<'_, f64> {
        self.matrix.as_ref()
    }

    pub(crate) fn dimension(&self) -> usize {
        self.matrix.nrows()
    }

    pub(crate) fn is_finite(&self) -> bool {
        self.matrix.is_all_finite()
    }

    pub(crate) fn diagonal(&self) -> Vec<f64> {
        (0..self.dimension()).map(|i| self.matrix[(i, i)]).collect()
    }

    pub(crate) fn scales(&self) -> Option<&[f64]> {
        self.scales.as_deref()
    }

    pub(crate) fn normalised(mut self) -> Result<Self, StructureError> {
        if self.scales.is_some() {
            return Err(StructureError::ScaledTwice);
        }
        let scales = scales_of(&self.diagonal());
        for j in 0..self.dimension() {
            for i in 0..self.dimension() {
                self.matrix[(i, j)] *= scales[i] * scales[j];
            }
        }
        Ok(Self { matrix: self.matrix, scales: Some(scales), spectrum: OnceLock::new() })
    }

    pub(crate) fn apply(&self, v: &[f64]) -> Vec<f64> {
        let v = MatRef::from_column_major_slice(v, v.len(), 1);
        let mut out = Mat::zeros(self.dimension(), 1);
        matmul(out.as_mut(), Accum::Replace, &self.matrix, v, 1.0, Par::Seq);
        out.col_as_slice(0).to_vec()
    }

    /// The eigenvalues, ascending; cubic cost on the first call.
    fn spectrum(&self, block: &str) -> Result<&(Vec<f64>, usize, f64), StructureError> {
        if let Some(found) = self.spectrum.get() {
            return Ok(found);
        }
        let mut values = posterior_linalg::dense::eigenvalues(self.matrix.as_ref())
            .map_err(|_| StructureError::Eigen { block: block.into() })?;
        let clipped = clip(&mut values);
        Ok(self.spectrum.get_or_init(|| (values, clipped.0, clipped.1)))
    }

    pub(crate) fn clipped(&self) -> (usize, f64) {
        self.spectrum.get().map_or((0, 0.0), |s| (s.1, s.2))
    }

    pub(crate) fn add_terms(
        &self,
        block: &str,
        local: &LocalPrior,
        strength: f64,
        terms: &mut Terms,
    ) -> Result<(), StructureError> {
        if let Some((group, precision)) = local.uniform()
            && self.dimension() <= SPECTRUM_LIMIT
        {
            for value in &self.spectrum(block)?.0 {
                let ratio = strength * value / precision;
                terms.log_determinant += ratio.ln_1p();
                terms.effective_dimensions[group] += ratio / (1.0 + ratio);
            }
            return Ok(());
        }
        let each = local.each();
        let cholesky = self.factor(block, &each, strength)?;
        terms.log_determinant += cholesky.log_determinant() - each.iter().map(|a| a.ln()).sum::<f64>();
        local.add_effective(&cholesky.inverse_diagonal(), terms);
        Ok(())
    }

    fn factor(&self, block: &str, each: &[f64], strength: f64) -> Result<Cholesky, StructureError> {
        let mut precision = &self.matrix * faer::Scale(strength);
        (0..self.dimension()).for_each(|i| precision[(i, i)] += each[i]);
        Cholesky::of(precision.as_ref(), JitterPolicy::default())
            .map_err(|source| StructureError::Factor { block: block.into(), source })
    }

    pub(crate) fn condition(
        &self,
        block: &str,
        local: &LocalPrior,
        strength: f64,
    ) -> Result<ConditionedDense, StructureError> {
        let cholesky = self.factor(block, &local.each(), strength)?;
        Ok(ConditionedDense { cholesky, scales: self.scales.clone() })
    }
}

/// Sets negative eigenvalues to zero; how many there were, and the worst relative to the largest.
pub(crate) fn clip(values: &mut [f64]) -> (usize, f64) {
    let largest = values.iter().copied().fold(0.0, f64::max);
    let (mut count, mut worst) = (0, 0.0f64);
    for value in values.iter_mut().filter(|v| **v < 0.0) {
        count += 1;
        worst = worst.min(*value / if largest > 0.0 { largest } else { 1.0 });
        *value = 0.0;
    }
    (count, worst)
}
