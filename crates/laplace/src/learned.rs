//! **Posteriors that are found by a search of their own** (inducing points, samples, a mean field, a temperature) rather than from a curvature and a prior that is chosen for it afterwards.

use crate::mean_field::{MeanField, MeanFieldSummary, SampledPredictions};
use crate::temperature::{Temperature, TemperatureReport};
use crate::{Approximation, FitOptions, LaplaceError, Latent, Wanted};
use faer::Mat;
use posterior_likelihoods::OutputLikelihood;
use posterior_networks::{Array, Network, Precision, Selection};
use posterior_store::{StoreError, Tensors};
use serde::{Deserialize, Serialize};

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

/// How one of them was found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LearnedReport {
    /// By temperature scaling.
    Temperature(TemperatureReport),
    /// By mean-field fine-tuning.
    MeanField(MeanFieldSummary),
}

/// The arrays of one as they were saved, for a fit with these options under a likelihood.
///
/// # Errors
/// When they are missing, or of another network or fit.
pub fn read<T: Precision>(
    network: &Network<T>,
    selection: &Selection,
    options: &FitOptions,
    likelihood: &OutputLikelihood,
    report: Option<&LearnedReport>,
    tensors: &mut Tensors,
) -> Result<LearnedPosterior<T>, StoreError> {
    let _ = network;
    let posterior: Box<dyn Learned<T>> = match (&options.approximation, report) {
        (Approximation::Temperature, Some(LearnedReport::Temperature(report))) => {
            Box::new(Temperature::read(likelihood, *report, tensors)?)
        }
        (Approximation::MeanField(own), Some(LearnedReport::MeanField(report))) => {
            let draws = (own.samples, options.seed);
            let read =
                MeanField::<T>::read(selection.clone(), likelihood.clone(), draws, report.clone(), tensors);
            Box::new(read.map_err(|e| tensors.corrupt(e))?)
        }
        _ => return Err(tensors.corrupt("its header does not say how its posterior was found")),
    };
    Ok(LearnedPosterior(posterior))
}

/// Refuses a joint covariance of so many outputs that would pass `memory` bytes.
pub(crate) fn check_joint(outputs: usize, memory: u64) -> Result<(), LaplaceError> {
    let needed = (outputs as u64).saturating_mul(outputs as u64).saturating_mul(8);
    if needed <= memory {
        return Ok(());
    }
    Err(LaplaceError::Memory {
        what: format!("the joint covariance of {outputs} outputs"),
        needed,
        allowed: memory,
        remedy: "ask for fewer inputs at a time, or draw functions instead".into(),
    })
}

impl<T: Precision> Learned<T> for Temperature {
    fn latent(&self, network: &Network<T>, x: &Array<T>, wanted: Wanted) -> Result<Latent, LaplaceError> {
        Temperature::latent(self, network, x, wanted)
    }

    /// Zeros: outputs are certain.
    fn joint(&self, network: &Network<T>, x: &Array<T>, memory: u64) -> Result<Mat<f64>, LaplaceError> {
        let outputs = x.rows() * network.graph().output_shape().iter().product::<usize>();
        check_joint(outputs, memory)?;
        Ok(Mat::zeros(outputs, outputs))
    }

    fn function_samples(
        &self,
        network: &Network<T>,
        x: &Array<T>,
        samples: usize,
        _seed: u64,
    ) -> Option<Result<Vec<f64>, LaplaceError>> {
        Some(
            Temperature::latent(self, network, x, Wanted::Diagonal).map(|latent| latent.mean.repeat(samples)),
        )
    }

    fn latent_bytes(&self, network: &Network<T>, examples: usize) -> u64 {
        let batch = posterior_tangent::batch_size(network, 1).min(examples.max(1));
        (batch * network.graph().activations() * size_of::<T>()) as u64
    }

    fn latent_flops(&self, network: &Network<T>) -> f64 {
        network.graph().flops() as f64
    }

    fn write(&self, tensors: &mut Tensors) {
        Temperature::write(self, tensors);
    }
}

impl<T: Precision> Learned<T> for MeanField<T> {
    fn latent(&self, network: &Network<T>, x: &Array<T>, wanted: Wanted) -> Result<Latent, LaplaceError> {
        MeanField::latent(self, network, x, wanted)
    }

    fn predictive(
        &self,
        network: &Network<T>,
        x: &Array<T>,
        targets: Option<&[f64]>,
    ) -> Option<Result<SampledPredictions, LaplaceError>> {
        Some(MeanField::predictive(self, network, x, targets))
    }

    fn joint(&self, network: &Network<T>, x: &Array<T>, memory: u64) -> Result<Mat<f64>, LaplaceError> {
        let (samples, _) = self.samples();
        let outputs = x.rows() * self.likelihood().outputs();
        check_joint(outputs, memory)?;
        let drawn = self.sampled_outputs(network, x)?;
        let mean: Vec<f64> = (0..outputs)
            .map(|i| (0..samples).map(|k| drawn[k * outputs + i]).sum::<f64>() / samples as f64)
            .collect();
        let apart = Mat::from_fn(outputs, samples, |i, k| {
            (drawn[k * outputs + i] - mean[i]) / (samples as f64).sqrt()
        });
        Ok(&apart * apart.transpose())
    }

    /// Draws that predict, again from the first where more are asked for.
    fn function_samples(
        &self,
        network: &Network<T>,
        x: &Array<T>,
        samples: usize,
        _seed: u64,
    ) -> Option<Result<Vec<f64>, LaplaceError>> {
        let outputs = x.rows() * self.likelihood().outputs();
        let own = self.samples().0;
        Some(self.sampled_outputs(network, x).map(|drawn| {
            let draw = |k: usize| &drawn[(k % own) * outputs..][..outputs];
            (0..samples).flat_map(|k| draw(k).iter().copied()).collect()
        }))
    }

    fn latent_bytes(&self, network: &Network<T>, examples: usize) -> u64 {
        let (samples, _) = self.samples();
        let batch = posterior_tangent::batch_size(network, 1).min(examples.max(1));
        let weights = self.selection().len() * (samples + 1) * size_of::<T>();
        let outputs = 2 * 8 * samples * examples * self.likelihood().outputs();
        (weights + outputs + batch * network.graph().activations() * size_of::<T>()) as u64
    }

    fn latent_flops(&self, network: &Network<T>) -> f64 {
        self.samples().0 as f64 * network.graph().flops() as f64
    }

    fn write(&self, tensors: &mut Tensors) {
        MeanField::write(self, tensors);
    }
}
