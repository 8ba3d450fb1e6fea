//! The posterior: predictions, draws, rows left out.

use super::curvature::{Factors, is_coupled};
use super::evidence::factors_at;
use super::model::LaplaceGp;
use crate::data::{check_finite, same_width};
use crate::{GpError, Observations};
use faer::{Mat, MatRef};
use posterior_kernels::{cross, diagonal, gram};
use posterior_linalg::cholesky::Cholesky;
use posterior_linalg::random::ChaCha8Rng;
use posterior_linalg::tiles::pieces;
use rand_distr::{Distribution, StandardNormal};

/// Points handled at a time: bounds the extra memory of a prediction.
const BLOCK: usize = 512;

/// Gaussians over C latent values at m points, point by point.
#[derive(Clone, Debug, PartialEq)]
pub struct LatentPrediction {
    /// Means, m x C.
    pub mean: Mat<f64>,
    /// Covariances, m blocks of C x C row by row; of one function its variances.
    pub covariance: Vec<f64>,
    /// Variances that rounding had made negative and that were raised to 0.
    pub clipped: usize,
}

/// What a posterior is made of, for files: nothing is computed again from them.
#[derive(Clone, Debug)]
pub struct LaplaceParts {
    /// Training inputs, n x D.
    pub inputs: Mat<f64>,
    /// `A`, n x C.
    pub coefficients: Mat<f64>,
    /// `√D`, n x C.
    pub roots: Mat<f64>,
    /// Factor of `I + √D_c K √D_c` for each function.
    pub each: Vec<Mat<f64>>,
    /// Factor of S, where outputs are coupled.
    pub sum: Option<Mat<f64>>,
}

/// Latent processes given observations, as a Gaussian about the mode.
#[derive(Debug)]
pub struct LaplacePosterior {
    model: LaplaceGp,
    inputs: Mat<f64>,
    coefficients: Mat<f64>,
    factors: Factors,
}

impl std::fmt::Debug for Factors {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "factors of {} functions at {} rows", self.each.len(), self.roots.nrows())
    }
}

impl LaplacePosterior {
    /// At the model's hyperparameters; `start` are coefficients of a mode nearby. Cost of a mode.
    ///
    /// # Errors
    /// As [`super::laplace_evidence`].
    pub fn new(model: LaplaceGp, data: &Observations, start: Option<&Mat<f64>>) -> Result<Self, GpError> {
        model.check(data)?;
        let (mode, factors, _) = factors_at(&model, data, start)?;
        Ok(Self { model, inputs: data.inputs().to_owned(), coefficients: mode.coefficients, factors })
    }

    /// From parts that were computed before: predictions are equal to the last bit.
    ///
    /// # Errors
    /// [`GpError::Shape`] or [`GpError::NotFinite`] when the parts do not fit together.
    pub fn from_parts(model: LaplaceGp, parts: LaplaceParts) -> Result<Self, GpError> {
        let LaplaceParts { inputs, coefficients, roots, each, sum } = parts;
        let (n, c) = (inputs.nrows(), model.latents());
        check_finite("input", inputs.as_ref())?;
        check_finite("coefficient", coefficients.as_ref())?;
        check_finite("root of the curvature", roots.as_ref())?;
        same_width("columns of the inputs", model.mean().input_dimension(), inputs.ncols())?;
        same_width("rows of the coefficients", n, coefficients.nrows())?;
        same_width("columns of the coefficients", c, coefficients.ncols())?;
        same_width("rows of the curvature", n, roots.nrows())?;
        same_width("columns of the curvature", c, roots.ncols())?;
        same_width("factors", c, each.len())?;
        same_width(
            "factors of the coupling",
            usize::from(is_coupled(model.likelihood())),
            sum.iter().count(),
        )?;
        for factor in each.iter().chain(&sum) {
            same_width("rows of a factor", n, factor.nrows())?;
        }
        let factor = |m: Mat<f64>| Cholesky::from_factor(m, Default::default());
        let factors = Factors::from_parts(roots, each.into_iter().map(factor).collect(), sum.map(factor));
        Ok(Self { model, inputs, coefficients, factors })
    }

    /// What it is made of.
    pub fn parts(&self) -> LaplaceParts {
        LaplaceParts {
            inputs: self.inputs.clone(),
            coefficients: self.coefficients.clone(),
            roots: self.factors.roots.clone(),
            each: self.factors.each.iter().map(|f| f.factor().to_owned()).collect(),
            sum: self.factors.sum.as_ref().map(|f| f.factor().to_owned()),
        }
    }

    /// Coefficients of the mode, n x C.
    pub fn coefficients(&self) -> MatRef<'_, f64> {
        self.coefficients.as_ref()
    }

    /// Kernel, means and likelihood.
    pub fn model(&self) -> &LaplaceGp {
        &self.model
    }

    /// Training inputs, n x D.
    pub fn inputs(&self) -> MatRef<'_, f64> {
        self.inputs.as_ref()
    }

    fn check(&self, x: MatRef<'_, f64>) -> Result<(), GpError> {
        same_width("columns of the inputs to predict", self.inputs.ncols(), x.ncols())?;
        check_finite("input", x)
    }

    /// Means and covariances of the latent values at the rows of `x` (m x D). Cost `C n²` flops a point, for classes `3 C n²`, in blocks of 512 points.
    ///
    /// # Errors
    /// [`GpError`] when the width is wrong or a value is not finite.
    pub fn predict(&self, x: MatRef<'_, f64>) -> Result<LatentPrediction, GpError> {
        self.check(x)?;
        let c = self.model.latents();
        let mut mean = self.model.mean().evaluate(x);
        let prior = diagonal(self.model.kernel(), x);
        let mut covariance = vec![0.0; x.nrows() * c * c];
        let mut clipped = 0;
        for rows in pieces(x.nrows(), BLOCK) {
            let between = cross(self.model.kernel(), self.inputs.as_ref(), x.subrows(rows.start, rows.len()));
            let mut own = mean.as_mut().subrows_mut(rows.start, rows.len());
            own += between.transpose() * &self.coefficients;
            let mut coupled = Vec::new();
            for k in 0..c {
                let whitened = self.factors.whitened(k, between.clone());
                for (j, row) in rows.clone().enumerate() {
                    covariance[row * c * c + k * c + k] = prior[row] - whitened.col(j).squared_norm_l2();
                }
                coupled.extend(self.factors.coupling(k, whitened));
            }
            for (j, row) in rows.clone().enumerate() {
                let out = &mut covariance[row * c * c..][..c * c];
                for (k, left) in coupled.iter().enumerate() {
                    for (l, right) in coupled.iter().enumerate() {
                        let pairs = left.col_as_slice(j).iter().zip(right.col_as_slice(j));
                        out[k * c + l] += pairs.map(|(a, b)| a * b).sum::<f64>();
                    }
                }
                for k in 0..c {
                    if out[k * c + k] < 0.0 {
                        out[k * c + k] = 0.0;
                        clipped += 1;
                    }
                }
            }
        }
        Ok(LatentPrediction { mean, covariance, clipped })
    }

    /// `count` joint draws of all latent functions at the rows of `x`, a matrix m x count for each, with the jitter that their covariance needed. The functions of classes are correlated a posteriori, so these are drawn together: cost `(Cm)³/3` flops
    /// and `16 (Cm)²` bytes; functions that are independent are drawn apart, `C m³/3` and `16 m²`. Beside `C (n²m + nm²)`.
    ///
    /// # Errors
    /// As [`Self::predict`]; when a covariance cannot be factored.
    pub fn sample(
        &self,
        x: MatRef<'_, f64>,
        count: usize,
        rng: &mut ChaCha8Rng,
    ) -> Result<(Vec<Mat<f64>>, f64), GpError> {
        self.check(x)?;
        let (m, c) = (x.nrows(), self.model.latents());
        let between = cross(self.model.kernel(), self.inputs.as_ref(), x);
        let mean = self.model.mean().evaluate(x) + between.transpose() * &self.coefficients;
        let prior = gram(self.model.kernel(), x);
        let (mut own, mut coupled) = (Vec::with_capacity(c), Vec::new());
        for k in 0..c {
            let whitened = self.factors.whitened(k, between.clone());
            own.push(&prior - whitened.transpose() * &whitened);
            coupled.extend(self.factors.coupling(k, whitened));
        }
        let mut jitter = 0.0f64;
        let mut drawn = |covariance: MatRef<'_, f64>| -> Result<Mat<f64>, GpError> {
            let factored = Cholesky::of(covariance, self.model.jitter)?;
            jitter = jitter.max(factored.info().jitter);
            let white = Mat::from_fn(covariance.nrows(), count, |_, _| StandardNormal.sample(rng));
            Ok(factored.multiply_factor(white.as_ref()))
        };
        let mut draws = Vec::with_capacity(c);
        if coupled.is_empty() {
            for covariance in &own {
                draws.push(drawn(covariance.as_ref())?);
            }
        } else {
            let mut covariance = Mat::<f64>::zeros(c * m, c * m);
            for k in 0..c {
                for l in 0..c {
                    let mut block = covariance.as_mut().submatrix_mut(k * m, l * m, m, m);
                    block.copy_from(coupled[k].transpose() * &coupled[l]);
                    if k == l {
                        block += &own[k];
                    }
                }
            }
            let all = drawn(covariance.as_ref())?;
            draws.extend((0..c).map(|k| all.subrows(k * m, m).to_owned()));
        }
        for (k, draws) in draws.iter_mut().enumerate() {
            for j in 0..count {
                let values = draws.col_as_slice_mut(j).iter_mut();
                values.zip(mean.col_as_slice(k)).for_each(|(d, m)| *d += m);
            }
        }
        Ok((draws, jitter))
    }

    /// Every training row's latent values as the others say, about: the posterior there less the row's own part of it, a Gaussian of its gradient and curvature at the mode; of rows that have duplicates theirs as well, `multiplicities` rows in all. `data` are those that it was conditioned on.
    ///
    /// Source: Vehtari et al. (2016), *Bayesian leave-one-out cross-validation approximations for Gaussian latent variable models*, section 3.3 (LA-LOO), here for several outputs.
    ///
    /// # Errors
    /// [`GpError::Shape`] for other data.
    pub fn left_out(
        &self,
        data: &Observations,
        multiplicities: Option<&[usize]>,
    ) -> Result<LatentPrediction, GpError> {
        self.model.check(data)?;
        same_width("rows of the data", self.inputs.nrows(), data.rows())?;
        let LatentPrediction { mean, covariance, clipped } = self.predict(data.inputs())?;
        let (n, c) = mean.shape();
        let here = super::curvature::slopes(self.model.likelihood(), data, &mean);
        let coupled = is_coupled(self.model.likelihood());
        let mut out = LatentPrediction { mean: mean.clone(), covariance: covariance.clone(), clipped };
        for i in 0..n {
            let sigma = Mat::from_fn(c, c, |k, l| covariance[i * c * c + k * c + l]);
            let count = multiplicities.map_or(1.0, |multiplicities| multiplicities[i] as f64);
            let total: f64 = (0..c).map(|k| here.diagonal[(i, k)]).sum();
            let w = Mat::from_fn(c, c, |k, l| {
                let d = |k: usize| here.diagonal[(i, k)];
                let own = if k == l { d(k) } else { 0.0 };
                count * if coupled { own - d(k) * d(l) / total } else { own }
            });
            // (Σ⁻¹ - W)⁻¹ = Σ (I - W Σ)⁻¹.
            let rest = Mat::<f64>::identity(c, c) - &w * &sigma;
            let solved = faer::prelude::Solve::solve(&rest.partial_piv_lu(), Mat::<f64>::identity(c, c));
            let without = &sigma * &solved;
            for k in 0..c {
                let shift: f64 = (0..c).map(|l| without[(k, l)] * count * here.gradient[(i, l)]).sum();
                out.mean[(i, k)] -= shift;
                for l in 0..c {
                    out.covariance[i * c * c + k * c + l] = 0.5 * (without[(k, l)] + without[(l, k)]);
                }
                out.covariance[i * c * c + k * c + k] = out.covariance[i * c * c + k * c + k].max(0.0);
            }
        }
        Ok(out)
    }
}
