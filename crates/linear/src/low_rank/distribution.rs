//! `q(w) = N(mean, R Rᵀ)` over weights whose prior is `N(0, I)`.

use crate::LinearError;
use crate::check::{finite_matrix, same};
use faer::linalg::matmul::triangular::{BlockStructure, matmul};
use faer::{Accum, Mat, MatRef};
use posterior_linalg::dense::{parallelism, product};
use posterior_linalg::triangular::{
    inverse_of_lower, pack_lower, root_of_inverse, symmetric_product, unpack_lower,
};

/// Gaussians over the weights of C latent functions, independent of one another.
#[derive(Clone, Debug, PartialEq)]
pub struct WeightDistribution {
    pub(super) mean: Mat<f64>,
    pub(super) roots: Vec<Mat<f64>>,
}

impl WeightDistribution {
    /// Means (m x C) and lower-triangular roots (m x m) of the covariances with positive diagonals: one for each function, or one for
    /// all of them.
    ///
    /// # Errors
    /// [`LinearError::Shape`], [`LinearError::Empty`] or [`LinearError::NotFinite`] when they do not fit together or are no such roots.
    pub fn new(mean: Mat<f64>, roots: Vec<Mat<f64>>) -> Result<Self, LinearError> {
        let (m, latents) = (mean.nrows(), mean.ncols());
        if m == 0 || latents == 0 {
            return Err(LinearError::Empty { what: "weights" });
        }
        if roots.len() != 1 {
            same("roots of covariances", latents, roots.len())?;
        }
        finite_matrix("a mean of the weights", mean.as_ref())?;
        let mut clean = Vec::with_capacity(roots.len());
        for root in roots {
            same("rows of a root", m, root.nrows())?;
            same("columns of a root", m, root.ncols())?;
            let lower = Mat::from_fn(m, m, |i, j| if i >= j { root[(i, j)] } else { 0.0 });
            finite_matrix("a root of a covariance", lower.as_ref())?;
            if let Some(i) = (0..m).find(|&i| lower[(i, i)] <= 0.0) {
                let (name, value, expected) = ("diagonal of a root", lower[(i, i)], "positive in every row");
                return Err(LinearError::Option { name, value, expected });
            }
            clean.push(lower);
        }
        Ok(Self { mean, roots: clean })
    }

    /// The prior: means 0, covariances I.
    pub fn prior(rank: usize, latents: usize, shared: bool) -> Self {
        let root = Mat::identity(rank, rank);
        Self { mean: Mat::zeros(rank, latents), roots: vec![root; if shared { 1 } else { latents }] }
    }

    /// Means, m x C.
    pub fn mean(&self) -> MatRef<'_, f64> {
        self.mean.as_ref()
    }

    /// The mean of one function's weights, m numbers.
    pub fn mean_of(&self, latent: usize) -> &[f64] {
        self.mean.col_as_slice(latent)
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
        let mut shifts = Mat::zeros(self.rank(), self.latents());
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
    pub fn from_natural(precisions: &[Mat<f64>], shifts: MatRef<'_, f64>) -> Result<Self, LinearError> {
        let roots: Vec<Mat<f64>> =
            precisions.iter().map(|p| root_of_inverse(p.as_ref())).collect::<Result<_, _>>()?;
        if roots.len() != 1 {
            same("roots of covariances", shifts.ncols(), roots.len())?;
        }
        let mut mean = Mat::zeros(shifts.nrows(), shifts.ncols());
        for c in 0..shifts.ncols() {
            let root = &roots[if roots.len() == 1 { 0 } else { c }];
            same("rows of a precision", shifts.nrows(), root.nrows())?;
            let half = product(root.transpose(), shifts.subcols(c, 1));
            mean.as_mut().subcols_mut(c, 1).copy_from(product(root.as_ref(), half.as_ref()));
        }
        Self::new(mean, roots)
    }

    /// Number of weights of one function, m.
    pub fn rank(&self) -> usize {
        self.mean.nrows()
    }

    /// Number of latent functions, C.
    pub fn latents(&self) -> usize {
        self.mean.ncols()
    }

    /// How many functions share each root.
    pub fn sharing(&self) -> usize {
        self.latents() / self.roots.len()
    }

    /// `Rᵀ A` of root `index` for features A (m x k): the squared length of a column is the variance that the features say there. Cost `m²` flops a column.
    pub fn rooted(&self, index: usize, features: MatRef<'_, f64>) -> Mat<f64> {
        let mut out = Mat::zeros(features.nrows(), features.ncols());
        matmul(
            out.as_mut(),
            BlockStructure::Rectangular,
            Accum::Replace,
            self.roots[index].transpose(),
            BlockStructure::TriangularUpper,
            features,
            BlockStructure::Rectangular,
            1.0,
            parallelism(features.nrows(), features.ncols()),
        );
        out
    }

    /// The root that function `latent` uses.
    pub fn root_of(&self, latent: usize) -> usize {
        if self.roots.len() == 1 { 0 } else { latent }
    }

    /// The same means with covariances `deviation² I`.
    pub fn concentrated(self, deviation: f64) -> Self {
        let m = self.rank();
        let root = Mat::from_fn(m, m, |i, j| if i == j { deviation } else { 0.0 });
        Self { roots: vec![root; self.roots.len()], ..self }
    }

    /// Takes means, by columns.
    ///
    /// # Panics
    /// For another number of them.
    pub fn set_means(&mut self, numbers: &[f64]) {
        let (m, latents) = (self.rank(), self.latents());
        self.mean.copy_from(MatRef::from_column_major_slice(numbers, m, latents));
    }

    /// Appends means by columns, then lower triangles by columns with the logarithms of their diagonals: numbers without constraints.
    pub fn unconstrained_into(&self, out: &mut Vec<f64>) {
        (0..self.latents()).for_each(|c| out.extend_from_slice(self.mean.col_as_slice(c)));
        for root in &self.roots {
            let mut diagonal = out.len();
            pack_lower(root.as_ref(), out);
            for j in 0..self.rank() {
                out[diagonal] = root[(j, j)].ln();
                diagonal += self.rank() - j;
            }
        }
    }

    /// How many numbers [`Self::unconstrained_into`] appends.
    pub fn unconstrained_len(&self) -> usize {
        let m = self.rank();
        m * self.latents() + self.roots.len() * (m * (m + 1) / 2)
    }

    /// The reverse of [`Self::unconstrained_into`].
    ///
    /// # Panics
    /// For another number of them.
    pub fn set_unconstrained(&mut self, numbers: &[f64]) {
        let (m, latents) = (self.rank(), self.latents());
        let (mean, roots) = numbers.split_at(m * latents);
        self.mean.copy_from(MatRef::from_column_major_slice(mean, m, latents));
        for (root, packed) in self.roots.iter_mut().zip(roots.chunks(m * (m + 1) / 2)) {
            *root = unpack_lower(packed, m);
            (0..m).for_each(|j| root[(j, j)] = root[(j, j)].exp());
        }
    }

    /// `KL(q ‖ N(0, I)) = ½ Σ_c (‖R_c‖² + ‖mean_c‖² - m - 2 Σ_i log R_c,ii)`.
    pub fn divergence(&self) -> f64 {
        let m = self.rank();
        let of_root = |root: &Mat<f64>| {
            let log_diagonal: f64 = (0..m).map(|i| root[(i, i)].ln()).sum();
            root.squared_norm_l2() - m as f64 - 2.0 * log_diagonal
        };
        let roots: f64 = self.roots.iter().map(of_root).sum();
        0.5 * (self.sharing() as f64 * roots + self.mean.squared_norm_l2())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
            let q = WeightDistribution::new(mean.clone(), roots).unwrap();
            assert!((q.divergence() - expected).abs() < 1e-12);
        }
        assert!(WeightDistribution::prior(5, 3, false).divergence().abs() < 1e-15);
    }

    #[test]
    fn natural_parameters_lead_back() {
        let root = |k: f64| {
            Mat::<f64>::from_fn(4, 4, |i, j| if i >= j { 0.6 + k * (i + 2 * j) as f64 } else { 0.0 })
        };
        let mean = Mat::<f64>::from_fn(4, 2, |i, j| (i as f64) - 0.7 * j as f64);
        for roots in [vec![root(0.1)], vec![root(0.2), root(0.05)]] {
            let q = WeightDistribution::new(mean.clone(), roots.clone()).unwrap();
            let (precisions, shifts) = q.natural();
            for (root, precision) in roots.iter().zip(&precisions) {
                let one = precision * root * root.transpose();
                assert!((one - Mat::<f64>::identity(4, 4)).norm_max() < 1e-11);
            }
            let back = WeightDistribution::from_natural(&precisions, shifts.as_ref()).unwrap();
            assert!((&back.mean - &q.mean).norm_max() < 1e-11);
            back.roots.iter().zip(&q.roots).for_each(|(a, b)| assert!((a - b).norm_max() < 1e-11));
        }
        let indefinite = Mat::<f64>::from_fn(4, 4, |i, j| f64::from(u8::from(i != j)));
        assert!(WeightDistribution::from_natural(&[indefinite], mean.as_ref()).is_err());
    }

    #[test]
    fn parts_that_do_not_fit_are_refused() {
        let mean = || Mat::<f64>::zeros(3, 2);
        let root = || Mat::<f64>::identity(3, 3);
        assert!(WeightDistribution::new(mean(), vec![root(), root()]).is_ok());
        assert!(WeightDistribution::new(mean(), vec![root(), root(), root()]).is_err());
        assert!(WeightDistribution::new(mean(), vec![Mat::identity(2, 2)]).is_err());
        assert!(WeightDistribution::new(Mat::zeros(0, 2), vec![Mat::zeros(0, 0)]).is_err());
        let mut negative = root();
        negative[(1, 1)] = -1.0;
        let message = WeightDistribution::new(mean(), vec![negative]).unwrap_err().to_string();
        assert!(message.contains("diagonal of a root is -1"), "{message}");
    }
}
