//! Two objectives whose minimum is a sample.

use super::descent::BatchGradient;
use super::model::SampledModel;
use super::noise::{Noise, output_noise};
use super::{DescentOptions, SampledError};
use crate::features::FeatureMap;
use crate::sampled::Hessian;
use crate::{LinearError, check};
use faer::{Mat, MatRef};
use posterior_linalg::Real;
use posterior_linalg::solve::largest_eigenvalue;
use posterior_optim::{Batches, Sampling, Signal};
use serde::{Deserialize, Serialize};

/// Where the noise of the data stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Objective {
    /// In the regulariser's target, `1/2 |Phi z|²_B + 1/2 |z - w0'|²_A` with `w0' = w0 + A^-1 Phi' B e`: a batch's gradient has no noise but that of its rows.
    #[default]
    LowVariance,
    /// In the targets of the data, `1/2 |e - Phi z|²_B + 1/2 |z - w0|²_A`.
    Standard,
}

/// Batches whose curvature bounds the step size.
const STEP_BATCHES: usize = 4;

/// Power iterations for each of them.
const POWER: usize = 12;

/// The gradient of all K samples' objectives on a batch. Both objectives differ by a constant only and need no inverse of `B`.
///
/// Source: spec `linearised_laplace`, section 5.6; Antorán (2024), equations 4.16 and 4.17.
pub struct SampleObjective<'a, T: Real, F: FeatureMap<T>> {
    model: &'a SampledModel<'a, T, F>,
    noise: &'a Noise,
    precisions: &'a [f64],
    strength: f64,
    objective: Objective,
    /// What does not depend on the batch, d x K.
    constant: Mat<f64>,
}

impl<'a, T: Real, F: FeatureMap<T>> SampleObjective<'a, T, F> {
    /// For prior precisions of each weight (d) and a strength of the data.
    ///
    /// # Errors
    /// [`LinearError::Shape`].
    pub fn new(
        model: &'a SampledModel<'a, T, F>,
        noise: &'a Noise,
        precisions: &'a [f64],
        strength: f64,
        objective: Objective,
    ) -> Result<Self, LinearError> {
        check::same("rows of the noise", model.dimension(), noise.pulled.nrows())?;
        let constant = match objective {
            Objective::LowVariance => noise.right_hand_sides(precisions, strength)?,
            Objective::Standard => noise.right_hand_sides(precisions, 0.0)?,
        };
        Ok(Self { model, noise, precisions, strength, objective, constant })
    }

    /// Gradient of each sample's objective at `z` (d x K) by some examples (n / r times theirs) or all, and the mean of the samples' objectives, without the constant in which the two differ, by the same.
    ///
    /// # Errors
    /// Those of the features and of reading the data.
    pub fn gradient_at(
        &self,
        z: MatRef<'_, f64>,
        batch: Option<&[usize]>,
    ) -> Result<(Mat<f64>, f64), LinearError> {
        let (k, model) = (z.ncols(), self.model);
        let share = batch.map_or(1.0, |b| model.examples() as f64 / b.len() as f64);
        let mut squares = vec![0.0; k];
        let (mut sum, rounded) = (Mat::zeros(z.nrows(), k), model.rounded(z));
        let standard = self.objective == Objective::Standard;
        let root = self.strength.sqrt();
        let mut crossed = vec![0.0; k];
        let at_once = model.features().examples_through_at_once(k);
        model.pass(at_once, batch, &mut |_, _| Signal::Continue, &mut |numbers, features, observed| {
            let noise: Option<Mat<T>> =
                standard.then(|| output_noise(numbers, observed, &self.noise.samples, self.noise.seed));
            let back = features.apply_through(rounded.as_ref(), &mut |examples, tangents| {
                let outputs = standard.then(|| tangents.clone());
                super::model::curve(observed, examples.clone(), tangents, &mut squares);
                if let (Some(outputs), Some(noise)) = (outputs, &noise) {
                    // s B f - s^(1/2) R e, over s.
                    let first = examples.start * observed.likelihood.outputs();
                    for j in 0..k {
                        for i in 0..tangents.nrows() {
                            let noise = noise[(first + i, j)];
                            crossed[j] += outputs[(i, j)].to_f64() * noise.to_f64();
                            tangents[(i, j)] -= noise * T::from_f64(1.0 / root);
                        }
                    }
                }
            })?;
            super::model::add(&mut sum, &back);
            Ok(())
        })?;
        model.scale(&mut sum);
        let mut value = 0.0;
        for j in 0..k {
            value += 0.5 * share * self.strength * squares[j] - share * root * crossed[j];
            for (i, a) in self.precisions.iter().enumerate() {
                let (z, b) = (z[(i, j)], self.constant[(i, j)]);
                value += (0.5 * a * z - b) * z;
                sum[(i, j)] = share * self.strength * sum[(i, j)] + a * z - b;
            }
        }
        Ok((sum, value / k as f64))
    }
}

impl<T: Real, F: FeatureMap<T>> BatchGradient for SampleObjective<'_, T, F> {
    fn examples(&self) -> usize {
        self.model.examples()
    }

    fn gradient(&mut self, at: MatRef<'_, f64>, batch: &[usize]) -> Result<(Mat<f64>, f64), LinearError> {
        self.gradient_at(at, Some(batch))
    }

    fn steepness(&self, options: &DescentOptions) -> Result<f64, SampledError> {
        batch_steepness(self.model, self.precisions, self.strength, options)
    }
}

/// The largest eigenvalue of `(n / r) s M_I + A` over a few batches I of r examples, by power iteration: what limits the step on batches of that size.
pub(super) fn batch_steepness<T: Real, F: FeatureMap<T>>(
    model: &SampledModel<'_, T, F>,
    precisions: &[f64],
    strength: f64,
    options: &DescentOptions,
) -> Result<f64, SampledError> {
    let names = ["linear/steepness", "order"];
    let mut batches =
        Batches::new(model.examples(), options.batch, Sampling::Permutation, options.seed, names).ascending();
    let mut largest = 0.0f64;
    for step in 0..STEP_BATCHES.min(batches.per_epoch()) {
        let batch = batches.batch(step);
        let hessian = Hessian::new(model, precisions, strength, Some(&batch));
        let found = largest_eigenvalue(&hessian, POWER, options.seed);
        hessian.failure()?;
        largest = largest.max(found?);
    }
    Ok(largest)
}
