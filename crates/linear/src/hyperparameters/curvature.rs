//! What the updates need of the curvature.

use crate::dense::{add_gram, column, to_vec};
use crate::evidence::eigen;
use crate::noise::Noise;
use crate::structure::{Structure, Terms};
use crate::{LinearError, Prior, check};
use faer::{Mat, MatRef};
use posterior_linalg::cholesky::{Cholesky, JitterPolicy};
use posterior_linalg::dense::product;
use std::sync::OnceLock;

/// A curvature `M`, or an approximation of it, seen through what the evidence asks. `s M` is what is meant everywhere: the strength `s` is
/// the factor on the noise precision.
pub trait EvidenceCurvature {
    /// Number of weights.
    fn dimension(&self) -> usize;

    /// `log det(I + A^-1 s M)`, and `d_g - a_g Tr[H^-1]_gg` for each group of the prior.
    ///
    /// # Errors
    /// When the prior has another dimension, and what an implementation's factorisations refuse.
    fn terms(&self, prior: &Prior, strength: f64) -> Result<Terms, LinearError>;

    /// The eigenvalues of `M` other than zeros, where the implementation has them.
    ///
    /// # Errors
    /// When they cannot be computed.
    fn eigenvalues(&self) -> Result<Option<&[f64]>, LinearError> {
        Ok(None)
    }
}

/// Dense, diagonal, Kronecker-factored and low-rank blocks. For a [normalised](Structure::normalised) structure, weights are meant in the
/// scaled coordinates.
impl EvidenceCurvature for Structure {
    fn dimension(&self) -> usize {
        self.dimension()
    }

    fn terms(&self, prior: &Prior, strength: f64) -> Result<Terms, LinearError> {
        Ok(self.terms(prior, strength)?)
    }
}

/// `M = Q'Q` exactly, from `Q = R' Phi` (nC x d), in weight space or by duality.
///
/// Under a prior of one group everything comes from a single eigendecomposition of the smaller of `Q'Q` and `Q Q'`, made when first needed, after
/// which every precision costs O(d). Several groups cost one Cholesky factor of the same size for each set of precisions.
#[derive(Clone, Debug)]
pub struct RootCurvature {
    dimension: usize,
    stored: Stored,
    spectrum: OnceLock<Spectrum>,
}

#[derive(Clone, Debug)]
enum Stored {
    /// The lower triangle of `M`, when d <= nC.
    Primal(Mat<f64>),
    /// `Q`, when nC < d.
    Dual(Mat<f64>),
}

/// `Q'Q` or `Q Q'` as `U diag(l) U'`.
#[derive(Clone, Debug)]
struct Spectrum {
    eigenvalues: Vec<f64>,
    vectors: Mat<f64>,
}

/// `I + A^{-1/2} s M A^{-1/2}` or `I + s Q A^-1 Q'`, factored.
struct Factored {
    cholesky: Cholesky,
    deviations: Vec<f64>,
    /// `sqrt(s) Q A^{-1/2}` in the dual form.
    rows: Option<Mat<f64>>,
}

impl RootCurvature {
    /// The curvature of features (nC x d, outputs of one example adjacent) under a noise precision. Cost `nC d min(nC, d)` flops.
    ///
    /// # Errors
    /// [`LinearError::Shape`], [`LinearError::Empty`] without parameters, [`LinearError::NotFinite`], [`LinearError::TooLarge`].
    pub fn new(features: MatRef<'_, f64>, noise: &Noise) -> Result<Self, LinearError> {
        let (rows, dimension) = (features.nrows(), features.ncols());
        if dimension == 0 {
            return Err(LinearError::Empty { what: "parameters" });
        }
        let examples = rows / noise.outputs();
        check::same("rows of the features, a multiple of the outputs", examples * noise.outputs(), rows)?;
        noise.check(examples, noise.outputs())?;
        check::finite_matrix("feature", features)?;
        let size = rows.min(dimension);
        check::size("the curvature", size, size, check::BUFFER_LIMIT)?;
        let q = noise.whiten(&(0..examples).collect::<Vec<_>>(), features);
        let stored = if rows < dimension { Stored::Dual(q) } else { Stored::Primal(gram(q.as_ref())) };
        Ok(Self { dimension, stored, spectrum: OnceLock::new() })
    }

    /// `(s M + A)^-1 b` for a vector of d numbers.
    ///
    /// # Errors
    /// As [`EvidenceCurvature::terms`]; [`LinearError::Shape`] for the vector.
    pub fn solve(&self, prior: &Prior, strength: f64, right: &[f64]) -> Result<Vec<f64>, LinearError> {
        self.check(prior, strength)?;
        check::same("numbers of the right-hand side", self.dimension, right.len())?;
        if let &[a] = prior.precisions() {
            let Spectrum { eigenvalues, vectors } = self.spectrum()?;
            let divide = |mut coefficients: Mat<f64>| {
                let each = eigenvalues.iter().enumerate();
                each.for_each(|(i, l)| coefficients[(i, 0)] /= strength * l + a);
                coefficients
            };
            return Ok(match &self.stored {
                Stored::Primal(_) => {
                    let inner = divide(vectors.transpose() * column(right));
                    to_vec(&product(vectors.as_ref(), inner.as_ref()))
                }
                // H^-1 = (I - s Q' (s Q Q' + a I)^-1 Q) / a
                Stored::Dual(rows) => {
                    let inner = divide(vectors.transpose() * product(rows.as_ref(), column(right)));
                    let inner = product(vectors.as_ref(), inner.as_ref());
                    let seen = rows.transpose() * inner;
                    right.iter().enumerate().map(|(i, r)| (r - strength * seen[(i, 0)]) / a).collect()
                }
            });
        }
        let Factored { cholesky, deviations, rows } = self.factor(prior, strength)?;
        let whitened: Vec<f64> = right.iter().zip(&deviations).map(|(r, s)| r * s).collect();
        let whitened = column(&whitened);
        let solved = match rows {
            None => cholesky.solve(whitened),
            Some(rows) => {
                whitened - rows.transpose() * cholesky.solve(product(rows.as_ref(), whitened).as_ref())
            }
        };
        Ok(deviations.iter().enumerate().map(|(i, s)| s * solved[(i, 0)]).collect())
    }

    fn check(&self, prior: &Prior, strength: f64) -> Result<(), LinearError> {
        check::same("weights of the prior", self.dimension, prior.dimension())?;
        check::positive("strength of the curvature", &[strength])
    }

    fn spectrum(&self) -> Result<&Spectrum, LinearError> {
        if let Some(spectrum) = self.spectrum.get() {
            return Ok(spectrum);
        }
        let matrix = match &self.stored {
            Stored::Primal(matrix) => matrix,
            Stored::Dual(rows) => &gram(rows.transpose()),
        };
        let (eigenvalues, vectors) = eigen(matrix.as_ref(), "the evidence")?;
        let computed = Spectrum { eigenvalues, vectors };
        Ok(self.spectrum.get_or_init(|| computed))
    }

    fn factor(&self, prior: &Prior, strength: f64) -> Result<Factored, LinearError> {
        let each = prior.precision_of_each(0..self.dimension);
        let deviations: Vec<f64> = each.iter().map(|a| a.sqrt().recip()).collect();
        let (matrix, rows) = match &self.stored {
            Stored::Primal(gram) => {
                let entry = |i: usize, j: usize| {
                    let unit = if i == j { 1.0 } else { 0.0 };
                    if i >= j { unit + strength * deviations[i] * deviations[j] * gram[(i, j)] } else { 0.0 }
                };
                (Mat::from_fn(self.dimension, self.dimension, entry), None)
            }
            Stored::Dual(rows) => {
                let root = strength.sqrt();
                let scaled =
                    Mat::from_fn(rows.nrows(), rows.ncols(), |i, j| root * rows[(i, j)] * deviations[j]);
                let mut matrix = Mat::identity(rows.nrows(), rows.nrows());
                add_gram(matrix.as_mut(), scaled.transpose());
                (matrix, Some(scaled))
            }
        };
        // All eigenvalues are at least 1, so a failure means overflow, which no jitter repairs.
        let cholesky = Cholesky::factor_with(matrix, JitterPolicy::NONE, |_| {})?;
        Ok(Factored { cholesky, deviations, rows })
    }
}

fn gram(rows: MatRef<'_, f64>) -> Mat<f64> {
    let mut matrix = Mat::zeros(rows.ncols(), rows.ncols());
    add_gram(matrix.as_mut(), rows);
    matrix
}

impl EvidenceCurvature for RootCurvature {
    fn dimension(&self) -> usize {
        self.dimension
    }

    fn terms(&self, prior: &Prior, strength: f64) -> Result<Terms, LinearError> {
        self.check(prior, strength)?;
        if let &[a] = prior.precisions() {
            let ratios = self.spectrum()?.eigenvalues.iter().map(|l| strength * l / a);
            return Ok(Terms {
                log_determinant: ratios.clone().map(f64::ln_1p).sum(),
                effective_dimensions: vec![ratios.map(|r| r / (1.0 + r)).sum()],
            });
        }
        let Factored { cholesky, rows, .. } = self.factor(prior, strength)?;
        // Roots of each weight's share, so that the prior's own sum of squares adds them up by group.
        let roots: Vec<f64> = match rows {
            None => cholesky.inverse_diagonal().iter().map(|v| (1.0 - v).max(0.0).sqrt()).collect(),
            Some(mut rows) => {
                cholesky.solve_factor_in_place(rows.as_mut());
                (0..self.dimension).map(|j| rows.col(j).norm_l2()).collect()
            }
        };
        Ok(Terms {
            log_determinant: cholesky.log_determinant(),
            effective_dimensions: prior.squared_norms(&roots),
        })
    }

    fn eigenvalues(&self) -> Result<Option<&[f64]>, LinearError> {
        Ok(Some(&self.spectrum()?.eigenvalues))
    }
}
