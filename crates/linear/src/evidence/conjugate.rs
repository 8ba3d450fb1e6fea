//! **Gaussian noise and one prior precision**: the linear model in the eigenvectors of its curvature or of its kernel, where the optimum of the weights costs a
//! product for every precision and noise.

use super::SpectralEvidence;
use crate::structure::StructureError;
use faer::{Mat, MatRef};
use posterior_linalg::dense::product;

/// Targets and curvature in weight space.
#[derive(Clone, Debug)]
pub struct PrimalModel {
    basis: Mat<f64>,
    eigenvalues: Vec<f64>,
    /// `Phi^T B t`, projected.
    projected: Vec<f64>,
    /// `t^T B t`.
    total: f64,
    values: usize,
    /// Share of the largest eigenvalue below which sums hold nothing but rounding.
    least: f64,
}

impl PrimalModel {
    /// For targets `t = r + Phi v`: the curvature `Phi^T B Phi` (d x d), `Phi^T B r` (d), `r^T B r`, the weights `v` (d), how many numbers were observed, and the relative
    /// precision that the sums were made in. Cost: one eigendecomposition of d x d.
    ///
    /// # Errors
    /// When the curvature is not finite or has no eigendecomposition.
    pub fn new(
        curvature: MatRef<'_, f64>,
        slope: &[f64],
        residual_sum: f64,
        weights: &[f64],
        values: usize,
        precision: f64,
    ) -> Result<Self, StructureError> {
        let through = product(curvature, column(weights));
        let total = residual_sum + 2.0 * inner(weights, slope) + inner(weights, through.col_as_slice(0));
        let targets: Vec<f64> = slope.iter().zip(through.col_as_slice(0)).map(|(a, b)| a + b).collect();
        let (eigenvalues, basis) = eigen(curvature, "the curvature")?;
        let projected = (basis.transpose() * column(&targets)).col_as_slice(0).to_vec();
        Ok(Self { basis, eigenvalues, projected, total, values, least: 10.0 * precision })
    }

    /// What the evidence needs.
    pub fn evidence(&self) -> SpectralEvidence {
        let least = self.least * self.eigenvalues.iter().copied().fold(0.0, f64::max);
        let kept = self.eigenvalues.iter().zip(&self.projected).filter(|(l, _)| **l > least);
        let (eigenvalues, energies): (Vec<f64>, Vec<f64>) = kept.map(|(l, q)| (*l, q * q / l)).unzip();
        let rest = (self.total - energies.iter().sum::<f64>()).max(0.0);
        SpectralEvidence { eigenvalues, energies, rest, values: self.values }
    }

    /// The optimum of the weights (d) for a precision and a noise variance.
    pub fn weights(&self, precision: f64, noise: f64) -> Vec<f64> {
        let ratio = precision * noise;
        let scaled: Vec<f64> =
            self.projected.iter().zip(&self.eigenvalues).map(|(q, l)| q / (l + ratio)).collect();
        product(self.basis.as_ref(), column(&scaled)).col_as_slice(0).to_vec()
    }
}

/// Targets and kernel in function space.
#[derive(Clone, Debug)]
pub struct DualModel {
    basis: Mat<f64>,
    eigenvalues: Vec<f64>,
    projected: Vec<f64>,
}

impl DualModel {
    /// For whitened targets `t` (n) and the kernel `R^T Phi Phi^T R` between them (n x n), which errors call by a name. Cost: one eigendecomposition of n x n.
    ///
    /// # Errors
    /// When the kernel is not finite or has no eigendecomposition.
    pub fn new(kernel: MatRef<'_, f64>, targets: &[f64], name: &str) -> Result<Self, StructureError> {
        let (eigenvalues, basis) = eigen(kernel, name)?;
        let projected = (basis.transpose() * column(targets)).col_as_slice(0).to_vec();
        Ok(Self { basis, eigenvalues, projected })
    }

    /// Of the kernel, none negative.
    pub fn eigenvalues(&self) -> &[f64] {
        &self.eigenvalues
    }

    /// What the evidence needs.
    pub fn evidence(&self) -> SpectralEvidence {
        SpectralEvidence {
            eigenvalues: self.eigenvalues.clone(),
            energies: self.projected.iter().map(|t| t * t).collect(),
            rest: 0.0,
            values: self.projected.len(),
        }
    }

    /// `(K / a + s I)^-1 t` (n): the weights of the optimum are `Phi^T R` times these, over the precision.
    pub fn coefficients(&self, precision: f64, noise: f64) -> Vec<f64> {
        let pairs = self.projected.iter().zip(&self.eigenvalues);
        let scaled: Vec<f64> = pairs.map(|(t, l)| t / (l / precision + noise)).collect();
        product(self.basis.as_ref(), column(&scaled)).col_as_slice(0).to_vec()
    }
}

/// The inner product.
fn inner(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn column(v: &[f64]) -> MatRef<'_, f64> {
    MatRef::from_column_major_slice(v, v.len(), 1)
}

/// Eigenvalues, those that rounding made negative raised to 0, and eigenvectors of a symmetric matrix given by its lower triangle; errors call it by a name.
pub(crate) fn eigen(matrix: MatRef<'_, f64>, name: &str) -> Result<(Vec<f64>, Mat<f64>), StructureError> {
    if matrix.nrows() == 0 {
        return Ok((Vec::new(), Mat::zeros(0, 0)));
    }
    if !matrix.is_all_finite() {
        return Err(StructureError::NotFinite { block: name.into() });
    }
    let found =
        posterior_linalg::dense::eigen(matrix).map_err(|_| StructureError::Eigen { block: name.into() })?;
    Ok((found.values.into_iter().map(|l| l.max(0.0)).collect(), found.vectors))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::EvidenceOptions;
    use faer::linalg::solvers::Solve;

    #[test]
    fn both_sides_have_the_same_optimum_and_evidence() {
        let (n, d) = (9, 5);
        let phi = Mat::from_fn(n, d, |i, j| ((i * d + j) as f64 * 0.71).sin());
        let t: Vec<f64> = (0..n).map(|i| (i as f64 * 1.3).cos()).collect();
        let v: Vec<f64> = (0..d).map(|j| 0.2 * j as f64 - 0.3).collect();
        let through = &phi * column(&v);
        let r: Vec<f64> = t.iter().enumerate().map(|(i, t)| t - through[(i, 0)]).collect();
        let m = phi.transpose() * &phi;
        let slope = (phi.transpose() * column(&r)).col_as_slice(0).to_vec();
        let primal = PrimalModel::new(m.as_ref(), &slope, inner(&r, &r), &v, n, 1e-16).unwrap();
        let kernel = &phi * phi.transpose();
        let dual = DualModel::new(kernel.as_ref(), &t, "kernel").unwrap();
        let (a, s) = (0.7, 0.3);
        // (M + a s I) w = Phi^T t.
        let h = Mat::from_fn(d, d, |i, j| m[(i, j)] + if i == j { a * s } else { 0.0 });
        let expected = h.partial_piv_lu().solve(phi.transpose() * column(&t));
        let by_dual = phi.transpose() * column(&dual.coefficients(a, s)) * faer::Scale(1.0 / a);
        for (j, w) in primal.weights(a, s).iter().enumerate() {
            assert!(
                (w - expected[(j, 0)]).abs() < 1e-12 && (by_dual[(j, 0)] - expected[(j, 0)]).abs() < 1e-12
            );
        }
        let of = |e: SpectralEvidence| e.largest(&EvidenceOptions::default(), f64::INFINITY).unwrap();
        let (one, other) = (of(primal.evidence()), of(dual.evidence()));
        assert!(
            (one.0 / other.0 - 1.0).abs() < 1e-4 && (one.1 / other.1 - 1.0).abs() < 1e-4,
            "{one:?} {other:?}"
        );
        let nan = Mat::from_fn(2, 2, |_, _| f64::NAN);
        assert!(matches!(
            DualModel::new(nan.as_ref(), &[0.0; 2], "k"),
            Err(StructureError::NotFinite { .. })
        ));
    }
}
