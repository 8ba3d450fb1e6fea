//! Sampled latent values `f_s = m ± L z_s`, from standard normal numbers that all inputs share.

use super::root::root;
use super::{Clipping, Covariance, LatentGaussian};
use crate::LikelihoodError;
use faer::linalg::matmul::matmul;
use faer::{Accum, Mat, MatMut, MatRef, Par};
use posterior_linalg::random::Streams;
use rand_distr::{Distribution, StandardNormal};

/// Pairs that are made at a time: enough for a matrix product, few enough for the cache.
const BLOCK: usize = 32;

/// No more numbers than this are drawn for one rule (1 GiB).
const MOST_NUMBERS: usize = 1 << 27;

/// Standard normal numbers for S functions of C outputs: one row for each pair of antithetic functions.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct CommonDraws {
    samples: usize,
    outputs: usize,
    /// pairs x C, row-major.
    normals: Vec<f64>,
}

/// What sampling needs besides, reused between inputs.
#[derive(Clone, Debug)]
pub(super) struct DrawsWorkspace {
    /// `L` of a full covariance.
    root: Mat<f64>,
    /// Standard deviations of a diagonal one.
    scale: Vec<f64>,
    deviations: Vec<f64>,
    functions: Vec<f64>,
}

impl Default for DrawsWorkspace {
    fn default() -> Self {
        Self { root: Mat::new(), scale: Vec::new(), deviations: Vec::new(), functions: Vec::new() }
    }
}

impl CommonDraws {
    /// # Errors
    /// For no samples, or more numbers than memory should hold.
    pub(super) fn new(samples: usize, outputs: usize, seed: u64) -> Result<Self, LikelihoodError> {
        let pairs = samples.div_ceil(2);
        let numbers = pairs.saturating_mul(outputs);
        if samples == 0 || numbers > MOST_NUMBERS {
            return Err(LikelihoodError::Parameter {
                owner: "monte_carlo",
                parameter: format!("samples (for {outputs} outputs)"),
                value: samples.to_string(),
                remedy: "give at least 1, and at most 2^28 samples x outputs",
            });
        }
        let mut rng = Streams::new(seed).stream("likelihoods/predictive");
        let normals = (0..numbers).map(|_| StandardNormal.sample(&mut rng)).collect();
        Ok(Self { samples, outputs, normals })
    }

    /// How many functions there are.
    pub(super) fn samples(&self) -> usize {
        self.samples
    }

    /// Calls `visit` with blocks of sampled latent values (functions x C, row-major, free to be overwritten), S functions in all.
    /// Cost `O(S C)` for a diagonal covariance, `O(S C²)` and one root for a full one.
    pub(super) fn visit(
        &self,
        latent: LatentGaussian<'_>,
        workspace: &mut DrawsWorkspace,
        mut visit: impl FnMut(&mut [f64]),
    ) -> Result<Clipping, LikelihoodError> {
        let n = self.outputs;
        let clipping = match latent.covariance {
            Covariance::Diagonal(variances) => {
                workspace.scale.clear();
                workspace.scale.extend(variances.iter().map(|v| v.max(0.0).sqrt()));
                Clipping::default()
            }
            Covariance::Full(entries) => root(entries, n, &mut workspace.root)?,
        };
        let mut left = self.samples;
        for normals in self.normals.chunks(BLOCK * n) {
            let pairs = normals.len() / n;
            workspace.deviations.resize(normals.len(), 0.0);
            match latent.covariance {
                Covariance::Diagonal(_) => {
                    let scale = &workspace.scale;
                    for (out, z) in workspace.deviations.chunks_mut(n).zip(normals.chunks(n)) {
                        for i in 0..n {
                            out[i] = scale[i] * z[i];
                        }
                    }
                }
                // Rows of Z are draws, so rows of Z Lᵀ are (L z)ᵀ: the factor stands on the left of each draw.
                Covariance::Full(_) => matmul(
                    MatMut::from_row_major_slice_mut(&mut workspace.deviations, pairs, n),
                    Accum::Replace,
                    MatRef::from_row_major_slice(normals, pairs, n),
                    workspace.root.transpose(),
                    1.0,
                    Par::Seq,
                ),
            }
            let functions = left.min(2 * pairs);
            left -= functions;
            workspace.functions.resize(functions * n, 0.0);
            for (row, out) in workspace.functions.chunks_mut(n).enumerate() {
                let (pair, sign) = if row < pairs { (row, 1.0) } else { (row - pairs, -1.0) };
                let deviation = &workspace.deviations[pair * n..(pair + 1) * n];
                for i in 0..n {
                    out[i] = latent.mean[i] + sign * deviation[i];
                }
            }
            visit(&mut workspace.functions);
        }
        Ok(clipping)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All functions, their number, and the empirical second moment about the mean.
    fn second_moment(draws: &CommonDraws, latent: LatentGaussian<'_>) -> (usize, Vec<f64>) {
        let n = latent.mean.len();
        let (mut count, mut sum) = (0, vec![0.0; n * n]);
        draws
            .visit(latent, &mut DrawsWorkspace::default(), |functions| {
                for f in functions.chunks(n) {
                    count += 1;
                    for k in 0..n * n {
                        sum[k] += (f[k / n] - latent.mean[k / n]) * (f[k % n] - latent.mean[k % n]);
                    }
                }
            })
            .unwrap();
        (count, sum.iter().map(|s| s / count as f64).collect())
    }

    #[test]
    fn draws_have_the_covariance_with_the_factor_on_the_left() {
        // Lᵀ L is far from L Lᵀ here.
        let covariance = [4.0, 1.6, -0.5, 1.6, 1.0, 0.1, -0.5, 0.1, 0.8];
        let mean = [1.0, -2.0, 0.5];
        let draws = CommonDraws::new(20_001, 3, 5).unwrap();
        for (covariance, full) in [(&covariance[..], true), (&[4.0, 1.0, 0.8][..], false)] {
            let shape = if full { Covariance::Full(covariance) } else { Covariance::Diagonal(covariance) };
            let (count, found) = second_moment(&draws, LatentGaussian { mean: &mean, covariance: shape });
            assert_eq!(count, 20_001);
            let entry = |i, j| shape.entry(i, j, 3);
            for k in 0..9 {
                let (i, j) = (k / 3, k % 3);
                // Antithetic functions share their square: as many independent ones as pairs. Isserlis' theorem.
                let error = ((entry(i, i) * entry(j, j) + entry(i, j).powi(2)) / 10_001.0).sqrt();
                assert!((found[k] - entry(i, j)).abs() < 5.0 * error, "({i}, {j}): {}", found[k]);
            }
        }
    }

    #[test]
    fn antithetic_pairs_have_the_mean_exactly() {
        let draws = CommonDraws::new(100, 2, 1).unwrap();
        let latent =
            LatentGaussian { mean: &[0.0, 0.0], covariance: Covariance::Full(&[2.0, 0.3, 0.3, 1.0]) };
        let mut sum = [0.0; 2];
        draws
            .visit(latent, &mut DrawsWorkspace::default(), |functions| {
                functions.chunks(2).for_each(|f| {
                    sum[0] += f[0];
                    sum[1] += f[1];
                });
            })
            .unwrap();
        assert!(sum.iter().all(|s| s.abs() < 1e-12), "{sum:?}");
    }

    #[test]
    fn hostile_sizes_are_refused_before_memory_is_asked_for() {
        for (samples, outputs) in [(0, 3), (usize::MAX, 3), (1 << 20, 1 << 20)] {
            assert!(matches!(CommonDraws::new(samples, outputs, 0), Err(LikelihoodError::Parameter { .. })));
        }
    }
}
