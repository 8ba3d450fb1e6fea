//! **Posteriors that are found by a search of their own** (inducing points, samples, a mean field, a temperature) rather than from a curvature and a prior that is chosen for it afterwards.

use crate::{LaplaceError, Latent, Wanted};
use faer::Mat;
use posterior_networks::{Array, Network, Precision};
use posterior_store::Tensors;

/// What such a posterior says of a network's outputs. Everything is asked with the network that it was fitted to.
pub(crate) trait Learned<T: Precision>: Send + Sync {
    /// Latent means and covariances of inputs, one by one.
    fn latent(&self, network: &Network<T>, x: &Array<T>, wanted: Wanted) -> Result<Latent, LaplaceError>;

    /// The joint covariance of all outputs of all inputs, `[examples * C, examples * C]`, about the means of [`Self::latent`].
    fn joint(&self, network: &Network<T>, x: &Array<T>, memory: u64) -> Result<Mat<f64>, LaplaceError>;

    /// Draws of functions at all inputs, `[samples, examples, C]`, the same functions for each call with the same seed; None where values are drawn from their joint distribution at these inputs.
    fn function_samples(
        &self,
        _network: &Network<T>,
        _x: &Array<T>,
        _samples: usize,
        _seed: u64,
    ) -> Option<Result<Vec<f64>, LaplaceError>> {
        None
    }

    /// Bytes that [`Self::latent`] works in beside its result, for so many examples at most.
    fn latent_bytes(&self, network: &Network<T>, examples: usize) -> u64;

    /// Multiplications and additions of [`Self::latent`] for one example.
    fn latent_flops(&self, network: &Network<T>) -> f64;

    /// Its arrays, under names that no other posterior has.
    fn write(&self, tensors: &mut Tensors);
}

/// One of them.
pub struct LearnedPosterior<T>(pub(crate) Box<dyn Learned<T>>);
