//! The curvature of the log-likelihood at latent values, and what is factored of it.

use crate::{GpError, Observations};
use faer::{Accum, Mat, MatRef};
use posterior_likelihoods::Likelihood;
use posterior_linalg::cholesky::{Cholesky, JitterPolicy};
use posterior_linalg::dense::{multiply_into, product};
use posterior_linalg::parallel;

/// Log-likelihood, its gradient and the diagonal D of its curvature (n x C each), rows weighted; the diagonal that steps take, where that is another.
pub(super) struct Slopes {
    pub(super) log_likelihood: f64,
    pub(super) gradient: Mat<f64>,
    pub(super) diagonal: Mat<f64>,
    pub(super) of_steps: Option<Mat<f64>>,
}

/// What one row says.
struct Row {
    log_likelihood: f64,
    gradient: Vec<f64>,
    diagonal: Vec<f64>,
    of_steps: Option<Vec<f64>>,
}

/// What W of one row is beside its diagonal: `D - D 1 1ᵀ D / (1ᵀ D 1)`, or nothing.
pub(super) fn is_coupled(likelihood: &dyn Likelihood) -> bool {
    !likelihood.is_diagonal()
}

/// The positive semidefinite curvature of one row: the Hessian where the likelihood is log-concave, else what the likelihood offers in its place. C x C, row by row.
pub(super) fn curvature_of_row(likelihood: &dyn Likelihood, y: &[f64], f: &[f64], out: &mut [f64]) {
    if likelihood.is_log_concave() { likelihood.hessian(y, f, out) } else { likelihood.curvature(y, f, out) }
}

/// What the likelihood sees of row i of latent values F (n x C): its offset is added.
pub(super) fn seen(data: &Observations, f: &Mat<f64>, i: usize) -> Vec<f64> {
    let offset = data.offsets().map_or(0.0, |offsets| offsets[i]);
    f.row(i).iter().map(|f| f + offset).collect()
}

/// Of all rows at latent values F (n x C).
pub(super) fn slopes(likelihood: &dyn Likelihood, data: &Observations, f: &Mat<f64>) -> Slopes {
    let (n, c) = f.shape();
    let coupled = is_coupled(likelihood);
    let rows: Vec<Row> = parallel::map(n, 64, |i| {
        let y: Vec<f64> = data.targets().row(i).iter().copied().collect();
        let own = seen(data, f, i);
        let weight = data.weights().map_or(1.0, |w| w[i]);
        let mut gradient = vec![0.0; c];
        likelihood.gradient(&y, &own, &mut gradient);
        let mut matrix = vec![0.0; c * c];
        curvature_of_row(likelihood, &y, &own, &mut matrix);
        // Of classes W is `diag(p) - p pᵀ`, and the gradient one minus p or minus p.
        let entry = |k: usize| match coupled {
            true => f64::from(u8::from(y[0] == k as f64)) - gradient[k],
            false => matrix[k * c + k],
        };
        let diagonal: Vec<f64> = (0..c).map(|k| weight * entry(k).max(0.0)).collect();
        gradient.iter_mut().for_each(|g| *g *= weight);
        let mut steps = vec![0.0; c];
        let other = !likelihood.is_log_concave() && likelihood.step_curvature(&y, &own, &mut steps);
        steps.iter_mut().for_each(|d| *d *= weight);
        let log_likelihood = weight * likelihood.log_density(&y, &own);
        Row { log_likelihood, gradient, diagonal, of_steps: other.then_some(steps) }
    });
    Slopes {
        log_likelihood: rows.iter().map(|r| r.log_likelihood).sum(),
        gradient: Mat::from_fn(n, c, |i, k| rows[i].gradient[k]),
        diagonal: Mat::from_fn(n, c, |i, k| rows[i].diagonal[k]),
        of_steps: rows
            .iter()
            .map(|row| row.of_steps.as_deref())
            .collect::<Option<Vec<_>>>()
            .map(|all| Mat::from_fn(n, c, |i, k| all[i][k])),
    }
}

/// Everything that is factored at one mode.
pub(super) struct Factors {
    /// `√D`, n x C.
    pub(super) roots: Mat<f64>,
    /// `I + √D_c K √D_c`, one for each function.
    pub(super) each: Vec<Cholesky>,
    /// S, where outputs are coupled.
    pub(super) sum: Option<Cholesky>,
    /// `RᵀDR`, n, where outputs are coupled.
    totals: Vec<f64>,
}

impl Factors {
    /// Cost: `C n³/3` flops, for classes `C (n³/3 + 2n³/3) + n³/3`; C or C + 2 matrices n x n.
    pub(super) fn new(
        kernel: MatRef<'_, f64>,
        diagonal: &Mat<f64>,
        coupled: bool,
        jitter: JitterPolicy,
    ) -> Result<Self, GpError> {
        let (n, c) = diagonal.shape();
        let roots = Mat::from_fn(n, c, |i, k| diagonal[(i, k)].sqrt());
        let mut each = Vec::with_capacity(c);
        for k in 0..c {
            let root = roots.col_as_slice(k);
            each.push(Cholesky::factor_with(Mat::zeros(n, n), jitter, |mut out| {
                for j in 0..n {
                    for i in j..n {
                        out[(i, j)] = root[i] * kernel[(i, j)] * root[j];
                    }
                    out[(j, j)] += 1.0;
                }
            })?);
        }
        let (mut sum, mut totals) = (None, Vec::new());
        if coupled {
            totals = (0..n).map(|i| (0..c).map(|k| diagonal[(i, k)]).sum()).collect();
            let mut total = Mat::<f64>::zeros(n, n);
            for (k, factor) in each.iter().enumerate() {
                let inverse = factor.clone().into_inverse();
                let root = roots.col_as_slice(k);
                for j in 0..n {
                    for i in j..n {
                        total[(i, j)] += root[i] * inverse[(i, j)] * root[j];
                    }
                }
            }
            sum = Some(Cholesky::factor_with(Mat::zeros(n, n), jitter, |mut out| {
                for j in 0..n {
                    out.as_mut().col_mut(j).subrows_mut(j, n - j).copy_from(total.col(j).subrows(j, n - j));
                }
            })?);
        }
        Ok(Self { roots, each, sum, totals })
    }

    /// From factors that were computed before.
    pub(super) fn from_parts(roots: Mat<f64>, each: Vec<Cholesky>, sum: Option<Cholesky>) -> Self {
        let totals = match &sum {
            Some(_) => (0..roots.nrows()).map(|i| roots.row(i).iter().map(|r| r * r).sum()).collect(),
            None => Vec::new(),
        };
        Self { roots, each, sum, totals }
    }

    /// `log |I + K W|`.
    pub(super) fn log_determinant(&self) -> f64 {
        let each: f64 = self.each.iter().map(Cholesky::log_determinant).sum();
        let coupling = self
            .sum
            .as_ref()
            .map_or(0.0, |sum| sum.log_determinant() - self.totals.iter().map(|t| t.ln()).sum::<f64>());
        each + coupling
    }

    /// The largest jitter that was added.
    pub(super) fn jitter(&self) -> f64 {
        self.each.iter().chain(&self.sum).map(|f| f.info().jitter).fold(0.0, f64::max)
    }

    /// `W V` for V of n x C.
    pub(super) fn times_curvature(&self, v: &Mat<f64>) -> Mat<f64> {
        let (n, c) = v.shape();
        let mut out = Mat::from_fn(n, c, |i, k| self.roots[(i, k)].powi(2) * v[(i, k)]);
        if self.sum.is_some() {
            for i in 0..n {
                let all: f64 = (0..c).map(|k| out[(i, k)]).sum();
                for k in 0..c {
                    out[(i, k)] -= self.roots[(i, k)].powi(2) * all / self.totals[i];
                }
            }
        }
        out
    }

    /// `E_c V` for V of n x m.
    pub(super) fn times_each(&self, k: usize, mut v: Mat<f64>) -> Mat<f64> {
        self.scale(k, &mut v);
        self.each[k].solve_in_place(v.as_mut());
        self.scale(k, &mut v);
        v
    }

    fn scale(&self, k: usize, v: &mut Mat<f64>) {
        let root = self.roots.col_as_slice(k);
        for j in 0..v.ncols() {
            v.col_as_slice_mut(j).iter_mut().zip(root).for_each(|(v, r)| *v *= r);
        }
    }

    /// `Q V` for V of n x C, a column for each function.
    pub(super) fn times_inverse(&self, v: &Mat<f64>) -> Mat<f64> {
        let (n, c) = v.shape();
        let column = |m: &Mat<f64>, k: usize| Mat::from_fn(n, 1, |i, _| m[(i, k)]);
        let mut out = Mat::zeros(n, c);
        let mut all = Mat::zeros(n, 1);
        for k in 0..c {
            let own = self.times_each(k, column(v, k));
            all += &own;
            out.as_mut().col_mut(k).copy_from(own.col(0));
        }
        if let Some(sum) = &self.sum {
            sum.solve_in_place(all.as_mut());
            for k in 0..c {
                let own = self.times_each(k, all.clone());
                let mut out = out.as_mut().col_mut(k);
                out -= own.col(0);
            }
        }
        out
    }

    /// `L_c⁻¹ √D_c V`: its squared columns are `vᵀ E_c v`.
    pub(super) fn whitened(&self, k: usize, mut v: Mat<f64>) -> Mat<f64> {
        self.scale(k, &mut v);
        self.each[k].solve_factor_in_place(v.as_mut());
        v
    }

    /// `L_S⁻¹ E_c V` from `L_c⁻¹ √D_c V`, where outputs are coupled: products of two functions' columns are what their coupling adds to a covariance.
    pub(super) fn coupling(&self, k: usize, mut whitened: Mat<f64>) -> Option<Mat<f64>> {
        let sum = self.sum.as_ref()?;
        self.each[k].solve_factor_transpose_in_place(whitened.as_mut());
        self.scale(k, &mut whitened);
        sum.solve_factor_in_place(whitened.as_mut());
        Some(whitened)
    }

    /// The diagonal block of Q of function k, lower triangle, as `E_k - E_k S⁻¹ E_k`. Cost `2n³/3` flops, for classes `3n³` more.
    pub(super) fn inverse_block(&self, k: usize) -> Mat<f64> {
        let n = self.roots.nrows();
        let root = self.roots.col_as_slice(k);
        let mut block = self.each[k].clone().into_inverse();
        for j in 0..n {
            for i in j..n {
                block[(i, j)] *= root[i] * root[j];
            }
        }
        if let Some(sum) = &self.sum {
            let mut full = Mat::from_fn(n, n, |i, j| if i >= j { block[(i, j)] } else { block[(j, i)] });
            sum.solve_factor_in_place(full.as_mut());
            multiply_into(block.as_mut(), Accum::Add, full.transpose(), full.as_ref(), -1.0);
        }
        block
    }

    /// Posterior covariances of the functions at each row, n blocks of C x C row by row (variances only where outputs are not coupled). Cost `n³` flops for each function, for classes `3n³`, and C matrices n x n.
    pub(super) fn covariances(&self, kernel: MatRef<'_, f64>) -> Vec<f64> {
        let (n, c) = self.roots.shape();
        let mut out = vec![0.0; n * c * c];
        let mut coupled = Vec::new();
        for k in 0..c {
            let whitened = self.whitened(k, kernel.to_owned());
            for i in 0..n {
                out[i * c * c + k * c + k] = kernel[(i, i)] - whitened.col(i).squared_norm_l2();
            }
            coupled.extend(self.coupling(k, whitened));
        }
        if !coupled.is_empty() {
            parallel::chunks(&mut out, c * c, 2, |i, out| {
                for k in 0..c {
                    for l in 0..c {
                        let (a, b) = (coupled[k].col_as_slice(i), coupled[l].col_as_slice(i));
                        out[k * c + l] += a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
                    }
                }
            });
        }
        out
    }
}

/// `K V`.
pub(super) fn times_kernel(kernel: MatRef<'_, f64>, v: &Mat<f64>) -> Mat<f64> {
    product(kernel, v.as_ref())
}
