//! Predictions of the network at draws of its weights.

use super::MeanField;
use super::fit::VALUES;
use super::steps::{drawn, normals};
use crate::LaplaceError;
use crate::learned::{Learned, SampledPredictions};
use crate::predict::{Latent, Wanted, check_joint};
use faer::Mat;
use posterior_likelihoods::predictive::{average, log_average_exp, mixture_moments};
use posterior_likelihoods::{
    Covariance, Integration, LatentGaussian, OutputLikelihood, Prediction, PredictiveRule,
    PredictiveWorkspace,
};
use posterior_linalg::random::Streams;
use posterior_linalg::tiles::pieces;
use posterior_networks::{Array, Network, Precision, Selection};
use posterior_store::Tensors;
use posterior_tangent::{batch_size, check_outputs, doubles};

impl<T: Precision> MeanField<T> {
    /// Which weights are Gaussian.
    pub fn selection(&self) -> &Selection {
        &self.selection
    }

    /// The likelihood, with learned noise.
    pub fn likelihood(&self) -> &OutputLikelihood {
        &self.likelihood
    }

    /// Means of the weights.
    pub fn mean(&self) -> &[T] {
        &self.mean
    }

    /// Logarithms of their standard deviations.
    pub fn log_deviation(&self) -> &[T] {
        &self.log_deviation
    }

    /// Draws that predict, and the seed that they come from.
    pub fn samples(&self) -> (usize, u64) {
        (self.samples, self.seed)
    }

    /// Draw `k` of the weights: the same for every call.
    fn draw(&self, k: usize) -> &[T] {
        let d = self.selection.len();
        let draws = self.draws.get_or_init(|| {
            let streams = Streams::new(self.seed).child("laplace/mean-field/prediction", 0);
            let own = |k| drawn([&self.mean, &self.log_deviation], &normals(streams, k, d), 1.0);
            let mut all = Vec::with_capacity(self.samples * d);
            (0..self.samples).for_each(|k| all.extend(own(k)));
            all
        });
        &draws[k * d..(k + 1) * d]
    }

    /// Outputs of the network at each draw of the weights, `[samples, examples, C]`: functions that can be followed from input to input. Costs a forward pass for each draw.
    ///
    /// # Errors
    /// When inputs do not fit the network, or the network is not the one of the fit.
    pub fn sampled_outputs(&self, network: &Network<T>, x: &Array<T>) -> Result<Vec<f64>, LaplaceError> {
        check_outputs(network, &self.likelihood)?;
        let mut own = network.clone();
        let mut out = Vec::with_capacity(self.samples * x.rows() * self.likelihood.outputs());
        for k in 0..self.samples {
            self.selection.assign(self.draw(k), own.parameters_mut());
            for range in pieces(x.rows(), batch_size(network, 1)) {
                out.extend(doubles(own.forward(&x.slice_rows(range))?.values()));
            }
        }
        Ok(out)
    }

    /// Predictive distributions: averages over the draws of what the likelihood says at each of them, and their densities at `targets` `[examples, target width]`.
    ///
    /// # Errors
    /// As [`Self::sampled_outputs`]; a target that cannot be.
    pub fn predictive(
        &self,
        network: &Network<T>,
        x: &Array<T>,
        targets: Option<&[f64]>,
    ) -> Result<SampledPredictions, LaplaceError> {
        let sampled = self.sampled_outputs(network, x)?;
        let rule = PredictiveRule::new(self.likelihood.clone(), Integration::PlugIn)?;
        let (c, width) = (self.likelihood.outputs(), self.likelihood.target_width());
        let (certain, mut workspace) = (vec![0.0; c], PredictiveWorkspace::default());
        let mut out =
            SampledPredictions { predictions: Vec::new(), log_densities: targets.map(|_| Vec::new()) };
        for i in 0..x.rows() {
            let (mut predictions, mut densities, mut latents) = (Vec::new(), Vec::new(), Vec::new());
            for draw in sampled.chunks_exact(x.rows() * c) {
                let mean = &draw[i * c..(i + 1) * c];
                let latent = LatentGaussian { mean, covariance: Covariance::Diagonal(&certain) };
                predictions.push(rule.predict(latent)?);
                if let Some(targets) = targets {
                    let y = &targets[i * width..(i + 1) * width];
                    densities.push([rule.log_predictive_density_with(y, latent, &mut workspace)?]);
                }
                latents.push(&mean[..width.min(c)]);
            }
            out.predictions.push(mixture(&predictions, &latents));
            if let Some(all) = &mut out.log_densities {
                let densities: Vec<&[f64]> = densities.iter().map(|d| &d[..]).collect();
                all.extend(log_average_exp(&densities));
            }
        }
        Ok(out)
    }
}

impl<T: Precision> Learned<T> for MeanField<T> {
    /// Mean and covariance of the draws' outputs. **The mean is not the network's**, and the Gaussian of these moments is an approximation: [`Learned::predictive`] has none.
    fn latent(&self, network: &Network<T>, x: &Array<T>, wanted: Wanted) -> Result<Latent, LaplaceError> {
        let sampled = self.sampled_outputs(network, x)?;
        let (outputs, size) = (self.likelihood.outputs(), x.rows() * self.likelihood.outputs());
        let draws: Vec<&[f64]> = sampled.chunks_exact(size.max(1)).collect();
        let mean = if size == 0 { Vec::new() } else { average(&draws) };
        let covariance = vec![0.0; x.rows() * Latent::size(outputs, wanted)];
        let mut latent = Latent { outputs, mean, covariance, wanted, clipped: 0 };
        let each = 1.0 / (self.samples as f64).sqrt();
        for draw in draws {
            let apart: Vec<f64> = draw.iter().zip(&latent.mean).map(|(f, m)| each * (f - m)).collect();
            latent.add_squares(&apart);
        }
        Ok(latent)
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
    ) -> Result<Option<Vec<f64>>, LaplaceError> {
        let outputs = x.rows() * self.likelihood().outputs();
        let (own, drawn) = (self.samples().0, self.sampled_outputs(network, x)?);
        let draw = |k: usize| &drawn[(k % own) * outputs..][..outputs];
        Ok(Some((0..samples).flat_map(|k| draw(k).iter().copied()).collect()))
    }

    fn latent_bytes(&self, network: &Network<T>, examples: usize) -> u64 {
        let (samples, _) = self.samples();
        let batch = batch_size(network, 1).min(examples.max(1));
        let weights = self.selection().len() * (samples + 1) * size_of::<T>();
        let outputs = 2 * 8 * samples * examples * self.likelihood().outputs();
        (weights + outputs + batch * network.graph().activations() * size_of::<T>()) as u64
    }

    fn latent_flops(&self, network: &Network<T>) -> f64 {
        self.samples().0 as f64 * network.graph().flops() as f64
    }

    fn write(&self, tensors: &mut Tensors) {
        tensors.insert_vector(VALUES[0], &self.mean);
        tensors.insert_vector(VALUES[1], &self.log_deviation);
    }
}

/// One example's predictions as one; `latents` are its outputs under each draw.
fn mixture(predictions: &[Prediction], latents: &[&[f64]]) -> Prediction {
    let (mut probabilities, mut means, mut variances) = (Vec::new(), Vec::new(), Vec::new());
    for prediction in predictions {
        match prediction {
            Prediction::Classes(p) | Prediction::Events(p) => probabilities.push(&p[..]),
            Prediction::Moments { mean, variance, .. } => {
                means.push(&mean[..]);
                variances.push(&variance[..]);
            }
        }
    }
    match predictions[0] {
        Prediction::Classes(_) => Prediction::Classes(average(&probabilities)),
        Prediction::Events(_) => Prediction::Events(average(&probabilities)),
        Prediction::Moments { .. } => {
            let (mean, variance) = mixture_moments(&means, &variances);
            let certain = vec![0.0; latents[0].len()];
            let (_, latent_variance) = mixture_moments(latents, &vec![&certain[..]; latents.len()]);
            Prediction::Moments { mean, variance, latent_variance }
        }
    }
}
