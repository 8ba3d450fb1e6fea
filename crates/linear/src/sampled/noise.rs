//! What is random about a sample, and stays as it is while precisions change.

use super::model::{Observer, SampledModel, add};
use crate::curvature::{OutputCurvature, sample_streams, standard_normals};
use crate::features::FeatureMap;
use crate::{LinearError, check};
use faer::Mat;
use posterior_linalg::Real;
use posterior_linalg::parallel;
use posterior_linalg::random::Streams;
use rand_distr::{Distribution, StandardNormal};
use std::ops::Range;

/// The unit-scale parts of K samples: `u_j = diag(s) sum_i Phi_i' R_i e_ij` and standard normals `w_j` (both d x K). Sample j is the same whatever others there are: it is known by the seed and its number.
#[derive(Clone, Debug, PartialEq)]
pub struct Noise {
    /// Numbers of the samples.
    pub samples: Range<usize>,
    /// The seed.
    pub seed: u64,
    /// `u`, d x K.
    pub pulled: Mat<f64>,
    /// `w`, d x K.
    pub white: Mat<f64>,
}

impl Noise {
    /// Draws it. Cost: one pass with K products back; nothing is stored of examples.
    ///
    /// # Errors
    /// [`LinearError::Empty`] without samples; those of the features and of reading the data; [`LinearError::Interrupted`].
    pub fn draw<T: Real, F: FeatureMap<T>>(
        model: &SampledModel<'_, T, F>,
        samples: Range<usize>,
        seed: u64,
        observer: Observer<'_>,
    ) -> Result<Self, LinearError> {
        if samples.is_empty() {
            return Err(LinearError::Empty { what: "samples" });
        }
        let (d, k) = (model.dimension(), samples.len());
        let mut pulled = Mat::zeros(d, k);
        let at_once = model.features().examples_at_once(k);
        model.pass(at_once, None, observer, &mut |numbers, features, observed| {
            let noise: Mat<T> = output_noise(numbers, observed, &samples, seed);
            add(&mut pulled, &features.apply_transpose(noise.as_ref())?);
            Ok(())
        })?;
        model.scale(&mut pulled);
        let white = weight_normals(d, &samples, seed);
        Ok(Self { samples, seed, pulled, white })
    }

    /// `b_j = s^(1/2) u_j + A^(1/2) w_j` (d x K): the samples are `H^-1 b`.
    ///
    /// # Errors
    /// [`LinearError::Shape`] for precisions of other weights.
    pub fn right_hand_sides(&self, precisions: &[f64], strength: f64) -> Result<Mat<f64>, LinearError> {
        check::same("prior precisions", self.white.nrows(), precisions.len())?;
        let root = strength.sqrt();
        Ok(Mat::from_fn(self.white.nrows(), self.white.ncols(), |i, j| {
            root * self.pulled[(i, j)] + precisions[i].sqrt() * self.white[(i, j)]
        }))
    }

    /// Draws from the prior, `A^(-1/2) w` (d x K): where samples begin.
    ///
    /// # Errors
    /// As [`Self::right_hand_sides`].
    pub fn prior_draws(&self, precisions: &[f64]) -> Result<Mat<f64>, LinearError> {
        check::same("prior precisions", self.white.nrows(), precisions.len())?;
        Ok(Mat::from_fn(self.white.nrows(), self.white.ncols(), |i, j| {
            self.white[(i, j)] / precisions[i].sqrt()
        }))
    }
}

/// The standard normals of the weights of all samples, d x K: the other half of what is random about a sample, beside [`observed_normals`].
pub fn weight_normals(dimension: usize, samples: &Range<usize>, seed: u64) -> Mat<f64> {
    let mut out = Mat::zeros(dimension, samples.len());
    parallel::columns(out.as_mut(), 1, |j, column| {
        let mut rng = sample_streams(seed, samples.start + j).stream("weights");
        column.iter_mut().for_each(|w| *w = StandardNormal.sample(&mut rng));
    });
    out
}

/// The normals of all samples at one example, `[samples, root width]`.
pub(super) fn example_normals(streams: &[Streams], example: usize, width: usize) -> Vec<f64> {
    let mut out = vec![0.0; streams.len() * width];
    for (streams, own) in streams.iter().zip(out.chunks_exact_mut(width.max(1))) {
        standard_normals(*streams, example, own);
    }
    out
}

/// The normals `e_j` of all samples at all examples, examples S x K for roots of S columns: what function space observes.
pub fn observed_normals(examples: usize, width: usize, samples: &Range<usize>, seed: u64) -> Mat<f64> {
    let streams: Vec<Streams> = samples.clone().map(|j| sample_streams(seed, j)).collect();
    let by_example: Vec<Vec<f64>> = parallel::map(examples, 8, |i| example_normals(&streams, i, width));
    Mat::from_fn(examples * width, samples.len(), |row, j| by_example[row / width][j * width + row % width])
}

/// `R_i e_ij` of some examples, nC x K.
pub(super) fn output_noise<T: Real>(
    numbers: &[usize],
    observed: &OutputCurvature<'_>,
    samples: &Range<usize>,
    seed: u64,
) -> Mat<T> {
    let likelihood = observed.likelihood;
    let (c, width, k) = (likelihood.outputs(), likelihood.root_width(), samples.len());
    let streams: Vec<Streams> = samples.clone().map(|j| sample_streams(seed, j)).collect();
    let one = |i: usize| {
        let mut root = vec![0.0; c * width];
        likelihood.root(observed.target(i), observed.output(i), &mut root);
        let normals = example_normals(&streams, numbers[i], width);
        let product = |j: usize, o: usize| {
            let own = root[o * width..(o + 1) * width].iter().zip(&normals[j * width..(j + 1) * width]);
            T::from_f64(own.map(|(r, e)| r * e).sum::<f64>())
        };
        (0..c * k).map(|p| product(p / c, p % c)).collect::<Vec<T>>()
    };
    let by_example: Vec<Vec<T>> = parallel::map(numbers.len(), 8, one);
    Mat::from_fn(numbers.len() * c, k, |row, j| by_example[row / c][j * c + row % c])
}
