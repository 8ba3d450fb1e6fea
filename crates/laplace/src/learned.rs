//! **What every posterior predicts**, whether it was conditioned on a curvature or found by a search of its own (inducing points, samples, a mean field, a temperature).

use crate::LaplaceError;
use crate::fit::FitOptions;
use crate::predict::{Latent, Wanted};
use crate::problem::Data;
use crate::run::Run;
use crate::scores::HeldOutReport;
use faer::Mat;
use posterior_likelihoods::{OutputLikelihood, Prediction};
use posterior_linear::structure::Conditioned;
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

/// What a posterior predicts of a network's outputs. Everything is asked with the network that it was fitted to.
pub trait Learned<T: Precision>: Send + Sync {
    /// Latent means and covariances of inputs `[examples, ...]`, one by one. A posterior has this or [`Self::latents`] of its own.
    ///
    /// # Errors
    /// When inputs do not fit the network.
    fn latent(&self, network: &Network<T>, x: &Array<T>, wanted: Wanted) -> Result<Latent, LaplaceError> {
        Ok(self.latents(network, x, wanted)?.swap_remove(0))
    }

    /// The same under each of several settings of one curvature; of other posteriors one.
    ///
    /// # Errors
    /// As [`Self::latent`].
    fn latents(
        &self,
        network: &Network<T>,
        x: &Array<T>,
        wanted: Wanted,
    ) -> Result<Vec<Latent>, LaplaceError> {
        Ok(vec![self.latent(network, x, wanted)?])
    }

    /// Predictive distributions that no Gaussian of [`Self::latent`] gives, and their densities at `targets` `[examples, width]`; None where there are no others.
    ///
    /// # Errors
    /// As [`Self::latent`]; a target that cannot be.
    fn predictive(
        &self,
        _network: &Network<T>,
        _x: &Array<T>,
        _targets: Option<&[f64]>,
    ) -> Option<Result<SampledPredictions, LaplaceError>> {
        None
    }

    /// The joint covariance of all outputs of all inputs, `[examples * C, examples * C]`, about the means of [`Self::latent`].
    ///
    /// # Errors
    /// When it would pass `memory` bytes or inputs do not fit.
    fn joint(&self, network: &Network<T>, x: &Array<T>, memory: u64) -> Result<Mat<f64>, LaplaceError>;

    /// The Gaussian of the weights, where the posterior is one that is stored.
    fn conditioned(&self) -> Option<&Conditioned> {
        None
    }

    /// Whether functions are drawn once, to be followed from input to input.
    fn draws_functions(&self) -> bool {
        false
    }

    /// Draws of functions at all inputs, `[samples, examples, C]`, the same functions for each call with the same seed; None where there are none.
    ///
    /// # Errors
    /// Where there are fewer than asked for; when inputs do not fit.
    fn function_samples(
        &self,
        _network: &Network<T>,
        _x: &Array<T>,
        _samples: usize,
        _seed: u64,
    ) -> Result<Option<Vec<f64>>, LaplaceError> {
        Ok(None)
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

    /// Adds the arrays of a file, under names that no other posterior has; none where a curvature is kept in their place.
    fn write(&self, _tensors: &mut Tensors) {}
}

/// What a search for a posterior returns.
#[derive(Clone, Debug)]
pub struct Found<P, R> {
    /// What predicts.
    pub posterior: P,
    /// The likelihood, with the noise that was learned but for the factor.
    pub likelihood: OutputLikelihood,
    /// Noise variance relative to the likelihood's; 1 where it has none, or where nothing is left to multiply.
    pub noise_variance: f64,
    /// Prior precisions by group, in the coordinates that the prior acts on; that of the search's first prior variance where it has no other.
    pub precisions: Vec<f64>,
    /// The linearised model's optimum in the network's own coordinates, where it was sought.
    pub mode: Option<Vec<f64>>,
    /// What was done.
    pub report: R,
    /// What unseen examples said of precisions, as factors on those of the search, and noise, where they chose.
    pub held_out: Option<HeldOutReport>,
    /// Things to know, in sentences.
    pub notes: Vec<String>,
}

impl<P, R> Found<P, R> {
    /// Of a search that has one precision at most, and multiplies no noise.
    pub(crate) fn new(
        posterior: P,
        likelihood: OutputLikelihood,
        precision: f64,
        report: R,
        notes: Vec<String>,
    ) -> Self {
        let (noise_variance, precisions) = (1.0, vec![precision]);
        Self { posterior, likelihood, noise_variance, precisions, mode: None, report, held_out: None, notes }
    }

    /// The same of any search, with the report in another form.
    pub(crate) fn boxed<T: Precision, S>(self, report: impl FnOnce(R) -> S) -> Found<Box<dyn Learned<T>>, S>
    where
        P: Learned<T> + 'static,
    {
        Found {
            posterior: Box::new(self.posterior),
            likelihood: self.likelihood,
            noise_variance: self.noise_variance,
            precisions: self.precisions,
            mode: self.mode,
            report: report(self.report),
            held_out: self.held_out,
            notes: self.notes,
        }
    }
}

/// A posterior that was found by a search of its own.
pub struct LearnedPosterior<T>(pub(crate) Box<dyn Learned<T>>);
