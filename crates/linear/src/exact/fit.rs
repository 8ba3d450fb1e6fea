//! From data to the factored posterior.

use super::{ExactOptions, Form};
use crate::dense::{add_gram, column, to_vec};
use crate::noise::Noise;
use crate::{LinearError, check};
use faer::{Mat, MatRef};
use posterior_linalg::cholesky::{Cholesky, JitterPolicy};
use posterior_linalg::dense::product;

/// Rows that are whitened at a time in the primal form: bounds its extra memory to `8 · 4096 d` bytes.
const BLOCK: usize = 4096;

/// A Gaussian posterior over the weights of a linear model.
///
/// ```
/// use faer::mat;
/// use posterior_linear::exact::{ExactOptions, ExactPosterior};
/// use posterior_linear::noise::Noise;
/// // One weight, seen twice through the feature 1 with unit noise, prior precision 1.
/// let noise = Noise::uniform(1.0, 1).unwrap();
/// let phi = mat![[1.0], [1.0]];
/// let posterior =
///     ExactPosterior::new(phi.as_ref(), &[3.0, 3.0], &noise, &[1.0], ExactOptions::default()).unwrap();
/// assert!((posterior.mean()[0] - 2.0).abs() < 1e-12);
/// assert!((posterior.weight_variances()[0] - 1.0 / 3.0).abs() < 1e-12);
/// ```
#[derive(Clone, Debug)]
pub struct ExactPosterior {
    pub(super) outputs: usize,
    /// Rows of the features seen, nC.
    pub(super) rows: usize,
    pub(super) precisions: Vec<f64>,
    /// `A^{-1/2}`, prior standard deviations.
    pub(super) deviations: Vec<f64>,
    /// The factor of `S`.
    pub(super) cholesky: Cholesky,
    pub(super) data: Data,
    /// Posterior mean of the weights in natural units.
    pub(super) mean: Vec<f64>,
    pub(super) fit: Option<Fit>,
}

/// What is kept of the data.
#[derive(Clone, Debug)]
pub(super) enum Data {
    /// `Q' t` (d); empty around a given mode.
    Primal { right: Vec<f64> },
    /// `Q` (nC x d) and `t` (nC); `t` is empty around a given mode.
    Dual { rows: Mat<f64>, targets: Vec<f64> },
}

/// What is known when the targets are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fit {
    /// `|y - Phi w|²_B + |w|²_A` at the mean.
    pub(super) quadratic: f64,
    /// `log det B`, or the first example whose block is singular.
    pub(super) noise_log_determinant: Result<f64, usize>,
}

impl ExactPosterior {
    /// The posterior given targets.
    ///
    /// `features` is nC x d with the outputs of one example adjacent, `targets` has nC numbers, `precisions` holds one prior precision
    /// per parameter. Subtract any offset `f0` from the targets first. No rows at all give the prior. Cost: see [`Form`].
    ///
    /// # Errors
    /// [`LinearError::Shape`], [`LinearError::Empty`] without parameters, [`LinearError::NotFinite`], [`LinearError::NotPositive`] for
    /// precisions, [`LinearError::TooLarge`].
    pub fn new(
        features: MatRef<'_, f64>,
        targets: &[f64],
        noise: &Noise,
        precisions: &[f64],
        options: ExactOptions,
    ) -> Result<Self, LinearError> {
        check::same("targets", features.nrows(), targets.len())?;
        check::finite("target", targets)?;
        Self::build(features, Some(targets), noise, precisions, options)
    }

    /// The Laplace posterior `N(mode, H^-1)` around a given mode, for likelihoods whose curvature is `noise` there.
    ///
    /// It has no exact evidence and takes no further data, since those need targets.
    ///
    /// # Errors
    /// As [`ExactPosterior::new`].
    pub fn around_mode(
        features: MatRef<'_, f64>,
        mode: &[f64],
        noise: &Noise,
        precisions: &[f64],
        options: ExactOptions,
    ) -> Result<Self, LinearError> {
        check::same("weights of the mode", features.ncols(), mode.len())?;
        check::finite("weight of the mode", mode)?;
        let mut posterior = Self::build(features, None, noise, precisions, options)?;
        posterior.mean = mode.to_vec();
        Ok(posterior)
    }

    fn build(
        features: MatRef<'_, f64>,
        targets: Option<&[f64]>,
        noise: &Noise,
        precisions: &[f64],
        options: ExactOptions,
    ) -> Result<Self, LinearError> {
        let (rows, dimension) = (features.nrows(), features.ncols());
        if dimension == 0 {
            return Err(LinearError::Empty { what: "parameters" });
        }
        check::same("prior precisions", dimension, precisions.len())?;
        check::positive("prior precision", precisions)?;
        let outputs = noise.outputs();
        let examples = rows / outputs;
        check::same("rows of the features, a multiple of the outputs", examples * outputs, rows)?;
        noise.check(examples, outputs)?;
        check::finite_matrix("feature", features)?;
        let form = options.form.unwrap_or(if rows < dimension { Form::Dual } else { Form::Primal });
        let size = if form == Form::Dual { rows } else { dimension };
        check::size("the matrix of the exact posterior", size, size, options.memory_limit)?;
        let deviations: Vec<f64> = precisions.iter().map(|a| a.sqrt().recip()).collect();
        let (cholesky, data) = match form {
            Form::Primal => primal(features, targets, noise, &deviations)?,
            Form::Dual => {
                let indices: Vec<usize> = (0..examples).collect();
                let q = whiten(features, noise, &indices, &deviations);
                let mut matrix = Mat::identity(rows, rows);
                add_gram(matrix.as_mut(), q.transpose());
                let targets = targets.map_or(vec![], |y| to_vec(&noise.whiten(&indices, column(y))));
                (factor(matrix)?, Data::Dual { rows: q, targets })
            }
        };
        let mut posterior = Self {
            outputs,
            rows,
            precisions: precisions.to_vec(),
            deviations,
            cholesky,
            data,
            mean: vec![0.0; dimension],
            fit: None,
        };
        if let Some(targets) = targets {
            posterior.mean = posterior.solve_mean();
            check::finite("posterior mean of weight", &posterior.mean)?;
            let quadratic = posterior.quadratic(features, targets, noise);
            let noise_log_determinant = match noise.log_determinant(examples) {
                Err(LinearError::SingularNoise { example, .. }) => Err(example),
                other => Ok(other?),
            };
            posterior.fit = Some(Fit { quadratic, noise_log_determinant });
        }
        Ok(posterior)
    }

    /// The mean from the factor and the data, in natural units.
    pub(super) fn solve_mean(&self) -> Vec<f64> {
        let whitened = match &self.data {
            Data::Primal { right } => self.cholesky.solve(column(right)),
            Data::Dual { rows, targets } => rows.transpose() * self.cholesky.solve(column(targets)),
        };
        self.deviations.iter().enumerate().map(|(i, s)| s * whitened[(i, 0)]).collect()
    }

    /// `|y - Phi w|²_B + |w|²_A` at the mean, as a sum of squares in either form.
    fn quadratic(&self, features: MatRef<'_, f64>, targets: &[f64], noise: &Noise) -> f64 {
        match &self.data {
            Data::Dual { targets, .. } => {
                let mut whitened = column(targets).to_owned();
                self.cholesky.solve_factor_in_place(whitened.as_mut());
                whitened.col(0).squared_norm_l2()
            }
            Data::Primal { .. } => {
                let residual = column(targets) - product(features, column(&self.mean));
                let indices: Vec<usize> = (0..self.rows / self.outputs).collect();
                noise.whiten(&indices, residual.as_ref()).col(0).squared_norm_l2() + self.mean_norm()
            }
        }
    }

    /// `H^-1 X` for a block of d x k: the posterior covariance times `X`. Cost `2d²` flops a column, `2 nC (nC + 2d)` in the dual form.
    ///
    /// # Errors
    /// [`LinearError::Shape`].
    pub fn solve(&self, right: MatRef<'_, f64>) -> Result<Mat<f64>, LinearError> {
        check::same("rows of the right-hand side", self.dimension(), right.nrows())?;
        let scale = |block: MatRef<'_, f64>| {
            Mat::from_fn(block.nrows(), block.ncols(), |i, j| self.deviations[i] * block[(i, j)])
        };
        let scaled = scale(right);
        let solved = match &self.data {
            Data::Primal { .. } => self.cholesky.solve(scaled.as_ref()),
            Data::Dual { rows, .. } => {
                let inner = self.cholesky.solve(product(rows.as_ref(), scaled.as_ref()).as_ref());
                scaled - rows.transpose() * inner
            }
        };
        Ok(scale(solved.as_ref()))
    }

    /// `|w|²_A` at the mean.
    pub(super) fn mean_norm(&self) -> f64 {
        self.mean.iter().zip(&self.precisions).map(|(w, a)| a * w * w).sum()
    }

    /// Which matrix was factored.
    pub fn form(&self) -> Form {
        match self.data {
            Data::Primal { .. } => Form::Primal,
            Data::Dual { .. } => Form::Dual,
        }
    }

    /// Number of parameters, d.
    pub fn dimension(&self) -> usize {
        self.precisions.len()
    }

    /// Outputs per example, C.
    pub fn outputs(&self) -> usize {
        self.outputs
    }

    /// Examples seen.
    pub fn examples(&self) -> usize {
        self.rows / self.outputs
    }

    /// The mean of the weights (d): the posterior mean, or the given mode.
    pub fn mean(&self) -> &[f64] {
        &self.mean
    }

    /// The prior precisions (d).
    pub fn precisions(&self) -> &[f64] {
        &self.precisions
    }

    /// The factor of `S`; its log determinant is `log det(I + A^-1 M)`.
    pub fn cholesky(&self) -> &Cholesky {
        &self.cholesky
    }
}

/// `I + Q'Q` and `Q't`, a few thousand rows at a time.
fn primal(
    features: MatRef<'_, f64>,
    targets: Option<&[f64]>,
    noise: &Noise,
    deviations: &[f64],
) -> Result<(Cholesky, Data), LinearError> {
    let (outputs, dimension) = (noise.outputs(), deviations.len());
    let mut matrix = Mat::identity(dimension, dimension);
    let mut right = vec![0.0; targets.map_or(0, |_| dimension)];
    for indices in crate::features::chunks(features.nrows() / outputs, (BLOCK / outputs).max(1)) {
        let indices: Vec<usize> = indices.collect();
        let (start, count) = (indices[0] * outputs, indices.len() * outputs);
        let q = whiten(features.subrows(start, count), noise, &indices, deviations);
        add_gram(matrix.as_mut(), q.as_ref());
        if let Some(y) = targets {
            let projected = q.transpose() * noise.whiten(&indices, column(&y[start..start + count]));
            right.iter_mut().enumerate().for_each(|(i, r)| *r += projected[(i, 0)]);
        }
    }
    Ok((factor(matrix)?, Data::Primal { right }))
}

/// `Q = R' Phi A^{-1/2}` for the rows of the listed examples.
pub(super) fn whiten(
    features: MatRef<'_, f64>,
    noise: &Noise,
    examples: &[usize],
    deviations: &[f64],
) -> Mat<f64> {
    let mut rows = noise.whiten(examples, features);
    for (j, s) in deviations.iter().enumerate() {
        rows.as_mut().col_mut(j).iter_mut().for_each(|v| *v *= s);
    }
    rows
}

pub(super) fn factor(matrix: Mat<f64>) -> Result<Cholesky, LinearError> {
    // All eigenvalues are at least 1, so a failure means overflow, which no jitter repairs.
    // Only one attempt is made, so the matrix is already where it must be.
    Ok(Cholesky::factor_with(matrix, JitterPolicy::NONE, |_| {})?)
}
