//! Adam on the weights, and the best picture on the way.

use super::dropout::ChannelDropout;
use crate::TomographyError;
use crate::psnr;
use crate::total_variation::Penalised;
use posterior_networks::{Array, Network, Selection};
use posterior_optim::{Clock, Iteration, Limits, Progress, Reason, Rule, Run, Signal, Step, drive};
use serde::{Deserialize, Serialize};

/// Losses that are kept of a run at most, evenly over its steps.
const RECORDED: usize = 512;

/// How the deep image prior is trained.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DeepImagePriorOptions {
    /// Step size of Adam.
    pub learning_rate: f64,
    /// Steps.
    pub iterations: usize,
    /// Gradients longer than this are shortened to it.
    pub clip: f64,
    /// Weights are kept within this of zero.
    pub bound: f64,
    /// Rate at which channels are dropped: for the Monte Carlo baseline only.
    pub dropout: Option<f64>,
    /// Seed of the dropped channels.
    pub seed: u64,
}

impl Default for DeepImagePriorOptions {
    /// As published: Adam at 1e-4, gradients of at most 1, weights within 1000.
    fn default() -> Self {
        Self { learning_rate: 1e-4, iterations: 3000, clip: 1.0, bound: 1000.0, dropout: None, seed: 0 }
    }
}

/// Where a training stands: plain data.
#[derive(Clone, Debug, PartialEq)]
pub struct DeepImagePriorState {
    /// Steps taken.
    pub step: usize,
    /// All trainable weights, as [`Selection::all`] orders them.
    pub weights: Vec<f32>,
    /// First moments of Adam.
    pub first: Vec<f32>,
    /// Second moments.
    pub second: Vec<f32>,
    /// The weights with the lowest loss, which under dropout are the last.
    pub best: Vec<f32>,
    /// That loss; infinite before the first step.
    pub best_loss: f64,
    /// At which step, from 0.
    pub best_step: usize,
    /// Steps and losses, thinned.
    pub losses: Vec<(usize, f64)>,
    /// Where the truth is known: the highest PSNR of an iterate (dB) and its step. Chosen by what nobody has, so only for comparison.
    pub best_quality: Option<(f64, usize)>,
    /// Steps whose gradient was shortened.
    pub clipped: usize,
}

/// A training under way.
pub struct DeepImagePrior<'a> {
    network: Network<f32>,
    input: Array<f32>,
    objective: &'a Penalised<'a>,
    options: &'a DeepImagePriorOptions,
    truth: Option<&'a [f64]>,
    selection: Selection,
    dropout: Option<ChannelDropout>,
    state: DeepImagePriorState,
    loss: f64,
}

impl<'a> DeepImagePrior<'a> {
    /// Of a network that begins with its own weights (fresh or pretrained), with the picture that it looks at, and the truth for comparison where there is one; goes on from a state where there is one.
    ///
    /// # Errors
    /// [`TomographyError::Shape`] where network, input, objective, truth or state do not belong together; [`TomographyError::Option`].
    pub fn new(
        network: Network<f32>,
        input: Array<f32>,
        objective: &'a Penalised<'a>,
        options: &'a DeepImagePriorOptions,
        truth: Option<&'a [f64]>,
        saved: Option<DeepImagePriorState>,
    ) -> Result<Self, TomographyError> {
        let refuse = |name, value, expected| Err(TomographyError::Option { name, value, expected });
        let positive = |v: f64| v > 0.0 && v.is_finite();
        if !positive(options.learning_rate) {
            return refuse("learning_rate", options.learning_rate, "positive and finite");
        }
        if !positive(options.clip) {
            return refuse("clip", options.clip, "positive and finite");
        }
        if !positive(options.bound) {
            return refuse("bound", options.bound, "positive and finite");
        }
        if let Some(rate) = options.dropout.filter(|r| !(0.0..1.0).contains(r)) {
            return refuse("dropout", rate, "a probability, at least 0 and below 1");
        }
        let pixels: usize = network.graph().output_shape().iter().product();
        crate::error::same_count("pixels of the network's output", objective.pixels(), pixels)?;
        if let Some(truth) = truth {
            crate::error::same_count("pixels of the truth", pixels, truth.len())?;
        }
        let selection = Selection::all(network.graph());
        let d = selection.len();
        let state = match saved {
            Some(state) => {
                for block in [&state.weights, &state.first, &state.second, &state.best] {
                    crate::error::same_count("weights of the saved training", d, block.len())?;
                }
                state
            }
            None => {
                let weights = selection.flatten(network.parameters());
                DeepImagePriorState {
                    step: 0,
                    best: weights.clone(),
                    weights,
                    first: vec![0.0; d],
                    second: vec![0.0; d],
                    best_loss: f64::INFINITY,
                    best_step: 0,
                    losses: Vec::new(),
                    best_quality: None,
                    clipped: 0,
                }
            }
        };
        let dropout = options.dropout.map(|rate| ChannelDropout::new(network.graph(), rate));
        Ok(Self { network, input, objective, options, truth, selection, dropout, state, loss: f64::NAN })
    }

    /// Takes the steps; the observer sees every one with the state, which it may save, and may stop. Returns why it ended; what there is then is the best so far.
    ///
    /// Cost of a step: a forward pass, twice as much back, a projection and a back-projection.
    ///
    /// # Errors
    /// [`TomographyError::Network`]; [`TomographyError::Diverged`] when the loss stops being a number.
    pub fn run(
        &mut self,
        clock: Clock,
        observer: &mut dyn FnMut(&Progress, &DeepImagePriorState) -> Signal,
    ) -> Result<Reason, TomographyError> {
        let limits = Limits { steps: self.options.iterations, time: None };
        let mut tell = |progress: &Progress, own: &Self| observer(progress, &own.state);
        Ok(drive(self, limits, clock, &mut tell)?.0)
    }

    /// Where it stands.
    pub fn state(&self) -> &DeepImagePriorState {
        &self.state
    }

    /// The network with the best weights, and its picture.
    ///
    /// # Errors
    /// [`TomographyError::Network`].
    pub fn finish(mut self) -> Result<(Network<f32>, Vec<f64>, DeepImagePriorState), TomographyError> {
        self.selection.assign(&self.state.best, self.network.parameters_mut());
        let output = self.network.forward(&self.input)?;
        let picture = output.values().iter().map(|v| f64::from(*v)).collect();
        Ok((self.network, picture, self.state))
    }

    fn record(&mut self, picture: &[f64]) {
        let every = self.options.iterations.div_ceil(RECORDED).max(1);
        let (step, state) = (self.state.step, &mut self.state);
        if step % every == 0 {
            state.losses.push((step, self.loss));
        }
        if self.loss < state.best_loss && self.dropout.is_none() {
            (state.best_loss, state.best_step) = (self.loss, step);
            state.best.clone_from(&state.weights);
        }
        if let Some(truth) = self.truth {
            let quality = psnr(picture, truth);
            if state.best_quality.is_none_or(|(best, _)| quality > best) {
                state.best_quality = Some((quality, step));
            }
        }
    }
}

impl Iteration for DeepImagePrior<'_> {
    type Error = TomographyError;

    fn progress(&self) -> Progress {
        Progress {
            step: self.state.step,
            value: Some(self.loss).filter(|l| l.is_finite()),
            step_size: Some(self.options.learning_rate),
            ..Progress::default()
        }
    }

    fn step(&mut self, _: &mut Run<'_, Self>) -> Result<Step, TomographyError> {
        let number = self.state.step as u64;
        self.selection.assign(&self.state.weights, self.network.parameters_mut());
        if let Some(dropout) = &self.dropout {
            dropout.mask(self.network.parameters_mut(), self.options.seed, number);
        }
        let trace = self.network.trace(self.input.clone())?;
        let picture: Vec<f64> = trace.output().values().iter().map(|v| f64::from(*v)).collect();
        let (loss, slope) = self.objective.value_and_gradient(&picture);
        if !loss.is_finite() {
            return Err(TomographyError::Diverged { what: "the deep image prior", step: self.state.step });
        }
        let cotangent =
            Array::new(trace.output().shape().to_vec(), slope.iter().map(|v| *v as f32).collect());
        let mut gradient = trace.vjp(&self.selection, &cotangent)?.into_values();
        if let Some(dropout) = &self.dropout {
            let mut arrays: Vec<Array<f32>> =
                self.network.parameters().iter().map(|p| Array::zeros(p.shape().to_vec())).collect();
            self.selection.assign(&gradient, &mut arrays);
            dropout.mask(&mut arrays, self.options.seed, number);
            gradient = self.selection.flatten(&arrays);
        }
        self.loss = loss;
        self.record(&picture);
        let norm = gradient.iter().map(|g| f64::from(*g).powi(2)).sum::<f64>().sqrt();
        if norm > self.options.clip {
            let share = (self.options.clip / norm) as f32;
            gradient.iter_mut().for_each(|g| *g *= share);
            self.state.clipped += 1;
        }
        let DeepImagePriorState { step, weights, first, second, .. } = &mut self.state;
        *step += 1;
        Rule::adam().step(weights, &gradient, first, second, self.options.learning_rate, *step);
        let bound = self.options.bound as f32;
        weights.iter_mut().for_each(|w| *w = w.clamp(-bound, bound));
        if self.dropout.is_some() {
            (self.state.best_loss, self.state.best_step) = (loss, self.state.step);
            self.state.best.clone_from(&self.state.weights);
        }
        Ok(Step::Taken)
    }
}
