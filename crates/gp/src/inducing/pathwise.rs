//! **Pathwise samples**: draws of the posterior that are functions, to be evaluated and differentiated anywhere.
//!
//! A prior function f̃ and a draw v of the whitened inducing values make
//!
//! ```text
//! f(x) = m(x) + f̃(x) + k(x, Z) L⁻ᵀ (v - L⁻¹ f̃(Z))
//! ```
//!
//! whose law is the posterior's when f̃'s is the prior's: correlations between any points come out right, and a new point costs
//! `O(m + d)` with d features. What the features miss of the kernel is missed between the inducing points only.
//!
//! Source: Wilson et al. (2020), *Efficiently sampling functions from Gaussian process posteriors*; spec
//! `stochastic_gaussian_processes`, section 11.2.

use super::{InducingError, InducingPosterior};
use crate::GpError;
use crate::data::{check_finite, same_width};
use faer::{Accum, Mat, MatRef};
use posterior_kernels::features::PriorDraws;
use posterior_kernels::{Kernel, Request, cross, pullback};
use posterior_linalg::dense::multiply_into;
use posterior_linalg::random::Streams;
use posterior_linalg::tiles::pieces;
use posterior_optim::Parameters;
use rand_distr::{Distribution, StandardNormal};

use crate::{Mean, MeanForm};

/// Points handled at a time.
const BLOCK: usize = 1024;

/// s functions drawn from the posterior of one latent function.
#[derive(Debug)]
pub struct PathwiseSamples {
    kernel: Box<dyn Kernel<f64>>,
    mean: Mean,
    latent: usize,
    inducing: Mat<f64>,
    prior: PriorDraws<f64>,
    /// `L⁻ᵀ (v - L⁻¹ f̃(Z))`, m x s.
    weights: Mat<f64>,
}

impl InducingPosterior {
    /// Draws as many functions from the posterior of latent function `latent` as `prior` has, which must be draws for this
    /// posterior's kernel. Inducing values come from the stream `gp/inducing-values` of child `latent`. Cost `2m²` flops a function and the
    /// features of Z.
    ///
    /// # Errors
    /// [`GpError::Shape`] when there is no such function or the features are for other inputs.
    pub fn pathwise(
        &self,
        latent: usize,
        prior: PriorDraws<f64>,
        streams: Streams,
    ) -> Result<PathwiseSamples, GpError> {
        let latents = self.distribution.latents();
        if latent >= latents {
            let what = "latent functions of the model";
            return Err(GpError::Shape { what, expected: latent + 1, actual: latents });
        }
        let inputs = self.inducing.ncols();
        same_width(
            "columns of the points that features were drawn for",
            inputs,
            prior.features().dimension(),
        )?;
        let mut rng = streams.child("gp/inducing-values", latent as u64).stream("values");
        let (m, s) = (self.inducing.nrows(), prior.count());
        let white = Mat::<f64>::from_fn(m, s, |_, _| StandardNormal.sample(&mut rng));
        let mut weights = &self.distribution.roots()[self.distribution.root_of(latent)] * white;
        let mut at_inducing = prior.values(self.inducing());
        let factor = self.factor();
        factor.solve_factor_in_place(at_inducing.as_mut());
        for j in 0..s {
            let mean = self.distribution.mean_of(latent);
            let prior = at_inducing.col_as_slice(j);
            let pairs = mean.iter().zip(prior);
            weights.col_as_slice_mut(j).iter_mut().zip(pairs).for_each(|(w, (m, f))| *w += m - f);
        }
        factor.solve_factor_transpose_in_place(weights.as_mut());
        let (kernel, mean) = (self.kernel.clone_box(), self.mean.clone());
        Ok(PathwiseSamples { kernel, mean, latent, inducing: self.inducing.clone(), prior, weights })
    }
}

impl PathwiseSamples {
    /// How many functions, s.
    pub fn count(&self) -> usize {
        self.weights.ncols()
    }

    fn check(&self, x: MatRef<'_, f64>) -> Result<(), GpError> {
        same_width("columns of the inputs", self.inducing.ncols(), x.ncols())?;
        check_finite("input", x)
    }

    fn check_which(&self, x: MatRef<'_, f64>, which: &[usize]) -> Result<(), GpError> {
        self.check(x)?;
        same_width("functions to evaluate", x.nrows(), which.len())?;
        match which.iter().find(|&&w| w >= self.count()) {
            Some(w) => Err(GpError::Shape { what: "functions", expected: w + 1, actual: self.count() }),
            None => Ok(()),
        }
    }

    /// All functions at the rows of x, n x s. Cost `2 n m s` flops, the kernel and the features.
    ///
    /// # Errors
    /// [`GpError`] when the width is wrong or a value is not finite.
    pub fn values(&self, x: MatRef<'_, f64>) -> Result<Mat<f64>, GpError> {
        self.check(x)?;
        let mut out = self.prior.values(x);
        let mean = self.mean.evaluate(x);
        for rows in pieces(x.nrows(), BLOCK) {
            let k = cross(&*self.kernel, x.subrows(rows.start, rows.len()), self.inducing.as_ref());
            let target = out.as_mut().subrows_mut(rows.start, rows.len());
            multiply_into(target, Accum::Add, k.as_ref(), self.weights.as_ref(), 1.0);
        }
        for j in 0..self.count() {
            let pairs = out.col_as_slice_mut(j).iter_mut().zip(mean.col_as_slice(self.latent));
            pairs.for_each(|(o, m)| *o += m);
        }
        Ok(out)
    }

    /// At point i the function `which[i]` alone (n).
    ///
    /// # Errors
    /// As [`Self::values`], and when a function does not exist.
    pub fn values_of(&self, x: MatRef<'_, f64>, which: &[usize]) -> Result<Vec<f64>, GpError> {
        self.check_which(x, which)?;
        let mut out = self.prior.values_of(x, which);
        let mean = self.mean.evaluate(x);
        for rows in pieces(x.nrows(), BLOCK) {
            // Points as columns, so that each is one piece of memory.
            let k = cross(&*self.kernel, self.inducing.as_ref(), x.subrows(rows.start, rows.len()));
            for (column, i) in rows.enumerate() {
                let pairs = k.col_as_slice(column).iter().zip(self.weights.col_as_slice(which[i]));
                out[i] += mean[(i, self.latent)] + pairs.map(|(k, w)| k * w).sum::<f64>();
            }
        }
        Ok(out)
    }

    /// The gradient at point i of function `which[i]`, n x D.
    ///
    /// # Errors
    /// As [`Self::values_of`], and [`InducingError::Features`] when the features have no derivatives.
    pub fn gradients_of(&self, x: MatRef<'_, f64>, which: &[usize]) -> Result<Mat<f64>, GpError> {
        self.check_which(x, which)?;
        let mut out = self.prior.gradients_of(x, which).map_err(InducingError::Features)?;
        let request = Request { parameters: false, x: true, z: false };
        for rows in pieces(x.nrows(), BLOCK) {
            let mut adjoint = Mat::zeros(rows.len(), self.inducing.nrows());
            for (row, i) in rows.clone().enumerate() {
                for (j, w) in self.weights.col_as_slice(which[i]).iter().enumerate() {
                    adjoint[(row, j)] = *w;
                }
            }
            let points = x.subrows(rows.start, rows.len());
            let part = pullback(&*self.kernel, points, self.inducing.as_ref(), adjoint.as_ref(), request);
            if let Some(part) = part.x {
                let mut target = out.as_mut().subrows_mut(rows.start, rows.len());
                target += part;
            }
        }
        if self.mean.form() == MeanForm::Linear {
            // Constants come first, then the slopes of one function after the other.
            let (values, inputs) = (self.mean.values(), self.inducing.ncols());
            let start = self.mean.target_count() + self.latent * inputs;
            for d in 0..inputs {
                let slope = values[start + d];
                out.col_as_slice_mut(d).iter_mut().for_each(|o| *o += slope);
            }
        }
        Ok(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inducing::collapsed::CollapsedGp;
    use crate::{Observations, Posterior};
    use faer::mat;
    use posterior_kernels::KernelExpression;
    use posterior_kernels::features::{FeatureSettings, RandomFeatures};
    use posterior_likelihoods::Gaussian;
    use posterior_optim::check;
    use std::sync::Arc;

    fn posterior(mean: MeanForm) -> InducingPosterior {
        let kernel = "matern52(ard)".parse::<KernelExpression>().unwrap();
        let kernel = kernel.build(&["x0".into(), "x1".into()]).unwrap();
        let mut rng = Streams::new(2).stream("data");
        let x = Mat::<f64>::from_fn(40, 2, |_, _| StandardNormal.sample(&mut rng));
        let y = Mat::from_fn(40, 1, |i, _| (2.0 * x[(i, 0)]).sin() + x[(i, 1)]);
        let z = x.as_ref().subrows(0, 6).to_owned();
        let mut model = CollapsedGp::new(kernel, mean, Gaussian::new(0.1, 1e-6), z, 1).unwrap();
        if mean == MeanForm::Linear {
            let mut values = model.values();
            let n = values.len();
            // Behind the kernel: constant, slopes; then noise and inducing inputs.
            (values[n - 16], values[n - 15], values[n - 14]) = (0.3, -0.4, 0.8);
            model.set_values(&values);
        }
        model.condition(&Observations::new(x, y, None).unwrap()).unwrap().0
    }

    fn draws(posterior: &InducingPosterior, count: usize, seed: u64) -> PathwiseSamples {
        let settings = FeatureSettings { count: 200, ..FeatureSettings::default() };
        let features = RandomFeatures::new(posterior.kernel(), 2, settings, Streams::new(seed)).unwrap();
        let prior = PriorDraws::new(Arc::new(features), count, Streams::new(seed));
        posterior.pathwise(0, prior, Streams::new(seed)).unwrap()
    }

    #[test]
    fn moments_are_those_of_the_posterior() {
        let posterior = posterior(MeanForm::Linear);
        let x = mat![[0.1, 0.2], [2.0, -1.0], [0.4, 0.1]];
        let joint = posterior.joint(x.as_ref()).unwrap();
        // Features anew every 20 functions, so that their own error averages out: 500 groups.
        let (groups, size) = (500, 20);
        let values: Vec<Mat<f64>> =
            (0..groups).map(|g| draws(&posterior, size, g as u64).values(x.as_ref()).unwrap()).collect();
        let each = |f: &dyn Fn(&Mat<f64>, usize) -> f64| {
            // Means of groups are independent, functions in a group are not.
            let means: Vec<f64> =
                values.iter().map(|v| (0..size).map(|j| f(v, j)).sum::<f64>() / size as f64).collect();
            let mean = means.iter().sum::<f64>() / groups as f64;
            let spread = means.iter().map(|m| (m - mean).powi(2)).sum::<f64>() / groups as f64;
            (mean, (spread / groups as f64).sqrt())
        };
        for i in 0..3 {
            let expected = joint.mean[(i, 0)];
            let (mean, error) = each(&|v, j| v[(i, j)]);
            assert!((mean - expected).abs() < 5.0 * error, "mean {i}: {mean} for {expected} ({error})");
            for k in 0..=i {
                let other = joint.mean[(k, 0)];
                let (found, error) = each(&|v, j| (v[(i, j)] - expected) * (v[(k, j)] - other));
                let covariance = joint.covariance[(i, k)];
                assert!((found - covariance).abs() < 5.0 * error, "({i}, {k}): {found} for {covariance}");
            }
        }
    }

    #[test]
    fn all_ways_of_evaluation_agree_and_gradients_equal_differences() {
        let posterior = posterior(MeanForm::Linear);
        let samples = draws(&posterior, 3, 7);
        let x = mat![[0.1, 0.2], [2.0, -1.0], [0.4, 0.1], [-0.3, 0.9]];
        let which = [2, 0, 1, 2];
        let values = samples.values(x.as_ref()).unwrap();
        let some = samples.values_of(x.as_ref(), &which).unwrap();
        let gradients = samples.gradients_of(x.as_ref(), &which).unwrap();
        for i in 0..4 {
            assert!((some[i] - values[(i, which[i])]).abs() < 1e-12);
            let at = |p: &[f64]| samples.values(MatRef::from_row_major_slice(p, 1, 2)).unwrap();
            let point = [x[(i, 0)], x[(i, 1)]];
            let numeric = check::gradient(|p| at(p)[(0, which[i])], &point);
            check::assert_close(&[gradients[(i, 0)], gradients[(i, 1)]], &numeric, 1e-7, 1e-7);
        }
        assert!(samples.values(Mat::zeros(1, 3).as_ref()).is_err());
        assert!(samples.values_of(x.as_ref(), &[0, 1, 2, 3]).is_err());
    }
}
