//! The bound for any pseudo-targets and any likelihood, with its adjoints.

use super::gaussian_labels::GaussianLabels;
use crate::{GpError, Observations};
use faer::linalg::matmul::triangular::{BlockStructure, matmul};
use faer::{Accum, Mat, MatRef};
use posterior_likelihoods::{Likelihood, Slopes};
use posterior_linalg::cholesky::{Cholesky, JitterPolicy};
use posterior_linalg::dense::{parallelism, product};
use posterior_linalg::parallel;
use posterior_linalg::symmetric::mirror_lower;

/// A lower bound on the log evidence with what it is made of.
#[derive(Clone, Debug)]
pub struct Bound {
    /// The bound, nats.
    pub value: f64,
    /// `Σ_n w_n E_q log p(y_n | f)`, nats.
    pub expected_log_likelihood: f64,
    /// `KL(q(f_c) ‖ p(f_c))` of each function, nats.
    pub divergences: Vec<f64>,
    /// Means of the functions at the rows under q, n x C.
    pub mean: Mat<f64>,
    /// Their variances, n x C.
    pub variance: Mat<f64>,
    /// The largest jitter that was added to a factored matrix (whose diagonal is one or more).
    pub jitter: f64,
}

/// How the bound changes with what it is made from.
#[derive(Clone, Debug)]
pub struct BoundAdjoints {
    /// With the kernel matrix, n x n, lower triangle: the derivative is the sum over all entries of the symmetric matrix.
    pub kernel: Mat<f64>,
    /// With the prior means at the rows, n x C.
    pub means: Mat<f64>,
    /// With the pseudo-targets and pseudo-noise variances.
    pub gaussian_labels: GaussianLabels,
    /// With the likelihood's own parameters.
    pub likelihood: Vec<f64>,
}

/// One function's posterior.
struct Function {
    /// `D^-½`.
    roots: Vec<f64>,
    /// `a = P (m - m̄)`.
    coefficients: Mat<f64>,
    /// `A⁻¹`, both triangles.
    inverse: Mat<f64>,
    /// `s²_n / v_n = 1 - (A⁻¹)_nn`.
    shares: Vec<f64>,
    /// `m̄ + K a`.
    mean: Mat<f64>,
    divergence: f64,
    jitter: f64,
}

impl Function {
    /// Cost `n³` flops.
    fn new(
        kernel: MatRef<'_, f64>,
        (prior, targets, variances): (&[f64], &[f64], &[f64]),
        jitter: JitterPolicy,
    ) -> Result<Self, GpError> {
        let n = kernel.nrows();
        let roots: Vec<f64> = variances.iter().map(|v| v.sqrt().recip()).collect();
        let cholesky = Cholesky::factor_with(Mat::zeros(n, n), jitter, |mut out| {
            for j in 0..n {
                let (column, root) = (kernel.col(j), roots[j]);
                for i in j..n {
                    out[(i, j)] = roots[i] * column[i] * root;
                }
                out[(j, j)] += 1.0;
            }
        })?;
        let mut coefficients = Mat::from_fn(n, 1, |i, _| roots[i] * (targets[i] - prior[i]));
        cholesky.solve_in_place(coefficients.as_mut());
        scale(&mut coefficients, &roots);
        let determinant = cholesky.log_determinant();
        let added = cholesky.info().jitter;
        let mut inverse = cholesky.into_inverse();
        mirror_lower(inverse.as_mut());
        let shares: Vec<f64> = parallel::map(n, 64, |i| {
            let own = 1.0 - inverse[(i, i)];
            if own > 0.5 {
                return own;
            }
            // (A⁻¹ (A - I))_ii: where the noise is large the difference would lose what the prior variance says.
            let column = kernel.col(i);
            let pairs = inverse.col_as_slice(i).iter().zip(&roots).enumerate();
            roots[i] * pairs.map(|(j, (inverse, root))| inverse * root * column[j]).sum::<f64>()
        });
        let moved = product(kernel, coefficients.as_ref());
        let quadratic: f64 = inner(coefficients.col_as_slice(0), moved.col_as_slice(0));
        let divergence = 0.5 * (determinant - shares.iter().sum::<f64>() + quadratic);
        let mean = Mat::from_fn(n, 1, |i, _| prior[i] + moved[(i, 0)]);
        Ok(Self { roots, coefficients, inverse, shares, mean, divergence, jitter: added })
    }

    /// `P V`.
    fn times_precision(&self, mut v: Mat<f64>) -> Mat<f64> {
        scale(&mut v, &self.roots);
        let mut out = product(self.inverse.as_ref(), v.as_ref());
        scale(&mut out, &self.roots);
        out
    }
}

fn inner(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn scale(columns: &mut Mat<f64>, by: &[f64]) {
    for j in 0..columns.ncols() {
        columns.col_as_slice_mut(j).iter_mut().zip(by).for_each(|(v, s)| *v *= s);
    }
}

/// The expectation of one row and its slopes, weighted.
struct Row {
    value: f64,
    means: Vec<f64>,
    variances: Vec<f64>,
    parameters: Vec<f64>,
}

/// Expectations of all rows and their slopes.
struct Expectations {
    value: f64,
    means: Mat<f64>,
    variances: Mat<f64>,
    parameters: Vec<f64>,
}

fn expectations(
    likelihood: &dyn Likelihood,
    data: &Observations,
    mean: &Mat<f64>,
    variance: &Mat<f64>,
) -> Expectations {
    let (n, c) = mean.shape();
    let own = likelihood.values().len();
    let rows: Vec<Row> = parallel::map(n, 8, |i| {
        let row = |m: MatRef<'_, f64>| -> Vec<f64> { m.row(i).iter().copied().collect() };
        let (y, mut mean, variance) = (row(data.targets()), row(mean.as_ref()), row(variance.as_ref()));
        // What the likelihood sees.
        let offset = data.offsets().map_or(0.0, |offsets| offsets[i]);
        mean.iter_mut().for_each(|mean| *mean += offset);
        let (mut means, mut variances, mut parameters) = (vec![0.0; c], vec![0.0; c], vec![0.0; own]);
        let slopes = Slopes { means: &mut means, variances: &mut variances, parameters: &mut parameters };
        let value = likelihood.expected_log_density(&y, &mean, &variance, slopes);
        let weight = data.weights().map_or(1.0, |w| w[i]);
        for all in [&mut means, &mut variances, &mut parameters] {
            all.iter_mut().for_each(|s| *s *= weight);
        }
        Row { value: weight * value, means, variances, parameters }
    });
    let mut parameters = vec![0.0; own];
    for row in &rows {
        parameters.iter_mut().zip(&row.parameters).for_each(|(sum, own)| *sum += own);
    }
    Expectations {
        value: rows.iter().map(|row| row.value).sum(),
        means: Mat::from_fn(n, c, |i, k| rows[i].means[k]),
        variances: Mat::from_fn(n, c, |i, k| rows[i].variances[k]),
        parameters,
    }
}

/// The bound on the log evidence of `data` (whose targets the likelihood has checked; rows weighted) under functions with the prior means (n x C) and the kernel matrix (both triangles), where the posterior is that of regression on the pseudo-targets; with its adjoints where they are wanted.
/// Cost `n³` flops for each function, with adjoints `2 n³`; `8 (C + 2) n²` bytes beside the kernel matrix, and the likelihood's expectation for each row.
///
/// # Errors
/// [`GpError::Cholesky`].
///
/// # Panics
/// When shapes do not fit together.
pub fn bound(
    kernel: MatRef<'_, f64>,
    prior: &Mat<f64>,
    gaussian_labels: &GaussianLabels,
    (likelihood, data): (&dyn Likelihood, &Observations),
    (jitter, with_adjoints): (JitterPolicy, bool),
) -> Result<(Bound, Option<BoundAdjoints>), GpError> {
    let (n, c) = prior.shape();
    let GaussianLabels { targets, variances } = gaussian_labels;
    assert!(
        kernel.shape() == (n, n) && targets.shape() == (n, c) && variances.shape() == (n, c),
        "kernel matrix, prior means and pseudo-targets are of the same rows and functions"
    );
    let mut functions = Vec::with_capacity(c);
    let (mut mean, mut variance) = (Mat::zeros(n, c), Mat::zeros(n, c));
    for k in 0..c {
        let own = (prior.col_as_slice(k), targets.col_as_slice(k), variances.col_as_slice(k));
        let mut function = Function::new(kernel, own, jitter)?;
        for i in 0..n {
            mean[(i, k)] = function.mean[(i, 0)];
            variance[(i, k)] = variances[(i, k)] * function.shares[i].max(0.0);
        }
        if !with_adjoints {
            function.inverse = Mat::new();
        }
        functions.push(function);
    }
    let found = expectations(likelihood, data, &mean, &variance);
    let divergences: Vec<f64> = functions.iter().map(|f| f.divergence).collect();
    let adjoints = with_adjoints.then(|| adjoints(kernel, &functions, variances, &found));
    let value = found.value - divergences.iter().sum::<f64>();
    let jitter = functions.iter().map(|f| f.jitter).fold(0.0, f64::max);
    let expected_log_likelihood = found.value;
    Ok((Bound { value, expected_log_likelihood, divergences, mean, variance, jitter }, adjoints))
}

fn adjoints(
    kernel: MatRef<'_, f64>,
    functions: &[Function],
    variances: &Mat<f64>,
    found: &Expectations,
) -> BoundAdjoints {
    let (n, c) = variances.shape();
    let mut out = BoundAdjoints {
        kernel: Mat::zeros(n, n),
        means: Mat::zeros(n, c),
        gaussian_labels: GaussianLabels { targets: Mat::zeros(n, c), variances: Mat::zeros(n, c) },
        likelihood: found.parameters.clone(),
    };
    let mut inner = Mat::<f64>::zeros(n, n);
    for (k, function) in functions.iter().enumerate() {
        let Function { roots, coefficients, inverse, shares, .. } = function;
        let (a, v) = (coefficients.col_as_slice(0), variances.col_as_slice(k));
        // g - a, b = P K (g - a) and z.
        let rest = Mat::from_fn(n, 1, |i, _| found.means[(i, k)] - a[i]);
        let b = function.times_precision(product(kernel, rest.as_ref()));
        let z: Vec<f64> = (0..n).map(|i| rest[(i, 0)] - b[(i, 0)]).collect();
        let t: Vec<f64> = (0..n).map(|i| v[i] * found.variances[(i, k)] + 0.5).collect();
        let scaled = Mat::from_fn(n, n, |i, j| t[i] * inverse[(i, j)]);
        let (lower, full) = (BlockStructure::TriangularLower, BlockStructure::Rectangular);
        let (left, right) = (inverse.as_ref(), scaled.as_ref());
        matmul(inner.as_mut(), lower, Accum::Replace, left, full, right, full, 1.0, parallelism(n, n));
        for j in 0..n {
            let (column, own) = (out.kernel.col_as_slice_mut(j), inverse.col_as_slice(j));
            for i in j..n {
                let middle = roots[i] * (inner[(i, j)] - 0.5 * own[i]) * roots[j];
                column[i] += middle + 0.5 * (a[i] * a[j] + z[i] * a[j] + a[i] * z[j]);
            }
            let beside: f64 = (0..n).filter(|i| *i != j).map(|i| t[i] * own[i] * own[i]).sum();
            out.gaussian_labels.variances[(j, k)] =
                -b[(j, 0)] * a[j] + (beside + t[j] * shares[j].powi(2)) / v[j];
            out.gaussian_labels.targets[(j, k)] = b[(j, 0)];
            out.means[(j, k)] = a[j] + z[j];
        }
    }
    out
}
