//! The optimum of the linearised model by batches, for models whose passes are too long for Newton's method.

use super::descent::BatchGradient;
use super::model::{SampledModel, add, column};
use super::objective::batch_steepness;
use super::{DescentOptions, SampledError};
use crate::LinearError;
use crate::features::FeatureMap;
use crate::mode::Predictor;
use faer::{Mat, MatRef};
use posterior_linalg::Real;
use posterior_optim::Signal;

/// The loss `- s sum_i log p(y_i | f_i(w)) + 1/2 |w|²_A` of a model in scaled weights `w` (`f = g + phi (s w - v)`, or `phi s w`), with gradients on batches.
pub struct ModeObjective<'a, T: Real, F: FeatureMap<T>> {
    /// The model.
    pub model: &'a SampledModel<'a, T, F>,
    /// Prior precision of each weight (d), in the scaled coordinates.
    pub precisions: &'a [f64],
    /// Multiplies the log likelihood.
    pub strength: f64,
    /// Which predictor.
    pub predictor: Predictor,
}

impl<T: Real, F: FeatureMap<T>> ModeObjective<'_, T, F> {
    /// Gradient at `w` (d x 1) and loss by some examples (n / r times theirs) or all.
    ///
    /// # Errors
    /// Those of the features and of reading the data.
    pub fn gradient_at(
        &self,
        w: MatRef<'_, f64>,
        batch: Option<&[usize]>,
    ) -> Result<(Mat<f64>, f64), LinearError> {
        let model = self.model;
        let share = batch.map_or(1.0, |b| model.examples() as f64 / b.len() as f64);
        let affine = self.predictor == Predictor::Affine;
        let mut moved = model.unscaled(w);
        if let Some(v) = model.features().expansion_point().filter(|_| affine) {
            moved -= column(v);
        }
        let moved = Mat::from_fn(moved.nrows(), 1, |i, _| T::from_f64(moved[(i, 0)]));
        let (mut sum, mut log_likelihood) = (Mat::zeros(w.nrows(), 1), 0.0);
        let at_once = model.features().examples_through_at_once(1);
        model.pass(at_once, batch, &mut |_, _| Signal::Continue, &mut |_, features, observed| {
            let (likelihood, c) = (observed.likelihood, observed.likelihood.outputs());
            let (mut f, mut slope) = (vec![0.0; c], vec![0.0; c]);
            let back = features.apply_through(moved.as_ref(), &mut |examples, tangent| {
                for (i, example) in examples.enumerate() {
                    let offset = observed.output(example);
                    for o in 0..c {
                        f[o] = tangent[(i * c + o, 0)].to_f64() + if affine { offset[o] } else { 0.0 };
                    }
                    log_likelihood += likelihood.log_density(observed.target(example), &f);
                    likelihood.gradient(observed.target(example), &f, &mut slope);
                    (0..c).for_each(|o| tangent[(i * c + o, 0)] = T::from_f64(-slope[o]));
                }
            })?;
            add(&mut sum, &back);
            Ok(())
        })?;
        model.scale(&mut sum);
        let mut loss = -share * self.strength * log_likelihood;
        for (i, a) in self.precisions.iter().enumerate() {
            let w = w[(i, 0)];
            loss += 0.5 * a * w * w;
            sum[(i, 0)] = share * self.strength * sum[(i, 0)] + a * w;
        }
        Ok((sum, loss))
    }
}

impl<T: Real, F: FeatureMap<T>> BatchGradient for ModeObjective<'_, T, F> {
    fn examples(&self) -> usize {
        self.model.examples()
    }

    fn gradient(&mut self, at: MatRef<'_, f64>, batch: &[usize]) -> Result<(Mat<f64>, f64), LinearError> {
        self.gradient_at(at, Some(batch))
    }

    /// That of the curvature at the expansion point.
    fn steepness(&self, options: &DescentOptions) -> Result<f64, SampledError> {
        batch_steepness(self.model, self.precisions, self.strength, options)
    }
}
