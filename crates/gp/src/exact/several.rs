//! **Several processes with one kernel at the same inputs**, each observed with noise of its own: what classes become as numbers (spec `likelihood_approximations`, section 6.2).
//!
//! ```text
//! log p(Y) = Σ_c log N(y_c; 0, K + diag(v_c)),    adjoint of K:  G = ½ Σ_c (α_c α_cᵀ - (K + diag(v_c))⁻¹)
//! ```
//!
//! The kernel matrix is made once and its adjoints are summed before one way back to the hyperparameters; functions whose noise is the same share a factorisation.

use super::evidence::{Evaluation, pull_back_lower};
use super::model::ExactGp;
use super::plan::Plan;
use crate::data::{check_finite, same_width};
use crate::{GpError, Observations};
use faer::{Mat, MatRef};
use posterior_kernels::{Request, gram_lower_into};
use posterior_linalg::cholesky::{Cholesky, CholeskyInfo};

/// Inputs (n x D), and targets and noise variances of C functions (n x C each). The functions have no mean.
#[derive(Clone, Debug)]
pub struct SeveralObservations {
    /// Inputs, with the targets of all functions.
    pub(super) all: Observations,
    noise: Mat<f64>,
    /// Functions whose noise is the same, together.
    groups: Vec<Vec<usize>>,
}

impl SeveralObservations {
    /// Checks and stores.
    ///
    /// # Errors
    /// As [`Observations::new`].
    pub fn new(inputs: Mat<f64>, targets: Mat<f64>, noise: Mat<f64>) -> Result<Self, GpError> {
        let all = Observations::new(inputs, targets, None)?;
        same_width("rows of the noise variances", all.rows(), noise.nrows())?;
        same_width("columns of the noise variances", all.targets().ncols(), noise.ncols())?;
        check_finite("noise variance", noise.as_ref())?;
        for c in 0..noise.ncols() {
            if let Some(row) = noise.col_as_slice(c).iter().position(|v| *v <= 0.0) {
                return Err(GpError::NoiseNotPositive { row, value: noise[(row, c)] });
            }
        }
        let mut groups: Vec<Vec<usize>> = Vec::new();
        for c in 0..noise.ncols() {
            let same = |group: &&mut Vec<usize>| noise.col_as_slice(group[0]) == noise.col_as_slice(c);
            match groups.iter_mut().find(same) {
                Some(group) => group.push(c),
                None => groups.push(vec![c]),
            }
        }
        Ok(Self { all, noise, groups })
    }

    /// Number of functions, C.
    pub fn functions(&self) -> usize {
        self.noise.ncols()
    }

    /// Number of rows, n.
    pub fn rows(&self) -> usize {
        self.all.rows()
    }

    /// Inputs, n x D.
    pub fn inputs(&self) -> MatRef<'_, f64> {
        self.all.inputs()
    }

    /// Noise variance of function c at row i.
    ///
    /// # Panics
    /// When there is no such row or function.
    pub fn noise(&self, i: usize, c: usize) -> f64 {
        self.noise[(i, c)]
    }

    /// The given rows.
    ///
    /// # Errors
    /// [`GpError::Empty`] for no rows.
    ///
    /// # Panics
    /// When there is no such row.
    pub fn select(&self, rows: &[usize]) -> Result<Self, GpError> {
        let pick = |m: MatRef<'_, f64>| Mat::from_fn(rows.len(), m.ncols(), |i, j| m[(rows[i], j)]);
        Self::new(pick(self.all.inputs()), pick(self.all.targets()), pick(self.noise.as_ref()))
    }

    /// One function apart.
    ///
    /// # Panics
    /// When there is no such function.
    pub fn function(&self, c: usize) -> Observations {
        let targets = Mat::from_fn(self.rows(), 1, |i, _| self.all.targets()[(i, c)]);
        let noise = self.noise.col_as_slice(c).to_vec();
        match Observations::new(self.all.inputs().to_owned(), targets, Some(noise)) {
            Ok(data) => data,
            Err(error) => unreachable!("checked when all were: {error}"),
        }
    }

    /// What an evaluation takes: three n x n matrices, a factorisation with its inverse for each function (each group of them).
    pub fn plan(&self) -> Plan {
        Plan::several(self.rows(), self.all.inputs().ncols(), self.functions(), self.groups.len())
    }
}

/// The sum of the functions' log evidences with its gradient in the kernel's parameters and the noise that all have beside their own (that of the mean is zero: there is none). Cost `n³` flops for each group of
/// functions of the same noise, `C n²`, and one pass over the kernel matrix with one back; `24 n²` bytes.
///
/// # Errors
/// [`GpError::Cholesky`] when a covariance is not positive definite.
pub fn log_evidence_of_several(
    model: &ExactGp,
    data: &SeveralObservations,
    buffer: Option<Mat<f64>>,
) -> Result<Evaluation, GpError> {
    let n = data.rows();
    same_width("columns of the inputs", model.mean().input_dimension(), data.inputs().ncols())?;
    let mut kernel = Mat::zeros(n, n);
    gram_lower_into(model.kernel(), data.inputs(), kernel.as_mut());
    let mut adjoint = Mat::<f64>::zeros(n, n);
    let mut work = buffer.filter(|b| b.nrows() == n && b.ncols() == n).unwrap_or_else(|| Mat::zeros(n, n));
    let (mut value, mut info) = (0.0, CholeskyInfo::default());
    let shared = model.noise().noise_variance();
    for group in &data.groups {
        let count = group.len() as f64;
        let cholesky = Cholesky::factor_with(work, model.jitter, |mut out| {
            for j in 0..n {
                out.as_mut().col_mut(j).subrows_mut(j, n - j).copy_from(kernel.col(j).subrows(j, n - j));
                out[(j, j)] += shared + data.noise[(j, group[0])];
            }
        })?;
        let targets = Mat::from_fn(n, group.len(), |i, t| data.all.targets()[(i, group[t])]);
        let weights = cholesky.solve(targets.as_ref());
        let fit: f64 = (0..group.len())
            .map(|t| {
                targets.col_as_slice(t).iter().zip(weights.col_as_slice(t)).map(|(y, a)| y * a).sum::<f64>()
            })
            .sum();
        value -=
            0.5 * (fit + count * (cholesky.log_determinant() + n as f64 * (2.0 * std::f64::consts::PI).ln()));
        if cholesky.info().jitter >= info.jitter {
            info = cholesky.info();
        }
        work = cholesky.into_inverse();
        for j in 0..n {
            let (out, inverse) = (&mut adjoint.col_as_slice_mut(j)[j..], &work.col_as_slice(j)[j..]);
            out.iter_mut().zip(inverse).for_each(|(out, inverse)| *out -= 0.5 * count * inverse);
            for t in 0..group.len() {
                let own = weights.col_as_slice(t);
                let scale = 0.5 * own[j];
                out.iter_mut().zip(&own[j..]).for_each(|(out, a)| *out += scale * a);
            }
        }
    }
    let (own, request) = (&|_: usize, _: usize, lower: f64| lower, Request::PARAMETERS);
    let gradient = pull_back_lower(model, &data.all, adjoint.as_ref(), own, request).parameters;
    let noise = (0..n).map(|i| adjoint[(i, i)]).sum();
    let mean = vec![0.0; posterior_optim::Parameters::values(model.mean()).len()];
    Ok(Evaluation { value, gradient: model.gradient(gradient, mean, noise), cholesky: info, buffer: work })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MeanForm;
    use crate::exact::log_evidence_and_gradient;
    use posterior_kernels::KernelExpression;
    use posterior_likelihoods::Gaussian;
    use posterior_optim::check;

    #[test]
    fn several_are_the_sum_of_each() {
        let wave = |i: usize, j: usize| ((i * 7 + j * 3) as f64 * 0.61).sin();
        let inputs = Mat::from_fn(25, 2, |i, j| 1.5 * wave(i, j + 1));
        let targets = Mat::from_fn(25, 3, |i, j| wave(i, j + 5));
        // Two functions of one noise, and one of a noise from small to huge.
        let noise =
            Mat::from_fn(
                25,
                3,
                |i, j| {
                    if j == 1 { 10f64.powi(i as i32 % 7 - 1) } else { 0.2 + 0.01 * i as f64 }
                },
            );
        let data = SeveralObservations::new(inputs, targets, noise).unwrap();
        assert_eq!(data.groups, [vec![0, 2], vec![1]]);
        let kernel = "matern32(ard) + linear".parse::<KernelExpression>().unwrap();
        let kernel = kernel.build(&["a".into(), "b".into()]).unwrap();
        let model = ExactGp::new(kernel, MeanForm::Zero, Gaussian::new(0.1, 0.0), 2, 1);
        let together = log_evidence_of_several(&model, &data, None).unwrap();
        let (mut value, mut gradient) = (0.0, vec![0.0; together.gradient.len()]);
        for c in 0..3 {
            let own = log_evidence_and_gradient(&model, &data.function(c), None).unwrap();
            value += own.value;
            gradient.iter_mut().zip(own.gradient).for_each(|(sum, g)| *sum += g);
        }
        assert!((together.value - value).abs() < 1e-10 * value.abs(), "{} {value}", together.value);
        check::assert_close(&together.gradient, &gradient, 1e-10, 1e-10);
        let picked = data.select(&[3, 1]).unwrap();
        assert_eq!((picked.rows(), picked.noise[(0, 1)]), (2, data.noise[(3, 1)]));
    }

    #[test]
    fn bad_noise_is_named() {
        let new = |noise: Mat<f64>| SeveralObservations::new(Mat::zeros(2, 1), Mat::zeros(2, 2), noise);
        assert!(new(Mat::zeros(2, 2)).unwrap_err().to_string().contains("row 0 is 0"));
        assert!(new(Mat::from_fn(2, 1, |_, _| 1.0)).is_err());
        assert!(new(Mat::from_fn(2, 2, |_, _| f64::NAN)).is_err());
    }
}
