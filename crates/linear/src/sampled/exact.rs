//! Samples by conjugate gradients: all data in every product.

use super::SampledError;
use super::hessian::Hessian;
use super::model::SampledModel;
use super::noise::Noise;
use super::preconditioner::Factored;
use crate::features::FeatureMap;
use crate::structure::Structure;
use crate::{LinearError, check};
use faer::Mat;
use posterior_linalg::Real;
use posterior_linalg::solve::{ConjugateGradientState, ConjugateGradients};
use posterior_optim::{Clock, Iteration, Limits, Progress, Reason, Run, Signal, Step, drive};
use serde::{Deserialize, Serialize};

/// How far samples are pursued.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ConjugateOptions {
    /// Relative residual at which a sample is done. At 0.03 the outputs of a perceptron's samples were 5 to 7 % off, at 0.01 2 % and a step later; the scatter of 64 samples themselves is 9 % of a standard deviation.
    pub tolerance: f64,
    /// Products at most.
    pub steps: usize,
}

impl Default for ConjugateOptions {
    fn default() -> Self {
        Self { tolerance: 0.01, steps: 200 }
    }
}

struct Solving<'a, T: Real, F: FeatureMap<T>> {
    solver: ConjugateGradients<'a, f64>,
    hessian: &'a Hessian<'a, T, F>,
    residual: f64,
    tolerance: f64,
}

fn largest(solver: &ConjugateGradients<'_, f64>) -> f64 {
    solver.relative_residuals().into_iter().fold(0.0, f64::max)
}

impl<T: Real, F: FeatureMap<T>> Iteration for Solving<'_, T, F> {
    type Error = SampledError;

    fn progress(&self) -> Progress {
        let step = self.solver.state().iteration;
        Progress { step, residual: Some(self.residual), evaluations: step, ..Progress::default() }
    }

    fn step(&mut self, _: &mut Run<'_, Self>) -> Result<Step, SampledError> {
        let taken = self.solver.step();
        self.hessian.failure()?;
        if taken? {
            self.residual = largest(&self.solver);
            return Ok(Step::Taken);
        }
        let within = self.residual <= self.tolerance;
        Ok(Step::Ended(if within { Reason::Tolerance } else { Reason::Precision }))
    }
}

/// `zeta = H^-1 b` for all samples of the noise at once, from `start` (d x K) or a state of the same solve, preconditioned with an approximate `curvature` of the unscaled features. The observer sees every step with the state.
///
/// Cost: a pass over the data with products from both sides for every step; factoring, and six numbers for each entry of, the approximate curvature; memory ten blocks of d x K doubles. Reference for [`super::descend`], and with few examples the faster of the two.
///
/// # Errors
/// [`SampledError`]: sizes, features, data, a matrix that is not definite.
pub fn solve_exactly<T: Real, F: FeatureMap<T>>(
    model: &SampledModel<'_, T, F>,
    noise: &Noise,
    (precisions, strength): (&[f64], f64),
    curvature: &Structure,
    start: Mat<f64>,
    saved: Option<ConjugateGradientState<f64>>,
    options: &ConjugateOptions,
    observer: &mut dyn FnMut(&Progress, &ConjugateGradientState<f64>) -> Signal,
) -> Result<(Mat<f64>, Reason), SampledError> {
    check::same("weights of the approximate curvature", model.dimension(), curvature.dimension())?;
    if !(options.tolerance > 0.0 && options.tolerance < 1.0) {
        let expected = "a relative residual, above 0 and below 1";
        return Err(LinearError::Option { name: "tolerance", value: options.tolerance, expected }.into());
    }
    let right = noise.right_hand_sides(precisions, strength)?;
    let hessian = Hessian::new(model, precisions, strength, None);
    let preconditioner = Factored::new(curvature, model.scales(), precisions, strength)?;
    let tolerance = options.tolerance;
    let solver = match saved {
        Some(state) => {
            ConjugateGradients::resume(&hessian, &preconditioner, right.as_ref(), state, tolerance, 0.0)
        }
        None => ConjugateGradients::new(
            &hessian,
            &preconditioner,
            right.as_ref(),
            Some(start.as_ref()),
            tolerance,
            0.0,
        ),
    };
    hessian.failure()?;
    let solver = solver?;
    let mut solving = Solving { residual: largest(&solver), solver, hessian: &hessian, tolerance };
    let limits = Limits { steps: options.steps, time: None };
    let mut tell = |progress: &Progress, own: &Solving<'_, T, F>| observer(progress, own.solver.state());
    let (reason, _) = drive(&mut solving, limits, Clock::start(), &mut tell)?;
    Ok((solving.solver.into_state().solution, reason))
}
