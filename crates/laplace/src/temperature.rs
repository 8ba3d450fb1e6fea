//! **Temperature scaling**: one number beside a trained network, chosen on examples that it has not seen; the cheapest error bars, and what others must beat.
//!
//! Logits of classes and events are divided by a temperature (Guo et al. 2017, *On calibration of modern neural networks*); of Gaussian noise, all variances are multiplied by one factor, which
//! is the trained network with noise of spec `valla`, section 7.1, without its grid. The network's outputs stay certain: predictions are those at the (scaled) outputs, and inputs far from the data
//! look as safe as their outputs claim.
//!
//! The mean negative log likelihood of the held-out examples is convex in the inverse temperature (a log-concave likelihood along a line), so that safeguarded Newton steps on its slope find the
//! only minimum; the factor of the noise has a closed form. Either costs one forward pass of the held-out examples, whose outputs are kept: 8 bytes for each.

use crate::LaplaceError;
use crate::error::check_memory;
use crate::learned::Learned;
use crate::predict::{Latent, Wanted, check_joint};
use crate::problem::{Data, Problem};
use crate::run::{Run, Stage};
use crate::scores::scaled_noise;
use faer::Mat;
use posterior_likelihoods::OutputLikelihood;
use posterior_linalg::tiles::pieces;
use posterior_networks::{Array, Network, Precision};
use posterior_notes::fixes::VALIDATION_DATA;
use posterior_store::{StoreError, Tensors};
use posterior_tangent::{Batch, batch_size, check_outputs, doubles, ranges};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

/// Temperatures that are tried: beyond these lie networks whose held-out examples say nothing about it (all right with room to spare, or worse than chance).
const RANGE: (f64, f64) = (1e-2, 1e2);

/// Newton steps and bisections at most; ten are usual.
const STEPS: usize = 200;

/// The least factor of a noise variance, for networks that leave no residuals.
const LEAST_NOISE: f64 = 1e-12;

/// Examples whose sums are formed on one thread.
const PIECE: usize = 1024;

/// Name of the tensor in files.
const TENSOR: &str = "temperature";

/// What the number acts on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Effect {
    /// Outputs are divided by it.
    Logits,
    /// Noise variances are multiplied by it.
    Noise,
    /// Its logarithm is added to the outputs that are log variances.
    LogVariances,
}

impl Effect {
    fn of(likelihood: &OutputLikelihood) -> Result<Self, LaplaceError> {
        match likelihood {
            OutputLikelihood::Categorical(_) | OutputLikelihood::Bernoulli(_) => Ok(Self::Logits),
            OutputLikelihood::Gaussian(_) | OutputLikelihood::FullGaussian(_) => Ok(Self::Noise),
            OutputLikelihood::HeteroscedasticGaussian(_) => Ok(Self::LogVariances),
            other => Err(LaplaceError::Request(format!(
                "the {} likelihood has neither logits nor a noise variance that one number could scale: choose another method",
                other.name()
            ))),
        }
    }
}

/// How the number was chosen.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TemperatureReport {
    /// Held-out examples.
    pub examples: usize,
    /// Their mean negative log likelihood, nats, in the network's units.
    pub nll: f64,
    /// The same with the number 1: the network as it is.
    pub plain_nll: f64,
    /// Evaluations of the slope; none for noise.
    pub evaluations: usize,
    /// The temperature stands at the end of what is tried (0.01 to 100): the examples do not determine it.
    pub at_edge: bool,
}

/// A trained network with one number chosen on held-out examples.
#[derive(Clone, Debug, PartialEq)]
pub struct Temperature {
    likelihood: OutputLikelihood,
    effect: Effect,
    value: f64,
    /// How it was chosen.
    pub report: TemperatureReport,
}

impl Temperature {
    /// Chooses the number on the validation examples.
    ///
    /// # Errors
    /// A likelihood without such a number (counts, Student-t noise), no validation examples, bad targets, outputs that are not finite, more memory than allowed for the outputs, interruption.
    pub fn fit<T: Precision>(problem: &Problem<'_, T>, run: &mut Run<'_>) -> Result<Self, LaplaceError> {
        let &Problem { data: Data { network, validation, likelihood, .. }, memory, .. } = problem;
        let Some(unseen) = validation else {
            let problem = format!(
                "a temperature is chosen on examples that the network has not seen: give {VALIDATION_DATA}"
            );
            return Err(LaplaceError::Request(problem));
        };
        let effect = Effect::of(likelihood)?;
        let (outputs, examples) = (check_outputs(network, likelihood)?, unseen.len());
        if examples == 0 {
            return Err(LaplaceError::Request(
                "a temperature is chosen on examples that the network has not seen: give some".into(),
            ));
        }
        let needed = Temperature::bytes(network, examples, likelihood);
        let what = format_args!("the outputs of {examples} held-out examples");
        let remedy = "give fewer of them: one number is known well from a few thousand";
        check_memory(needed, memory, what, remedy)?;
        let mut held_out = HeldOut { likelihood, outputs: Vec::new(), targets: Vec::new() };
        for range in ranges(0, examples, batch_size(network, 1)) {
            let end = range.end;
            let batch = Batch::read(unseen, range.clone(), likelihood)?;
            let f = doubles(network.forward(&batch.x)?.values());
            if let Some(bad) = f.iter().position(|f| !f.is_finite()) {
                let example = range.start + bad / outputs;
                return Err(LaplaceError::NotFinite { what: "the output", example });
            }
            held_out.outputs.extend(f);
            held_out.targets.extend(batch.targets);
            run.step(Stage::Validation, end, examples)?;
        }
        let (value, evaluations, at_edge) = match effect {
            Effect::Logits => held_out.temperature(),
            Effect::Noise | Effect::LogVariances => (held_out.noise_factor(), 0, false),
        };
        let mut report = TemperatureReport { examples, nll: 0.0, plain_nll: 0.0, evaluations, at_edge };
        let mut found = Temperature { likelihood: likelihood.clone(), effect, value: 1.0, report };
        report.plain_nll = held_out.nll(&found)?;
        found.value = value;
        report.nll = held_out.nll(&found)?;
        found.report = report;
        Ok(found)
    }

    /// Bytes that a fit keeps: outputs and targets of all held-out examples, and the activations of a batch.
    pub fn bytes<T: Precision>(network: &Network<T>, examples: usize, likelihood: &OutputLikelihood) -> u64 {
        let numbers = (likelihood.outputs() + likelihood.target_width()) as u64 * 8;
        let batch = (batch_size(network, 1) * network.graph().activations() * size_of::<T>()) as u64;
        (examples as u64).saturating_mul(numbers).saturating_add(batch)
    }

    /// The temperature, by which logits are divided; 1 where the likelihood has noise instead.
    pub fn temperature(&self) -> f64 {
        if self.effect == Effect::Logits { self.value } else { 1.0 }
    }

    /// The factor of all noise variances; 1 where the likelihood has none.
    pub fn noise_factor(&self) -> f64 {
        if self.effect == Effect::Logits { 1.0 } else { self.value }
    }

    /// Whether it multiplies the likelihood's noise variances.
    pub fn scales_noise(&self) -> bool {
        self.effect == Effect::Noise
    }

    /// The likelihood of the outputs of [`Learned::latent`], with the chosen noise.
    ///
    /// # Errors
    /// When a noise variance passes the range of doubles.
    pub fn likelihood(&self) -> Result<OutputLikelihood, LaplaceError> {
        match self.effect {
            Effect::Noise => scaled_noise(&self.likelihood, self.value),
            Effect::Logits | Effect::LogVariances => Ok(self.likelihood.clone()),
        }
    }

    /// Scales the outputs of one example.
    fn apply(&self, f: &mut [f64]) {
        match self.effect {
            Effect::Noise => {}
            Effect::Logits => f.iter_mut().for_each(|f| *f /= self.value),
            Effect::LogVariances => {
                let width = self.likelihood.target_width();
                f[width..].iter_mut().for_each(|f| *f += self.value.ln());
            }
        }
    }

    /// What [`Learned::write`] wrote, for the likelihood that it was fitted with and its report.
    ///
    /// # Errors
    /// When the number is missing or none that a fit could have chosen, or the likelihood has none.
    pub fn read(
        likelihood: &OutputLikelihood,
        report: TemperatureReport,
        tensors: &mut Tensors,
    ) -> Result<Self, StoreError> {
        let value = tensors.vector(TENSOR, 1)?[0];
        if !(value.is_finite() && value > 0.0) {
            return Err(tensors.corrupt(format!("its temperature is {value}, which is no positive number")));
        }
        let effect = Effect::of(likelihood).map_err(|e| tensors.corrupt(e))?;
        Ok(Self { likelihood: likelihood.clone(), effect, value, report })
    }
}

impl<T: Precision> Learned<T> for Temperature {
    /// The outputs, scaled, without any variance: [`Integration::PlugIn`](posterior_likelihoods::Integration::PlugIn) and every other integration say the same of them. Under Gaussian noise the means are
    /// the network's own, bit for bit.
    fn latent(&self, network: &Network<T>, x: &Array<T>, wanted: Wanted) -> Result<Latent, LaplaceError> {
        let outputs = check_outputs(network, &self.likelihood)?;
        let mut mean = Vec::with_capacity(x.rows() * outputs);
        for range in pieces(x.rows(), batch_size(network, 1)) {
            mean.extend(doubles(network.forward(&x.slice_rows(range))?.values()));
        }
        mean.chunks_exact_mut(outputs).for_each(|f| self.apply(f));
        let covariance = vec![0.0; x.rows() * Latent::size(outputs, wanted)];
        Ok(Latent { outputs, mean, covariance, wanted, clipped: 0 })
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
    ) -> Result<Option<Vec<f64>>, LaplaceError> {
        Ok(Some(self.latent(network, x, Wanted::Diagonal)?.mean.repeat(samples)))
    }

    fn latent_bytes(&self, network: &Network<T>, examples: usize) -> u64 {
        let batch = batch_size(network, 1).min(examples.max(1));
        (batch * network.graph().activations() * size_of::<T>()) as u64
    }

    fn latent_flops(&self, network: &Network<T>) -> f64 {
        network.graph().flops() as f64
    }

    fn write(&self, tensors: &mut Tensors) {
        tensors.insert_vector(TENSOR, &[self.value]);
    }
}

/// Outputs of all held-out examples with their targets.
struct HeldOut<'a> {
    likelihood: &'a OutputLikelihood,
    outputs: Vec<f64>,
    targets: Vec<f64>,
}

impl HeldOut<'_> {
    /// The mean over examples of some numbers of each; sums are cut by a fixed number of examples, so that threads do not matter.
    fn mean<const N: usize>(&self, of: impl Fn(&[f64], &[f64]) -> [f64; N] + Sync) -> [f64; N] {
        let (c, width) = (self.likelihood.outputs(), self.likelihood.target_width());
        let sums: Vec<[f64; N]> = self
            .outputs
            .par_chunks(PIECE * c)
            .zip(self.targets.par_chunks(PIECE * width))
            .map(|(f, y)| {
                let mut sum = [0.0; N];
                for (f, y) in f.chunks_exact(c).zip(y.chunks_exact(width)) {
                    sum.iter_mut().zip(of(y, f)).for_each(|(s, v)| *s += v);
                }
                sum
            })
            .collect();
        let mut total = [0.0; N];
        sums.iter().for_each(|sum| total.iter_mut().zip(sum).for_each(|(t, s)| *t += s));
        total.map(|t| t * c as f64 / self.outputs.len() as f64)
    }

    /// The mean negative log likelihood.
    fn nll(&self, with: &Temperature) -> Result<f64, LaplaceError> {
        let likelihood = with.likelihood()?;
        let [nll] = self.mean(|y, f| {
            let mut f = f.to_vec();
            with.apply(&mut f);
            [-likelihood.log_density(y, &f)]
        });
        Ok(nll)
    }

    /// Slope and curvature of the mean negative log likelihood in the inverse temperature.
    fn slope(&self, inverse: f64) -> [f64; 2] {
        self.mean(|y, f| {
            let at: Vec<f64> = f.iter().map(|f| inverse * f).collect();
            let (mut gradient, mut bent) = (vec![0.0; f.len()], vec![0.0; f.len()]);
            self.likelihood.gradient(y, &at, &mut gradient);
            self.likelihood.curvature_product(y, &at, f, &mut bent);
            let dot = |v: &[f64]| v.iter().zip(f).map(|(v, f)| v * f).sum::<f64>();
            [-dot(&gradient), dot(&bent)]
        })
    }

    /// The temperature with the evaluations that it took, and whether it is at the end of its range: the root of a slope that never falls, by Newton steps within a bracket that shrinks.
    fn temperature(&self) -> (f64, usize, bool) {
        let (mut low, mut high) = (1.0 / RANGE.1, 1.0 / RANGE.0);
        for (end, outside) in [(low, self.slope(low)[0] >= 0.0), (high, self.slope(high)[0] <= 0.0)] {
            if outside {
                return (1.0 / end, 2, true);
            }
        }
        let mut at = 1.0;
        for evaluations in 3..STEPS {
            let [slope, curvature] = self.slope(at);
            if slope > 0.0 {
                high = at;
            } else {
                low = at;
            }
            let newton = at - slope / curvature;
            let next = if newton > low && newton < high { newton } else { (low * high).sqrt() };
            let moved = (next - at).abs();
            at = next;
            if moved <= 4.0 * f64::EPSILON * at {
                return (1.0 / at, evaluations, false);
            }
        }
        (1.0 / at, STEPS, false)
    }

    /// The factor of the noise under which the examples are likeliest: the mean of their squared residuals in units of the noise. Where `r` is the residual and `g` the slope of the log likelihood in the
    /// means, these are `r g`.
    fn noise_factor(&self) -> f64 {
        let width = self.likelihood.target_width();
        let [squares] = self.mean(|y, f| {
            let mut gradient = vec![0.0; f.len()];
            self.likelihood.gradient(y, f, &mut gradient);
            [gradient.iter().zip(y.iter().zip(f)).map(|(g, (y, f))| g * (y - f)).sum()]
        });
        (squares / width as f64).max(LEAST_NOISE)
    }
}
