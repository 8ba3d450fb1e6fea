//! Draws of weights and functions.

use super::result::Laplace;
use crate::LaplaceError;
use crate::predict::{Wanted, displaced};
use faer::linalg::matmul::triangular::BlockStructure::{Rectangular, TriangularLower};
use faer::linalg::matmul::triangular::matmul;
use faer::{Accum, Mat};
use posterior_linalg::cholesky::{Cholesky, JitterPolicy};
use posterior_linalg::dense::parallelism;
use posterior_linalg::random::Streams;
use posterior_linear::structure::{Conditioned, StructureError};
use posterior_networks::{Array, Network, Precision};
use rand_distr::{Distribution, StandardNormal};

impl<T: Precision> Laplace<T> {
    /// The Gaussian of the weights.
    fn gaussian(&self) -> Result<&Conditioned, LaplaceError> {
        self.posterior.conditioned().ok_or_else(|| {
            LaplaceError::Request(
                "this posterior is one of functions, which no weights can be drawn from; use the joint covariance of the inputs, or another curvature".into(),
            )
        })
    }

    /// Draws of the weights' deviation from their mode, `[samples, weights]`. Sample `k` depends on the seed and `k` only.
    ///
    /// # Errors
    /// For posteriors of functions, where weights have no density of their own.
    pub fn weight_samples(&self, samples: usize, seed: u64) -> Result<Array<T>, LaplaceError> {
        let gaussian = self.gaussian()?;
        let mut values = Vec::with_capacity(samples * self.selection.len());
        for k in 0..samples {
            values.extend(gaussian.sample(sample_streams(seed, k)).into_iter().map(T::from_f64));
        }
        Ok(Array::new(vec![samples, self.selection.len()], values))
    }

    /// Function samples `g(x) + J(x) z_k` of the linearised network (`glm`), `[samples, examples, C]`: the same functions for every call with the same seed. A [displacement](super::ModeSummary::displacement)
    /// is added times a standard normal number of each sample, which gives samples the covariance of [`Self::joint`]. Posteriors that are no distribution of weights (function space, inducing points) draw values at these inputs from their joint covariance, which may take `memory` bytes.
    ///
    /// # Errors
    /// When inputs do not fit, or the joint covariance would pass the memory.
    pub fn function_samples(
        &self,
        network: &Network<T>,
        x: &Array<T>,
        samples: usize,
        seed: u64,
        memory: u64,
    ) -> Result<Vec<f64>, LaplaceError> {
        if self.posterior.conditioned().is_some() {
            return self.linear_samples(network, x, samples, seed);
        }
        let Some(mut drawn) = self.posterior.function_samples(network, x, samples, seed)? else {
            return self.joint_samples(network, x, (samples, seed), memory);
        };
        if let Some(displacement) = &self.displacement {
            let moved = displaced(network, &self.selection, x, displacement)?;
            for (k, own) in drawn.chunks_exact_mut(moved.len().max(1)).enumerate() {
                let normal = along_displacement(seed, k);
                own.iter_mut().zip(&moved).for_each(|(f, m)| *f += normal * m);
            }
        }
        Ok(drawn)
    }

    /// The same of a Gaussian of the weights.
    #[inline(never)]
    fn linear_samples(
        &self,
        network: &Network<T>,
        x: &Array<T>,
        samples: usize,
        seed: u64,
    ) -> Result<Vec<f64>, LaplaceError> {
        let mut draws = self.weight_samples(samples, seed)?;
        if let Some(displacement) = &self.displacement {
            for (k, draw) in draws.values_mut().chunks_exact_mut(displacement.len().max(1)).enumerate() {
                let normal = along_displacement(seed, k);
                draw.iter_mut().zip(displacement).for_each(|(z, d)| *z += T::from_f64(normal) * *d);
            }
        }
        let outputs: usize = network.graph().output_shape().iter().product();
        let mut out = vec![0.0; samples * x.rows() * outputs];
        let size = posterior_tangent::batch_size(network, samples.max(1));
        for range in posterior_linalg::tiles::pieces(x.rows(), size) {
            let trace = network.trace(x.slice_rows(range.clone()))?;
            let tangents = trace.jvp(&self.selection, &draws)?;
            for (i, n) in range.enumerate() {
                for k in 0..samples {
                    let (g, t) = (trace.output().row(i), tangents.row(i * samples + k));
                    let place = &mut out[(k * x.rows() + n) * outputs..][..outputs];
                    place.iter_mut().zip(g).zip(t).for_each(|((o, g), t)| *o = g.to_f64() + t.to_f64());
                }
            }
        }
        Ok(out)
    }

    /// Outputs of the network itself at sampled weights (`nn`), `[samples, examples, C]`: the plain Laplace approximation, known to leave the data (thesis figure 3.5); for contrast.
    ///
    /// # Errors
    /// As [`Self::weight_samples`], or when inputs do not fit.
    #[inline(never)]
    pub fn network_samples(
        &self,
        network: &Network<T>,
        x: &Array<T>,
        samples: usize,
        seed: u64,
    ) -> Result<Vec<f64>, LaplaceError> {
        let trained = self.selection.flatten(network.parameters());
        let (mut moved, mut out) = (network.clone(), Vec::new());
        for k in 0..samples {
            let draw = self.gaussian()?.sample(sample_streams(seed, k));
            let weights: Vec<T> = trained.iter().zip(draw).map(|(v, z)| *v + T::from_f64(z)).collect();
            self.selection.assign(&weights, moved.parameters_mut());
            out.extend(posterior_tangent::doubles(moved.forward(x)?.values()));
        }
        Ok(out)
    }

    /// Values at these inputs, drawn from their joint distribution.
    fn joint_samples(
        &self,
        network: &Network<T>,
        x: &Array<T>,
        (samples, seed): (usize, u64),
        memory: u64,
    ) -> Result<Vec<f64>, LaplaceError> {
        let covariance = self.joint(network, x, memory)?;
        let n = covariance.nrows();
        let factor = Cholesky::of(covariance.as_ref(), JitterPolicy::default())
            .map_err(|source| StructureError::Factor { block: "the joint covariance".into(), source })?;
        let mean = self.latent(network, x, Wanted::Diagonal)?.mean;
        let mut normals = Mat::<f64>::zeros(n, samples);
        for (k, column) in normals.col_iter_mut().enumerate() {
            let mut rng = sample_streams(seed, k).stream("laplace/joint");
            column.iter_mut().for_each(|z| *z = StandardNormal.sample(&mut rng));
        }
        let mut draws = Mat::<f64>::zeros(n, samples);
        // What stands above the diagonal of the factor means nothing.
        matmul(
            draws.as_mut(),
            Rectangular,
            Accum::Replace,
            factor.factor(),
            TriangularLower,
            normals.as_ref(),
            Rectangular,
            1.0,
            parallelism(n, samples),
        );
        let draw = |k: usize| mean.iter().enumerate().map(move |(i, m)| (i, k, *m));
        Ok((0..samples).flat_map(draw).map(|(i, k, m)| m + draws[(i, k)]).collect())
    }
}

/// Random streams of sample `k`.
fn sample_streams(seed: u64, k: usize) -> Streams {
    Streams::new(seed).child("laplace/sample", k as u64)
}

/// The standard normal number by which sample `k` goes along a displacement.
fn along_displacement(seed: u64, k: usize) -> f64 {
    let mut rng = sample_streams(seed, k).stream("laplace/displacement");
    StandardNormal.sample(&mut rng)
}
