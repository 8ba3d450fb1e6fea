//! `y = f + ε`, `ε ~ N(0, Σ)`.

use crate::error::check_outputs;
use crate::expectation::Slopes;
use crate::likelihood::{assert_lengths, no_parameters};
use crate::predictive::gaussian_log_density;
use crate::{Covariance, LatentGaussian, Likelihood, LikelihoodError};
use faer::Mat;
use posterior_linalg::cholesky::{Cholesky, JitterPolicy};
use rand::Rng;
use rand_distr::{Distribution, StandardNormal};
use serde::{Deserialize, Serialize};
use std::f64::consts::PI;

const NAME: &str = "full_gaussian";

/// Additive Gaussian noise that is correlated between outputs. Written as its covariance, a list of rows.
///
/// Holds the covariance, its precision and both factors: 4 C² numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Fields", into = "Fields")]
pub struct FullGaussian {
    outputs: usize,
    /// Σ, row-major like the three below.
    covariance: Vec<f64>,
    /// `L` with `L Lᵀ = Σ`.
    factor: Vec<f64>,
    /// `R = L⁻ᵀ`, the root of the precision.
    root: Vec<f64>,
    /// `Σ⁻¹ = R Rᵀ`.
    precision: Vec<f64>,
    /// `-½ log det(2π Σ)`.
    log_normaliser: f64,
}

/// As written, before it is checked.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Fields {
    covariance: Vec<Vec<f64>>,
}

impl TryFrom<Fields> for FullGaussian {
    type Error = LikelihoodError;
    fn try_from(fields: Fields) -> Result<Self, LikelihoodError> {
        let outputs = fields.covariance.len();
        for row in &fields.covariance {
            check_length(row.len(), outputs)?;
        }
        Self::new(outputs, fields.covariance.concat())
    }
}

impl From<FullGaussian> for Fields {
    fn from(likelihood: FullGaussian) -> Self {
        Self { covariance: likelihood.covariance.chunks(likelihood.outputs).map(<[f64]>::to_vec).collect() }
    }
}

fn check_length(found: usize, needed: usize) -> Result<(), LikelihoodError> {
    if found == needed {
        return Ok(());
    }
    let remedy = "give a square matrix with one row and one column for each output";
    Err(LikelihoodError::Length {
        owner: NAME,
        what: "the noise covariance (or one of its rows)",
        needed,
        found,
        remedy,
    })
}

impl FullGaussian {
    /// Noise with the given covariance (`outputs` x `outputs`, row-major), in squared units of the target. Cost `O(C³)`.
    ///
    /// # Errors
    /// When it has the wrong size, is not symmetric to 1e-10 of its diagonal, or is not positive definite and finite.
    pub fn new(outputs: usize, covariance: Vec<f64>) -> Result<Self, LikelihoodError> {
        check_outputs(NAME, "the number of rows", outputs, 1, "give one row for each output")?;
        check_length(covariance.len(), outputs * outputs)?;
        for i in 0..outputs {
            for j in 0..i {
                let (lower, upper) = (covariance[i * outputs + j], covariance[j * outputs + i]);
                let scale = (covariance[i * outputs + i] * covariance[j * outputs + j]).abs().sqrt();
                // False for NaN, which is so refused.
                let symmetric = (lower - upper).abs() <= 1e-10 * scale;
                if !symmetric {
                    return Err(LikelihoodError::Parameter {
                        owner: NAME,
                        parameter: format!("covariance[{i}][{j}]"),
                        value: format!("{lower} against {upper} on the other side of the diagonal"),
                        remedy: "give a symmetric matrix of finite numbers",
                    });
                }
            }
        }
        let cholesky = Cholesky::of(
            Mat::from_fn(outputs, outputs, |i, j| covariance[i * outputs + j]).as_ref(),
            JitterPolicy::NONE,
        )?;
        let mut inverse_transpose = Mat::<f64>::identity(outputs, outputs);
        cholesky.solve_factor_transpose_in_place(inverse_transpose.as_mut());
        let precision = &inverse_transpose * inverse_transpose.transpose();
        let rows = |entry: &dyn Fn(usize, usize) -> f64| -> Vec<f64> {
            (0..outputs * outputs).map(|k| entry(k / outputs, k % outputs)).collect()
        };
        Ok(Self {
            outputs,
            factor: rows(&|i, j| if j <= i { cholesky.factor()[(i, j)] } else { 0.0 }),
            root: rows(&|i, j| if j >= i { inverse_transpose[(i, j)] } else { 0.0 }),
            precision: rows(&|i, j| precision[(i, j)]),
            log_normaliser: -0.5 * (outputs as f64 * (2.0 * PI).ln() + cholesky.log_determinant()),
            covariance,
        })
    }

    /// The covariance of the noise (C x C, row-major).
    pub fn covariance(&self) -> &[f64] {
        &self.covariance
    }

    /// Row i of a row-major matrix.
    fn row<'a>(&self, matrix: &'a [f64], i: usize) -> &'a [f64] {
        &matrix[i * self.outputs..(i + 1) * self.outputs]
    }
}

no_parameters!(FullGaussian);

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

impl Likelihood for FullGaussian {
    fn outputs(&self) -> usize {
        self.outputs
    }
    fn name(&self) -> &'static str {
        NAME
    }
    fn is_diagonal(&self) -> bool {
        false
    }
    fn log_density(&self, y: &[f64], f: &[f64]) -> f64 {
        assert_lengths(self, y, f);
        // ‖Rᵀ(y - f)‖²: a sum of squares cannot become negative.
        let square: f64 = (0..self.outputs)
            .map(|j| {
                let whitened: f64 = (0..=j).map(|i| self.root[i * self.outputs + j] * (y[i] - f[i])).sum();
                whitened * whitened
            })
            .sum();
        self.log_normaliser - 0.5 * square
    }
    fn gradient(&self, y: &[f64], f: &[f64], out: &mut [f64]) {
        assert_lengths(self, y, f);
        assert_eq!(out.len(), self.outputs, "a gradient has C numbers");
        for (i, out) in out.iter_mut().enumerate() {
            *out =
                self.row(&self.precision, i).iter().zip(y.iter().zip(f)).map(|(p, (y, f))| p * (y - f)).sum();
        }
    }
    /// `Σ⁻¹`.
    fn curvature_entries(&self, y: &[f64], f: &[f64], out: &mut [f64]) {
        assert_lengths(self, y, f);
        out.copy_from_slice(&self.precision);
    }
    fn curvature_product(&self, y: &[f64], f: &[f64], u: &[f64], out: &mut [f64]) {
        assert_lengths(self, y, f);
        assert_eq!((u.len(), out.len()), (self.outputs, self.outputs), "B maps C numbers to C numbers");
        for (i, out) in out.iter_mut().enumerate() {
            *out = dot(self.row(&self.precision, i), u);
        }
    }
    fn root(&self, y: &[f64], f: &[f64], out: &mut [f64]) {
        assert_lengths(self, y, f);
        out.copy_from_slice(&self.root);
    }
    fn moments(&self, f: &[f64], mean: &mut [f64], variance: &mut [f64]) {
        self.predictive_moments(f, &vec![0.0; self.outputs], (mean, variance));
    }
    fn sample(&self, f: &[f64], rng: &mut dyn Rng, out: &mut [f64]) {
        assert_eq!((f.len(), out.len()), (self.outputs, self.outputs), "latent values and target");
        for out in out.iter_mut() {
            *out = StandardNormal.sample(rng);
        }
        // L z from the last row upwards: row i needs only z_0..z_i, which are still there.
        for i in (0..self.outputs).rev() {
            out[i] = f[i] + dot(&self.row(&self.factor, i)[..=i], &out[..=i]);
        }
    }
    /// `log N(y; mean, Σ) - ½ tr(Σ⁻¹ diag(variance))`.
    fn expected_log_density(&self, y: &[f64], mean: &[f64], variance: &[f64], slopes: Slopes<'_>) -> f64 {
        self.gradient(y, mean, slopes.means);
        let precision = |i: usize| self.precision[i * self.outputs + i];
        slopes.variances.iter_mut().enumerate().for_each(|(i, slope)| *slope = -0.5 * precision(i));
        self.log_density(y, mean) - 0.5 * (0..self.outputs).map(|i| precision(i) * variance[i]).sum::<f64>()
    }
    /// With `U = α V + Σ`: `½ log det(2π Σ) + log det(I + α Σ⁻¹ V) / (2 α) + ½ rᵀ U⁻¹ r`. Cost `O(C³)`; NaN where V is not finite.
    fn alpha_energy(&self, alpha: f64, y: &[f64], mean: &[f64], variance: &[f64], slopes: Slopes<'_>) -> f64 {
        assert_lengths(self, y, mean);
        let n = self.outputs;
        let total = Mat::from_fn(n, n, |i, j| {
            self.covariance[i * n + j] + if i == j { alpha * variance[i].max(0.0) } else { 0.0 }
        });
        let Ok(cholesky) = Cholesky::of(total.as_ref(), JitterPolicy::NONE) else {
            slopes.means.iter_mut().chain(slopes.variances).for_each(|s| *s = f64::NAN);
            return f64::NAN;
        };
        let residual = Mat::from_fn(n, 1, |i, _| y[i] - mean[i]);
        let scaled = cholesky.solve(residual.as_ref());
        let inverse = cholesky.solve(Mat::identity(n, n).as_ref());
        let mut square = 0.0;
        for i in 0..n {
            slopes.means[i] = -scaled[(i, 0)];
            slopes.variances[i] = 0.5 * inverse[(i, i)] - 0.5 * alpha * scaled[(i, 0)] * scaled[(i, 0)];
            square += residual[(i, 0)] * scaled[(i, 0)];
        }
        let own: f64 = -2.0 * self.log_normaliser - n as f64 * (2.0 * PI).ln();
        let spread = if alpha == 0.0 {
            (0..n).map(|i| self.precision[i * n + i] * variance[i]).sum()
        } else {
            (cholesky.log_determinant() - own) / alpha
        };
        -self.log_normaliser + 0.5 * (spread + square)
    }
    fn predictive_moments(&self, mean: &[f64], variance: &[f64], out: (&mut [f64], &mut [f64])) {
        out.0.copy_from_slice(mean);
        for (i, out) in out.1.iter_mut().enumerate() {
            *out = variance[i] + self.covariance[i * self.outputs + i];
        }
    }
    /// NaN where the covariance of the observation has no factor.
    fn log_predictive_density(&self, y: &[f64], mean: &[f64], variance: &[f64]) -> f64 {
        let latent = LatentGaussian { mean, covariance: Covariance::Diagonal(variance) };
        let noise = |i: usize, j: usize| self.covariance[i * self.outputs + j];
        gaussian_log_density(y, latent, false, noise).unwrap_or(f64::NAN)
    }
}
