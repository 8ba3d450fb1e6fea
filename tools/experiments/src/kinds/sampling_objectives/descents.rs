//! Exact samples, and descents towards them with step sizes that the loss chooses.

use super::Descents;
use super::stored::Stored;
use crate::classifier::{Classifier, exact_samples, leading};
use crate::kinds::prelude::*;
use crate::toy::deviation;
use posterior_laplace::PriorKind;
use posterior_likelihoods::OutputLikelihood;
use posterior_linear::sampled::{
    Averaging, BatchGradient, DescentOptions, GradientVariances, Noise, Objective, SampleObjective,
    SampledError, SampledModel, descend, gradient_variances,
};
use posterior_optim::{Reason, Signal};

/// What all descents share.
pub(super) struct Problem {
    stored: Stored,
    likelihood: OutputLikelihood,
    /// Of each weight.
    precisions: Vec<f64>,
    noise: Noise,
    /// The minimum of both objectives, d x K.
    exact: Mat<f64>,
    /// The largest curvature of all images.
    steepness: f64,
}

/// Descents on one objective with batches of one size.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Errors {
    /// Steps taken, and the relative error of the weights there: of the average that a descent returns, the mean over samples and repeats.
    pub(super) points: Vec<(usize, f64)>,
    /// The last of each repeat.
    pub(super) errors: Vec<f64>,
    /// `(2 (L - L*) / d)^(1/2)` at the end: the relative error in the norm of the posterior precision, in which samples have a squared length of d; of each repeat.
    pub(super) norm_errors: Vec<f64>,
    /// Shares of the inverse of the largest curvature that were tried as step sizes, with the loss above its minimum that they led to; none where it diverged.
    pub(super) tried: Vec<(f64, Option<f64>)>,
    /// The number of the share with the least loss.
    pub(super) chosen: usize,
    /// Its step size.
    pub(super) step_size: f64,
}

/// About the gradients at the solution.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Variances {
    /// By their formulas.
    pub(super) formulas: GradientVariances,
    /// Of single images' gradients, summed over weights and measured: of the low-variance and of the standard objective.
    pub(super) measured: [f64; 2],
    /// The standard error of the second minus the first, over images, and of its formula, over samples.
    pub(super) error: f64,
    /// The largest curvature of all images.
    pub(super) steepness: f64,
    /// Images.
    pub(super) images: usize,
}

/// What one descent came to.
struct Descended {
    points: Vec<(usize, f64)>,
    /// The loss above its minimum.
    excess: f64,
}

/// `|z_j - zeta_j| / |zeta_j|`, the mean over the samples.
fn relative_error(found: MatRef<'_, f64>, exact: MatRef<'_, f64>) -> f64 {
    let k = exact.ncols();
    let one = |j: usize| {
        let away: f64 = found.col(j).iter().zip(exact.col(j).iter()).map(|(a, b)| (a - b).powi(2)).sum();
        (away / exact.col(j).squared_norm_l2()).sqrt()
    };
    (0..k).map(one).sum::<f64>() / k as f64
}

impl Problem {
    /// Stores the features and solves for the samples.
    pub(super) fn new(own: &Descents, classifier: &Classifier, context: &mut Context<'_>) -> Result<Self> {
        let stored = Stored::of(classifier, context)?;
        let likelihood = classifier.likelihood.clone();
        let prior = classifier.prior(&PriorKind::Scalar, own.precision)?;
        let precisions = prior.precision_of_each(0..prior.dimension());
        let seed = context.seed;
        let model = SampledModel::new(&stored, &stored, &likelihood);
        let mut tell = |done, all| context.tell("exact samples", done, all);
        let curvature = leading(&model, own.samples, seed, &mut tell)?;
        let noise = Noise::draw(&model, 0..own.samples, seed, &mut tell)?;
        let exact = exact_samples(&model, &noise, &precisions, &curvature, own.tolerance, &mut tell)?;
        let whole = DescentOptions { batch: model.examples(), seed, ..DescentOptions::default() };
        let steepness = SampleObjective::new(&model, &noise, &precisions, 1.0, Objective::LowVariance)?
            .steepness(&whole)?;
        Ok(Self { stored, likelihood, precisions, noise, exact, steepness })
    }

    fn model(&self) -> SampledModel<'_, f32, Stored> {
        SampledModel::new(&self.stored, &self.stored, &self.likelihood)
    }

    /// Descends with every step size, and again with other batches at the one with the least loss.
    pub(super) fn errors(
        &self,
        own: &Descents,
        (name, objective): (&str, Objective),
        batch: usize,
        context: &mut Context<'_>,
    ) -> Result<Errors> {
        let stage = format!("{name}, batches of {batch}");
        let mut descents = Vec::new();
        for share in &own.shares {
            let step_size = share / self.steepness;
            descents.push(self.descended(own, objective, (batch, step_size, 0), &stage, context)?);
        }
        let excess: Vec<Option<f64>> =
            descents.iter().map(|d| d.as_ref().map(|d| d.excess).filter(|e| e.is_finite())).collect();
        let tried: Vec<(f64, Option<f64>)> = own.shares.iter().copied().zip(excess).collect();
        let best = |i: &usize| tried[*i].1.unwrap_or(f64::INFINITY);
        let chosen = (0..tried.len()).min_by(|i, j| best(i).total_cmp(&best(j))).unwrap_or(0);
        let step_size = own.shares[chosen] / self.steepness;
        let mut all: Vec<Descended> = descents.swap_remove(chosen).into_iter().collect();
        for repeat in 1..own.repeats {
            all.extend(self.descended(own, objective, (batch, step_size, repeat), &stage, context)?);
        }
        let (d, count) = (self.exact.nrows() as f64, all.len() as f64);
        let mean = |i: usize| all.iter().map(|one| one.points[i].1).sum::<f64>() / count;
        let points = all.first().map_or(&[][..], |one| &one.points[..]);
        Ok(Errors {
            points: points.iter().enumerate().map(|(i, p)| (p.0, mean(i))).collect(),
            errors: all.iter().filter_map(|one| one.points.last().map(|p| p.1)).collect(),
            norm_errors: all.iter().map(|one| (2.0 * one.excess.max(0.0) / d).sqrt()).collect(),
            tried,
            chosen,
            step_size,
        })
    }

    /// One descent from draws of the prior; none if it diverges.
    fn descended(
        &self,
        own: &Descents,
        objective: Objective,
        (batch, step_size, repeat): (usize, f64, usize),
        stage: &str,
        context: &mut Context<'_>,
    ) -> Result<Option<Descended>> {
        let model = self.model();
        let per_epoch = (model.examples() / batch).max(1);
        let options = DescentOptions {
            epochs: own.steps.div_ceil(per_epoch),
            batch,
            momentum: own.momentum,
            step_size: Some(step_size),
            // Half the step would be another one of the grid.
            restarts: 0,
            seed: Streams::new(context.seed).child("experiment/batches", repeat as u64).seed(),
        };
        let start = self.noise.prior_draws(&self.precisions)?;
        let exact = self.exact.as_ref();
        let mut points = vec![(0, relative_error(start.as_ref(), exact))];
        let mut objective = SampleObjective::new(&model, &self.noise, &self.precisions, 1.0, objective)?;
        let ended = descend(
            "the samples",
            &mut objective,
            start,
            None,
            Averaging::Geometric,
            &options,
            &mut |progress, state| {
                let last = progress.step == progress.steps_planned;
                if progress.step > 0 && (progress.step % own.every == 0 || last) {
                    points.push((progress.step, relative_error(state.average.as_ref(), exact)));
                    return context.tell(stage, progress.step, progress.steps_planned);
                }
                Signal::Continue
            },
        );
        let (found, reason) = match ended {
            Err(SampledError::Diverged { .. }) => return Ok(None),
            ended => ended?,
        };
        if reason == Reason::Interrupted {
            return Err(ExperimentError::Interrupted);
        }
        let loss = |z: MatRef<'_, f64>| objective.gradient_at(z, None).map(|g| g.1);
        let excess = loss(found.as_ref())? - loss(exact)?;
        Ok(Some(Descended { points, excess }))
    }

    /// Variances of gradients at the solution, by the first so many images.
    pub(super) fn variances(
        &self,
        own: &Descents,
        examples: usize,
        objectives: [Objective; 2],
        context: &mut Context<'_>,
    ) -> Result<Variances> {
        let model = self.model();
        let numbers: Vec<usize> = (0..examples.min(model.examples())).collect();
        let mut tell = |done, all| context.tell("gradient variances", done, all);
        let (exact, to) = (self.exact.as_ref(), (own.precision, 1.0));
        let formulas = gradient_variances(&model, &self.noise, exact, to, &numbers, &mut tell)?;
        let mut each = [vec![0.0; numbers.len()], vec![0.0; numbers.len()]];
        for (squares, objective) in each.iter_mut().zip(objectives) {
            let objective = SampleObjective::new(&model, &self.noise, &self.precisions, 1.0, objective)?;
            // The mean of all gradients is zero here.
            for (square, number) in squares.iter_mut().zip(&numbers) {
                let (gradient, _) = objective.gradient_at(exact, Some(&[*number]))?;
                *square = gradient.squared_norm_l2() / exact.ncols() as f64;
            }
        }
        let [low, standard] = &each;
        let apart: Vec<f64> = standard.iter().zip(low).map(|(a, b)| a - b).collect();
        // The formula's trace is a mean over samples, most of whose squares are along a few steep directions.
        let traces: Vec<f64> =
            (0..self.noise.pulled.ncols()).map(|j| self.noise.pulled.col(j).squared_norm_l2()).collect();
        let of_mean = |values: &[f64]| deviation(values) / (values.len() as f64).sqrt();
        let error = of_mean(&apart).hypot(model.examples() as f64 * of_mean(&traces));
        let measured = [low, standard].map(|own| mean(own.iter().copied()));
        Ok(Variances { formulas, measured, error, steepness: self.steepness, images: model.examples() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_relative_to_each_sample() {
        let exact = Mat::from_fn(2, 2, |i, j| if i == j { 2.0 } else { 0.0 });
        let found = Mat::from_fn(2, 2, |i, j| if i == j { 3.0 } else { 0.0 });
        assert_eq!(relative_error(found.as_ref(), exact.as_ref()), 0.5);
        let half = Mat::from_fn(2, 2, |i, j| if i == 0 && j == 0 { 2.0 } else { 0.0 });
        assert_eq!(relative_error(half.as_ref(), exact.as_ref()), 0.5);
    }
}
