//! What a batch of rows says about q, and about the features that it was seen through.
//!
//! With `T = R Rᵀ - I`, features A of the batch (m x b) and the prior variances v of the functions at its rows, latent values are
//! `N(prior mean + aᵢᵀ mean, vᵢ + aᵢᵀ T aᵢ)`: what features cannot say, `vᵢ - aᵢᵀaᵢ`, stays in the variance. Slopes g of the data term in these means and h in these variances are all that the
//! likelihood has to supply:
//!
//! ```text
//! of the mean of q   A g_c                                of A      Σ_c mean_c g_cᵀ + 2 T_c A diag(h_c)          D, m x b
//! of its covariance  G_c = A diag(h_c) Aᵀ                 D Aᵀ      Σ_c mean_c (A g_c)ᵀ + 2 T_c G_c              no product of that size
//! ```
//!
//! so that a step takes for each root one product `T A` and one half product for G.
//!
//! The term itself is a power α of the likelihood under the latent Gaussian, `Σ (1/α) log E[p(yᵢ | f)^α]`: its limit α = 0 is the expected log density of a bound on the evidence, α = 1 the
//! log predictive density of each row, by which *Parametric Gaussian process regressors* (Jankowiak, Pleiss and Gardner 2020) are trained.

use super::row_terms::{CHUNK, Piece, row_pieces};
use super::{DataGradient, WeightDistribution};
use faer::linalg::matmul::dot;
use faer::linalg::matmul::triangular::BlockStructure::{Rectangular, TriangularLower, TriangularUpper};
use faer::{Accum, Conj, Mat, MatRef};
use posterior_likelihoods::Likelihood;
use posterior_linalg::dense::{multiply_into, product};
use posterior_linalg::parallel;
use posterior_linalg::triangular::{add_lower_product, lower_product, symmetric_product};
use std::ops::Range;

/// What is known of a batch's rows.
#[derive(Clone, Copy, Debug)]
pub struct ObservedRows<'a> {
    /// Targets, b x width. They must have passed the likelihood's check.
    pub targets: MatRef<'a, f64>,
    /// Known noise variances of the rows (b), for Gaussian noise.
    pub noise: Option<&'a [f64]>,
    /// What each row's term is multiplied by (b); 1 where there are none.
    pub weights: Option<&'a [f64]>,
    /// What is added to the latent values of each row before the likelihood sees them (b); 0 where there are none.
    pub offsets: Option<&'a [f64]>,
}

/// The m x b matrices of an evaluation. Who keeps them from one batch to the next saves the operating system from clearing as many pages again.
#[derive(Debug)]
pub struct DataTermBuffers {
    /// `T A` of each root.
    products: Vec<Mat<f64>>,
    scaled: Mat<f64>,
}

impl Default for DataTermBuffers {
    fn default() -> Self {
        Self { products: Vec::new(), scaled: Mat::new() }
    }
}

impl DataTermBuffers {
    fn fit(&mut self, rows: usize, columns: usize, roots: usize) {
        self.products.resize_with(roots, Mat::new);
        for buffer in std::iter::once(&mut self.scaled).chain(&mut self.products) {
            if buffer.shape() != (rows, columns) {
                *buffer = Mat::zeros(rows, columns);
            }
        }
    }
}

/// The data term under q.
#[derive(Debug)]
pub struct DataTerm<'a> {
    distribution: &'a WeightDistribution,
    likelihood: &'a dyn Likelihood,
    power: f64,
    /// `R Rᵀ - I` of each root, both triangles.
    differences: Vec<Mat<f64>>,
}

/// The sum over a batch with its slopes, all of them times the batch's scale.
#[derive(Debug)]
pub struct DataSlopes {
    /// The sum.
    pub value: f64,
    /// In q.
    pub of_q: DataGradient,
    /// In the latent means, b x C.
    pub means: Mat<f64>,
    /// In the latent variances, b x roots: those of functions that share a root are summed.
    pub variances: Mat<f64>,
    /// In the likelihood's own parameters.
    pub parameters: Vec<f64>,
}

impl DataSlopes {
    /// The first row of which a slope is no finite number, so that there is no way on; None where all are.
    pub fn exploded(&self) -> Option<usize> {
        let finite = |matrix: &Mat<f64>, i: usize| matrix.row(i).iter().all(|slope| slope.is_finite());
        (0..self.means.nrows()).find(|&i| !finite(&self.means, i) || !finite(&self.variances, i))
    }

    /// The slope in each row's prior variance, b numbers: that in the latent variances of all functions.
    pub fn of_prior_variances(&self) -> Vec<f64> {
        (0..self.variances.nrows()).map(|i| self.variances.row(i).iter().sum()).collect()
    }
}

/// Latent means and variances (one for each root).
struct Latent {
    means: Mat<f64>,
    variances: Mat<f64>,
}

impl<'a> DataTerm<'a> {
    /// The term for a power α in [0, 1] of the likelihood. Cost `m³` a root.
    pub fn new(distribution: &'a WeightDistribution, likelihood: &'a dyn Likelihood, power: f64) -> Self {
        let of_root = |root: &Mat<f64>| {
            let lower = (root.as_ref(), TriangularLower);
            let mut t = symmetric_product(lower, (root.transpose(), TriangularUpper), 1.0);
            (0..t.nrows()).for_each(|i| t[(i, i)] -= 1.0);
            t
        };
        let differences = distribution.roots.iter().map(of_root).collect();
        Self { distribution, likelihood, power, differences }
    }

    fn latent(
        &self,
        features: MatRef<'_, f64>,
        mut means: Mat<f64>,
        prior_variances: &[f64],
        products: &mut [Mat<f64>],
    ) -> Latent {
        multiply_into(means.as_mut(), Accum::Add, features.transpose(), self.distribution.mean(), 1.0);
        let mut variances = Mat::zeros(features.ncols(), self.differences.len());
        for (index, (t, product)) in self.differences.iter().zip(products.iter_mut()).enumerate() {
            multiply_into(product.as_mut(), Accum::Replace, t.as_ref(), features, 1.0);
            let out = variances.col_as_slice_mut(index);
            parallel::chunks(out, 1, CHUNK, |i, out| {
                let (a, b) = (features.col(i), product.col(i));
                let value = prior_variances[i] + dot::inner_prod(a.transpose(), Conj::No, b, Conj::No);
                // Not `f64::max`, which would turn NaN into certainty.
                out[0] = if value < 0.0 { 0.0 } else { value };
            });
        }
        Latent { means, variances }
    }

    /// The sum over rows alone. Cost `b m²` flops a root, besides the likelihood.
    pub fn value(
        &self,
        features: MatRef<'_, f64>,
        prior_means: Mat<f64>,
        prior_variances: &[f64],
        rows: &ObservedRows<'_>,
        buffers: &mut DataTermBuffers,
    ) -> f64 {
        buffers.fit(features.nrows(), features.ncols(), self.differences.len());
        let latent = self.latent(features, prior_means, prior_variances, &mut buffers.products);
        self.pieces(rows, &latent).1.iter().map(|part| part.value).sum()
    }

    /// `scale` times the sum over rows, with its slopes. `features` are m x b, `prior_means` b x C, `prior_variances` b numbers. Cost `3 b m²` flops a root, besides the likelihood.
    pub fn slopes(
        &self,
        features: MatRef<'_, f64>,
        prior_means: Mat<f64>,
        prior_variances: &[f64],
        rows: &ObservedRows<'_>,
        scale: f64,
        buffers: &mut DataTermBuffers,
    ) -> DataSlopes {
        buffers.fit(features.nrows(), features.ncols(), self.differences.len());
        let latent = self.latent(features, prior_means, prior_variances, &mut buffers.products);
        let (b, latents) = latent.means.shape();
        let (ranges, parts) = self.pieces(rows, &latent);
        let mut value = 0.0;
        let (mut means, mut variances) = (Mat::zeros(b, latents), Mat::zeros(b, self.differences.len()));
        let mut parameters = vec![0.0; self.likelihood.values().len()];
        // Pieces are summed in their order, so that the result does not depend on the number of threads.
        for (rows, part) in ranges.into_iter().zip(parts) {
            value += scale * part.value;
            parameters.iter_mut().zip(part.parameters).for_each(|(t, p)| *t += scale * p);
            for (k, i) in rows.enumerate() {
                for c in 0..latents {
                    means[(i, c)] = scale * part.means[k * latents + c];
                    variances[(i, self.distribution.root_of(c))] += scale * part.variances[k * latents + c];
                }
            }
        }
        let mean = product(features, means.as_ref());
        let covariances = (0..self.differences.len())
            .map(|index| {
                let slopes = variances.col_as_slice(index);
                for_each_column(&mut buffers.scaled, |i, column| {
                    let pairs = column.iter_mut().zip(features.col(i).iter());
                    pairs.for_each(|(scaled, a)| *scaled = slopes[i] * a);
                });
                let scaled = (buffers.scaled.as_ref(), Rectangular);
                symmetric_product(scaled, (features.transpose(), Rectangular), 1.0)
            })
            .collect();
        DataSlopes { value, of_q: DataGradient { mean, covariances }, means, variances, parameters }
    }

    /// D, the slope in the features that `slopes` were computed for, in the buffers of that computation. Prior variances are held fixed. Cost `b m C` flops.
    pub fn features_adjoint<'b>(
        &self,
        slopes: &DataSlopes,
        buffers: &'b mut DataTermBuffers,
    ) -> &'b mut Mat<f64> {
        let DataTermBuffers { products, scaled } = buffers;
        multiply_into(
            scaled.as_mut(),
            Accum::Replace,
            self.distribution.mean(),
            slopes.means.transpose(),
            1.0,
        );
        for (index, product) in products.iter().enumerate() {
            let slopes = slopes.variances.col_as_slice(index);
            for_each_column(scaled, |i, column| {
                let pairs = column.iter_mut().zip(product.col_as_slice(i));
                pairs.for_each(|(a, p)| *a += 2.0 * slopes[i] * p);
            });
        }
        scaled
    }

    /// `D Aᵀ` without a product of that size; its lower triangle. Cost `m³` a root.
    pub fn outer(&self, slopes: &DataSlopes) -> Mat<f64> {
        let (mean, of_mean) = (self.distribution.mean(), slopes.of_q.mean.transpose());
        let mut outer = lower_product((mean, Rectangular), (of_mean, Rectangular), 1.0);
        for (t, g) in self.differences.iter().zip(&slopes.of_q.covariances) {
            add_lower_product(&mut outer, (t.as_ref(), Rectangular), (g.as_ref(), Rectangular), 2.0);
        }
        outer
    }

    /// The term of each row with its slopes, piece by piece.
    fn pieces(&self, rows: &ObservedRows<'_>, latent: &Latent) -> (Vec<Range<usize>>, Vec<Piece>) {
        row_pieces(self.likelihood, self.power, rows, &|i, mean, variance| {
            for c in 0..mean.len() {
                mean[c] = latent.means[(i, c)];
                variance[c] = latent.variances[(i, self.distribution.root_of(c))];
            }
        })
    }
}

/// Calls `work(i, column i)`, some columns on each thread.
fn for_each_column(matrix: &mut Mat<f64>, work: impl Fn(usize, &mut [f64]) + Sync) {
    parallel::columns(matrix.as_mut(), CHUNK, |i, column| {
        if let Some(column) = column.try_as_col_major_mut() {
            work(i, column.as_slice_mut());
        }
    });
}
