//! Hyperparameters of filters by the evidence, with a stored kernel.

use super::filters::{FilterHyperparameters, correlations, distances};
use super::grams::DistanceGrams;
use super::roughness::RoughnessTerms;
use super::weights::{ConvolutionWeights, WeightBlock};
use crate::TomographyError;
use faer::{Mat, MatRef};
use posterior_linalg::cholesky::{Cholesky, JitterPolicy};
use posterior_linalg::dense::product;
use posterior_linalg::symmetric::mirror_lower;
use serde::{Deserialize, Serialize};
use std::f64::consts::TAU;

/// Least log variance that a block may have: below it the block has no part in the picture.
pub const LEAST_LOG_VARIANCE: f64 = -6.9;

/// Which weights the evidence charges for.
#[derive(Clone, Debug)]
pub enum ChargedWeights {
    /// The optimum of the linear model under the hyperparameters themselves: `log N(y~; 0, C)`, the evidence of the linear model.
    Optimum,
    /// Weights that stay: the optimum for other hyperparameters (one step of expectation maximisation, as published), or the network's own. Equation 7.10, whose residual is that of the network's picture.
    Held(Vec<HeldFilters>),
}

/// The filters of one block, as far as a prior over them sees them.
#[derive(Clone, Debug)]
pub struct HeldFilters {
    /// Shape of a filter.
    pub kernel: Vec<usize>,
    /// Sum of the filters' outer products (positions x positions).
    pub scatter: Mat<f64>,
}

impl ChargedWeights {
    /// The given weights (d), as sums of outer products within filters, block by block.
    pub fn held(weights: &ConvolutionWeights, values: &[f64]) -> Self {
        let of = |block: &WeightBlock| {
            let n = block.positions();
            let mut sum = Mat::zeros(n, n);
            for filter in block.ranges().flat_map(|range| values[range].chunks_exact(n)) {
                for p in 0..n {
                    (0..n).for_each(|q| sum[(p, q)] += filter[p] * filter[q]);
                }
            }
            HeldFilters { kernel: block.kernel.clone(), scatter: sum }
        };
        Self::Held(weights.blocks().iter().map(of).collect())
    }
}

/// What is learned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LearnedHyperparameters {
    /// One variance for all blocks instead of one for each.
    pub tied: bool,
    /// Whether positions of a filter are correlated: else lengthscales stay where they are.
    pub correlated: bool,
    /// Whether the noise is learned too.
    pub noise: bool,
}

impl Default for LearnedHyperparameters {
    fn default() -> Self {
        Self { tied: false, correlated: true, noise: true }
    }
}

/// Hyperparameters of a linearised image prior with filters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ImageHyperparameters {
    /// Of the filters.
    pub filters: FilterHyperparameters,
    /// `log b^-1`.
    pub log_noise_variance: f64,
}

impl LearnedHyperparameters {
    /// The vector that is searched.
    pub fn pack(self, from: &ImageHyperparameters) -> Vec<f64> {
        let variances = &from.filters.log_variances;
        let mut out = if self.tied { vec![variances[0]] } else { variances.clone() };
        if self.correlated {
            out.extend(&from.filters.log_lengthscales);
        }
        if self.noise {
            out.push(from.log_noise_variance);
        }
        out
    }

    /// The hyperparameters of a vector; what is not learned is as in `held`.
    pub fn unpack(self, theta: &[f64], held: &ImageHyperparameters) -> ImageHyperparameters {
        let r = held.filters.log_variances.len();
        let mut out = held.clone();
        let at = if self.tied { 1 } else { r };
        for (k, own) in out.filters.log_variances.iter_mut().enumerate() {
            *own = theta[if self.tied { 0 } else { k }].max(LEAST_LOG_VARIANCE);
        }
        if self.correlated {
            out.filters.log_lengthscales.copy_from_slice(&theta[at..at + r]);
        }
        if self.noise {
            out.log_noise_variance = theta[theta.len() - 1];
        }
        out
    }

    /// Slopes of all hyperparameters as one of the vector.
    pub(super) fn pack_slopes(self, [variances, lengthscales]: &[Vec<f64>; 2], noise: f64) -> Vec<f64> {
        let mut out = if self.tied { vec![variances.iter().sum()] } else { variances.clone() };
        if self.correlated {
            out.extend(lengthscales);
        }
        if self.noise {
            out.push(noise);
        }
        out
    }
}

/// What the evidence of a picture's linear model looks at, in measurements.
pub struct StoredEvidence<'a> {
    /// `phi phi'` by parts, over pixels or over measurements.
    pub grams: &'a DistanceGrams,
    /// T (c x pixels), where these are over pixels.
    pub projector: Option<MatRef<'a, f64>>,
    /// `y~ = y + T (phi v - g(v))` (c).
    pub targets: &'a [f64],
    /// `y - T g(v)` (c).
    pub residual: &'a [f64],
    /// Which weights are charged for.
    pub charged: ChargedWeights,
    /// The prior over lengthscales (TV-PredCP) and its weight: type-II MAP; None is marginal likelihood.
    pub roughness: Option<(&'a RoughnessTerms, f64)>,
}

/// The evidence and its slopes.
#[derive(Clone, Debug)]
pub struct EvidenceValue {
    /// Nats.
    pub value: f64,
    /// In all log variances and all log lengthscales.
    pub filters: [Vec<f64>; 2],
    /// In the log noise variance.
    pub noise: f64,
}

impl StoredEvidence<'_> {
    /// `C = T K T' + b^-1 I` (c x c).
    pub fn system(&self, at: &ImageHyperparameters) -> Mat<f64> {
        let kernel = self.grams.kernel(&at.filters);
        let mut system = match self.projector {
            Some(t) => product(product(t, kernel.as_ref()).as_ref(), t.transpose()),
            None => kernel,
        };
        let noise = at.log_noise_variance.exp();
        (0..system.nrows()).for_each(|i| system[(i, i)] += noise);
        system
    }

    /// Value and slopes. Cost: a Cholesky factor and inverse of c x c, a sum over the parts.
    ///
    /// Source: Antorán (2024), equation 7.10 and 2.43; spec `tomography`, sections 5.4 and 9.3.
    ///
    /// # Errors
    /// [`TomographyError::Cholesky`].
    pub fn value_and_slopes(&self, at: &ImageHyperparameters) -> Result<EvidenceValue, TomographyError> {
        let factor = Cholesky::of(self.system(at).as_ref(), JitterPolicy::default())?;
        let (c, noise) = (self.targets.len(), at.log_noise_variance.exp());
        let log_determinant = factor.log_determinant();
        let dual = factor.solve(MatRef::from_column_major_slice(self.targets, c, 1));
        let mut inverse = factor.into_inverse();
        mirror_lower(inverse.as_mut());
        let trace: f64 = (0..c).map(|i| inverse[(i, i)]).sum();
        let mut weight = Mat::from_fn(c, c, |i, j| -0.5 * inverse[(i, j)]);
        let mut value = -0.5 * (log_determinant + c as f64 * TAU.ln());
        let mut noise_slope = -0.5 * noise * trace;
        if let ChargedWeights::Optimum = self.charged {
            for j in 0..c {
                (0..c).for_each(|i| weight[(i, j)] += 0.5 * dual[(i, 0)] * dual[(j, 0)]);
            }
            value -= 0.5 * (0..c).map(|i| dual[(i, 0)] * self.targets[i]).sum::<f64>();
            noise_slope += 0.5 * noise * dual.col(0).squared_norm_l2();
        } else {
            let squares: f64 = self.residual.iter().map(|r| r * r).sum();
            value -= 0.5 * squares / noise;
            noise_slope += 0.5 * squares / noise;
        }
        let pulled = match self.projector {
            Some(t) => product(t.transpose(), product(weight.as_ref(), t).as_ref()),
            None => weight,
        };
        let mut filters = self.grams.slopes(&at.filters, pulled.as_ref());
        if let ChargedWeights::Held(scatters) = &self.charged {
            for (k, held) in scatters.iter().enumerate() {
                let (norm, slopes) = charge(held, &at.filters, k)?;
                value -= 0.5 * norm;
                (0..2).for_each(|i| filters[i][k] -= 0.5 * slopes[i]);
            }
        }
        if let Some((terms, factor)) = self.roughness {
            let (density, slopes) = terms.log_density(&at.filters);
            value += factor * density;
            for (own, slopes) in filters.iter_mut().zip(slopes) {
                own.iter_mut().zip(slopes).for_each(|(f, s)| *f += factor * s);
            }
        }
        Ok(EvidenceValue { value, filters, noise: noise_slope })
    }
}

/// `tr(A_k S)` of one block with the scatter S of its filters, and its slopes in log variance and log lengthscale.
pub(super) fn charge(
    HeldFilters { kernel, scatter }: &HeldFilters,
    at: &FilterHyperparameters,
    block: usize,
) -> Result<(f64, [f64; 2]), TomographyError> {
    let n = scatter.nrows();
    let (distances, which) = distances(kernel);
    let [rho, slope, _] = correlations(&distances, at.log_lengthscales[block]);
    let correlation = Mat::from_fn(n, n, |i, j| rho[which[i * n + j]]);
    let mut inverse = Cholesky::of(correlation.as_ref(), JitterPolicy::NONE)?.into_inverse();
    mirror_lower(inverse.as_mut());
    let precision = (-at.log_variances[block]).exp();
    let norm = precision * (0..n * n).map(|k| inverse[(k / n, k % n)] * scatter[(k / n, k % n)]).sum::<f64>();
    // d tr(A S) = - tr(A S A dA^-1).
    let middle = product(product(inverse.as_ref(), scatter.as_ref()).as_ref(), inverse.as_ref());
    let bent: f64 = (0..n * n).map(|k| middle[(k / n, k % n)] * slope[which[k]]).sum();
    Ok((norm, [-norm, -precision * bent]))
}
