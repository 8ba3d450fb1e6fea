//! **Output curvature as cotangents**: rows `r` with `sum_s r_s r_s^T = B_n`, which sent backwards through the network become the rows that a
//! Gauss-Newton matrix is made of.
//!
//! | estimate | rows for each example | expectation |
//! |---|---|---|
//! | exact | the columns of a root of `B_n` (for softmax `C - 1` of them) | `B_n` |
//! | Monte Carlo Fisher | gradients of `log p(y' \| f)` for drawn targets `y'` | `B_n`, where the curvature is the Fisher matrix |
//! | empirical Fisher | the gradient at the observed target | biased |

use crate::LaplaceError;
use posterior_likelihoods::OutputLikelihood;
use posterior_linalg::random::Streams;
use posterior_networks::{Array, Precision};
use posterior_tangent::Batch;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

/// Where the rows come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FisherEstimate {
    /// Exact roots.
    #[default]
    Exact,
    /// Gradients at targets drawn from the model; the draw of an example depends on the seed and its number only.
    MonteCarlo {
        /// Draws for each example.
        samples: usize,
        /// Seed.
        seed: u64,
    },
    /// Gradients at the observed targets.
    Empirical,
}

impl FisherEstimate {
    /// Rows for each example.
    pub fn width(self, likelihood: &OutputLikelihood) -> usize {
        match self {
            Self::Exact => likelihood.root_width(),
            Self::MonteCarlo { samples, .. } => samples,
            Self::Empirical => 1,
        }
    }
}

/// The rows of a batch, `[examples * width, outputs...]`, for outputs `f` `[examples, outputs...]`.
pub(crate) fn cotangents<T: Precision>(
    estimate: FisherEstimate,
    likelihood: &OutputLikelihood,
    batch: &Batch<T>,
    f: &Array<T>,
) -> Result<Array<T>, LaplaceError> {
    let (outputs, width) = (likelihood.outputs(), estimate.width(likelihood));
    if width == 0 {
        return Err(LaplaceError::Request("a Monte-Carlo Fisher matrix needs at least one sample".into()));
    }
    let mut shape = f.shape().to_vec();
    shape[0] = batch.range.len() * width;
    let mut rows = Array::zeros(shape);
    let one = |(root, drawn): &mut (Vec<f64>, Vec<f64>), (i, place): (usize, &mut [T])| {
        let (y, values) = (batch.target(i), posterior_tangent::doubles(f.row(i)));
        match estimate {
            FisherEstimate::Exact => {
                let root = &mut root[..outputs * width];
                likelihood.root(y, &values, root);
                for s in 0..width {
                    (0..outputs).for_each(|c| place[s * outputs + c] = T::from_f64(root[c * width + s]));
                }
            }
            FisherEstimate::MonteCarlo { samples, seed } => {
                let example = (batch.range.start + i) as u64;
                let mut rng = Streams::new(seed).child("laplace/fisher", example).stream("targets");
                let scale = 1.0 / (samples as f64).sqrt();
                for place in place.chunks_exact_mut(outputs) {
                    likelihood.sample(&values, &mut rng, drawn);
                    likelihood.gradient(drawn, &values, &mut root[..outputs]);
                    place.iter_mut().zip(root.iter()).for_each(|(p, g)| *p = T::from_f64(scale * g));
                }
            }
            FisherEstimate::Empirical => {
                likelihood.gradient(y, &values, &mut root[..outputs]);
                place.iter_mut().zip(root.iter()).for_each(|(p, g)| *p = T::from_f64(*g));
            }
        }
    };
    let buffers = || (vec![0.0; outputs * width.max(outputs)], vec![0.0; likelihood.target_width()]);
    rows.values_mut()
        .par_chunks_exact_mut(outputs * width)
        .enumerate()
        .with_min_len(16)
        .for_each_init(buffers, one);
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use posterior_likelihoods::Categorical;

    fn batch(range: std::ops::Range<usize>, targets: Vec<f64>) -> Batch<f64> {
        let x = Array::zeros(vec![range.len(), 1]);
        Batch { range, x, targets }
    }

    #[test]
    fn drawn_gradients_have_the_curvature_as_their_second_moment() {
        let likelihood = OutputLikelihood::Categorical(Categorical::new(3).unwrap());
        let f = Array::new(vec![1, 3], vec![0.4, -0.3, 0.1]);
        let samples = 40_000;
        let estimate = FisherEstimate::MonteCarlo { samples, seed: 3 };
        let rows = cotangents(estimate, &likelihood, &batch(0..1, vec![0.0]), &f).unwrap();
        let mut sum = [0.0; 9];
        for row in rows.values().chunks_exact(3) {
            (0..9).for_each(|k| sum[k] += row[k / 3] * row[k % 3]);
        }
        let mut exact = [0.0; 9];
        likelihood.curvature(&[0.0], f.row(0), &mut exact);
        // Products of two gradients lie within 1 of each other: 5 standard errors are below 5 / sqrt(samples).
        for (s, e) in sum.iter().zip(&exact) {
            assert!((s - e).abs() < 5.0 / (samples as f64).sqrt(), "{s} {e}");
        }
    }

    #[test]
    fn draws_belong_to_examples_and_not_to_batches() {
        let likelihood = OutputLikelihood::Categorical(Categorical::new(3).unwrap());
        let f = Array::new(vec![2, 3], vec![0.4, -0.3, 0.1, 0.2, 0.0, 0.3]);
        let estimate = FisherEstimate::MonteCarlo { samples: 5, seed: 3 };
        let both = cotangents(estimate, &likelihood, &batch(6..8, vec![0.0, 1.0]), &f).unwrap();
        let second = cotangents(estimate, &likelihood, &batch(7..8, vec![1.0]), &f.slice_rows(1..2)).unwrap();
        assert_eq!(&both.values()[15..], second.values());
    }
}
