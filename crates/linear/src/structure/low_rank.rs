//! A block of low rank plus a diagonal: `M ~ F F^T + diag(m)`, handled by Woodbury's identity.
//!
//! With `D = s m + a` and `G = s^(1/2) D^(-1/2) F`: `H = D^(1/2) (I + G G^T) D^(1/2)`, so that every question is one about the `r x r`
//! matrix `I + G^T G`. Cost: `O(d r^2)`, memory `O(d r)`.

use super::{LocalPrior, StructureError, Terms, scales_of};
use faer::{Mat, MatRef};
use posterior_linalg::cholesky::{Cholesky, JitterPolicy};
use posterior_linalg::dense::{eigen, product};

/// A block of low rank plus a diagonal.
#[derive(Clone, Debug)]
pub struct LowRank {
    factor: Mat<f64>,
    residual: Vec<f64>,
    scales: Option<Vec<f64>>,
}

/// Its posterior.
#[derive(Clone, Debug)]
pub struct ConditionedLowRank {
    /// `D`, one entry for each weight.
    diagonal: Vec<f64>,
    /// `G`.
    factor: Mat<f64>,
    /// `I + G^T G`, factored.
    inner: Cholesky,
    /// `K` in the symmetric root `(I + G G^T)^(-1/2) = I - G K G^T`.
    root_correction: Mat<f64>,
    scales: Option<Vec<f64>>,
}

impl ConditionedLowRank {
    /// Columns of the factor.
    pub fn rank(&self) -> usize {
        self.factor.ncols()
    }
}

impl LowRank {
    /// `factor factor^T + diag(residual)` with `factor` of size `weights x rank` and a residual that is nowhere negative.
    ///
    /// # Panics
    /// When the sizes differ.
    pub fn new(factor: Mat<f64>, residual: Vec<f64>) -> Self {
        assert_eq!(factor.nrows(), residual.len(), "one residual entry for each weight");
        Self { factor, residual, scales: None }
    }

    /// The factor, `weights x rank`.
    pub fn factor(&self) -> MatRef<'_, f64> {
        self.factor.as_ref()
    }

    /// The diagonal that is added.
    pub fn residual(&self) -> &[f64] {
        &self.residual
    }

    pub(crate) fn dimension(&self) -> usize {
        self.residual.len()
    }

    pub(crate) fn is_finite(&self) -> bool {
        self.factor.is_all_finite() && self.residual.iter().all(|m| m.is_finite() && *m >= 0.0)
    }

    pub(crate) fn scales(&self) -> Option<&[f64]> {
        self.scales.as_deref()
    }

    pub(crate) fn diagonal(&self) -> Vec<f64> {
        self.residual.iter().enumerate().map(|(i, m)| m + self.factor.row(i).squared_norm_l2()).collect()
    }

    pub(crate) fn normalised(self) -> Result<Self, StructureError> {
        if self.scales.is_some() {
            return Err(StructureError::ScaledTwice);
        }
        let scales = scales_of(&self.diagonal());
        let factor = scale_rows(self.factor.as_ref(), |i| scales[i]);
        let residual = self.residual.iter().zip(&scales).map(|(m, s)| m * s * s).collect();
        Ok(Self { factor, residual, scales: Some(scales) })
    }

    pub(crate) fn apply(&self, v: &[f64]) -> Vec<f64> {
        let column = MatRef::from_column_major_slice(v, v.len(), 1);
        let low = product(self.factor.as_ref(), (self.factor.transpose() * column).as_ref());
        (0..v.len()).map(|i| low[(i, 0)] + self.residual[i] * v[i]).collect()
    }

    pub(crate) fn add_terms(
        &self,
        block: &str,
        local: &LocalPrior,
        strength: f64,
        terms: &mut Terms,
    ) -> Result<(), StructureError> {
        let posterior = self.condition_scaled(block, local, strength)?;
        let prior: f64 = local.each().iter().map(|a| a.ln()).sum();
        let own: f64 = posterior.diagonal.iter().map(|d| d.ln()).sum();
        terms.log_determinant += own - prior + posterior.inner.log_determinant();
        local.add_effective(&posterior.variances(), terms);
        Ok(())
    }

    pub(crate) fn condition(
        &self,
        block: &str,
        local: &LocalPrior,
        strength: f64,
    ) -> Result<ConditionedLowRank, StructureError> {
        Ok(ConditionedLowRank {
            scales: self.scales.clone(),
            ..self.condition_scaled(block, local, strength)?
        })
    }

    /// In scaled coordinates.
    fn condition_scaled(
        &self,
        block: &str,
        local: &LocalPrior,
        strength: f64,
    ) -> Result<ConditionedLowRank, StructureError> {
        let diagonal: Vec<f64> =
            self.residual.iter().zip(local.each()).map(|(m, a)| strength * m + a).collect();
        let factor = scale_rows(self.factor.as_ref(), |i| (strength / diagonal[i]).sqrt());
        let mut inner = factor.transpose() * &factor;
        (0..inner.nrows()).for_each(|i| inner[(i, i)] += 1.0);
        let root_correction = root_correction(inner.as_ref(), block)?;
        let inner = Cholesky::of(inner.as_ref(), JitterPolicy::NONE)
            .map_err(|source| StructureError::Factor { block: block.into(), source })?;
        Ok(ConditionedLowRank { diagonal, factor, inner, root_correction, scales: None })
    }
}

impl ConditionedLowRank {
    fn scale(&self, i: usize) -> f64 {
        self.scales.as_ref().map_or(1.0, |s| s[i]) / self.diagonal[i].sqrt()
    }

    /// Rows `z` with `z z^T = J H^-1 J^T`: `[rows x weights] -> [rows x weights]`.
    pub(crate) fn whiten(&self, rows: MatRef<'_, f64>) -> Mat<f64> {
        let mut out = Mat::from_fn(rows.nrows(), rows.ncols(), |r, i| rows[(r, i)] * self.scale(i));
        let projected = product(out.as_ref(), self.factor.as_ref());
        out -= projected * &self.root_correction * self.factor.transpose();
        out
    }

    /// `(H^-1)` times the columns of `v`.
    pub(crate) fn solve(&self, v: MatRef<'_, f64>) -> Mat<f64> {
        let mut out = scale_rows(v, |i| self.scale(i));
        let mut inner = product(self.factor.transpose(), out.as_ref());
        self.inner.solve_in_place(inner.as_mut());
        out -= product(self.factor.as_ref(), inner.as_ref());
        scale_rows(out.as_ref(), |i| self.scale(i))
    }

    /// `H^(-1/2)` times standard normals.
    pub(crate) fn colour(&self, normals: &[f64]) -> Vec<f64> {
        let z = MatRef::from_column_major_slice(normals, normals.len(), 1);
        let inner = product(self.root_correction.as_ref(), (self.factor.transpose() * z).as_ref());
        let out = z - product(self.factor.as_ref(), inner.as_ref());
        (0..normals.len()).map(|i| out[(i, 0)] * self.scale(i)).collect()
    }

    pub(crate) fn variances(&self) -> Vec<f64> {
        let mut white = self.factor.transpose().to_owned();
        self.inner.solve_factor_in_place(white.as_mut());
        (0..self.diagonal.len())
            .map(|i| (1.0 - white.col(i).squared_norm_l2()) * self.scale(i) * self.scale(i))
            .collect()
    }
}

/// `K = (I + C)^(-1) C^(-1)` with `C^2 = I + G^T G`, from the inner matrix.
fn root_correction(inner: MatRef<'_, f64>, block: &str) -> Result<Mat<f64>, StructureError> {
    let found = eigen(inner).map_err(|_| StructureError::Eigen { block: block.into() })?;
    let (u, values) = (&found.vectors, &found.values);
    let weighted = Mat::from_fn(u.nrows(), u.ncols(), |i, j| {
        // The inner matrix is at least the identity.
        let c = values[j].max(1.0).sqrt();
        u[(i, j)] / (c * (1.0 + c))
    });
    Ok(weighted * u.transpose())
}

fn scale_rows(m: MatRef<'_, f64>, scale: impl Fn(usize) -> f64) -> Mat<f64> {
    Mat::from_fn(m.nrows(), m.ncols(), |i, j| scale(i) * m[(i, j)])
}
