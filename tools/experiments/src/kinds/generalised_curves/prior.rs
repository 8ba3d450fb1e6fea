//! **The process that regularises**: its kernel's hyperparameters, its noise and its inducing points, learned in turns (Algorithm 2) once for each curve, power and kernel, and shared by all fits that have these.
//!
//! Source: spec `generalised_variational_inference`, sections 4.2, 6 and 9.1; errata E8, E23, E31.

use super::layer::Layer;
use super::problem::Problem;
use crate::kinds::prelude::*;
use crate::labels::squared_exponential;
use posterior_gp::MeanForm;
use posterior_gp::exact::{ExactGp, ExactPosterior, FitOptions};
use posterior_gp::generalised::{
    Alternation, JITTER, LearnedReference, LearningOptions, Mode, ReferenceProcess, RegulariserRisk,
    Selector, learn_reference,
};
use posterior_kernels::infinite::{Activation, InfiniteNetwork};
use posterior_kernels::{Columns, Kernel, KernelExpression};
use posterior_likelihoods::Gaussian;
use posterior_optim::{Adaptive, Optimiser, Parameters, Signal, UpdateRule};
use posterior_tangent::MappedKernel;
use std::sync::atomic::{AtomicBool, Ordering};

/// Units of the map and of the variational mean.
pub(crate) const UNITS: usize = 10;
/// The least noise variance that is learned.
const LEAST_NOISE: f64 = 1e-6;

/// Kernels of the process that regularises.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum PriorKernel {
    /// Linear behind a layer of tangents.
    MappingLinear,
    /// A network of infinite width: one layer of error functions (the published program's substitute for tangents, erratum E21) without read-out, so that no variance is above 1.
    Nngp,
    /// The squared exponential (erratum E26: with a lengthscale as (5.1) has it).
    Ard,
}

/// What the scale and the constant of a linear kernel behind a map begin with (spec `generalised_variational_inference`, section 6.4).
const MAPPED: f64 = 1e4;

/// `s h(x)·h(z) + c`: a polynomial of degree one behind a layer whose weights are drawn. Its matrices have a rank of at most one more than there are units.
fn mapping(units: usize, streams: Streams) -> Result<MappedKernel> {
    let names: Vec<String> = (1..=units).map(|unit| format!("unit{unit}")).collect();
    let text = format!("linear(variance={MAPPED}) + constant(variance={MAPPED})");
    let base = text.parse::<KernelExpression>()?.build(&names)?;
    let map = Layer::drawn(units, streams, "experiment/generalised-mapping");
    Ok(MappedKernel::new(base, Box::new(map)))
}

impl PriorKernel {
    /// Before it has learned anything.
    pub(crate) fn begin(self, streams: Streams) -> Result<Box<dyn Kernel<f64>>> {
        Ok(match self {
            Self::MappingLinear => Box::new(mapping(UNITS, streams)?),
            Self::Nngp => {
                let layers = vec![Activation::Erf];
                Box::new(InfiniteNetwork::new("nngp", Columns::all(1), layers, false, 1.0, 1.0))
            }
            Self::Ard => squared_exponential(1.0, 1.0, 1)?,
        })
    }
}

/// Whose variances are those of observations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum NoiseIn {
    /// Nobody's.
    Never,
    /// Those of the prior, as the published program has it (erratum E31).
    Prior,
    /// Those of the prior and of its posterior.
    Always,
}

/// A table `[[learning]]`: a way to learn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct LearningSettings {
    /// Its name in numbers.
    pub(crate) name: String,
    /// What is minimised.
    pub(crate) risk: RegulariserRisk,
    /// Turns at most.
    pub(crate) turns: usize,
    /// Steps of each turn at most: of L-BFGS on the evidence, of AdaBelief on the pointwise risk.
    pub(crate) steps: usize,
    /// Starts of each search for the evidence.
    #[serde(default = "one")]
    pub(crate) starts: usize,
    /// The step size on the pointwise risk.
    #[serde(default = "published_rate")]
    pub(crate) rate: f64,
    /// The pointwise risk at which a turn ends.
    #[serde(default = "published_risk")]
    pub(crate) least_risk: f64,
    /// Whose variances the learned noise is part of.
    pub(crate) noise_in: NoiseIn,
}

fn one() -> usize {
    1
}

fn published_rate() -> f64 {
    1e-4
}

fn published_risk() -> f64 {
    -10.0
}

impl LearningSettings {
    /// Refuses numbers without a meaning.
    pub(crate) fn check(&self) -> Result<()> {
        if self.name.is_empty() || self.name.contains('.') {
            return refused("[[learning]]: `name` is a word without points");
        }
        if self.risk == RegulariserRisk::PointwisePredictive && self.starts != 1 {
            return refused(
                "[[learning]]: `starts` belong to the search for the evidence, the pointwise risk has one",
            );
        }
        if self.steps == 0 || self.starts == 0 || self.turns > 100 {
            return refused("[[learning]]: `steps` and `starts` are at least 1, `turns` at most 100");
        }
        if !positive(self.rate) || self.least_risk.is_nan() {
            return refused("[[learning]]: `rate` is positive, `least_risk` a number");
        }
        Ok(())
    }

    fn options(&self, points: usize, seed: u64) -> LearningOptions {
        let mut evidence = FitOptions { restarts: self.starts, seed, ..FitOptions::default() };
        evidence.steps.steps = self.steps;
        let rule = Adaptive::new(UpdateRule::AdaBelief.rule(), self.rate);
        LearningOptions {
            points,
            selector: Selector::GreedyVariance,
            risk: self.risk,
            turns: self.turns,
            evidence,
            pointwise: (Optimiser::Adaptive(rule), self.steps),
            least_risk: self.least_risk,
        }
    }
}

/// What was learned, as a journal keeps it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct LearnedPrior {
    /// Training rows that are inducing points. There may be fewer than were asked for: greedy choice ends where the kernel's matrix has no more rank to give.
    pub(crate) rows: Vec<usize>,
    /// Hyperparameters: the kernel's, the noise variance.
    values: Vec<f64>,
    /// All turns.
    pub(crate) turns: Vec<Alternation>,
    /// Whether points came back to an earlier set.
    pub(crate) settled: bool,
}

/// A process of this kernel that has learned nothing: no mean, noise of variance 1.
fn process(kernel: PriorKernel, streams: Streams) -> Result<ExactGp> {
    let noise = Gaussian::new(1.0, LEAST_NOISE);
    Ok(ExactGp::new(kernel.begin(streams)?, MeanForm::Zero, noise, 1, 1))
}

impl LearnedPrior {
    /// Learns from the training rows of a problem; nothing if it is told to stop.
    ///
    /// # Errors
    /// What goes wrong in the search.
    pub(crate) fn learn(
        problem: &Problem,
        (kernel, points): (PriorKernel, usize),
        learning: &LearningSettings,
        streams: Streams,
        observer: &mut dyn FnMut() -> Signal,
    ) -> Result<Option<Self>> {
        let begun = process(kernel, streams)?;
        let seed = streams.child("experiment/generalised-prior", problem.number as u64).seed();
        let options = learning.options(points, seed);
        let LearnedReference { posterior, rows, turns, settled, interrupted, .. } =
            learn_reference(begun, &problem.train, &options, &mut |_, _| observer())?;
        let values = posterior.model().values();
        Ok((!interrupted).then_some(Self { rows, values, turns, settled }))
    }

    /// The exact posterior on the inducing points, or as it was at a turn.
    ///
    /// # Errors
    /// A matrix that cannot be factored.
    pub(crate) fn posterior(
        &self,
        problem: &Problem,
        kernel: PriorKernel,
        turn: Option<&Alternation>,
        streams: Streams,
    ) -> Result<ExactPosterior> {
        let mut process = process(kernel, streams)?;
        let (values, rows) = turn.map_or((&self.values, &self.rows), |turn| (&turn.values, &turn.rows));
        process.set_values(values);
        Ok(process.condition(problem.train.select(rows)?)?)
    }

    /// The process that regularises. Cost that of factoring the kernel matrix of its inducing points twice.
    ///
    /// # Errors
    /// As [`Self::posterior`].
    pub(crate) fn reference(
        &self,
        problem: &Problem,
        (kernel, mode): (PriorKernel, Mode),
        noise_in: NoiseIn,
        streams: Streams,
    ) -> Result<ReferenceProcess> {
        let posterior = self.posterior(problem, kernel, None, streams)?;
        let noisy = match noise_in {
            NoiseIn::Never => false,
            NoiseIn::Prior => mode == Mode::Prior,
            NoiseIn::Always => true,
        };
        Ok(ReferenceProcess::new(posterior, mode, noisy, JITTER)?)
    }
}

/// What an observer answers.
pub(crate) fn signal(stop: &AtomicBool) -> Signal {
    if stop.load(Ordering::Relaxed) { Signal::Stop } else { Signal::Continue }
}

#[cfg(test)]
mod tests {
    use super::*;
    use faer::Mat;
    use posterior_kernels::gram;

    /// `1e4 (h·h' + 1)` as it begins, of rank eleven.
    #[test]
    fn the_kernel_behind_a_map_is_its_formula() {
        let x = Mat::from_fn(23, 1, |i, _| -2.0 + 4.0 * i as f64 / 23.0);
        let mut kernel = mapping(10, Streams::new(5)).unwrap();
        let h = Layer::drawn(10, Streams::new(5), "experiment/generalised-mapping").at(x.col_as_slice(0));
        let k = gram(&kernel, x.as_ref());
        let mut products = &h * h.transpose();
        for j in 0..23 {
            for i in 0..23 {
                assert!((k[(i, j)] - 1e4 * (products[(i, j)] + 1.0)).abs() < 1e-9);
            }
        }
        products = k;
        let values = products.self_adjoint_eigenvalues(faer::Side::Lower).unwrap();
        assert!(values[23 - 11 - 1].abs() < 1e-9 * values[22], "{values:?}");
        // Weights are among the hyperparameters.
        let mut theta = kernel.values();
        assert_eq!((theta.len(), &theta[..2]), (22, &[1e4, 1e4][..]));
        theta[2] += 0.1;
        kernel.set_values(&theta);
        assert_ne!(gram(&kernel, x.as_ref()), products);
    }
}
