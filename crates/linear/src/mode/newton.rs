//! Newton's method without matrices.

use super::problem::At;
use super::{Mode, ModeOptions, ModeProblem};
use crate::LinearError;
use crate::features::FeatureMap;
use crate::structure::Conditioned;
use posterior_linalg::Real;
use posterior_linalg::solve::truncated_newton_step;
use posterior_optim::Signal;

impl<T: Real, F: FeatureMap<T>> ModeProblem<'_, T, F> {
    /// Newton's method from `start` (d), its steps solved by conjugate gradients that are preconditioned with a posterior (of the same weights).
    ///
    /// Cost: a pass over the data for every evaluation and for every product with the Hessian (two products of each example), and one for the offset. Memory: a few
    /// vectors of d numbers and the outputs of all examples.
    ///
    /// # Errors
    /// Those of the features and of reading the data; [`LinearError::Shape`] when sizes differ; [`LinearError::Interrupted`].
    pub fn solve(
        &self,
        start: &[f64],
        preconditioner: &Conditioned,
        options: &ModeOptions,
        observer: &mut dyn FnMut(usize, usize) -> Signal,
    ) -> Result<Mode, LinearError> {
        crate::check::same("weights", self.features.dimension(), start.len())?;
        crate::check::same("prior precisions", self.features.dimension(), self.precisions.len())?;
        crate::check::same("weights of the preconditioner", start.len(), preconditioner.dimension())?;
        let mut w: Vec<f64> =
            start.iter().zip(&self.precisions).map(|(w, a)| if a.is_finite() { *w } else { 0.0 }).collect();
        let mut at = self.at(&w, observer)?;
        let (mut products, mut remaining, mut converged, mut steps) = (0, f64::INFINITY, false, 0);
        // One step for a quadratic, unless a rough one may do.
        let inner_tolerance = if self.quadratic && options.norm_tolerance == 0.0 { 1e-8 } else { 1e-2 };
        while steps < options.newton_steps {
            let (step, promised) =
                self.newton_step(&at, preconditioner, options, inner_tolerance, &mut products, observer)?;
            let before = std::mem::replace(&mut remaining, promised);
            if promised.is_nan() || promised <= options.tolerance.max(self.nats(&w, options)) {
                // A step of nothing where there is a slope is a curvature that is no number.
                let arrived = promised > 0.0 || at.gradient.iter().all(|g| *g == 0.0);
                converged = promised.is_finite() && arrived;
                break;
            }
            // A gain below the rounding of the loss is not seen in it: there the promises say whether steps still help.
            let rounding = Some(4.0 * f64::EPSILON * at.loss.abs()).filter(|unseen| promised <= *unseen);
            if rounding.is_some() && promised > 0.25 * before {
                break;
            }
            steps += 1;
            let mut length = 1.0;
            let next = loop {
                let trial: Vec<f64> = w.iter().zip(&step).map(|(w, s)| w + length * s).collect();
                let value = self.at(&trial, observer)?;
                // Enough of what the quadratic promised, or rounding in the features' precision.
                if value.loss <= at.loss - 0.1 * length * promised + rounding.unwrap_or(0.0) {
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
        Ok(Mode {
            weights: w,
            log_likelihood: at.log_likelihood,
            loss: at.loss,
            newton_steps: steps,
            products,
            remaining,
            converged,
            offset: self.offset(observer)?,
        })
    }

    /// Nats that leave the norm of the weights as far off as is allowed.
    fn nats(&self, w: &[f64], options: &ModeOptions) -> f64 {
        let own = w.iter().zip(&self.precisions).filter(|(_, a)| a.is_finite());
        options.norm_tolerance.powi(2) / 8.0 * own.map(|(w, a)| a * w * w).sum::<f64>()
    }

    /// A step and what the quadratic model promises for it.
    fn newton_step(
        &self,
        at: &At,
        preconditioner: &Conditioned,
        options: &ModeOptions,
        inner_tolerance: f64,
        products: &mut usize,
        observer: &mut dyn FnMut(usize, usize) -> Signal,
    ) -> Result<(Vec<f64>, f64), LinearError> {
        let hold = |mut v: Vec<f64>| {
            v.iter_mut().zip(&self.precisions).filter(|(_, a)| !a.is_finite()).for_each(|(v, _)| *v = 0.0);
            v
        };
        let found = truncated_newton_step(
            &at.gradient,
            |direction| self.product(at, direction, observer),
            |residual| hold(preconditioner.solve(residual)),
            inner_tolerance,
            options.inner_steps,
        )?;
        *products += found.products;
        Ok((found.step, found.promised))
    }
}
