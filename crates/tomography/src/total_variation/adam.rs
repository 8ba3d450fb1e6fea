//! Adam on the pixels, as published.

use crate::TomographyError;
use crate::image_prior::ImageObjective;
use posterior_optim::{Adaptive, Iteration, Progress, Run, Step};
use serde::{Deserialize, Serialize};

/// How Adam is run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AdamOnPixelsOptions {
    /// Step size.
    pub learning_rate: f64,
    /// Steps.
    pub iterations: usize,
}

impl Default for AdamOnPixelsOptions {
    /// As published for 20 angles and more: 10 000 steps of 1e-3.
    fn default() -> Self {
        Self { learning_rate: 1e-3, iterations: 10_000 }
    }
}

/// The picture with the lowest loss on the way of Adam from a first one; pictures are cut at zero. No bound says how far it is from the minimum: [`super::PrimalDual`] has one.
///
/// Source: spec `tomography`, section 9.4.
#[derive(Clone)]
pub struct AdamOnPixels<'a> {
    objective: &'a ImageObjective<'a>,
    pixels: Vec<f64>,
    adam: Adaptive,
    step: usize,
    best: Vec<f64>,
    best_loss: f64,
    loss: f64,
}

impl<'a> AdamOnPixels<'a> {
    /// From a picture.
    ///
    /// # Errors
    /// [`TomographyError::Shape`], [`TomographyError::Option`].
    pub fn new(
        objective: &'a ImageObjective<'a>,
        start: Vec<f64>,
        options: &AdamOnPixelsOptions,
    ) -> Result<Self, TomographyError> {
        crate::error::same_count("pixels of the first picture", objective.pixels(), start.len())?;
        if !(options.learning_rate > 0.0 && options.learning_rate.is_finite()) {
            let expected = "positive and finite";
            return Err(TomographyError::Option {
                name: "learning_rate",
                value: options.learning_rate,
                expected,
            });
        }
        let best = cut(&start);
        let adam = Adaptive::adam(options.learning_rate);
        Ok(Self { objective, pixels: start, adam, step: 0, best, best_loss: f64::INFINITY, loss: f64::NAN })
    }

    /// The picture with the lowest loss, and that loss.
    pub fn best(self) -> (Vec<f64>, f64) {
        (self.best, self.best_loss)
    }
}

/// No pixel below zero.
fn cut(pixels: &[f64]) -> Vec<f64> {
    pixels.iter().map(|v| v.max(0.0)).collect()
}

impl Iteration for AdamOnPixels<'_> {
    type Error = TomographyError;

    fn progress(&self) -> Progress {
        let value = Some(self.loss).filter(|l| l.is_finite());
        Progress { step: self.step, value, ..Progress::default() }
    }

    fn step(&mut self, run: &mut Run<'_, Self>) -> Result<Step, TomographyError> {
        let picture = cut(&self.pixels);
        let (loss, mut gradient) = self.objective.value_and_gradient(&picture);
        if !loss.is_finite() {
            return Err(TomographyError::Diverged { what: "total variation by Adam", step: self.step });
        }
        self.loss = loss;
        if loss < self.best_loss {
            (self.best, self.best_loss) = (picture, loss);
        }
        for (g, v) in gradient.iter_mut().zip(&self.pixels) {
            if *v < 0.0 {
                *g = 0.0;
            }
        }
        self.adam.step(&mut self.pixels, &gradient, run.steps_planned());
        self.step += 1;
        Ok(Step::Taken)
    }
}
