//! **Posteriors that are found by a search of their own** (inducing points, samples, a mean field, a temperature) rather than from a curvature and a prior that is chosen for it afterwards.

use crate::ella::EllaReport;
use crate::fixed_mean::{FixedMean, FixedMeanReport};
use crate::gwi::{Gwi, GwiReport};
use crate::mean_field::{MeanField, MeanFieldSummary, SampledPredictions};
use crate::plan::check_joint;
use crate::sampled::{Sampled, SampledReport};
use crate::temperature::{Temperature, TemperatureReport};
use crate::{Approximation, FitOptions, LaplaceError, Latent, Stage, Wanted};
use faer::Mat;
use posterior_likelihoods::OutputLikelihood;
use posterior_linalg::compiled_here;
use posterior_networks::train::Examples;
use posterior_networks::{Array, Network, PerNetworkPrecision, Precision, Selection};
use posterior_optim::Signal;
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
        _fitted: (&Network<T>, &dyn Examples<T>, &OutputLikelihood),
        options: &FitOptions,
        _observer: &mut dyn FnMut(Stage, usize, usize) -> Signal,
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

/// How one of them was found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LearnedReport {
    /// By temperature scaling.
    Temperature(TemperatureReport),
    /// By mean-field fine-tuning.
    MeanField(MeanFieldSummary),
    /// As samples.
    Sampled {
        /// How they were found.
        report: SampledReport,
        /// What is needed beside their arrays ([`Sampled::header`]).
        header: serde_json::Value,
    },
    /// As a sparse process.
    FixedMean(FixedMeanReport),
    /// As a covariance around the network.
    Gwi(GwiReport),
    /// Along directions of the tangent at landmarks.
    Ella(EllaReport),
}

/// Nats a row up to which two scores are the same.
const SAME_SCORE: f64 = 1e-3;

/// A remark where the network alone scores better on the rows that judged a process around it.
pub(crate) fn no_better(own: Option<f64>, plain: Option<f64>) -> Option<String> {
    let (own, plain) = (own?, plain?);
    (own > plain + SAME_SCORE).then(|| {
        format!(
            "on the validation rows the network alone is better ({plain:.4} nats a row) than with these error bars ({own:.4}): take more steps, another kernel or another curvature, or `temperature`"
        )
    })
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
    compiled_here!(T: Precision, PerNetworkPrecision; ['a] restored, (
        network: &'a Network<T> = network,
        selection: &'a Selection = selection,
        options: &'a FitOptions = options,
        likelihood: &'a OutputLikelihood = likelihood,
        report: Option<&'a LearnedReport> = report,
        tensors: &'a mut Tensors = tensors,
    ) -> Result<LearnedPosterior<T>, StoreError>)
}

fn restored<T: Precision>(
    network: &Network<T>,
    selection: &Selection,
    options: &FitOptions,
    likelihood: &OutputLikelihood,
    report: Option<&LearnedReport>,
    tensors: &mut Tensors,
) -> Result<LearnedPosterior<T>, StoreError> {
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
        (Approximation::Sampled(_), Some(LearnedReport::Sampled { header, .. })) => {
            Box::new(Sampled::<T>::read(selection, header, tensors)?)
        }
        (Approximation::FixedMean(own), Some(LearnedReport::FixedMean(_))) => {
            Box::new(FixedMean::<T>::read(network, selection, own, tensors)?)
        }
        (Approximation::Gwi(own), Some(LearnedReport::Gwi(_))) => {
            Box::new(Gwi::read(network.graph(), own, likelihood, tensors)?)
        }
        _ => return Err(tensors.corrupt("its header does not say how its posterior was found")),
    };
    Ok(LearnedPosterior(posterior))
}

impl<T: Precision> Learned<T> for Temperature {
    fn latent(&self, network: &Network<T>, x: &Array<T>, wanted: Wanted) -> Result<Latent, LaplaceError> {
        Temperature::latent(self, network, x, wanted)
    }

    /// Zeros: outputs are certain.
    fn joint(&self, network: &Network<T>, x: &Array<T>, memory: u64) -> Result<Mat<f64>, LaplaceError> {
        let each = network.graph().output_shape().iter().product::<usize>();
        check_joint(x.rows(), each, 0, memory)?;
        let outputs = x.rows() * each;
        Ok(Mat::zeros(outputs, outputs))
    }

    fn draws_functions(&self) -> bool {
        true
    }

    fn function_samples(
        &self,
        network: &Network<T>,
        x: &Array<T>,
        samples: usize,
        _seed: u64,
    ) -> Result<Vec<f64>, LaplaceError> {
        Ok(Temperature::latent(self, network, x, Wanted::Diagonal)?.mean.repeat(samples))
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
        check_joint(x.rows(), self.likelihood().outputs(), samples, memory)?;
        let drawn = self.sampled_outputs(network, x)?;
        let mean: Vec<f64> = (0..outputs)
            .map(|i| (0..samples).map(|k| drawn[k * outputs + i]).sum::<f64>() / samples as f64)
            .collect();
        let apart = Mat::from_fn(outputs, samples, |i, k| {
            (drawn[k * outputs + i] - mean[i]) / (samples as f64).sqrt()
        });
        Ok(&apart * apart.transpose())
    }

    fn draws_functions(&self) -> bool {
        true
    }

    /// Draws that predict, again from the first where more are asked for.
    fn function_samples(
        &self,
        network: &Network<T>,
        x: &Array<T>,
        samples: usize,
        _seed: u64,
    ) -> Result<Vec<f64>, LaplaceError> {
        let outputs = x.rows() * self.likelihood().outputs();
        let (own, drawn) = (self.samples().0, self.sampled_outputs(network, x)?);
        let draw = |k: usize| &drawn[(k % own) * outputs..][..outputs];
        Ok((0..samples).flat_map(|k| draw(k).iter().copied()).collect())
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

impl<T: Precision> Learned<T> for Sampled<T> {
    fn latent(&self, network: &Network<T>, x: &Array<T>, wanted: Wanted) -> Result<Latent, LaplaceError> {
        Sampled::latent(self, network, x, wanted)
    }

    fn joint(&self, network: &Network<T>, x: &Array<T>, memory: u64) -> Result<Mat<f64>, LaplaceError> {
        Sampled::joint(self, network, x, memory)
    }

    fn draws_functions(&self) -> bool {
        true
    }

    /// With further samples; those that there are stay.
    fn improved(
        &self,
        (network, examples, likelihood): (&Network<T>, &dyn Examples<T>, &OutputLikelihood),
        options: &FitOptions,
        observer: &mut dyn FnMut(Stage, usize, usize) -> Signal,
    ) -> Result<(Box<dyn Learned<T>>, serde_json::Value), LaplaceError> {
        let Approximation::Sampled(own) = &options.approximation else {
            return Err(LaplaceError::Request(
                "samples are asked for by options of another posterior".into(),
            ));
        };
        let kept = self.samples().ncols();
        let Some(more) = own.samples.checked_sub(kept).filter(|more| *more > 0) else {
            return Err(LaplaceError::Request(format!(
                "the model has {kept} samples: ask for more than that (--samples)"
            )));
        };
        let extended = self.extended(network, examples, likelihood, more, own, options.memory, observer)?;
        let header = extended.header();
        Ok((Box::new(extended), header))
    }

    /// The samples that the file holds, the first so many.
    fn function_samples(
        &self,
        network: &Network<T>,
        x: &Array<T>,
        samples: usize,
        _seed: u64,
    ) -> Result<Vec<f64>, LaplaceError> {
        let drawn = Sampled::function_samples(self, network, x, samples)?;
        Ok((0..drawn.ncols()).flat_map(|k| drawn.col_as_slice(k).to_vec()).collect())
    }

    fn latent_bytes(&self, network: &Network<T>, examples: usize) -> u64 {
        crate::plan::moved_bytes(network, self.selection(), examples, self.samples().ncols())
    }

    fn latent_flops(&self, network: &Network<T>) -> f64 {
        network.graph().flops() as f64 * (1.0 + 2.0 * self.samples().ncols() as f64)
    }

    fn write(&self, tensors: &mut Tensors) {
        Sampled::write(self, tensors);
    }
}

impl<T: Precision> Learned<T> for FixedMean<T> {
    fn latent(&self, network: &Network<T>, x: &Array<T>, wanted: Wanted) -> Result<Latent, LaplaceError> {
        FixedMean::latent(self, network, x, wanted)
    }

    fn joint(&self, network: &Network<T>, x: &Array<T>, memory: u64) -> Result<Mat<f64>, LaplaceError> {
        FixedMean::joint(self, network, x, memory)
    }

    fn latent_bytes(&self, network: &Network<T>, examples: usize) -> u64 {
        FixedMean::latent_bytes(self, network, examples)
    }

    fn latent_flops(&self, network: &Network<T>) -> f64 {
        FixedMean::latent_flops(self, network)
    }

    fn write(&self, tensors: &mut Tensors) {
        FixedMean::write(self, tensors);
    }
}

impl<T: Precision> Learned<T> for Gwi {
    fn latent(&self, network: &Network<T>, x: &Array<T>, wanted: Wanted) -> Result<Latent, LaplaceError> {
        Gwi::latent(self, network, x, wanted)
    }

    fn joint(&self, network: &Network<T>, x: &Array<T>, memory: u64) -> Result<Mat<f64>, LaplaceError> {
        Gwi::joint(self, network, x, memory)
    }

    fn latent_bytes(&self, network: &Network<T>, examples: usize) -> u64 {
        Gwi::latent_bytes(self, network, examples)
    }

    fn latent_flops(&self, network: &Network<T>) -> f64 {
        Gwi::latent_flops(self, network)
    }

    fn write(&self, tensors: &mut Tensors) {
        Gwi::write(self, tensors);
    }
}
