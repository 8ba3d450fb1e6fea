//! A block for one weight matrix, approximated by a Kronecker product: `M ~ G (x) Q`, kept by the eigenpairs of its two factors.
//!
//! Weights `W` (`rows x columns`) are counted row by row. With `G = U_G diag(rho) U_G^T` and `Q = U_Q diag(q) U_Q^T` the posterior precision is diagonal in the rotated
//! coordinates `U_G^T W U_Q`: entry `ij` has precision `s rho_i q_j + a`. So the prior is added exactly and not as a damping of the factors, and other priors cost nothing but
//! that sum (spec `linearised_laplace`, section 3.5).

use super::dense::clip;
use super::{LocalPrior, StructureError, Terms, scales_of};
use faer::{Mat, MatRef};
use posterior_linalg::dense::{Eigen, eigen, product};

/// A Kronecker-factored block.
#[derive(Clone, Debug)]
pub struct Kronecker {
    rows: Factor,
    columns: Factor,
}

/// One factor: eigenvalues, and eigenvectors as columns.
#[derive(Clone, Debug)]
struct Factor {
    matrix: Mat<f64>,
    values: Vec<f64>,
    vectors: Mat<f64>,
    scales: Option<Vec<f64>>,
    clipped: (usize, f64),
}

/// Its posterior: `Cov[vec W] = (B_r (x) B_c) diag(variances) (B_r (x) B_c)^T` with bases that contain the scales.
#[derive(Clone, Debug)]
pub struct ConditionedKronecker {
    /// `S_r U_G`, `rows x rows`.
    pub row_basis: Mat<f64>,
    /// `S_c U_Q`, `columns x columns`.
    pub column_basis: Mat<f64>,
    /// `1 / (s rho_i q_j + a)`, `rows x columns`.
    pub variances: Mat<f64>,
    row_scales: Option<Vec<f64>>,
    column_scales: Option<Vec<f64>>,
}

impl Factor {
    fn new(matrix: Mat<f64>, block: &str) -> Result<Self, StructureError> {
        if !matrix.is_all_finite() {
            return Err(StructureError::NotFinite { block: block.into() });
        }
        let Eigen { mut values, vectors } =
            eigen(matrix.as_ref()).map_err(|_| StructureError::Eigen { block: block.into() })?;
        let clipped = clip(&mut values);
        Ok(Self { matrix, values, vectors, scales: None, clipped })
    }

    fn size(&self) -> usize {
        self.values.len()
    }

    fn diagonal(&self) -> Vec<f64> {
        (0..self.size()).map(|i| self.matrix[(i, i)]).collect()
    }

    fn normalised(self, block: &str) -> Result<Self, StructureError> {
        if self.scales.is_some() {
            return Err(StructureError::ScaledTwice);
        }
        let scales = scales_of(&self.diagonal());
        let n = self.size();
        let scaled = Mat::from_fn(n, n, |i, j| self.matrix[(i.max(j), i.min(j))] * scales[i] * scales[j]);
        Ok(Self { scales: Some(scales), ..Self::new(scaled, block)? })
    }

    /// The eigenvectors with the scales in front.
    fn basis(&self) -> Mat<f64> {
        match &self.scales {
            None => self.vectors.clone(),
            Some(s) => Mat::from_fn(self.size(), self.size(), |i, j| s[i] * self.vectors[(i, j)]),
        }
    }
}

impl Kronecker {
    /// `G (x) Q` for weights `rows x columns` counted row by row; only lower triangles are read. Cost: two eigendecompositions.
    ///
    /// # Errors
    /// When a factor is not finite.
    ///
    /// # Panics
    /// When a factor is not square.
    pub fn new(rows: Mat<f64>, columns: Mat<f64>, block: &str) -> Result<Self, StructureError> {
        assert!(rows.nrows() == rows.ncols() && columns.nrows() == columns.ncols(), "factors are square");
        // Both are independent, and tridiagonalisation leaves a core idle.
        let (rows, columns) = rayon::join(|| Factor::new(rows, block), || Factor::new(columns, block));
        Ok(Self { rows: rows?, columns: columns? })
    }

    /// The factors `(G, Q)`.
    pub fn factors(&self) -> (MatRef<'_, f64>, MatRef<'_, f64>) {
        (self.rows.matrix.as_ref(), self.columns.matrix.as_ref())
    }

    pub(crate) fn dimension(&self) -> usize {
        self.rows.size() * self.columns.size()
    }

    pub(crate) fn is_finite(&self) -> bool {
        self.rows.matrix.is_all_finite() && self.columns.matrix.is_all_finite()
    }

    fn outer(left: &[f64], right: &[f64]) -> Vec<f64> {
        left.iter().flat_map(|l| right.iter().map(move |r| l * r)).collect()
    }

    pub(crate) fn diagonal(&self) -> Vec<f64> {
        Self::outer(&self.rows.diagonal(), &self.columns.diagonal())
    }

    pub(crate) fn scales(&self) -> Vec<f64> {
        match (&self.rows.scales, &self.columns.scales) {
            (Some(rows), Some(columns)) => Self::outer(rows, columns),
            _ => vec![1.0; self.dimension()],
        }
    }

    pub(crate) fn clipped(&self) -> (usize, f64) {
        let (a, b) = (self.rows.clipped, self.columns.clipped);
        (a.0 + b.0, a.1.min(b.1))
    }

    /// Scaled by its own diagonal, which is a Kronecker product again.
    pub(crate) fn normalised(self) -> Result<Self, StructureError> {
        Ok(Self { rows: self.rows.normalised("rows")?, columns: self.columns.normalised("columns")? })
    }

    pub(crate) fn apply(&self, v: &[f64]) -> Vec<f64> {
        let full = |f: &Factor| Mat::from_fn(f.size(), f.size(), |i, j| f.matrix[(i.max(j), i.min(j))]);
        let v = MatRef::from_row_major_slice(v, self.rows.size(), self.columns.size());
        row_major((full(&self.rows) * v * full(&self.columns)).as_ref())
    }

    fn precision(&self, block: &str, local: &LocalPrior) -> Result<(usize, f64), StructureError> {
        let several = || StructureError::SeveralPrecisions {
            block: block.into(),
            groups: local.stretches.iter().map(|s| s.1).collect::<std::collections::BTreeSet<_>>().len(),
        };
        local.uniform().ok_or_else(several)
    }

    pub(crate) fn add_terms(
        &self,
        block: &str,
        local: &LocalPrior,
        strength: f64,
        terms: &mut Terms,
    ) -> Result<(), StructureError> {
        let (group, precision) = self.precision(block, local)?;
        let (mut log_determinant, mut effective) = (0.0, 0.0);
        for rho in &self.rows.values {
            let factor = strength * rho / precision;
            for q in &self.columns.values {
                let ratio = factor * q;
                log_determinant += ratio.ln_1p();
                effective += ratio / (1.0 + ratio);
            }
        }
        terms.log_determinant += log_determinant;
        terms.effective_dimensions[group] += effective;
        Ok(())
    }

    pub(crate) fn condition(
        &self,
        block: &str,
        local: &LocalPrior,
        strength: f64,
    ) -> Result<ConditionedKronecker, StructureError> {
        let (_, precision) = self.precision(block, local)?;
        Ok(ConditionedKronecker {
            row_basis: self.rows.basis(),
            column_basis: self.columns.basis(),
            variances: Mat::from_fn(self.rows.size(), self.columns.size(), |i, j| {
                1.0 / (strength * self.rows.values[i] * self.columns.values[j] + precision)
            }),
            row_scales: self.rows.scales.clone(),
            column_scales: self.columns.scales.clone(),
        })
    }
}

impl ConditionedKronecker {
    /// `B_r (W o power(variances)) B_c^T` with `W` given row by row.
    fn out(&self, w: MatRef<'_, f64>, power: impl Fn(f64) -> f64) -> Vec<f64> {
        let scaled = Mat::from_fn(w.nrows(), w.ncols(), |i, j| w[(i, j)] * power(self.variances[(i, j)]));
        let rows = product(self.row_basis.as_ref(), scaled.as_ref());
        row_major((rows * self.column_basis.transpose()).as_ref())
    }

    /// `(H^-1)` times a vector.
    pub(crate) fn solve(&self, v: &[f64]) -> Vec<f64> {
        let v = MatRef::from_row_major_slice(v, self.variances.nrows(), self.variances.ncols());
        let rotated = self.row_basis.transpose() * v * &self.column_basis;
        self.out(rotated.as_ref(), |x| x)
    }

    /// `H^(-1/2)` times standard normals.
    pub(crate) fn colour(&self, normals: &[f64]) -> Vec<f64> {
        let z = MatRef::from_row_major_slice(normals, self.variances.nrows(), self.variances.ncols());
        self.out(z, f64::sqrt)
    }

    /// `diag(H^-1) = (B_r o B_r) variances (B_c o B_c)^T`.
    pub(crate) fn variances(&self) -> Vec<f64> {
        let square = |m: &Mat<f64>| Mat::from_fn(m.nrows(), m.ncols(), |i, j| m[(i, j)] * m[(i, j)]);
        let rows = product(square(&self.row_basis).as_ref(), self.variances.as_ref());
        row_major((rows * square(&self.column_basis).transpose()).as_ref())
    }

    /// Scales of rows and columns, if the features were scaled.
    pub fn scales(&self) -> Option<(&[f64], &[f64])> {
        self.row_scales.as_deref().zip(self.column_scales.as_deref())
    }
}

/// The entries row by row.
fn row_major(m: MatRef<'_, f64>) -> Vec<f64> {
    (0..m.nrows()).flat_map(|i| (0..m.ncols()).map(move |j| m[(i, j)])).collect()
}
