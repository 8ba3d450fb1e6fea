//! **Output curvature as rows** `r` with `sum_s r_s r_s^T = B_n`, which sent back through features become the rows that a Gauss-Newton matrix is made of.
//!
//! | estimate | rows for each example | expectation |
//! |---|---|---|
//! | exact | the columns of a root of `B_n` (for softmax `C - 1` of them) | `B_n` |
//! | Monte Carlo Fisher | gradients of `log p(y' \| f)` for drawn targets `y'` | `B_n`, where the curvature is the Fisher matrix |
//! | drawn noise | `R e` for standard normal `e`, the noise that posterior samples are made of | `B_n` |
//! | empirical Fisher | the gradient at the observed target | biased |

use crate::LinearError;
use posterior_likelihoods::OutputLikelihood;
use posterior_linalg::Real;
use posterior_linalg::parallel;
use posterior_linalg::random::Streams;
use rand_distr::{Distribution, StandardNormal};
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
    /// Draws of noise with covariance `B`, which exists where no target can be drawn that has it; the draw of an example depends on the seed and its number only.
    Noise {
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
            Self::MonteCarlo { samples, .. } | Self::Noise { samples, .. } => samples,
            Self::Empirical => 1,
        }
    }
}

/// `B` of a batch.
#[derive(Clone, Copy, Debug)]
pub struct OutputCurvature<'a> {
    /// The likelihood, of C outputs.
    pub likelihood: &'a OutputLikelihood,
    /// How the Fisher matrix is estimated.
    pub estimate: FisherEstimate,
    /// Targets, one after another.
    pub targets: &'a [f64],
    /// The model's outputs (nC).
    pub outputs: &'a [f64],
    /// The number of the first example among all data.
    pub first: usize,
}

/// Directions in the space of outputs, `width` for each example.
#[derive(Clone, Debug, PartialEq)]
pub struct Roots<T> {
    /// Rows for each example.
    pub width: usize,
    /// `[examples * width, C]`, row by row.
    pub values: Vec<T>,
}

impl OutputCurvature<'_> {
    /// The target of the batch's example `i`.
    pub fn target(&self, i: usize) -> &[f64] {
        let width = self.likelihood.target_width();
        &self.targets[i * width..(i + 1) * width]
    }

    /// The outputs of the batch's example `i`.
    pub fn output(&self, i: usize) -> &[f64] {
        let outputs = self.likelihood.outputs();
        &self.outputs[i * outputs..(i + 1) * outputs]
    }

    /// The rows of the batch.
    ///
    /// # Errors
    /// [`LinearError::Option`] for a Monte-Carlo estimate without samples.
    pub fn roots<T: Real>(&self) -> Result<Roots<T>, LinearError> {
        let likelihood = self.likelihood;
        let (outputs, width) = (likelihood.outputs(), self.estimate.width(likelihood));
        if width == 0 {
            let expected = "a Monte-Carlo Fisher matrix needs at least one sample";
            return Err(LinearError::Option { name: "samples", value: 0.0, expected });
        }
        let mut values = vec![T::ZERO; self.outputs.len() * width];
        let one = |(root, drawn): &mut (Vec<f64>, Vec<f64>), i: usize, place: &mut [T]| {
            let (y, f) = (self.target(i), self.output(i));
            match self.estimate {
                FisherEstimate::Exact => {
                    let root = &mut root[..outputs * width];
                    likelihood.root(y, f, root);
                    for s in 0..width {
                        (0..outputs).for_each(|c| place[s * outputs + c] = T::from_f64(root[c * width + s]));
                    }
                }
                FisherEstimate::MonteCarlo { samples, seed } => {
                    let example = (self.first + i) as u64;
                    let mut rng = Streams::new(seed).child("laplace/fisher", example).stream("targets");
                    let scale = 1.0 / (samples as f64).sqrt();
                    for place in place.chunks_exact_mut(outputs) {
                        likelihood.sample(f, &mut rng, drawn);
                        likelihood.gradient(drawn, f, &mut root[..outputs]);
                        place.iter_mut().zip(root.iter()).for_each(|(p, g)| *p = T::from_f64(scale * g));
                    }
                }
                FisherEstimate::Noise { samples, seed } => {
                    let own = likelihood.root_width();
                    let (root, normals) = root.split_at_mut(outputs * own);
                    likelihood.root(y, f, root);
                    let scale = 1.0 / (samples as f64).sqrt();
                    for (sample, place) in place.chunks_exact_mut(outputs).enumerate() {
                        let normals = &mut normals[..own];
                        standard_normals(sample_streams(seed, sample), self.first + i, normals);
                        for (p, row) in place.iter_mut().zip(root.chunks_exact(own)) {
                            *p = T::from_f64(
                                scale * row.iter().zip(&*normals).map(|(r, e)| r * e).sum::<f64>(),
                            );
                        }
                    }
                }
                FisherEstimate::Empirical => {
                    likelihood.gradient(y, f, &mut root[..outputs]);
                    place.iter_mut().zip(root.iter()).for_each(|(p, g)| *p = T::from_f64(*g));
                }
            }
        };
        let buffers =
            || (vec![0.0; outputs * (width.max(outputs) + 1)], vec![0.0; likelihood.target_width()]);
        parallel::chunks_with(&mut values, outputs * width, 16, buffers, one);
        Ok(Roots { width, values })
    }
}

/// The streams of one posterior sample, which do not depend on how many others there are.
pub(crate) fn sample_streams(seed: u64, sample: usize) -> Streams {
    Streams::new(seed).child("linear/sample", sample as u64)
}

/// The standard normals of one sample at one example: nothing need be stored to have them again.
pub(crate) fn standard_normals(streams: Streams, example: usize, out: &mut [f64]) {
    let mut rng = streams.child("linear/example", example as u64).stream("noise");
    out.iter_mut().for_each(|e| *e = StandardNormal.sample(&mut rng));
}

#[cfg(test)]
mod tests {
    use super::*;
    use posterior_likelihoods::Categorical;

    #[test]
    fn drawn_gradients_have_the_curvature_as_their_second_moment() {
        let likelihood = &OutputLikelihood::Categorical(Categorical::new(3).unwrap());
        let f = [0.4, -0.3, 0.1];
        let samples = 40_000;
        for estimate in
            [FisherEstimate::MonteCarlo { samples, seed: 3 }, FisherEstimate::Noise { samples, seed: 3 }]
        {
            let observed = OutputCurvature { likelihood, estimate, targets: &[0.0], outputs: &f, first: 0 };
            let rows = observed.roots::<f64>().unwrap();
            let mut sum = [0.0; 9];
            for row in rows.values.chunks_exact(3) {
                (0..9).for_each(|k| sum[k] += row[k / 3] * row[k % 3]);
            }
            let mut exact = [0.0; 9];
            likelihood.curvature(&[0.0], &f, &mut exact);
            // Products of two gradients lie within 1 of each other, those of normals have a variance of at most 2 B_ii B_kk < 1: 5 standard errors are below 5 / sqrt(samples).
            for (s, e) in sum.iter().zip(&exact) {
                assert!((s - e).abs() < 5.0 / (samples as f64).sqrt(), "{estimate:?} {s} {e}");
            }
        }
    }

    #[test]
    fn draws_belong_to_examples_and_not_to_batches() {
        let likelihood = &OutputLikelihood::Categorical(Categorical::new(3).unwrap());
        let (f, targets) = ([0.4, -0.3, 0.1, 0.2, 0.0, 0.3], [0.0, 1.0]);
        let estimate = FisherEstimate::MonteCarlo { samples: 5, seed: 3 };
        let both = OutputCurvature { likelihood, estimate, targets: &targets, outputs: &f, first: 6 };
        let second = OutputCurvature { targets: &targets[1..], outputs: &f[3..], first: 7, ..both };
        let (both, second) = (both.roots::<f64>().unwrap(), second.roots::<f64>().unwrap());
        assert_eq!(&both.values[15..], second.values);
    }
}
