//! **Regularisers** `D[Q, P]`: what keeps the variational process near its reference.
//!
//! | regulariser | looks at | admits | a step costs |
//! |---|---|---|---|
//! | projected divergences (6.2) | both marginals at each row | every kernel and mean | O(b) |
//! | divergences of inducing values | the weights of inducing points | kernels of weights, means of weights or of the prior, the prior as reference | O(M³) |
//! | squared Wasserstein distance (5.11) | both covariances of some rows together | every kernel and mean | O(b³) |
//! | its part without the eigenvalues | marginals | every kernel and mean | O(b) |
//! | squared difference of covariances | the same | every kernel and mean | O(b²) |
//! | distance of class probabilities | probabilities at each row | several functions, the posterior as reference | O(b C) likelihoods |
//!
//! Divergences of inducing values are those of the whole processes, which share what inducing points leave (the Kullback-Leibler divergence is that of variational inference); the distances of Wasserstein and of squares are
//! not, so they are not offered there.
//!
//! Source: spec `generalised_variational_inference`, sections 3.2, 10 and 11.

mod inducing;
mod marginals;
mod matrices;
mod text;

pub(super) use inducing::inducing;
pub use text::UnknownRegulariser;

use super::divergence::{Divergence, FidelityForm};
use super::error::GeneralisedError;
use super::mean::VariationalMean;
use super::model::{GeneralisedGp, KnownRows};
use super::objective::Batch;
use super::reference::Mode;
use super::variational::{Evaluated, Family, VariationalKernel};
use crate::GpError;
use faer::{Mat, MatRef};
use marginals::multinomial;
use serde::{Deserialize, Serialize};

/// What keeps the variational process near its reference.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Regulariser {
    /// A divergence of both marginals, averaged over rows and functions.
    Projected(Divergence),
    /// A divergence of the distributions of inducing values, summed over functions.
    Inducing(Divergence),
    /// The squared Wasserstein distance of rows together, averaged over functions.
    Wasserstein(FidelityForm),
    /// The same from two batches, the halves of the rows together: noisy, and it may be negative (erratum E14). A last batch of one row goes without it, and is counted.
    WassersteinOfTwo,
    /// The same without the term of eigenvalues.
    PartialWasserstein,
    /// Squared differences of means and of covariances of rows together, averaged over functions.
    SquaredDifference,
    /// `Σ_j (ǀp_j - q_jǀ^a)^(1/a)` of class probabilities, averaged over rows.
    Multinomial {
        /// a, at least 1.
        power: f64,
    },
}

impl Default for Regulariser {
    fn default() -> Self {
        Self::Projected(Divergence::Renyi { order: 0.5 })
    }
}

/// The regulariser with its slopes.
#[derive(Debug, Default)]
pub(super) struct Regularisation {
    pub(super) value: f64,
    /// In the variational means, b x C.
    pub(super) means: Option<Mat<f64>>,
    /// In the variational variances, b x C.
    pub(super) variances: Option<Mat<f64>>,
    /// In the covariances of the rows together, one symmetric adjoint for each function.
    pub(super) covariances: Vec<Mat<f64>>,
    /// In the distribution of the weights.
    pub(super) weights: Option<WeightSlopes>,
    /// Eigenvalues that were clipped.
    pub(super) clipped: usize,
    /// Roots that drown in rounding.
    pub(super) unresolved: usize,
    /// Largest amount added to the diagonal of a covariance, relative to its mean.
    pub(super) relative_jitter: f64,
    /// Whether it was left out, because rows are too few.
    pub(super) left_out: bool,
}

/// Rows that a regulariser of matrices looks at together.
pub(super) struct RegularisedRows<'a> {
    /// Their places in the batch; None for all in their order.
    pub(super) rows: Option<&'a [usize]>,
    /// Their inputs.
    pub(super) x: MatRef<'a, f64>,
    pub(super) known: &'a KnownRows,
    /// One kernel for each function there.
    pub(super) kernels: &'a [Evaluated<'a>],
}

/// Slopes in the weights of inducing points, in the coordinates of the process.
#[derive(Debug)]
pub(super) struct WeightSlopes {
    /// In the mean's weights, one column for each function; empty where the mean has none.
    pub(super) mean: Vec<Vec<f64>>,
    /// In the roots of their covariances.
    pub(super) roots: Vec<Mat<f64>>,
}

impl Regulariser {
    /// Refuses kernels, means and references that it does not admit.
    ///
    /// # Errors
    /// [`GeneralisedError::Regulariser`], with what it admits.
    pub fn check(&self, model: &GeneralisedGp) -> Result<(), GpError> {
        let refuse = |what: String, remedy| {
            Err(GeneralisedError::Regulariser { regulariser: self.to_string(), what, remedy }.into())
        };
        match self {
            Self::Projected(divergence) => divergence.check()?,
            Self::Inducing(divergence) => {
                divergence.check()?;
                if matches!(divergence, Divergence::Wasserstein | Divergence::SquaredDifference) {
                    return refuse(
                        "inducing values, of which it is not the distance of the processes".into(),
                        "take its projected form",
                    );
                }
                for kernel in model.kernels() {
                    if !kernel.family().is_of_weights() {
                        return refuse(
                            format!("the {} variational kernel", kernel.family()),
                            "between such processes it is infinite: take a cholesky, diagonal or log kernel, a projected regulariser, or wasserstein",
                        );
                    }
                }
                if !matches!(model.mean(), VariationalMean::Prior | VariationalMean::Inducing(_)) {
                    return refuse(
                        model.mean().name().into(),
                        "between such processes it is infinite: take the mean of inducing points, a projected regulariser, or wasserstein",
                    );
                }
                if model.references().iter().any(|reference| reference.mode() == Mode::Posterior) {
                    return refuse(
                        "the posterior as reference".into(),
                        "take the prior as reference, or a projected regulariser",
                    );
                }
            }
            Self::Multinomial { power } => {
                if !(*power >= 1.0 && power.is_finite()) {
                    return Err(GeneralisedError::Option {
                        option: "the power of the multinomial distance",
                        value: *power,
                        remedy: "take at least 1",
                    }
                    .into());
                }
                if model.functions() < 2 || model.likelihood().target_width() != 1 {
                    return refuse("targets that are no classes".into(), "take a projected regulariser");
                }
                if model.references().iter().any(|reference| reference.mode() == Mode::Prior) {
                    return refuse(
                        "the prior as reference, under which all classes are alike".into(),
                        "take the posterior as reference",
                    );
                }
            }
            Self::Wasserstein(FidelityForm::NuclearNorm) => {
                let fixed = |kernel: &VariationalKernel| kernel.family() == Family::FixedSparsePosterior;
                if model.kernels().iter().any(fixed) {
                    return refuse(
                        format!("the {} variational kernel", Family::FixedSparsePosterior),
                        "it need not be a covariance, and has no Cholesky factor then: take wasserstein-symmetric-roots, which clips and counts, a projected regulariser, or another kernel",
                    );
                }
            }
            Self::Wasserstein(FidelityForm::SymmetricRoots)
            | Self::WassersteinOfTwo
            | Self::PartialWasserstein
            | Self::SquaredDifference => {}
        }
        Ok(())
    }

    /// Whether it looks at covariances of rows together.
    pub(super) fn is_of_matrices(&self) -> bool {
        matches!(self, Self::Wasserstein(_) | Self::WassersteinOfTwo | Self::SquaredDifference)
    }

    /// At a batch, given means (b x C) and kernels there, and those of the rows together.
    pub(super) fn evaluate(
        &self,
        model: &GeneralisedGp,
        batch: &Batch<'_>,
        (means, kernels): (&Mat<f64>, &[Evaluated<'_>]),
        together: &RegularisedRows<'_>,
    ) -> Result<Regularisation, GpError> {
        match self {
            Self::Projected(_) | Self::PartialWasserstein => {
                self.of_marginals(model, batch, (means, kernels))
            }
            Self::Inducing(divergence) => inducing(*divergence, model),
            Self::Wasserstein(_) | Self::WassersteinOfTwo | Self::SquaredDifference => {
                self.together(model, means, together)
            }
            Self::Multinomial { power } => multinomial(*power, model, batch, means, kernels),
        }
    }
}
