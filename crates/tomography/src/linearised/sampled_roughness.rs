//! Expected total variation and its derivatives by samples: what is left where no Jacobian can be stored.
//!
//! Source: Antorán (2024), equations 7.12 and 7.13; spec `tomography`, section 5.3 (F4, F5).

use super::filters::{FilterHyperparameters, correlations, distances};
use super::roughness::Roughness;
use super::tangent::ImageTangent;
use super::weights::{ConvolutionWeights, WeightBlock};
use crate::TomographyError;
use crate::total_variation::TotalVariation;
use faer::{Mat, MatRef};
use posterior_linalg::cholesky::{Cholesky, JitterPolicy};
use posterior_linalg::dense::product;
use posterior_linalg::operator::LinearOperator;
use posterior_linalg::random::Streams;
use posterior_networks::Precision;
use rand_distr::{Distribution, StandardNormal};
use serde::{Deserialize, Serialize};

/// How the second derivative of expected total variation is estimated.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BendEstimate {
    /// Slopes of the same samples on both sides of the lengthscale, `e^(+-step)` times it.
    Differences {
        /// Half the distance in the logarithm.
        step: f64,
    },
    /// As published: the second derivative of total variation itself is left out, since it is zero almost everywhere. That forgets its kinks, and is biased downwards (F5).
    Published,
}

/// Expected total variation of blocks by samples.
pub struct SampledRoughness<'a, T: Precision> {
    /// The picture's tangent.
    pub tangent: &'a ImageTangent<'a, T>,
    /// Its weights.
    pub weights: &'a ConvolutionWeights,
    /// Total variation of its pictures.
    pub total_variation: &'a TotalVariation,
    /// Samples for each block.
    pub samples: usize,
    /// How second derivatives are found.
    pub bend: BendEstimate,
    /// Where pictures are scattered around: zero by the formula, the network's picture in the reference's program.
    pub around: Option<&'a [f64]>,
}

/// A root and its first two derivatives in the logarithm of the lengthscale, for variance 1.
fn roots(block: &WeightBlock, log_lengthscale: f64) -> Result<[Mat<f64>; 3], TomographyError> {
    let (distances, which) = distances(&block.kernel);
    let n = block.positions();
    let matrix = |values: &[f64]| Mat::from_fn(n, n, |i, j| values[which[i * n + j]]);
    let [value, slope, bend] = correlations(&distances, log_lengthscale).map(|v| matrix(&v));
    let factor = Cholesky::of(value.as_ref(), JitterPolicy::NONE)?;
    let lower = Mat::from_fn(n, n, |i, j| if i >= j { factor.factor()[(i, j)] } else { 0.0 });
    // A' = L' L^T + L L'^T, so that L^-1 A' L^-T is the sum of a triangle and its transpose.
    let halved = |middle: Mat<f64>| {
        let mut inner = middle;
        posterior_linalg::dense::solve_lower(lower.as_ref(), inner.as_mut());
        let mut inner = inner.transpose().to_owned();
        posterior_linalg::dense::solve_lower(lower.as_ref(), inner.as_mut());
        let half = |i: usize, j: usize| match i.cmp(&j) {
            std::cmp::Ordering::Greater => inner[(i, j)],
            std::cmp::Ordering::Equal => 0.5 * inner[(i, j)],
            std::cmp::Ordering::Less => 0.0,
        };
        product(lower.as_ref(), Mat::from_fn(n, n, half).as_ref())
    };
    let first = halved(slope);
    // A'' = L'' L^T + 2 L' L'^T + L L''^T.
    let second = halved(bend - faer::Scale(2.0) * product(first.as_ref(), first.transpose()));
    Ok([lower, first, second])
}

impl<T: Precision> SampledRoughness<'_, T> {
    /// Expected total variation of one block, from samples with this seed; None where filters have one position.
    ///
    /// Cost: one product forward and one back for each sample, three of both with differences.
    ///
    /// # Errors
    /// [`TomographyError::Cholesky`].
    pub fn of_block(
        &self,
        block: usize,
        at: &FilterHyperparameters,
        seed: u64,
    ) -> Result<Option<Roughness>, TomographyError> {
        let own = &self.weights.blocks()[block];
        if own.positions() == 1 {
            return Ok(None);
        }
        let white = self.white(own, block, seed);
        let (variance, log_lengthscale) = (at.log_variances[block], at.log_lengthscales[block]);
        let at_own = self.at(own, &white, variance, log_lengthscale)?;
        let bend = match self.bend {
            BendEstimate::Published => at_own.bend,
            BendEstimate::Differences { step } => {
                let above = self.at(own, &white, variance, log_lengthscale + step)?;
                let below = self.at(own, &white, variance, log_lengthscale - step)?;
                (above.slope - below.slope) / (2.0 * step)
            }
        };
        Ok(Some(Roughness { bend, ..at_own }))
    }

    /// Standard normals of a block's weights, zero elsewhere (d x samples).
    fn white(&self, block: &WeightBlock, number: usize, seed: u64) -> Mat<f64> {
        let mut white = Mat::zeros(self.weights.len(), self.samples);
        let streams = Streams::new(seed).child("tomography/roughness", number as u64);
        for j in 0..self.samples {
            let mut rng = streams.child("sample", j as u64).stream("weights");
            let column = white.col_as_slice_mut(j);
            for range in block.ranges() {
                column[range].iter_mut().for_each(|v| *v = StandardNormal.sample(&mut rng));
            }
        }
        white
    }

    /// Value, slope and published second derivative.
    fn at(
        &self,
        block: &WeightBlock,
        white: &Mat<f64>,
        log_variance: f64,
        log_lengthscale: f64,
    ) -> Result<Roughness, TomographyError> {
        let deviation = (0.5 * log_variance).exp();
        let [root, first, second] = roots(block, log_lengthscale)?.map(|m| faer::Scale(deviation) * m);
        let weights = through(block, root.as_ref(), white);
        let pictures = self.tangent.multiply(weights.as_ref());
        let mut slopes = Mat::zeros(pictures.nrows(), self.samples);
        let mut value = 0.0;
        for j in 0..self.samples {
            let mut picture = pictures.col_as_slice(j).to_vec();
            if let Some(around) = self.around {
                picture.iter_mut().zip(around).for_each(|(p, a)| *p += a);
            }
            value += self.total_variation.value(&picture);
            self.total_variation.add_subgradient(&picture, 1.0, slopes.col_as_slice_mut(j));
        }
        let pulled = self.tangent.multiply_transpose(slopes.as_ref());
        let mean = |moved: Mat<f64>| {
            let own = (0..self.samples).map(|j| {
                let (a, b) = (pulled.col_as_slice(j), moved.col_as_slice(j));
                a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>()
            });
            own.sum::<f64>() / self.samples as f64
        };
        Ok(Roughness {
            value: value / self.samples as f64,
            slope: mean(through(block, first.as_ref(), white)),
            bend: mean(through(block, second.as_ref(), white)),
        })
    }
}

/// A matrix times each filter of a block; everything else stays as it is, zero.
fn through(block: &WeightBlock, matrix: MatRef<'_, f64>, white: &Mat<f64>) -> Mat<f64> {
    let n = block.positions();
    let mut out = white.clone();
    for j in 0..white.ncols() {
        for range in block.ranges() {
            for start in range.step_by(n) {
                for p in 0..n {
                    out[(start + p, j)] = (0..n).map(|q| matrix[(p, q)] * white[(start + q, j)]).sum();
                }
            }
        }
    }
    out
}
