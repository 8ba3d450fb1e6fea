//! The **mode of the linearised model**: `w* = argmin sum_n l(y_n, f0(x_n) + J(x_n) w) + 1/2 |w|_A^2` (thesis sections 5.2 and 5.4, spec `linearised_laplace`, sections 4.1 to 4.6).
//!
//! The problem is convex. Newton's steps are solved by conjugate gradients, whose products need one pass with a forward and a backward sweep each and no matrix; the factored posterior precision
//! of the chosen structure is the preconditioner, so that a few products do what plain gradients need thousands for.

use crate::accumulate::is_gaussian;
use crate::observations::{Batch, batch_size, doubles, ranges};
use crate::{LaplaceError, Stage};
use posterior_likelihoods::OutputLikelihood;
use posterior_linear::structure::Conditioned;
use posterior_networks::train::Examples;
use posterior_networks::{Array, Network, Precision, Selection};
use posterior_optim::Signal;
use serde::{Deserialize, Serialize};

/// Whose norm the evidence charges for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Linearised where normalisation makes weights scale-invariant, and where the optimum has a closed form (Gaussian noise with one factor to learn, one precision of all weights chosen by the evidence, a curvature
    /// with all entries or in function space, all weights uncertain, at most 3,000 of them or of numbers observed); else trained. Where the linear model could fit nearly all numbers, the default's
    /// hyperparameters are those of the largest evidence that leaves half of them to the noise.
    #[default]
    Auto,
    /// The trained weights.
    Trained,
    /// The optimum of the linearised model. Under Gaussian noise predictions count its distance from the network as variance, because they stay the network's own
    /// ([`ModeSummary::displacement`](crate::fit::ModeSummary)).
    Linearised,
    /// The optimum of the linearised model without its offset, `h = J w` (thesis eq. 5.10).
    LinearisedSimple,
}

/// How far the mode is pursued.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ModeOptions {
    /// Newton steps at most.
    pub newton_steps: usize,
    /// Conjugate-gradient steps for each of them at most.
    pub inner_steps: usize,
    /// The search ends when a Newton step promises to lower the loss by less, nats. An error e of the loss leaves one of about `√(2e / a)` in the weights, and of
    /// `2 √(2e / a |w|²)` relative in the norm that the evidence charges for: 1e-6 is 0.1 % of it for a |w|² of 10.
    pub tolerance: f64,
}

impl Default for ModeOptions {
    fn default() -> Self {
        Self { newton_steps: 20, inner_steps: 20, tolerance: 1e-6 }
    }
}

/// The mode that was found.
#[derive(Clone, Debug, PartialEq)]
pub struct FoundMode {
    /// The weights, flat.
    pub weights: Vec<f64>,
    /// `sum log p(y | f0 + J w)`.
    pub log_likelihood: f64,
    /// The loss, prior included.
    pub loss: f64,
    /// Newton steps taken.
    pub newton_steps: usize,
    /// Products with the Hessian.
    pub products: usize,
    /// What the last step promised to gain, nats.
    pub remaining: f64,
    /// Whether that was within the tolerance.
    pub converged: bool,
    /// `max |f0| / max |g|`: how much of the network's output the offset carries.
    pub offset: f64,
}

/// The problem whose minimum is the mode.
pub(crate) struct ModeProblem<'a, T> {
    pub(crate) network: &'a Network<T>,
    pub(crate) selection: &'a Selection,
    pub(crate) examples: &'a dyn Examples<T>,
    pub(crate) likelihood: &'a OutputLikelihood,
    /// Prior precision of each weight; infinite for weights that are held at zero.
    pub(crate) precisions: Vec<f64>,
    /// Weights at which the network was linearised.
    pub(crate) trained: Vec<f64>,
    /// Multiplies the log likelihood (`1 / noise` relative to the likelihood's own).
    pub(crate) strength: f64,
    /// Whether the offset `f0` is left out.
    pub(crate) simple: bool,
}

/// Value and gradient at one point, and what a product needs: outputs of the linear model.
struct At {
    loss: f64,
    log_likelihood: f64,
    gradient: Vec<f64>,
    outputs: Vec<f64>,
    offset: f64,
}

impl<T: Precision> ModeProblem<'_, T> {
    fn rounded(&self, v: &[f64]) -> Array<T> {
        Array::new(vec![1, v.len()], v.iter().map(|v| T::from_f64(*v)).collect())
    }

    /// A pass over the data; `visit` gets the trace, the batch and its place.
    fn pass(
        &self,
        observer: &mut dyn FnMut(Stage, usize, usize) -> Signal,
        mut visit: impl FnMut(&posterior_networks::Trace<'_, T>, &Batch<T>) -> Result<(), LaplaceError>,
    ) -> Result<(), LaplaceError> {
        let count = self.examples.len();
        for range in ranges(0, count, batch_size(self.network, 2)) {
            let batch = Batch::read(self.examples, range, self.likelihood)?;
            visit(&self.network.trace(batch.x.clone())?, &batch)?;
            if observer(Stage::Mode, batch.range.end, count) == Signal::Stop {
                return Err(LaplaceError::Interrupted);
            }
        }
        Ok(())
    }

    fn at(
        &self,
        w: &[f64],
        observer: &mut dyn FnMut(Stage, usize, usize) -> Signal,
    ) -> Result<At, LaplaceError> {
        // J (w - v) + g, or J w without the offset.
        let difference: Vec<f64> =
            if self.simple { w.to_vec() } else { w.iter().zip(&self.trained).map(|(w, v)| w - v).collect() };
        let (difference, trained) = (self.rounded(&difference), self.rounded(&self.trained));
        let outputs = self.likelihood.outputs();
        let mut at = At {
            loss: 0.0,
            log_likelihood: 0.0,
            gradient: vec![0.0; w.len()],
            outputs: Vec::with_capacity(self.examples.len() * outputs),
            offset: 0.0,
        };
        let (mut largest_offset, mut largest_output) = (0.0f64, 0.0f64);
        self.pass(observer, |trace, batch| {
            let g = doubles(trace.output().values());
            let linear = doubles(trace.jvp(self.selection, &difference)?.values());
            let through = doubles(trace.jvp(self.selection, &trained)?.values());
            let mut cotangents = vec![T::ZERO; g.len()];
            let mut slope = vec![0.0; outputs];
            for i in 0..batch.range.len() {
                let row = i * outputs..(i + 1) * outputs;
                for k in row.clone() {
                    largest_offset = largest_offset.max((g[k] - through[k]).abs());
                    largest_output = largest_output.max(g[k].abs());
                }
                let f: Vec<f64> =
                    row.clone().map(|k| linear[k] + if self.simple { 0.0 } else { g[k] }).collect();
                at.log_likelihood += self.likelihood.log_density(batch.target(i), &f);
                self.likelihood.gradient(batch.target(i), &f, &mut slope);
                row.zip(&slope).for_each(|(k, s)| cotangents[k] = T::from_f64(-self.strength * s));
                at.outputs.extend(f);
            }
            let mut shape = trace.output().shape().to_vec();
            shape[0] = batch.range.len();
            let own = trace.vjp(self.selection, &Array::new(shape, cotangents))?;
            at.gradient.iter_mut().zip(own.values()).for_each(|(a, g)| *a += g.to_f64());
            Ok(())
        })?;
        at.loss = -self.strength * at.log_likelihood;
        for ((g, w), a) in at.gradient.iter_mut().zip(w).zip(&self.precisions) {
            if a.is_finite() {
                at.loss += 0.5 * a * w * w;
                *g += a * w;
            } else {
                *g = 0.0;
            }
        }
        at.offset = if largest_output > 0.0 { largest_offset / largest_output } else { 0.0 };
        Ok(at)
    }

    /// The gradient of the loss.
    ///
    /// # Errors
    /// When the data cannot be read or the observer stops.
    pub(crate) fn slope(
        &self,
        w: &[f64],
        observer: &mut dyn FnMut(Stage, usize, usize) -> Signal,
    ) -> Result<Vec<f64>, LaplaceError> {
        Ok(self.at(w, observer)?.gradient)
    }

    /// `log p(Y | f0 + J w)`.
    ///
    /// # Errors
    /// When the data cannot be read or the observer stops.
    pub(crate) fn log_likelihood(
        &self,
        w: &[f64],
        observer: &mut dyn FnMut(Stage, usize, usize) -> Signal,
    ) -> Result<f64, LaplaceError> {
        Ok(self.at(w, observer)?.log_likelihood)
    }

    /// `(J^T B J + A) v` with the curvature at the linear model's outputs.
    fn product(
        &self,
        at: &At,
        v: &[f64],
        observer: &mut dyn FnMut(Stage, usize, usize) -> Signal,
    ) -> Result<Vec<f64>, LaplaceError> {
        let direction = self.rounded(v);
        let outputs = self.likelihood.outputs();
        let mut out = vec![0.0; v.len()];
        self.pass(observer, |trace, batch| {
            let mut tangent = trace.jvp(self.selection, &direction)?;
            let mut product = vec![0.0; outputs];
            for i in 0..batch.range.len() {
                let f = &at.outputs[(batch.range.start + i) * outputs..][..outputs];
                let own = &mut tangent.values_mut()[i * outputs..(i + 1) * outputs];
                let u = doubles(own);
                self.likelihood.curvature_product(batch.target(i), f, &u, &mut product);
                own.iter_mut().zip(&product).for_each(|(o, p)| *o = T::from_f64(self.strength * p));
            }
            let own = trace.vjp(self.selection, &tangent)?;
            out.iter_mut().zip(own.values()).for_each(|(o, g)| *o += g.to_f64());
            Ok(())
        })?;
        for ((o, v), a) in out.iter_mut().zip(v).zip(&self.precisions) {
            *o = if a.is_finite() { *o + a * v } else { 0.0 };
        }
        Ok(out)
    }

    /// Newton's method from `start`.
    ///
    /// # Errors
    /// When the data cannot be read, numbers overflow or the observer stops.
    pub(crate) fn solve(
        &self,
        start: &[f64],
        preconditioner: &Conditioned,
        options: &ModeOptions,
        observer: &mut dyn FnMut(Stage, usize, usize) -> Signal,
    ) -> Result<FoundMode, LaplaceError> {
        let mut w: Vec<f64> =
            start.iter().zip(&self.precisions).map(|(w, a)| if a.is_finite() { *w } else { 0.0 }).collect();
        let mut at = self.at(&w, observer)?;
        let (mut products, mut remaining, mut converged, mut steps) = (0, f64::INFINITY, false, 0);
        // A Gaussian loss is quadratic: one step, solved further.
        let inner_tolerance = if is_gaussian(self.likelihood) { 1e-8 } else { 1e-2 };
        while steps < options.newton_steps {
            let (step, promised) =
                self.newton_step(&at, preconditioner, options, inner_tolerance, &mut products, observer)?;
            remaining = promised;
            if promised.is_nan() || promised <= options.tolerance {
                converged = promised.is_finite();
                break;
            }
            steps += 1;
            let mut length = 1.0;
            let next = loop {
                let trial: Vec<f64> = w.iter().zip(&step).map(|(w, s)| w + length * s).collect();
                let value = self.at(&trial, observer)?;
                // Enough of what the quadratic promised, or rounding in the network's precision.
                if value.loss <= at.loss - 0.1 * length * promised {
                    break Some((trial, value));
                }
                length *= 0.5;
                if length < 1e-4 {
                    break None;
                }
            };
            let Some((trial, value)) = next else { break };
            (w, at) = (trial, value);
        }
        Ok(FoundMode {
            weights: w,
            log_likelihood: at.log_likelihood,
            loss: at.loss,
            newton_steps: steps,
            products,
            remaining,
            converged,
            offset: at.offset,
        })
    }

    /// A step and what the quadratic model promises for it.
    fn newton_step(
        &self,
        at: &At,
        preconditioner: &Conditioned,
        options: &ModeOptions,
        inner_tolerance: f64,
        products: &mut usize,
        observer: &mut dyn FnMut(Stage, usize, usize) -> Signal,
    ) -> Result<(Vec<f64>, f64), LaplaceError> {
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        let hold = |mut v: Vec<f64>| {
            v.iter_mut().zip(&self.precisions).filter(|(_, a)| !a.is_finite()).for_each(|(v, _)| *v = 0.0);
            v
        };
        let mut residual: Vec<f64> = at.gradient.iter().map(|g| -g).collect();
        let mut step = vec![0.0; residual.len()];
        let mut z = hold(preconditioner.solve(&residual));
        let (mut direction, mut rho) = (z.clone(), dot(&residual, &z));
        let first = rho;
        for _ in 0..options.inner_steps {
            if !(rho > inner_tolerance * inner_tolerance * first && rho > 0.0) {
                break;
            }
            let product = self.product(at, &direction, observer)?;
            *products += 1;
            let curvature = dot(&direction, &product);
            if curvature.is_nan() || curvature <= 0.0 {
                break;
            }
            let alpha = rho / curvature;
            step.iter_mut().zip(&direction).for_each(|(s, d)| *s += alpha * d);
            residual.iter_mut().zip(&product).for_each(|(r, p)| *r -= alpha * p);
            z = hold(preconditioner.solve(&residual));
            let next = dot(&residual, &z);
            let beta = next / rho;
            direction.iter_mut().zip(&z).for_each(|(d, z)| *d = z + beta * *d);
            rho = next;
        }
        let promised = -0.5 * dot(&at.gradient, &step);
        Ok((step, promised))
    }
}
