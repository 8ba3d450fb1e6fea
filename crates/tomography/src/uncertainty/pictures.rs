//! Draws of the picture, a few at a time.

use crate::TomographyError;
use crate::measured::{ObservedPrior, SampleSolver};
use crate::running::{Stage, Watch};
use faer::Mat;
use posterior_linalg::random::Streams;
use posterior_linalg::solve::Preconditioner;
use posterior_linear::sampled::ConjugateOptions;
use posterior_optim::Signal;

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

/// Goes on from the draws that are there.
pub(super) fn draw(
    observed: &ObservedPrior<'_>,
    preconditioner: &dyn Preconditioner<f64>,
    conjugate: &ConjugateOptions,
    seed: u64,
    pictures: &mut Pictures,
    keep: &mut dyn FnMut(&Pictures, Signal) -> Signal,
    watch: &mut Watch<'_>,
) -> Result<(), TomographyError> {
    let samples = pictures.images.ncols();
    while pictures.done < samples {
        let numbers = pictures.done..samples.min(pictures.done + TOGETHER);
        let solver = SampleSolver::Iterative {
            preconditioner,
            tolerance: conjugate.tolerance,
            steps: conjugate.steps,
        };
        let drawn = observed.posterior_samples(numbers.clone(), Streams::new(seed), solver)?;
        pictures.images.as_mut().subcols_mut(numbers.start, numbers.len()).copy_from(&drawn.images);
        pictures.residual = pictures.residual.max(drawn.largest_residual());
        pictures.steps = pictures.steps.max(drawn.steps);
        pictures.done = numbers.end;
        let signal = watch(Stage::Pictures, pictures.done, samples, Some(pictures.residual));
        if keep(pictures, signal) == Signal::Stop {
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
