//! `q(v) = N(mean, R Rᵀ)` over whitened inducing values `v = L⁻¹ U`, whose prior is `N(0, I)`.

use super::InducingError;
use crate::GpError;
use crate::data::{check_finite, same_width};
use faer::linalg::matmul::triangular::{BlockStructure, matmul};
use faer::linalg::triangular_inverse::invert_lower_triangular;
use faer::{Accum, Mat, MatRef};
use posterior_linalg::cholesky::{Cholesky, JitterPolicy};
use posterior_linalg::dense::{multiply_into, parallelism, product};
use posterior_linalg::symmetric::mirror_lower;

/// Gaussians over the whitened inducing values of C latent functions, independent of one another.
#[derive(Clone, Debug, PartialEq)]
pub struct InducingDistribution {
    pub(super) mean: Mat<f64>,
    pub(super) roots: Vec<Mat<f64>>,
}

impl InducingDistribution {
    /// Means (m x C) and lower-triangular roots (m x m) of the covariances with positive diagonals: one for each function, or one for
    /// all of them.
    ///
    /// # Errors
    /// [`GpError::Shape`], [`GpError::Empty`] or [`GpError::NotFinite`] when they do not fit together or are no such roots.
    pub fn new(mean: Mat<f64>, roots: Vec<Mat<f64>>) -> Result<Self, GpError> {
        let (m, latents) = (mean.nrows(), mean.ncols());
        if m == 0 || latents == 0 {
            return Err(GpError::Empty { what: "the set of inducing values" });
        }
        if roots.len() != 1 {
            same_width("roots of inducing covariances", latents, roots.len())?;
        }
        check_finite("mean of inducing values", mean.as_ref())?;
        let mut clean = Vec::with_capacity(roots.len());
        for root in roots {
            same_width("rows of a root", m, root.nrows())?;
            same_width("columns of a root", m, root.ncols())?;
            let lower = Mat::from_fn(m, m, |i, j| if i >= j { root[(i, j)] } else { 0.0 });
            check_finite("root of an inducing covariance", lower.as_ref())?;
            if let Some(i) = (0..m).find(|&i| lower[(i, i)] <= 0.0) {
                let value = format!("{} in row {i}", lower[(i, i)]);
                let (option, remedy) =
                    ("the diagonal of a root", "give a lower triangle with a positive diagonal");
                return Err(InducingError::Option { option, value, remedy }.into());
            }
            clean.push(lower);
        }
        Ok(Self { mean, roots: clean })
    }

    /// The prior: means 0, covariances I.
    pub fn prior(inducing: usize, latents: usize, shared: bool) -> Self {
        let root = Mat::identity(inducing, inducing);
        Self { mean: Mat::zeros(inducing, latents), roots: vec![root; if shared { 1 } else { latents }] }
    }

    /// Means, m x C.
    pub fn mean(&self) -> MatRef<'_, f64> {
        self.mean.as_ref()
    }

    /// Lower-triangular roots of the covariances, with zeros above the diagonal: C of them, or one that all functions share.
    pub fn roots(&self) -> &[Mat<f64>] {
        &self.roots
    }

    /// Its natural parameters: the precision of each root and `precision * mean` (m x C). Cost `4m³/3` flops a root.
    pub fn natural(&self) -> (Vec<Mat<f64>>, Mat<f64>) {
        let precision = |root: &Mat<f64>| {
            let inverse = inverse_of_lower(root.as_ref());
            let upper = (inverse.transpose(), BlockStructure::TriangularUpper);
            symmetric_product(upper, (inverse.as_ref(), BlockStructure::TriangularLower), 1.0)
        };
        let precisions: Vec<Mat<f64>> = self.roots.iter().map(precision).collect();
        let mut shifts = Mat::zeros(self.inducing(), self.latents());
        for c in 0..self.latents() {
            let own = product(precisions[self.root_of(c)].as_ref(), self.mean.as_ref().subcols(c, 1));
            shifts.as_mut().subcols_mut(c, 1).copy_from(own);
        }
        (precisions, shifts)
    }

    /// From natural parameters, as [`Self::natural`] has them: precisions (m x m, lower triangles are read; one for each function or one for all) and `precision * mean` (m x C). Cost `2m³/3` flops a root.
    ///
    /// # Errors
    /// As [`Self::new`]; when a precision is not positive definite.
    pub fn from_natural(precisions: &[Mat<f64>], shifts: MatRef<'_, f64>) -> Result<Self, GpError> {
        let roots: Vec<Mat<f64>> =
            precisions.iter().map(|p| root_of_inverse(p.as_ref())).collect::<Result<_, _>>()?;
        if roots.len() != 1 {
            same_width("roots of inducing covariances", shifts.ncols(), roots.len())?;
        }
        let mut mean = Mat::zeros(shifts.nrows(), shifts.ncols());
        for c in 0..shifts.ncols() {
            let root = &roots[if roots.len() == 1 { 0 } else { c }];
            same_width("rows of a precision", shifts.nrows(), root.nrows())?;
            let half = product(root.transpose(), shifts.subcols(c, 1));
            mean.as_mut().subcols_mut(c, 1).copy_from(product(root.as_ref(), half.as_ref()));
        }
        Self::new(mean, roots)
    }

    /// Number of inducing values of one function, m.
    pub fn inducing(&self) -> usize {
        self.mean.nrows()
    }

    /// Number of latent functions, C.
    pub fn latents(&self) -> usize {
        self.mean.ncols()
    }

    /// How many functions share each root.
    pub(super) fn sharing(&self) -> usize {
        self.latents() / self.roots.len()
    }

    /// The root that function `latent` uses.
    pub(super) fn root_of(&self, latent: usize) -> usize {
        if self.roots.len() == 1 { 0 } else { latent }
    }

    /// `KL(q ‖ N(0, I)) = ½ Σ_c (‖R_c‖² + ‖mean_c‖² - m - 2 Σ_i log R_c,ii)`.
    pub fn divergence(&self) -> f64 {
        let m = self.inducing();
        let of_root = |root: &Mat<f64>| {
            let log_diagonal: f64 = (0..m).map(|i| root[(i, i)].ln()).sum();
            root.squared_norm_l2() - m as f64 - 2.0 * log_diagonal
        };
        let roots: f64 = self.roots.iter().map(of_root).sum();
        0.5 * (self.sharing() as f64 * roots + self.mean.squared_norm_l2())
    }
}

/// The lower-triangular root R of an inverse, `R Rᵀ = precision⁻¹`, with zeros above the diagonal: reversing rows and columns turns
/// the lower factor of one into the upper factor of the other. Cost `2m³/3` flops. The lower triangle of `precision` is read.
///
/// # Errors
/// When the precision is not positive definite.
pub(super) fn root_of_inverse(precision: MatRef<'_, f64>) -> Result<Mat<f64>, GpError> {
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

/// The inverse of a lower-triangular matrix, with zeros above the diagonal.
pub(super) fn inverse_of_lower(lower: MatRef<'_, f64>) -> Mat<f64> {
    let m = lower.nrows();
    let mut inverse = Mat::zeros(m, m);
    invert_lower_triangular(inverse.as_mut(), lower, parallelism(m, m));
    inverse
}

/// The lower triangle of `A B` for structured factors, written to a new matrix; what stands above is zero.
pub(super) fn lower_product(
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
pub(super) fn symmetric_product(
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
pub(super) fn add_lower_product(
    out: &mut Mat<f64>,
    a: (MatRef<'_, f64>, BlockStructure),
    b: (MatRef<'_, f64>, BlockStructure),
    scale: f64,
) {
    let par = parallelism(out.nrows(), out.ncols());
    matmul(out.as_mut(), BlockStructure::TriangularLower, Accum::Add, a.0, a.1, b.0, b.1, scale, par);
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
    fn the_divergence_is_that_of_two_gaussians() {
        let root =
            Mat::<f64>::from_fn(3, 3, |i, j| if i >= j { 0.4 + 0.3 * (i + 2 * j) as f64 } else { 0.0 });
        let mean = Mat::<f64>::from_fn(3, 2, |i, j| (i as f64) - 0.7 * j as f64);
        let covariance = &root * root.transpose();
        let log_det: f64 =
            covariance.self_adjoint_eigenvalues(faer::Side::Lower).unwrap().iter().map(|e| e.ln()).sum();
        let trace: f64 = (0..3).map(|i| covariance[(i, i)]).sum();
        let expected = 0.5 * (2.0 * (trace - 3.0 - log_det) + mean.squared_norm_l2());
        for roots in [vec![root.clone()], vec![root.clone(); 2]] {
            let q = InducingDistribution::new(mean.clone(), roots).unwrap();
            assert!((q.divergence() - expected).abs() < 1e-12);
        }
        assert!(InducingDistribution::prior(5, 3, false).divergence().abs() < 1e-15);
    }

    #[test]
    fn natural_parameters_lead_back() {
        let root = |k: f64| {
            Mat::<f64>::from_fn(4, 4, |i, j| if i >= j { 0.6 + k * (i + 2 * j) as f64 } else { 0.0 })
        };
        let mean = Mat::<f64>::from_fn(4, 2, |i, j| (i as f64) - 0.7 * j as f64);
        for roots in [vec![root(0.1)], vec![root(0.2), root(0.05)]] {
            let q = InducingDistribution::new(mean.clone(), roots.clone()).unwrap();
            let (precisions, shifts) = q.natural();
            for (root, precision) in roots.iter().zip(&precisions) {
                let one = precision * root * root.transpose();
                assert!((one - Mat::<f64>::identity(4, 4)).norm_max() < 1e-11);
            }
            let back = InducingDistribution::from_natural(&precisions, shifts.as_ref()).unwrap();
            assert!((&back.mean - &q.mean).norm_max() < 1e-11);
            back.roots.iter().zip(&q.roots).for_each(|(a, b)| assert!((a - b).norm_max() < 1e-11));
        }
        let indefinite = Mat::<f64>::from_fn(4, 4, |i, j| f64::from(u8::from(i != j)));
        assert!(InducingDistribution::from_natural(&[indefinite], mean.as_ref()).is_err());
    }

    #[test]
    fn parts_that_do_not_fit_are_refused() {
        let mean = || Mat::<f64>::zeros(3, 2);
        let root = || Mat::<f64>::identity(3, 3);
        assert!(InducingDistribution::new(mean(), vec![root(), root()]).is_ok());
        assert!(InducingDistribution::new(mean(), vec![root(), root(), root()]).is_err());
        assert!(InducingDistribution::new(mean(), vec![Mat::identity(2, 2)]).is_err());
        assert!(InducingDistribution::new(Mat::zeros(0, 2), vec![Mat::zeros(0, 0)]).is_err());
        let mut negative = root();
        negative[(1, 1)] = -1.0;
        let message = InducingDistribution::new(mean(), vec![negative]).unwrap_err().to_string();
        assert!(message.contains("row 1"), "{message}");
    }
}
