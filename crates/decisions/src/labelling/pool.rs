//! **What is believed of every row of a pool**, kept up to date label by label.
//!
//! With prior covariance k and pseudo-noise v, a label of row t with pseudo-target m changes every row j of each function by
//!
//! ```text
//! c_j = k(x_j, x_t) - Σ_u l_j⁽ᵘ⁾ l_t⁽ᵘ⁾          its covariance with row t, given the labels u before
//! S   = var_t + v,     l_j⁽ᵗ⁾ = c_j / √S
//! mean_j += l_j⁽ᵗ⁾ (m - mean_t) / √S,     var_j -= (l_j⁽ᵗ⁾)²
//! ```
//!
//! so that one more label costs `O(n (P + t))` for each function, P being the width of the features (one column of the kernel matrix) and t the labels so far, and nothing is ever
//! factored again. The columns `l` are those of a Cholesky factor that goes on over the whole pool: many labels at once are its rows, by one factorisation and one product.
//!
//! Source: spec `likelihood_approximations`, section 6.8.

use crate::DecisionError;
use faer::{Mat, MatRef};
use posterior_gp::GpError;
use posterior_kernels::{Kernel, cross, diagonal, gram};
use posterior_likelihoods::gaussianised::PseudoObservation;
use posterior_linalg::cholesky::{Cholesky, JitterPolicy};
use std::sync::Arc;

/// Means and variances of C independent functions with one prior at n rows.
#[derive(Clone, Debug)]
pub struct PoolPosterior {
    kernel: Arc<dyn Kernel<f64>>,
    inputs: Arc<Mat<f64>>,
    functions: Vec<PoolFunction>,
}

#[derive(Clone, Debug)]
struct PoolFunction {
    mean: Vec<f64>,
    variance: Vec<f64>,
    /// `l` of each observation (n).
    columns: Vec<Vec<f64>>,
}

/// Where a posterior stood, to go back to.
#[derive(Clone, Debug)]
pub struct PoolMark {
    columns: usize,
    mean: Vec<Vec<f64>>,
    variance: Vec<Vec<f64>>,
}

impl PoolPosterior {
    /// Nothing observed: mean 0, the kernel's variance. Inputs are n x D.
    ///
    /// # Panics
    /// For no functions.
    pub fn prior(kernel: Box<dyn Kernel<f64>>, inputs: Mat<f64>, functions: usize) -> Self {
        assert!(functions > 0, "a posterior is one of at least one function");
        let variance = diagonal(&*kernel, inputs.as_ref());
        let one = PoolFunction { mean: vec![0.0; inputs.nrows()], variance, columns: Vec::new() };
        Self { kernel: kernel.into(), inputs: Arc::new(inputs), functions: vec![one; functions] }
    }

    /// The same after observations of some rows, each with what it says of every function (`observed[i][c]`). The result is that of one [`Self::observe`] after the other.
    ///
    /// Cost `t³/3 + n t²` flops for each function; while it works there are two further t x n matrices.
    ///
    /// # Errors
    /// [`DecisionError::Gp`] when a covariance is not positive definite.
    ///
    /// # Panics
    /// When there is no such row, or lengths differ.
    pub fn conditioned(
        mut self,
        rows: &[usize],
        observed: &[Vec<PseudoObservation>],
    ) -> Result<Self, DecisionError> {
        assert_eq!(rows.len(), observed.len(), "an observation for each row");
        if rows.is_empty() {
            return Ok(self);
        }
        if self.observations() > 0 {
            rows.iter().zip(observed).for_each(|(&row, observed)| self.observe(row, observed));
            return Ok(self);
        }
        let (n, t) = (self.len(), rows.len());
        let points = Mat::from_fn(t, self.inputs.ncols(), |i, j| self.inputs[(rows[i], j)]);
        let square = gram(&*self.kernel, points.as_ref());
        let wide = cross(&*self.kernel, points.as_ref(), self.inputs());
        for (c, function) in self.functions.iter_mut().enumerate() {
            let mut noisy = square.clone();
            (0..t).for_each(|i| noisy[(i, i)] += observed[i][c].variance);
            let factor = Cholesky::of(noisy.as_ref(), JitterPolicy::default()).map_err(GpError::from)?;
            let mut whitened = wide.clone();
            factor.solve_factor_in_place(whitened.as_mut());
            let mut targets = Mat::from_fn(t, 1, |i, _| observed[i][c].target);
            factor.solve_factor_in_place(targets.as_mut());
            let targets = targets.col_as_slice(0);
            for j in 0..n {
                let own = whitened.col_as_slice(j);
                function.mean[j] = own.iter().zip(targets).map(|(l, z)| l * z).sum();
                let explained: f64 = own.iter().map(|l| l * l).sum();
                function.variance[j] = (function.variance[j] - explained).max(0.0);
            }
            function.columns = (0..t).map(|u| (0..n).map(|j| whitened[(u, j)]).collect()).collect();
        }
        Ok(self)
    }

    /// One more label: what it says of each function.
    ///
    /// # Panics
    /// When there is no such row, or not one observation for each function.
    pub fn observe(&mut self, row: usize, observed: &[PseudoObservation]) {
        assert_eq!(observed.len(), self.functions.len(), "an observation for each function");
        let prior = self.prior_column(row);
        for (function, observed) in self.functions.iter_mut().zip(observed) {
            function.update(row, &prior, observed.variance, |mean| observed.target - mean);
        }
    }

    /// As [`Self::observe`], of a label that is not known yet: as if each function had been seen where it is expected, with the given precision. Means stay, variances shrink.
    ///
    /// # Panics
    /// As [`Self::observe`].
    pub fn pretend(&mut self, row: usize, precisions: &[f64]) {
        assert_eq!(precisions.len(), self.functions.len(), "a precision for each function");
        let prior = self.prior_column(row);
        for (function, precision) in self.functions.iter_mut().zip(precisions) {
            function.update(row, &prior, 1.0 / precision, |_| 0.0);
        }
    }

    /// `k(x_j, x_row)` for all j.
    fn prior_column(&self, row: usize) -> Vec<f64> {
        let point = self.inputs().subrows(row, 1);
        cross(&*self.kernel, self.inputs(), point).col_as_slice(0).to_vec()
    }

    /// Number of rows, n.
    pub fn len(&self) -> usize {
        self.inputs.nrows()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of functions, C.
    pub fn functions(&self) -> usize {
        self.functions.len()
    }

    /// Labels observed, pretended ones included.
    pub fn observations(&self) -> usize {
        self.functions[0].columns.len()
    }

    /// The rows, n x D.
    pub fn inputs(&self) -> MatRef<'_, f64> {
        (*self.inputs).as_ref()
    }

    /// Mean of function c at a row.
    pub fn mean(&self, row: usize, c: usize) -> f64 {
        self.functions[c].mean[row]
    }

    /// Variance of function c at a row.
    pub fn variance(&self, row: usize, c: usize) -> f64 {
        self.functions[c].variance[row]
    }

    /// Where it stands.
    pub fn mark(&self) -> PoolMark {
        PoolMark {
            columns: self.observations(),
            mean: self.functions.iter().map(|f| f.mean.clone()).collect(),
            variance: self.functions.iter().map(|f| f.variance.clone()).collect(),
        }
    }

    /// Forgets what was observed since the mark was made.
    pub fn go_back(&mut self, mark: &PoolMark) {
        for (c, function) in self.functions.iter_mut().enumerate() {
            function.columns.truncate(mark.columns);
            function.mean.clone_from(&mark.mean[c]);
            function.variance.clone_from(&mark.variance[c]);
        }
    }
}

impl PoolMark {
    /// Variance of function c at a row, as it was.
    pub fn variance(&self, row: usize, c: usize) -> f64 {
        self.variance[c][row]
    }
}

impl PoolFunction {
    fn update(&mut self, row: usize, prior: &[f64], noise: f64, residual: impl FnOnce(f64) -> f64) {
        let mut column = prior.to_vec();
        for earlier in &self.columns {
            let own = earlier[row];
            column.iter_mut().zip(earlier).for_each(|(c, l)| *c -= own * l);
        }
        let total = (self.variance[row] + noise).sqrt();
        let step = residual(self.mean[row]) / total;
        for (j, c) in column.iter_mut().enumerate() {
            *c /= total;
            self.mean[j] += *c * step;
            self.variance[j] = (self.variance[j] - *c * *c).max(0.0);
        }
        self.columns.push(column);
    }
}
