//! What is minimised.

use crate::LinearError;
use crate::features::{BatchSource, FeatureMap, Linearised, chunks};
use faer::MatRef;
use posterior_likelihoods::Likelihood;
use posterior_linalg::Real;
use posterior_optim::Signal;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Which linear predictor the mode belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Predictor {
    /// `g(x) + phi(x) (w - v)`.
    Affine,
    /// `phi(x) w`: the simplified model, exact when all but the output weights are normalised (spec `linearised_laplace`, section 4.5).
    Linear,
}

/// Features, data, likelihood and prior of a linear model.
pub struct ModeProblem<'a, T: Real, F: FeatureMap<T>> {
    /// The features.
    pub features: &'a F,
    /// Inputs and targets.
    pub source: &'a dyn BatchSource<F::Inputs>,
    /// The likelihood.
    pub likelihood: &'a dyn Likelihood,
    /// Whether the log likelihood is quadratic in the outputs, as under Gaussian noise: then one Newton step ends the search, solved further.
    pub quadratic: bool,
    /// Prior precision of each weight (d); infinite for weights that are held at zero.
    pub precisions: Vec<f64>,
    /// Multiplies the log likelihood (`1 / noise` relative to the likelihood's own).
    pub strength: f64,
    /// Which predictor.
    pub predictor: Predictor,
}

/// Value and gradient at one point, and what a product needs: outputs of the linear model.
pub(super) struct At {
    pub(super) loss: f64,
    pub(super) log_likelihood: f64,
    pub(super) gradient: Vec<f64>,
    outputs: Vec<f64>,
}

/// Told the examples that are done and all of them; says whether to go on.
type Observer<'a> = &'a mut dyn FnMut(usize, usize) -> Signal;

impl<T: Real, F: FeatureMap<T>> ModeProblem<'_, T, F> {
    /// A pass over the data, so many examples at once; `visit` gets the features of a batch, its targets and its place.
    fn pass(
        &self,
        at_once: usize,
        observer: Observer<'_>,
        mut visit: impl FnMut(&dyn Linearised<T>, &[f64], Range<usize>) -> Result<(), LinearError>,
    ) -> Result<(), LinearError> {
        let count = self.source.examples();
        for range in chunks(count, at_once) {
            let (inputs, targets) = self.source.batch(range.clone())?;
            let end = range.end;
            visit(&*self.features.at(inputs)?, &targets, range)?;
            if observer(end, count) == Signal::Stop {
                return Err(LinearError::Interrupted);
            }
        }
        Ok(())
    }

    /// `max |g - phi v| / max |g|`: how much of the outputs at the expansion point the offset carries. Cost: a pass over the data with one product.
    pub(super) fn offset(&self, observer: Observer<'_>) -> Result<f64, LinearError> {
        let expansion_point = self.features.expansion_point().map(rounded::<T>);
        let (mut largest_offset, mut largest_output) = (0.0f64, 0.0f64);
        self.pass(self.features.examples_at_once(1), observer, |features, _, _| {
            let through = expansion_point.as_ref().map(|v| features.apply(column(v))).transpose()?;
            for (k, g) in features.outputs().iter().enumerate() {
                let through = through.as_ref().map_or(0.0, |t| t[(k, 0)].to_f64());
                largest_offset = largest_offset.max((g - through).abs());
                largest_output = largest_output.max(g.abs());
            }
            Ok(())
        })?;
        Ok(if largest_output > 0.0 { largest_offset / largest_output } else { 0.0 })
    }

    pub(super) fn at(&self, w: &[f64], observer: Observer<'_>) -> Result<At, LinearError> {
        let affine = self.predictor == Predictor::Affine;
        // g + phi (w - v), or phi w without the offset.
        let difference: Vec<T> = match self.features.expansion_point().filter(|_| affine) {
            Some(v) => w.iter().zip(v).map(|(w, v)| T::from_f64(w - v)).collect(),
            None => rounded(w),
        };
        let (c, width) = (self.features.outputs(), self.likelihood.target_width());
        let mut at = At {
            loss: 0.0,
            log_likelihood: 0.0,
            gradient: vec![0.0; w.len()],
            outputs: Vec::with_capacity(self.source.examples() * c),
        };
        self.pass(self.features.examples_at_once(1), observer, |features, targets, range| {
            let g = features.outputs();
            let linear = features.apply(column(&difference))?;
            let mut cotangents = vec![T::ZERO; g.len()];
            let mut slope = vec![0.0; c];
            for i in 0..range.len() {
                let (row, y) = (i * c..(i + 1) * c, &targets[i * width..(i + 1) * width]);
                let f: Vec<f64> =
                    row.clone().map(|k| linear[(k, 0)].to_f64() + if affine { g[k] } else { 0.0 }).collect();
                at.log_likelihood += self.likelihood.log_density(y, &f);
                self.likelihood.gradient(y, &f, &mut slope);
                row.zip(&slope).for_each(|(k, s)| cotangents[k] = T::from_f64(-self.strength * s));
                at.outputs.extend(f);
            }
            let own = features.apply_transpose(column(&cotangents))?;
            at.gradient.iter_mut().zip(own.col(0).iter()).for_each(|(a, g)| *a += g.to_f64());
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
        Ok(at)
    }

    /// The loss at `w` (d) and its gradient. Cost: a pass over the data with two products.
    ///
    /// # Errors
    /// Those of the features and of reading the data; [`LinearError::Interrupted`].
    pub fn loss_and_gradient(
        &self,
        w: &[f64],
        observer: Observer<'_>,
    ) -> Result<(f64, Vec<f64>), LinearError> {
        let at = self.at(w, observer)?;
        Ok((at.loss, at.gradient))
    }

    /// `log p(Y | f)` at `w` (d).
    ///
    /// # Errors
    /// As [`Self::loss_and_gradient`].
    pub fn log_likelihood(&self, w: &[f64], observer: Observer<'_>) -> Result<f64, LinearError> {
        Ok(self.at(w, observer)?.log_likelihood)
    }

    /// `(s Phi' B Phi + A) v` with the curvature `B` at the linear model's outputs.
    pub(super) fn product(
        &self,
        at: &At,
        v: &[f64],
        observer: Observer<'_>,
    ) -> Result<Vec<f64>, LinearError> {
        let direction = rounded::<T>(v);
        let (c, width) = (self.features.outputs(), self.likelihood.target_width());
        let mut out = vec![0.0; v.len()];
        let at_once = self.features.examples_through_at_once(1);
        self.pass(at_once, observer, |features, targets, range| {
            let mut product = vec![0.0; c];
            let own = features.apply_through(column(&direction), &mut |examples, tangent| {
                for (k, i) in examples.enumerate() {
                    let f = &at.outputs[(range.start + i) * c..][..c];
                    let u: Vec<f64> = (k * c..(k + 1) * c).map(|k| tangent[(k, 0)].to_f64()).collect();
                    let target = &targets[i * width..(i + 1) * width];
                    self.likelihood.curvature_product(target, f, &u, &mut product);
                    (0..c).for_each(|o| tangent[(k * c + o, 0)] = T::from_f64(self.strength * product[o]));
                }
            })?;
            out.iter_mut().zip(own.col(0).iter()).for_each(|(o, g)| *o += g.to_f64());
            Ok(())
        })?;
        for ((o, v), a) in out.iter_mut().zip(v).zip(&self.precisions) {
            *o = if a.is_finite() { *o + a * v } else { 0.0 };
        }
        Ok(out)
    }
}

/// In the features' precision.
fn rounded<T: Real>(v: &[f64]) -> Vec<T> {
    v.iter().map(|v| T::from_f64(*v)).collect()
}

/// A slice as a matrix of one column.
fn column<T>(values: &[T]) -> MatRef<'_, T> {
    MatRef::from_column_major_slice(values, values.len(), 1)
}
