//! Draws of the picture, a few at a time.

use crate::TomographyError;
use crate::linearised::{GPrior, GPriorFit};
use crate::measured::{ObservedPrior, SampleSolver};
use crate::running::{Stage, Watch};
use faer::Mat;
use posterior_linalg::operator::LinearOperator;
use posterior_linalg::random::Streams;
use posterior_linalg::solve::Preconditioner;
use posterior_linear::sampled::{ConjugateOptions, DescentOptions, SolverState, WatchSolver};
use posterior_optim::Signal;
use std::ops::Range;

/// Draws between two looks at who waits.
const TOGETHER: usize = 16;

/// Draws that are finished, and how far their solves came.
#[derive(Clone, Debug)]
pub(super) struct Pictures {
    /// Zero in the mean, pixels x samples; those from `done` on are still empty.
    pub(super) images: Mat<f64>,
    pub(super) done: usize,
    pub(super) residual: f64,
    pub(super) steps: usize,
}

impl Pictures {
    pub(super) fn begin(pixels: usize, samples: usize) -> Self {
        Self { images: Mat::zeros(pixels, samples), done: 0, residual: 0.0, steps: 0 }
    }
}

/// Keeps finished draws, and the state of the solve under way where there is one.
pub(super) type Keep<'a> = dyn FnMut(&Pictures, Option<&dyn Fn() -> SolverState>, Signal) -> Signal + 'a;

/// How a few draws are made.
pub(super) enum Draws<'a> {
    /// By conjugate gradients over the measurements.
    Measurements {
        observed: &'a ObservedPrior<'a>,
        preconditioner: &'a dyn Preconditioner<f64>,
        conjugate: &'a ConjugateOptions,
        seed: u64,
    },
    /// By descent on the weights.
    Weights { prior: &'a GPrior<'a, f32>, fit: &'a GPriorFit, descent: &'a DescentOptions },
}

impl Draws<'_> {
    /// Some of them, their largest residual and most steps.
    fn make(
        &self,
        numbers: Range<usize>,
        saved: Option<SolverState>,
        watch: &mut WatchSolver<'_, SolverState>,
    ) -> Result<(Mat<f64>, f64, usize), TomographyError> {
        match self {
            Self::Measurements { observed, preconditioner, conjugate, seed } => {
                let solver = SampleSolver::Iterative {
                    preconditioner: *preconditioner,
                    tolerance: conjugate.tolerance,
                    steps: conjugate.steps,
                };
                let drawn = observed.posterior_samples(numbers, Streams::new(*seed), solver)?;
                let residual = drawn.largest_residual();
                Ok((drawn.images, residual, drawn.steps))
            }
            Self::Weights { prior, fit, descent } => {
                let drawn = prior.draws_over_weights(descent, fit, numbers, saved, watch)?;
                Ok((prior.tangent().multiply(drawn.weights.as_ref()), drawn.residual, drawn.steps))
            }
        }
    }
}

/// Goes on from the draws that are there.
pub(super) fn draw(
    draws: &Draws<'_>,
    pictures: &mut Pictures,
    mut solving: Option<SolverState>,
    keep: &mut Keep<'_>,
    watch: &mut Watch<'_>,
) -> Result<(), TomographyError> {
    let samples = pictures.images.ncols();
    while pictures.done < samples {
        let numbers = pictures.done..samples.min(pictures.done + TOGETHER);
        let own = &*pictures;
        let (images, residual, steps) =
            draws.make(numbers.clone(), solving.take(), &mut |progress, state| {
                let signal = watch(Stage::Pictures, own.done, samples, progress.value);
                keep(own, Some(state), signal)
            })?;
        pictures.images.as_mut().subcols_mut(numbers.start, numbers.len()).copy_from(&images);
        pictures.residual = pictures.residual.max(residual);
        pictures.steps = pictures.steps.max(steps);
        pictures.done = numbers.end;
        let signal = watch(Stage::Pictures, pictures.done, samples, Some(pictures.residual));
        if keep(pictures, None, signal) == Signal::Stop {
            return Err(TomographyError::Interrupted);
        }
    }
    Ok(())
}

/// Root mean square of the draws of each pixel: they are zero in the mean by construction, and no sample mean is taken off.
pub(super) fn deviations(images: &Mat<f64>) -> Vec<f64> {
    let m = images.ncols().max(1) as f64;
    images.row_iter().map(|row| (row.squared_norm_l2() / m).sqrt()).collect()
}
