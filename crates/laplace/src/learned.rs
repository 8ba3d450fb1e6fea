//! **Posteriors that are found by a search of their own** (inducing points, samples, a mean field, a temperature) rather than from a curvature and a prior that is chosen for it afterwards.

use crate::LaplaceError;
use crate::fit::FitOptions;
use crate::predict::{Latent, Wanted};
use crate::problem::Data;
use crate::run::Run;
use faer::Mat;
use posterior_likelihoods::Prediction;
use posterior_networks::{Array, Network, Precision};
use posterior_store::Tensors;

/// Predictions under the mixture of all draws.
#[derive(Clone, Debug, PartialEq)]
pub struct SampledPredictions {
    /// One for each example. Of numbers, the latent variance is that of the means of the draws.
    pub predictions: Vec<Prediction>,
    /// `log (1/K) sum_k p(y | g_k(x))` of each example, where targets were given.
    pub log_densities: Option<Vec<f64>>,
}

/// What such a posterior says of a network's outputs. Everything is asked with the network that it was fitted to.
pub(crate) trait Learned<T: Precision>: Send + Sync {
    /// Latent means and covariances of inputs, one by one.
    fn latent(&self, network: &Network<T>, x: &Array<T>, wanted: Wanted) -> Result<Latent, LaplaceError>;

    /// Predictive distributions that no Gaussian of [`Self::latent`] gives, and their densities at `targets` `[examples, width]`; None where there are no others.
    fn predictive(
        &self,
        _network: &Network<T>,
        _x: &Array<T>,
        _targets: Option<&[f64]>,
    ) -> Option<Result<SampledPredictions, LaplaceError>> {
        None
    }

    /// The joint covariance of all outputs of all inputs, `[examples * C, examples * C]`, about the means of [`Self::latent`].
    fn joint(&self, network: &Network<T>, x: &Array<T>, memory: u64) -> Result<Mat<f64>, LaplaceError>;

    /// Whether functions are drawn once, to be followed from input to input.
    fn draws_functions(&self) -> bool {
        false
    }

    /// Draws of functions at all inputs, `[samples, examples, C]`, the same functions for each call with the same seed.
    ///
    /// # Errors
    /// Where [`Self::draws_functions`] says that there are none, or fewer than asked for; when inputs do not fit.
    fn function_samples(
        &self,
        _network: &Network<T>,
        _x: &Array<T>,
        _samples: usize,
        _seed: u64,
    ) -> Result<Vec<f64>, LaplaceError> {
        let problem = "this posterior draws values together for all inputs, not functions";
        Err(LaplaceError::Request(problem.into()))
    }

    /// The same posterior, better: made of more, for options that ask for more, from the data of the fit. Also what belongs to the header now.
    ///
    /// # Errors
    /// By default, since most posteriors have nothing that more could be added to.
    fn improved(
        &self,
        _data: &Data<'_, T>,
        options: &FitOptions,
        _run: &mut Run<'_>,
    ) -> Result<(Box<dyn Learned<T>>, serde_json::Value), LaplaceError> {
        Err(LaplaceError::Request(format!(
            "a model by `{}` cannot be continued: fit it again",
            options.approximation.name()
        )))
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
